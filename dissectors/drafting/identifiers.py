"""Inference of identifiers: names and numbers of players, tokens that clients repeat, numbers of games.

A player's name is a text that a client sends early, that differs between connections, and that the server
repeats. A player's number is given to each connection by the server, or occurs together with the name. A
token is made up by the server, and a client's answer contains it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.traffic import Kind, Message
from kiebitz.dissectors.model import Direction

Place = tuple[Direction, str, tuple[str, ...]]
"""Direction and name of a message, and the path of a value in it."""

Scalar = str | int

MAX_PLAYERS = 1000

_EARLY = 6
"""Number of messages of one side of a conversation among which a login is expected."""

_MAX_PATHS = 60
_MAX_VALUES = 20_000
_MAX_TOKENS = 500_000
_NAME_HINT = re.compile(r"name|user|nick|player|spieler|login|who", re.IGNORECASE)
_OTHER_NAME = re.compile(r"room|game|lobby|table|match|group|spiel(?!er)|raum|board|map", re.IGNORECASE)
"""Beginnings of keys of names that are no player's."""

_LOGIN_HINT = re.compile(
    r"name|user|nick|login|logi|join|register|hello|connect|auth|enter|player", re.IGNORECASE
)
_GIVEN_HINT = re.compile(
    r"id\b|id$|welcome|willkommen|you|seat|number|assign|joined|hello|start", re.IGNORECASE
)
_PLAYER_KEY = re.compile(
    r"(player|client|user|seat|spieler|mitspieler|owner|from|to|target|sender|receiver|absender|winner|sieger"
    r"|who|turn|ziel|next|current|.*(player|client|user)_?(id|number|nr)?|id)",
    re.IGNORECASE,
)

_PERSON_KEY = re.compile(
    r"(player|client|user|seat|spieler|mitspieler|owner|eigent[uü]e?mer|sender|receiver|absender|winner|sieger|who)"
    r"([ _-]?(id|number|nr))?",
    re.IGNORECASE,
)
"""Keys of a player's number even if there is only one value."""

_GAME_KEY = re.compile(
    r"(game|lobby|room|table|match|group|session|round|trade|offer|handel)[ _-]?(id|number|nr|no|token)",
    re.IGNORECASE,
)
_ROOM_KEY = re.compile(
    r"(game|lobby|room|table|match|session)([ _-]?(id|number|nr|no|token|name))?", re.IGNORECASE
)
"""Keys of the game to which a message belongs."""

_ROOM_WORDS = ("room", "lobby", "table", "match", "game")
_ENTER = re.compile(r"join|enter", re.IGNORECASE)
_ENTERED = re.compile(r"join|enter|creat", re.IGNORECASE)
_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,64}", re.IGNORECASE
)
_ITEMS = re.compile(r"[,;:|/\s]+")


class Identifiers(msgspec.Struct):
    """The identifiers of a protocol.

    Attributes:
        players: Names of players.
        types: Type of each value that is an identifier.
        generated: Values that the server makes up.
        login: Places of the name in a client's login.
        given: Places of the number that a connection is given.
        named: Places of a number that occurs together with a name.
        owners: Name of the player of each conversation.
        numbers: Number of the player of each conversation.
        room: Key of the game, of several at once; empty if there is one at a time.
    """

    players: set[str]
    types: dict[Place, str]
    generated: set[Place]
    login: list[Place]
    given: list[Place]
    named: list[Place]
    owners: dict[int, str]
    numbers: dict[int, Scalar]
    room: str = ""


class _Values:
    """The values at one place: all, those of each conversation in order, and where they began to be sent."""

    def __init__(self) -> None:
        self.counts: Counter[Scalar] = Counter()
        self.by_conversation: dict[int, dict[Scalar, None]] = defaultdict(dict)
        self.ranks: dict[int, int] = {}

    def add(self, value: Scalar, message: Message, rank: int) -> None:
        if len(self.counts) < _MAX_VALUES or value in self.counts:
            self.counts[value] += 1
        own = self.by_conversation[message.conversation]
        if len(own) < 50:
            own.setdefault(value)
        self.ranks.setdefault(message.conversation, rank)

    @property
    def early(self) -> float:
        """Share of the conversations that begin with it."""
        return sum(rank <= _EARLY for rank in self.ranks.values()) / len(self.ranks)

    @property
    def number(self) -> str:
        """The type after that of an identifier: whole numbers, or texts if it is empty."""
        return " integer" if all(isinstance(value, int) for value in self.counts) else ""

    @property
    def first_values(self) -> dict[int, Scalar]:
        """The first value of each conversation."""
        return {conversation: next(iter(values)) for conversation, values in self.by_conversation.items()}

    @property
    def last_values(self) -> dict[int, Scalar]:
        """The last value of each conversation."""
        return {conversation: next(reversed(values)) for conversation, values in self.by_conversation.items()}

    @property
    def is_stable(self) -> bool:
        """True if conversations have hardly more than one value each."""
        sizes = [len(values) for values in self.by_conversation.values()]
        return sum(sizes) <= 1.5 * len(sizes)


