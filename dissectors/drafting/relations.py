"""Inference of relations between messages: answers, broadcast copies, heartbeats, and whose turn it is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from statistics import median

import msgspec

from kiebitz.dissectors.drafting.identifiers import Identifiers, leaves
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.model import OPPOSITE, Direction

Kind = tuple[Direction, str]
"""Direction and name of a message."""

_WINDOW_NS = 1_000_000_000
"""Longest time between the copies of a broadcast."""

_ANSWER_NS = 5_000_000_000
"""Longest time between a message and its answer."""

_NEAR = 4
"""Number of messages of the other side among which an answer is looked for."""

_MAX_ANSWERED = 4
"""Number of messages from which an answer is a general confirmation."""

_HEARTBEAT = re.compile(
    r"\W?(ping|pong|alive|keep_?-?alive|heart_?-?beat|noop|echo_?re(quest|ply))\W?", re.IGNORECASE
)


class Broadcast(msgspec.Struct):
    """Evidence for a broadcast: number of messages, and of copies among them."""

    messages: int
    copies: int
    coverage: float


class Turn(msgspec.Struct):
    """A message that says whose turn it is: the field with the player, None if it is the receiver."""

    name: str
    path: tuple[str, ...] | None
    hits: int
    total: int


# Broadcasts.


def find_broadcasts(messages: Iterable[Message], servers: Sequence[str]) -> dict[str, Broadcast]:
    """Return the server's messages of which each client gets a copy."""
    spans: dict[int, list[int]] = {}
    of_server = [message for message in messages if message.direction == "s2c"]
    for message in of_server:
        span = spans.setdefault(message.conversation, [message.ts_ns, message.ts_ns])
        span[1] = message.ts_ns
    open_groups: dict[tuple[str, str, bytes], tuple[int, set[int]]] = {}
    totals: Counter[str] = Counter()
    copies: Counter[str] = Counter()
    coverage: dict[str, list[float]] = defaultdict(list)

    def close(name: str, server: str, start: int, group: set[int]) -> None:
        if len(group) > 1:
            copies[name] += len(group)
            there = sum(
                servers[conversation] == server and span[0] <= start + _WINDOW_NS and span[1] >= start
                for conversation, span in spans.items()
            )
            coverage[name].append(len(group) / max(1, there))

    for message in of_server:
        totals[message.name] += 1
        server = servers[message.conversation]
        key = server, message.name, message.data
        group = open_groups.get(key)
        if group is not None and (message.ts_ns - group[0] > _WINDOW_NS or message.conversation in group[1]):
            close(message.name, server, *group)
            group = None
        if group is None:
            group = open_groups[key] = message.ts_ns, set()
        group[1].add(message.conversation)
    for (server, name, _), group in open_groups.items():
        close(name, server, *group)
    found: dict[str, Broadcast] = {}
    for name, total in totals.items():
        if coverage[name] and copies[name] >= 0.6 * total:
            mean = sum(coverage[name]) / len(coverage[name])
            if mean >= 0.5:
                found[name] = Broadcast(total, copies[name], mean)
    return found


# Heartbeats.


