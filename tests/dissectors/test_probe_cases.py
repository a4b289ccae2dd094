from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

import msgspec
import pytest
from conversation_files import Block, conversations, file_dissector
from conversation_files import check as check_block
from inspected_captures import messages_of
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import CASES, cases
from message_cases import Case as Sample
from probe_places import Place, judged_with, lines_of, places_of
from snapshots import DATA, as_bytes, as_text
from strength import GAMES, a_few, times

from kiebitz.dissectors.conformance.expectations import (
    INPUT_DIRECTION,
    ROLES,
    NotApplicable,
    Situation,
    TargetRole,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Wrong
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing import actions as actions
from kiebitz.dissectors.probing.actions import Close, HalfClose, Pause, Reset, Send
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case import Case, select_cases
from kiebitz.dissectors.probing.case_generator import cases_by_rule, generate_cases, unmatched_patterns
from kiebitz.dissectors.probing.mutations import Mutator
from kiebitz.dissectors.probing.verdict import ObservedBehaviour, judge
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN

SAMPLES: dict[Dissector, list[Sample]] = {
    **CASES,
    NOUGHTS: cases(NOUGHTS, "sound"),
    KNOBELN: cases(KNOBELN, "sound"),
}

each_protocol = pytest.mark.parametrize("dissector", SAMPLES, ids=lambda dissector: dissector.protocol)
each_built_in = pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
each_role = pytest.mark.parametrize("role", ROLES)


PROTOCOLS = {dissector.protocol: dissector for dissector in SAMPLES}


def case_of(dissector: Dissector, role: TargetRole, name: str) -> Case:
    (case,) = [
        each for each in generate_cases(dissector, role) if each.name == f"{dissector.protocol}/{name}"
    ]
    return case


def sound_samples(dissector: Dissector, role: TargetRole) -> Iterator[tuple[bytes, Decoded]]:
    for sample in SAMPLES[dissector]:
        if sample.direction == INPUT_DIRECTION[role]:
            decoded = dissector.codec.decode(sample.data, sample.direction)
            if decoded.valid:
                yield sample.data, decoded


def recorded(dissector: Dissector, role: TargetRole) -> Iterator[tuple[bytes, Decoded]]:
    """Yield the messages of the small capture of a protocol."""
    for said in messages_of(GAMES[dissector.protocol]):
        if said.direction == INPUT_DIRECTION[role]:
            decoded = dissector.codec.decode(said.frame, said.direction)
            if decoded.valid:
                yield said.frame, decoded


# Single cases.

TEXT = DATA / "probe_cases.txt"
BLOCKS = conversations(TEXT)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.title)
def test_a_case_demands_this_and_sends_that(block: Block) -> None:
    """Below the case is what is demanded, then messages in whose place it sends what is below them.

    A line `if` has what the program does, and below it the verdict.

    After a message are, separated by bars, the next one of its sender (`then`), whether the target sends
    something before it (`waits`), a `heartbeat`, the `state`, and identifiers of `others`.
    """
    protocol, role, name = block.title.split(" ")
    dissector = PROTOCOLS.get(protocol) or file_dissector(TEXT, protocol)
    case = case_of(dissector, "server" if role == "server" else "client", name)
    said = case.expectation
    refusals = [f"refusal is {message} {field}={value}" for message, field, value in said.refusals]
    demand = [f"{said.level}: {' or '.join(said.right)}", *refusals, said.clause, said.quote]
    text = [f"    {' | '.join(filter(None, demand))}".replace(" None=None", "")]
    for step in block.steps:
        if step.startswith("if "):
            verdict = judge(case, msgspec.json.decode(step.removeprefix("if "), type=ObservedBehaviour))
            text += [step, f"    {verdict.word}: {verdict.why} ({', '.join(verdict.reactions)})"]
            continue
        text += [step, *(f"    {line}" for line in sent_lines(dissector, case, step))]
    check_block(block, "\n".join(text))


def sent_lines(dissector: Dissector, case: Case, step: str) -> Iterator[str]:
    frame, *around = step.split(" | ")
    about = dict(part.partition(" ")[::2] for part in around)
    kind, *values = about.get("others", "").split(" ")
    direction = INPUT_DIRECTION[case.role]
    decoded = dissector.codec.decode(as_bytes(frame), direction)
    known = decoded.row.identifiers(decoded.fields) if decoded.row is not None else []
    at = Situation(
        as_bytes(frame),
        as_bytes(about["then"]) if "then" in about else None,
        "waits" in about,
        state=json.loads(about.get("state", "{}")),
        others={one: values for one, _ in known if one.title == kind},
        heartbeat=as_bytes(about["heartbeat"]) if "heartbeat" in about else None,
    )
    if not case.fits(decoded):
        yield "this is not its message"
    try:
        made = case.actions(at)
    except NotApplicable as problem:
        yield f"{type(problem).__name__}: {problem}"
        return
    for action in made:
        match action:
            case Send(data, sender, is_wire):
                yield f"{'bytes' if is_wire else 'message'} of {sender}: {as_text(data)}"
            case Pause(seconds):
                yield f"pause of {seconds} s"
            case HalfClose(sender) | Close(sender) | Reset(sender):
                yield f"{type(action).__name__} by {sender}"


