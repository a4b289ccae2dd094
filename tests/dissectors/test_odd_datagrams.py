from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from typing import Any

import pytest
from maexchen_logs import CAPTURES, packets, record

MANIFEST: dict[str, Any] = json.loads((CAPTURES / "maexchen-head-odd.manifest.json").read_text())

NOT_UTF_8 = {"invalid utf-8 name", "latin-1 name"}
"""Registered under a name with U+FFFD in it."""

NOTED = {"semicolon in name": "surplus-fields", "egon from 127.0.0.2": "name-taken"}
"""Harmless: real servers take the one, and the other is only too late."""

Violation = tuple[str, str, str, int, int, str | None, int]
"""Severity, code, blame, offset, length, expected, and the offset of the datagram."""


@pytest.fixture(scope="module")
def connection() -> sqlite3.Connection:
    return record(packets("maexchen-head-odd"))


def diagnostics_of(connection: sqlite3.Connection, client: str) -> list[Violation]:
    return connection.execute(
        "SELECT d.severity, d.code, d.blame, d.offset, d.length, d.expected, coalesce(m.offset, d.offset)"
        " FROM diagnostics d LEFT JOIN messages m ON m.id = d.message_id"
        " JOIN streams s ON s.id = d.stream_id"
        " WHERE s.client = ? AND d.direction = 'c2s' AND d.code != 'dialect'"
        " ORDER BY d.offset",
        (client,),
    ).fetchall()


def is_malformed(sent: dict[str, Any]) -> bool:
    refused = not sent["replies"] or sent["replies"][0] == "REJECTED;INVALID_NAME"
    return refused or sent["label"] in NOT_UTF_8


SCRIPTED: dict[str, list[dict[str, Any]]] = defaultdict(list)
for sent in MANIFEST["scripted"]:
    SCRIPTED[sent["src"]].append(sent)
PLAYERS = {f"127.0.0.1:{port}" for port in MANIFEST["play_ports"].values()}


@pytest.mark.parametrize("client", [client for client in SCRIPTED if client not in PLAYERS])
def test_scripted_datagrams(connection: sqlite3.Connection, client: str) -> None:
    sent = SCRIPTED[client]
    found = diagnostics_of(connection, client)
    notes = [violation for violation in found if violation[0] == "note"]
    errors = [violation for violation in found if violation[0] != "note"]
    assert len(errors) == sum(map(is_malformed, sent))
    assert [violation[1] for violation in notes] == [
        NOTED[one["label"]] for one in sent if one["label"] in NOTED
    ]
    size = sum(one["len"] for one in sent)
    for severity, _, blame, offset, length, expected, _ in errors:
        assert (severity, blame) == ("error", "client")
        assert 0 <= offset <= offset + length <= size
        assert expected


def played(who: str) -> list[tuple[int, bytes, bool]]:
    tokens: dict[str, str] = {}
    offset = len(
        next(one for one in MANIFEST["scripted"] if one["src"].endswith(f":{MANIFEST['play_ports'][who]}"))[
            "text"
        ]
    )
    lines = []
    for speaker, text in MANIFEST["play"]:
        if speaker == who:
            for question in ("ROUND STARTING", "YOUR TURN", "ROLLED"):
                if text.startswith(question):
                    tokens[question] = text.rpartition(";")[2]
        elif speaker == f"{who}>":
            right = False
            for answer, question in (
                ("JOIN", "ROUND STARTING"),
                ("ROLL", "YOUR TURN"),
                ("ANNOUNCE;[1-6],[1-6]", "ROLLED"),
            ):
                if question in tokens and re.fullmatch(f"{answer};{tokens[question]}", text):
                    del tokens[question]
                    right = True
            if text.startswith("ANNOUNCE; 1 , 6 ;"):
                # Real servers take it, so the token is used up; it only gets a note.
                del tokens["ROLLED"]
            lines.append((offset, text.encode(), right))
            offset += len(text.encode())
    return lines


@pytest.mark.parametrize("who", MANIFEST["play_ports"])
def test_datagrams_in_the_game(connection: sqlite3.Connection, who: str) -> None:
    found = diagnostics_of(connection, f"127.0.0.1:{MANIFEST['play_ports'][who]}")
    for offset, data, right in played(who):
        here = [violation for violation in found if offset <= violation[6] < offset + len(data)]
        assert len(here) == (0 if right else 1), data
        for severity, _, blame, *_ in here:
            assert blame == "client"
            assert severity == ("note" if data.startswith(b"ANNOUNCE; 1") else "error")