def find_heartbeats(messages: Iterable[Message]) -> set[Kind]:
    """Return messages without content that are sent at regular intervals, or are named so."""
    times: dict[Kind, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    with_fields: Counter[Kind] = Counter()
    for message in messages:
        kind = message.direction, message.name
        times[kind][message.conversation].append(message.ts_ns)
        with_fields[kind] += bool(message.values)
    found: set[Kind] = set()
    for kind, by_conversation in times.items():
        total = sum(map(len, by_conversation.values()))
        if with_fields[kind] > 0.05 * total:
            continue
        steps = [
            later - earlier
            for own in by_conversation.values()
            for earlier, later in zip(own, own[1:], strict=False)
        ]
        is_regular = False
        if len(steps) >= 5:
            middle = median(steps)
            near = sum(abs(step - middle) <= 0.2 * middle for step in steps)
            is_regular = middle >= 500_000_000 and near >= 0.7 * len(steps)
        if is_regular or _HEARTBEAT.fullmatch(kind[1]):
            found.add(kind)
    return found


# Answers.


class _Pair(msgspec.Struct):
    followed: int = 0
    preceded: int = 0
    nearest: int = 0
    echoes: int = 0
    quick: int = 0


def find_answers(
    messages: Sequence[Message], heartbeats: set[Kind], broadcasts: Mapping[str, Broadcast]
) -> dict[Kind, list[tuple[str, int]]]:
    """Return, for each message, the names of those that it answers, with the numbers of pairs seen."""
    counts: Counter[Kind] = Counter((message.direction, message.name) for message in messages)
    totals = {
        direction: sum(number for kind, number in counts.items() if kind[0] == direction)
        for direction in OPPOSITE
    }
    pairs: dict[tuple[Kind, Kind], _Pair] = defaultdict(_Pair)
    for own in by_conversation(messages).values():
        _count_pairs(own, heartbeats, pairs)
    scored: dict[Kind, list[tuple[float, str, int]]] = defaultdict(list)
    for (asked, answer), pair in pairs.items():
        score = _score(asked, answer, pair, counts, totals, heartbeats, broadcasts)
        if score >= 1.0:
            scored[answer].append((score, asked[1], pair.followed))
    found: dict[Kind, list[tuple[str, int]]] = {}
    for answer, asked_names in scored.items():
        asked_names.sort(key=lambda item: (-item[0], item[1]))
        best = asked_names[0][0]
        chosen = [(name, number) for score, name, number in asked_names if score >= 0.6 * best]
        if len(chosen) > _MAX_ANSWERED and best < 1.6:
            # A general confirmation, or an error.
            continue
        found[answer] = chosen[:_MAX_ANSWERED]
    return found


def by_conversation(messages: Iterable[Message]) -> dict[int, list[Message]]:
    """Return the messages of each conversation in order."""
    found: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        found[message.conversation].append(message)
    return found


def _count_pairs(
    messages: Sequence[Message], heartbeats: set[Kind], pairs: dict[tuple[Kind, Kind], _Pair]
) -> None:
    """Count in one conversation which message follows which of the other side."""
    recent: dict[Direction, list[Message]] = {"c2s": [], "s2c": []}
    # Names of answers that came since, by the number of the message.
    answered: dict[int, set[str]] = {}
    for message in messages:
        kind = message.direction, message.name
        asked = recent[OPPOSITE[message.direction]]
        seen: set[str] = set()
        values = {value for _, value in leaves(message.values) if _is_telling(value)}
        for rank, former in enumerate(reversed(asked)):
            if former.name in seen or message.ts_ns - former.ts_ns > _ANSWER_NS:
                continue
            seen.add(former.name)
            pair = pairs[(former.direction, former.name), kind]
            pair.preceded += 1
            pair.nearest += rank == 0
            pair.quick += message.ts_ns - former.ts_ns < 100_000_000
            if message.name not in answered[former.order]:
                answered[former.order].add(message.name)
                pair.followed += 1
            if values and any(value in values for _, value in leaves(former.values)):
                pair.echoes += 1
        if kind not in heartbeats:
            own = recent[message.direction]
            own.append(message)
            answered[message.order] = set()
            if len(own) > _NEAR:
                del answered[own.pop(0).order]


def _is_telling(value: str | int) -> bool:
    return len(value) >= 3 if isinstance(value, str) else abs(value) >= 100


def _score(
    asked: Kind,
    answer: Kind,
    pair: _Pair,
    counts: Counter[Kind],
    totals: Mapping[Direction, int],
    heartbeats: set[Kind],
    broadcasts: Mapping[str, Broadcast],
) -> float:
    """Return the evidence that one message answers another; 1 is enough."""
    if asked in heartbeats or answer in heartbeats:
        return 0.0
    followed = pair.followed / counts[asked]
    preceded = pair.preceded / counts[answer]
    nearest = pair.nearest / counts[answer]
    echoes = pair.echoes / max(1, pair.preceded)
    by_chance = 1 - (1 - counts[answer] / totals[answer[0]]) ** _NEAR
    beyond = max(0.0, (followed - by_chance) / max(0.01, 1 - by_chance))
    likeness = name_likeness(asked[1], answer[1])
    if answer[0] == "s2c" and answer[1] in broadcasts:
        # Copies for others follow none of their messages.
        preceded, nearest = min(1.0, 2 * preceded), min(1.0, 2 * nearest)
    score = 0.5 * nearest + 0.4 * preceded + 0.5 * beyond + 0.6 * likeness + 0.5 * echoes
    return score * (0.7 + 0.3 * pair.quick / max(1, pair.preceded)) if preceded > 0.05 else 0.0


def name_likeness(asked: str, answer: str) -> float:
    """Return how much the name of an answer resembles that of the message it answers, from 0 to 1."""
    first, second = (re.sub(r"\W|_", "", name).casefold() for name in (asked, answer))
    if not first or not second:
        return 0.0
    if first == second:
        return 1.0
    if min(len(first), len(second)) >= 3 and (second.startswith(first) or second.endswith(first)):
        return 0.9
    words = [_stems(name) for name in (asked, answer)]
    if words[0] and words[1]:
        shared = len(words[0] & words[1]) / min(len(words[0]), len(words[1]))
        return 0.8 * shared if shared >= 0.5 else 0.3 * SequenceMatcher(None, first, second).ratio()
    return 0.0


_ENDINGS = re.compile(r"(request|response|reply|answer|ed|ing|s|e)$")


def _stems(name: str) -> set[str]:
    words = re.findall(r"[A-ZÄÖÜ]?[a-zäöüß]+|[A-ZÄÖÜ]+(?![a-z])|\d+", name)
    stems = {_ENDINGS.sub("", word.casefold()) for word in words}
    return {stem for stem in stems if len(stem) >= 3} - {
        "set",
        "get",
        "request",
        "respons",
        "reply",
        "answer",
    }


def find_heartbeat_answers(messages: Sequence[Message], heartbeats: set[Kind]) -> dict[Kind, str]:
    """Return which heartbeat of the other side each heartbeat answers."""
    counts: Counter[Kind] = Counter()
    pairs: Counter[tuple[Kind, Kind]] = Counter()
    for own in by_conversation(messages).values():
        pending: dict[Kind, bool] = {}
        for message in own:
            kind = message.direction, message.name
            if kind not in heartbeats:
                continue
            counts[kind] += 1
            for other in pending:
                if other[0] != kind[0] and pending[other]:
                    pairs[other, kind] += 1
                    pending[other] = False
            pending[kind] = True
    found: dict[Kind, str] = {}
    for kind in sorted(heartbeats):
        fitting = [
            (number * (1 + name_likeness(asked[1], kind[1])), asked[1])
            for (asked, answer), number in pairs.items()
            if answer == kind and number >= 0.5 * counts[kind]
        ]
        if fitting:
            found[kind] = max(fitting)[1]
    # Of two that answer each other, the server's is the question.
    for kind, asked in list(found.items()):
        if found.get((OPPOSITE[kind[0]], asked)) == kind[1] and kind[0] == "s2c":
            del found[kind]
    return found


# Turns.


def find_turn(messages: Sequence[Message], heartbeats: set[Kind], identifiers: Identifiers) -> Turn | None:
    """Return the server's message after which the named player, or its receiver, is the next to act."""
    actors: dict[str | int, int] = {}
    for conversation, owner in (*identifiers.owners.items(), *identifiers.numbers.items()):
        actors.setdefault(owner, conversation)
    following = _next_senders(messages, heartbeats)
    hits: Counter[tuple[str, tuple[str, ...] | None]] = Counter()
    totals: Counter[tuple[str, tuple[str, ...] | None]] = Counter()
    values: dict[tuple[str, tuple[str, ...] | None], list[int]] = defaultdict(list)
    for message in messages:
        sender = following.get(message.order)
        if message.direction != "s2c" or sender is None:
            continue
        for path, actor in _named(message, actors):
            key = message.name, path
            totals[key] += 1
            hits[key] += actor == sender
            values[key].append(actor)
    best: tuple[float, Turn] | None = None
    for key, total in totals.items():
        different = len({*values[key]})
        changes = sum(a != b for a, b in zip(values[key], values[key][1:], strict=False))
        if total < 4 or different < 2 or hits[key] < 0.7 * total or changes < 0.1 * total:
            continue
        score = hits[key] / total + 0.5 * bool(re.search("turn|current|next|dran|zug", key[0], re.IGNORECASE))
        if best is None or score > best[0]:
            best = score, Turn(key[0], key[1], hits[key], total)
    return None if best is None else best[1]


def _named(message: Message, actors: Mapping[str | int, int]) -> Iterator[tuple[tuple[str, ...] | None, int]]:
    for path, value in leaves(message.values):
        if len(path) == 1 and value in actors and not path[0].endswith("[]"):
            yield path, actors[value]
    if re.search("turn|dran|zug|move", message.name, re.IGNORECASE):
        yield None, message.conversation


def _next_senders(messages: Sequence[Message], heartbeats: set[Kind]) -> dict[int, int]:
    """Return the conversation of the next client's message by the number of a server's message."""
    found: dict[int, int] = {}
    pending: list[Message] = []
    for message in messages:
        if (message.direction, message.name) in heartbeats:
            continue
        if message.direction == "s2c":
            pending.append(message)
            continue
        for earlier in pending:
            found[earlier.order] = message.conversation
        pending.clear()
    return found
