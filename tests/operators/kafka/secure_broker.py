"""An embedded broker with listeners that ask who comes: TLS with certificates, and SASL over TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.dev.kafka.node import HOST, free_port

USER, PASSWORD, KEY_PASSWORD = "ann", "tr0ut-in-the-brook", "pike-in-the-pond"

_MODULES = {
    "plain": f'plain.PlainLoginModule required user_{USER}="{PASSWORD}"',
    "scram-sha-256": "scram.ScramLoginModule required",
    "scram-sha-512": "scram.ScramLoginModule required",
    "oauthbearer": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"',
}


class SecureKafka(EmbeddedKafka):
    """`bootstrap_servers` authenticates nobody; `tls` wants a certificate, and `sasl` a user.

    `folder` has the authority's certificate `ca.pem`, and the client's `client.pem` and `client.key`, whose
    password is `KEY_PASSWORD`; `other.pem` is an authority that has signed nothing.
    """

    def __init__(self, data: Path) -> None:
        data.mkdir(exist_ok=True)
        plain, tls, sasl, controller = _free_ports(4)
        self.tls, self.sasl = f"localhost:{tls}", f"localhost:{sasl}"
        shown = f"PLAINTEXT://{HOST}:{plain},SSL://{self.tls},SASL_SSL://{self.sasl}"
        kinds = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
        listeners = {
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"{shown},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": shown,
            "listener.security.protocol.map": kinds,
        }
        super().__init__(plain, data, settings=listeners | _security(data))
        _certify(data)

    def add_user(self) -> None:
        """Let the brokers know the user's SCRAM passwords."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
            )
            for done in admin.alter_user_scram_credentials([wanted]).values():
                done.result(120)


def _security(folder: Path) -> dict[str, object]:
    listener = "listener.name.sasl_ssl"
    logins = {
        f"{listener}.{mechanism}.sasl.jaas.config": f"org.apache.kafka.common.security.{module};"
        for mechanism, module in _MODULES.items()
    }
    return {
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
        f"{listener}.sasl.enabled.mechanisms": ",".join(_MODULES).upper(),
        **logins,
    }


def _certify(folder: Path) -> None:
    def openssl(arguments: str) -> None:
        subprocess.run(["openssl", *arguments.split()], cwd=folder, capture_output=True, check=True)

    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name, said in {"ca": "authority", "other": "other"}.items():
        openssl(
            f"req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.pem -days 2 -subj /CN={said}"
        )
    for name in ("server", "client"):
        openssl(f"req -newkey rsa:2048 -nodes -keyout {name}.plain -out {name}.csr -subj /CN={name}")
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out {name}.pem"
        openssl(f"{signed} -extfile names")
    openssl(f"pkcs8 -topk8 -in client.plain -out client.key -passout pass:{KEY_PASSWORD}")
    openssl("pkcs8 -topk8 -nocrypt -in server.plain -out server.key")
    with (folder / "server.pem").open("a") as both:
        both.write((folder / "server.key").read_text())


def _free_ports(count: int) -> list[int]:
    result: set[int] = set()
    while len(result) < count:
        result.add(free_port())
    return list(result)
