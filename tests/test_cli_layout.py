"""How the room cli is laid out: few modules flat in it, packages besides, and no circle among imports."""

from __future__ import annotations

import ast

import pytest
from command import ROOT

FLAT = 12
CLI = ROOT / "cli"
PAGES = {
    "kiebitz." + ".".join(page.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): page
    for page in sorted(CLI.rglob("*.py"))
}


def _imported(name: str, source: str) -> set[str]:
    """The modules of cli that a module imports anywhere in it, be it only when a function is called."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{name} imports by a relative name"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.add(module if module in PAGES else node.module)
    return found & PAGES.keys() - {name}


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the next, and the last the first; none if there is no circle."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name not in done:
            for imported in sorted(graph[name]):
                if circle := visit(imported, [*way, name]):
                    return circle
            done.add(name)
        return []

    return next((circle for name in graph if (circle := visit(name, []))), [])


def test_few_modules_are_flat() -> None:
    assert len([page for page in PAGES.values() if page.parent == CLI]) <= FLAT


def test_each_command_has_a_module_of_its_name() -> None:
    from kiebitz.cli.main import COMMANDS

    for section in COMMANDS.values():
        for command, (place, _) in section.items():
            module = place.partition(":")[0].removeprefix("cli.commands.")
            assert module.rstrip("_") == command.replace("-", "_")
            assert f"kiebitz.cli.commands.{module}" in PAGES
    commands = {name for name, page in PAGES.items() if page.parent == CLI / "commands"}
    assert len(commands) - 1 == sum(map(len, COMMANDS.values()))


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name: _imported(name, page.read_text()) for name, page in PAGES.items()}
    # Lazy ones are among them, or this would say nothing of the circles that they hold open.
    assert "kiebitz.cli.importing.packets" in graph["kiebitz.cli.sessions"]
    assert _circle(graph) == []


@pytest.mark.parametrize(
    ("graph", "circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c"]),
    ],
)
def test_a_circle_is_found(graph: dict[str, set[str]], circle: list[str]) -> None:
    assert _circle(graph) == circle
