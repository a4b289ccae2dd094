"""Names that other packages do not document and Kiebitz uses: any later version may lack them.

`undocumented_names.toml` is the only list of them. `tests/proxy/test_dependencies.py` fails with a sentence
when a name is gone, or used and not listed. mitmproxy's names are also checked whenever one of its modes
starts.
"""

from __future__ import annotations

import dis
import inspect
import tomllib
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from kiebitz.dissectors.errors import KiebitzError


class Undocumented(NamedTuple):
    """Undocumented names of a package, and the versions of it that were tested."""

    tested: tuple[str, ...]
    names: tuple[str, ...]


@cache
def undocumented() -> dict[str, Undocumented]:
    """Return the undocumented names in use, by package."""
    text = Path(__file__).with_name("undocumented_names.toml").read_text(encoding="utf-8")
    return {
        package: Undocumented(tuple(of["tested"]), tuple(of["names"]))
        for package, of in tomllib.loads(text).items()
    }


class IncompatibleVersion(KiebitzError):
    """The installed version of a package lacks names that Kiebitz uses."""


def check_names(package: str) -> None:
    """Raise IncompatibleVersion if the installed version of `package` lacks an undocumented name.

    This imports the modules of these names.
    """
    tested, names = undocumented()[package]
    missing = [name for name in names if not _exists(name)]
    if missing:
        raise IncompatibleVersion(
            f"{package} {version(package)} has no {', '.join(missing)}, which Kiebitz uses; tested were "
            f"{package} {' and '.join(tested)}"
        )


def _exists(name: str) -> bool:
    module, _, path = name.partition(":")
    path, _, parameters = path.removesuffix(")").partition("(")
    try:
        found: object = import_module(module)
    except ImportError:
        return False
    for step in path.split("."):
        if not hasattr(found, step):
            return isinstance(found, type) and _is_set_on_instances(found, step)
        found = getattr(found, step)
    if not parameters:
        return True
    return callable(found) and {*parameters.split(", ")} <= {*inspect.signature(found).parameters}


def _is_set_on_instances(cls: type, name: str) -> bool:
    """Return True if a method of the class or of its bases sets the attribute."""
    return any(
        instruction.opname == "STORE_ATTR" and instruction.argval == name
        for base in cls.__mro__
        for method in vars(base).values()
        if inspect.isfunction(method)
        for instruction in dis.get_instructions(method)
    )
