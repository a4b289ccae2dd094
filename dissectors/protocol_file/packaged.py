"""The files of packages, whose types and tables are in Python, and what they contribute to a dissector.

A file is read once, by the reader of protocol files; Python caches the result as it caches modules.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, NamedTuple, TypedDict

import msgspec

from kiebitz.dissectors.game.table import MakeTable, python_part
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.framing import Framer
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.protocol_file.codecs import codec_of, framer_of
from kiebitz.dissectors.protocol_file.message_grammar import grammar_with
from kiebitz.dissectors.protocol_file.sections import ProbeSpec
from kiebitz.dissectors.protocol_file.specification import Specification


class PackagedFile(NamedTuple):
    """The content of a package's file.

    Attributes:
        package: Name of the package.
        types: Its types in Python by name.
        path: Path of the file.
        specification: Its content without statistics and what `probe` needs.
        packed: The whole specification, pickled; None if Python may not cache it.
    """

    package: str
    types: Mapping[str, FieldType]
    path: str
    specification: Specification
    packed: bytes | None

    @property
    def whole(self) -> Specification:
        """The whole specification, of which most commands need only a part."""
        if self.packed is None:
            return _read(self.path, self.package, self.types)
        found: Specification = pickle.loads(self.packed)  # of the package, as its modules are
        return found


known_files: dict[str, PackagedFile] = {}
"""The files that have been read, by their package."""


def packaged_file(package: str, types: Mapping[str, FieldType] = MappingProxyType({})) -> PackagedFile:
    """Return the content of the TOML file of a package, `okey.toml` in `okey`.

    Args:
        package: Name of the package.
        types: Its types in Python by name, which are needed the first time.

    Raises:
        ProtocolFileError: The file is invalid.
    """
    if package not in known_files:
        folder = os.path.dirname(sys.modules[package].__file__ or "")
        module = ModuleType(package.rpartition(".")[2])
        path = os.path.join(folder, f"{module.__name__}.toml")
        _Loader(package, path, types).exec_module(module)
        of = msgspec.structs.replace(module.used.format, python=types)
        specification = msgspec.structs.replace(module.used, format=of)
        known_files[package] = PackagedFile(package, types, path, specification, module.whole)
    return known_files[package]


class _Loader(SourceFileLoader):
    """Loader of a TOML file as a module, which Python caches in compiled form.

    Reading the files of all protocols at each start would take longer than importing the protocols.
    """

    def __init__(self, package: str, path: str, types: Collection[str]) -> None:
        super().__init__(package.rpartition(".")[2], path)
        self._package, self._types = package, types

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Return the size of the file, and a time that differs if it or a module that reads it changes."""
        found = os.stat(path)
        return {"mtime": int(found.st_mtime) + found.st_size + _readers_stamp(), "size": found.st_size}

    def source_to_code(  # type: ignore[override]  # typeshed has it as static in one base class only
        self, data: Any, path: Any = ""
    ) -> CodeType:
        is_cached = not sys.dont_write_bytecode and os.access(os.path.dirname(path), os.W_OK)
        found = _read(path, self._package, self._types)
        used = msgspec.structs.replace(
            found, text="", statistics=(), queries=(), probe=ProbeSpec(), expectations=()
        )
        packed, whole = pickle.dumps(used), pickle.dumps(found) if is_cached else None
        code = f"import pickle\nused, whole = pickle.loads({packed!r}), {whole!r}"
        return compile(code, path, "exec")


def _read(path: str, package: str, types: Collection[str]) -> Specification:
    # Imported only where there is no cached file.
    from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read

    with open(path, encoding="utf-8") as file:
        text = file.read()
    parts = PythonParts(package, types)
    return read(text, os.path.basename(path), lambda protocol: parts).specification


@cache
def _readers_stamp() -> int:
    """Return a number that differs if a module that reads packages' files changes."""
    here = os.path.dirname(__file__)
    with os.scandir(os.path.join(here, "reading")) as found:
        reading = [entry.path for entry in found if entry.name.endswith(".py")]
    stats = [
        os.stat(each)
        for each in (
            __file__,
            os.path.join(here, "sections.py"),
            os.path.join(here, "specification.py"),
            *reading,
        )
    ]
    return sum(int(each.st_mtime) + each.st_size for each in stats)


Kinds = Mapping[IdentifierKind | KeysOf, str]
"""Kinds of identifiers, and the keys that contain them, separated by blanks."""


def packaged_grammar(
    package: str,
    types: Mapping[str, FieldType] = MappingProxyType({}),
    *,
    data: Kinds = MappingProxyType({}),
    state: Kinds = MappingProxyType({}),
    **more: Any,
) -> Grammar:
    """Return the grammar in the TOML file of a package.

    Args:
        package: Name of the package.
        types: Types of fields in Python, by their names in the file.
        data: The identifiers in the data of events.
        state: The identifiers in the state.
        more: Further arguments of `grammar_with`.

    Raises:
        ProtocolFileError: The file is invalid.
    """
    file = packaged_file(package, types)
    return grammar_with(
        file.specification,
        events=file.specification.event_kinds,
        rules=file.specification.table_rules,
        table_file=file.path,
        data_identifiers=_by_key(data),
        state_identifiers=_by_key(state),
        **more,
    )


def _by_key(kinds: Kinds) -> IdentifierKinds:
    return {key: kind for kind, keys in kinds.items() for key in keys.split()}


def packaged_codec(package: str, grammar: Grammar) -> Any:
    """Return the codec that the TOML file of a package describes, of the class that it names."""
    return codec_of(packaged_file(package).specification, grammar, package)


class Assembly(TypedDict):
    """The arguments of `Dissector` that the file of a built-in protocol has."""

    transport: Transport
    default_ports: Sequence[int]
    grammar: Grammar
    codec: Any
    framer: Callable[[Direction], Framer]
    table: MakeTable
    package: str


def assembly_of(package: str, grammar: Grammar, codec: Codec) -> Assembly:
    """Return what the file of a built-in protocol's package says of its dissector."""
    specification = packaged_file(package).specification
    assert specification.table is not None, "a built-in protocol has its table in Python"
    return Assembly(
        transport=specification.transport,
        default_ports=specification.ports,
        grammar=grammar,
        codec=codec,
        framer=framer_of(specification.framing, specification.transport, specification, codec),
        table=python_part(specification.table, package),
        package=package,
    )
