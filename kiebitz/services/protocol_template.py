"""The file that `kiebitz protocols --new` writes: a template, an example, or a protocol's file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Word
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.reading.notation import BUILT_IN, near
from kiebitz.dissectors.protocol_file.reading.reader import problem_of_name
from kiebitz.dissectors.registry import installed

_NAME = "my_game"
"""Name of the protocol if the file's is none."""

_FOLDERS = (Path(__file__).parent / "examples", Path(__file__).parents[2] / "docs" / "examples")
"""Folders of examples; the second one is there in a checkout only."""

_IN_PYTHON = ("python", "events", "rules", "statistics", "queries", "probe", "quotes", "expectations")
"""Sections of the file of a package that are about its parts in Python."""

_SECTION = re.compile(r"^\[+(\w+)[^\n]*\n", re.MULTILINE)


class UnknownExample(KiebitzError):
    """A name that is no protocol and no example."""


def template(path: str, like: str | None = None) -> str:
    """Return a protocol file that is named after its path, from a template or `like` another protocol.

    Raises UnknownExample.
    """
    stem = PurePath(path).stem
    name = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_0123456789")[:30]
    if problem_of_name(name) is not None:
        name = _NAME
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8") if like is None else _file_of(like)
    title = name.replace("_", " ").capitalize()
    for key, value in (("protocol", name), ("title", title)):
        text = re.sub(rf'(?m)^{key} = "[^"]*"', f'{key} = "{value}"', text, count=1)
    return text


def examples() -> Iterator[tuple[str, str]]:
    """Yield the names that `like` accepts, with titles."""
    for dissector in installed().dissectors.values():
        if text_of(dissector) is not None:
            yield dissector.protocol, dissector.grammar.title
    for name, path in example_files().items():
        yield name, tomllib.loads(path.read_text(encoding="utf-8")).get("title", name)


def text_of(dissector: Dissector) -> str | None:
    """Return the text of a protocol's file, None if it has none. Raises OSError."""
    if isinstance(dissector, FileDissector):
        return dissector.specification.text
    file = dissector.grammar.table_file
    return Path(file).read_text(encoding="utf-8") if file is not None else None


def example_files() -> dict[str, Path]:
    """Return the files of examples by name."""
    found = (path for folder in _FOLDERS for path in sorted(folder.glob("*.toml")))
    return {path.stem: path for path in found if "\n[messages]\n" in path.read_text(encoding="utf-8")}


def _file_of(like: str) -> str:
    dissector = installed().dissectors.get(like.lower())
    text = text_of(dissector) if dissector is not None else None
    if dissector is not None and text is not None:
        return _without_python(text, dissector)
    paths = example_files()
    if (path := paths.get(like.lower())) is not None:
        return path.read_text(encoding="utf-8")
    known = [name for name, _ in examples()]
    hint = near(like.lower(), known) or f"; there are: {', '.join(known)}"
    raise UnknownExample(f"no protocol and no example is called {like}{hint}")


def _notation(kind: FieldType) -> str:
    """Return the type of a protocol file that is closest to a type in Python."""
    if kind.identifier is not None and kind.identifier.of_player:
        return "player"
    if isinstance(kind, Number):
        return "integer"
    words = kind.words if isinstance(kind, Word) else ()
    return "|".join(f"'{word}'" for word in words) or "text"


def _without_python(text: str, dissector: Dissector) -> str:
    """Return a protocol's file without what only its package can have."""
    types = dissector.grammar.python_types
    if not dissector.package:
        return text
    starts = [*_SECTION.finditer(text)]
    ends = [*(found.start() for found in starts[1:]), len(text)]
    parts = {
        found[1]: text[found.start() : end]
        for found, end in zip(starts, ends, strict=True)
        if found[1] not in _IN_PYTHON
    }
    own = "".join(f'{name} = "{_notation(kind)}"\n' for name, kind in types.items() if name not in BUILT_IN)
    if own:
        _, _, others = parts.pop("types", "").partition("\n")
        parts = {"types": f"[types]\n# They are more precise in Python.\n{own}{others or chr(10)}", **parts}
    head = text[: starts[0].start()]
    about = f"# Begun with the file of {dissector.grammar.title}, whose events and rules are in Python.\n"
    return about + head + "".join(parts.values())
