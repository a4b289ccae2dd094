"""Drafts of captures and of samples of courses' protocols, compared with their grammars."""

from __future__ import annotations

from functools import cache

import pytest
from command import CAPTURES, ROOT
from draft_measure import COURSES, EXAMPLES, Measures, Share, compare, dissector_in, draft_of, draft_of_course
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
    "catan-lurche-py-3p.pcap.gz",
    "okey-head-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
]
"""A capture of each protocol, for the quick run."""

PORTS = {"cgml": [7001, 7002, 7003]}
"""Ports of protocols with several servers."""

COURSE_FILES = (
    "go_nu6",
    "hangman",
    "hive",
    "jsonrpc",
    "kalah",
    "ludo",
    "numbers",
    "othello",
    "pexeso",
    "quoridor",
    "tresenraya",
    "uno",
)
"""Samples of courses of which a draft is written; none has more than forty messages."""

REFUSED = {
    # Packets of cards have no last line.
    "schafkopf-1.3-2humans.pcap": "blocks of lines that end in '!END', and lines that end without it",
    "schafkopf-old-1.0.pcap": "blocks of lines that end in '!END', and lines that end without it",
    "monopoly": "lines that belong to the message before them, such as '#FFA500:' and '#00FF00:'",
}
"""Captures and samples of which no draft is written, with what is seen instead."""

LEAST = {
    "names": (0.98, 0.95),
    "fields": (0.9, 0.9),
    "players": (0.8, 0.9),
    "answers": (0.9, 0.9),
    "broadcasts": (0.94, 0.94),
    "heartbeats": (1.0, 1.0),
    "logins": (0.5, 1.0),
}
"""Least recall and precision in all written drafts together."""


@cache
def _measured(name: str) -> tuple[Measures, str]:
    """Return the measures of a draft, and what is seen if it is not written."""
    if name in DRAFTED:
        protocol = DRAFTED[name]
        draft, conversations = draft_of(str(CAPTURES / name), PORTS.get(protocol, []))
        dissector = dissector_of(protocol)
    elif name == "roborally":
        draft, conversations = draft_of(str(CAPTURES / "roborally-1.pcap.gz"))
        dissector = dissector_in(ROOT / "docs" / "examples" / "roborally.toml")
    else:
        draft, conversations = draft_of_course(name)
        dissector = dissector_in(EXAMPLES.get(name, COURSES / f"{name}.toml"))
    assert dissector is not None
    return compare(draft, conversations, dissector), draft.seen


WRITTEN = [name for name in (*DRAFTED, "roborally", *COURSE_FILES) if name not in REFUSED]


def _table() -> str:
    lines = []
    for name in WRITTEN:
        measures, _ = _measured(name)
        lines.append(f"{name:40}" + "  ".join(f"{key} {share}" for key, share in measures.items()))
    return "\n".join(lines)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_drafts_agree_with_the_grammars() -> None:
    # One test: each process would draft all captures anew.
    for measure, (recall, precision) in LEAST.items():
        total = Share(0, 0, 0)
        for name in WRITTEN:
            total += _measured(name)[0][measure]
        assert total.expected
        assert total.recall >= recall, f"{measure} {total}\n{_table()}"
        assert total.precision >= precision, f"{measure} {total}\n{_table()}"


@pytest.mark.full(but=1)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", a_few(WRITTEN, [*QUICK, *COURSE_FILES]))
def test_a_draft_is_written_if_it_dissects_its_traffic(name: str) -> None:
    measures, seen = _measured(name)
    assert not seen
    assert measures["names"].recall >= 0.9


@pytest.mark.parametrize("name", a_few(REFUSED, ["monopoly"]))
def test_a_wrong_draft_is_not_written(name: str) -> None:
    assert _measured(name)[1] == REFUSED[name]
