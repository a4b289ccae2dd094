"""Player identities: the connections of each player in a session, and the player's names over time.

A name proves nothing: most servers let any client use a name that is currently free. So a player is a
connection, under all its names. Two connections are one player only if the server confirmed it; see
`Dissector.identity` and `EventKind.restores`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from itertools import count

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import PUBLIC


class Evidence(msgspec.Struct, frozen=True):
    """An event that links a name to a connection, or to the previous name.

    A renaming has no `stream`. Evidence that `introduces` a player or `restores` its seat came from the
    server.
    """

    event: int
    ts_ns: int
    table: int
    name: str
    stream: int | None = None
    before: str | None = None
    introduces: bool = False
    restores: bool = False


class Claim(msgspec.Struct, eq=False):
    """A player on one connection: its names in order, each with its first event."""

    stream: int
    table: int
    names: list[tuple[int, str]]
    introduced: bool = False
    restored: bool = False

    @property
    def name(self) -> str:
        """The latest name."""
        return self.names[-1][1]

    def name_at(self, event: int) -> str | None:
        """Return the name after an event; None before the first."""
        return next((name for first, name in reversed(self.names) if first <= event), None)


class Player(msgspec.Struct, eq=False):
    """A player with all its connections. `label` is its latest name, made unique among the players."""

    label: str
    claims: list[Claim]

    @property
    def streams(self) -> frozenset[int]:
        """The row ids of the player's streams."""
        return frozenset(claim.stream for claim in self.claims)


