"""The relay's modes as users write them."""

from __future__ import annotations

import pytest

from kiebitz.proxy.relay.modes import Mitmproxy, Mode, Reverse, Transparent, parse_mode


@pytest.mark.parametrize(
    ("spec", "mode"),
    [
        ("reverse:udp://127.0.0.1:9000@9001", Reverse("udp", "127.0.0.1", 9000, "127.0.0.1", 9001)),
        ("reverse:udp://localhost:9000@9001", Reverse("udp", "localhost", 9000, "127.0.0.1", 9001)),
        ("reverse:udp://game.example:1@0.0.0.0:65535", Reverse("udp", "game.example", 1, "0.0.0.0", 65535)),
        ("reverse:udp://[::1]:9000@[::1]:9001", Reverse("udp", "::1", 9000, "::1", 9001)),
        ("reverse:udp://[fe80::1%eth0]:9000@[::]:0", Reverse("udp", "fe80::1%eth0", 9000, "::", 0)),
        ("reverse:tcp://127.0.0.1:35555@35556", Reverse("tcp", "127.0.0.1", 35555, "127.0.0.1", 35556)),
        ("reverse:tcp://[::1]:35555@0.0.0.0:35556", Reverse("tcp", "::1", 35555, "0.0.0.0", 35556)),
        (
            "reverse:udp://[::ffff:1.2.3.4]:9000@9001",
            Reverse("udp", "::ffff:1.2.3.4", 9000, "127.0.0.1", 9001),
        ),
        ("transparent@9001", Transparent(None, 9001)),
        ("transparent@0.0.0.0:9001", Transparent("0.0.0.0", 9001)),
        ("transparent@[::]:9001", Transparent("::", 9001)),
        (
            "reverse:tls://game.example:443@9001",
            Mitmproxy("reverse:tls://game.example:443", "127.0.0.1", 9001),
        ),
        ("reverse:tls://[::1]:443@[::1]:9001", Mitmproxy("reverse:tls://[::1]:443", "::1", 9001)),
        ("reverse:wss://game.example@9001", Mitmproxy("reverse:tls://game.example:443", "127.0.0.1", 9001)),
        ("reverse:wss://[::1]@9001", Mitmproxy("reverse:tls://[::1]:443", "127.0.0.1", 9001)),
        (
            "reverse:wss://game.example:8443@9001",
            Mitmproxy("reverse:tls://game.example:8443", "127.0.0.1", 9001),
        ),
        ("reverse:ws://game.example@9001", Reverse("tcp", "game.example", 80, "127.0.0.1", 9001)),
        ("socks5", Mitmproxy("socks5", "127.0.0.1", 1080)),
        ("socks5@9050", Mitmproxy("socks5", "127.0.0.1", 9050)),
        ("wireguard@0.0.0.0:51820", Mitmproxy("wireguard", "0.0.0.0", 51820)),
        ("wireguard:/etc/keys.conf", Mitmproxy("wireguard:/etc/keys.conf", "127.0.0.1", 51820)),
        ("local", Mitmproxy("local")),
        ("local:firefox", Mitmproxy("local:firefox")),
        ("transparent", Mitmproxy("transparent", "127.0.0.1", 8080)),
    ],
)
def test_accepted_input(spec: str, mode: Mode) -> None:
    assert parse_mode(spec) == mode
    if not isinstance(mode, Mitmproxy):
        assert parse_mode(str(mode)) == mode


def test_a_port_of_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a port"):
        parse_mode("reverse:udp://127.0.0.1:" + "9" * 5000 + "@9001")
