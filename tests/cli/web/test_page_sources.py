from __future__ import annotations

import re
from collections import Counter

import pytest
from command import ROOT

from kiebitz.cli.web.page import joined_script, page_files

STATIC = ROOT / "cli" / "web" / "static"
MODULES = sorted(path.name for path in STATIC.glob("*.js"))

NEVER = {
    "markup": r"innerHTML|outerHTML\s*=(?!=)|insertAdjacentHTML|ContextualFragment|setHTML|document\.write",
    "code made of text": r"\beval\b|new Function|setTimeout\(\s*[\"'`]|setInterval\(\s*[\"'`]|javascript:",
    "what is loaded later": r"import\(|importScripts|new Worker|serviceWorker",
    "a handler that is a text": r"setAttribute\(\s*[\"']on",
    "a cookie": r"document\.cookie",
}

LINKS = {'href="style.css"', 'href="theme.css"', 'src="app.js"'}

_COMMENTS = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_TOP_LEVEL = re.compile(
    r"^(?:export )?(?:async )?(?:const|let|var|function|class) (\w+|\{[^}]*\})", re.MULTILINE
)
_IMPORT = re.compile(r'import \{[^}]*\} from "\./\w+\.js";')


@pytest.mark.parametrize("what", NEVER)
def test_no_module_makes(what: str) -> None:
    found = {
        name: re.findall(NEVER[what], _COMMENTS.sub("", (STATIC / name).read_text())) for name in MODULES
    }
    assert {name: these for name, these in found.items() if these} == {}


def test_no_file_names_another_machine() -> None:
    for path in STATIC.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"(?:https?:|wss?:|ftp:|[\"'(]\s*)//\w+", text), path.name


def test_the_page_has_no_script_style_or_handler_in_it() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.findall(r"\son\w+\s*=|\sstyle\s*=|<style|<script(?![^>]*src=)", page)
    linked = set(re.findall(r'(?:href|src)="[^"]*"', page))
    # The symbol of the page is in it.
    assert {one for one in linked if not one.startswith(('href="#', 'href="data:image/svg+xml'))} == LINKS
    assert page.count("<script") == 1


def test_the_styles_load_nothing() -> None:
    assert not re.findall(r"@import|url\((?!#)", (STATIC / "style.css").read_text())


def test_all_modules_are_joined_each_once_and_no_two_have_a_name_in_common() -> None:
    names = Counter(
        name.strip()
        for module in MODULES
        for found in _TOP_LEVEL.findall((STATIC / module).read_text())
        for name in found.strip("{} ").split(",")
    )
    assert {name: count for name, count in names.items() if count > 1} == {}
    script = joined_script()
    assert not re.findall(r"^(?:import|export)\b", script, re.MULTILINE)
    assert Counter(name for name in _TOP_LEVEL.findall(script) if "{" not in name) == dict.fromkeys(names, 1)


def test_modules_import_what_can_be_joined() -> None:
    for module in MODULES:
        source = (STATIC / module).read_text()
        imports = re.findall(r"^import\b[^;]*;", source, re.MULTILINE)
        assert all(_IMPORT.fullmatch(one) for one in imports), module
        assert "export default" not in source, module
        assert source.count("\n") < 400, module


def test_every_file_is_installed_and_served() -> None:
    assert {*page_files()} == {path.name for path in STATIC.iterdir()}
