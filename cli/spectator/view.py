"""Pictures, drawings and sentences of a session's tables, for an observer or for one player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kiebitz.cli.configuration.file import named
from kiebitz.cli.render.text import draw
from kiebitz.cli.terminal.screen import Group, RenderableType, Text
from kiebitz.cli.terminal.table import short_address
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import PUBLIC, Event, Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.event_text import game_title
from kiebitz.storage.read.seek import (
    state_of_game,
    state_with_last_game,
)
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility

if TYPE_CHECKING:
    # Loaded when an SVG is drawn; terminals do without.
    from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape

RECENT = 60
"""Number of recent events passed to a picture: enough for a round, whose result stays visible."""

_KNOWN = 500
"""Size of the cache of events as a player sees them: successive pictures share most events."""


class SpectatorView:
    """The tables of a session as `player` sees them, or an observer of all players if None."""

    def __init__(self, timeline: Timeline, player: str | None, visibility: Visibility | None = None) -> None:
        self._timeline = timeline
        self._player = player
        self._visibility = visibility or Visibility(timeline)
        self._known: dict[int, Event | None] = {}
        self._has_several = len(timeline.tables()) > 1
        self._names: dict[int, list[str]] = {}

    def renew(self) -> None:
        """Reload players and tables after the session has grown; players keep their colours."""
        self._known.clear()
        self._has_several = len(self._timeline.tables()) > 1
        for number, before in self._names.items():
            self._names[number] = before + [name for name in self._everybody(number) if name not in before]

    def may_see(self, event: Event) -> bool:
        """Return whether an event is visible."""
        return self.seen(event) is not None

    def _seen_state(self, table_id: int, seq: int, state: State, game: int | None) -> State:
        if self._player is not None:
            state = self._visibility.state(self._player, table_id, seq)
            if game is not None:
                state = state_of_game(self._visibility, self._player, table_id, game, seq, state)
        return state

    def games(self, table_id: int, seq: int, state: State) -> dict[str, str]:
        """Return the labels of a table's games by number, if there are several at once."""
        return self.games_in(self._seen_state(table_id, seq, state, None))

    def games_in(self, seen: State) -> dict[str, str]:
        """Return the same for the visible part of a state."""
        games = seen.get("games")
        known = map(self._timeline.game, map(int, games)) if isinstance(games, dict) else ()
        found = {
            str(self._timeline.numbers.number("games", game.id)): self.label(game)
            for game in known
            if game is not None
        }
        return found if len(found) > 1 else {}

    def label(self, game: Game) -> str:
        """Return the label of a game."""
        return self._visibility.label(game, self._player)

    def sentence(self, event: Event) -> str:
        """Return an event as a sentence."""
        return self._visibility.sentence(self.seen(event) or event)

    def line(self, event: Event) -> str:
        """Return time, table and sentence of an event as one line."""
        return f"{self.seconds(event):12.6f}  {self.where(event)}{self.sentence(event)}"

    def where(self, event: Event) -> str:
        """Return the event's table followed by blanks if the session has several, else an empty text."""
        if not self._has_several:
            return ""
        return f"{short_address(self._timeline.table(event.table_id).server)}  "

    def seconds(self, event: Event) -> float:
        """Return an event's time in seconds since the start of the session."""
        return self._timeline.seconds(event.ts_ns)

    def latest(self, events: Sequence[Event]) -> str:
        """Return the latest visible event as a sentence."""
        event = next(filter(self.may_see, reversed(events)), None)
        return self.sentence(event) if event is not None else "no events yet"

    def closing(self, events: Sequence[Event]) -> str | None:
        """Return how a game ended, as a sentence, if since then players have only left; else None."""
        for event in reversed(events):
            dissector = dissector_of(self._protocol(event.table_id))
            kind = dissector.grammar.events.get(event.kind) if dissector is not None else None
            if kind is None or kind.ending is None:
                is_end = kind is not None and kind.ends and event is not events[-1] and self.may_see(event)
                return self.sentence(event) if is_end else None
        return None

    def picture(
        self, table_id: int, state: State, events: Sequence[Event], game: int | None = None
    ) -> RenderableType:
        """Return a table below its heading.

        `events` are the last ones up to `state`, oldest first; `game` is the row id of a selected game.
        """
        return Group(self.heading(table_id, events, game), self.table(table_id, state, events, game))

    def heading(self, table_id: int, events: Sequence[Event], game: int | None = None) -> Text:
        """Return the line above a table: protocol, server, game and time."""
        facts = self._facts(table_id, events, game)
        return Text("  ".join(facts), "bold", no_wrap=True, overflow="ellipsis")

    def table(
        self, table_id: int, state: State, events: Sequence[Event], game: int | None = None
    ) -> RenderableType:
        """Return a table without heading."""
        return draw(self._protocol(table_id), self.scene(table_id, state, events, game))

    def title(self, table_id: int, events: Sequence[Event], game: int | None = None) -> str:
        """Return the heading as text, not escaped."""
        return " · ".join(self._facts(table_id, events, game))

    def drawings(
        self,
        table_id: int,
        state: State,
        events: Sequence[Event],
        shapes: Sequence[Shape],
        game: int | None = None,
        seat: str | None = None,
    ) -> dict[Shape, Drawing]:
        """Draw a table as SVG in each of these shapes, from `seat` in a view without a seat of its own."""
        from kiebitz.cli.render.svg import draw_shapes

        scene = self.scene(table_id, state, events, game)
        if scene.viewer is None:
            scene = msgspec.structs.replace(scene, viewer=seat)
        return draw_shapes(self._protocol(table_id), scene, shapes)

    def svg(self, table_id: int, state: State, events: Sequence[Event], game: int | None = None) -> bytes:
        """Return an SVG document with the title above and the latest event below."""
        from kiebitz.cli.render.svg.theme import document

        drawing = self.drawings(table_id, state, events, ["wide"], game)["wide"]
        return document(drawing, self.title(table_id, events, game), self.latest(events))

    def _facts(self, table_id: int, events: Sequence[Event], game: int | None) -> list[str]:
        numbers = self._timeline.numbers
        facts = [game_title(self._protocol(table_id)), named(self._timeline.table(table_id).server)]
        if game is None and events and self.may_see(events[-1]):
            game = events[-1].game_id
        if game is not None:
            facts.append(f"game {numbers.number('games', game)}")
        if events:
            number = numbers.number("events", events[-1].id)
            facts += [f"{self.seconds(events[-1]):.3f}s", f"#{number}"]
        return facts

    def scene(self, table_id: int, state: State, events: Sequence[Event], game: int | None = None) -> Scene:
        """Return a table with its latest `events`, from which its view is made."""
        seq = events[-1].seq if events else self._timeline.first_seq(table_id)
        shown = [seen for event in events if (seen := self.seen(event)) is not None]
        return self.scene_of(table_id, self._drawn_state(table_id, seq, state, game), shown)

    def scene_of(self, table_id: int, drawn: State, shown: Sequence[Event]) -> Scene:
        """Return the same for a state as it is to be drawn, and events as the player sees them."""
        numbers = self._timeline.numbers
        if numbers.before.get("games"):
            shown = [
                msgspec.structs.replace(event, game_id=numbers.number_if_any("games", event.game_id))
                for event in shown
            ]
        names = self._names.get(table_id)
        if names is None:
            names = self._names[table_id] = self._everybody(table_id)
        viewer = None if self._player == PUBLIC else self._player
        return Scene(numbers.state(drawn), shown, names, viewer)

    def _drawn_state(self, table_id: int, seq: int, state: State, game: int | None) -> State:
        """Return the visible part of a state; a game that has ended stays until the next one begins."""
        state = self._seen_state(table_id, seq, state, game)
        if game is not None:
            return state
        return state_with_last_game(self._visibility, self._player, table_id, seq, state)

    def moment(self, table_id: int, seq: int, state: State, game: int | None) -> tuple[State, list[Event]]:
        """Return the state of a table after event `seq`, or of a game with a row id, and the latest events.

        `state` is the table's; a player's view does not use it.
        """
        if game is not None and self._player is None:
            state = state_of_game(self._visibility, None, table_id, game, seq, state)
        return state, self._timeline.recent(table_id, seq, RECENT, game)

    def seen(self, event: Event) -> Event | None:
        """Return an event as the player sees it; None if it is hidden."""
        if self._player is None:
            return event
        if event.id not in self._known:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[event.id] = self._visibility.seen(event, self._player)
        return self._known[event.id]

    def _protocol(self, table_id: int) -> str:
        return self._timeline.table(table_id).protocol

    def _everybody(self, table_id: int) -> list[str]:
        """Return all players of a table, in an order that is fixed for the session."""
        last = self._timeline.last_seq(table_id)
        return sorted(self._timeline.state_at(table_id, last).get("players", {}))
