"""Inference of identifiers: names and numbers of players, tokens that clients repeat, numbers of games.

A player's name is a text that a client sends early, that differs between connections, and that the server
repeats. A player's number is given to each connection by the server, or occurs together with the name. A
token is made up by the server, and a client's answer contains it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.model import Direction

Place = tuple[Direction, str, tuple[str, ...]]
"""Direction and name of a message, and the path of a value in it."""

Scalar = str | int

MAX_PLAYERS = 1000

_EARLY = 6
"""Number of messages of one side of a conversation among which a login is expected."""

_MAX_PATHS = 60
_MAX_VALUES = 20_000
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
_PLAYER_NAME = re.compile(r"((player|client|user|nick)[ _-]?)?name|nick|player|user|spieler", re.IGNORECASE)

_PERSON_KEY = re.compile(
    r"(player|client|user|seat|spieler|mitspieler|owner|eigent[uü]e?mer|sender|receiver|absender|winner|sieger|who)"
    r"([ _-]?(id|number|nr))?",
    re.IGNORECASE,
)
"""Keys of a player's number even if there is only one value."""

_PLAYER_ID = re.compile(r"(player|client|user)[ _-]?(id|number|nr)", re.IGNORECASE)
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

    def type_at(self, direction: Direction, name: str, path: tuple[str, ...]) -> str | None:
        """Return the type of the identifier at a path; in XML, a list may have one item only."""
        found = self.types.get((direction, name, path))
        if found is None and len(path) > 1:
            plain = tuple(step.removesuffix("[]") for step in path)
            found = self.types.get((direction, name, plain))
            if found is None:
                lists = (*(f"{step}[]" for step in plain[:-1]), plain[-1])
                found = self.types.get((direction, name, lists))
        return found


class _Values:
    """The values at one place."""

    def __init__(self) -> None:
        self.counts: Counter[Scalar] = Counter()
        self.first: dict[Scalar, int] = {}
        self.by_conversation: dict[int, dict[Scalar, int]] = defaultdict(dict)
        self.ranks: dict[int, int] = {}

    def add(self, value: Scalar, message: Message, rank: int) -> None:
        if len(self.counts) < _MAX_VALUES or value in self.counts:
            self.counts[value] += 1
            self.first.setdefault(value, message.order)
        own = self.by_conversation[message.conversation]
        if len(own) < 50:
            own.setdefault(value, message.order)
        self.ranks.setdefault(message.conversation, rank)

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

    @property
    def is_variable(self) -> bool:
        """True if conversations have many values each."""
        return sum(map(len, self.by_conversation.values())) > 5 * len(self.by_conversation)


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
    if not found.players:
        found.players = _names_in_records(messages)
    _find_named(messages, tables, places, found)
    if not found.numbers:
        _find_given(places, tables, found)
    # What is a player's number by the name of its field is so in messages with few values, too.
    _spread_numbers(places, found)
    _spread_numbers(places, found)
    for place, values in places.items():
        if _GAME_KEY.fullmatch(_key(place)) and place not in found.types:
            number = " integer" if all(isinstance(value, int) for value in values.counts) else ""
            found.types[place] = f"id:game{number}"
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
    sizes: Counter[tuple[Direction, str]] = Counter()
    ranks: Counter[tuple[int, Direction]] = Counter()
    for message in messages:
        side = message.conversation, message.direction
        ranks[side] += 1
        for path, value in leaves(message.values):
            place = message.direction, message.name, path
            values = places.get(place)
            if values is None:
                kind = message.direction, message.name
                sizes[kind] += 1
                if sizes[kind] > _MAX_PATHS:
                    continue
                values = places[place] = _Values()
            if isinstance(value, int) or len(value) <= 200:
                values.add(value, message, ranks[side])
    return places


# Tokens.


