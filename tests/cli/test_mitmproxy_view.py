"""Kiebitz in mitmproxy: what its view shows of a flow's messages, when it steps back, and that it loads."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import contentviews, http, tcp, udp
from mitmproxy.test import tflow
from mitmproxy_live import CONVERSATIONS
from snapshots import DATA, as_bytes
from strength import times

from kiebitz.cli.mitm import view as mitmproxy_view
from kiebitz.cli.mitm.conversation import Conversation
from kiebitz.cli.mitm.view import ShowGames
from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport
from kiebitz.dissectors.registry import BUILT_IN, Installed, installed

Flow = tcp.TCPFlow | udp.UDPFlow

MITMDUMP = Path(sys.executable).with_name("mitmdump")

API: Any = contentviews
"""Versions of mitmproxy differ in it, and so do its types."""


@pytest.fixture(autouse=True)
def games() -> Iterator[ShowGames]:
    addon = ShowGames()
    addon.load(None)
    yield addon
    addon.done()


def shown(of: Any, message: Any, view: str = "auto") -> tuple[str, str]:
    """Return the title or the name of the view that mitmproxy takes, and what it shows of a message."""
    kinds = {tcp.TCPMessage: "tcp_message", udp.UDPMessage: "udp_message"}
    about = {"flow": of, kinds.get(type(message), "http_message"): message}
    if hasattr(API, "Contentview"):
        metadata = API.Metadata(**about)
        chosen = API.registry.get_view(message.content, metadata, view)
        return chosen.name, chosen.prettify(message.content, metadata)
    title, lines, error = API.get_content_view(API.get(view), message.content, **about)
    assert error is None
    return title, "\n".join("".join(text for _, text in line) for line in lines)


def is_ours(title: str) -> bool:
    """Return whether Kiebitz shows it. Before mitmproxy 12 a view may give a title each time."""
    return title == "Kiebitz" or title in {dissector.grammar.title for dissector in BUILT_IN}


def flow_of(transport: Transport, said: Iterable[tuple[Direction, bytes]]) -> Flow:
    """Return a live flow with these messages, 10 ms between them."""
    of: Any = tflow.ttcpflow(messages=[]) if transport == "tcp" else tflow.tudpflow(messages=[])
    for direction, data in said:
        says(of, direction, data)
    assert isinstance(of, Flow)
    return of


def says(of: Any, direction: Direction, data: bytes) -> None:
    kind = tcp.TCPMessage if isinstance(of, tcp.TCPFlow) else udp.UDPMessage
    of.messages.append(kind(direction == "c2s", data, 1_700_000_000 + len(of.messages) / 100))


ROUND: list[tuple[Direction, bytes]] = [
    ("c2s", b"REGISTER;alice"),
    ("s2c", b"REGISTERED"),
    ("s2c", b"ROUND STARTING;t1"),
    ("c2s", b"JOIN;t1"),
    ("s2c", b"ROUND STARTED;1;alice"),
    ("s2c", b"YOUR TURN;t2"),
    ("c2s", b"roll;t2"),
]


@pytest.mark.parametrize(
    "block", blocks(DATA / "mitmproxy_views.txt").values(), ids=lambda block: block.title
)
def test_a_flow_is_shown_so(block: Block) -> None:
    of = flow_of("tcp" if block.steps[0] == "tcp" else "udp", ())
    lines = block.steps[:1]
    for step in block.steps[1:]:
        if step == "end":
            of.live = False
        else:
            says(of, "c2s" if step[0] == ">" else "s2c", as_bytes(step[2:]))
        lines.append(step)
        if not is_ours(shown(of, of.messages[-1])[0]):
            lines.append("    (left to others)")
        lines += [f"    {line}" for line in shown(of, of.messages[-1], "kiebitz")[1].split("\n")]
    check(block, "\n".join(lines))


def test_fields_within_fields_are_indented() -> None:
    name = "catan-niedlichepixel-framing.pcap.gz"
    of = flow_of("tcp", [(piece.direction, piece.data) for piece in CONVERSATIONS[name][1]])
    text = "\n".join(shown(of, message)[1] for message in of.messages)
    assert "\n  Spieler:\n    " in text


def test_the_lines_around_a_diagnostic_include_earlier_pieces() -> None:
    name = "schafkopf-1.3-badcard.pcap"
    of = flow_of("tcp", [(piece.direction, piece.data) for piece in CONVERSATIONS[name][1]])
    (text,) = (text for message in of.messages if "bad-field" in (text := shown(of, message)[1]))
    assert text.startswith("KARTE  (")
    assert "73 | !END\\n\n78 | !KARTE\\n\n85 | BLAU\\n\n   | ^^^^\n90 | SAU\\n\n" in text
    assert '   = expected: Farbe = "§" | "EICHEL" | "GRAS" | "HERZ" | "SCHELLEN"' in text


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_game_is_recognised_and_shown_whole(name: str) -> None:
    transport, sent, messages = CONVERSATIONS[name]
    of = flow_of(transport, [(piece.direction, piece.data) for piece in sent])
    of.live = False
    texts = [shown(of, message) for message in of.messages]
    assert all(is_ours(title) for title, _ in texts)
    heads = [line.partition("  ")[0] for _, text in texts for line in text.splitlines()]
    for _, named, _, _ in messages:
        assert named in heads
    # Again, and backwards, it is the same.
    assert [shown(of, message) for message in reversed(of.messages)] == texts[::-1]


@pytest.mark.parametrize("body", [b'{"Hallo":{"Version":"x","Protokoll":"1.0"}}\n', b"REGISTER;alice", b""])
def test_http_is_left_to_others(body: bytes) -> None:
    request = http.Request.make("POST", "http://localhost/", body, [(b"content-type", b"application/json")])
    of = tflow.tflow(req=request)
    assert not is_ours(shown(of, request)[0])


def test_bytes_of_which_no_flow_is_known() -> None:
    (message,) = flow_of("udp", [("c2s", b"ANNOUNCE;3,2;token")]).messages
    assert shown(None, message, "kiebitz")[1] == "ANNOUNCE\n  dice: 3,2\n  token: token"
    assert not is_ours(shown(None, message)[0])


def test_each_message_is_read_once_however_often_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    take = Conversation.take

    def counted(self: Conversation, direction: Direction, ts_ns: int, data: bytes) -> None:
        taken.append(data)
        take(self, direction, ts_ns, data)

    monkeypatch.setattr(Conversation, "take", counted)
    of = flow_of("udp", ROUND[:1])
    for number in range(50):
        says(of, *ROUND[number % 5 + 1])
        for message in of.messages:
            shown(of, message)
    assert len(taken) == len(of.messages) == 51


@pytest.mark.full
def test_the_last_flows_are_remembered_and_no_more() -> None:
    flows = [flow_of("udp", ROUND) for _ in range(300)]
    for of in flows:
        assert is_ours(shown(of, of.messages[0])[0])
    gc.collect()
    assert sum(isinstance(thing, Conversation) for thing in gc.get_objects()) <= 256
    # The first one is simply read again.
    assert shown(flows[0], flows[0].messages[5])[1].startswith("YOUR TURN")


def test_a_message_that_was_changed_is_read_as_it_is_now() -> None:
    of = flow_of("udp", ROUND)
    assert "players: alice" in shown(of, of.messages[4])[1]
    of.messages[4].content = b"ROUND STARTED;1;bob"
    assert "players: bob" in shown(of, of.messages[4])[1]
    # As after undoing a change: other objects with the same content.
    of.messages = flow_of("udp", ROUND).messages
    assert "players: alice" in shown(of, of.messages[4])[1]


def test_the_rest_of_a_truncated_flow_is_read() -> None:
    name = "catan-niedlichepixel-framing.pcap.gz"
    of = flow_of("tcp", [])
    found = []
    for piece in CONVERSATIONS[name][1]:
        says(of, piece.direction, piece.data)
        of.messages = of.messages[-3:]
        found.append(shown(of, of.messages[-1])[1])
    assert len([text for text in found if "  (" in text]) > len(found) / 2


@given(
    st.sampled_from([("udp", b"REGISTER;x"), ("tcp", b'{"Hallo":{"Version":"x"}}\n'), ("tcp", b"LOGN a\n")]),
    st.lists(
        st.tuples(st.sampled_from(DIRECTIONS), st.binary(max_size=60) | st.text(max_size=20)), max_size=12
    ),
    st.booleans(),
)
@settings(max_examples=times(150), deadline=None)
def test_any_bytes(
    first: tuple[Transport, bytes], said: list[tuple[Direction, bytes | str]], live: bool
) -> None:
    transport, data = first
    rest = [(way, part.encode("utf-8", "replace") if isinstance(part, str) else part) for way, part in said]
    of = flow_of(transport, [("c2s", data), *rest])
    of.live = live
    for message in of.messages:
        assert all(line.isprintable() for line in shown(of, message, "kiebitz")[1].split("\n"))


def test_the_sentence_names_the_mitmdump_next_to_the_command(tmp_path: Path) -> None:
    (tmp_path / "kiebitz").write_text("#!/bin/sh\n")
    (tmp_path / "kiebitz").chmod(0o755)
    (tmp_path / "mitmdump").touch()
    script = kiebitz("addon-path").out.strip()
    # Without site-packages, nothing is installed.
    done = subprocess.run(
        [sys.executable, "-I", "-S", script],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
        check=True,
    )
    assert f"use {tmp_path / 'mitmdump'}, which was installed with Kiebitz" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_plug_ins_that_are_left_out_are_reported(
    games: ShowGames, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = Installed(installed().dissectors, {}, ("the plug-in x 1.0 is left out: y",))
    monkeypatch.setattr(mitmproxy_view, "installed", lambda: known)
    games.done()
    with caplog.at_level(logging.WARNING):
        games.load(None)
    assert "the plug-in x 1.0 is left out: y" in caplog.text


def test_the_path_is_that_of_a_script() -> None:
    done = kiebitz("addon-path")
    assert (done.status, done.err) == (0, "")
    assert Path(done.out.strip()).samefile(ROOT / "cli" / "mitm" / "addon.py")
