"""The flows of a mitmproxy, as the addon journals them: what is a stream, and what it holds."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from conversation_files import Block, blocks, check_below
from mitmproxy.tcp import TCPFlow, TCPMessage
from mitmproxy.test.tflow import ttcpflow, tudpflow
from mitmproxy.udp import UDPFlow, UDPMessage
from snapshots import DATA
from tcp_segments import told

from kiebitz.dissectors.model import Chunk, Item
from kiebitz.proxy.journal.reader import JournalReader
from kiebitz.proxy.journal.writer import MAX_PAYLOAD, JournalWriter
from kiebitz.proxy.mitmproxy.streams import FlowJournal, StreamJournal


def flow_of(step: str) -> TCPFlow | UDPFlow:
    flow = ttcpflow(messages=False) if step.startswith("tcp") else tudpflow(messages=False)
    flow.client_conn.peername = ("2001:db8::1", 40_000)
    flow.server_conn.peername = None if "by name" in step else ("198.51.100.7", 9000)
    flow.server_conn.address = ("game.example", 9000)
    flow.server_conn.error = None
    flow.messages = []
    flow.live = "from file" not in step
    return flow


def journaled(steps: list[str], folder: Path) -> tuple[list[Item], list[str]]:
    """Return the items and notices of the steps of a line in mitmproxy_flows.txt."""
    notices: list[str] = []
    writer = JournalWriter(folder, on_trouble=print)
    streams = StreamJournal(writer, lambda code, text: notices.append(f"! {code}: {text}"))
    addon = FlowJournal(streams)
    flow = flow_of("tcp")
    for step in steps:
        word, _, text = step.partition(" ")
        if word in ("tcp", "udp"):
            flow = flow_of(step)
        elif step == "end all":
            streams.end_all(5)
        elif word == "error":
            numbered = re.sub(r"Errno (E\w+)", lambda name: f"Errno {getattr(errno, name[1])}", text)
            flow.server_conn.error = numbered or None
            addon.tcp_error(flow)
        else:
            kind = "tcp" if isinstance(flow, TCPFlow) else "udp"
            if word != "end":
                message = (TCPMessage if kind == "tcp" else UDPMessage)(word == "c", text.strip("'").encode())
                flow.messages.append(message)  # type: ignore[arg-type]  # of its own kind
            getattr(addon, f"{kind}_{'end' if word == 'end' else 'message'}")(flow)
    writer.close()
    reader = JournalReader(folder)
    items = [item for batch in iter(reader.read, []) for item in batch]
    reader.close()
    return items, notices


@pytest.mark.parametrize(
    "block", blocks(DATA / "mitmproxy_flows.txt").values(), ids=lambda block: block.title
)
def test_cases(block: Block, tmp_path: Path) -> None:
    items, notices = journaled(block.steps[0].split("; "), tmp_path)
    # But for the time of an end.
    lines = [re.sub(r"^(\d+ [a-z]+) \d+$", r"\1", line) for line in told(items)] + notices
    check_below(block, lines)
    assert {item.stream.transport for item in items} <= {*re.findall("tcp|udp", block.steps[0])}


def test_data_longer_than_a_record_is_split(tmp_path: Path) -> None:
    items, _ = journaled(["tcp", f"c {'x' * (2 * MAX_PAYLOAD + 8)}", "end all"], tmp_path)
    sizes = [(item.offset, len(item.data)) for item in items if isinstance(item, Chunk)]
    assert sizes == [(0, MAX_PAYLOAD), (MAX_PAYLOAD, MAX_PAYLOAD), (2 * MAX_PAYLOAD, 8)]
    assert items[-1].ts_ns == 5
