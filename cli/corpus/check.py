"""What a corpus lacks, and what is wrong in it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kiebitz.cli.corpus.lists import list_flaws, sum_up_flaws
from kiebitz.cli.terminal.console import Styled, show_line
from kiebitz.cli.terminal.output import Form
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.services.wording import counted, in_words
from kiebitz.storage.corpus import reading
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.runs import missing

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


def check_corpus(engine: Engine, wanted: Filter | None, form: Form | None) -> bool:
    """Show what is missing, and the flaws that a filter lets through: each, or to people summed up.

    Gives whether all is there without an error. Raises CorpusError.
    """
    lacks = missing(engine.corpus)
    flaws = [*reading.flaws_by_code(engine, wanted)]
    count: Counter[str] = Counter()
    for flaw in flaws:
        count[flaw.severity] += flaw.times
    if form is not None:
        list_flaws(engine, lacks, wanted, form)
    else:
        for one in lacks:
            show_line(Styled("missing", COLOURS["error"], bold=True), f": {one.reason}")
        if flaws:
            sum_up_flaws(flaws)
        there = counted(engine.captures(), "capture")
        show_line(f"{there}, {len(lacks) or 'none'} missing; {in_words(count)}")
    return not lacks and not count["error"]
