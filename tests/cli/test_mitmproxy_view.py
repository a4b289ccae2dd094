"""Kiebitz in mitmproxy: what its view shows of a flow's messages, when it steps back, and that it loads."""

from __future__ import annotations

import gc
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import contentviews, http, tcp, udp
from mitmproxy.test import tflow
from mitmproxy_live import CONVERSATIONS
from processes_and_rows import PATIENCE_S, free_port
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


def test_a_datagram_is_shown_with_fields_event_and_diagnostic() -> None:
    of = flow_of("udp", ROUND)
    assert shown(of, of.messages[5], "kiebitz")[1] == "YOUR TURN\n  token: t2\n  » it is alice's turn"
    title, text = shown(of, of.messages[6])
    assert is_ours(title)
    assert text == (
        "unreadable\n"
        'error[unknown-message]: "roll" is not a message a client sends: did you mean ROLL?\n'
        "  --> byte 0 of the message (21 of that direction)\n"
        "   | roll;t2\n"
        "   | ^^^^\n"
        "   = expected: one of REGISTER, REGISTER_SPECTATOR, UNREGISTER, ECHO, JOIN, ROLL, SEE, ANNOUNCE\n"
        "   = clause: Grundlagen\n"
        "   = blame: client (malformed)"
    )


def test_a_message_in_several_pieces_is_shown_where_it_ends() -> None:
    hello = b'{"Hallo":{"Version":"x","Protokoll":"1.0"}}\n'
    of = flow_of(
        "tcp", [("s2c", hello[:20]), ("s2c", hello[20:] + b'{"Willkommen":{"id":4'), ("s2c", b"2}}\n")]
    )
    assert [shown(of, message)[1] for message in of.messages] == [
        "(20 bytes of Hallo, continued later)",
        "Hallo  (x)\n  Version: x\n  Protokoll: 1.0\n(21 bytes of Willkommen, continued later)",
        "Willkommen  (player 42)\n  id: 42\n  » player 42 joins",
    ]


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


OTHERS = [
    flow_of("tcp", [("c2s", b"GET / HTTP/1.1\r\n\r\n"), ("s2c", b"\x16\x03\x01\x02\x00\x01")]),
    flow_of("udp", [("c2s", bytes(range(200))), ("s2c", b"")]),
]


@pytest.mark.parametrize("of", OTHERS)
def test_other_traffic_is_left_to_other_protocols(of: Flow) -> None:
    for message in of.messages:
        assert not is_ours(shown(of, message)[0])
        assert shown(of, message, "kiebitz")[1] == "Kiebitz recognised no game in this conversation."


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


def test_the_end_of_a_connection_in_a_message_is_reported() -> None:
    of = flow_of("tcp", [("s2c", b'{"Hallo":{"Version":"x","Protokoll":"1.0"}}\n'), ("s2c", b'{"Willk')])
    assert shown(of, of.messages[1])[1] == "(7 bytes of a message, continued later)"
    of.live = False
    assert "error[truncated]" in shown(of, of.messages[1])[1]


def test_peer_messages_control_no_terminal() -> None:
    of = flow_of("udp", [("c2s", "REGISTER;a\x1b[31m\u202eb\nerror".encode()), ("c2s", b"\x1b]0;x\x07")])
    for message in of.messages:
        for line in shown(of, message, "kiebitz")[1].split("\n"):
            assert line.isprintable()
    assert "  name: a\\x1b[31m\\u202eb\\nerror" in shown(of, of.messages[0], "kiebitz")[1]


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


@contextmanager
def mitmdump(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a mitmdump that keeps its own files in a folder; it ends with the block."""
    process = subprocess.Popen(
        [MITMDUMP, "--set", f"confdir={folder}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout is not None
    said = ""
    while words not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


@pytest.mark.full
def test_a_real_mitmdump_shows_a_game(tmp_path: Path) -> None:
    script = kiebitz("addon-path").out.strip()
    port = free_port("udp")
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
        server.bind(("127.0.0.1", 0))
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@127.0.0.1:{port}"
        options = ("--mode", mode, "-s", script, "--set", "flow_detail=3", "--set", "kiebitz_db=")
        with (
            mitmdump(tmp_path, *options) as process,
            closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client,
        ):
            said = read_until(process, "listening at")
            client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
            said += read_until(process, "name: alice")
    assert "error" not in said.lower()
    assert "REGISTER\n" in said.replace("\r", "")


@pytest.mark.full
def test_a_mitmproxy_without_kiebitz_is_reported_in_a_sentence(tmp_path: Path) -> None:
    # Another package of that name hides ours, as in a Python where ours is not.
    (tmp_path / "kiebitz.py").write_text("")
    script = kiebitz("addon-path").out.strip()
    with mitmdump(tmp_path, "-n", "-s", script, PYTHONPATH=str(tmp_path)) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "Kiebitz cannot be imported by this mitmproxy" in said
    assert "mitmdump" in said
    assert "Traceback" not in said


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
