"""A table of Mäxchen as a drawing: the cup and the dice, what was announced, the players and their points.

Up to eight players sit around a wide table. More of them are a list beside it; below a tall one all are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.cli.render.svg import maexchen_table as things
from kiebitz.cli.render.svg.maexchen_table import ANNOUNCED_SIZE, DICE_SIZE, Roll
from kiebitz.cli.render.svg.pieces import SMALL, Box, felt, text
from kiebitz.cli.render.svg.shapes import lines
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.render.text.maexchen_words import between, not_known, player_to_move, told
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.dice import MIA

_MOST_AROUND = 8
_MOST_LISTED = 40
_LETTER = 0.58
"""How wide a letter is, about, in parts of its height."""

_REMARK = 34.0
_LEADING = 1.3
_PLATE = 104.0
"""Heights of a remark, of lines in parts of their letters, and of a player's plate."""


class _Table:
    """What is drawn of a scene."""

    def __init__(self, scene: Scene) -> None:
        number, self.part = scene.game()
        known = scene.state.get("players", {})
        self.watching = sorted(name for name, about in known.items() if about.get("spectator"))
        self.scores: dict[str, int] = scene.state.get("scores", {})
        self.players: Sequence[str] = self.part.get("players", sorted({*known} - {*self.watching}))
        self.absent = sorted({*known, *self.scores} - {*self.players} - {*self.watching})
        self.to_move = player_to_move(self.part)
        self.announced: dict[str, str] = self.part.get("announced", {})
        self.lost: Sequence[str] = self.part.get("lost", {}).get("names", ())
        self.actual: str | None = self.part.get("actual")
        self.round = f"round {self.part.get('round', '?')}" if self.part else ""
        if self.part:
            story = told(self.part, scene.events, _name, _words)
            events = [event for event in scene.events if str(event.game_id) == number]
        else:
            story = between(scene.events, _name, _words)
            events = self._last_round(scene.events)
        self.story = [line for line in story.plain.split("\n") if line.strip()]
        self.said = [
            (str(event.data.get("name", "")), str(event.data.get("dice", "")))
            for event in events
            if event.kind == "announced"
        ]
        if self.announced and not self.said:
            self.said = [(self.announced.get("name", ""), self.announced.get("dice", ""))]

    def _last_round(self, events: Sequence[Event]) -> list[Event]:
        """Between two rounds the events of the last one, whose dice stay on the table."""
        ends = [event for event in events if event.kind in ("lost", "round_canceled")]
        if not ends:
            return []
        last = [event for event in events if event.game_id == ends[-1].game_id]
        self.lost = ends[-1].data.get("names", ())
        self.actual = next((event.data.get("dice") for event in last if event.kind == "actual_dice"), None)
        return last

    def private(self, name: str | None) -> dict[str, Any]:
        """What is known of a player that others may not see."""
        private: dict[str, Any] = self.part.get("private", {}).get(name, {})
        return private

    def thrown(self) -> tuple[str, Roll]:
        """The dice as they lie there."""
        roller = self.part.get("rolling") or self.announced.get("name")
        if self.actual is not None:
            return self.actual, "open"
        if (secret := self.private(roller).get("dice")) is not None:
            return secret, "secret"
        return "", "none" if roller is None else "hidden"

    def state(self, name: str) -> str:
        """How a player's plate is marked."""
        if name in self.lost:
            return "lost"
        if name == self.to_move:
            return "turn"
        return "joins" if self.private(name).get("joined") and "players" not in self.part else ""

    def doing(self, name: str) -> str:
        """What a player does, in a word or two."""
        playing = self.part.get("phase") == "started"
        if self.state(name) == "lost":
            return "lost"
        if playing and self.part.get("seer") == name:
            return "wants to see"
        if playing and self.part.get("rolling") == name:
            return "rolls"
        if self.announced.get("name") == name:
            dice = self.announced.get("dice", "?")
            words = "Mäxchen" if dice == MIA else dice
            return f"{'bluffs' if self.private(name).get('bluff') else 'says'} {words}"
        if name == self.to_move:
            return "next?" if "turn" in self.part.get("inferred", ()) else "to move"
        return "joins" if self.state(name) == "joins" else ""

    def points(self, name: str) -> str:
        """A player's points; before the first are told nobody misses them."""
        return str(self.scores.get(name, "?")) if self.scores else ""

    def remarks(self, room: float) -> list[str]:
        """What else there is to say, each on a line."""
        unknown = not_known(self.part)
        absent = [
            f"{_short(name)} {self.scores[name]}" if name in self.scores else _short(name)
            for name in self.absent
        ]
        found = [f"not known: {unknown}"] if unknown else []
        found += [_listing("not in this round: ", absent, room)] if absent else []
        watching = [_short(name) for name in self.watching]
        return found + ([_listing("watching: ", watching, room)] if watching else [])