def find_identifiers(messages: Sequence[Message], tables: Sequence[str]) -> Identifiers:
    """Return the identifiers in messages.

    Args:
        messages: The messages.
        tables: The server of each conversation, each with its own numbers of players.
    """
    places = _collect(messages)
    heard: set[Scalar] = set()
    for (direction, _, _), values in places.items():
        if direction == "s2c":
            for value in values.counts:
                heard.add(value)
                if isinstance(value, str) and len(value) < 1000:
                    heard.update(_ITEMS.split(value)[:50])
    found = Identifiers(set(), {}, set(), [], [], [], {}, {})
    _find_tokens(messages, places, found)
    _find_players(places, heard, found)
    _find_named(messages, tables, places, found)
    _find_given(places, tables, found)
    # What is a player's number by the name of its field is so in messages with few values, too.
    _spread_numbers(places, found)
    _spread_numbers(places, found)
    for place, values in places.items():
        if _GAME_KEY.fullmatch(_key(place)) and place not in found.types:
            found.types[place] = f"id:game{values.number}"
    found.room = _room(places)
    _find_rooms(places, found)
    return found


def _room(places: Mapping[Place, _Values]) -> str:
    """Return the key of the game that server and clients name, if there are several games; else nothing."""
    sides: dict[str, set[Direction]] = defaultdict(set)
    games: dict[str, set[Scalar]] = defaultdict(set)
    for place, values in places.items():
        if len(place[2]) == 1 and _ROOM_KEY.fullmatch(_key(place)):
            sides[_key(place)].add(place[0])
            games[_key(place)].update(values.counts)
    several = [key for key in sides if len(sides[key]) == 2 and len(games[key]) > 1]
    return max(several, key=lambda key: (len(games[key]), key), default="")


