"""The source: layers, packages without cycles, few modules that lie flat in a room, no stray docstrings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import click
import pytest
from command import ROOT

LAYERS = {"dissectors": 0, "proxy": 1, "storage": 2, "kiebitz": 3, "cli": 4}
"""A room imports only rooms of a lower layer, and itself."""

MAX_FLAT = 14
"""Maximum number of modules that lie directly in a room, rather than in one of its packages."""

MAX_IN_PACKAGE = 30
"""Maximum number of modules in a package."""

EXTENSIONS = {
    "probe": "dissectors.probing services.probing cli.probe cli.commands.probe",
    "interop": "services.interop services.junit cli.interop cli.commands.interop",
    "class": "services.classroom cli.classroom cli.commands.class_",
    "draft": "dissectors.drafting services.drafting cli.commands.draft",
    "corpus": "storage.corpus services.corpus cli.corpus cli.commands.corpus",
    "taps": "proxy.taps services.publishing services.collecting storage.recording.tap_progress"
    " cli.options.taps cli.commands.collect",
    "mitmproxy": "proxy.mitmproxy cli.mitm cli.commands.addon_path",
    "wireshark": "dissectors.wireshark",
}
"""Packages and modules of the extensions; everything else is the core, which works without them."""

DOORS = {
    ("cli.commands.relay", "taps"),
    ("cli.commands.sniff", "taps"),
    ("cli.commands.protocols", "wireshark"),
    ("cli.protocol_check", "probe"),
    ("proxy.forwarder", "mitmproxy"),
}
"""Modules of the core that import an extension, because an option of a core command is about it."""

PUBLIC = ("kiebitz", "kiebitz.__main__", "kiebitz.api", "kiebitz.hooks", "kiebitz.protocol")
"""Modules that are the public face of the project, not a part of the services."""


def _name(path: Path) -> str:
    """Return the name by which a module is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((() if parts[0] == "kiebitz" else ("kiebitz",)) + parts).removesuffix(".__init__")


MODULES = {
    _name(path): path
    for room in LAYERS
    for path in sorted((ROOT / room).rglob("*.py"))
    # kiebitz/ has a link to each of the other rooms.
    if not any(parent.is_symlink() for parent in path.parents)
}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all statements in it, but no expressions, which are most of a module."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _statements(child)