# The list.


@pytest.mark.full(but=3)
@each_protocol
@each_role
def test_names_are_unique_and_in_the_grammars_order(dissector: Dissector, role: TargetRole) -> None:
    cases = generate_cases(dissector, role)
    names = [case.name for case in cases]
    assert len({*names}) == len(names)
    assert all(re.fullmatch(rf"{dissector.protocol}(/[^/\s]+)+", name) for name in names)
    assert [case.name for case in generate_cases(dissector, role)] == names
    # What is in play is tried first.
    assert [case.is_in_play for case in cases] == sorted((case.is_in_play for case in cases), reverse=True)
    rows = [row for row in dissector.grammar.rows if row.direction == INPUT_DIRECTION[role]]
    places = [rows.index(case.of) for case in cases if case.of is not None]
    assert places == sorted(places)
    # Each message has cases, and each of its fields.
    assert {case.message for case in cases if case.of is not None} == {row.name for row in rows}
    assert all(case.sentence and "{" not in case.name for case in cases)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], 83),
        (["noughts/PUT"], 25),
        (["noughts/PUT/*"], 25),
        (["*/square/unknown", "*/endless"], 2),
        (["*/said", "noughts/game"], 7),
        (["noughts/PU"], 0),
    ],
)
def test_a_pattern_picks_cases(patterns: list[str], expected: int) -> None:
    assert len(select_cases(generate_cases(NOUGHTS, "server"), patterns)) == expected


_ODD = {
    *("empty", "too-long", "control", "markup", "outside-ascii"),
    *("far-away", "apart", "huge", "other-version"),
}


def check_kind(dissector: Dissector, case: Case, frame: bytes, before: Decoded) -> None:
    (sent,) = case.actions(Situation(frame))
    assert isinstance(sent, Send)
    direction = INPUT_DIRECTION[case.role]
    after = dissector.codec.decode(sent.data, direction)
    says_something_else = after.fields_json != before.fields_json or after.row is not before.row
    about = f"{case.name}: {frame!r} became {sent.data!r}, {after}"
    if case.kind == "spelling":
        assert after.valid, about
        assert after.fields_json == before.fields_json, about
        assert sent.data != frame, about
    elif case.kind == "dialect":
        assert after.valid, about
        assert after.row is case.of, about
    elif case.kind == "latin-1":
        with pytest.raises(UnicodeDecodeError):
            sent.data.decode()
    elif case.kind == "utf-16":
        assert sent.data.decode("utf-16-le") == frame.decode(errors="replace"), about
    elif case.kind == "byte-order-mark":
        assert sent.data == b"\xef\xbb\xbf" + frame, about
    elif case.kind == "cut":
        assert frame.startswith(sent.data), about
        assert sent.data != frame, about
    elif case.kind == "doubled":
        assert len(sent.data) > len(frame), about
    elif case.kind == "left-out":
        assert not after.valid or says_something_else, about
    elif case.kind.startswith(("nobodys-", "others-")):
        assert after.valid == before.valid, about
        assert says_something_else, about
    elif case.kind in _ODD:
        assert not after.valid or says_something_else, about
    else:
        # A text that only a dialect allows is wrong by the specification.
        is_dialect = after.row is not None and after.row.deviation is not None
        assert not after.valid or (is_dialect and after.row is not before.row), about
    if case.kind not in ("spelling", "dialect", "utf-16") and case.field is not None:
        check_place(dissector, case, frame, before, sent.data)


def check_place(dissector: Dissector, case: Case, frame: bytes, before: Decoded, sent: bytes) -> None:
    row, name = before.row, case.field
    assert row is not None
    assert name is not None
    place = dissector.codec.whole_place(frame, row, name) or dissector.codec.text_place(frame, row, name)
    if name not in before.fields or place is None or case.kind.startswith(("nobodys-", "others-")):
        # Then it is encoded again.
        return
    start, end = place[0], sum(place)
    assert sent[:start] == frame[:start], case.name
    assert sent.endswith(frame[end:]), case.name