def _find_rooms(places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find the games of messages without keys: the first field of JOIN_ROOM and of the answers to it."""
    for word in _ROOM_WORDS:
        asked: set[Scalar] = set()
        named: list[Place] = []
        for place, values in places.items():
            has_word = word in place[1].casefold() and place[2] == ("1",) and place not in found.types
            if has_word and place[0] == "c2s" and _ENTER.search(place[1]):
                asked.update(values.counts)
                named.append(place)
        answers = [
            place
            for place, values in places.items()
            if place[0] == "s2c" and word in place[1].casefold() and place[2] == ("1",)
            if _ENTERED.search(place[1]) and values.counts and values.counts.keys() <= asked
        ]
        if answers:
            found.types.update(dict.fromkeys((*named, *answers), f"id:{word}"))
            found.room = word if len(asked) > 1 else ""
            return


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    """Yield the texts and whole numbers in a value with their paths."""
    if isinstance(value, dict):
        if len(path) < 6:
            for key, part in value.items():
                yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        if path:
            for part in value[:50]:
                yield from leaves(part, (*path[:-1], f"{path[-1]}[]"))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield path, value


def _key(place: Place) -> str:
    return place[2][-1].removesuffix("[]") if place[2] else ""


def _collect(messages: Iterable[Message]) -> dict[Place, _Values]:
    places: dict[Place, _Values] = {}
    sizes: Counter[Kind] = Counter()
    ranks: Counter[tuple[int, Direction]] = Counter()
    for message in messages:
        side = message.conversation, message.direction
        ranks[side] += 1
        for path, value in leaves(message.values):
            place = *message.kind, path
            values = places.get(place)
            if values is None:
                kind = message.kind
                sizes[kind] += 1
                if sizes[kind] > _MAX_PATHS:
                    continue
                values = places[place] = _Values()
            if isinstance(value, int) or len(value) <= 200:
                values.add(value, message, ranks[side])
    return places


# Tokens.


def _find_tokens(messages: Iterable[Message], places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find what a server makes up and a client repeats, and values that look random."""
    sent: dict[tuple[int, Scalar], Place] = {}
    echoes: dict[Place, Counter[Place]] = defaultdict(Counter)
    for message in messages:
        for path, value in leaves(message.values):
            if not _is_rare(value):
                continue
            key, place = (message.conversation, value), (*message.kind, path)
            if message.direction == "s2c" and len(sent) < _MAX_TOKENS:
                sent.setdefault(key, place)
            elif message.direction == "c2s" and key in sent:
                echoes[place][sent[key]] += 1
    tokens = {
        place
        for place, values in places.items()
        if sum(isinstance(value, str) and _RANDOM.fullmatch(value) is not None for value in values.counts)
        >= 0.8 * len(values.counts)
        > 0
    }
    for place, sources in echoes.items():
        usual = [each for each, number in sources.items() if number >= 0.2 * sources.total()]
        known = {each for each in usual if _differ(places, each)}
        total = places[place].counts.total() if _differ(places, place) else math.inf
        if known and sources.total() >= 0.8 * total >= 2:
            tokens |= known | {place}
    for place in sorted(tokens):
        found.types[place] = f"id:token{places[place].number}"
        found.generated.add(place)


def _differ(places: Mapping[Place, _Values], place: Place) -> bool:
    """Return True if the values at a place hardly recur."""
    return place in places and 2 * len(places[place].counts) >= places[place].counts.total()


def _is_rare(value: Scalar) -> bool:
    if isinstance(value, int):
        return abs(value) >= 1000
    return 4 <= len(value) <= 200 and any(character.isdigit() for character in value)


# Players.


def _find_players(places: Mapping[Place, _Values], heard: set[Scalar], found: Identifiers) -> None:
    scores = {
        place: score
        for place, values in places.items()
        if place[0] == "c2s" and place not in found.types and (score := _login_score(place, values, heard))
    }
    if not scores:
        return
    best = min(scores, key=lambda place: (-scores[place], place))
    texts = {place: {*places[place].last_values.values()} for place in scores}
    for place in sorted(scores, key=lambda place: (-scores[place], place)):
        is_alike = _key(place) == _key(best) and not _key(place).isdigit()
        is_alike |= 2 * len(texts[place] & texts[best]) >= len(texts[place])
        if place == best or (is_alike and scores[place] >= 0.3 * scores[best]):
            found.login.append(place)
            for conversation, sent in places[place].by_conversation.items():
                if named := [value for value in sent if value and isinstance(value, str)]:
                    found.players.update(named)
                    found.owners.setdefault(conversation, named[-1])
    found.players = {*sorted(found.players)[:MAX_PLAYERS]}


def _login_score(place: Place, values: _Values, heard: set[Scalar]) -> float:
    """Return how likely a client's value is its player's name; 0 if it is not."""
    # The last one is accepted.
    last = [*values.last_values.values()]
    texts = {value for value in last if isinstance(value, str) and _is_name(value)}
    hint = bool(_NAME_HINT.search(_key(place))) + 0.5 * bool(_LOGIN_HINT.search(place[1]))
    # A player may connect several times, and a refused name is followed by others.
    is_usual = len(texts) >= (0.4 if hint else 0.6) * len(last) and (hint or len(last) > 2)
    if not is_usual or _OTHER_NAME.match(_key(place)) or not (values.is_stable or hint >= 1):
        return 0.0
    known = sum(text in heard for text in texts) / max(1, len(texts))
    return float(len(last) ** 0.5 * known * values.early * (1 + hint)) if known >= 0.25 else 0.0


def _is_name(value: str) -> bool:
    return 0 < len(value) <= 40 and value.isprintable() and any(letter.isalpha() for letter in value)


# Numbers of players.


def _find_named(
    messages: Iterable[Message], tables: Sequence[str], places: Mapping[Place, _Values], found: Identifiers
) -> None:
    """Find numbers that occur together with players' names, always the same with the same."""
    best: tuple[int, int, Place] = 0, 0, ("s2c", "", ())
    number_of: dict[tuple[str, str], Scalar] = {}
    for (place, name_place), names_of in sorted(
        _numbers_beside_names(messages, tables, found.players).items()
    ):
        usual = {number: counts.most_common(1)[0][0] for number, counts in names_of.items()}
        total = sum(map(Counter.total, names_of.values()))
        fitting = sum(counts[usual[number]] for number, counts in names_of.items())
        numbers = {(table, name): number for (table, number), name in usual.items()}
        if len(usual) < 2 or fitting < 0.9 * total or len(numbers) < len(usual):
            continue
        key, name_key = _key(place), _key(name_place)
        is_likely = _PLAYER_KEY.fullmatch(key) is not None
        if key.isdigit() and name_key.isdigit():
            is_likely = abs(int(key) - int(name_key)) == 1 and len(usual) > 2
        if total < len(usual) * (1 if is_likely else 2):
            continue
        if best < (len(usual), total, place):
            best, number_of = (len(usual), total, place), numbers
        found.types.setdefault(place, "id")
        found.named.append(place)
    owners = ((conversation, (tables[conversation], name)) for conversation, name in found.owners.items())
    found.numbers = {conversation: number_of[owner] for conversation, owner in owners if owner in number_of}


def _numbers_beside_names(
    messages: Iterable[Message], tables: Sequence[str], players: Collection[str]
) -> Mapping[tuple[Place, Place], Mapping[tuple[str, Scalar], Counter[str]]]:
    """Return, for a place of a number and one of a name, the names by server and number."""
    together: dict[tuple[Place, Place], dict[tuple[str, Scalar], Counter[str]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    # Copies of a message tell nothing more.
    originals = {
        (tables[each.conversation], each.same or each.data): each
        for each in messages
        if players and each.direction == "s2c"
    }
    for (table, _), message in originals.items():
        for path, scalars in _records(message.values):
            names = [(key, value) for key, value in scalars if isinstance(value, str) and value in players]
            for (key, name), (other, number) in itertools.product(names[:3], scalars):
                kind = message.kind
                pair = (*kind, (*path, other)), (*kind, (*path, key))
                if other != key and _is_number(number) and (len(together) < 1000 or pair in together):
                    together[pair][table, number][name] += 1
    return together


def _records(
    value: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[tuple[str, Scalar]]]]:
    """Yield the objects in a value with their texts and whole numbers by key."""
    if isinstance(value, list):
        for part in value[:50]:
            if path and isinstance(part, dict):
                yield from _records(part, (*path[:-1], f"{path[-1]}[]"))
    elif isinstance(value, dict) and len(path) < 6:
        scalars = [
            (key, part)
            for key, part in value.items()
            if isinstance(part, str | int) and not isinstance(part, bool)
        ]
        yield path, scalars[:30]
        for key, part in value.items():
            if isinstance(part, dict | list):
                yield from _records(part, (*path, key))


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int) or value.isdigit()


def _find_given(places: Mapping[Place, _Values], tables: Sequence[str], found: Identifiers) -> None:
    """Find where the server gives a connection the number of its player, by known numbers or by names."""
    mine = found.numbers
    scored: list[tuple[float, Place]] = []
    for place, values in places.items():
        first = values.first_values
        is_once = values.is_stable and values.counts.total() <= 2 * len(first) and len({*first.values()}) > 1
        if place[0] != "s2c" or not is_once or "[]" in "".join(place[2]):
            continue
        if mine:
            right = sum(mine.get(conversation) == value for conversation, value in first.items())
            if len(first) >= 0.5 * len(mine) and right >= 0.8 * len(first):
                found.types[place] = "id"
                found.given.append(place)
            continue
        numbers = {(tables[each], value) for each, value in first.items() if _is_number(value)}
        is_given = _GIVEN_HINT.search(_key(place)) or _PERSON_KEY.fullmatch(_key(place))
        score = values.early * (bool(is_given) + bool(_GIVEN_HINT.search(place[1])))
        if len(numbers) >= 0.8 * len(first) and score >= 0.5 and place not in found.types:
            scored.append((len(first) * score, place))
    if scored:
        given = min(scored, key=lambda item: (-item[0], item[1]))[1]
        found.given.append(given)
        found.numbers = places[given].first_values
        found.types[given] = "id"


def _spread_numbers(places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find the numbers of players elsewhere."""
    numbers = {*found.numbers.values()}
    keys = {_key(place) for place, kind in found.types.items() if kind == "id"}
    for place, values in places.items():
        others = values.counts.keys() - numbers
        known = values.counts.total() - sum(values.counts[value] for value in others)
        is_usual = len(others) <= 2 or all(isinstance(value, int) and value <= 0 for value in others)
        if place in found.types or not known or known < 0.6 * values.counts.total() or not is_usual:
            continue
        key = _key(place)
        if key.isdigit():
            is_player = min(len(numbers), len(values.counts)) >= 3 and not others
        else:
            is_player = key in keys or _PERSON_KEY.fullmatch(key) is not None
            is_player |= len(values.counts) > 1 and _PLAYER_KEY.fullmatch(key) is not None
        if is_player:
            found.types[place] = "id"
