"""Logs in JSON, one object per line: ECS, logstash, nginx, pino, zap, Caddy, GELF, journald, custom ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import loads
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import (
    as_time,
    failed_level,
    failed_status,
    in_columns,
    login_columns,
    template,
)
from .lines import NOWHERE, first_lines, lines_of, mostly, timed
from .logins import LOGIN_COLUMNS, WithLogins
from .members import begun, first_of, member, moment, whole
from .web_requests import missing_paths, refused_requests

USUAL: Mapping[str, str] = {
    "time": "@timestamp,timestamp,time,ts,time_iso8601,time_local,datetime,date,t.$date,__REALTIME_TIMESTAMP",
    "host": "service.name,service,host.name,host,hostname,_HOSTNAME,server,app,RequestHost,logger",
    "address": "client.ip,source.ip,client_ip,clientip,remote_addr,remote_ip,request.client_ip,"
    "request.remote_ip,ClientHost,remote_host,ip,address",
    "user": "user.name,user,username,user_id,userid,remote_user,ClientUsername",
    "operation": "url.path,path,request_path,uri,request_uri,request.uri,RequestPath,req.url,url,operation,"
    "action",
    "method": "http.request.method,method,request_method,request.method,RequestMethod,req.method",
    "status": "http.response.status_code,status,status_code,response,res.statusCode,DownstreamStatus,code",
    "level": "log.level,level,severity,severity_text,error_severity,PRIORITY,s",
    "message": "message,msg,short_message,MESSAGE,log,event,error",
    "bytes": "http.response.bytes,bytes,body_bytes_sent,bytes_sent,DownstreamContentSize,size,length",
    "seconds": "request_time,duration,elapsed,latency,seconds",
    "milliseconds": "duration_ms,elapsed_ms,latency_ms,responseTime,response_time_ms,took",
    "nanoseconds": "event.duration,Duration",
    "program": "SYSLOG_IDENTIFIER,syslog.identifier,process.name,program,_COMM",
    "process": "SYSLOG_PID,process.pid,_PID,pid",
    "agent": "user_agent.original,user_agent,http_user_agent,agent,userAgent,req.headers.user-agent,"
    "request_User-Agent,request.headers.User-Agent",
}
"""The members to try, in this order; a path with dots leads into objects or is a single name."""


def _paths(settings: Settings) -> dict[str, list[str]]:
    return {name: [path.strip() for path in settings[name].split(",") if path.strip()] for name in USUAL}


def _begun(feed: Feed, settings: Settings) -> Stream:
    paths = _paths(settings)
    if not paths["time"]:
        raise ValueError("--set time=: name the member, or several with commas between, that hold the time")
    every = [path for some in paths.values() for path in some]
    said = {name: first_of(paths[name]) for name in ("program", "process", "host", "message")}
    # A message without a program isn't from a daemon with known texts, except for PostgreSQL.
    postgres = pl.when(member("error_severity").is_not_null() & member("backend_type").is_not_null())
    said["program"] = pl.coalesce(said["program"], postgres.then(pl.lit("postgres")), pl.lit("-"))
    said["message"] = _text_of_bytes(said["message"])
    every += ["error_severity", "backend_type"]
    return begun(feed, every, moment(first_of(paths["time"])), lambda json: WithLogins(json, **said))


def _text_of_bytes(message: pl.Expr) -> pl.Expr:
    """Return a message, even if journald writes it as a list of bytes because it isn't valid text."""
    listed = message.str.contains(r"^\[\d+(?:, ?\d+)*\]$").fill_null(False)
    values = pl.when(listed).then(message).str.strip_chars("[]").str.replace_all(" ", "", literal=True)
    decoded = values.str.split(",").list.eval(
        pl.element().cast(pl.Int64, strict=False).map_elements(chr, return_dtype=pl.String)
    )
    return pl.when(listed).then(decoded.list.join("")).otherwise(message)


def _rows(feed: Feed, settings: Settings) -> Stream:
    begun_, columns = _begun(feed, settings), {n: first_of(paths) for n, paths in _paths(settings).items()}
    assert begun_.time is not None
    columns["message"] = _text_of_bytes(columns["message"])
    columns["operation"] = columns["operation"].str.replace(r"^(/[^?]*)\?.*", "$1")
    columns["time"] = as_time(begun_.time, begun_.columns)
    rows = begun_.select(*LOGIN_COLUMNS, "connection", **columns)
    code, level, message = pl.col("status"), pl.col("level"), pl.col("message")
    length = [
        pl.col(name).cast(pl.Float64, strict=False) / parts
        for name, parts in (("seconds", 1), ("milliseconds", 1e3), ("nanoseconds", 1e9))
    ]
    # A request's kind is its method and status, whatever its path.
    like = pl.coalesce(template(message), pl.when(pl.col("method").is_null()).then("operation"))
    logins = login_columns(pl.lit(None, pl.String))
    for name in ("address", "user"):
        logins[name] = pl.coalesce(logins[name], name)
    turned_away = refused_requests(pl.col("method"), pl.col("operation"), code)
    refused = pl.when(turned_away).then(1).otherwise(logins.pop("refused"))
    return in_columns(
        rows,
        settings,
        refused=refused,
        missing=missing_paths(code),
        host=pl.col("host"),
        at=pl.col("time"),
        **logins,
        operation=pl.col("operation"),
        status=pl.coalesce(code, level),
        failed=failed_status(code, settings).fill_null(False) | failed_level(level).fill_null(False),
        bytes=whole(pl.col("bytes")),
        seconds=pl.coalesce(*length),
        # Caddy has a list for each header.
        agent=pl.col("agent").str.replace(r'^\["(.*)"\]$', "$1"),
        message=message,
        term=pl.concat_str(level, pl.col("method"), like, code, ignore_nulls=True, separator=" "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE, settings), lines_of(path))


def is_object(line: bytes) -> bool:
    """Whether a line is a JSON object."""
    try:
        return isinstance(loads(line), dict)
    except (ValueError, RecursionError):
        return False


JSON_LINES = AppFormat(
    "json",
    "JSON, an object a line and a message, by the names that are usual or by yours",
    _rows,
    lambda path, head: mostly(first_lines(head), is_object),
    _messages,
    USUAL,
)