def draw_maexchen(scene: Scene, sheet: Sheet) -> None:
    """Draw a table with its players."""
    table = _Table(scene)
    shown = table.players
    if len(shown) > _MOST_LISTED:
        shown = shown[: _MOST_LISTED - 1]
    if len(shown) <= _MOST_AROUND and not sheet.is_tall:
        _put_around(sheet, table, shown)
    else:
        _put_listed(sheet, table, shown)
    _say(sheet, table, shown)


# Where players sit.


def _put_around(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    """Players above and below the table, clockwise from the upper left."""
    above = -(-len(players) // 2)
    rows = [(players[:above], 8.0), (players[above:][::-1], 800 - _PLATE - 8)]
    for names, y in rows:
        width = min(1580 / max(1, len(names)), 440.0)
        left = (1600 - len(names) * width) / 2
        for number, name in enumerate(names):
            _put_plate(sheet, table, name, Box(left + number * width + 6, y, width - 12, _PLATE))
    _put_middle(sheet, table, Box(10, _PLATE + 18, 1580, 800 - 2 * _PLATE - 36))


def _put_listed(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    """Players in two columns, in their order, below a tall table, or many of them beside a wide one."""
    more = len(table.players) - len(players)
    rows = max(1, -(-(len(players) + bool(more)) // 2))
    if sheet.is_tall:
        high = round(min(_PLATE, (742 if rows < 8 else 800) / rows), 1)
        box = Box(1, 1098 - rows * high, 698, rows * high)
        middle = Box(6, 6, 688, box.y - 12)
    else:
        high = round(min(_PLATE + 30, 788 / rows), 1)
        box = Box(690, 6, 904, rows * high)
        middle = Box(8, 8, 672, 784)
    width = box.width / 2
    for number, name in enumerate(players):
        # Few are read line by line, many column by column.
        line, column = divmod(number, 2) if len(players) <= _MOST_AROUND else divmod(number, rows)[::-1]
        gap = 6 if high >= things.ONE_LINE + 6 else 0
        plate = Box(box.x + column * width, box.y + line * high, width - 2, high - gap)
        (_put_plate if plate.height >= things.ONE_LINE else _put_row)(sheet, table, name, plate)
    if more:
        words = text(f"and {more} more players", SMALL, width, "k-ink")
        sheet.put(words, box.x + width + 10, box.y + (rows - 0.5) * high + 8)
    _put_middle(sheet, table, middle)


def _put_plate(sheet: Sheet, table: _Table, name: str, box: Box) -> None:
    """A player, and below the name points and what is being done."""
    state = table.state(name)
    sheet.put(things.plate(name[:60], state, box.width, box.height), box.x, box.y)
    base = box.y + box.height / 2 + 29
    x = box.x + 16
    room = box.width - 28
    doing = table.doing(name)
    if points := table.points(name):
        words = f"{points} point{'' if points == '1' else 's'}"
        if _LETTER * 28 * (len(words) + 1 + len(doing)) > room:
            words = points
        sheet.put(text(words, 28, room, "k-ink"), x, base)
        x += max(150.0 if words != points else 0.0, _LETTER * 28 * (len(words) + 1))
    if doing:
        size = 28 if len(doing) < 10 else SMALL
        sheet.put(text(doing, size, box.x + box.width - x, _ink(state, doing), bold=True), x, base)


def _put_row(sheet: Sheet, table: _Table, name: str, box: Box) -> None:
    """A player on one line: of what is being done there is its mark alone where a name is long."""
    state, points, doing = table.state(name), table.points(name), table.doing(name)
    sheet.put(things.plate(name[:60], state, box.width, box.height), box.x, box.y)
    right, base = box.x + box.width - 10, box.y + box.height / 2 + 9
    if points:
        sheet.put(text(points, SMALL, 80, "k-ink", bold=True, anchor="end"), right, base)
    left = _LETTER * 32 * len(name) + 40
    room = box.width - left - 60
    if doing and doing not in ("lost", "joins") and room >= _LETTER * SMALL * len(doing):
        words = text(doing, SMALL, room, _ink(state, doing), anchor="end")
        sheet.put(words, right - 50, base)


def _ink(state: str, doing: str) -> str:
    if state == "lost" or doing.startswith("bluffs"):
        return "k-alarm"
    return "k-turn" if state == "turn" else "k-ink"


# The middle of the table.


def _put_middle(sheet: Sheet, table: _Table, box: Box) -> None:
    """The dice, what is going on, and what was announced: beside each other, or one below the other."""
    sheet.put(felt(box.width, round(box.height, 1), 36, 2), box.x, box.y)
    bottom = box.y + box.height - 14
    for words in reversed(table.remarks(box.width - 60)):
        sheet.put(text(words, SMALL, box.width - 60, "k-faint"), box.x + 30, bottom - 4)
        bottom -= _REMARK
    if table.round:
        sheet.put(text(table.round, 28, 300, "k-faint", bold=True), box.x + 30, box.y + 42)
    room = Box(box.x, box.y + 10, box.width, bottom - box.y - 10)
    (_put_beside if box.width > 1.35 * box.height else _put_stacked)(sheet, table, room)


def _put_beside(sheet: Sheet, table: _Table, box: Box) -> None:
    """The dice at the left, words and announcements at the right."""
    is_wide = box.width > 1000
    scale = 1.3 if is_wide else min(1.0, 0.36 * box.width / DICE_SIZE[0], box.height / DICE_SIZE[1])
    wide = DICE_SIZE[0] * scale
    middle = box.x + (0.2 * box.width if is_wide else wide / 2 + 16)
    _put_dice(sheet, table, middle, box.y + (box.height - DICE_SIZE[1] * scale) / 2, scale)
    left = middle + wide / 2 + (10 if is_wide else 20)
    room = box.x + box.width - left - 30
    larger = 1.2 if is_wide and len(table.said) < 3 else 1.0
    row = (ANNOUNCED_SIZE[1] * larger + 24) if box.height > 330 and table.said else 0.0
    told = _fitted(table.story, 52.0 if is_wide else 28.0, room, box.height - row)
    y = box.y + max(0.0, (box.height - _height(told) - row) / 2)
    y = _put_story(sheet, told, left, y, room)
    if row:
        _put_announced(sheet, table, Box(left, y + 24, room, row), larger)


def _put_stacked(sheet: Sheet, table: _Table, box: Box) -> None:
    """The dice above, words and announcements below."""
    row = ANNOUNCED_SIZE[1] + 10 if table.said else 0.0
    room = box.width - 60
    told = _fitted(table.story, 38.0, room, box.height - row - 200)
    scale = max(0.5, min(1.4, room / DICE_SIZE[0], (box.height - row - _height(told) - 50) / DICE_SIZE[1]))
    spare = max(0.0, (box.height - row - _height(told) - scale * DICE_SIZE[1]) / 4)
    y = box.y + spare
    _put_dice(sheet, table, box.x + box.width / 2, y, scale)
    y = _put_story(sheet, told, box.x + 30, y + scale * DICE_SIZE[1] + spare, room)
    if row:
        _put_announced(sheet, table, Box(box.x + 30, y + spare, room, row), 1.0)


def _put_dice(sheet: Sheet, table: _Table, x: float, y: float, scale: float) -> None:
    dice, roll = table.thrown()
    sheet.put(things.thrown(dice[:20], roll, round(scale, 2)), x, y)


_Line = tuple[str, float, str, bool]
"""Words, the height of their letters, their colour, and whether they are bold."""


def _fitted(story: Sequence[str], large: float, room: float, height: float) -> list[_Line]:
    """The story in lines, the first one bold: as large as all of it fits, and cut where it never does."""
    found: list[_Line] = []
    for size in sorted({large, *(size for size in (38.0, 34.0, 30.0, 27.0, SMALL) if size < large)})[::-1]:
        found = []
        for number, line in enumerate(story):
            letters = size if number == 0 else max(SMALL, 0.8 * size)
            # Bold letters are wider.
            within = lines(line, letters, room / 1.14 if number == 0 else room)
            found += [(words, letters, _colour(line), number == 0) for words in within]
        if _height(found) <= height:
            return found
    return found[: max(1, int(height // (_LEADING * SMALL)))]


def _height(told: Iterable[_Line]) -> float:
    return sum(_LEADING * size for _, size, _, _ in told)


def _colour(line: str) -> str:
    """A bluff stands out; the server's own word for a reason does not."""
    if line.startswith("a bluff:"):
        return "k-alarm"
    return "k-faint" if line.isupper() or line == "under the cup" else "k-ink"


def _put_story(sheet: Sheet, told: list[_Line], x: float, y: float, room: float) -> float:
    """Put the lines below each other; gives where they end."""
    for words, size, colour, bold in told:
        y += _LEADING * size
        sheet.put(text(words, size, room, colour, bold), x, y - size * 0.35)
    return y


def _put_announced(sheet: Sheet, table: _Table, box: Box, scale: float) -> None:
    """The latest announcements of the round, the last of which is to be beaten."""
    wide = ANNOUNCED_SIZE[0] * scale + 8
    said = table.said[-max(1, int((box.width + 8) // wide)) :]
    for number, (name, dice) in enumerate(said, 1):
        state = ""
        if number == len(said):
            state = "bluff" if table.private(name).get("bluff") else "last"
        bubble = things.announced(_short(name), dice[:12], state, scale)
        sheet.put(bubble, box.x + (number - 1) * wide, box.y)


# In words.


def _short(name: str) -> str:
    return shorten(name, 24, UNICODE)


def _name(name: str) -> Text:
    return Text(_short(name) or '""')


def _words(words: str) -> Text:
    return Text(shorten(words, 120, UNICODE))


def _listing(title: str, names: Sequence[str], room: float) -> str:
    """A title and as many names as fit on a line."""
    cells = int(room / (_LETTER * SMALL)) - len(title)
    line = ""
    for number, name in enumerate(names):
        left = len(names) - number
        longer = f"{line}, {name}" if line else name
        if number and len(longer) > cells - (len(f" and {left - 1} more") if left > 1 else 0):
            return f"{title}{line} and {left} more"
        line = longer
    return title + line


def _say(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    dice, roll = table.thrown()
    said = [table.round, *table.story]
    if roll == "hidden":
        said.append("the dice are under the cup")
    elif roll == "secret":
        said.append(f"under the cup: {dice}")
    for name in players:
        points = table.points(name)
        facts = [f"{points} point{'' if points == '1' else 's'}" if points else "", table.doing(name)]
        told = ", ".join(filter(None, facts))
        said.append(f"{name}: {told}" if told else name or '""')
    if len(table.players) > len(players):
        said.append(f"and {len(table.players) - len(players)} more players")
    for words in filter(None, (*said, *table.remarks(2000))):
        sheet.say(shorten(words[:400], 200, UNICODE))