_OF_FIELDS = ("spelling", "dialect", "utf-16", "byte-order-mark")


@pytest.mark.full(but=1)
@each_protocol
@each_role
def test_a_spoilt_message_is_what_its_case_says(dissector: Dissector, role: TargetRole) -> None:
    samples = [*sound_samples(dissector, role)]
    said = [*recorded(dissector, role)] if dissector in BUILT_IN and times(2, 1) == 2 else []
    not_made: set[str] = set()
    for case in generate_cases(dissector, role)[:: times(1, 5)]:
        if (case.field is None and case.kind not in _OF_FIELDS) or case.kind.startswith("others-"):
            continue
        places = [place for place in samples if case.fits(place[1])]
        assert places, f"{case.name}: no sample is its place"
        made = 0
        for frame, decoded in [*places, *[place for place in said if case.fits(place[1])][:20]]:
            try:
                check_kind(dissector, case, frame, decoded)
            except NotApplicable:
                continue
            made += 1
            if made == times(1_000_000, 2):
                break
        if not made:
            not_made.add(case.name)
    unmade = [name for name in not_made if not any(fnmatchcase(name, each) for each in _LACKING)]
    assert not unmade, sorted(unmade)


_LACKING = (
    "*/spelling/*",
    "*/other-case",
    "okey/+CATC.w/msg/empty",
    "cgml/connect.passive/opponent/*",
    "cgml/*/nobodys-name",
    "cgml/*/left-out",
    "cgml/dial.info/card/empty",
    "cgml/disconnect/disconnect/empty",
)


@pytest.mark.full(but=1)
@each_protocol
@each_role
def test_acts_are_pure(dissector: Dissector, role: TargetRole) -> None:
    samples = [*sound_samples(dissector, role)]
    for case in generate_cases(dissector, role)[:: times(1, 5)]:
        frame = next((frame for frame, decoded in samples if case.fits(decoded)), None)
        if frame is None:
            continue
        at = Situation(frame, following=frame)
        try:
            first = case.actions(at)
        except NotApplicable:
            continue
        assert case.actions(Situation(frame, following=frame)) == first
        assert at == Situation(frame, following=frame)
        sent = sum(len(act.data) for act in first if isinstance(act, Send))
        assert sent <= max(actions.ENDLESS_SIZE, 60_000, 20 * len(frame) + 30_000), case.name
        assert sum(act.seconds for act in first if isinstance(act, Pause)) <= 31, case.name


def test_a_text_that_is_right_is_not_passed_off_as_wrong() -> None:
    row = NOUGHTS.grammar.rows_named("c2s", "HELLO")[0]
    spoiler = Mutator(NOUGHTS, "c2s")
    with pytest.raises(NotApplicable, match="it is still valid"):
        spoiler.replace_text(row.fields[0], Wrong("unknown", "a name", "bob"), b"HELLO alice\r\n")
    with pytest.raises(NotApplicable, match="its content is unchanged"):
        spoiler.replace_text(row.fields[0], Wrong("odd", "a name", "alice", allowed=True), b"HELLO alice\r\n")


@pytest.mark.parametrize("way", [actions.send_bytewise, actions.send_slowly, actions.send_in_two])
@pytest.mark.parametrize("frame", [b"PUT 5\r\n", b"ab", b"x" * 1000])
def test_a_message_in_pieces_is_all_of_it(
    way: Callable[[Situation], actions.CaseActions], frame: bytes
) -> None:
    sent = [act for act in way(Situation(frame)) if isinstance(act, Send)]
    assert b"".join(act.data for act in sent) == frame
    assert all(act.data for act in sent)
    assert len(sent) > 1


def test_endless_data_is_bounded() -> None:
    sent = actions.send_endless(Situation(b"PUT 5\r\n"))
    data = b"".join(act.data for act in sent if isinstance(act, Send))
    assert len(data) == actions.ENDLESS_SIZE
    assert b"\n" not in data


# The specification's values.


@pytest.mark.full(but=1)
@each_built_in
def test_each_demand_is_of_some_case_and_has_its_clause(dissector: Dissector) -> None:
    assert [*unmatched_patterns(dissector)] == []
    for expectation in dissector.conformance.expectations.expectations:
        assert expectation.level == "open" or (expectation.clause and expectation.quote), expectation
        assert expectation.right
        assert "refuses" not in expectation.right or expectation.level == "open" or expectation.refusals, (
            expectation
        )
        away: Direction = "s2c" if expectation.role == "server" else "c2s"
        for refusal in expectation.refusals:
            rows = dissector.grammar.rows_named(away, refusal.message)
            assert rows, refusal
            fields = {field.name for row in rows for field in row.fields}
            assert refusal.field is None or refusal.field in fields, refusal