class Identities:
    """The players of a session, by the evidence found so far: see `add`.

    `dissector_at` returns the dissector of a table, `stream_of` the client's address of a stream and its
    closing time. `inherited` are the claims of streams that began in another database.
    """

    def __init__(
        self,
        dissector_at: Callable[[int], Dissector | None],
        stream_of: Callable[[int], tuple[str, int | None]],
        inherited: Iterable[Claim] = (),
    ) -> None:
        self._dissector_at = dissector_at
        self._stream_of = stream_of
        self._inherited = [*inherited]
        self._evidence: list[Evidence] = []
        self._players: dict[str, Player] | None = None
        self._names: dict[tuple[str, int], tuple[int, set[str]]] = {}
        """The latest result of `names_at` by player and table, with the number of evidence before it."""
        self.version = 0
        """Incremented by each change of the players."""
        self._start()

    @property
    def claims(self) -> list[Claim]:
        """The claims of all players on all connections."""
        return [claim for claims in self._of_stream.values() for claim in claims]

    def add(self, evidence_found: Iterable[Evidence]) -> None:
        """Add the evidence recorded since the last call; streams may also have been closed."""
        self._names.clear()
        found = _in_order(evidence_found)
        known = self._evidence[-1].event if self._evidence else 0
        if found and found[0].event < known:
            # The message of an earlier event arrived late.
            found = _in_order(self._evidence + found)
            self._evidence = []
            self._start()
        for evidence in found:
            if self._apply(evidence):
                self._evidence.append(evidence)
                self._players = None
                self.version += 1

    def players(self) -> dict[str, Player]:
        """Return all players by label, in the order of their first names."""
        if self._players is None:
            self._players = {player.label: player for player in self._grouped()}
        return self._players

    def find(self, label: str) -> Player | None:
        """Return the player with this label; otherwise the last player that had this name."""
        found = self.players().get(label)
        if found is not None:
            return found
        former = [
            (first, player)
            for player in self.players().values()
            for claim in player.claims
            for first, name in claim.names
            if name == label
        ]
        return max(former, key=lambda pair: pair[0])[1] if former else None

    def on_stream(self, stream: int, label: str) -> Player | None:
        """Return the player on a stream; if several share it, the one that has or had this name."""
        here = [
            player
            for player in self.players().values()
            if any(claim.stream == stream for claim in player.claims)
        ]
        if len(here) < 2:
            return here[0] if here else None
        return next((player for player in here if player.label == label or _bore(player, label)), None)

    def name_of(self, stream: int) -> str | None:
        """Return the latest name on a stream."""
        claims = self._of_stream.get(stream)
        return claims[-1].name if claims else None

    def names_at(self, player: Player, table: int, event: int) -> set[str]:
        """Return the names that only this player had at a table after an event."""
        # They change only with evidence.
        reached = bisect_right(self._evidence, event, key=lambda evidence: evidence.event)
        key = player.label, table
        latest = self._names.get(key)
        if latest is not None and latest[0] == reached:
            return latest[1]
        names = {
            name
            for claim in player.claims
            if claim.table == table
            and (name := claim.name_at(event)) is not None
            and self._is_only_bearer(player, table, name, event)
        }
        self._names[key] = reached, names
        return names

    def _start(self) -> None:
        self._of_stream: dict[int, list[Claim]] = {}
        self._takings: dict[tuple[int, str], list[tuple[int, int, Claim]]] = defaultdict(list)
        """Claims of a name, by table and name: the event, its time in ns, and the claim; latest last."""
        for claim in self._inherited:
            self._add(claim, 0, 0)

    def _add(self, claim: Claim, event: int, ts_ns: int) -> None:
        self._of_stream.setdefault(claim.stream, []).append(claim)
        self._takings[claim.table, claim.name].append((event, ts_ns, claim))

    def _apply(self, evidence: Evidence) -> bool:
        """Apply evidence; return True if it changed anything."""
        takings = self._takings[evidence.table, evidence.name]
        if evidence.stream is None:
            before = self._takings.get((evidence.table, evidence.before or ""))
            claim = next((one for _, _, one in reversed(before or ()) if one.name == evidence.before), None)
            if claim is None:
                return True
            claim.names.append((evidence.event, evidence.name))
            takings.append((evidence.event, evidence.ts_ns, claim))
            return True
        here = self._of_stream.get(evidence.stream, ())
        claim = next(
            (
                one
                for one in here
                if one.table == evidence.table and any(name == evidence.name for _, name in one.names)
            ),
            None,
        )
        if claim is None:
            claim = Claim(evidence.stream, evidence.table, [(evidence.event, evidence.name)])
            self._add(claim, evidence.event, evidence.ts_ns)
        elif evidence.introduces and claim.name != evidence.name:
            claim.names.append((evidence.event, evidence.name))
            takings.append((evidence.event, evidence.ts_ns, claim))
        elif evidence.introduces and takings[-1][2] is not claim:
            takings.append((evidence.event, evidence.ts_ns, claim))
        elif claim.restored >= evidence.restores and claim.introduced >= evidence.introduces:
            return False
        claim.introduced |= evidence.introduces
        claim.restored |= evidence.restores
        return True

    def _grouped(self) -> list[Player]:
        claims = sorted(self.claims, key=lambda claim: (claim.names[0][0], claim.stream))
        groups: dict[Hashable, list[Claim]] = {}
        latest: dict[tuple[int, str], Hashable] = {}
        for claim in claims:
            place = claim.table, claim.name
            key = self._key(claim)
            if claim.restored:
                key = latest.get(place, key)
            latest[place] = key
            groups.setdefault(key, []).append(claim)
        names = {group[-1].name for group in groups.values()}
        taken = {PUBLIC}
        players = []
        for group in groups.values():
            label = group[-1].name
            if label in taken:
                others = (f"{label} ({number})" for number in count(2))
                label = next(other for other in others if other not in taken and other not in names)
            taken.add(label)
            players.append(Player(label, group))
        return players

    def _key(self, claim: Claim) -> Hashable:
        """Return the key that all claims of one player share."""
        dissector = self._dissector_at(claim.table)
        if dissector is None or dissector.identity.same_player == "connection":
            return id(claim)
        client, _ = self._stream_of(claim.stream)
        table = claim.table if dissector.identity.same_player == "address" else None
        return dissector.protocol, table, claim.name, client.rpartition(":")[0]

    def _is_only_bearer(self, player: Player, table: int, name: str, event: int) -> bool:
        """Return True if no other player can have had this name then."""
        takings = [taking for taking in self._takings[table, name] if taking[0] <= event]
        own_ns = max((ts_ns for _, ts_ns, claim in takings if claim in player.claims), default=0)
        last = takings[-1][2] if takings else None
        if last is not None and last not in player.claims:
            return last.name_at(event) != name
        dissector = self._dissector_at(table)
        if dissector is not None and dissector.identity.same_player == "address":
            # In this protocol, a name belongs to the connection that claimed it last.
            return True
        for _, _, claim in takings:
            if claim not in player.claims and claim.name_at(event) == name:
                _, closed_ns = self._stream_of(claim.stream)
                if closed_ns is None or closed_ns > own_ns:
                    return False
        return True


def _in_order(evidence: Iterable[Evidence]) -> list[Evidence]:
    return sorted(evidence, key=lambda one: one.event)


def _bore(player: Player, name: str) -> bool:
    return any(name == other for claim in player.claims for _, other in claim.names)
