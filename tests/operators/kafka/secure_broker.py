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

from streamgauge.apps.kafka.broker import HOST, EmbeddedKafka, _free_port

USER, PASSWORD, KEY_PASSWORD = "ann", "tr0ut-in-the-brook", "pike-in-the-pond"

_LISTENERS = r"""
listener.name.ssl.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.sasl_ssl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
 user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
 unsecuredLoginStringClaim_sub="broker";
"""


class SecureKafka(EmbeddedKafka):
    """`bootstrap_servers` asks nobody who they are; `tls` wants a certificate, and `sasl` a user.

    `folder` has the authority's certificate `ca.pem`, and the client's `client.pem` and `client.key`, whose
    password is `KEY_PASSWORD`; `other.pem` is an authority that has signed nothing.
    """

    def _write_settings(self) -> Path:
        settings = super()._write_settings()
        tls = sasl = 0
        while tls == sasl:
            tls, sasl = _free_port(but=self.port), _free_port(but=self.port)
        self.tls, self.sasl = f"localhost:{tls}", f"localhost:{sasl}"
        text = settings.read_text()
        plain, added = f"PLAINTEXT://{HOST}:{self.port}", f"SSL://localhost:{tls},SASL_SSL://localhost:{sasl}"
        text = text.replace(f"listeners={plain}", f"listeners={plain},{added}")
        text = text.replace("PLAINTEXT:PLAINTEXT", "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL")
        settings.write_text(text + _LISTENERS.format(folder=self.folder, user=USER, password=PASSWORD))
        self._certify()
        return settings

    def add_user(self) -> None:
        """Let the brokers know the user's SCRAM passwords."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
            )
            for done in admin.alter_user_scram_credentials([wanted]).values():
                done.result(20)

    def _certify(self) -> None:
        self._openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"
        )
        self._openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other"
        )
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        for name in ("server", "client"):
            self._openssl(
                f"req -newkey rsa:2048 -nodes -keyout {name}.plain -out {name}.csr -subj /CN={name}"
            )
            self._openssl(
                f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out {name}.pem "
                "-extfile names"
            )
        self._openssl(f"pkcs8 -topk8 -in client.plain -out client.key -passout pass:{KEY_PASSWORD}")
        self._openssl("pkcs8 -topk8 -nocrypt -in server.plain -out server.key")
        with (self.folder / "server.pem").open("a") as both:
            both.write((self.folder / "server.key").read_text())

    def _openssl(self, arguments: str) -> None:
        subprocess.run(["openssl", *arguments.split()], cwd=self.folder, capture_output=True, check=True)
