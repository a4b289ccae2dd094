"""Assembly of a dissector from the TOML file of its package, which names its parts in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any, TypedDict

from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.table_file import table_document
from kiebitz.dissectors.model import Findings, Ids, TableInfo, Transport

MakeTable = Callable[[TableInfo, Ids, Findings], GameTable]


class Assembly(TypedDict):
    """The arguments of `Dissector` that the file of a built-in protocol has."""

    transport: Transport
    default_ports: Sequence[int]
    table: MakeTable
    package: str


def assembly_of(package: str) -> Assembly:
    """Return what the file of a built-in protocol's package says of its dissector."""
    document, _ = table_document(package)
    ports = document.get("port", ())
    return Assembly(
        transport=document.get("transport", "tcp"),
        default_ports=[ports] if isinstance(ports, int) else ports,
        table=python_part(document["python"]["table"], package),
        package=package,
    )


def is_part_of(reference: str, package: str) -> bool:
    """Return True if a reference is `PACKAGE.MODULE:NAME`, so that it does not lead out of the package."""
    module, _, name = reference.partition(":")
    parts = (*module.split("."), name)
    return parts[0] == package.rpartition(".")[2] and len(parts) > 2 and all(map(str.isidentifier, parts))


def python_part(reference: str, package: str) -> Any:
    """Return an object of a package, such as `okey.table:OkeyTable` of a package `okey`."""
    assert is_part_of(reference, package), f"{reference} is no part of {package}"
    return resolve_name(f"{package.rpartition('.')[0]}.{reference}".removeprefix("."))
