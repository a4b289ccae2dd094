"""The picture of a table as `[board]` of a protocol file describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from kiebitz.dissectors.game.state import State, set_at
from kiebitz.dissectors.game.view import (
    Dice,
    Element,
    Figure,
    Grid,
    Hand,
    Line,
    Name,
    Pile,
    Scene,
    Seat,
    Span,
    Token,
    View,
    counted,
)
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocol_file.expressions import Scope, compile_expression, optional_expression
from kiebitz.dissectors.protocol_file.game.grid import PLAYER, GridView
from kiebitz.dissectors.protocol_file.game.plan import GAMES, KEPT, ROOMS
from kiebitz.dissectors.protocol_file.sections import BoardSpec
from kiebitz.dissectors.protocol_file.templates import Sentence, sentence_of, value_words

_MAX_SEATS = 100
_MAX_PIECES = 100
_MAX_FIGURES = 8
_MAX_LINES = 8
_MAX_LOOKED_AT = 3
"""Number of events that are searched for the latest change of the grid: a turn may follow a move."""

_MAX_OF_A_MOVE = 4
"""Maximum number of cells that change in one move, as in castling; more are another board."""

States = Sequence[Mapping[str, Any]]


def states_of(state: State, number: str | None = None) -> States:
    """Return the parts of a state in which paths are looked up: that of the game, and the whole.

    Without a number, it is the newest game; if there is none, the room that was last put.
    """
    games, rooms = state.get(GAMES), state.get(ROOMS)
    parts = games if isinstance(games, dict) else {}
    known = [key for key, part in parts.items() if key.isdecimal() and isinstance(part, dict)]
    if number not in known:
        number = max(known, key=int, default=None)
    if number is not None:
        return parts[number], state
    waiting = [part for part in rooms.values() if isinstance(part, dict)] if isinstance(rooms, dict) else []
    return (*waiting[-1:], state)


def _state_before(state: State, events: Sequence[Event]) -> State | None:
    """Return a state as it was before the last of these events, as far as they say so; None without changes.

    A value that no earlier event has set is left out.
    """
    *earlier, last = events
    if not last.changes:
        return None
    known = {
        (tuple(path), event.game_id): value for event in earlier for path, value in event.changes if path
    }
    before = _copy_along(state, [_shown_path(path, last) for path, _ in last.changes])
    for path, _ in last.changes:
        set_at(before, _shown_path(path, last), known.get((tuple(path), last.game_id)))
    return before


def _shown_path(path: Sequence[str], event: Event) -> list[str]:
    """Return the path of a change in the state that is shown, whose games have their own numbers."""
    is_of_game = len(path) > 1 and path[0] == GAMES and event.game_id is not None
    return [GAMES, str(event.game_id), *path[2:]] if is_of_game else [*path]


def _copy_along(state: State, paths: Sequence[Sequence[str]]) -> State:
    """Return a state whose objects along these paths are copies, so that they can be changed."""
    copied = dict(state)
    for path in paths:
        place = copied
        for step in path[:-1]:
            inner = place.get(step)
            if not isinstance(inner, dict):
                break
            place[step] = dict(inner)
            place = place[step]
    return copied


class Board:
    """The compiled paths of a board; without `[board]`, players with their values."""

    def __init__(self, spec: BoardSpec | None) -> None:
        self._spec = spec
        about = spec or BoardSpec()
        self.unit = about.unit
        self._title = sentence_of(about.title)
        self._players = compile_expression(about.players)
        self._turn = compile_expression(about.turn or "turn")
        self._scores = optional_expression(about.scores)
        self._figures = [(words, compile_expression(path)) for words, path in about.figures.items()]
        self._hand = optional_expression(about.hand)
        self._dice = optional_expression(about.dice)
        self._piles = [(label, compile_expression(path)) for label, path in about.piles.items()]
        self._grid = GridView(about.grid) if about.grid is not None else None
        self._text = [sentence_of(text) for text in about.text]

    # Scores.

    def scores(self, state: State, states: States) -> dict[str, int]:
        """Return the players' scores, as far as they are whole numbers."""
        found = {}
        for name in self._names(Scope({}, None, states)):
            score = self._score(name, states)
            if isinstance(score, int) and not isinstance(score, bool):
                found[name] = score
        return found

    def _score(self, name: str, states: States) -> Any:
        scope = Scope({PLAYER: name}, name, states)
        if self._scores is not None:
            return self._scores.evaluate(scope)
        if self._spec is None:
            return next((score for path in _SCORES if (score := path.evaluate(scope)) is not None), None)
        return None

    def _names(self, scope: Scope) -> list[str]:
        players = self._players.evaluate(scope)
        names = players if isinstance(players, dict | list) else ()
        return [name for name in islice(names, _MAX_SEATS) if isinstance(name, str)]

    # View.

    def view(self, scene: Scene) -> View:
        """Return the picture of a scene."""
        games = scene.state.get(GAMES)
        latest = next(
            (
                str(event.game_id)
                for event in reversed(scene.events)
                if isinstance(games, dict) and str(event.game_id) in games
            ),
            None,
        )
        states = states_of(scene.state, latest)
        scope = Scope({}, None, states)
        names = self._names(scope)
        changes = [change for event in scene.events for change in event.changes]
        is_over = any(path == [GAMES, latest] and value is None for path, value in changes)
        turn = None if is_over else self._turn.evaluate(scope)
        grid = self._grid.grid(scope, names) if self._grid is not None else None
        seats = tuple(self._seats(names, turn, states, grid))
        dice = self._drawn_dice(scope)
        piles = tuple(self._drawn_piles(scope))
        story = tuple(self._story(scope, names, turn))
        has_more = grid is not None or dice is not None or any(pile.is_known for pile in piles) or story
        if grid is not None:
            grid = self._with_changed_cell(grid, scene, latest, names)
        if self._hand is None:
            # Tables without hands have no room for piles.
            story, piles = (*story, *map(_pile_line, piles)), ()
        return View(
            names=scene.names,
            title=tuple(_known(self._title, scope)),
            idle="" if names or has_more else "nothing is known yet",
            seats=seats,
            story=story,
            dice=dice,
            piles=piles,
            grid=grid,
            unknown="the board is not known" if self._grid is not None and grid is None else "",
        )

    def _with_changed_cell(self, grid: Grid, scene: Scene, latest: str | None, names: Sequence[str]) -> Grid:
        """Return the grid with the cell that its latest change has used, if that is one move."""
        assert self._grid is not None
        for place in range(len(scene.events) - 1, max(len(scene.events) - 1 - _MAX_LOOKED_AT, -1), -1):
            before = _state_before(scene.state, scene.events[: place + 1])
            if before is None:
                continue
            old = self._grid.grid(Scope({}, None, states_of(before, latest)), names)
            rows_of = {each.owner: each.rows for each in old.all_boards} if old is not None else {}
            boards = [*grid.all_boards]
            changed = [
                (number, y, x)
                for number, each in enumerate(boards)
                for rows in (rows_of.get(each.owner, ()),)
                for y, row in enumerate(each.rows)
                for x, token in enumerate(row)
                if y >= len(rows) or x >= len(rows[y]) or token != rows[y][x]
            ]
            if not changed:
                continue
            put = [(number, y, x) for number, y, x in changed if boards[number].rows[y][x] is not None]
            if len(changed) <= _MAX_OF_A_MOVE:
                number, *fresh = (put or changed)[-1]
                boards[number] = msgspec.structs.replace(boards[number], fresh=tuple(fresh))
            return msgspec.structs.replace(boards[0], beside=tuple(boards[1:]))
        return grid

    def empty_grid(self, states: Sequence[State]) -> str | None:
        """Return why the grid is empty in all of these states although there are values for it, or None."""
        if self._grid is None:
            return None
        problem = None
        for state in states:
            scope = Scope({}, None, states_of(state))
            given, drawn, keys = self._grid.fill(scope, self._names(scope))
            if drawn:
                return None
            if given:
                shown = f": keys are {', '.join(keys)}" if keys else ""
                problem = f"the grid shows none of {given} values{shown}"
        return problem

    def _seats(self, names: Sequence[str], turn: Any, states: States, grid: Grid | None) -> Iterator[Seat]:
        signs = _owned_signs(grid)
        scopes = {name: Scope({PLAYER: name}, name, states) for name in names}
        scores = {name: self._score(name, states) for name in names}
        has_scores = self._scores is not None and any(score is not None for score in scores.values())
        # Omit a number that is unknown for all players.
        numbers = []
        for words, path in self._figures:
            values = {name: path.evaluate(scope) for name, scope in scopes.items()}
            if any(value is not None for value in values.values()):
                numbers.append((words, values))
        hands = {name: self._drawn_hand(scope) for name, scope in scopes.items()}
        has_hands = any(
            hand is not None and (hand.pieces or hand.hidden is not None) for hand in hands.values()
        )
        for name, scope in scopes.items():
            figures = [_figure(scores[name], _counted(scores[name], self.unit))] if has_scores else []
            figures += [
                _figure(values[name], f"{words} {value_words(values[name])}") for words, values in numbers
            ]
            if self._spec is None:
                figures += self._own_values(name, scope)
            hand = hands[name] if has_hands else None
            if self._grid is not None and hand is not None:
                # Beside a grid there is no room for pieces.
                figures += _held(hand)
                hand = None
            yield Seat(
                name=name,
                state="turn" if turn == name else "",
                marks=(Span(signs[name]),) if name in signs else (),
                figures=tuple(figures[:_MAX_FIGURES]),
                hand=hand,
            )

    def _own_values(self, name: str, scope: Scope) -> Iterator[Figure]:
        """Yield the values of a player, as there is no board."""
        values = self._players.evaluate(scope)
        values = values.get(name) if isinstance(values, dict) else None
        for key, value in values.items() if isinstance(values, dict) else ():
            yield _figure(value, f"{key} {value_words(value)}")

    def _drawn_hand(self, scope: Scope) -> Hand | None:
        if self._hand is not None:
            return _hand(self._hand.evaluate(scope))
        if self._spec is None:
            own = _PRIVATE.evaluate(scope)
            lists = (
                (value for value in own.values() if isinstance(value, list)) if isinstance(own, dict) else ()
            )
            held = next(iter(lists), None)
            return None if held is None else _hand(held)
        return None

    def _drawn_dice(self, scope: Scope) -> Dice | None:
        if self._dice is None:
            return None
        value = self._dice.evaluate(scope)
        faces = value if isinstance(value, list) else [] if value is None else [value]
        shown = tuple(
            face if isinstance(face, int) and not isinstance(face, bool) else value_words(face)
            for face in faces[:_MAX_PIECES]
        )
        return Dice(shown, "open" if shown else "none")

    def _drawn_piles(self, scope: Scope) -> Iterator[Pile]:
        for label, path in self._piles:
            value = path.evaluate(scope)
            if _is_count(value):
                yield Pile((label,), hidden=value)
            elif isinstance(value, list):
                yield Pile((label,), _tokens(value))
            elif value is None:
                yield Pile((label,), hidden=None, is_known=False)
            else:
                yield Pile((label,), _tokens([value]))

    def _story(self, scope: Scope, names: Sequence[str], turn: Any) -> Iterator[Line]:
        for text in self._text:
            yield _line(text, scope, names)
        if self._spec is None:
            yield from self._other_values(scope)
        if isinstance(turn, str) and turn in names:
            yield (Name(turn), " is to move")

    def _other_values(self, scope: Scope) -> Iterator[Line]:
        """Yield the single values of the state that belong to no player."""
        shown = (
            (f"{key} {value_words(value)}",)
            for state in scope.states
            for key, value in state.items()
            if key not in (*KEPT, GAMES, "turn") and not isinstance(value, dict | list)
        )
        yield from islice(shown, _MAX_LINES)


