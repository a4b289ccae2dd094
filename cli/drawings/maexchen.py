"""A table of Mäxchen as a drawing: the cup and the dice, what was announced, the players and their points.

Up to eight players sit around a wide table, or below a tall one; more of them are a list beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kiebitz.cli.drawings import maexchen_table as pieces
from kiebitz.cli.drawings.maexchen_table import ANNOUNCED_SIZE, DICE_SIZE, SMALL, Roll
from kiebitz.cli.drawings.shapes import lines
from kiebitz.cli.drawings.sheet import Sheet
from kiebitz.cli.pictures.canvas import UNICODE, shorten
from kiebitz.cli.pictures.maexchen_words import between, not_known, player_to_move, told
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.maexchen.dice import MIA

_MOST_AROUND = 8
_MOST_LISTED = 40
_LETTER = 0.58
"""How wide a letter is, about, in parts of its height."""

_REMARK = 34.0


class Box(msgspec.Struct, frozen=True):
    """A rectangle on a sheet."""

    x: float
    y: float
    width: float
    height: float


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
        self.round = f"round {self.part.get('round', '?')}" if self.part else ""
        story = (
            told(self.part, scene.events, _name, _words)
            if self.part
            else between(scene.events, _name, _words)
        )
        self.story = [line for line in story.plain.split("\n") if line.strip()]
        self.said = [
            (str(event.data.get("name", "")), str(event.data.get("dice", "")))
            for event in scene.events
            if event.kind == "announced" and str(event.game_id) == number
        ]
        if self.announced and not self.said:
            self.said = [(self.announced.get("name", ""), self.announced.get("dice", ""))]

    def private(self, name: str | None) -> dict[str, Any]:
        """What is known of a player that others may not see."""
        private: dict[str, Any] = self.part.get("private", {}).get(name, {})
        return private

    def thrown(self) -> tuple[str, Roll]:
        """The dice as they lie there."""
        roller = self.part.get("rolling") or self.announced.get("name")
        if (actual := self.part.get("actual")) is not None:
            return actual, "open"
        if (secret := self.private(roller).get("dice")) is not None:
            return secret, "secret"
        return "", "none" if roller is None else "hidden"

    def state(self, name: str) -> str:
        """How a player's plate is marked."""
        if name in self.part.get("lost", {}).get("names", ()):
            return "lost"
        return "turn" if name == self.to_move else ""

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
        return "joins" if self.private(name).get("joined") else ""

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
    shown = table.players[: _MOST_LISTED if len(table.players) <= _MOST_LISTED else _MOST_LISTED - 1]
    if len(shown) <= _MOST_AROUND:
        (_put_below if sheet.is_tall else _put_around)(sheet, table, shown)
    else:
        _put_listed(sheet, table, shown)
    _say(sheet, table, shown)


# Where players sit.


