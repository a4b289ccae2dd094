"""Walks through the page as texts: see `walks` and tests/data/page.txt.

The options of the first line are those of an address. What a step expects:

    @31 @31±2             the event one is at
    #how==paused          the texts of the elements that are laid out, with ` | ` between
    #notice~copied        a part of the text of the first one
    '#stage svg'          an element that is laid out
    ?as=bob               a parameter of the address; ?at if it has one
    {document.title}      an expression of JavaScript that is true

KIEBITZ_SNAPSHOTS=write rewrites events after `@` and texts after `==`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from browser import Sight
from conversation_files import check
from page_queries import place
from walks import Step, Walk

_EVENT = re.compile(r"@(\d+|\?)(?:±(\d+))?")
_TEXT = re.compile(r"(.+?)(==|~)(.*)", re.DOTALL)
_WRITE_MS = 600
"""Time in milliseconds after which a page has followed a step."""


def take(walk: Walk, sight: Sight, more: Mapping[str, Callable[..., Any]] | None = None) -> None:
    """Take the steps of a walk; `more` are deeds outside the page."""
    deeds = {**_deeds(sight), **(more or {})}
    made = [walk.block.steps[0]]
    for step in walk.steps:
        if step.deed(deeds) is None:
            sight.press(*step.keys)
        if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
            step = _rewritten(sight, step)
        for what in step.there:
            sight.until(partial(_holds, sight, what), f"{what} after {step.line}")
        for what in step.gone:
            sight.until(lambda what=what: not _holds(sight, what), f"not {what} after {step.line}")  # type: ignore[misc]
        if any(what.startswith("@") for what in step.there):
            sight.settle()
        made.append(step.line)
    check(walk.block, "\n".join(made))


def _holds(sight: Sight, what: str) -> bool:
    """Return True if an expectation is met."""
    if at := _EVENT.fullmatch(what):
        return abs(sight.seq - int(at[1])) <= int(at[2] or 0)
    if what.startswith("?"):
        name, equals, value = what[1:].partition("=")
        found = place(sight).get(name)
        return found == value if equals else found is not None
    if what.startswith("{"):
        return bool(sight.tell(f"(() => {{ try {{ return {what[1:-1]}; }} catch {{ return false; }} }})()"))
    if text := _TEXT.fullmatch(what):
        return _texts(sight, text[1]) == text[3] if text[2] == "==" else text[3] in sight.text(text[1])
    return sight.is_seen(what)


def _texts(sight: Sight, selector: str) -> str:
    return " | ".join(sight.texts(selector))


def _rewritten(sight: Sight, step: Step) -> Step:
    """Return a step with the event and the texts that are shown now."""
    sight.page.wait_for_timeout(_WRITE_MS)
    sight.rest()
    there = []
    for what in step.there:
        if (at := _EVENT.fullmatch(what)) and not at[2]:
            what = f"@{sight.seq}"
        elif not what.startswith(("?", "{")) and (text := _TEXT.fullmatch(what)) and text[2] == "==":
            what = f"{text[1]}=={_texts(sight, text[1])}"
        there.append(what)
    if there == step.there:
        return step
    done, arrow, _ = f" {step.line}".partition(" => ")
    gone = ["not", *step.gone] if step.gone else []
    line = f"{done}{arrow}{' '.join(map(_quoted, [*there, *gone]))}"[1:]
    return step._replace(line=line, there=there)


def _quoted(word: str) -> str:
    if re.fullmatch(r"[^\s'\"\\]+", word):
        return word
    # Most readable, and right for shlex, which knows no variables.
    return f'"{word}"' if "'" in word and not {'"', "\\"} & {*word} else shlex.quote(word)


def _deeds(sight: Sight) -> dict[str, Callable[..., Any]]:
    """Return what can be done on a page, by name."""
    mouse = sight.page.mouse

    def drag(selector: str, *shares: str) -> None:
        """Press the mouse at a share of an element's width, and move it to others."""
        box = sight.one(selector).bounding_box()
        assert box is not None
        for number, share in enumerate(shares):
            mouse.move(box["x"] + float(share) * box["width"], box["y"] + box["height"] / 2, steps=8)
            if not number:
                mouse.down()
        mouse.up()

    def follow(fragment: str) -> None:
        sight.tell(f"void (location.hash = {fragment!r})")

    def size(width: str, height: str) -> None:
        sight.page.set_viewport_size({"width": int(width), "height": int(height)})

    def choose(selector: str, label: str) -> None:
        sight.one(selector).select_option(label=label)

    return {
        "back": sight.page.go_back,
        "choose": choose,
        "click": lambda selector: sight.one(selector).first.click(),
        "drag": drag,
        "fill": lambda selector, text: sight.one(selector).fill(text),
        "expect": sight.expect,
        "focus": lambda selector: sight.one(selector).focus(),
        "follow": follow,
        "hover": lambda selector: sight.one(selector).first.hover(),
        "open": lambda fragment: sight.go(f"{sight.page.url.partition('#')[0]}#{fragment}"),
        "print": lambda: sight.page.emulate_media(media="print", color_scheme="dark"),
        "reload": sight.page.reload,
        "rest": sight.rest,
        "run": sight.tell,
        "size": size,
        "type": sight.page.keyboard.type,
        "wait": lambda ms: sight.page.wait_for_timeout(int(ms)),
    }
