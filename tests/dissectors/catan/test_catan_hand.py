from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from tables import rows_of

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.model import Message, Stream
from kiebitz.dissectors.protocols.catan.game import COSTS
from kiebitz.dissectors.protocols.catan.grammar import GRAMMAR
from kiebitz.dissectors.protocols.catan.ledger import Claim, Counts, Entry, Hand, Ledger, plain, same, total
from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

COUNTS = st.dictionaries(st.sampled_from(ROHSTOFFE), st.integers(0, 4), max_size=5)


def hand(**counts: int) -> Hand:
    """Return a hand that is known."""
    known = Hand(ROHSTOFFE, is_empty=True)
    known.gain(counts)
    return known


def contains(known: Hand, true: dict[str, int]) -> bool:
    return all(known.least[kind] <= true[kind] <= known.most[kind] for kind in ROHSTOFFE) and (
        known.total in (None, sum(true.values()))
    )


@settings(max_examples=times(300), deadline=None)
@given(st.booleans(), COUNTS, st.data())
def test_known_values_are_always_true(is_empty: bool, first: dict[str, int], data: st.DataObject) -> None:
    true = dict.fromkeys(ROHSTOFFE, 0) if is_empty else dict.fromkeys(ROHSTOFFE, 0) | first
    known = Hand(ROHSTOFFE, is_empty)
    for _ in range(data.draw(st.integers(0, 12))):
        what = data.draw(st.sampled_from(("gain", "pay", "apply_counts")))
        is_open = data.draw(st.booleans())
        if what == "apply_counts":
            assert known.apply_counts(true if is_open else sum(true.values()))
        elif what == "gain":
            counts = data.draw(COUNTS)
            known.gain(counts if is_open else total(counts))
            true = {kind: true[kind] + counts.get(kind, 0) for kind in ROHSTOFFE}
        else:
            counts = {kind: data.draw(st.integers(0, true[kind])) for kind in ROHSTOFFE if true[kind]}
            assert known.pay(counts if is_open else total(counts))
            true = {kind: true[kind] - counts.get(kind, 0) for kind in ROHSTOFFE}
        assert contains(known, true)


@settings(max_examples=times(300, 5), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("gain", "pay", "apply_counts")), st.booleans(), COUNTS), max_size=12)
)
def test_no_message_is_reversed(steps: list[tuple[str, bool, dict[str, int]]]) -> None:
    known = Hand(ROHSTOFFE, True)
    for what, is_open, counts in steps:
        getattr(known, what)(counts if is_open else total(counts))
    for count in known.as_json().values():
        assert not isinstance(count, list) or count[0] < count[1]


@given(COUNTS, COUNTS)
def test_openly_exchanged_cards_stay_known(one: dict[str, int], other: dict[str, int]) -> None:
    known = hand(**one)
    known.gain(other)
    assert known.pay(one)
    assert known.is_known
    assert plain(known.least) == plain(other)
    assert known.total == total(other)


HANDS = """
# What is stolen is one of those that were there, and the only kind, if there is only one.
Holz=2,Erz=1: pay 1 = Holz=1-2,Erz=0-1
Holz=2: pay 1 = Holz=1
# All cards are gone, whatever they were.
Holz=2,Erz=1: pay 3 = nothing
# A player that pays with secretly gained cards does not have them twice.
nothing: gain 1, pay Erz=1 = nothing
# One of two unknown cards is known when it is paid; the other is not.
nothing: gain 2, pay Erz=1 = Holz=0-1,Lehm=0-1,Wolle=0-1,Getreide=0-1,Erz=0-1
# Cards that the player shows are known.
nothing: gain 3, apply_counts Erz=3 = Erz=3
# A total alone limits the number of each kind.
unknown: apply_counts 2 = Holz=0-2,Lehm=0-2,Wolle=0-2,Getreide=0-2,Erz=0-2
unknown: apply_counts 0 = nothing
# A player that pays the maximum of a kind has none left.
nothing: gain 2, not pay Erz=3 = nothing
# Unknown values are not shown.
unknown: = unknown
unknown: gain Erz=2, pay 1 = unknown
# More than there is cannot be paid, and what a server says is compared and adopted.
Holz=1: not pay Holz=2 =
Holz=1: not pay Erz=1 =
Holz=1: not pay 2 =
nothing: not pay 1 =
Holz=1,Erz=2: apply_counts Holz=1,Erz=2 = Holz=1,Erz=2
Holz=1,Erz=2: apply_counts 3 = Holz=1,Erz=2
Holz=1,Erz=2: not apply_counts Holz=3 = Holz=3
Holz=1,Erz=2: not apply_counts Holz=1 = Holz=1
Holz=1,Erz=2: not apply_counts 2 = Holz=0-2,Lehm=0-2,Wolle=0-2,Getreide=0-2,Erz=0-2
"""
"""A hand, messages (`not`: what contradicts it), and what is known then; between kinds is no blank."""