def _put_around(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    """Players above and below the table, clockwise from the upper left."""
    above = -(-len(players) // 2)
    high = 104.0
    for start, count, y, way in ((0, above, 8.0, 1), (above, len(players) - above, 800 - high - 8, -1)):
        if not count:
            continue
        width = min(1580 / count, 420.0)
        left = (1600 - count * width) / 2
        for number in range(count):
            place = number if way == 1 else count - 1 - number
            plate = Box(left + place * width + 6, y, width - 12, high)
            _put_plate(sheet, table, players[start + number], plate)
    _put_middle(sheet, table, Box(10, high + 18, 1580, 800 - 2 * high - 36))


def _put_below(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    """Players in two columns below a tall table."""
    rows = -(-len(players) // 2)
    high = 100.0
    top = 1094 - rows * (high + 6)
    for number, name in enumerate(players):
        line, column = divmod(number, 2)
        _put_plate(sheet, table, name, Box(6 + 346 * column, top + line * (high + 6), 342, high))
    _put_middle(sheet, table, Box(6, 6, 688, top - 14))


def _put_listed(sheet: Sheet, table: _Table, players: Sequence[str]) -> None:
    """Many players in two columns, in their order, beside a wide table or below a tall one."""
    more = len(table.players) - len(players)
    rows = -(-(len(players) + bool(more)) // 2)
    if sheet.is_tall:
        high = min(56.0, 800 / rows)
        box = Box(1, 1098 - rows * high, 698, rows * high)
        middle = Box(6, 6, 688, box.y - 12)
    else:
        high = min(72.0, 788 / rows)
        box = Box(690, 6, 904, rows * high)
        middle = Box(8, 8, 672, 784)
    width = box.width / 2
    for number, name in enumerate(players):
        column, line = divmod(number, rows)
        x, y = box.x + column * width, box.y + line * high
        doing = table.doing(name)
        points = table.points(name)
        room = (
            width
            - 60
            - _LETTER * SMALL * (len(_short(name)) + len(points))
            - (26 if table.state(name) else 0)
        )
        sheet.put(pieces.row(_short(name), points, table.state(name), width - 2, round(high, 1)), x, y)
        if doing and doing != "lost" and room >= _LETTER * SMALL * len(doing):
            words = pieces.text(doing, SMALL, 200, "k-faint")
            sheet.put(
                words, x + width - 24 - 15 * len(points) - _LETTER * SMALL * len(doing), y + high / 2 + 9
            )
    if more:
        words = pieces.text(f"and {more} more players", SMALL, width, "k-ink")
        sheet.put(words, box.x + width + 10, box.y + (rows - 0.5) * high + 8)
    _put_middle(sheet, table, middle)


def _put_plate(sheet: Sheet, table: _Table, name: str, box: Box) -> None:
    state = table.state(name)
    sheet.put(pieces.plate(name[:60], state, box.width, box.height), box.x, box.y)
    points = table.points(name)
    if points:
        words = f"{points} point{'' if points == '1' else 's'}"
        sheet.put(pieces.text(words, 28, 160, "k-ink"), box.x + 18, box.y + 78)
    if doing := table.doing(name):
        colour = (
            "k-alarm" if state == "lost" or doing.startswith("bluffs") else "k-turn" if state else "k-ink"
        )
        x = 170 if points else 18
        sheet.put(
            pieces.text(doing, 28 if len(doing) < 10 else SMALL, box.width - x, colour, bold=True),
            box.x + x,
            box.y + 78,
        )


# The middle of the table.


def _put_middle(sheet: Sheet, table: _Table, box: Box) -> None:
    """The dice, what is going on, and what was announced: beside each other, or one below the other."""
    sheet.put(pieces.felt(box.width, round(box.height, 1)), box.x, box.y)
    bottom = box.y + box.height - 14
    for words in reversed(table.remarks(box.width - 60)):
        sheet.put(pieces.text(words, SMALL, box.width - 60, "k-faint"), box.x + 30, bottom - 4)
        bottom -= _REMARK
    if table.round:
        sheet.put(pieces.text(table.round, 28, 300, "k-faint", bold=True), box.x + 30, box.y + 42)
    room = Box(box.x, box.y + 10, box.width, bottom - box.y - 10)
    (_put_beside if box.width > 1.35 * box.height else _put_stacked)(sheet, table, room)


def _put_beside(sheet: Sheet, table: _Table, box: Box) -> None:
    scale = min(1.0, 0.4 * box.width / DICE_SIZE[0], box.height / DICE_SIZE[1]) if box.width < 1000 else 1.3
    wide = DICE_SIZE[0] * scale
    x = box.x + 20 + wide / 2
    y = box.y + (box.height - DICE_SIZE[1] * scale) / 2
    _put_dice(sheet, table, x, y, scale)
    left = x + wide / 2 + 20
    room = box.x + box.width - left - 30
    has_row = box.height > 300 and bool(table.said)
    large = 44.0 if box.width > 1000 else 28.0
    told = _fitted(table.story, large, room, box.height - (ANNOUNCED_SIZE[1] + 20 if has_row else 0))
    high = sum(size * 1.3 for _, size, _, _ in told) + (ANNOUNCED_SIZE[1] + 30 if has_row else 0)
    y = box.y + max(0.0, (box.height - high) / 2)
    y = _put_story(sheet, told, left, y, room)
    if has_row:
        _put_announced(sheet, table, left, y + 24, room)


def _put_stacked(sheet: Sheet, table: _Table, box: Box) -> None:
    row = ANNOUNCED_SIZE[1] + 20 if table.said else 0
    room = box.width - 60
    told = _fitted(table.story, 38.0, room, box.height - row - 200)
    words = sum(size * 1.3 for _, size, _, _ in told)
    scale = max(0.5, min(1.35, (box.height - row - words - 60) / DICE_SIZE[1]))
    spare = max(0.0, (box.height - row - words - scale * DICE_SIZE[1]) / 3)
    y = box.y + spare
    _put_dice(sheet, table, box.x + box.width / 2, y, scale)
    y = _put_story(sheet, told, box.x + 30, y + scale * DICE_SIZE[1] + spare, room)
    if table.said:
        _put_announced(sheet, table, box.x + 30, min(y + spare, box.y + box.height - row + 10), room)


def _put_dice(sheet: Sheet, table: _Table, x: float, y: float, scale: float) -> None:
    dice, roll = table.thrown()
    sheet.put(pieces.thrown(dice[:20], roll, round(scale, 2)), x, y)


_Line = tuple[str, float, str, bool]
"""Words, the height of their letters, their colour, and whether they are bold."""


def _fitted(story: Iterable[str], large: float, room: float, height: float) -> list[_Line]:
    """The story in lines, the first one large: as large as all of it fits, and cut where it never does."""
    for size in (large, 34.0, 30.0, 26.0, SMALL):
        found: list[_Line] = []
        for number, line in enumerate(story):
            letters = min(size, large) if number == 0 else max(SMALL, min(size, large) * 0.8)
            style = _colour(line)
            found += [
                (words, letters, style, number == 0)
                for words in lines(line, letters * (1.12 if number == 0 else 1), room)
            ]
        if sum(letters * 1.3 for _, letters, _, _ in found) <= height:
            return found
    return found[: max(1, int(height // (SMALL * 1.3)))]


def _colour(line: str) -> str:
    """An error and a bluff stand out; the server's own word for a reason does not."""
    if line.startswith("a bluff:"):
        return "k-alarm"
    return "k-faint" if line.isupper() or line == "under the cup" else "k-ink"


def _put_story(sheet: Sheet, told: list[_Line], x: float, y: float, room: float) -> float:
    """Put the lines below each other; gives where they end."""
    for words, size, colour, bold in told:
        y += size * 1.3
        sheet.put(pieces.text(words, size, 2 * room, colour, bold), x, y - size * 0.35)
    return y


def _put_announced(sheet: Sheet, table: _Table, x: float, y: float, room: float) -> None:
    """The latest announcements of the round, the last of which is to be beaten."""
    wide = ANNOUNCED_SIZE[0] + 8
    said = table.said[-max(1, int(room // wide)) :]
    for number, (name, dice) in enumerate(said):
        is_last = number == len(said) - 1
        bluff = is_last and bool(self_bluff := table.private(name).get("bluff")) and self_bluff
        sheet.put(pieces.announced(_short(name), dice[:12], is_last, bool(bluff)), x + number * wide, y)


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
