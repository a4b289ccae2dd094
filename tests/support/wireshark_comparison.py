"""Messages and fields as tshark shows them with a generated dissector, compared with Kiebitz's own."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from command import TINY, kiebitz

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.wireshark.script import ascii_name

Shown = tuple[str, int, bool, tuple[tuple[str, str], ...]]
"""A message: its name, its length in bytes, True if it is malformed, and its fields by filter name."""


@dataclass
class Comparison:
    """Number of messages of a capture, and what differs."""

    messages: int = 0
    differences: list[str] = field(default_factory=list)


def tshark() -> str:
    """Return the path of tshark; skip the test if it is not installed, or runs no scripts here."""
    found = shutil.which("tshark")
    if found is None:
        pytest.skip("tshark is not installed")
    if not _runs_scripts(found):
        pytest.skip("this tshark runs no Lua scripts, as newer ones do for root")
    return found


@cache
def _runs_scripts(tshark: str) -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write('print("it runs")')
        script.flush()
        command = [tshark, "-X", f"lua_script:{script.name}", "-r", TINY, "-c", "1"]
        return b"it runs" in subprocess.run(command, capture_output=True, check=False).stdout


def script_of(protocol: str, folder: Path, *options: str) -> Path:
    """Return the file with the generated dissector of a protocol."""
    path = folder / f"{protocol}.lua"
    done = kiebitz("protocols", protocol, "-T", "lua", "-o", str(path), *options)
    assert done.status == 0, done.err
    return path


def compare(capture: Path, protocol: str, folder: Path, *options: str) -> Comparison:
    """Compare the messages of a capture, by direction of each connection."""
    script = script_of(protocol, folder, *options)
    done = kiebitz("messages", str(capture), *options, "--json")
    assert done.status == 0, done.err
    rows = done.json
    checked = kiebitz("check", str(capture), *options, "--json")
    dissector = _dissector(protocol, options)
    grammar = dissector.grammar
    is_carried = dissector.encapsulation is not None
    rules = {rule.code for rule in grammar.rules.values()}
    wrong = {
        row["message"]
        for row in json.loads(checked.out)
        if row["severity"] == "error" and row["group"] == "malformed" and row["code"] not in rules
    }
    streams = {row["id"]: row for row in kiebitz("streams", str(capture), *options, "--json").json}
    fields = (field for row in grammar.rows for field in row.fields)
    texts = _texts((field.name, field.type.wire_type() or {"kind": "text"}) for field in fields)
    ours: dict[tuple[str, str], list[Shown]] = defaultdict(list)
    servers = set()
    for row in rows:
        if streams[row["stream"]]["protocol"] != protocol:
            continue
        if not row["length"]:
            # An empty datagram reaches no dissector in Wireshark.
            continue
        if is_carried and row["name"] in {each.name for each in grammar.transport_rows}:
            continue
        servers.add((streams[row["stream"]]["transport"], row["server"].rpartition(":")[2]))
        ends = (row["client"], row["server"])
        key = ends if row["dir"] == "c2s" else ends[::-1]
        leaves = tuple(sorted(_leaves(protocol, texts, "", row["fields"])))
        # The bytes that carry a message count in our length, and not in that of tshark.
        length = 0 if is_carried else row["length"]
        ours[key].append((row["name"], length, row["id"] in wrong, leaves))
    theirs = _theirs(capture, protocol, script, servers, is_carried)
    found = Comparison(sum(map(len, ours.values())))
    for key in ours.keys() | theirs.keys():
        _compare_streams(found, key, ours[key], theirs[key])
    return found


def _compare_streams(found: Comparison, key: tuple[str, str], ours: list[Shown], theirs: list[Shown]) -> None:
    if ours == theirs:
        return
    mine, others = Counter(ours), Counter(theirs)
    missing, surplus = [*(mine - others).elements()], [*(others - mine).elements()]
    if not missing and not surplus:
        found.differences.append(f"{key}: another order")
    found.differences += [f"{key}: only Kiebitz: {each}" for each in missing]
    found.differences += [f"{key}: only tshark: {each}" for each in surplus]


def _theirs(
    capture: Path, protocol: str, script: Path, servers: Collection[tuple[str, str]], is_carried: bool
) -> dict[tuple[str, str], list[Shown]]:
    decode_as = [word for kind, port in sorted(servers) for word in ("-d", f"{kind}.port=={port},{protocol}")]
    if is_carried:
        decode_as = ["-o", f"{protocol}.ports:{','.join(port for _, port in sorted(servers))}"]
    command = [tshark(), "-n", "-X", f"lua_script:{script}", "-r", str(capture), *decode_as, "-T", "pdml"]
    command += ["-Y", f"{protocol} && !icmp"]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Lua:" not in done.stderr, done.stderr.decode()
    shown: dict[tuple[str, str], list[Shown]] = defaultdict(list)
    for packet in ElementTree.fromstring(done.stdout).iter("packet"):
        ends = {}
        transport = "tcp" if packet.find("proto[@name='tcp']") is not None else "udp"
        for each in packet.iter("field"):
            name = each.get("name", "")
            if name in ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst") or name.partition(".")[2] in (
                "srcport",
                "dstport",
            ):
                ends[name.partition(".")[2]] = each.get("show", "")
        host = "[{}]:{}" if ":" in ends["src"] else "{}:{}"
        key = host.format(ends["src"], ends["srcport"]), host.format(ends["dst"], ends["dstport"])
        for each in packet.iter("proto"):
            if each.get("name") == protocol:
                direction = _shown(each, f"{protocol}.message_direction")
                # A packet with RST ends the other direction, too.
                is_other = direction == ("s2c" if (transport, ends["dstport"]) in servers else "c2s")
                message = _message(protocol, each)
                shown[key[::-1] if is_other else key].append(
                    (message[0], 0, *message[2:]) if is_carried else message
                )
    return shown


def _shown(item: ElementTree.Element, name: str) -> str:
    """Return the value of the first field of this name."""
    return next(each.get("show", "") for each in item.iter("field") if each.get("name") == name)


def _message(protocol: str, item: ElementTree.Element) -> Shown:
    name, malformed, leaves = "", False, []
    for each in item.iter("field"):
        key, value = each.get("name", ""), each.get("show", "")
        if key == f"{protocol}.message_name":
            name = value
        elif key == f"{protocol}.malformed":
            malformed = True
        elif (
            key.startswith(f"{protocol}.")
            and key != f"{protocol}.message_direction"
            and each.get("hide") != "yes"
            and value
        ):
            leaves.append((key.lower(), _normal(value)))
    return name, int(item.get("size", "0")), malformed, tuple(sorted(leaves))


def _dissector(protocol: str, options: tuple[str, ...]) -> Dissector:
    if "-P" in options:
        text = Path(options[options.index("-P") + 1]).read_text("utf-8")
        return dissector_from(read_specification(text))
    return installed().dissectors[protocol]


class Texts(NamedTuple):
    """Fields that tshark shows as texts: those whose keys are data, and those of any shape."""

    scores: frozenset[str]
    anything: Mapping[str, int]
    """Of any shape, inside this number of lists."""


def _texts(kinds: Iterable[tuple[str, Mapping[str, Any]]]) -> Texts:
    scores, anything = set(), {}
    todo = [(path, kind, 0) for path, kind in kinds]
    while todo:
        path, kind, depth = todo.pop()
        if kind["kind"] == "scores":
            scores.add(path)
        if kind["kind"] == "json_any" or kind.get("any") is True:
            anything[path] = depth
        todo += [(path, each, depth) for each in kind.get("either", ())]
        todo += [(path, each, depth + 1) for each in filter(None, [kind.get("item")])]
        todo += [(f"{path}.{each['name']}", each["type"], 0) for each in kind.get("fields", ())]
    return Texts(frozenset(scores), anything)


def _leaves(protocol: str, texts: Texts, path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    name = f"{protocol}.{ascii_name(path)}".lower()
    if isinstance(value, dict | list) and texts.anything.get(path) == depth:
        yield name, _normal(json.dumps(value))
    elif isinstance(value, dict):
        for key, part in value.items():
            if path in texts.scores:
                yield name, f"{key}:{part}"
            else:
                yield from _leaves(protocol, texts, f"{path}.{key}" if path else key, part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(protocol, texts, path, part, depth + 1)
    elif value not in (None, ""):
        # An empty place is shown as an empty text.
        yield name, _normal(value)


def _normal(value: Any) -> str:
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(value), sort_keys=True)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.9g}"
    # XML has no control characters, and its attributes have blanks in place of line ends.
    text = " ".join(re.split(r"[ \t\r\n]+", str(value).replace("\0", "␀"))).strip()
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):x}", text)


def write_capture(path: Path, transport: str, port: int, frames: Iterable[tuple[Direction, bytes]]) -> None:
    """Write a conversation; a frame of more than one byte in a byte stream takes two segments."""
    halves = []
    for direction, data in frames:
        middle = len(data) // 2 if transport == "tcp" else 0
        halves += [(direction, part) for part in (data[:middle], data[middle:]) if part]
    write_conversations(path, transport, port, [Talk(halves)])


class Talk(NamedTuple):
    """A conversation: the data of its packets, and those that the capture lacks."""

    packets: Sequence[tuple[Direction, bytes]]
    lost: Collection[int] = ()
    """Numbers of packets, from 0, that the capture lacks."""
    begins: bool = True
    """True if the beginning of a connection is in the capture."""
    ends: str = ""
    """Flags of the packets that end a connection, such as `FA`."""


def write_conversations(path: Path, transport: str, port: int, talks: Iterable[Talk]) -> None:
    """Write conversations with one server, from the client's port 40000 on."""
    from scapy.utils import wrpcap

    packets = [
        packet
        for client, talk in enumerate(talks, 40_000)
        for packet in _packets_of(transport, {"c2s": client, "s2c": port}, talk)
    ]
    for number, packet in enumerate(packets):
        packet.time = number / 1000
    wrpcap(str(path), packets)


def _packets_of(transport: str, ports: Mapping[str, int], talk: Talk) -> Iterator[Any]:
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.l2 import Ether

    sent = {"c2s": 0, "s2c": 0}

    def packet(direction: Direction, data: bytes, flags: str) -> Any:
        other: Direction = "s2c" if direction == "c2s" else "c2s"
        source, target = ports[direction], ports[other]
        head = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:02") / IP(src="127.0.0.1", dst="127.0.0.1")
        if transport == "udp":
            return head / UDP(sport=source, dport=target) / data
        place = TCP(sport=source, dport=target, flags=flags, seq=sent[direction], ack=sent[other])
        sent[direction] += len(data) + ("S" in flags) + ("F" in flags)
        return head / place / data

    if transport == "tcp":
        begin = [packet("c2s", b"", "S"), packet("s2c", b"", "SA"), packet("c2s", b"", "A")]
        yield from begin if talk.begins else ()
    for number, (direction, data) in enumerate(talk.packets):
        made = packet(direction, data, "PA")
        if number not in talk.lost:
            yield made
    if talk.ends:
        yield packet("s2c", b"", talk.ends)
        if "F" in talk.ends:
            yield packet("c2s", b"", talk.ends)