def _imported(statement: ast.stmt) -> Iterator[str]:
    """Yield the modules of Kiebitz that a statement imports, also within functions."""
    for node in _statements(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in MODULES:
                    yield name
                elif node.module in MODULES:
                    yield node.module


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def _read() -> tuple[dict[str, set[str]], dict[str, set[str]], dict[str, list[int]]]:
    """Return what each module imports, what of that not only for types, and the lines of stray strings."""
    every: dict[str, set[str]] = {}
    at_run_time: dict[str, set[str]] = {}
    stray: dict[str, list[int]] = {}
    for name, path in MODULES.items():
        every[name], at_run_time[name] = set(), set()
        tree = ast.parse(path.read_text())
        for statement in tree.body:
            imported = set(_imported(statement)) - {name}
            every[name] |= imported
            if not _is_for_types(statement):
                at_run_time[name] |= imported
        stray[name] = [*_stray(tree)]
    return every, at_run_time, stray


def _stray(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of strings that are neither a docstring nor below the assignment that they document."""
    for node in _statements(tree):
        for before, statement in pairwise(getattr(node, "body", ())):
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) if not isinstance(
                    before, ast.Assign | ast.AnnAssign
                ):
                    yield statement.lineno


def _room(module: str) -> str:
    """Return the room of a module; what is in no other one is in `kiebitz`."""
    room = module.split(".")[1] if "." in module else ""
    return room if room in LAYERS else "kiebitz"


def _package(module: str) -> str:
    """Return the package of a module: one level below its room, where modules that lie flat are one unit."""
    parts = module.split(".")
    depth = 3 if _room(module) != "kiebitz" or parts[1:2] == ["services"] else 2
    return ".".join(parts[:depth]) if f"{'.'.join(parts[:depth])}" in PACKAGES else _room(module)


PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node not in done:
            for following in sorted(graph.get(node, ())):
                if cycle := visit(following, [*path, node]):
                    return cycle
            done.add(node)
        return []

    return next((cycle for node in graph if (cycle := visit(node, []))), [])


def test_layers() -> None:
    graph = _read()[0]
    wrong = [
        f"{importer} imports {imported}"
        for importer, all_imported in graph.items()
        if importer not in PUBLIC
        for imported in sorted(all_imported - {"kiebitz"})
        if _room(imported) != _room(importer) and LAYERS[_room(imported)] >= LAYERS[_room(importer)]
    ]
    assert wrong == []


def test_no_module_is_in_a_cycle_of_imports() -> None:
    graph = _read()[1]
    assert _cycle({name: imported - {"kiebitz"} for name, imported in graph.items()}) == []


def test_no_package_is_in_a_cycle_of_imports() -> None:
    graphs: dict[str, dict[str, set[str]]] = {room: defaultdict(set) for room in LAYERS}
    for importer, all_imported in _read()[0].items():
        for imported in all_imported:
            room, a, b = _room(importer), _package(importer), _package(imported)
            if room == _room(imported) and a != b and room not in (a, b):
                graphs[room][a].add(b)
    assert {room for room, graph in graphs.items() if not graph} <= {"kiebitz"}
    assert [cycle for graph in graphs.values() if (cycle := _cycle(graph))] == []


def _extension(module: str) -> str | None:
    """Return the extension that a module belongs to, None for the core."""
    short = module.removeprefix("kiebitz.")
    for extension, places in EXTENSIONS.items():
        if any(short == place or short.startswith(f"{place}.") for place in places.split()):
            return extension
    return None


def test_the_core_imports_no_extension() -> None:
    found = {
        (importer.removeprefix("kiebitz."), extension)
        for importer, imported in _read()[0].items()
        if _extension(importer) is None
        for extension in map(_extension, imported)
        if extension is not None
    }
    assert found == DOORS


def test_sizes_of_core_and_extensions_are_those_of_the_architecture() -> None:
    lines: dict[str, int] = defaultdict(int)
    for name, path in MODULES.items():
        lines[_extension(name) or "core"] += path.read_text().count("\n")
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Core and extensions")[2]
    told = {name: int(size.replace(",", "")) for name, size in re.findall(r"\| (\w+) \| ([\d,]+) \|", table)}
    assert told.keys() == lines.keys()
    # The page has round numbers.
    assert {name for name, size in told.items() if abs(size - lines[name]) > max(300, 0.1 * size)} == set()


def test_the_site_has_all_modules_that_its_page_imports() -> None:
    from kiebitz.cli.web.static_site import LEFT_OUT

    waiting, known = ["kiebitz.cli.web.local_sessions"], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in known:
            known.add(name)
            body = ast.parse(MODULES[name].read_text()).body
            # What a function imports is imported when it is called, if ever.
            for statement in body:
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    waiting += _imported(statement)
    left_out = tuple(f"kiebitz.{folder.removeprefix('kiebitz/').replace('/', '.')}." for folder in LEFT_OUT)
    assert len(known) > 50
    assert [name for name in known if f"{name}.".startswith(left_out)] == []


def test_no_docstring_is_beside_what_it_describes() -> None:
    assert [*_stray(ast.parse('class A:\n    """Of a field."""\n    """Of A."""'))] == [3]
    assert {name: lines for name, lines in _read()[2].items() if lines} == {}


@pytest.mark.parametrize("room", LAYERS)
def test_few_modules_lie_flat(room: str) -> None:
    flat = [path for path in (ROOT / room).glob("*.py") if path.name != "__init__.py"]
    assert len(flat) <= MAX_FLAT


def test_no_package_is_a_heap() -> None:
    sizes: dict[Path, int] = defaultdict(int)
    for path in MODULES.values():
        sizes[path.parent] += path.name != "__init__.py"
    protocols = ROOT / "dissectors" / "protocols"
    # It has exactly one module for each command.
    del sizes[ROOT / "cli" / "commands"]
    large = {path.relative_to(ROOT).as_posix() for path, size in sizes.items() if size > MAX_IN_PACKAGE}
    assert {path for path in large if not (ROOT / path).is_relative_to(protocols)} == set()


@pytest.mark.full
def test_services_know_no_user_interface() -> None:
    """A service is driven by a command, by the page or by a test. It may know how wide a text is."""
    interfaces = {"click", "rich", "textual", "starlette", "uvicorn"}
    knowing = []
    for name, path in MODULES.items():
        if _room(name) == "kiebitz" and name not in PUBLIC:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if any(each.split(".")[0] in interfaces and each != "rich.cells" for each in names):
                    knowing.append(name)
    assert knowing == []


def test_each_command_has_a_module_of_its_name() -> None:
    from kiebitz.cli.main import COMMANDS, kiebitz

    for section in COMMANDS.values():
        for command in section:
            assert kiebitz.get_command(click.Context(kiebitz), command) is not None
    commands = [name for name in MODULES if name.startswith("kiebitz.cli.commands.")]
    assert len(commands) == sum(map(len, COMMANDS.values()))


def test_no_test_module_is_imported_by_another_folders() -> None:
    folder = {path.stem: path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    for path in (ROOT / "tests").rglob("*.py"):
        imported = re.findall(r"^\s*from (test_\w+) import ", path.read_text(), re.MULTILINE)
        assert [name for name, place in folder.items() if name in imported and place != path.parent] == []


@pytest.mark.parametrize(
    ("graph", "cycle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c"]),
    ],
)
def test_a_cycle_is_found(graph: dict[str, set[str]], cycle: list[str]) -> None:
    assert _cycle(graph) == cycle


def test_no_group_is_possessive() -> None:
    # Before Python 3.11.5, such a group may end early if it can itself backtrack (gh-106052). An atomic group
    # around a common repetition, `(?>(?:…)*)`, is right in all versions.
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    found = [
        f"{name}:{number}"
        for name, path in MODULES.items()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if possessive.search(line)
    ]
    assert found == []
