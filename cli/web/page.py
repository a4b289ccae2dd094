"""The files of the page, and its script as one file.

The modules need no build step: browsers load them one by one. A page opened from a disk cannot load modules.
There they are joined into one script, each after its imports; so no two may define the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Media types by file extension."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<module>\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|const|let|class)", re.MULTILINE)


@cache
def page_files() -> dict[str, bytes]:
    """Return the files by name."""
    folder = files("kiebitz.cli.web").joinpath("static")
    if not folder.is_dir():
        return {}
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(MEDIA))}


def altered_page(changes: Iterable[tuple[str, str]]) -> str:
    """Return the page with texts replaced, each of which it has once."""
    page = page_files()["index.html"].decode()
    for before, after in changes:
        assert page.count(before) == 1, before
        page = page.replace(before, after)
    return page


def joined_script() -> str:
    """Return the page's modules as one script."""
    order: list[str] = []
    _visit("app.js", order, set())
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", _source(module))) for module in order)


def _visit(module: str, order: list[str], seen: set[str]) -> None:
    if module in seen:
        return
    seen.add(module)
    for found in _IMPORT.finditer(_source(module)):
        _visit(found["module"], order, seen)
    order.append(module)


def _source(module: str) -> str:
    return page_files()[module].decode()
