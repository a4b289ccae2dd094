"""The page in a browser: its panes, and its place in a session."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from browser import Sight
from command import kiebitz

SLIP = r"status of 400"
"""The browser's own message about an answer that rejects a filter."""
PANES = ("events", "messages", "message", "diagnostics", "streams", "state", "sequence", "statistics")


def place(sight: Sight) -> dict[str, str]:
    """Return the parameters in the address."""
    return {name: values[0] for name, values in parse_qs(sight.address.removeprefix("#")).items()}


def exported(session: str, path: Path, *options: str) -> Path:
    """Return the session as a file."""
    done = kiebitz("export", session, "-T", "html", "-o", str(path), *options)
    assert done.status == 0, done.err
    return path


def data_of(path: Path) -> dict[str, Any]:
    (found,) = re.findall(r'id="kiebitz-data">([^<]*)<', path.read_text())
    held: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found)))
    for view in held["views"].values():
        for table in view["tables"].values():
            table["events"] = [held["events"][event] for event, *_ in table["steps"]]
    return held