def counts_of(text: str) -> dict[str, Any] | int:
    if text.isdigit():
        return int(text)
    found: dict[str, Any] = {}
    for kind, _, count in (part.partition("=") for part in text.split(",") if "=" in part):
        least, _, most = count.partition("-")
        found[kind] = [int(least), int(most)] if most else int(least)
    return found


@pytest.mark.parametrize("row", rows_of(HANDS))
def test_what_is_known_of_a_hand(row: str) -> None:
    start, _, rest = row.partition(":")
    steps, _, result = rest.rpartition(" = ") if " = " in rest else (rest.removesuffix("="), "", "")
    known = Hand(ROHSTOFFE, is_empty=start != "unknown")
    known.gain(counts_of(start))
    for step in filter(None, steps.strip().split(", ")):
        name, counts = step.removeprefix("not ").split(" ")
        assert getattr(known, name)(counts_of(counts)) in (None, not step.startswith("not "))
    if result:
        right = counts_of(result)
        assert isinstance(right, dict)
        assert known.as_json() == ({} if result == "unknown" else dict.fromkeys(ROHSTOFFE, 0) | right)


# The ledger.

STREAM = Stream(1, "tcp", "127.0.0.1:1", "127.0.0.1:2", 0)


def observation(direction: Any = "s2c") -> Observation:
    message = Message(1, STREAM, direction, 0, "Ertrag", {}, "{}", 0, 0)
    (row, *_) = GRAMMAR.rows_named("s2c", "Ertrag")
    assert isinstance(row, JsonRow)
    return Observation(row, message, b"", 0, [message])


def claim(counts: Counts | None, why: str = "road", **how: Any) -> Claim:
    how = {"player": 1, "sign": -1, **how}
    return Claim(observation(), how.pop("player"), how.pop("sign"), counts, why, **how)


def entry(counts: Counts, player: int = 1, sign: int = -1) -> Entry:
    return Entry(observation(), player, sign, counts)


ROAD, CITY = COSTS["Straße"], COSTS["Stadt"]

PAIRS = [
    # A claim, an entry, and whether the one is what the other is for.
    (claim(ROAD), entry(ROAD), True),
    (claim(ROAD), entry({**ROAD, "Erz": 0}), True),
    (claim(ROAD), entry(2), True),
    (claim(2), entry(ROAD), True),
    (claim(ROAD), entry({"Holz": 1}), False),
    (claim(ROAD), entry(1), False),
    (claim(ROAD), entry(ROAD, player=2), False),
    (claim(ROAD), entry(ROAD, sign=1), False),
    (claim(CITY, partly=True), entry({"Erz": 3}), True),
    (claim(CITY, partly=True), entry({"Erz": 4}), False),
    (claim(CITY, partly=True), entry(5), True),
    (claim(CITY, partly=True), entry(6), False),
    (claim(None, "monopoly", kind="Erz"), entry({"Erz": 7}), True),
    (claim(None, "monopoly", kind="Erz"), entry(7), True),
    (claim(None, "monopoly", kind="Erz"), entry({"Erz": 7, "Holz": 1}), False),
]