def test_a_protocol_files_part_for_probe() -> None:
    moves = file_dissector(TEXT, "moves")
    part = moves.conformance
    assert (part.seats, part.timeouts) == (3, {"MOVE": 2.0, "MOVED": 2.0})
    assert (part.expectations.silence_s, part.expectations.awaited_messages) == (9.0, "MOVE")
    assert cases_by_rule(moves) == {"again": ("moves/MOVE/twice",), "late": "no case is late"}
    assert [pattern for _, pattern in unmatched_patterns(moves)] == ["MOVE/pip/zero"]


def test_after_a_notice_that_has_the_name_of_a_question_any_message_goes_on() -> None:
    baseline = Baseline(CGML, "c2s")
    (notice, *_) = CGML.grammar.rows_named("s2c", "gametype")
    (question,) = CGML.grammar.rows_named("s2c", "newgame")
    assert baseline.follows(notice, "playcard", names_speaker=False)
    assert not baseline.follows(question, "playcard", names_speaker=False)


# Rules.


@pytest.mark.full(but=1)
@each_built_in
def test_each_rule_is_broken_by_a_case_or_the_reason_is_reported(dissector: Dissector) -> None:
    reactions = dissector.conformance.expectations
    rules = dissector.grammar.rules
    assert {breach.rule for breach in reactions.violations} <= {*rules}
    broken = {breach.rule for breach in reactions.violations}
    for told in (reactions.broken_by, reactions.unreachable):
        assert {*told} <= {*rules}
    places = [*broken, *reactions.broken_by, *reactions.unreachable]
    assert sorted(places) == sorted(rules), {*rules} ^ {*places}
    for rule, how in cases_by_rule(dissector).items():
        assert how, rule
        assert (rule in reactions.unreachable) == isinstance(how, str), f"{rule}: {how}"


def test_a_plug_ins_rules_are_listed() -> None:
    assert cases_by_rule(NOUGHTS) == dict.fromkeys(
        ("out-of-turn", "square-taken"), "its protocol declares no way to break it"
    )


_NO = {"maexchen": b"REJECTED;INVALID_NAME", "catan": b'{"Fehler":{"Meldung":"nein"}}\n'}
"""These tables report a request only once the server has refused it."""

RECORDED: list[tuple[Dissector, tuple[str, ...]]] = [
    (MAEXCHEN, ("maexchen-old-20111003.pcap",)),
    (SCHAFKOPF, ("schafkopf-1.3-2humans.pcap",)),
    (OKEY, ("okey-head-game-win.pcap.gz", "okey-seed-game-win.pcap.gz")),
    (
        CATAN,
        (
            "catan-infrarot-game2-3p.pcap.gz",
            "catan-yaks-g1-3p.pcap.gz",
            "catan-niedlichepixel-game2-3p.pcap.gz",
        ),
    ),
    (CGML, ("cgml-hands.pcap.gz",)),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("dissector", "names"),
    a_few(RECORDED, lambda row: row[0] == OKEY, lambda row: row[0].protocol),
)
def test_a_table_finds_each_broken_rule(dissector: Dissector, names: tuple[str, ...]) -> None:
    """The table reports a violation for each message that is meant to break a rule."""
    for role in ROLES:
        for case in generate_cases(dissector, role):
            _, is_rule, rule = case.name.partition("/rule/")
            if is_rule:
                code = dissector.grammar.rules[rule].code
                found = (codes for name in names for codes in _codes_of(case, name))
                assert any(code in codes for codes in found), case.name


def _codes_of(case: Case, name: str) -> Iterator[set[str]]:
    """Yield the table's codes for a case at each place of a capture: with all conversations, and one."""
    lines = lines_of(name)
    answer = _NO.get(case.name.split("/")[0]) if case.role == "server" else None
    for place in _fitting(case, name):
        try:
            (sent,) = case.actions(place.situation)
        except NotApplicable:
            continue
        assert isinstance(sent, Send)
        own = [number for number, line in enumerate(lines) if line.stream is lines[place.number].stream]
        alone = [lines[number] for number in own]
        for heard, number in ((lines, place.number), (alone, own.index(place.number))):
            yield {violation.code for violation in judged_with(heard, number, sent.data, 30, answer)}


def _fitting(case: Case, name: str) -> Iterator[Place]:
    for place in places_of(name, case.role):
        if case.fits(place.decoded):
            yield place
