"""`kiebitz check --summary` and `--at`: errors summed up by code and culprit, and those of one message."""

from __future__ import annotations

from collections import Counter

import pytest
from command import CAPTURES, kiebitz
from imported_databases import database_of
from strength import GAMES, few_captures

ALL = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)


@pytest.mark.parametrize("capture", few_captures(ALL))
def test_nothing_is_lost_in_a_summary(capture: str) -> None:
    diagnostics = kiebitz("check", database_of(capture), "--json").json
    found = kiebitz("check", database_of(capture), "--summary", "--json").json
    assert sum(row["count"] for row in found) == len(diagnostics)
    assert len({(row["severity"], row["code"], row["blame"], row["who"]) for row in found}) == len(found)
    by_code = Counter(
        (diagnostic["severity"], diagnostic["code"], diagnostic["blame"]) for diagnostic in diagnostics
    )
    for key, count in by_code.items():
        same = [row for row in found if (row["severity"], row["code"], row["blame"]) == key]
        assert sum(row["count"] for row in same) == count
        first = next(
            diagnostic
            for diagnostic in diagnostics
            if (diagnostic["severity"], diagnostic["code"], diagnostic["blame"]) == key
        )
        assert first["time"] == min(row["time"] for row in same)
    gravity = ["error", "warning", "note"]
    order = [(gravity.index(row["severity"]), -row["count"]) for row in found]
    assert order == sorted(order)


# One message.


@pytest.mark.parametrize("protocol", GAMES)
def test_each_message_has_the_diagnostics_that_are_reported_it(protocol: str) -> None:
    path = database_of(GAMES[protocol])
    diagnostics = kiebitz("check", path, "--json").json
    for number in sorted(
        {diagnostic["message"] for diagnostic in diagnostics if diagnostic["message"] is not None}
    )[:5]:
        found = kiebitz("check", path, "--at", f"#{number}", "--json").json
        assert found == [diagnostic for diagnostic in diagnostics if diagnostic["message"] == number]
