"""The relay's modes as users write them."""

from __future__ import annotations

import pytest
from conversation_files import blocks, check
from snapshots import DATA

from kiebitz.proxy.relay.modes import Mitmproxy, parse_mode


def test_modes() -> None:
    (block,) = blocks(DATA / "relay_modes.txt").values()
    modes = {spec: parse_mode(spec) for spec in block.steps}
    check(block, "\n".join(f"{spec}\n    {mode!r}" for spec, mode in modes.items()))
    for mode in modes.values():
        assert isinstance(mode, Mitmproxy) or parse_mode(str(mode)) == mode


def test_a_port_of_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a port"):
        parse_mode("reverse:udp://127.0.0.1:" + "9" * 5000 + "@9001")
