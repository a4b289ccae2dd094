"""Write `docs/protocol-file.schema.json`: `python tests/support/make_file_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from kiebitz.dissectors.protocol_file.reading.document import json_schema

PATH = Path(__file__).parents[2] / "docs" / "protocol-file.schema.json"


def schema_text() -> str:
    """Return the JSON Schema of protocol files as a text."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text())
