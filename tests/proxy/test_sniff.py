from __future__ import annotations

import contextlib
import ctypes.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from networks import needs_libpcap, needs_rights
from strength import a_few

from kiebitz.proxy.capture.live import Sniffer, SniffError
from kiebitz.proxy.capture.packets import PacketDecoder, endpoints


@contextlib.contextmanager
def pair(family: int, host: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket(family, socket.SOCK_DGRAM) as two:
            one.bind((host, 0))
            two.bind((host, 0))
            yield one, two
    except OSError as error:
        pytest.skip(f"{host} cannot be used here: {error}")


@needs_rights
@needs_libpcap
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_each_datagram_comes_once_and_in_order(family: int, host: str) -> None:
    # The largest goes into one packet on this interface; nothing of it may be cut off.
    payloads = [b"hello", b"", b"x" * 65_000, b"bye"]
    with pair(family, host) as (one, two):
        port, other = one.getsockname()[1], two.getsockname()[1]
        with Sniffer("lo", f"udp port {port}") as sniffer:
            for payload in payloads:
                one.sendto(payload, two.getsockname())
            two.sendto(b"answer", one.getsockname())
            packets = []
            while batch := sniffer.read(0.3, limit=2):
                assert len(batch) <= 2
                packets += batch
            assert sniffer.dropped == 0
    decoder = PacketDecoder()
    found = [decoder.decode(linktype, data, wirelen, ts_ns) for ts_ns, linktype, data, wirelen in packets]
    name = f"[{host}]" if ":" in host else host
    there, back = (f"{name}:{port}", f"{name}:{other}"), (f"{name}:{other}", f"{name}:{port}")
    assert [(endpoints(one[0]), one[1], one[2]) for one in found if isinstance(one, tuple)] == [
        *((there, payload, 0) for payload in payloads),
        (back, b"answer", 0),
    ]
    times = [packet[0] for packet in packets]
    assert times == sorted(times)
    assert abs(time.time_ns() - times[0]) < 10_000_000_000


@needs_rights
def test_without_a_filter_and_without_traffic() -> None:
    with pair(socket.AF_INET, "127.0.0.1") as (one, two), Sniffer("lo") as sniffer:
        one.sendto(b"unfiltered", two.getsockname())
        # Other programs may use the loopback at the same time.
        end = time.monotonic() + 10
        while not any(b"unfiltered" in packet[2] for packet in sniffer.read(1)):
            assert time.monotonic() < end
        begun = time.monotonic()
        sniffer.read(0)
        assert time.monotonic() - begun < 0.5


@needs_rights
def test_drops_by_the_kernel_are_counted() -> None:
    with pair(socket.AF_INET, "127.0.0.1") as (one, two), Sniffer("lo", receive_buffer=1) as sniffer:
        for _ in range(200):
            one.sendto(bytes(1000), two.getsockname())
        dropped = sniffer.dropped
        assert dropped > 100
        sniffer.close()
        # Other programs' packets may have been dropped meanwhile; from now on none are.
        kept = sniffer.dropped
        assert kept >= dropped
        one.sendto(bytes(1000), two.getsockname())
        assert sniffer.dropped == kept


def test_interface_that_is_not_there() -> None:
    names = [name for _, name in socket.if_nameindex()]
    with pytest.raises(SniffError) as caught:
        Sniffer(names[0] + "x")
    assert str(caught.value) == (
        f"there is no network interface {names[0]}x; did you mean {names[0]}? "
        f"Available are: {', '.join(names)}"
    )


@needs_libpcap
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lo is Linux's name")
def test_filter_that_is_not_valid() -> None:
    with pytest.raises(SniffError) as caught:
        Sniffer("lo", "udp prt (9)")
    sentence, _, reason = str(caught.value).partition(": ")
    assert sentence == "the capture filter 'udp prt (9)' is not valid"
    # scapy before 2.8 has no reason.
    assert "syntax error" in reason or (not reason and version("scapy").startswith("2.7."))
    assert not reason.endswith(")")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lo is Linux's name")
def test_filter_without_libpcap(monkeypatch: pytest.MonkeyPatch) -> None:
    # As ctypes finds it: not at all.
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.delitem(sys.modules, "scapy.libs.winpcapy", raising=False)
    with pytest.raises(SniffError) as caught:
        Sniffer("lo", "udp")
    assert "libpcap, which is not installed" in str(caught.value)


@pytest.mark.full
@pytest.mark.parametrize("bpf_filter", a_few([None, "udp"], ["udp"]))
def test_missing_rights(bpf_filter: str | None) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and setpriv is None:
        pytest.skip("setpriv is not there to take away root's rights")
    if not sys.platform.startswith("linux"):
        pytest.skip("lo is Linux's name")
    without = [setpriv, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 and setpriv else []
    code = (
        "import sys; from kiebitz.proxy.capture.live import *\n"
        f"try: Sniffer('lo', {bpf_filter!r})\n"
        "except SniffError as error: print(error)"
    )
    done = subprocess.run([*without, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if "libpcap" in done.stdout:
        pytest.skip("libpcap is not installed")
    assert done.stdout.startswith("capturing on lo needs a right that this user does not have.")
    assert done.stderr == ""