@pytest.mark.parametrize("is_claim_first", [True, False])
@pytest.mark.parametrize(("due", "paid", "fits"), PAIRS)
def test_costs_are_matched_to_their_purchase_in_any_order(
    due: Claim, paid: Entry, fits: bool, is_claim_first: bool
) -> None:
    ledger = Ledger()
    due = Claim(due.observation, due.player, due.sign, due.counts, due.why, due.firm, due.partly, due.kind)
    paid = entry(paid.counts, paid.player, paid.sign)
    if is_claim_first:
        assert ledger.claim(due) == []
        assert ledger.enter(paid) is (due if fits else None)
    else:
        assert ledger.enter(paid) is None
        assert ledger.claim(due) == ([paid] if fits else [])
    assert paid.why == (due.why if fits else None)
    _, loose = ledger.close()
    assert loose == ([] if fits else [paid])


@pytest.mark.parametrize("is_claim_first", [True, False])
def test_a_yield_may_come_in_pieces(is_claim_first: bool) -> None:
    ledger = Ledger()
    due, pieces = claim(CITY, partly=True), [entry({"Erz": 3}), entry({"Getreide": 2})]
    if is_claim_first:
        ledger.claim(due)
    for piece in pieces:
        ledger.enter(piece)
    if not is_claim_first:
        assert ledger.claim(due) == pieces
    assert ledger.close() == ([], [])


def test_missing_messages_are_due_at_the_end() -> None:
    ledger = Ledger()
    due = claim(CITY, partly=True)
    ledger.claim(due)
    ledger.enter(entry({"Erz": 3}))
    assert ledger.close() == ([due], [])
    assert due.due == {"Getreide": 2}
    assert ledger.close() == ([], [])


@pytest.mark.parametrize(
    "due",
    [claim(1, "robber", firm=False), claim(None, "monopoly", kind="Erz"), claim(CITY, short=frozenset(CITY))],
)
def test_optional_messages_are_not_due(due: Claim) -> None:
    ledger = Ledger()
    ledger.claim(due)
    assert ledger.close() == ([], [])


def test_mandatory_parts_precede_optional_ones() -> None:
    ledger = Ledger()
    may, must = claim(1, "robber", firm=False), claim({"Holz": 1}, "trade")
    ledger.claim(may)
    ledger.claim(must)
    assert ledger.enter(entry(1)) is must


def test_hidden_values_are_inferred_if_unambiguous() -> None:
    ledger = Ledger()
    ledger.claim(claim(ROAD))
    assert ledger.expected(1, -1, 2) == ROAD
    assert ledger.expected(1, -1, 1) is None
    assert ledger.expected(2, -1, 2) is None
    assert ledger.expected(1, 1, 2) is None
    ledger.claim(claim({"Erz": 2}))
    assert ledger.expected(1, -1, 2) is None


def test_free_roads_are_waived_up_to_so_many() -> None:
    ledger = Ledger()
    for _ in range(3):
        ledger.claim(claim(ROAD))
    assert ledger.waive(1, "road", 2) == 2
    assert ledger.waive(2, "road", 2) == 0
    assert ledger.waive(1, "road", 2) == 1


def test_a_request_that_is_refused_is_forgotten() -> None:
    ledger = Ledger()
    asked = observation("c2s")
    ledger.claim(Claim(asked, 1, -1, {"Holz": 4}, "sea trade"))
    ledger.claim(claim(ROAD))
    ledger.refuse(asked.message)
    assert [due.why for due in ledger.claims] == ["road"]


@pytest.mark.full
def test_the_oldest_are_forgotten() -> None:
    ledger = Ledger()
    for number in range(1, 1001):
        ledger.enter(entry({"Holz": number}))
        ledger.claim(claim({"Erz": number}))
    unmet, loose = ledger.close()
    assert len(unmet) == len(loose) == 100
    assert loose[-1].counts == {"Holz": 1000}


@given(COUNTS, COUNTS)
def test_counts_ignore_other_events(one: dict[str, int], other: dict[str, int]) -> None:
    full = dict.fromkeys(ROHSTOFFE, 0)
    assert same(one, full | one)
    assert same(one, total(one))
    assert same(one, other) == (full | one == full | other)
