"""Scenes drawn for a terminal, and their events."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from kiebitz.cli.render.text import draw
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event


def drawn(
    state: dict[str, Any],
    events: list[Event] | None = None,
    *,
    width: int = 80,
    encoding: str = "utf-8",
    protocol: str = "maexchen",
) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    console = Console(file=out, width=width, highlight=False)
    console.print(draw(protocol, Scene(state, events or [], sorted(state.get("players", {})))))
    out.seek(0)
    return out.read()


def event(number: int, kind: str, **data: Any) -> Event:
    return Event(number, 1, 7, number, number, kind, None, data, [])
