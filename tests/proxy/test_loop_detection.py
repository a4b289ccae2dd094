"""Gates that lead back to themselves: refused where that is seen at the start, noticed where it is not."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import kiebitz
from processes_and_rows import OWN_PORTS, PATIENCE_S, free_port, rows, until
from recording_relays import run
from taps_and_nats import Program
from tcp_relays import MOSTLY_UVLOOP, NewLoop, connect
from udp_relays import V4, Echo, Running, ask, client_of, eventually, relaying, to

from kiebitz.dissectors.model import Chunk, End, Transport
from kiebitz.proxy.forwarder import Forwarder
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay import endpoints
from kiebitz.proxy.relay.endpoints import RelayError
from kiebitz.proxy.relay.loop_detection import ROUNDS, LoopDetector, LoopFound
from kiebitz.proxy.relay.modes import Reverse, parse_mode

# Refused at the start.

A, B, C = OWN_PORTS

CIRCLES = [
    [f"reverse:udp://127.0.0.1:{B}@{A}", f"reverse:udp://127.0.0.1:{A}@{B}"],
    [f"reverse:tcp://127.0.0.1:{B}@{A}", f"reverse:tcp://127.0.0.1:{A}@{B}"],
    [f"reverse:tcp://localhost:{B}@{A}", f"reverse:tcp://127.0.0.1:{A}@127.0.0.1:{B}"],
    [f"reverse:tcp://127.0.0.1:{A}@{A}"],
    [f"reverse:udp://127.0.0.1:{A}@0.0.0.0:{A}"],
    [f"reverse:udp://127.3.2.1:{A}@0.0.0.0:{A}"],
    [f"reverse:tcp://0.0.0.0:{A}@{A}"],
    [f"reverse:tcp://[::1]:{A}@[::]:{A}"],
    [f"reverse:tcp://[::]:{A}@[::1]:{A}"],
    [f"reverse:udp://[::ffff:127.0.0.1]:{A}@{A}"],
    [f"reverse:udp://[::ffff:127.0.0.1]:{B}@{A}", f"reverse:udp://127.0.0.1:{A}@0.0.0.0:{B}"],
    [
        f"reverse:udp://127.0.0.1:{B}@{A}",
        f"reverse:udp://[::1]:{C}@{B}",
        f"reverse:udp://127.0.0.1:{A}@[::]:{C}",
    ],
    # From one path into a circle of two others.
    [
        f"reverse:udp://127.0.0.1:{B}@{A}",
        f"reverse:udp://127.0.0.1:{C}@{B}",
        f"reverse:udp://127.0.0.1:{B}@{C}",
    ],
]


@pytest.mark.parametrize("modes", CIRCLES, ids=map(str, range(len(CIRCLES))))
def test_a_circle_is_refused_and_leaves_nothing_behind(tmp_path: Path, modes: Sequence[str]) -> None:
    for _ in range(2):
        # The second time it is for the same reason: no port was kept.
        done = kiebitz(
            "relay", *(part for mode in modes for part in ("-m", mode)), "-w", str(tmp_path / "game.db")
        )
        assert done.status == 1
        assert "would be its own server" in done.err or "traffic to itself in a loop" in done.err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_circle_by_way_of_mitmproxy_is_refused(tmp_path: Path) -> None:
    modes = ("-m", f"reverse:tls://localhost:{A}@{B}", "-m", f"reverse:tcp://127.0.0.1:{B}@{A}")
    done = run("relay", *modes, "-w", str(tmp_path / "game.db"))
    assert done.returncode == 1
    assert f"from 127.0.0.1:{A} to 127.0.0.1:{B} to 127.0.0.1:{A}" in done.stderr


def test_a_chain_that_ends_at_a_server_is_well(tmp_path: Path) -> None:
    between = free_port("udp")
    first = Reverse("udp", "127.0.0.1", between, "127.0.0.1", 0)
    with Echo() as server:
        second = Reverse("udp", "127.0.0.1", server.port, "127.0.0.1", between)
        # The one that has to have its port comes first.
        with relaying(tmp_path, second, first) as relay, client_of(relay.address(1)) as client:
            assert ask(client, b"one") == b"one"
    assert len([item for item in relay.items if isinstance(item, Chunk)]) == 4


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_the_same_port_over_the_other_transport_is_another(tmp_path: Path, transport: Transport) -> None:
    other = "tcp" if transport == "udp" else "udp"
    modes = [
        parse_mode(f"reverse:{transport}://127.0.0.1:{B}@{A}"),
        parse_mode(f"reverse:{other}://127.0.0.1:{A}@{B}"),
    ]
    Forwarder(modes, JournalWriter(tmp_path, on_trouble=print), on_notice=print).close()


def test_a_name_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means another place each time it is asked for, and in the end the relay itself."""
    with Echo() as server:
        listen = free_port("udp")
        answers = itertools.chain([server.port], itertools.repeat(listen))
        asked: list[str] = []
        really = socket.getaddrinfo

        def lying(host: str, port: int, *rest: object, **named: object) -> object:
            if host != "rebound.example":
                return really(host, port, *rest, **named)  # type: ignore[arg-type]  # just as it was called
            asked.append(host)
            return [(V4, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", next(answers)))]

        monkeypatch.setattr(endpoints, "socket", SimpleNamespace(**{**vars(socket), "getaddrinfo": lying}))
        mode = Reverse("udp", "rebound.example", 9, "127.0.0.1", listen)
        with relaying(tmp_path, mode) as relay:
            for _ in range(3):
                with client_of(relay.address()) as client:
                    assert ask(client, b"to the server") == b"to the server"
            assert len(asked) == 1
        with pytest.raises(RelayError, match="would be its own server"):
            # The address that it means is what is looked at.
            Forwarder([mode], JournalWriter(tmp_path / "again", on_trouble=print), on_notice=print)


# Noticed on the way.


@contextmanager
def two_relays(folder: Path, transport: Transport, new_loop: NewLoop) -> Iterator[tuple[Running, Running]]:
    one, other = free_port(transport), free_port(transport)
    for name in ("one", "other"):
        (folder / name).mkdir()
    there = Reverse(transport, "127.0.0.1", other, "127.0.0.1", one)
    back = Reverse(transport, "127.0.0.1", one, "127.0.0.1", other)
    with (
        relaying(folder / "one", there, new_loop=new_loop) as first,
        relaying(folder / "other", back, new_loop=new_loop) as second,
    ):
        yield first, second


@MOSTLY_UVLOOP
def test_a_datagram_that_goes_round_is_stopped(tmp_path: Path, new_loop: NewLoop) -> None:
    with two_relays(tmp_path, "udp", new_loop) as (first, second), client_of(first.address()) as client:
        for number in range(3):
            client.send(b"REGISTER;alice %d" % number)
            time.sleep(0.3)
        eventually(lambda: any(code == "loop" for code, _ in first.notices + second.notices))
        # What was still held comes to its end.
        time.sleep(2)
        quiet = len(first.notices) + len(second.notices)
        time.sleep(0.5)
        assert len(first.notices) + len(second.notices) == quiet
    chunks = [item for relay in (first, second) for item in relay.items if isinstance(item, Chunk)]
    assert len(chunks) < 2000
    assert "repeatedly returns to it: it was stopped" in dict(first.notices + second.notices)["loop"]
    assert "loop" in {
        item.reason for relay in (first, second) for item in relay.items if isinstance(item, End)
    }


@pytest.mark.full
@MOSTLY_UVLOOP
def test_a_connection_that_goes_round_is_stopped(tmp_path: Path, new_loop: NewLoop) -> None:
    with two_relays(tmp_path, "tcp", new_loop) as (first, second), connect(first) as client:
        client.sendall(b"LOGI alice\r\n")
        eventually(lambda: any(code == "loop" for code, _ in first.notices + second.notices))
        # All of the chain falls, to its beginning.
        assert client.recv(1) == b""
    ends = [item for relay in (first, second) for item in relay.items if isinstance(item, End)]
    assert len(ends) < 400
    assert "loop" in {end.reason for end in ends}


@pytest.mark.full
def test_two_commands_that_lead_to_each_other(tmp_path: Path) -> None:
    one, other = free_port("udp"), free_port("udp")
    with ExitStack() as stack:
        relays = []
        for name, mode in (("one", f"{other}@{one}"), ("other", f"{one}@{other}")):
            words = (
                "relay",
                "-q",
                "-m",
                f"reverse:udp://127.0.0.1:{mode}",
                "-w",
                str(tmp_path / f"{name}.db"),
            )
            relays.append(stack.enter_context(Program(tmp_path / f"{name}.said", *words)))
            relays[-1].until_says("listening on")
        with client_of(("127.0.0.1", one)) as client:
            client.send(b"REGISTER;alice")
            until(lambda: any("it was stopped" in relay.said for relay in relays), "the loop is reported")
        for relay in relays:
            relay.end()
    for name in ("one", "other"):
        ((chunks,),) = rows(tmp_path / f"{name}.db", "SELECT count(*) FROM chunks")
        assert 32 <= chunks < 1000


# No loops.


def test_a_crowd_that_says_the_same_passes(tmp_path: Path) -> None:
    """All clients send the same at once, without answers, as programs that start together do."""
    with socket.socket(V4, socket.SOCK_DGRAM) as server, ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        with relaying(
            tmp_path, Reverse("udp", "127.0.0.1", server.getsockname()[1], "127.0.0.1", 0)
        ) as relay:
            for _ in range(5):
                clients = [stack.enter_context(client_of(relay.address())) for _ in range(100)]
                for client in clients:
                    client.send(b"HELLO")
                for _ in clients:
                    assert server.recv(100) == b"HELLO"
    assert relay.notices == []


def test_answered_clients_in_turn_pass_at_once(tmp_path: Path) -> None:
    with Echo() as server, relaying(tmp_path, to(server)) as relay:
        begun = time.monotonic()
        for _ in range(300):
            with client_of(relay.address()) as client:
                assert ask(client, b"HELLO") == b"HELLO"
        # Had each been held, that alone would be 15 s.
        assert time.monotonic() - begun < 5
    assert relay.notices == []


# The watch itself, with a clock of the test's own.


class Somebody:
    """A newcomer; the watch keeps none of them, so `THERE` does."""

    def __init__(self, number: int) -> None:
        self.number = number
        THERE.append(self)


THERE: list[Somebody] = []


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self, seconds: float) -> float:
        self.now += seconds
        return self.now


@pytest.mark.parametrize("gap_s", [0.0001, 0.003, 0.05, 0.09])
def test_a_loop_is_found_however_quick_it_is(gap_s: float) -> None:
    clock, watch = Clock(), LoopDetector[Somebody](8, lambda _: False)

    def go_round() -> None:
        for number in range(8 + 8 * ROUNDS):
            held = watch.check("x", clock(gap_s))
            watch.forwarded("x", Somebody(number), clock(held), was_held=held > 0)

    with pytest.raises(LoopFound) as found:
        go_round()
    assert len(found.value.newcomers) >= 8 + ROUNDS - 1
    # Some pass in between: eight times as many at most.
    assert clock.now < 100 + 20


@pytest.mark.parametrize("gap_s", [0.0001, 0.003, 0.05, 0.09])
@pytest.mark.parametrize("size", [9, 20, 1000])
def test_newcomers_that_come_anyway_are_no_loop(gap_s: float, size: int) -> None:
    """Newcomers arrive at their own times, independently of forwarded ones."""
    clock, watch = Clock(), LoopDetector[Somebody](8, lambda _: False)
    held_until: list[float] = []
    for number in range(size):
        now = clock(gap_s)
        for until_ in [when for when in held_until if when <= now]:
            watch.forwarded("x", Somebody(number), until_, was_held=True)
            held_until.remove(until_)
        held = watch.check("x", now)
        if held:
            held_until.append(now + held)
        else:
            watch.forwarded("x", Somebody(number), now)


def test_answered_or_different_messages_are_never_held() -> None:
    clock, watch = Clock(), LoopDetector[Somebody](8, lambda newcomer: newcomer.number % 7 == 6)
    for number in range(1000):
        assert not watch.check("x", clock(0.001))
        watch.forwarded("x", Somebody(number), clock.now)
    watch = LoopDetector[Somebody](8, lambda _: False)
    for number in range(1000):
        assert not watch.check(number, clock(0.001))
        watch.forwarded(number, Somebody(number), clock.now)
