"""The relay's modes as users write them."""

from __future__ import annotations

import pytest

from proxy.modes import Mode, parse_mode


@pytest.mark.parametrize(
    ("spec", "mode"),
    [
        ("reverse:udp://127.0.0.1:9000@9001", Mode("udp", "127.0.0.1", 9000, "127.0.0.1", 9001)),
        ("reverse:udp://localhost:9000@9001", Mode("udp", "localhost", 9000, "127.0.0.1", 9001)),
        ("reverse:udp://game.example:1@0.0.0.0:65535", Mode("udp", "game.example", 1, "0.0.0.0", 65535)),
        ("reverse:udp://[::1]:9000@[::1]:9001", Mode("udp", "::1", 9000, "::1", 9001)),
        ("reverse:udp://[fe80::1%eth0]:9000@[::]:0", Mode("udp", "fe80::1%eth0", 9000, "::", 0)),
        ("reverse:tcp://127.0.0.1:35555@35556", Mode("tcp", "127.0.0.1", 35555, "127.0.0.1", 35556)),
        ("reverse:tcp://[::1]:35555@0.0.0.0:35556", Mode("tcp", "::1", 35555, "0.0.0.0", 35556)),
        ("reverse:udp://[::ffff:1.2.3.4]:9000@9001", Mode("udp", "::ffff:1.2.3.4", 9000, "127.0.0.1", 9001)),
    ],
)
def test_what_is_understood(spec: str, mode: Mode) -> None:
    assert parse_mode(spec) == mode


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "begins with 'reverse:'"),
        ("reverse", "begins with 'reverse:'"),
        ("socks5:9000", "begins with 'reverse:'"),
        ("reverse:127.0.0.1:9000@9001", "understands udp://, tcp://"),
        ("reverse:sctp://127.0.0.1:9000@9001", "understands udp://, tcp://"),
        ("reverse:tcp:127.0.0.1:9000@9001", "understands udp://, tcp://"),
        ("reverse:udp://127.0.0.1:9000", "does not say where to listen"),
        ("reverse:udp://127.0.0.1@9001", "'127.0.0.1' is no server"),
        ("reverse:udp://9000@9001", "is written HOST:PORT"),
        ("reverse:udp://127.0.0.1:0@9001", "is written HOST:PORT"),
        ("reverse:udp://127.0.0.1:70000@9001", "70000 is no port"),
        ("reverse:udp://127.0.0.1:" + "9" * 5000 + "@9001", "is no port"),
        ("reverse:udp://127.0.0.1:9000@", "'' is no listening address"),
        ("reverse:udp://127.0.0.1:9000@localhost", "'localhost' is no listening address"),
        ("reverse:udp://127.0.0.1:9000@65536", "65536 is no port"),
        ("reverse:udp://::1:9000@9001", "in brackets"),
        ("reverse:udp://[nonsense]:9000@9001", "in brackets"),
        ("reverse:udp://127.0.0.1:９０００@9001", "is no server"),
        ("reverse:udp://127.0.0.1:9000@ 9001", "is no listening address"),
    ],
)
def test_what_is_refused_and_why(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"as in reverse:udp://127\.0\.0\.1:9000@9001") as refusal:
        parse_mode(spec)
    assert says in str(refusal.value)
