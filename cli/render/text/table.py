"""The text picture of a view: a table with players around it, or a list if there is no room."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.cli.render.text.canvas import DIE_HEIGHT, Canvas, boxed, cup, die
from kiebitz.cli.render.text.grid import grid_lines
from kiebitz.cli.render.text.pen import (
    NAME_IN_WORDS,
    RACK_COLUMNS,
    STYLES,
    TILE_WIDTH,
    Pen,
    legend,
    rack,
    rack_on_end,
    tile_face,
)
from kiebitz.cli.render.text.seating import Edge, Felt, SeatPlace, seating
from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.game.view import Dice, Fact, Hand, Pile, Seat, Span, View

WIDEST = 120

_BOX_HEIGHT = 3
_BOX_EDGES = 4
_CUP = "#af875f"
_LISTED_LINES = 5
_LISTED_WIDTH = 26
_STORY_WIDTH = 40
_MOST_IN_A_ROW = 4
"""Cards in a row of a hand beside the table."""

_MOST_ITEMS = 7
"""Maximum number of bids; they fit on two lines of 80 columns."""

_MOST_GROUPS = 12
_MOST_LINES = 4
"""Maximum number of lines of a group without a table."""

_PILE_LABEL = 12

_PILES: dict[Edge, tuple[Edge, Edge]] = {
    "top": ("top", "left"),
    "right": ("top", "right"),
    "bottom": ("bottom", "right"),
    "left": ("bottom", "left"),
}
"""Corner of the stack from which a player draws: near the previous player."""


class _Layout(msgspec.Struct, frozen=True):
    """Rows of a seat and of the felt, and the row of the felt at which seats beside it begin (None: centred).

    `story` is the first row of the story and its number of rows.
    """

    seat_rows: int
    felt_rows: int
    side_row: int | None
    story: tuple[int, int]
    top: bool = True


_PLATES = _Layout(2, 11, None, (0, 11))
_CARDS = _Layout(3, 3 * _BOX_HEIGHT, 2, (_BOX_HEIGHT, _BOX_HEIGHT))
_CARDS_OF_THREE = _Layout(3, 4 + 2 * _BOX_HEIGHT, 0, (4, _BOX_HEIGHT), top=False)
"""The top edge has the contract and the talon instead of a player."""
_RACKS = _Layout(3, RACK_COLUMNS, 0, (4, 4))
"""Racks at the sides are vertical."""


def draw_view(view: View, pen: Pen, width: int) -> list[Text]:
    """Return the lines of a view, none of more than `width` cells."""
    pen.introduce(seat.name for seat in view.seats)
    return _Picture(view, pen, min(width, WIDEST)).lines()


class _Picture:
    def __init__(self, view: View, pen: Pen, width: int) -> None:
        self.view = view
        self.pen = pen
        self.width = width
        hands = [seat.hand for seat in view.seats if seat.hand is not None]
        self.has_racks = any(hand.is_rack for hand in hands)
        self.has_hands = bool(hands)
        cards = _CARDS_OF_THREE if len(view.seats) == 3 else _CARDS
        self.layout = _RACKS if self.has_racks else cards if hands else _PLATES

    def lines(self) -> list[Text]:
        return [*self._table(), *self._below()]

    # Table.

    def _table(self) -> list[Text]:
        view, layout = self.view, self.layout
        if view.idle:
            return [self.pen.line(view.idle, self.width)]
        if view.grid is not None:
            return self._board()
        seats = seating(len(view.seats), self.width, layout.seat_rows, layout.felt_rows, layout.top)
        if seats is None:
            return self._listed() if self.has_hands else self._in_columns()
        felt = Felt(seats, self._title(), self._remark(), self.pen.glyphs)
        self._draw_middle(felt)
        # From the bottom on; places begin at the top, or at the right if the top is empty.
        first = (len(view.seats) + 1) // 2 if self.has_hands else 0
        for seat, place in zip(view.seats[first:] + view.seats[:first], seats.places, strict=True):
            self._draw_seat(felt, seat, place)
        return felt.lines()

    def _title(self) -> str:
        return self.pen.words(self.pen.between.join(self.view.title), 44).plain

    def _remark(self) -> str:
        """Return the text at the lower edge: the suits, or what is unknown."""
        if self.view.deck is not None:
            return self.pen.suit_legend(self.view.deck)
        return self.pen.words(self.view.unknown, 100).plain

    def _contract(self) -> list[Text]:
        """Return the contract, its multiplier and the talon, a line for each."""
        contract = self.view.contract
        if contract is None:
            return [Text(), Text(), *self._talon()]
        parts = map(self.pen.render, (*contract.parts, *contract.additions))
        level = self.pen.render((Span(contract.level.replace("×", self.pen.glyphs.times), "strong"),))
        return [Text(self.pen.between).join(parts), level, *self._talon()]

    def _talon(self) -> list[Text]:
        return [
            Text.assemble(self.pen.render(pile.label), " ", self._pile_letters(pile))
            for pile in self.view.piles
        ]

    def _pile_letters(self, pile: Pile) -> Text:
        if pile.pieces:
            return self.pen.render((pile.pieces,))
        return self.pen.line(self.pen.glyphs.back * min(pile.hidden or 0, 20), 12)

    def _story(self) -> Text:
        lines = [self.pen.render(line) for line in self.view.story]
        if self.has_hands and self.layout.top and self.view.contract is not None:
            lines.insert(0, self._contract()[0])
        return LINE_BREAK.join(lines)

    def _draw_middle(self, felt: Felt) -> None:
        if self.view.dice is not None:
            self._draw_dice(felt, self.view.dice)
            return
        first, rows = self.layout.story
        room = _STORY_WIDTH
        if self.view.deck is not None:
            beside = self.pen.face_width(self.view.deck) + _BOX_EDGES + 3
            room = min(room, felt.seats.felt - 2 * beside)
        lines = self.pen.wrap(self._story(), room, rows)
        if self.has_racks:
            for pile in self.view.piles:
                back = Text((" " if pile.hidden == 0 else self.pen.glyphs.back) * TILE_WIDTH)
                felt.put_inside(0, [*boxed(back, self.pen.glyphs, "dim"), self._pile_label(pile)])
        elif not self.layout.top:
            felt.put_inside(0, self._contract())
            felt.put_inside(first, lines)
            return
        felt.put_inside(first + (rows - len(lines)) // 2, lines)

    def _draw_dice(self, felt: Felt, dice: Dice) -> None:
        """Draw the dice, and the story beside them."""
        drawn = self._dice(dice)
        width = drawn[0].cell_len
        inner = felt.seats.felt - 2
        story = self.pen.wrap(self._story(), min(inner - width - 4, _STORY_WIDTH), DIE_HEIGHT)
        longest = max((line.cell_len for line in story), default=0)
        x = felt.seats.x + 1 + max(1, (inner - width - 2 - longest) // 2)
        y = felt.seats.y + 1 + (self.layout.felt_rows - DIE_HEIGHT) // 2
        felt.put_lines(x, y, drawn)
        felt.put_lines(x + width + 2, y + (DIE_HEIGHT - len(story)) // 2, story)

    def _dice(self, dice: Dice) -> list[Text]:
        if not dice.faces:
            return cup("" if dice.roll == "none" else "? ?", self.pen.glyphs, _CUP)
        style = "bold" if dice.roll == "open" else _CUP
        faces = (face if isinstance(face, int) else self.pen.words(face, 5).plain for face in dice.faces[:4])
        rows = zip(*(die(face, self.pen.glyphs, style) for face in faces), strict=True)
        return [Text(" ").join(row) for row in rows]

    def _draw_seat(self, felt: Felt, seat: Seat, place: SeatPlace) -> None:
        crowded = place.beside and sum(other.edge == place.edge for other in felt.seats.places) > 2
        bubble = seat.says is not None and not crowded
        if not self.has_hands:
            lines = self._plate(seat, place, bubble)
        elif place.beside:
            lines = self._beside(seat, place)[: self.layout.felt_rows + 2]
        else:
            lines = self._along(seat, place)
        felt.put_seat(place, lines, self.layout.side_row)
        if bubble:
            self._draw_bubble(felt, seat, place)
        if seat.lies is not None and self.view.deck is not None:
            taken = any(other.takes for other in self.view.seats)
            style = "" if not taken else "bold" if seat.takes else "dim"
            rows = self.layout.felt_rows - _BOX_HEIGHT
            row = {"top": 0, "bottom": rows}.get(place.edge, rows - _BOX_HEIGHT)
            face = self.pen.card_face(seat.lies, self.view.deck)
            felt.put_inside(row, boxed(face, self.pen.glyphs, style), place.edge)
        if seat.pile is not None:
            self._draw_pile(felt, seat.pile, place)

    def _draw_pile(self, felt: Felt, pile: Pile, place: SeatPlace) -> None:
        edge, side = _PILES[place.edge]
        unknown = Text("?".center(TILE_WIDTH))
        top = (
            tile_face(pile.pieces[-1] if pile.pieces else None, self.pen.glyphs) if pile.is_known else unknown
        )
        box, label = boxed(top, self.pen.glyphs, ""), self._pile_label(pile)
        if edge == "top":
            felt.put_inside(0, [*box, label], side)
        else:
            felt.put_inside(self.layout.felt_rows - len(box) - 1, [label, *box], side)

    def _pile_label(self, pile: Pile) -> Text:
        label = self.pen.render(pile.label, _PILE_LABEL)
        label.stylize_before("dim")
        return label

    def _draw_bubble(self, felt: Felt, seat: Seat, place: SeatPlace) -> None:
        """Draw an announcement: at the long edges on the table, at the sides above the name."""
        assert seat.says is not None
        style = STYLES[seat.says.tone] or "bold"
        dice = ",".join(map(str, seat.says.dice))
        said = seat.says.words if dice in ("", seat.says.words) else f"{dice} {seat.says.words}"
        words = Text(self.pen.words(said, 18).plain, style)
        bubble = boxed(words, self.pen.glyphs, style, "up" if place.edge == "top" else "down")
        above = place.y - len(bubble)
        y = {"top": felt.seats.y + 1, "bottom": above - 1}.get(place.edge, above)
        felt.put_lines(place.column(bubble[0].cell_len), y, bubble)

    # Players.

    def _name(self, seat: Seat, width: int) -> Text:
        return self.pen.marked(seat.name, seat.state == "turn", width)

    def _marks(self, seat: Seat) -> Text:
        return Text(", ").join(map(self.pen.span, seat.marks))

    def _figures(self, seat: Seat, width: int) -> list[Text]:
        return [self.pen.line(figure.words, width) for figure in seat.figures]

    def _plate(self, seat: Seat, place: SeatPlace, bubble: bool = False) -> list[Text]:
        """Return a player without a hand: the name, marked if it is their turn, figures and marks."""
        doing = self._marks(seat)
        says = seat.says
        if says is not None and not doing:
            if not bubble:
                doing = Text(f'"{self.pen.words(says.words, 8)}"', STYLES[says.tone] or "bold")
            elif says.tone:
                doing = Text(says.verb, STYLES[says.tone])
        brief = self.pen.between.join(figure.brief or figure.words for figure in seat.figures)
        if place.one_line:
            remark = doing if doing and seat.state != "turn" else Text(brief)
            return [Text.assemble(self._name(seat, place.width - remark.cell_len - 1), " ", remark)]
        figures = brief if doing else self.pen.between.join(figure.words for figure in seat.figures)
        said = Text.assemble(figures, self.pen.between if figures and doing else "", doing)
        return [self._name(seat, place.width - 2), *self.pen.wrap(said, place.width, 1)]

    def _along(self, seat: Seat, place: SeatPlace) -> list[Text]:
        """Return a player at a long edge in up to three lines, the hand towards the table."""
        between = self.pen.between
        said = self._marks(seat)
        figures = between.join(figure.words for figure in seat.figures)
        if self.has_racks:
            said, figures = Text(between).join(filter(None, (said, Text(figures)))), ""
        room = place.width - (said.cell_len + len(between) if said else 0)
        name = self._name(seat, max(8, min(room, 24)))
        who = [Text.assemble(name, between, said) if said else name]
        if figures:
            who.append(self.pen.line(figures, place.width))
        hand = self._row(seat.hand, place.width if self.layout.top else self.width)
        # Without cards the name keeps its row.
        return who + hand if place.edge == "top" else (hand or [Text()]) + who

    def _beside(self, seat: Seat, place: SeatPlace) -> list[Text]:
        """Return a player at a side of the table, each thing on its own line."""
        name, hand = self._name(seat, place.width), seat.hand
        marks = self.pen.wrap(self._marks(seat), place.width, 3) if seat.marks else []
        figures = self._figures(seat, place.width)
        if hand is not None and hand.is_rack:
            rows = rack_on_end(hand, self.pen.glyphs) if hand.pieces else self._row(hand, place.width)
            return [name, *marks, *rows, *figures][: self.layout.felt_rows + 2]
        return [name, *marks, *figures, *self._rows(hand, place.width)]

    def _row(self, hand: Hand | None, width: int) -> list[Text]:
        """Return a hand beside or above the table's edge."""
        if hand is None:
            return []
        if hand.is_rack:
            if hand.pieces:
                return rack(hand, self.pen.glyphs)
            return [self.pen.line(self.pen.glyphs.back * hand.hidden, width)] if hand.hidden else []
        pieces = self._pieces(hand, width)
        return self.pen.wrap(Text(" ").join(pieces), width, 1) if pieces else []

    def _rows(self, hand: Hand | None, width: int) -> list[Text]:
        """Return a hand in rows of equal width, aligned in columns."""
        pieces = self._pieces(hand, width) if hand is not None else []
        widest = max((piece.cell_len for piece in pieces), default=0)
        for piece in pieces:
            piece.pad_right(widest - piece.cell_len)
        most = max(1, min(_MOST_IN_A_ROW, (width + 1) // (widest + 1)))
        lines = -(-len(pieces) // most)
        across = -(-len(pieces) // lines) if lines else 1
        rows = [Text(" ").join(pieces[first : first + across]) for first in range(0, len(pieces), across)]
        for row in rows:
            row.pad_right(rows[0].cell_len - row.cell_len)
        return rows

    def _pieces(self, hand: Hand, width: int) -> list[Text]:
        """Return the faces of the known pieces and the backs of the others."""
        found = [self.pen.piece(piece) for piece in hand.pieces if piece is not None]
        if hand.hidden is None:
            return [*found, Text("? cards")]
        if hand.hidden <= 0:
            return found
        back = self.pen.line(self.pen.glyphs.back * min(hand.hidden, 40), 12 if hand.hidden > 20 else 20)
        if found:
            return [*found, back]
        counts = (f" {hand.hidden} card{'s' if hand.hidden > 1 else ''}", f" {hand.hidden}")
        count = next((words for words in counts if back.cell_len + len(words) <= width), "")
        return [back.append(count)]

    # Lists, if there is no room for a table.

    def _listed(self) -> list[Text]:
        """Return the players with their hands below each other."""
        lines = [self.pen.line(self._title(), self.width, "bold")]
        headlines = [] if self.layout.top else [line for line in self._contract() if line]
        for text in (*headlines, self._story(), *map(self._fact_of, self.view.seats)):
            lines += self.pen.wrap(text, self.width, _LISTED_LINES)
        return [*lines, *self._edge()]

    def _edge(self) -> list[Text]:
        """Return the text of a table's lower edge."""
        remark = self._remark()
        return [self.pen.line(remark, self.width)] if remark else []

    def _fact_of(self, seat: Seat) -> Text:
        facts = [self.pen.span(mark) for mark in seat.marks]
        if seat.lies is not None:
            facts.append(self.pen.piece(seat.lies) + Text(" on the table"))
        if seat.hand is not None and (seat.hand.pieces or not seat.hand.is_rack):
            pieces = self._pieces(seat.hand, self.width)
            facts += [Text("holds ") + Text(" ").join(pieces)] if pieces else []
        facts += self._figures(seat, self.width)
        if seat.pile is not None and seat.pile.pieces:
            facts.append(self.pen.render(("draws from ", seat.pile.pieces)))
        return Text.assemble(
            self._name(seat, min(self.width, 24)), ": " if facts else "", Text(", ").join(facts)
        )

    def _in_columns(self) -> list[Text]:
        """Return the players without hands in columns, then the dice and the story."""
        lines = [self.pen.line(self._title(), self.width, "bold"), *self._plates(self.width)]
        dice = self._dice(self.view.dice) if self.view.dice is not None else []
        room = self.width - (dice[0].cell_len + 2 if dice else 0)
        if not dice or room < NAME_IN_WORDS:
            lines += self.pen.wrap(self._story(), self.width, DIE_HEIGHT)
        else:
            beside = Canvas(DIE_HEIGHT)
            beside.put_lines(0, 0, dice)
            beside.put_lines(dice[0].cell_len + 2, 0, self.pen.wrap(self._story(), room, DIE_HEIGHT))
            lines += beside.lines()
        return [*lines, *self._edge()]

    def _plates(self, width: int) -> list[Text]:
        across = max(1, width // _LISTED_WIDTH)
        each = width // across
        place = SeatPlace("left", 0, 0, each, one_line=True)
        canvas = Canvas(-(-len(self.view.seats) // across))
        for number, seat in enumerate(self.view.seats):
            canvas.put_lines(number % across * each, number // across, self._plate(seat, place))
        return canvas.lines()

    # Board.

    def _board(self) -> list[Text]:
        """Return the grid, with the story and the players beside or below it."""
        assert self.view.grid is not None
        grid = grid_lines(self.view.grid, self.pen, self.width)
        left = max((line.cell_len for line in grid), default=0) + 2
        is_beside = self.width - left >= _LISTED_WIDTH
        room = self.width - left if is_beside else self.width
        said = self.pen.wrap(self._story(), room, _LISTED_LINES) if self.view.story else []
        said += [line for seat in self.view.seats for line in self.pen.wrap(self._fact_of(seat), room, 2)]
        title = [self.pen.line(self._title(), self.width, "bold")] if self.view.title else []
        if not is_beside:
            return [*title, *grid, *said, *self._edge()]
        canvas = Canvas(max(len(grid), len(said)))
        canvas.put_lines(0, 0, grid)
        canvas.put_lines(left, 0, said)
        return [*title, *canvas.lines(), *self._edge()]

    # Below the table.

    def _below(self) -> list[Text]:
        """Return facts, what is unknown, other people, and the legend of tiles."""
        view, lines = self.view, [line for fact in self.view.facts for line in self._fact(fact)]
        if view.unknown and (view.idle or view.deck is not None):
            lines.append(self.pen.words(view.unknown, self.width))
            lines[-1].stylize("dim")
        shown: Sequence[int] = range(len(view.groups))
        if len(view.groups) > _MOST_GROUPS:
            # The last group has the players of no other group.
            shown = [*range(_MOST_GROUPS - 1), len(view.groups) - 1]
        for group in (view.groups[number] for number in shown):
            lines += self.pen.listing(group, self.width, _MOST_LINES if view.idle else 1)
        if left := len(view.groups) - len(shown):
            lines.append(self.pen.line(f"and {left} more groups", self.width, "dim"))
        if self.has_racks:
            lines += self.pen.wrap(legend(self.pen.glyphs), self.width, 2)
        return lines

    def _fact(self, fact: Fact) -> list[Text]:
        title = self.pen.render(fact.title)
        title.stylize_before("dim")
        items = [self.pen.render(item) for item in fact.items[-_MOST_ITEMS:]]
        before = f"{self.pen.glyphs.ellipsis} " if len(fact.items) > _MOST_ITEMS else ""
        colon = (": ", "dim") if items else ""
        return self.pen.wrap(Text.assemble(title, colon, before, Text(", ").join(items)), self.width, 2)
