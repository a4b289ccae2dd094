from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase

import pytest
from inspected_captures import messages_of
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import CASES, cases
from message_cases import Case as Sample
from probe_places import Place, judged_with, lines_of, places_of
from strength import GAMES, a_few, times

from kiebitz.dissectors.conformance.expectations import (
    INPUT_DIRECTION,
    ROLES,
    NotApplicable,
    Refusal,
    Situation,
    TargetRole,
    UnsuitableMoment,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Wrong
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing import actions as actions
from kiebitz.dissectors.probing.actions import CaseAction, Close, HalfClose, Pause, Reset, Send, Sender
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case import Case, select_cases
from kiebitz.dissectors.probing.case_generator import cases_by_rule, generate_cases, unmatched_patterns
from kiebitz.dissectors.probing.mutations import Mutator
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.grammar import TOKEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import NAME
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN, dissector_of_text

SAMPLES: dict[Dissector, list[Sample]] = {
    **CASES,
    NOUGHTS: cases(NOUGHTS, "sound"),
    KNOBELN: cases(KNOBELN, "sound"),
}

WITH_EXPECTATIONS = dissector_of_text(
    """protocol = "moves"
    [clauses]
    errors = "4 Errors"
    [quotes]
    answered = "An error is answered."
    [messages]
    MOVE = "c: pips=1..6"
    MOVED = "s*: ok=bool < MOVE"
    NO = "s: < MOVE"
    [rules]
    again = { on = "MOVE", unless = "pips", say = "again" }
    late = { on = "MOVE", unless = "pips", say = "late" }
    [probe]
    seats = 3
    silence = 9
    timeouts = { "MOV*" = 2 }
    awaited = "MOVE"
    broken_by = { again = "MOVE/twice" }
    unreachable = { late = "no case is late" }
    [expectations]
    "MOVE/pip/zero MOVED/twice" = { client = "should", reaction = "ignores", quote = "Once." }
    [expectations."MOVE/pips/*"]
    server = "must"
    reaction = "refuses"
    as = ["MOVED ok=false", "NO"]
    clause = "{errors}"
    quote = "{answered}"
    """,
    "moves.toml",
)

each_protocol = pytest.mark.parametrize("dissector", SAMPLES, ids=lambda dissector: dissector.protocol)
each_built_in = pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
each_role = pytest.mark.parametrize("role", ROLES)


_SEEHANDEL = '{"Seehandel":{"Angebot":{"Holz":4},"Nachfrage":{"Erz":1}}}\n'


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


@pytest.mark.full(but=5)
@pytest.mark.parametrize(
    ("dissector", "role", "name"),
    [
        (SCHAFKOPF, "server", "KARTE/wert/unknown"),
        (SCHAFKOPF, "server", "MODEL/tisch.farbe/unknown"),
        (SCHAFKOPF, "server", "HOCHZEIT.JA/karte.wert/other-case"),
        (SCHAFKOPF, "server", "MODEL/cut/reset"),
        (SCHAFKOPF, "server", "MODEL/rule/suit-not-followed"),
        (SCHAFKOPF, "server", "endless"),
        (SCHAFKOPF, "client", "MITSPIELER/namen/outside-ascii"),
        (MAEXCHEN, "server", "ROLL/token/others-token"),
        (MAEXCHEN, "server", "ROLL/from-stranger"),
        (MAEXCHEN, "server", "JOIN/lost"),
        (MAEXCHEN, "server", "REGISTER/dialect/1"),
        (MAEXCHEN, "client", "ROUND_STARTED/overtaken"),
        (CATAN, "server", "Bauen/Ort/too-few"),
        (CATAN, "client", "Statusupdate/Rohstoffe.count/too-large"),
        (OKEY, "server", "CATC.w/whisperrecipient/nobodys-name"),
        (OKEY, "server", "silence"),
        (CGML, "server", "connect.active/player.id/left-out"),
        (CGML, "server", "version/too-long"),
        (NOUGHTS, "server", "PUT/square/unknown"),
        (NOUGHTS, "client", "MARK/name/others-player"),
        (NOUGHTS, "client", "game"),
        (NOUGHTS, "client", "PUT/said"),
        (NOUGHTS, "server", "PUT/spelling/line-ends"),
    ],
)
def test_a_case_is_called_so(dissector: Dissector, role: TargetRole, name: str) -> None:
    assert case_of(dissector, role, name)


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
    not_made: set[str] = set()
    for case in generate_cases(dissector, role)[:: times(1, 5)]:
        if (case.field is None and case.kind not in _OF_FIELDS) or case.kind.startswith("others-"):
            continue
        places = [place for place in samples if case.fits(place[1])]
        assert places, f"{case.name}: no sample is its place"
        made = 0
        for frame, decoded in places:
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


@pytest.mark.full
@each_built_in
@each_role
def test_a_recorded_message_is_spoilt_as_its_case_says(dissector: Dissector, role: TargetRole) -> None:
    frames = [*recorded(dissector, role)]
    made = 0
    for case in generate_cases(dissector, role):
        if (case.field is None and case.kind not in _OF_FIELDS) or case.kind.startswith("others-"):
            continue
        for frame, decoded in [place for place in frames if case.fits(place[1])][:20]:
            with suppress(NotApplicable):
                check_kind(dissector, case, frame, decoded)
                made += 1
    assert made > 100


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


def test_fields_that_name_another_player_come_from_others() -> None:
    frame = b"ROLL;d129eeba"
    case = case_of(MAEXCHEN, "server", "ROLL/token/others-token")
    assert case.actions(Situation(frame, others={TOKEN: ["d129eeba", "ffff"]})) == (Send(b"ROLL;ffff"),)
    with pytest.raises(NotApplicable, match="no other token is known"):
        case.actions(Situation(frame))
    case = case_of(OKEY, "server", "LOGI/nickname/others-name")
    assert case.actions(Situation(b"LOGI robin\r\n", others={NAME: ["boran"]})) == (Send(b"LOGI boran\r\n"),)


def piece(data: bytes, sender: Sender = "self") -> Send:
    """Return the action that sends bytes as they are, whatever carries messages."""
    return Send(data, sender, is_wire=True)


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("PUT/whole", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\r\n"),)),
        ("PUT/twice", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\r\n"), Send(b"PUT 5\r\n"))),
        ("PUT/joined", Situation(b"PUT 5\r\n", b"BYE\r\n"), (piece(b"PUT 5\r\nBYE\r\n"),)),
        ("PUT/joined", Situation(b"PUT 5\r\n", heartbeat=b"HI\r\n"), (piece(b"PUT 5\r\nHI\r\n"),)),
        (
            "PUT/joined",
            Situation(b"PUT 5\r\n", b"BYE\r\n", True, heartbeat=b"HI\r\n"),
            (piece(b"PUT 5\r\nHI\r\n"),),
        ),
        (
            "PUT/joined",
            Situation(b"PUT 5\r\n", b"BYE\r\n", heartbeat=b"HI\r\n"),
            (piece(b"PUT 5\r\nBYE\r\n"),),
        ),
        ("PUT/early", Situation(b"PUT 5\r\n", b"BYE\r\n", True), (Send(b"BYE\r\n"), Send(b"PUT 5\r\n"))),
        (
            "PUT/early",
            Situation(b"PUT 5\r\n", b"BYE\r\n", True, heartbeat=b"HI\r\n"),
            (Send(b"BYE\r\n"), Send(b"PUT 5\r\n")),
        ),
        ("PUT/in-two", Situation(b"PUT 5\r\n"), (piece(b"PUT"), Pause(1), piece(b" 5\r\n"))),
        ("PUT/cut/silence", Situation(b"PUT 5\r\n"), (piece(b"PUT"),)),
        ("PUT/cut/half-close", Situation(b"PUT 5\r\n"), (piece(b"PUT"), HalfClose())),
        ("PUT/cut/close", Situation(b"PUT 5\r\n"), (piece(b"PUT"), Close())),
        ("PUT/cut/reset", Situation(b"PUT 5\r\n"), (piece(b"PUT"), Reset())),
        ("PUT/from-other", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\r\n", "other"),)),
        ("PUT/from-stranger", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\r\n", "stranger"),)),
        ("PUT/square/unknown", Situation(b"PUT 5\r\n"), (Send(b"PUT Kiebitz\r\n"),)),
        ("PUT/square/left-out", Situation(b"PUT 5\r\n"), (Send(b"PUT\r\n"),)),
        ("PUT/square/doubled", Situation(b"PUT 5\r\n"), (Send(b"PUT 5 5\r\n"),)),
        ("PUT/square/latin-1", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\xe4\r\n"),)),
        ("PUT/spelling/line-ends", Situation(b"PUT 5\r\n"), (Send(b"PUT 5\n"),)),
        ("unknown-message", Situation(b"PUT 5\r\n"), (Send(b"KIEBITZ 5\r\n"),)),
        ("empty", Situation(b"PUT 5\r\n"), (Send(b"\r\n"),)),
        ("come-and-go/reset", Situation(b"PUT 5\r\n"), (Reset("stranger"),)),
        (
            "come-and-stay",
            Situation(b"PUT 5\r\n"),
            (piece(b"PUT", "stranger"), Pause(0.3), Send(b"PUT 5\r\n")),
        ),
    ],
)
def test_results_of_a_plug_in_s_test_case(name: str, at: Situation, expected: tuple[CaseAction, ...]) -> None:
    assert case_of(NOUGHTS, "server", name).actions(at) == expected


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("dissector", "name", "frame", "expected"),
    [
        (SCHAFKOPF, "KARTE/wert/unknown", "!KARTE\nHERZ\nSAU\n!END\n", "!KARTE\nHERZ\nKiebitz\n!END\n"),
        (
            SCHAFKOPF,
            "KARTE/karte/half",
            "!KARTE\r\nHERZ\r\nSAU\r\n!END\r\n",
            "!KARTE\r\nEICHEL\r\n§\r\n!END\r\n",
        ),
        (SCHAFKOPF, "KARTE/karte/left-out", "!KARTE\nHERZ\nSAU\n!END\n", "!KARTE\n!END\n"),
        (SCHAFKOPF, "NAME/name/markup", "!NAME\nAnna\n!END\n", '!NAME\n<b>&"Kiebitz"</b>\n!END\n'),
        (CATAN, "Seehandel/Angebot/left-out", _SEEHANDEL, '{"Seehandel":{"Nachfrage":{"Erz":1}}}\n'),
        (CATAN, "Seehandel/Nachfrage/left-out", _SEEHANDEL, '{"Seehandel":{"Angebot":{"Holz":4}}}\n'),
        (CATAN, "Monopol/Rohstoff/left-out", '{"Monopol":{"Rohstoff":"Holz"}}\n', '{"Monopol":{}}\n'),
        (
            CATAN,
            "Monopol/Rohstoff/doubled",
            '{"Monopol":{"Rohstoff":"Holz"}}\n',
            '{"Monopol":{"Rohstoff":"Holz","Rohstoff":"Holz"}}\n',
        ),
        (
            CATAN,
            "Seehandel/Nachfrage.count/negative",
            _SEEHANDEL,
            '{"Seehandel":{"Angebot":{"Holz":4},"Nachfrage":{"Holz":-1}}}\n',
        ),
        (OKEY, "CATC.b+l/msg/markup", "CATC b hallo\r\n", 'CATC b "<b>&\\"Kiebitz\\"</b> "\r\n'),
        (OKEY, "CATC.b+l/msg/empty", 'CATC b "ein Wort%"\r\n', 'CATC b "%"\r\n'),
        (OKEY, "PUTT/tile/out-of-range", "PUTT 4:RED 3:RED\r\n", "PUTT 14:RED 3:RED\r\n"),
        (OKEY, "PUTT/rule/joker-colour", 'PUTT 4:RED "3:RED 0:RED%"\r\n', 'PUTT 0:BLUE "4:RED 3:RED%"\r\n'),
        (
            OKEY,
            "PUTT/rule/joker-colour",
            'PUTT 0:RED "3:RED 0:BLUE%"\r\n',
            'PUTT 0:YELLOW "3:RED 0:BLUE%"\r\n',
        ),
        (OKEY, "JLOB/n/left-out", "JLOB 42\r\n", "JLOB\r\n"),
        (
            CGML,
            "pause.start/message/markup",
            '<pause type="start"><message>x</message></pause>\r\n\r\n',
            '<pause type="start"><message>&lt;b&gt;&amp;&quot;Kiebitz&quot;&lt;/b&gt;</message></pause>'
            "\r\n\r\n",
        ),
        (
            CGML,
            "pause.start/type/left-out",
            '<pause type="start"></pause>\r\n\r\n',
            "<pause></pause>\r\n\r\n",
        ),
        (CGML, "load/load/out-of-range", "<load>48</load>\r\n\r\n", "<load>101</load>\r\n\r\n"),
        (MAEXCHEN, "ANNOUNCE/dice/left-out", "ANNOUNCE;5,3;x", "ANNOUNCE;x"),
        (MAEXCHEN, "ANNOUNCE/dice/out-of-range", "ANNOUNCE;5,3;x", "ANNOUNCE;7,7;x"),
        (MAEXCHEN, "ANNOUNCE/spelling/lower-die-first", "ANNOUNCE;5,3;x", "ANNOUNCE;3,5;x"),
    ],
)
def test_which_bytes_are_spoilt(dissector: Dissector, name: str, frame: str, expected: str) -> None:
    (sent,) = case_of(dissector, "server", name).actions(Situation(frame.encode()))
    assert isinstance(sent, Send)
    assert sent.data.decode() == expected


def test_a_text_that_is_right_is_not_passed_off_as_wrong() -> None:
    row = NOUGHTS.grammar.rows_named("c2s", "HELLO")[0]
    spoiler = Mutator(NOUGHTS, "c2s")
    with pytest.raises(NotApplicable, match="it is still valid"):
        spoiler.replace_text(row.fields[0], Wrong("unknown", "a name", "bob"), b"HELLO alice\r\n")
    with pytest.raises(NotApplicable, match="its content is unchanged"):
        spoiler.replace_text(row.fields[0], Wrong("odd", "a name", "alice", allowed=True), b"HELLO alice\r\n")


@pytest.mark.parametrize(
    ("name", "at", "reason"),
    [
        ("PUT/joined", Situation(b"PUT 5\r\n"), "no message follows it"),
        ("PUT/joined", Situation(b"PUT 5\r\n", b"BYE\r\n", True), "waits for the target"),
        ("PUT/early", Situation(b"PUT 5\r\n", b"BYE\r\n"), "does not wait for the target"),
        ("PUT/square/unknown", Situation(b"PUT 10\r\n"), "the message is invalid before any change"),
    ],
)
def test_a_case_that_cannot_be_tried_says_why(name: str, at: Situation, reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        case_of(NOUGHTS, "server", name).actions(at)


@pytest.mark.parametrize(
    ("dissector", "name", "at"),
    [
        (NOUGHTS, "PUT/joined", Situation(b"PUT 5\r\n")),
        (NOUGHTS, "PUT/early", Situation(b"PUT 5\r\n", b"BYE\r\n")),
        (OKEY, "PUTT/rule/joker-colour", Situation(b"PUTT 1:RED 2:RED\r\n")),
        (OKEY, "DRAW/rule/must-draw", Situation(b"DRAW m\r\n", state={"games": {}})),
    ],
)
def test_a_case_is_tried_at_another_moment_if_cards_or_due_messages_forbid_it(
    dissector: Dissector, name: str, at: Situation
) -> None:
    with pytest.raises(UnsuitableMoment):
        case_of(dissector, "server", name).actions(at)


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


def test_a_place_is_a_message_of_the_row() -> None:
    case = case_of(MAEXCHEN, "server", "REGISTER/dialect/1")
    assert case.fits(MAEXCHEN.codec.decode(b"REGISTER;alice", "c2s"))
    assert not case.fits(MAEXCHEN.codec.decode(b"JOIN;x", "c2s"))
    assert case.actions(Situation(b"REGISTER;alice")) == (Send(b"REGISTER;alice;Kiebitz"),)
    case = case_of(MAEXCHEN, "server", "REGISTER/whole")
    assert not case.fits(MAEXCHEN.codec.decode(b"REGISTER;alice;geheim", "c2s"))
    assert not case.fits(MAEXCHEN.codec.decode(b"REGISTER", "c2s"))
    assert case_of(MAEXCHEN, "server", "rubbish").fits(MAEXCHEN.codec.decode(b"JOIN;x", "c2s"))


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


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("dissector", "role", "name", "level", "right"),
    [
        (SCHAFKOPF, "server", "KARTE/wert/unknown", "open", None),
        (SCHAFKOPF, "server", "NAME/name/too-long", "must", ("answers",)),
        (SCHAFKOPF, "server", "MODEL/bytewise", "must", ("answers",)),
        (SCHAFKOPF, "server", "MODEL/whole", "must", ("answers",)),
        (SCHAFKOPF, "server", "MODEL/spelling/windows", "open", ("answers",)),
        (MAEXCHEN, "server", "ROLL/token/nobodys-token", "must", ("refuses",)),
        (MAEXCHEN, "server", "ANNOUNCE/dice/out-of-range", "should", ("refuses",)),
        (MAEXCHEN, "server", "ANNOUNCE/token/doubled", "open", None),
        (MAEXCHEN, "server", "ECHO/whole", "open", ("answers",)),
        (CATAN, "server", "Bauen/Typ/unknown", "must", ("refuses",)),
        (CATAN, "server", "Bauen/spelling/escapes", "must", ("answers",)),
        (CATAN, "client", "Hallo/Protokoll/other-version", "must", ("closes",)),
        (OKEY, "server", "DRAW/twice", "must", ("refuses",)),
        (OKEY, "server", "silence", "should", ("closes",)),
        (CGML, "server", "playcard/rule/renonc", "should", ("refuses",)),
        (WITH_EXPECTATIONS, "server", "MOVE/pips/too-large", "must", ("refuses",)),
        (WITH_EXPECTATIONS, "client", "MOVED/twice", "should", ("ignores",)),
        (NOUGHTS, "server", "PUT/square/unknown", "open", None),
        (NOUGHTS, "server", "PUT/in-two", "must", ("answers",)),
    ],
)
def test_demanded_reactions(
    dissector: Dissector, role: TargetRole, name: str, level: str, right: tuple[str, ...] | None
) -> None:
    expectation = case_of(dissector, role, name).expectation
    assert expectation.level == level
    if right is not None:
        assert expectation.right == right


def test_a_protocol_files_part_for_probe() -> None:
    part = WITH_EXPECTATIONS.conformance
    demand = case_of(WITH_EXPECTATIONS, "server", "MOVE/pips/too-large").expectation
    assert (demand.clause, demand.quote) == ("4 Errors", "An error is answered.")
    assert demand.refusals == (Refusal("MOVED", "ok", False), Refusal("NO"))
    assert (part.seats, part.timeouts) == (3, {"MOVE": 2.0, "MOVED": 2.0})
    assert (part.expectations.silence_s, part.expectations.awaited_messages) == (9.0, "MOVE")
    assert cases_by_rule(WITH_EXPECTATIONS) == {"again": ("moves/MOVE/twice",), "late": "no case is late"}
    assert [pattern for _, pattern in unmatched_patterns(WITH_EXPECTATIONS)] == ["MOVE/pip/zero"]


@pytest.mark.parametrize(
    ("messages", "right"),
    [
        (["c: x=number", "s*: x=number < Move"], ("answers", "ignores")),
        (["s: x=number", "c: x=number < Move"], ("answers",)),
        (["s: x=number", "c: x=number"], ("answers", "ignores")),
    ],
)
def test_a_client_is_asked_by_what_clients_answer(messages: list[str], right: tuple[str, ...]) -> None:
    """A name that both sides send is no question because the server answers it."""
    text = (
        'protocol = "moves"\nport = 9\nframing = "lines"\nformat = "json"\nname = "type"\n'
        f"[messages]\nMove = {messages}\n"
    )
    case = case_of(dissector_of_text(text, "moves.toml"), "client", "Move/whole")
    assert case.expectation.right == right


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("licite.ask/whole", ("answers",)),
        ("playcard.ask/in-two", ("answers",)),
        # Notices have the names of questions.
        ("licite.result/whole", ("answers", "ignores")),
        ("gametype.info/whole", ("answers", "ignores")),
        ("playcard.info/bytewise", ("answers", "ignores")),
    ],
)
def test_of_messages_of_one_name_only_questions_must_be_answered(name: str, right: tuple[str, ...]) -> None:
    assert case_of(CGML, "client", name).expectation.right == right


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
