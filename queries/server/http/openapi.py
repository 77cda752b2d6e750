"""The questions as an OpenAPI document, and a page that shows it without network access."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from ....sketches.core.extras import EXTRAS
from ....sketches.core.version import VERSION
from ...question.question import KINDS, PARAMETERS, Parameter
from ...response_format import ARROW, JSON

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>streamgauge</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<link rel="icon" href="/docs/assets/favicon-32x32.png">
</head>
<body>
<div id="page"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_BUNDLE = "swagger_ui_bundle"
_WITHOUT_BUNDLE = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>streamgauge</title></head>
<body>
<p>The questions that this server answers are in <a href="/openapi.json">/openapi.json</a>.
To see them here, install streamgauge with its extra <code>{EXTRAS[_BUNDLE]}</code>
and restart the server.</p>
</body>
</html>
"""
_START = """SwaggerUIBundle({ url: "/openapi.json", dom_id: "#page", deepLinking: true, validatorUrl: null })
"""
_ONLY_OURS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
}


def page() -> Response:
    """The page that shows the document; without Swagger UI it only links to the document."""
    shown = _PAGE if find_spec(_BUNDLE) is not None else _WITHOUT_BUNDLE
    return HTMLResponse(shown, headers=_ONLY_OURS)


def starter() -> Response:
    """The page's own script."""
    return Response(_START, media_type="text/javascript", headers=_ONLY_OURS)


def assets(path: str) -> list[Mount]:
    """Swagger UI's files, from their package; empty if it isn't installed."""
    if find_spec(_BUNDLE) is None:
        return []
    from swagger_ui_bundle import swagger_ui_path

    return [Mount(path, StaticFiles(directory=str(swagger_ui_path)))]


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document.

    >>> sorted(document()["paths"])[:3]
    ['/health', '/ready', '/sql']
    """
    paths: dict[str, Any] = {
        "/health": {"get": _plain("Whether the server is alive.")},
        "/ready": {"get": _plain("Whether every table can answer.")},
        "/tables": {"get": _plain("The tables: their contents and progress.")},
        "/tables/{table}": {"get": _plain("One table: its contents and progress.", [_TABLE])},
        "/tables/{table}/live": {"get": _live()},
    }
    paths["/sql"] = {
        "post": {
            **_question_operation("A query in SQL, one SELECT over a table by its name.", "SqlAnswer"),
            "requestBody": {"required": True, "content": {JSON: {"schema": _SQL}}},
        }
    }
    for kind, summary in KINDS.items():
        parameters = _parameters(kind)
        paths[f"/tables/{{table}}/{kind}"] = {
            "get": {
                **_question_operation(summary),
                "parameters": [_TABLE, *map(_in_query, parameters, parameters.values()), _KEYS],
            },
            "post": {
                **_question_operation(summary),
                "parameters": [_TABLE],
                "requestBody": _body(parameters),
            },
        }
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "streamgauge",
            "version": VERSION,
            "description": "Tables of sketches, queried over any span and any sub-group of keys. Each number "
            "has bounds, and each answer describes its basis.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Answer": _ANSWER, "SqlAnswer": _SQL_ANSWER, "Problem": _PROBLEM},
        },
        "security": [{"token": []}],
    }


def _parameters(kind: str) -> dict[str, Parameter]:
    return {name: one for name, one in PARAMETERS.items() if not one.of or kind in one.of}


def _schema(one: Parameter) -> dict[str, Any]:
    types = {"number": "number", "yes or no": "boolean"}
    single = {"type": types.get(one.type, "string")}
    return {"type": "array", "items": single} if one.many else single


def _in_query(name: str, one: Parameter) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": one.help, "schema": _schema(one)}


def _body(parameters: dict[str, Parameter]) -> dict[str, Any]:
    properties = {name: {**_schema(one), "description": one.help} for name, one in parameters.items()}
    properties["key"] = {
        "type": "object",
        "description": 'The requested values of keys, such as {"lang": ["en", null]}.',
        "additionalProperties": {"type": "array", "items": {}},
    }
    return {"content": {JSON: {"schema": {"type": "object", "properties": properties}}}}


def _question_operation(summary: str, answer: str = "Answer") -> dict[str, Any]:
    answers = {
        JSON: {"schema": {"$ref": f"#/components/schemas/{answer}"}},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }
    return {
        "summary": summary,
        "responses": {"200": {"description": "The answer.", "content": answers}, **_FAILED},
    }


def _live() -> dict[str, Any]:
    every = {
        "name": "interval",
        "in": "query",
        "description": "At most one event in this time, such as 500ms; 1s by default.",
        "schema": {"type": "string"},
    }
    kind = {
        "name": "question",
        "in": "query",
        "description": "The kind of question; its parameters are accepted as well.",
        "schema": {"type": "string", "enum": list(KINDS), "default": "rows"},
    }
    return {
        "summary": "Live answers as server-sent events: immediately, and after each change.",
        "parameters": [_TABLE, kind, every],
        "responses": {"200": {"description": "Events.", "content": {"text/event-stream": {}}}, **_FAILED},
    }


def _plain(summary: str, parameters: Any = ()) -> dict[str, Any]:
    response = {"description": "The answer.", "content": {JSON: {"schema": {"type": "object"}}}}
    return {"summary": summary, "parameters": list(parameters), "responses": {"200": response, **_FAILED}}


_TABLE = {"name": "table", "in": "path", "required": True, "schema": {"type": "string"}}
_KEYS = {
    "name": "key",
    "in": "query",
    "description": "Select the groups with these values of keys: key.lang=en, repeatable for each key.",
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    "style": "form",
    "explode": True,
}
_FAILED = {
    "default": {
        "description": "What is wrong, and what to do.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
_PROBLEM = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
    },
}
_TIME = {"type": "string", "format": "date-time", "nullable": True}
_ANSWER = {
    "type": "object",
    "properties": {
        "table": {"type": "string"},
        "question": {"type": "string"},
        "from": {**_TIME, "description": "The start of the first window that was merged."},
        "to": {**_TIME, "description": "The end of the last window that was merged."},
        "windows": {"type": "integer", "description": "How many windows were merged."},
        "open": {"type": "boolean", "description": "Whether some of them are still open."},
        "final": {"type": "boolean", "description": "Whether the answer can no longer change."},
        "watermark": {**_TIME, "description": "Windows that end by then are final."},
        "stale": {
            "type": "object",
            "nullable": True,
            "description": "Since when and why the table isn't followed, if it isn't.",
        },
        "lag": {"type": "integer", "nullable": True, "description": "Unread messages of the log."},
        "missing": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Requested spans for which the server has no windows, and why.",
        },
        "rows": {"type": "array", "items": {"type": "object"}},
    },
}
_SQL = {
    "type": "object",
    "required": ["sql"],
    "properties": {"sql": {"type": "string", "description": "Such as SELECT lang, COUNT(*) FROM posts."}},
}
_SQL_ANSWER = {
    "type": "object",
    "properties": {
        **{name: one for name, one in _ANSWER["properties"].items() if name != "rows"},  # type: ignore[attr-defined]
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
        "bounds": {
            "type": "object",
            "nullable": True,
            "description": "By column, the lower and the upper bound of each row.",
        },
    },
}
