"""The OpenAPI document of the API, generated from the endpoints and the types of their responses."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.held_api import HEADER, Deed, MarkDeed
from kiebitz.cli.web.opened_files import OCTETS
from kiebitz.cli.web.request_params import CHOICES, Parameter
from kiebitz.cli.web.routes import ENDPOINTS, FILES, HELD, HOME, LIVE, SESSIONS

_SCHEMAS: dict[str, dict[str, Any]] = {
    "number": {"type": "integer", "minimum": 0},
    "text": {"type": "string"},
    "names": {"type": "array", "items": {"type": "string"}},
    **{kind: {"enum": list(choices)} for kind, choices in CHOICES.items()},
}

API_VERSION = "0.1.0"
"""Version of the API in its document; it changes with routes and records, not with each build."""


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

    def enter(path: str, about: str, answer: Any, parameters: tuple[Parameter, ...]) -> None:
        if isinstance(answer, str):
            kind = "object" if answer == "application/json" else "string"
            content: dict[str, Any] = {answer: {"schema": {"type": kind}}}
        else:
            types.append(answer)
            content = {"application/json": {"schema": _reference(answer)}}
        paths[path] = {
            "get": {
                "summary": about,
                "parameters": [*_in_path(path), *map(_parameter, parameters)],
                "responses": _responses(content),
            }
        }

    enter("/api/sessions", "the sessions that are served", records.Sessions, SESSIONS)
    enter("/api/home", "all sessions with their tables, results, problems and alerts", records.Home, HOME)
    enter(
        "/api/home/live",
        "server-sent events: home (Home), then sessions (HomeNews), and a ping as keep-alive",
        "text/event-stream",
        HOME,
    )
    for address in ENDPOINTS:
        enter(address.path, address.about, address.answer, tuple(address.known.values()))
    enter("/api/live", _LIVE, "text/event-stream", LIVE)
    enter(
        "/api/held",
        "the held messages of the relay that records the session; none for a player's key",
        records.Held,
        HELD,
    )
    for path, about, body, done in (
        ("/api/held", "act on a held message", Deed, records.Done),
        ("/api/marks", "mark a message or an event", MarkDeed, records.Marks),
    ):
        types += [body, done]
        paths[path]["post"] = {
            "summary": f"{about}; requires the header {HEADER}: 1, and no player's key",
            "parameters": [*map(_parameter, HELD), _HEADER],
            "requestBody": {"required": True, "content": {"application/json": {"schema": _reference(body)}}},
            "responses": _responses({"application/json": {"schema": _reference(done)}}),
        }
    paths["/api/files"] = {
        "post": {
            "summary": f"open a file as a session; requires the header {HEADER}: 1 and the full link",
            "parameters": [*map(_parameter, FILES), _HEADER],
            "requestBody": {"required": True, "content": {OCTETS: {}}},
            "responses": _responses({"application/json": {"schema": _reference(records.Opened)}}),
        }
    }
    types.append(records.Opened)
    enter("/api/openapi.json", "this document", "application/json", ())
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


_LIVE = (
    "server-sent events: new events (schema Push; the id is accepted as Last-Event-ID), growth (Growth),"
    " status (Status), held (Waiting), dissection (Dissection), and a ping as keep-alive"
)

_HEADER = {
    "name": HEADER,
    "in": "header",
    "description": "shows that the request is not cross-site",
    "required": True,
    "schema": {"type": "string"},
}


def _responses(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "200": {"description": "success", "content": content},
        "default": {
            "description": "an error message",
            "content": {"application/json": {"schema": _reference(records.Refusal)}},
        },
    }


def _reference(answer: Any) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{answer.__name__}"}


def _in_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "integer"}} for name in names]


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
