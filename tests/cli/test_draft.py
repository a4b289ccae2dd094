"""`kiebitz draft`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from command import CAPTURES, TINY, kiebitz

GAME = str(CAPTURES / "maexchen-fork-pybots.pcap.gz")
CGML = str(CAPTURES / "cgml-hands.pcap.gz")


@pytest.mark.full
def test_a_draft_is_used_as_written(tmp_path: Path) -> None:
    file = tmp_path / "Würfel-Spiel.toml"
    done = kiebitz("draft", GAME, "-o", str(file))
    assert done.status == 0
    assert done.out == ""
    assert "8,710 messages of 22 kinds: 100.0% fit the draft" in done.err
    assert f"-P {file}" in done.err or f"-P '{file}'" in done.err
    assert tomllib.loads(file.read_text())["protocol"] == "wurfel_spiel"
    listed = kiebitz("messages", GAME, "-P", str(file), "--nl")
    assert '"name":"PLAYER WANTS TO SEE"' in listed.out
    assert kiebitz("check", GAME, "-P", str(file)).status == 0


def test_a_draft_goes_to_standard_output() -> None:
    done = kiebitz("draft", GAME)
    assert tomllib.loads(done.out)["messages"]["ROLLED"].startswith("s: ")


@pytest.mark.full
def test_a_draft_of_several_captures_and_of_a_database(tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    kiebitz("import", TINY, "-w", database)
    both = kiebitz("draft", TINY, GAME, "--server", "9000", "--server", "9100")
    assert tomllib.loads(both.out)["port"] == [9000, 9100]
    assert kiebitz("draft", GAME, TINY, "--server", "9100", "--server", "9000").out == both.out
    names = tomllib.loads(kiebitz("draft", TINY).out)["messages"].keys()
    assert tomllib.loads(kiebitz("draft", database).out)["messages"].keys() == names


def test_an_existing_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("# by hand")
    done = kiebitz("draft", TINY, "-o", str(file))
    assert done.status == 1
    assert "exists, and may have been edited" in done.err
    assert file.read_text() == "# by hand"


def test_a_draft_that_misses_much_is_written_by_force_only(tmp_path: Path) -> None:
    file = tmp_path / "odd.toml"
    capture = str(CAPTURES / "maexchen-head-odd.pcap")
    done = kiebitz("draft", capture, "-o", str(file))
    assert done.status == 1
    assert "it dissects 99.6% of the messages and 63.5% of the bytes of its traffic" in done.err
    assert "Seen: messages unlike all others, such as XXX" in done.err
    assert not file.exists()
    assert kiebitz("draft", capture, "-o", str(file), "--force").status == 0
    packets = kiebitz("draft", str(CAPTURES / "schafkopf-old-1.0.pcap"))
    assert packets.status == 1
    assert 'Write packets of lines by hand: format = "lines"' in packets.err
    assert "# It is wrong, or has gaps: it dissects 99.6% of the messages" in file.read_text()


@pytest.mark.full
def test_several_servers_are_listed() -> None:
    done = kiebitz("draft", CGML)
    assert done.status == 1
    assert "3 server ports; select those of the protocol with --server: 7002 (tcp, 6 connections" in done.err
    assert kiebitz("draft", CGML, "--server", "7002").status == 0
    assert "no traffic of a server at port 80; there is 7002" in kiebitz("draft", CGML, "--server", "80").err


@pytest.mark.full
def test_a_built_in_protocol_keeps_its_name(tmp_path: Path) -> None:
    file = tmp_path / "maexchen.toml"
    kiebitz("draft", GAME, "-o", str(file))
    assert tomllib.loads(file.read_text())["protocol"] == "maexchen_draft"


@pytest.mark.parametrize("content", [b"", b"not a capture"])
def test_no_capture(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.pcap"
    path.write_bytes(content)
    done = kiebitz("draft", str(path))
    assert done.status == 1
    assert "odd.pcap" in done.err


def test_no_traffic(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes((CAPTURES / "maexchen-head-tiny.pcap").read_bytes()[:24])
    done = kiebitz("draft", str(path))
    assert done.status == 1
    assert "no TCP or UDP traffic with content in it" in done.err