_SCORES = [compile_expression(f"players.{{player}}.{key}") for key in ("points", "score")]
_PRIVATE = compile_expression("private.{player}")


def _pile_line(pile: Pile) -> Line:
    return *pile.label, ": ", pile.pieces or (str(pile.hidden) if pile.hidden else pile.words)


def _counted(value: Any, unit: str) -> str:
    words = value_words(value)
    return counted(words, unit.removesuffix("s")) if unit.endswith("s") else f"{words} {unit}"


def _figure(value: Any, words: str) -> Figure:
    return Figure(words, value_words(value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _hand(value: Any) -> Hand:
    if _is_count(value):
        return Hand(hidden=value)
    if isinstance(value, list):
        return Hand(_tokens(value))
    return Hand(hidden=None)


def _held(hand: Hand) -> Iterator[Figure]:
    """Yield the words for a hand that is known."""
    if hand.pieces:
        words = ", ".join(piece.words for piece in hand.pieces if piece is not None)
        yield Figure(f"holds {words}", str(len(hand.pieces)))
    elif hand.hidden is not None:
        yield Figure(f"holds {hand.hidden}", str(hand.hidden))


def _owned_signs(grid: Grid | None) -> dict[str, str]:
    """Return the sign of each player with a token on the grid, if it is not the name itself."""
    boards = grid.all_boards if grid is not None else ()
    tokens = (token for each in boards for token in each.tokens)
    return {token.owner: token.words for token in tokens if token.owner not in ("", token.words)}


def _tokens(values: Sequence[Any]) -> tuple[Token, ...]:
    return tuple(Token(value_words(value)) for value in values[:_MAX_PIECES])


def _known(sentence: Sentence, scope: Scope) -> Iterator[str]:
    """Yield a sentence with words whose values are known."""
    values = sentence.evaluate(scope)
    if sentence.parts and None not in values.values():
        yield sentence.fill(lambda word: value_words(values[word]))


def _line(sentence: Sentence, scope: Scope, names: Sequence[str]) -> Line:
    """Return a sentence in which players have their colours and unknown values are faint."""
    values = sentence.evaluate(scope)
    elements: list[Element] = []
    for is_place, text in sentence.parts:
        value = values[text] if is_place else None
        if not is_place:
            elements.append(text)
        elif isinstance(value, str) and value in names:
            elements.append(Name(value))
        else:
            elements.append(Span(value_words(value), "faint" if value is None else ""))
    return tuple(elements)
