"""Optional dependencies: what each extra installs, and the command that adds a missing one."""

from __future__ import annotations

import json
import os
import shlex
import sys
import sysconfig
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

_DISTRIBUTIONS = {"nats": "nats-py[nkeys]"}
"""Module -> its distribution as pyproject.toml requires it, where the names differ."""


class MissingExtra(KiebitzError):
    """A feature needs an extra; the excerpt is the command that installs it."""

    def __init__(self, feature: str, extra: str, missing: list[str]) -> None:
        names = ", ".join(_DISTRIBUTIONS.get(name, name).partition("[")[0] for name in missing)
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

    It fits the installer: uv tool and pipx, which leave a file in their environments, or pip. If the source
    of this installation is unknown or gone, the command installs the extra's modules. It never looks up the
    name kiebitz on a package index, where another project could hold it.
    """
    by_uv = os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml"))
    by_pipx = os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json"))
    present = {name for name, modules in EXTRAS.items() if all(find_spec(module) for module in modules)}
    words = _requirement(",".join(sorted(present - {"test"} | {extra})))
    if words and by_uv:
        return shlex.join(["uv", "tool", "install", "--force", *words])
    if words and by_pipx:
        return shlex.join(["pipx", "install", "--force", *words])
    words = words or [_DISTRIBUTIONS.get(module, module) for module in EXTRAS[extra]]
    if by_pipx:
        return shlex.join(["pipx", "inject", os.path.basename(sys.prefix), *words])
    if by_uv or find_spec("pip") is None:
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *words])
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    is_managed = sys.prefix == sys.base_prefix and os.path.exists(marker)
    options = ["--break-system-packages"] if is_managed else []
    return shlex.join([sys.executable, "-m", "pip", "install", *options, *words])


def _requirement(extras: str) -> list[str]:
    """Return arguments that install Kiebitz with extras from its recorded source (PEP 610), if any."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = distribution("kiebitz").read_text("direct_url.json")
        origin = json.loads(recorded) if recorded else {}
    except (PackageNotFoundError, ValueError):
        return []
    url = str(origin.get("url", ""))
    path = unquote(urlsplit(url).path)
    if "vcs_info" in origin:
        revision = origin["vcs_info"].get("requested_revision")
        return [f"kiebitz[{extras}] @ git+{url}" + (f"@{revision}" if revision else "")]
    if url.startswith("file:") and os.path.isdir(path):
        is_editable = origin.get("dir_info", {}).get("editable")
        return [*(["--editable"] if is_editable else []), f"{path}[{extras}]"]
    if "archive_info" in origin and (os.path.isfile(path) or not url.startswith("file:")):
        return [f"kiebitz[{extras}] @ {url}"]
    return []
