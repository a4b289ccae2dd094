"""The verdict on a program, from what was observed in a test case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import Reaction
from kiebitz.dissectors.probing.case import Case

VerdictWord = Literal["OK", "NON-STRICT", "INFORMATIONAL", "FAILED"]
"""OK: correct. NON-STRICT: against a recommendation of the specification. INFORMATIONAL: the specification
leaves it open. FAILED: a violation."""


class ProgramMessage(msgspec.Struct, frozen=True):
    """A message of the program under test."""

    message: str
    fields: dict[str, Any]


class ObservedBehaviour(msgspec.Struct, frozen=True):
    """A program's observed behaviour in a case, up to the end of the wait.

    `continued_normally` is true if the next recorded message arrived; `sent_messages` are its messages since
    the actions, and `violations` has one sentence for each of them that violates the grammar. `ended` is how
    it ended the connection, `died` how its process ended.

    `lets_in` is true if a new client was accepted afterwards, `others_go_on` if a game that others played at
    the same time continued; None if neither was tried. `is_beyond` is true if it stops at this point in
    undisturbed games, too. `answer` is a message of the program that answers the case's by the grammar.
    `leaves_waiting` is true if the other clients receive nothing any more, as they wait for a player who has
    left; `others_uninformed` if they do not receive a message due to all.
    """

    continued_normally: bool = False
    sent_messages: tuple[ProgramMessage, ...] = ()
    violations: tuple[str, ...] = ()
    ended: Literal["closed", "reset"] | None = None
    died: str | None = None
    lets_in: bool | None = None
    others_go_on: bool | None = None
    is_beyond: bool = False
    answer: str | None = None
    leaves_waiting: bool = False
    others_uninformed: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """A verdict: its word, the reason in a sentence, and the program's reactions."""

    word: VerdictWord
    why: str
    reactions: tuple[Reaction, ...]


EXIT_STATUS = "exit status "
"""The beginning of the text about a process that exited by itself."""

_DID: dict[Reaction, str] = {
    "answers": "continues as if nothing were wrong",
    "refuses": "refuses it",
    "ignores": "ignores it",
    "closes": "ends the connection",
}

_RIGHT: dict[Reaction, str] = {
    "answers": "continue as usual",
    "refuses": "refuse it",
    "ignores": "ignore it",
    "closes": "end the connection",
}


def reactions_of(case: Case, observed: ObservedBehaviour) -> tuple[Reaction, ...]:
    """Return a program's reactions; it may have refused and then closed the connection.

    A last message before the end is no answer if ending is the only right reaction: a program may greet, too,
    before it leaves a peer of another version.
    """
    found: list[Reaction] = []
    refusals = case.expectation.refusals
    if any(
        refusal.matches(each.message, each.fields) for refusal in refusals for each in observed.sent_messages
    ):
        found.append("refuses")
    elif observed.continued_normally and not (observed.ended and case.expectation.right == ("closes",)):
        found.append("answers")
    if observed.ended is not None:
        found.append("closes")
    return tuple(found) or ("ignores",)


def judge(case: Case, observed: ObservedBehaviour) -> Verdict:
    """Return the verdict on observed behaviour.

    Every case requires the program to stay alive, to accept others, to leave their game alone, and to send
    only what the grammar allows, unless the case may have misled it.
    """
    reactions = reactions_of(case, observed)
    broken = _broken_requirement(case, observed)
    if broken is not None:
        return Verdict("FAILED", broken, reactions)
    expectation = case.expectation
    if observed.others_uninformed and expectation.level == "must":
        return Verdict("FAILED", f"it does not send the others {expectation.others_receive}", reactions)
    did = " and ".join(_DID[each] for each in reactions)
    if reactions == ("ignores",) and observed.answer is not None:
        did = f"answers it with {observed.answer}"
    if expectation.level == "open":
        return Verdict("INFORMATIONAL", f"it {did}; the specification leaves that open", reactions)
    # Refusing and then closing is right where either is.
    if {*reactions} & {*expectation.right} and ("answers" not in reactions or "answers" in expectation.right):
        return Verdict("OK", f"it {did}", reactions)
    if case.harmless and observed.is_beyond and reactions == ("ignores",):
        why = f"it {did}, as it does at this point of an undisturbed game"
        return Verdict("INFORMATIONAL", why, reactions)
    word: VerdictWord = "FAILED" if expectation.level == "must" else "NON-STRICT"
    if reactions == ("ignores",) and expectation.answer and observed.sent_messages:
        sent = ", ".join(dict.fromkeys(each.message for each in observed.sent_messages))
        wanted = " or ".join(expectation.answer)
        return Verdict(word, f"it sends {sent}, but {expectation.level} send {wanted}", reactions)
    wanted = " or ".join(_RIGHT[each] for each in expectation.right)
    return Verdict(word, f"it {did}, and {expectation.level} {wanted}", reactions)


def _broken_requirement(case: Case, observed: ObservedBehaviour) -> str | None:
    """Return the violated requirement that holds for every case, or None."""
    # A client that is to disconnect may exit with a status saying that it could not play.
    may_end = (
        case.role == "client" and case.expectation.level == "must" and "closes" in case.expectation.right
    )
    if observed.died is not None and not (may_end and observed.died.startswith(EXIT_STATUS)):
        return f"it has ended: {observed.died}"
    if observed.lets_in is False:
        return "it accepts no new client any more"
    if observed.others_go_on is False and case.expectation.spares_others:
        return "the other players' game does not continue"
    if observed.leaves_waiting:
        return "the other players wait for one that has left"
    if observed.violations and not _may_mislead(case):
        return f"it sends what the grammar does not allow: {observed.violations[0]}"
    return None


def _may_mislead(case: Case) -> bool:
    """Return True if the program's later messages may be wrong because of what the case made it believe.

    A client gets false information, or a program a message that it need not be able to read.
    """
    is_false = case.role == "client" and (case.field is not None or "/rule/" in case.name)
    return is_false or (case.harmless and case.expectation.level == "open")
