"""Write `docs/protocol-file.schema.json`: `python tests/support/make_file_schema.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from kiebitz.dissectors.grammar import lenient
from kiebitz.dissectors.protocol_file import sections
from kiebitz.dissectors.protocol_file.reading import document
from kiebitz.dissectors.protocol_file.reading.document import Document, PythonEventTable, PythonRuleTable

PATH = Path(__file__).parents[2] / "docs" / "protocol-file.schema.json"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of protocol files, whose descriptions are those of the tables' attributes."""
    (schema, event, rule), parts = msgspec.json.schema_components(
        (Document, PythonEventTable, PythonRuleTable), ref_template="#/$defs/{name}"
    )
    for section, other in (("events", event), ("rules", rule)):
        rows = parts["Document"]["properties"][section]
        rows["additionalProperties"] = {"anyOf": [rows["additionalProperties"], other]}
    for name, part in parts.items():
        part["properties"].pop("key", None)
        _describe(part, {**vars(lenient), **vars(sections), **vars(document)}[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Kiebitz protocol file",
        **_written({**schema, "$defs": parts}),
    }


def _describe(part: dict[str, Any], table: type[msgspec.Struct]) -> None:
    """Add the descriptions of a table and of its keys to their schema."""
    part["description"] = _text((table.__doc__ or "").partition("\n    Attributes:")[0])
    for base in table.__mro__:
        described = re.split(r"\n {8}(?=\w+: )", (base.__doc__ or "").partition("\n    Attributes:")[2])
        attributes = dict(each.split(": ", 1) for each in described if ": " in each)
        for info in msgspec.structs.fields(table):
            if info.name in attributes:
                schema = part["properties"][info.encode_name]
                part["properties"][info.encode_name] = {"description": _text(attributes[info.name]), **schema}


def _text(lines: str) -> str:
    return " ".join(lines.split())


def _written(value: Any) -> Any:
    """Return a schema without null, which TOML lacks, and with single values in place of their lists."""
    if isinstance(value, list):
        return [_written(item) for item in value if item not in (None, {"type": "null"})]
    if not isinstance(value, dict):
        return value
    found = {key: _written(item) for key, item in value.items() if (key, item) != ("default", None)}
    if len(found.get("anyOf", ())) == 1:
        found |= found.pop("anyOf")[0]
    if found.pop("single", False):
        several = {key: found.pop(key) for key in ("type", "items")}
        found["anyOf"] = [several["items"], several]
    return found


def schema_text() -> str:
    """Return the JSON Schema of protocol files as a text."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text())
