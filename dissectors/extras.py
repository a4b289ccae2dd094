"""Optional dependencies: what each extra installs, and the command that adds a missing one."""

from __future__ import annotations

import json
import os
import shlex
import sys
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from kiebitz.dissectors.errors import KiebitzError

EXTRAS = {
    "corpus": ("dask", "distributed", "duckdb", "numpy", "pyarrow"),
    "mitmproxy": ("mitmproxy",),
    "parquet": ("pyarrow",),
    "taps": ("nats",),
    "test": ("hypothesis",),
}
"""Extra of pyproject.toml -> the modules that it brings."""

_DEPENDENCIES = {"nats": "nats-py"}
"""Module -> the name of its distribution, where they differ."""


class MissingExtra(KiebitzError):
    """A feature needs an extra; the excerpt is the command that installs it."""

    def __init__(self, feature: str, extra: str, missing: list[str]) -> None:
        names = ", ".join(_DEPENDENCIES.get(name, name) for name in missing)
        verb = "is" if len(missing) == 1 else "are"
        super().__init__(f"{feature} needs {names}, which {verb} not installed. This command adds it:")
        self._extra = extra

    def excerpt(self) -> list[str]:
        return [f"    {install_command(self._extra)}"]


def require_extra(extra: str, feature: str) -> None:
    """Raise MissingExtra unless all modules of an extra can be imported; import none."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtra(feature, extra, missing)


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, and keeps the extras that it has.

    It fits the installer: uv tool and pipx, which leave a file in their environments, or pip.
    """
    present = {name for name, modules in EXTRAS.items() if all(find_spec(module) for module in modules)}
    extras = ",".join(sorted(present - {"test"} | {extra}))
    source, is_editable = _source()
    requirement = f"kiebitz[{extras}] @ {source}" if source.startswith("git+") else f"{source}[{extras}]"
    words = ["--editable", requirement] if is_editable else [requirement]
    if os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml")):
        return shlex.join(["uv", "tool", "install", "--force", *words])
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return shlex.join(["pipx", "install", "--force", *words])
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def _source() -> tuple[str, bool]:
    """Return where this installation came from (PEP 610), and whether it is editable."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = distribution("kiebitz").read_text("direct_url.json")
        origin = json.loads(recorded) if recorded else {}
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"git+{url}", False
    if url.startswith("file:"):
        path = unquote(urlsplit(url).path)
        # A wheel or an archive takes no extras by its path alone.
        if os.path.isdir(path):
            return path, bool(origin.get("dir_info", {}).get("editable"))
    return "kiebitz", False
