"""Feeds for the apps: their addresses and protocols under one name.

`streamgauge ingest --preset jetstream --topic posts` beside `streamgauge run trending --topic posts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .batch import IngestError


@dataclass(frozen=True)
class Preset:
    """A feed: its description, its settings with their defaults, and the source that it configures.

    A setting with an empty default is required.
    """

    about: str
    source: Callable[[Mapping[str, str]], dict[str, Any]]
    settings: Mapping[str, str] = field(default_factory=dict)


def _jetstream(given: Mapping[str, str]) -> dict[str, Any]:
    wanted = "".join(f"&wantedCollections={one}" for one in _listed(given["collections"]))
    return {
        "type": "websocket",
        "url": f"{given['url']}?{wanted[1:]}" if wanted else given["url"],
        "cursor": "time_us",
        "key": "did",
    }


def _coinbase(given: Mapping[str, str]) -> dict[str, Any]:
    request = {"type": "subscribe", "product_ids": _listed(given["products"]), "channels": ["matches"]}
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps(request)],
        "key": "product_id",
        "sequence": "trade_id",
        "sequence_by": "product_id",
        "errors": r'"type"\s*:\s*"error"',
        "interceptors": [{"type": "filter", "regex": r'"type"\s*:\s*"((last_)?match|error)"'}],
    }


def _binance(given: Mapping[str, str]) -> dict[str, Any]:
    streams = "/".join(f"{symbol.lower()}@trade" for symbol in _listed(given["symbols"]))
    return {
        "type": "websocket",
        "url": f"{given['url']}?streams={streams}",
        "sequence": "data.t",
        "sequence_by": "data.s",
        "errors": r'"error"\s*:\s*\{',
    }


def _okx(given: Mapping[str, str]) -> dict[str, Any]:
    args = [{"channel": given["channel"], "instId": one} for one in _listed(given["instruments"])]
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps({"op": "subscribe", "args": args})],
        "heartbeat": "ping",
        "errors": r'"event"\s*:\s*"(error|notice)"',
        "interceptors": [{"type": "filter", "regex": "^pong$", "exclude": True}],
    }


def _bybit(given: Mapping[str, str]) -> dict[str, Any]:
    topics = [f"publicTrade.{symbol}" for symbol in _listed(given["symbols"])]
    some = [topics[at : at + _BYBIT_ARGS] for at in range(0, len(topics), _BYBIT_ARGS)]
    return {
        "type": "websocket",
        "url": f"{given['url'].rstrip('/')}/{given['category']}",
        "subscribe": [json.dumps({"op": "subscribe", "args": args}) for args in some],
        "key": "topic",
        "heartbeat": json.dumps({"op": "ping"}),
        "errors": r'"success"\s*:\s*false',
        "interceptors": [{"type": "filter", "regex": r'"op"\s*:\s*"(ping|pong)"', "exclude": True}],
    }


def _kraken(given: Mapping[str, str]) -> dict[str, Any]:
    params = {"channel": "trade", "symbol": _listed(given["symbols"]), "snapshot": False}
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps({"method": "subscribe", "params": params})],
        "sequence": "data.trade_id",
        "sequence_by": "data.symbol",
        "errors": r'"success"\s*:\s*false|"error"\s*:\s*"',
        "interceptors": [{"type": "filter", "regex": r'"channel"\s*:\s*"heartbeat"', "exclude": True}],
    }


def _kraken_futures(given: Mapping[str, str]) -> dict[str, Any]:
    request = {"event": "subscribe", "feed": "trade", "product_ids": _listed(given["products"])}
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps(request)],
        "key": "product_id",
        "sequence": "seq",
        "sequence_by": "product_id",
        "errors": r'"event"\s*:\s*"(error|alert)"',
    }


def _bitstamp(given: Mapping[str, str]) -> dict[str, Any]:
    channels = [f"live_trades_{pair.lower()}" for pair in _listed(given["pairs"])]
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps({"event": "bts:subscribe", "data": {"channel": one}}) for one in channels],
        "key": "channel",
        "errors": r'"event"\s*:\s*"bts:(error|request_reconnect)"',
    }


def _gemini(given: Mapping[str, str]) -> dict[str, Any]:
    subscription = {"name": "l2", "symbols": _listed(given["symbols"])}
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps({"type": "subscribe", "subscriptions": [subscription]})],
        "key": "symbol",
        "errors": r'"result"\s*:\s*"error"',
        # Trades only come with the order books.
        "interceptors": [
            {"type": "filter", "regex": r'"type"\s*:\s*"(l2_updates|heartbeat)"', "exclude": True}
        ],
    }


def _deribit(given: Mapping[str, str]) -> dict[str, Any]:
    channels = [f"trades.{name}.{given['interval']}" for name in _listed(given["instruments"])]
    request = {"jsonrpc": "2.0", "id": 1, "method": "public/subscribe", "params": {"channels": channels}}
    return {
        "type": "websocket",
        "url": given["url"],
        "subscribe": [json.dumps(request)],
        "sequence": "params.data.trade_seq",
        "sequence_by": "params.data.instrument_name",
        "errors": r'"error"\s*:\s*\{',
    }


def _mqtt(given: Mapping[str, str]) -> dict[str, Any]:
    host, _, port = given["broker"].partition(":")
    login = {name: given[name] for name in ("user", "password") if given[name] != "-"}
    return {
        "type": "mqtt",
        "host": host,
        "port": int(port or 1883),
        "topics": _listed(given["topics"]),
        **login,
    }


def _nginx(given: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "tail", "files": _listed(given["files"])}


def _sshd(given: Mapping[str, str]) -> dict[str, Any]:
    source = _nginx(given)
    return {**source, "interceptors": [{"type": "filter", "regex": r"\bsshd(-session)?\[\d+\]:"}]}


def _journald(given: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "journal", "command": given["command"].split(), "start": given["start"]}


def _mirror(given: Mapping[str, str]) -> dict[str, Any]:
    source: dict[str, Any] = {
        "type": "kafka",
        "topics": _listed(given["topics"]),
        "bootstrap_servers": given["brokers"],
        "start": given["start"],
    }
    if given["user"] != "-":
        source["config"] = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": given["user"],
            "sasl.password": given["password"],
        }
    return source


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


_BYBIT_ARGS = 10
"""The most topics in one request for Bybit's spot market."""
_LOGIN = {"user": "-", "password": "-"}

