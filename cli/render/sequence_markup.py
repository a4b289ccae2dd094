"""Sequence diagrams as Mermaid and PlantUML sources.

Text from the network cannot become syntax: all characters except letters, digits and harmless punctuation are
written as the language's references to characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.sequence.model import Arrow, Lifeline, Note, Step

_HARMLESS = re.compile(r"[ .,=?()·…]|[^\W_]|(?<=[^\W_])[-_](?=[^\W_])")
"""Characters without a meaning in either language; a dash or an underscore is one between letters only."""

_KEYWORD = re.compile(r"\bend\b", re.IGNORECASE)
"""The word that ends a block in Mermaid, also within a text."""

_ALARM = "#B00020"


def mermaid(lifelines: Sequence[Lifeline], steps: Iterable[Step], title: str) -> Iterator[str]:
    """Yield the lines of a Mermaid diagram."""
    yield "sequenceDiagram"
    yield f"    title {mermaid_text(title)}"
    for place, lifeline in enumerate(lifelines):
        kind = "participant" if lifeline.is_server else "actor"
        yield f"    {kind} p{place} as {mermaid_text(lifeline.name)}"
    for step in steps:
        if isinstance(step, Note):
            yield f"    Note over {_span(step.first, step.last)}: {mermaid_text(_note_words(step))}"
            continue
        low, far = step.sender, _farthest(step)
        is_alarm = bool(step.problems)
        if is_alarm:
            yield "    rect rgba(176, 0, 32, 0.15)"
        line = "-x" if step.is_kept_back else "->>" if step.altered is None else "-->>"
        yield f"    p{low}{line}p{far}: {mermaid_text(_arrow_words(step, lifelines))}"
        for words in _remarks(step):
            yield f"    Note over {_span(*sorted((low, far)))}: {mermaid_text(words)}"
        if is_alarm:
            yield "    end"


def plantuml(lifelines: Sequence[Lifeline], steps: Iterable[Step], title: str) -> Iterator[str]:
    """Yield the lines of a PlantUML diagram."""
    yield "@startuml"
    yield f"title {plantuml_text(title)}"
    for place, lifeline in enumerate(lifelines):
        kind = "participant" if lifeline.is_server else "actor"
        yield f'{kind} "{plantuml_text(lifeline.name)}" as p{place}'
    for step in steps:
        if isinstance(step, Note):
            colour = "" if step.severity is None else f" {_ALARM}22"
            yield f"note over {_span(step.first, step.last)}{colour} : {plantuml_text(_note_words(step))}"
            continue
        low, far = step.sender, _farthest(step)
        line = "-" if step.altered is None else "--"
        colour = f"[{_ALARM}]" if step.problems else ""
        head = f"{line[:1]}{colour}{line[1:]}>{'x' if step.is_kept_back else ''}"
        yield f"p{low} {head} p{far} : {plantuml_text(_arrow_words(step, lifelines))}"
        for words in _remarks(step):
            colour = " #FFDDDD" if step.problems else ""
            yield f"note over {_span(*sorted((low, far)))}{colour} : {plantuml_text(words)}"
    yield "@enduml"


def mermaid_text(text: str) -> str:
    """Return a text as one of Mermaid's, in which no character has a meaning."""
    escaped = _escaped(text, lambda character: f"#{ord(character)};")
    return _KEYWORD.sub(lambda found: f"#{ord(found[0][0])};{found[0][1:]}", escaped) or "#160;"


def plantuml_text(text: str) -> str:
    """Return a text as one of PlantUML's, in which no character has a meaning."""
    return _escaped(text, lambda character: f"<U+{ord(character):04X}>") or "<U+00A0>"


def _escaped(text: str, reference: Callable[[str], str]) -> str:
    shown = printable(text).strip()
    return "".join(
        character if _HARMLESS.match(shown, place) else reference(character)
        for place, character in enumerate(shown)
    )


def _span(first: int, last: int) -> str:
    return f"p{first}" if first == last else f"p{first},p{last}"


def _farthest(arrow: Arrow) -> int:
    return max(arrow.receivers, key=lambda receiver: abs(receiver - arrow.sender))


def _arrow_words(arrow: Arrow, lifelines: Sequence[Lifeline]) -> str:
    """Return the label of an arrow with its receivers, as these languages have no arrow to several."""
    if arrow.is_to_all:
        return f"{arrow.label} (to all)"
    if len(arrow.receivers) > 1:
        return f"{arrow.label} (to {', '.join(lifelines[receiver].name for receiver in arrow.receivers)})"
    return arrow.label


def _note_words(note: Note) -> str:
    return note.text if note.severity is None else f"✗ {note.text}"


def _remarks(arrow: Arrow) -> Iterator[str]:
    yield from (f"✗ {problem.words}" for problem in arrow.problems)
    if arrow.alteration is not None:
        yield arrow.alteration
