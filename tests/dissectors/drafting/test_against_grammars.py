"""Drafts of the built-in protocols' captures, compared with their grammars."""

from __future__ import annotations

from functools import cache

import pytest
from command import CAPTURES
from draft_measure import Measures, Share, compare, draft_of
from strength import a_few

from kiebitz.dissectors.registry import dissector_of

DRAFTED = {
    "maexchen-fork-pybots.pcap.gz": "maexchen",
    "maexchen-head-port4711.pcap": "maexchen",
    "maexchen-old-20111003.pcap": "maexchen",
    "schafkopf-1.3-2humans.pcap": "schafkopf",
    "schafkopf-old-1.0.pcap": "schafkopf",
    "catan-eisfrei-game2-3p.pcap.gz": "catan",
    "catan-infrarot-game2-3p.pcap.gz": "catan",
    "catan-lurche-py-3p.pcap.gz": "catan",
    "catan-niedlichepixel-game2-3p.pcap.gz": "catan",
    "catan-yaks-g1-3p.pcap.gz": "catan",
    "okey-head-game-win.pcap.gz": "okey",
    "okey-seed-game-win.pcap.gz": "okey",
    "okey-head-chat.pcap.gz": "okey",
    "okey-seed-lobby.pcap.gz": "okey",
    "cgml-hands.pcap.gz": "cgml",
    "cgml-tiny.pcap.gz": "cgml",
}
"""Captures with their protocols."""

QUICK = [
    "maexchen-fork-pybots.pcap.gz",
    "schafkopf-old-1.0.pcap",
    "catan-lurche-py-3p.pcap.gz",
    "okey-head-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
]
"""A capture of each protocol, for the quick run."""

PORTS = {"cgml": [7001, 7002, 7003]}
"""Ports of protocols with several servers."""

LEAST = {
    "names": (0.98, 0.95),
    "fields": (0.9, 0.9),
    "players": (0.8, 0.9),
    "answers": (0.9, 0.9),
    "broadcasts": (0.94, 0.94),
    "heartbeats": (1.0, 1.0),
    "logins": (0.5, 1.0),
}
"""Least recall and precision in all captures together."""

REFUSED = {"schafkopf-1.3-2humans.pcap", "schafkopf-old-1.0.pcap"}
"""Captures of which no draft is written: Schafkopf's packets of cards have no last line."""


@cache
def _measured(capture: str) -> tuple[Measures, bool]:
    """Return the measures of a capture's draft, and True if it is written."""
    protocol = DRAFTED[capture]
    draft, conversations = draft_of(str(CAPTURES / capture), PORTS.get(protocol, []))
    dissector = dissector_of(protocol)
    assert dissector is not None
    return compare(draft, conversations, dissector), not draft.seen


def _table() -> str:
    lines = []
    for capture in DRAFTED:
        measures, _ = _measured(capture)
        lines.append(f"{capture:40}" + "  ".join(f"{key} {share}" for key, share in measures.items()))
    return "\n".join(lines)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_drafts_agree_with_the_grammars() -> None:
    # One test: each process would draft all captures anew.
    for measure, (recall, precision) in LEAST.items():
        total = Share(0, 0, 0)
        for capture in DRAFTED:
            total += _measured(capture)[0][measure]
        assert total.expected
        assert total.recall >= recall, f"{measure} {total}\n{_table()}"
        assert total.precision >= precision, f"{measure} {total}\n{_table()}"


@pytest.mark.full(but=1)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("capture", a_few(DRAFTED, QUICK))
def test_a_draft_is_written_if_it_dissects_its_capture(capture: str) -> None:
    measures, is_written = _measured(capture)
    assert is_written == (capture not in REFUSED)
    assert measures["names"].recall >= 0.9