PRESETS = {
    "jetstream": Preset(
        "posts of Bluesky's Jetstream, from its cursor on after a break (trending)",
        _jetstream,
        {
            "url": "wss://jetstream2.us-east.bsky.network/subscribe",
            "collections": "app.bsky.feed.post",
        },
    ),
    "coinbase": Preset(
        "trades of Coinbase Exchange (stocks)",
        _coinbase,
        {"url": "wss://ws-feed.exchange.coinbase.com", "products": "BTC-USD,ETH-USD"},
    ),
    "binance": Preset(
        "trades of Binance (stocks)",
        _binance,
        {"url": "wss://stream.binance.com:9443/stream", "symbols": "BTCUSDT,ETHUSDT"},
    ),
    "okx": Preset(
        "trades of OKX (stocks)",
        _okx,
        {
            "url": "wss://ws.okx.com:8443/ws/v5/public",
            "instruments": "BTC-USDT,ETH-USDT",
            "channel": "trades",
        },
    ),
    "bybit": Preset(
        "trades of Bybit: category spot, linear or inverse (stocks)",
        _bybit,
        {"url": "wss://stream.bybit.com/v5/public", "category": "spot", "symbols": "BTCUSDT,ETHUSDT"},
    ),
    "kraken": Preset(
        "trades of Kraken's spot market (stocks)",
        _kraken,
        {"url": "wss://ws.kraken.com/v2", "symbols": "BTC/USD,ETH/USD"},
    ),
    "kraken-futures": Preset(
        "trades of Kraken's futures (stocks)",
        _kraken_futures,
        {"url": "wss://futures.kraken.com/ws/v1", "products": "PI_XBTUSD,PF_XBTUSD"},
    ),
    "bitstamp": Preset(
        "trades of Bitstamp (stocks)",
        _bitstamp,
        {"url": "wss://ws.bitstamp.net", "pairs": "btcusd,ethusd"},
    ),
    "gemini": Preset(
        "trades of Gemini (stocks)",
        _gemini,
        {"url": "wss://api.gemini.com/v2/marketdata", "symbols": "BTCUSD,ETHUSD"},
    ),
    "deribit": Preset(
        "trades of Deribit (stocks)",
        _deribit,
        {
            "url": "wss://www.deribit.com/ws/api/v2",
            "instruments": "BTC-PERPETUAL,ETH-PERPETUAL",
            "interval": "100ms",
        },
    ),
    "mqtt": Preset(
        "an MQTT broker's sensors (iot)", _mqtt, {"broker": "localhost:1883", "topics": "#", **_LOGIN}
    ),
    "nginx": Preset(
        "nginx's access logs, rotated ones included (logs)", _nginx, {"files": "/var/log/nginx/access.log*"}
    ),
    "sshd": Preset(
        "what sshd writes to the system's log (logs)",
        _sshd,
        {"files": "/var/log/auth.log*,/var/log/secure*"},
    ),
    "journald": Preset(
        "systemd's journal as JSON (logs)",
        _journald,
        {"command": "journalctl --output=export --quiet", "start": "--boot"},
    ),
    "ztf": Preset(
        "a mirror of ZTF's alerts, from a broker that gives you them (supernova)",
        _mirror,
        {"brokers": "", "topics": "", "start": "earliest", **_LOGIN},
    ),
    "rubin": Preset(
        "a mirror of Rubin's alerts, from a broker that gives you them (supernova)",
        _mirror,
        {"brokers": "", "topics": "", "start": "earliest", **_LOGIN},
    ),
}
"""The presets by name. Presets of the same feed share positions with no other topic."""


def preset_sources(name: str, given: Mapping[str, str], topic: str) -> dict[str, dict[str, Any]]:
    """Return the sources of a preset for a topic, as in a configuration.

    Raises `IngestError` for an unknown preset or setting.

    >>> preset_sources("nginx", {}, "access")
    {'nginx-access': {'type': 'tail', 'files': ['/var/log/nginx/access.log*']}}
    >>> preset_sources("nginx", {"file": "a"}, "access")
    Traceback (most recent call last):
    streamgauge.agents.ingest.batch.IngestError: the preset nginx has no setting 'file'; it has files
    """
    if name not in PRESETS:
        raise IngestError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    preset = PRESETS[name]
    for key in given:
        if key not in preset.settings:
            known = ", ".join(preset.settings)
            raise IngestError(f"the preset {name} has no setting {key!r}; it has {known}")
    settings = {**preset.settings, **given}
    if missing := [key for key, value in settings.items() if not value]:
        raise IngestError(f"the preset {name} needs --set {missing[0]}=…")
    return {f"{name}-{topic}": preset.source(settings)}
