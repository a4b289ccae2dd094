"""Undocumented names of other packages: those in use are listed, and exist.

Ports in use, as the system reports them: no traffic is sent, and nothing is said of other sockets.
"""

from __future__ import annotations

import ast
import inspect
import re
import socket
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from command import ROOT, kiebitz
from processes_and_rows import free_port

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.dependencies import IncompatibleVersion, Undocumented, check_names, undocumented
from kiebitz.proxy.system.ports_in_use import is_in_use

DOCUMENTED = {
    "click": ("click", "click.core", "click.shell_completion", "click.testing"),
    # See docs/scripts/api-render.py in its sources.
    "mitmproxy": (
        "mitmproxy",
        "mitmproxy.addonmanager",
        "mitmproxy.connection",
        "mitmproxy.flow",
        "mitmproxy.proxy.context",
        "mitmproxy.proxy.server_hooks",
        "mitmproxy.tcp",
        "mitmproxy.tls",
        "mitmproxy.udp",
    ),
    "mitmproxy_rs": (),
    "scapy": (),
    # Its reference has a page for each module.
    "textual": None,
    "uvicorn": ("uvicorn",),
}
"""Modules whose names are documented, by package; None: all."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""mitmproxy imports libraries that use deprecated names."""

IMPORT = re.compile(rf"^ *(from|import) ({'|'.join(DOCUMENTED)})\b", re.MULTILINE)

LISTED = {name for dependency in undocumented().values() for name in dependency.names}


@cache
def importing() -> dict[Path, str]:
    """Return the sources that import these packages."""
    return {
        path: text
        for room in ("cli", "kiebitz", "proxy", "storage")
        for path in sorted((ROOT / room).rglob("*.py"))
        if not any(parent.is_symlink() for parent in path.parents) and IMPORT.search(text := path.read_text())
    }


@pytest.mark.parametrize("package", undocumented())
def test_every_undocumented_name_exists(package: str) -> None:
    check_names(package)


def test_every_import_from_an_undocumented_module_is_listed() -> None:
    listed = {re.split(r"[.(]", name.partition(":")[2])[0]: name.partition(":")[0] for name in LISTED}
    missing = []
    for path, text in importing().items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            documented = DOCUMENTED.get(node.module.partition(".")[0])
            if documented is None or node.module in documented:
                continue
            for alias in node.names:
                if listed.get(alias.name) != node.module:
                    missing.append(f"{path.relative_to(ROOT)} imports {node.module}:{alias.name}")
    assert missing == [], "list these in proxy/system/dependencies.py"


def foreign_subclasses() -> Iterator[tuple[type, list[type]]]:
    """Yield our subclasses of the packages' classes, with these bases."""
    for path in importing():
        if path.parts[-2:] in (("mitm", "addon.py"),):
            # It runs by its path within mitmproxy only.
            continue
        room = path.relative_to(ROOT).with_suffix("").parts
        module = import_module(".".join((() if room[0] == "kiebitz" else ("kiebitz",)) + room))
        for cls in vars(module).values():
            if not inspect.isclass(cls) or cls.__module__ != module.__name__:
                continue
            bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in DOCUMENTED]
            if bases:
                yield cls, bases


@cache
def private_names(base: type) -> set[str]:
    return {*vars(base)} | {*re.findall(r"self\.(_\w+)\b.*=", inspect.getsource(base))}


def test_no_private_name_of_a_base_class_is_used_but_those_listed() -> None:
    """Neither overridden, nor read, nor, by accident, set: a newer version may use it for something else."""
    private = {re.split(r"[:.(]", name)[-1 if "(" not in name else -2] for name in LISTED}
    found = []
    for cls, bases in foreign_subclasses():
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(tree, ast.ClassDef)
        used = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        } | {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()")
        }
        theirs: set[str] = set()
        for base in bases:
            theirs |= private_names(base)
        found += [
            f"{cls.__module__}.{cls.__qualname__} uses {name}"
            for name in sorted(used & theirs - private)
            if name.startswith("_") and not name.startswith("__")
        ]
    assert found == [], "list these in proxy/system/dependencies.py, or rename ours"


def test_a_missing_name_is_named_with_the_tested_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    for gone in (
        "mitmproxy.proxy.server:ConnectionHandler.hook_queue",
        "mitmproxy.proxy.queues:Queue",
        "mitmproxy.proxy.server:ConnectionHandler.close_connection(in_ms)",
    ):
        monkeypatch.setitem(undocumented(), "mitmproxy", Undocumented(("11.0.2", "12.2.3"), (gone,)))
        with pytest.raises(IncompatibleVersion) as caught:
            check_names("mitmproxy")
        has_not = f"mitmproxy {version('mitmproxy')} has no {gone}"
        assert str(caught.value) == f"{has_not}, which Kiebitz uses; tested were mitmproxy 11.0.2 and 12.2.3"
    done = kiebitz("relay", "-m", "socks5@0", "-w", "game.db")
    assert (done.status, done.out) == (1, "")
    assert "which Kiebitz uses; tested were mitmproxy" in done.err


def test_the_tested_versions_are_documented() -> None:
    section = (
        (ROOT / "docs" / "install.md").read_text().partition("## Tested versions")[2].partition("\n##")[0]
    )
    header, _, *table = (
        [cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")
    )
    for package, dependency in undocumented().items():
        (column,) = (at for at, title in enumerate(header) if title.lower() == package)
        assert {row[column] for row in table} == {*dependency.tested}, package


@pytest.mark.parametrize("has_query", [True, False])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_socket_that_listens_is_found(
    transport: Transport, address: str, has_query: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_query:
        # As on systems that cannot be asked for single sockets.
        monkeypatch.delattr(socket, "AF_NETLINK")
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as server:
        server.bind((address, 0))
        port = server.getsockname()[1]
        if transport == "tcp":
            assert is_in_use(transport, port) is False
            server.listen()
        assert is_in_use(transport, port) is True
    assert is_in_use(transport, port) is False


@pytest.mark.parametrize("has_query", [True, False])
def test_a_connection_does_not_listen(has_query: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_query:
        monkeypatch.delattr(socket, "AF_NETLINK")
    with ExitStack() as held, socket.create_server(("127.0.0.1", 0)) as server:
        client = held.enter_context(socket.create_connection(server.getsockname()))
        held.enter_context(server.accept()[0])
        assert is_in_use("tcp", client.getsockname()[1]) is False
        assert is_in_use("tcp", server.getsockname()[1]) is True


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.delattr(socket, "AF_NETLINK")
    monkeypatch.setattr("builtins.open", no_file)
    assert is_in_use("tcp", free_port("tcp")) is None
