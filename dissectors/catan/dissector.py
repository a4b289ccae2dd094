"""Catan as the inspector sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.catan.codec import CatanCodec
from kiebitz.dissectors.catan.framer import CatanFramer
from kiebitz.dissectors.catan.grammar import GRAMMAR
from kiebitz.dissectors.catan.objects import OBJECTS
from kiebitz.dissectors.catan.queries import QUERIES
from kiebitz.dissectors.catan.table import CatanTable
from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.records import Direction
from kiebitz.dissectors.state import State

if TYPE_CHECKING:
    from kiebitz.dissectors.probing.demands import Reactions
    from kiebitz.dissectors.probing.player import HostMaker, PlayerMaker
    from kiebitz.dissectors.statistics import Statistic


class Catan(Dissector):
    """The settlers, with the cards of others hidden."""

    grammar = GRAMMAR
    queries = QUERIES
    transport = "tcp"
    # The specification fixes none: it is recognised by what is said.
    default_ports = frozenset()
    introductions = frozenset({"Spieler"})
    codec = CatanCodec()
    framer_class = CatanFramer
    table_class = CatanTable
    seats = 3

    @property
    def reactions(self) -> Reactions:
        from kiebitz.dissectors.catan.reactions import REACTIONS

        return REACTIONS

    @property
    def player(self) -> PlayerMaker:
        from kiebitz.dissectors.catan.player import CatanPlayer

        return CatanPlayer

    @property
    def host(self) -> HostMaker:
        from kiebitz.dissectors.catan.host import CatanHost

        return CatanHost

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from kiebitz.dissectors.catan.statistics import STATISTICS

        return STATISTICS

    def scores(self, state: State) -> dict[str, int]:
        games = state.get("games", {})
        if not games:
            return {}
        players = games[max(games, key=int)].get("players", {})
        return {
            about["name"]: about["points"]
            for about in players.values()
            if about.get("name") and isinstance(about.get("points"), int)
        }

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = self.framer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness([self.decode(frame.data, direction) for frame in frames if frame.data])

    @property
    def productions(self) -> tuple[str, ...]:
        # The objects of clause 7, each with what its attributes are.
        return tuple(
            f"{name} = {{{', '.join(f'{field.name}: {field.type.title}' for field in each.fields)}}}"
            for name, each in OBJECTS.items()
        )

    def words(self, value: Any) -> str:
        if isinstance(value, dict):
            if {*value} == {"x", "y"}:
                return f"({value['x']},{value['y']})"
            return ", ".join(f"{part} {key}" for key, part in value.items() if part) or "nothing"
        if isinstance(value, list) and all(isinstance(part, int) for part in value):
            return "+".join(map(str, value))
        if isinstance(value, bool):
            return "yes" if value else "no"
        return super().words(value)


CATAN = Catan()
