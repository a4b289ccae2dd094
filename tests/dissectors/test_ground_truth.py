"""Imported rounds against what the programs themselves logged of them (captures/*.truth.json)."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest
from maexchen_logs import CAPTURES, packets, record
from strength import a_few, every

from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, endpoints

TRUTHS = sorted(CAPTURES.glob("maexchen-*.truth.json"))
NAMES = [path.name.removesuffix(".truth.json") for path in TRUTHS]

Round = dict[str, Any]
ACTIONS = {
    "turn": "turn",
    "rolls": "rolls",
    "rolled": "rolled",
    "announced": "announced",
    "wants_to_see": "sees",
}
BROADCAST = ("rolls", "announced", "sees")


def told_rounds(name: str) -> list[Round]:
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    rounds = [*truth["round_list"], *([truth["unfinished"]] if truth["unfinished"] else [])]
    return [{key: value for key, value in one.items() if key not in ("start", "end")} for one in rounds]


def seen_rounds(connection: sqlite3.Connection) -> list[Round]:
    rounds = []
    for (game,) in connection.execute("SELECT id FROM games ORDER BY id").fetchall():
        one: Round = dict.fromkeys(("number", "players", "canceled", "actual", "lost", "reason", "score"))
        one["actions"] = []
        events = connection.execute("SELECT kind, data FROM events WHERE game_id = ? ORDER BY seq", (game,))
        for kind, text in events:
            data = json.loads(text)
            if kind in ACTIONS:
                action = {"t": ACTIONS[kind], "who": data["name"]}
                one["actions"].append(action | ({"dice": data["dice"]} if "dice" in data else {}))
            elif kind == "round_started":
                one |= {"number": data["round"], "players": data["players"]}
            elif kind == "round_canceled":
                one["canceled"] = data["reason"]
            elif kind == "actual_dice":
                one["actual"] = data["dice"]
            elif kind == "lost":
                one |= {"lost": data["names"], "reason": data["reason"]}
            elif kind == "score":
                one["score"] = data["scores"]
        rounds.append(one)
    return rounds


def public(rounds: list[Round]) -> list[Round]:
    return [one | {"actions": [a for a in one["actions"] if a["t"] in BROADCAST]} for one in rounds]


def in_common(truth: list[Round], seen: list[Round]) -> int:
    first, second = ([json.dumps(one, sort_keys=True) for one in rounds] for rounds in (truth, seen))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


def server_errors(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT code, text FROM diagnostics WHERE severity = 'error' AND blame != 'client'"
    ).fetchall()


def conversation(traffic: list[RawPacket], number: int) -> list[RawPacket]:
    """Return the packets of the client that is the `number`th by how much it talks."""
    decoder = PacketDecoder()
    by_client: dict[str, list[RawPacket]] = {}
    for packet in traffic:
        datagram = decoder.decode(packet[1], packet[2], packet[3], packet[0])
        if isinstance(datagram, tuple):
            source, destination = endpoints(datagram[0])
            client = destination if source.endswith((":9000", ":4711")) else source
            by_client.setdefault(client, []).append(packet)
    return sorted(by_client.values(), key=len, reverse=True)[number]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", every(2, NAMES))
def test_all_conversations_together_give_the_true_state(name: str) -> None:
    connection = record(packets(name))
    logged = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    truth = told_rounds(name)
    seen = seen_rounds(connection)
    # What the program had not finished logging is still starting, or has only begun, in the capture.
    finished = len(logged["round_list"])
    assert seen[:finished] == truth[:finished]
    assert [one["players"] for one in seen[finished : len(truth)]] == [
        one["players"] for one in truth[finished:]
    ]
    assert len(seen) <= finished + 1
    assert server_errors(connection) == []
    query = "SELECT data ->> 'scores' FROM events WHERE kind = 'score' ORDER BY id DESC LIMIT 1"
    assert json.loads(connection.execute(query).fetchone()[0]) == logged["final_score"]
    counts = connection.execute("SELECT name, count(*) FROM messages WHERE direction = 's2c' GROUP BY name")
    assert dict(counts.fetchall()) == logged["sent_by_type"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", NAMES)
def test_one_conversation_has_all_broadcasts(name: str) -> None:
    connection = record(conversation(packets(name), 0))
    truth = public(told_rounds(name))
    seen = public(seen_rounds(connection))
    # The first and the last round may be incomplete: late joining, or the end of the capture.
    assert in_common(truth, seen) >= len(seen) - 2
    assert server_errors(connection) == []


def _from_the_middle(traffic: list[RawPacket]) -> list[RawPacket]:
    return traffic[len(traffic) // 3 :]


def _only_the_server(traffic: list[RawPacket]) -> list[RawPacket]:
    return [packet for packet in traffic if packet[2][34:36] in (b"\x23\x28", b"\x12\x67")]


def _with_losses(traffic: list[RawPacket]) -> list[RawPacket]:
    chance = random.Random(1)
    return [packet for packet in traffic if chance.random() > 0.03]


def _out_of_order(traffic: list[RawPacket]) -> list[RawPacket]:
    chance = random.Random(1)
    mixed = list(traffic)
    for at in range(len(mixed) - 1):
        first, second = mixed[at : at + 2]
        if chance.random() < 0.05 and second[0] - first[0] < 5_000_000:
            mixed[at : at + 2] = second, first
    return mixed


HARD_TIMES: list[tuple[Callable[[list[RawPacket]], list[RawPacket]], float]] = [
    (_from_the_middle, 0.6),
    (_only_the_server, 1.0),
    (_with_losses, 0.95),
    (_out_of_order, 0.95),
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("hardship", "share"), HARD_TIMES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize(
    "name", a_few([name for name in NAMES if "tiny" not in name or "old" in name], ["maexchen-head-odd"])
)
def test_a_bad_network_causes_no_violations(
    name: str, hardship: Callable[[list[RawPacket]], list[RawPacket]], share: float
) -> None:
    connection = record(hardship(packets(name)))
    truth = public(told_rounds(name))
    seen = public(seen_rounds(connection))
    assert len(seen) <= len(truth) + 2
    if hardship is _from_the_middle:
        truth = truth[-len(seen) :]
        share = 1 - 3 / len(seen)
    assert in_common(truth, seen) >= share * len(truth) - 1
    assert server_errors(connection) == []


@pytest.mark.parametrize("name", ["maexchen-head-tiny", "maexchen-old-20110928-seed-tiny"])
def test_correct_players_get_no_error(name: str) -> None:
    connection = record(packets(name))
    assert connection.execute("SELECT text FROM diagnostics WHERE severity != 'note'").fetchall() == []