def _find_tokens(messages: Iterable[Message], places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find what a server makes up and a client repeats."""
    _find_echoed_tokens(_echoes(messages), places, found)
    _find_random_tokens(places, found)


def _echoes(messages: Iterable[Message]) -> Mapping[Place, Counter[Place]]:
    """Return the places of clients' values that the server has sent before, with the places of these."""
    said: dict[tuple[int, Scalar], tuple[str, ...]] = {}
    origin: dict[tuple[int, Scalar], str] = {}
    echoes: dict[Place, Counter[Place]] = defaultdict(Counter)
    for message in messages:
        for path, value in leaves(message.values):
            if not _is_rare(value):
                continue
            key = message.conversation, value
            if message.direction == "s2c":
                if key not in said and len(said) < 500_000:
                    said[key] = path
                    origin[key] = message.name
            elif key in said:
                echoes["c2s", message.name, path]["s2c", origin[key], said[key]] += 1
    return echoes


def _find_echoed_tokens(
    echoes: Mapping[Place, Counter[Place]], places: Mapping[Place, _Values], found: Identifiers
) -> None:
    for place, sources in echoes.items():
        values = places.get(place)
        total = values.counts.total() if values is not None else 0
        if values is None or total < 3 or len(values.counts) < 0.5 * total or sources.total() < 0.8 * total:
            continue
        for source, number in sources.items():
            of_source = places.get(source)
            if of_source is None or number < 0.2 * sources.total():
                continue
            if len(of_source.counts) < 0.5 * of_source.counts.total():
                continue
            _mark_token(place, values, found)
            _mark_token(source, of_source, found)


def _find_random_tokens(places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find values that look random."""
    for place, values in places.items():
        texts = [value for value in values.counts if isinstance(value, str)]
        if len(texts) >= 2 and len(texts) == len(values.counts) and all(map(_RANDOM.fullmatch, texts)):
            _mark_token(place, values, found)
        elif place not in found.types and values.counts:
            # A token that is repeated in another place.
            tokens = sum(_RANDOM.fullmatch(text) is not None for text in texts)
            if texts and tokens >= 0.8 * len(values.counts):
                _mark_token(place, values, found)


def _mark_token(place: Place, values: _Values, found: Identifiers) -> None:
    number = " integer" if all(isinstance(value, int) for value in values.counts) else ""
    found.types[place] = f"id:token{number}"
    if len(values.counts) >= 0.5 * len(values.by_conversation):
        found.generated.add(place)


def _is_rare(value: Scalar) -> bool:
    if isinstance(value, int):
        return abs(value) >= 1000
    return 4 <= len(value) <= 200 and any(character.isdigit() for character in value)


# Players.


def _find_players(places: Mapping[Place, _Values], heard: set[Scalar], found: Identifiers) -> None:
    scored: list[tuple[float, Place]] = []
    for place, values in places.items():
        if place[0] != "c2s" or place in found.types:
            continue
        score = _login_score(place, values, heard)
        if score > 0:
            scored.append((score, place))
    if not scored:
        return
    scored.sort(key=lambda item: (-item[0], item[1]))
    best, best_place = scored[0]
    names = {value for value in places[best_place].last_values.values() if isinstance(value, str)}
    for score, place in scored:
        own = {value for value in places[place].last_values.values() if isinstance(value, str)}
        is_alike = _key(place) == _key(best_place) and not _key(place).isdigit()
        if (score >= 0.3 * best and (is_alike or len(own & names) >= 0.5 * len(own))) or place == best_place:
            found.login.append(place)
            for conversation, said in places[place].by_conversation.items():
                named = [value for value in said if isinstance(value, str)]
                found.players.update(named)
                if named:
                    found.owners.setdefault(conversation, named[-1])
    found.players = {name for name in sorted(found.players)[:MAX_PLAYERS] if name}


def _names_in_records(messages: Iterable[Message]) -> set[str]:
    """Return the names that a server sends beside numbers, if no client sends a name."""
    names: dict[str, set[Scalar]] = defaultdict(set)
    for message in messages:
        if message.direction == "s2c":
            for _, scalars in _records(message.values):
                found = [value for key, value in scalars if _PLAYER_NAME.fullmatch(key)]
                numbers = [
                    value for key, value in scalars if _PLAYER_KEY.fullmatch(key) and _is_number(value)
                ]
                if len(found) == 1 and isinstance(found[0], str) and numbers:
                    names[found[0]].add(numbers[0])
    is_usual = len(names) > 1 and all(len(numbers) == 1 for numbers in names.values())
    return {*sorted(name for name in names if name)[:MAX_PLAYERS]} if is_usual else set()


def _login_score(place: Place, values: _Values, heard: set[Scalar]) -> float:
    """Return how likely a client's value is its player's name; 0 if it is not."""
    # The last one is accepted.
    first = values.last_values
    texts = {value for value in first.values() if isinstance(value, str) and _is_name(value)}
    if _OTHER_NAME.match(_key(place)):
        return 0.0
    hint = bool(_NAME_HINT.search(_key(place))) + 0.5 * bool(_LOGIN_HINT.search(place[1]))
    # A player may connect several times.
    if len(texts) < (0.4 if hint else 0.6) * len(first) or not texts or len(place[2]) > 3:
        return 0.0
    early = sum(rank <= _EARLY for rank in values.ranks.values()) / len(first)
    known = sum(text in heard for text in texts) / len(texts)
    if early < 0.5 or known < (0.25 if hint >= 1 else 0.4):
        return 0.0
    # A refused name is followed by others.
    if not values.is_stable and (hint < 1 or values.is_variable):
        return 0.0
    if len(first) < 3 and not hint:
        return 0.0
    return float(len(first) ** 0.5 * known * early * (1 + hint))


def _is_name(value: str) -> bool:
    return 0 < len(value) <= 40 and value.isprintable() and any(letter.isalpha() for letter in value)


# Numbers of players.


_Together = Mapping[tuple[Place, Place], Mapping[tuple[str, Scalar], Counter[str]]]
"""Pairs of places, of a number and of a name: server and number to the names beside it."""


def _find_named(
    messages: Iterable[Message],
    tables: Sequence[str],
    places: Mapping[Place, _Values],
    found: Identifiers,
) -> None:
    """Find numbers that occur together with players' names, always the same with the same."""
    best: tuple[int, Place, dict[tuple[str, Scalar], str]] | None = None
    together = _numbers_beside_names(messages, tables, found.players) if found.players else {}
    # Copies of a message tell nothing more.
    originals = {(tables[each.conversation], each.same or each.data): each for each in messages}
    once = _numbers_beside_names(originals.values(), tables, found.players) if found.players else {}
    different = {pair: sum(map(Counter.total, once[pair].values())) for pair in together}
    for (place, name_place), names_of in sorted(together.items()):
        usual = {number: counts.most_common(1)[0][0] for number, counts in names_of.items()}
        total = sum(counts.total() for counts in names_of.values())
        fitting = sum(counts[usual[number]] for number, counts in names_of.items())
        is_bijective = len({(table, name) for (table, _), name in usual.items()}) == len(usual)
        if len(usual) < 2 or fitting < 0.9 * total or not is_bijective:
            continue
        is_likely = _is_likely_id(place, name_place, len(usual))
        if different[place, name_place] < len(usual) * (1 if is_likely else 2):
            continue
        if best is None or (len(usual), total) > (len(best[2]), best[0]):
            best = total, place, usual
        found.types.setdefault(place, "id")
        found.named.append(place)
    if best is None:
        return
    number_of = {(table, name): number for (table, number), name in best[2].items()}
    found.numbers = {
        conversation: number_of[tables[conversation], owner]
        for conversation, owner in found.owners.items()
        if (tables[conversation], owner) in number_of
    }
    _find_own_numbers(places, found)


def _is_likely_id(place: Place, name_place: Place, number: int) -> bool:
    """Return True if the place of a number suggests that it is a player's; `number` is that of players."""
    if _key(place).isdigit() and _key(name_place).isdigit():
        return abs(int(_key(place)) - int(_key(name_place))) == 1 and number > 2
    return _PLAYER_KEY.fullmatch(_key(place)) is not None


def _numbers_beside_names(
    messages: Iterable[Message], tables: Sequence[str], players: Collection[str]
) -> _Together:
    together: dict[tuple[Place, Place], dict[tuple[str, Scalar], Counter[str]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for message in messages:
        if message.direction != "s2c":
            continue
        for path, scalars in _records(message.values):
            names = [(key, value) for key, value in scalars if isinstance(value, str) and value in players]
            for (key, name), (other, number) in itertools.product(names[:3], scalars):
                if other == key or not _is_number(number):
                    continue
                kind = message.direction, message.name
                pair = (*kind, (*path, other)), (*kind, (*path, key))
                if len(together) < 1000 or pair in together:
                    together[pair][tables[message.conversation], number][name] += 1
    return together


def _find_own_numbers(places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find messages in which the server gives a connection the number of its player."""
    mine = found.numbers
    for place, values in places.items():
        if place[0] != "s2c" or len(place[2]) > 2 or not values.is_stable:
            continue
        first = values.first_values
        right = sum(mine.get(conversation) == value for conversation, value in first.items())
        several = len({*first.values()}) >= 2 and len(first) >= 0.5 * len(mine)
        if several and right >= 0.8 * len(first) and values.counts.total() <= 2 * len(first):
            found.types[place] = "id"
            found.given.append(place)


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
    """Find the number that the server gives each connection, by the names of fields and messages."""
    scored: list[tuple[float, Place]] = []
    for place, values in places.items():
        if place[0] != "s2c" or place in found.types or "[]" in "".join(place[2]):
            continue
        first = values.first_values
        numbers = {
            (tables[conversation], value) for conversation, value in first.items() if _is_number(value)
        }
        if len(first) < 2 or len(numbers) < max(2, 0.8 * len(first)) or not values.is_stable:
            continue
        early = sum(rank <= _EARLY for rank in values.ranks.values()) / len(first)
        is_given = _GIVEN_HINT.search(_key(place)) or _PERSON_KEY.fullmatch(_key(place))
        hint = bool(is_given) + bool(_GIVEN_HINT.search(place[1]))
        if early < 0.5 or not hint or values.counts.total() > 2 * len(first):
            continue
        scored.append((len(first) * early * hint, place))
    if scored:
        scored.sort(key=lambda item: (-item[0], item[1]))
        given = scored[0][1]
        found.given.append(given)
        found.numbers = places[given].first_values
        found.types[given] = "id"


def _spread_numbers(places: Mapping[Place, _Values], found: Identifiers) -> None:
    """Find the numbers of players elsewhere."""
    numbers = {*found.numbers.values()}
    keys = {_key(place) for place, kind in found.types.items() if kind == "id"}
    for place, values in places.items():
        if place in found.types or not values.counts or not numbers:
            continue
        known = sum(number for value, number in values.counts.items() if value in numbers)
        others = {value for value in values.counts if value not in numbers}
        if known < 0.6 * values.counts.total() or any(
            _is_positive(value) for value in others if len(others) > 2
        ):
            continue
        if not _key(place).isdigit():
            same = _key(place) in keys
            same = same or _PLAYER_ID.fullmatch(_key(place)) is not None
            is_player = same or _PLAYER_KEY.fullmatch(_key(place)) is not None
            is_person = _PERSON_KEY.fullmatch(_key(place)) is not None
            if (is_player and (same or len(values.counts) >= 2)) or is_person:
                found.types[place] = "id"
        elif len(numbers) >= 3 and not others and len(values.counts) >= 3:
            found.types[place] = "id"


def _is_positive(value: Scalar) -> bool:
    return not isinstance(value, int) or value > 0
