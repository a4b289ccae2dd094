"""Parts in Python that the TOML file of a package names."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.model import Findings, Ids, TableInfo

MakeTable = Callable[[TableInfo, Ids, Findings], GameTable]


def is_part_of(reference: str, package: str) -> bool:
    """Return True if a reference is `PACKAGE.MODULE:NAME`, so that it does not lead out of the package."""
    module, _, name = reference.partition(":")
    parts = (*module.split("."), name)
    return parts[0] == package.rpartition(".")[2] and len(parts) > 2 and all(map(str.isidentifier, parts))


def python_part(reference: str, package: str) -> Any:
    """Return an object of a package, such as `okey.table:OkeyTable` of a package `okey`."""
    assert is_part_of(reference, package), f"{reference} is no part of {package}"
    return resolve_name(f"{package.rpartition('.')[0]}.{reference}".removeprefix("."))
