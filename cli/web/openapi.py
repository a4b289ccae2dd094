"""The server's own operations, and the OpenAPI document of all, generated from them and their types."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.admission import LIVE_HOME_PATH, LIVE_PATH
from kiebitz.cli.web.held_api import HEADER, Deed, MarkDeed
from kiebitz.cli.web.opened_files import OCTETS
from kiebitz.cli.web.request_params import CHOICES, Parameter
from kiebitz.cli.web.routes import AS, ENDPOINTS, Operation
from kiebitz.dissectors.model import PUBLIC

_SCHEMAS: dict[str, dict[str, Any]] = {
    "number": {"type": "integer", "minimum": 0},
    "text": {"type": "string"},
    "names": {"type": "array", "items": {"type": "string"}},
    **{kind: {"enum": list(choices)} for kind, choices in CHOICES.items()},
}

API_VERSION = "0.1.0"
"""Version of the API in its document; it changes with routes and records, not with each build."""

_JSON = "application/json"

EVENT_STREAM = "text/event-stream"
SESSIONS = Operation("/api/sessions", "the sessions that are served", records.Sessions, of_session=False)
_PUBLIC = Parameter("as", "text", f"{PUBLIC}: what all may know, without errors")
HOME = Operation(
    "/api/home",
    "all sessions with their tables, results, problems and alerts",
    records.Home,
    (_PUBLIC,),
    of_session=False,
)
HOME_LIVE = Operation(
    LIVE_HOME_PATH,
    "server-sent events: home (Home), then sessions (HomeNews), and a ping as keep-alive",
    EVENT_STREAM,
    (_PUBLIC,),
    of_session=False,
)
LIVE = Operation(
    LIVE_PATH,
    "server-sent events: new events (schema Push; the id is accepted as Last-Event-ID), growth (Growth),"
    " status (Status), held (Waiting), dissection (Dissection), and a ping as keep-alive",
    EVENT_STREAM,
    (
        Parameter("after", "number", "also send events after this one of each table"),
        Parameter("table", "number", "only updates of this table"),
        AS,
    ),
)
HELD = Operation(
    "/api/held",
    "the held messages of the relay that records the session; none for a player's key",
    records.Held,
)
ACT = Operation(
    "/api/held",
    f"act on a held message; requires the header {HEADER}: 1, and no player's key",
    records.Done,
    deed="act on held messages",
    body=Deed,
)
MARK = Operation(
    "/api/marks",
    f"mark a message or an event; requires the header {HEADER}: 1, and no player's key",
    records.Marks,
    deed="mark anything",
    body=MarkDeed,
)
OPEN = Operation(
    "/api/files",
    f"open a file as a session; requires the header {HEADER}: 1 and the full link",
    records.Opened,
    (Parameter("name", "text", "the file's name", is_needed=True),),
    of_session=False,
    deed="open files",
    body=OCTETS,
)
DOCUMENT = Operation("/api/openapi.json", "this document", _JSON)
"""It needs no parameters, and ignores any."""


def openapi() -> dict[str, Any]:
    """Return the document as plain values."""
    paths: dict[str, Any] = {}
    types: list[Any] = [
        records.Refusal,
        records.Push,
        records.Growth,
        records.Status,
        records.Waiting,
        records.Dissection,
        records.HomeNews,
    ]

    def content(kind: type | str) -> dict[str, Any]:
        """Return the description of a record, which is added to the schemas, or of a media type."""
        if isinstance(kind, type):
            types.append(kind)
            return {_JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
        schema = {"type": "object" if kind == _JSON else "string"}
        return {kind: {} if kind == OCTETS else {"schema": schema}}

    for one in (SESSIONS, HOME, HOME_LIVE, *ENDPOINTS, LIVE, HELD, ACT, MARK, OPEN, DOCUMENT):
        parameters = [
            {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "integer"}}
            for part in one.path.split("/")
            if part.startswith("{")
        ]
        parameters += map(_parameter, one.known.values() if one is not DOCUMENT else ())
        described: dict[str, Any] = {"summary": one.about, "parameters": parameters}
        if one.body:
            parameters.append(_HEADER)
            described["requestBody"] = {"required": True, "content": content(one.body)}
        described["responses"] = {
            "200": {"description": "success", "content": content(one.answer)},
            "default": {"description": "an error message", "content": content(records.Refusal)},
        }
        paths.setdefault(one.path, {})["post" if one.body else "get"] = described
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for schema in components.values():
        # Python 3.13 and later remove the indentation of docstrings themselves.
        schema["description"] = inspect.cleandoc(schema.get("description", ""))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kiebitz",
            "version": API_VERSION,
            "description": "The API of kiebitz serve. All requests but POST are read-only.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


_HEADER = {
    "name": HEADER,
    "in": "header",
    "description": "shows that the request is not cross-site",
    "required": True,
    "schema": {"type": "string"},
}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.about,
        "required": parameter.is_needed,
        "schema": _SCHEMAS[parameter.kind],
    }
    if parameter.kind == "names":
        described |= {"style": "form", "explode": False}
    return described
