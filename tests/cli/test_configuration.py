from __future__ import annotations

from pathlib import Path

import pytest
from command import CAPTURES, TINY, kiebitz
from conversation_files import Block, blocks, check_below
from hypothesis import given
from hypothesis import strategies as st
from served_pages import serving
from snapshots import DATA, as_bytes

from kiebitz.cli.configuration.reading import parse_configuration
from kiebitz.cli.configuration.settings import ConfigurationError

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")
NAMES = '[names]\n"127.0.0.1" = "table 3"\n"127.0.0.1:9000" = "the server"\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("KIEBITZ_CONFIG", str(path))
    return path


# Mistakes.


@pytest.mark.parametrize(
    "block", blocks(DATA / "configuration_mistakes.txt").values(), ids=lambda block: block.title
)
def test_a_mistake_is_reported_at_its_place(file: Path, block: Block) -> None:
    file.write_bytes(b"\n".join(map(as_bytes, block.steps)))
    done = kiebitz("events", TINY)
    assert (done.status, done.out) == (2, "")
    said = done.err.replace(str(file), "FILE").splitlines()
    check_below(block, said)


def test_help_is_there_whatever_is_wrong(file: Path) -> None:
    file.write_text("x = 1")
    done = kiebitz("-h")
    assert done.status == 0
    assert done.out.endswith(f"Configuration file:\n  {file}\n")


TOML = st.text(st.sampled_from("[]{}.=\"'\n #,019abdt\\:") | st.characters(), max_size=60)


@given(TOML, st.sampled_from(["", "[names]\n", "names = ", '[names]\n"10.0.0.7" = ', "colour = "]))
def test_any_file_is_read_or_reported(text: str, before: str) -> None:
    try:
        found = parse_configuration("/c", f"{before}{text}".encode("utf-8", "surrogatepass"))
    except ConfigurationError as error:
        told = [str(error), *error.excerpt()]
    else:
        assert all(name.isprintable() for name in found.names.values())
        return
    assert len(told) in (1, 3)
    assert told[0].startswith("/c")
    if len(told) == 3:
        assert set(told[2].strip()) == {"^"}
        assert len(told[2]) <= len(told[1]) + 1 or not told[1].isascii()


# Output.


@pytest.mark.full
def test_the_page_has_the_names(file: Path) -> None:
    file.write_text(NAMES)
    with serving(TINY) as server:
        (table,) = server.well("api/tables")["tables"]
    assert (table["server"], table["place"]) == ("127.0.0.1:9000", "the server")
