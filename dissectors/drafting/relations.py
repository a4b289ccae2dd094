"""Inference of relations between messages: answers, broadcast copies and heartbeats."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from statistics import median

import msgspec

from kiebitz.dissectors.drafting.identifiers import leaves
from kiebitz.dissectors.drafting.traffic import Kind, Message
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.model import OPPOSITE, Direction

CODED = "message_"
"""Beginning of the names of messages of which only a number is sent."""

_WINDOW_NS = 1_000_000_000
"""Longest time between the copies of a broadcast."""

_REPLY_NS = 20_000_000
"""Time within which a server replies to a message at once."""

_ANSWER_NS = 5_000_000_000
"""Longest time between a message and its answer."""

_NEAR = 4
"""Number of messages of the other side among which an answer is looked for."""

_LEAST_REACTIONS = 3
"""Number of pairs below which two messages without a likeness are no pair."""

_MAX_ANSWERED = 4
"""Number of messages from which an answer is a general confirmation."""

_GENERAL = re.compile(
    r"\W*(ok(ay)?|n?ack|err(or)?|fail(ed|ure)?|fehler|success|(server)?(response|answer|antwort|reply)|status|info"
    r"|denied|invalid|refused|rejected)(_?(msg|message))?\W*",
    re.IGNORECASE,
)
"""Names of general confirmations and errors, which answer nearly everything."""

_HEARTBEAT = re.compile(
    r"\W?(ping|pong|alive|keep_?-?alive|heart_?-?beat|noop|echo_?re(quest|ply))\W?", re.IGNORECASE
)


class Broadcast(msgspec.Struct):
    """Evidence for a broadcast: numbers of messages and of copies, and share of the clients with a copy."""

    messages: int
    copies: int
    coverage: float


# Broadcasts.


class _Copies(msgspec.Struct):
    """Equal messages of a server on several conversations, within `_WINDOW_NS`.

    `independent` are those right behind a client's message which is later than the copy before, and those
    before which the client of that copy has sent a message and received another.
    """

    start: int
    latest: Message
    conversations: set[int]
    trips: int = 0
    """Number of the messages to the client of the latest one which followed its own."""
    independent: int = 0


def find_broadcasts(
    messages: Iterable[Message], tables: Sequence[str], heartbeats: Collection[Kind] = ()
) -> dict[str, Broadcast]:
    """Return the server's messages of which each client gets a copy.

    Args:
        messages: All messages in order of time.
        tables: The server of each conversation.
        heartbeats: Messages that cause no answer for all.
    """
    search = _BroadcastSearch(tables)
    for message in messages:
        if message.kind not in heartbeats:
            search.add(message)
    found = {name: search.broadcast(name) for name in search.names}
    return {name: broadcast for name, broadcast in found.items() if broadcast is not None}


class _BroadcastSearch:
    """Groups a server's messages into copies; `tables` has the server of each conversation."""

    def __init__(self, tables: Sequence[str]) -> None:
        self._tables = tables
        self._spans: dict[int, list[int]] = {}
        self._current: dict[tuple[str, str, bytes], _Copies] = {}
        self._found: dict[str, list[_Copies]] = defaultdict(list)
        self._totals: Counter[str] = Counter()
        self._own: Counter[str] = Counter()
        """Numbers of greetings and replies by name."""
        self._latest: dict[int, Message] = {}
        self._trips: Counter[int] = Counter()

    @property
    def names(self) -> Collection[str]:
        """Names of the server's messages."""
        return self._found.keys()

    def add(self, message: Message) -> None:
        """Add the next message in order of time."""
        former = self._latest.get(message.conversation)
        self._latest[message.conversation] = message
        self._spans.setdefault(message.conversation, [message.ts_ns, 0])[1] = message.ts_ns
        if message.direction == "c2s":
            return
        follows_client = former is not None and former.direction == "c2s"
        self._trips[message.conversation] += follows_client
        self._totals[message.name] += 1
        self._own[message.name] += former is None or (
            follows_client and message.ts_ns - former.ts_ns < _REPLY_NS
        )
        key = self._tables[message.conversation], message.name, message.same or message.data
        copies = self._current.get(key)
        is_second = copies is not None and message.conversation in copies.conversations
        if copies is None or is_second or message.ts_ns - copies.start > _WINDOW_NS:
            copies = self._current[key] = _Copies(message.ts_ns, message, set())
            self._found[message.name].append(copies)
        elif (former is not None and follows_client and former.order > copies.latest.order) or (
            message.ts_ns - copies.latest.ts_ns > _REPLY_NS
            and self._trips[copies.latest.conversation] > copies.trips
        ):
            copies.independent += 1
        copies.conversations.add(message.conversation)
        copies.latest = message
        copies.trips = self._trips[message.conversation]

    def broadcast(self, name: str) -> Broadcast | None:
        """Return the evidence that a message is sent to all, None if it is not."""
        groups = self._found[name]
        several = [group for group in groups if len(group.conversations) > 1]
        copies = sum(len(group.conversations) for group in several)
        # What is sent when there is no other client tells nothing.
        total = self._totals[name] - sum(
            self._count_open(group, 0) < 2 for group in groups if len(group.conversations) == 1
        )
        others = sum(len(group.conversations) - 1 for group in several)
        independent = sum(group.independent for group in several)
        if (
            not several
            or copies < 0.6 * total
            or independent > 0.5 * others
            or self._own[name] >= 0.9 * total
        ):
            return None
        shares = [
            len(group.conversations) / max(1, self._count_open(group, _WINDOW_NS)) for group in several[:1000]
        ]
        mean = sum(shares) / len(shares)
        return Broadcast(total, copies, mean) if mean >= 0.5 else None

    def _count_open(self, copies: _Copies, window_ns: int) -> int:
        """Return the number of the server's conversations that are open then, or begin soon."""
        begins, ends = self._sorted_spans[self._tables[next(iter(copies.conversations))]]
        return bisect_right(begins, copies.start + window_ns) - bisect_left(ends, copies.start)

    @cached_property
    def _sorted_spans(self) -> dict[str, tuple[list[int], list[int]]]:
        """The sorted beginnings and the sorted ends of each server's conversations, once all are known."""
        found: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for conversation, span in self._spans.items():
            for times, time in zip(found[self._tables[conversation]], span, strict=True):
                times.append(time)
        return {table: (sorted(begins), sorted(ends)) for table, (begins, ends) in found.items()}


# Heartbeats.


def find_heartbeats(messages: Sequence[Message]) -> set[Kind]:
    """Return messages without content that are sent at regular intervals, or are named so."""
    times: dict[Kind, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    with_fields: Counter[Kind] = Counter()
    for message in messages:
        kind = message.kind
        times[kind][message.conversation].append(message.ts_ns)
        with_fields[kind] += bool(message.values)
    counts = {kind: sum(map(len, own.values())) for kind, own in times.items()}
    empty = {kind for kind in times if with_fields[kind] <= 0.05 * counts[kind]}
    named = {kind for kind in empty if _HEARTBEAT.fullmatch(kind[1])}
    regular = {kind for kind in empty if _is_regular([*times[kind].values()])}
    # A player may act regularly, too: a client's heartbeat replies to one, or is named so.
    of_server = {kind for kind in named | regular if kind[0] == "s2c"}
    replies: Counter[Kind] = Counter()
    for own in by_conversation(messages).values():
        for former, message in itertools.pairwise(own):
            if ("s2c", former.name) in of_server and former.direction == "s2c" and message.direction == "c2s":
                replies["c2s", message.name] += 1
    answering = {kind for kind in regular if kind[0] == "c2s" and replies[kind] >= 0.7 * counts[kind]}
    return named | of_server | answering


def _is_regular(times: Sequence[Sequence[int]]) -> bool:
    """Return True if nearly all intervals are alike, and not short."""
    steps = [later - earlier for own in times for earlier, later in itertools.pairwise(own)]
    if len(steps) < 5:
        return False
    middle = median(steps)
    near = sum(abs(step - middle) <= 0.15 * middle for step in steps)
    return middle >= 500_000_000 and near >= 0.8 * len(steps)


# Answers.


class _Pair(msgspec.Struct):
    followed: int = 0
    preceded: int = 0
    nearest: int = 0
    echoes: int = 0
    quick: int = 0
    first: int = 0
    repeats: int = 0
    """Number of answers at once that contain all values of what they answer."""


def find_answers(
    messages: Sequence[Message], heartbeats: set[Kind], broadcasts: Mapping[str, Broadcast]
) -> dict[Kind, list[tuple[str, int]]]:
    """Return, for each message, the names of those that it answers, with the numbers of pairs seen."""
    search = _AnswerSearch(messages, heartbeats, broadcasts)
    fitting: dict[Kind, list[tuple[float, Kind]]] = defaultdict(list)
    for (asked, answer), score in search.scores.items():
        if search.is_answer(asked, answer):
            fitting[answer].append((score, asked))
    found = _chosen(fitting, search.pairs, search.counts)
    return {answer: asked for answer, asked in (found | _referring(messages)).items() if asked}


def _referring(messages: Sequence[Message]) -> dict[Kind, list[tuple[str, int]]]:
    """Return what messages answer by the numbers before their names."""
    requests: dict[tuple[int, Direction, int], str] = {}
    pairs: dict[Kind, Counter[str]] = defaultdict(Counter)
    for message in messages:
        if message.reference is not None:
            pairs[message.kind].update()
            key = message.conversation, OPPOSITE[message.direction], message.reference
            if (asked := requests.get(key)) is not None:
                pairs[message.kind][asked] += 1
        if message.number is not None:
            requests[message.conversation, message.direction, message.number] = message.name
    return {answer: [*found.items()] for answer, found in pairs.items()}


class _AnswerSearch:
    """Pairs of messages of which one may answer the other, with `scores`."""

    def __init__(
        self, messages: Sequence[Message], heartbeats: set[Kind], broadcasts: Mapping[str, Broadcast]
    ) -> None:
        self._broadcasts = broadcasts
        self.counts: Counter[Kind] = Counter(message.kind for message in messages)
        self.pairs: dict[tuple[Kind, Kind], _Pair] = defaultdict(_Pair)
        for own in by_conversation(messages).values():
            _count_pairs(own, heartbeats, self.pairs)
        totals = {
            direction: sum(number for kind, number in self.counts.items() if kind[0] == direction)
            for direction in OPPOSITE
        }
        self.scores = {
            (asked, answer): _score(asked, answer, pair, self.counts, totals)
            for (asked, answer), pair in self.pairs.items()
            if asked not in heartbeats and answer not in heartbeats
        }
        self._first: dict[Kind, int] = {}
        for message in messages:
            self._first.setdefault(message.kind, message.order)

    def _is_expected(self, asked: Kind, answer: Kind) -> bool:
        """Return True if an answer at once repeats all values of its request, or is only values."""
        pair, number = self.pairs[asked, answer], self.counts[asked]
        if answer[1] == NAMELESS:
            return pair.first >= max(2, 0.8 * number)
        is_same = asked[1] == answer[1]
        is_enough = pair.repeats >= (1 if is_same else _LEAST_REACTIONS)
        # Some requests may be refused.
        return asked[0] == "c2s" and is_enough and pair.repeats >= (0.6 if is_same else 0.9) * number

    def is_answer(self, asked: Kind, answer: Kind) -> bool:
        """Return True if a pair is likely, not rather the other way round, and not explained otherwise."""
        if _GENERAL.fullmatch(answer[1]) or self._is_expected(asked, answer):
            return _GENERAL.fullmatch(answer[1]) is None
        score, opposite = self.scores[asked, answer], self.scores.get((answer, asked), 0.0)
        is_first = self._first[asked] <= self._first[answer]
        if score < 1.0 or opposite > (1.5 if is_first else 0.67) * score:
            return False
        pair = self.pairs[asked, answer]
        likeness = name_likeness(asked[1], answer[1])
        echoes = pair.echoes / max(1, pair.preceded)
        is_odd = answer[0] == "c2s" or answer[1].startswith(CODED)
        if is_odd and pair.followed < _LEAST_REACTIONS and likeness < 0.5:
            # A client acts after some message in any case, and a number says nothing.
            return False
        is_copied = answer[0] == "s2c" and answer[1] in self._broadcasts
        if is_copied and (likeness < 0.6 or asked[1] == answer[1]):
            return False
        return likeness >= 0.5 or echoes >= 0.5 or pair.first >= 0.2 * pair.preceded


def _chosen(
    fitting: Mapping[Kind, Sequence[tuple[float, Kind]]],
    pairs: Mapping[tuple[Kind, Kind], _Pair],
    counts: Mapping[Kind, int],
) -> dict[Kind, list[tuple[str, int]]]:
    """Return the answers to report, with the numbers of pairs seen."""
    found: dict[Kind, list[tuple[str, int]]] = {}
    # Replies of the server come first: what a client does after one is no answer.
    for answer in sorted(fitting, key=lambda kind: (kind[0] == "c2s", kind)):
        candidates = sorted(fitting[answer], key=lambda item: (-item[0], item[1]))
        if answer[0] == "c2s":
            candidates = [
                (score, asked)
                for score, asked in candidates
                if asked not in found
                or name_likeness(asked[1], answer[1]) >= 0.9
                or pairs[asked, answer].echoes >= 0.5 * pairs[asked, answer].preceded
            ]
        if not candidates:
            continue
        best = candidates[0][0]
        chosen = [asked for score, asked in candidates if score >= 0.75 * best]
        if len(chosen) > _MAX_ANSWERED:
            # A general confirmation, or an error.
            continue
        found[answer] = [(asked[1], pairs[asked, answer].followed) for asked in chosen]
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
    previous: Message | None = None
    for message in messages:
        kind = message.kind
        asked = recent[OPPOSITE[message.direction]]
        seen: set[str] = set()
        all_values = _values_of(message)
        values = {
            value
            for value in all_values
            if (len(value) >= 3 if isinstance(value, str) else abs(value) >= 100)
        }
        for rank, former in enumerate(reversed(asked)):
            if former.name in seen or message.ts_ns - former.ts_ns > _ANSWER_NS:
                continue
            seen.add(former.name)
            pair = pairs[former.kind, kind]
            pair.preceded += 1
            pair.nearest += rank == 0
            if rank == 0 and former is previous:
                pair.first += 1
                asked_for = _values_of(former)
                pair.repeats += asked_for <= all_values and (bool(asked_for) or former.name == message.name)
            pair.quick += message.ts_ns - former.ts_ns < 100_000_000
            if message.name not in answered[former.order]:
                answered[former.order].add(message.name)
                pair.followed += 1
            if values and not values.isdisjoint(_values_of(former)):
                pair.echoes += 1
        if kind not in heartbeats:
            previous = message
            own = recent[message.direction]
            own.append(message)
            answered[message.order] = set()
            if len(own) > _NEAR:
                del answered[own.pop(0).order]


def _values_of(message: Message) -> set[str | int]:
    return {value for _, value in leaves(message.values)}


def _score(
    asked: Kind,
    answer: Kind,
    pair: _Pair,
    counts: Counter[Kind],
    totals: Mapping[Direction, int],
) -> float:
    """Return the evidence that one message answers another; 1 is enough."""
    followed = pair.followed / counts[asked]
    preceded = pair.preceded / counts[answer]
    nearest = pair.nearest / counts[answer]
    echoes = pair.echoes / max(1, pair.preceded)
    by_chance = 1 - (1 - counts[answer] / totals[answer[0]]) ** _NEAR
    beyond = max(0.0, (followed - by_chance) / max(0.01, 1 - by_chance))
    likeness = name_likeness(asked[1], answer[1])
    score = 0.5 * nearest + 0.4 * preceded + 0.5 * beyond + 0.6 * likeness + 0.5 * echoes
    if asked[0] == "c2s":
        score += 0.3 * pair.first / max(1, pair.preceded)
    return score * (0.7 + 0.3 * pair.quick / max(1, pair.preceded)) if preceded > 0.05 else 0.0


def name_likeness(asked: str, answer: str) -> float:
    """Return how much the name of an answer resembles that of the message it answers, from 0 to 1."""
    first, second = (re.sub(r"\W|_", "", name).casefold() for name in (asked, answer))
    if not first or not second:
        return 0.0
    if first == second:
        return 1.0
    if asked.startswith(CODED) and answer.startswith(CODED):
        return 0.0
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
        kinds = [message.kind for message in own]
        answered: dict[Kind, set[Kind]] = {}
        for kind in filter(heartbeats.__contains__, kinds):
            counts[kind] += 1
            for other, answers in answered.items():
                if other[0] != kind[0] and kind not in answers:
                    pairs[other, kind] += 1
                    answers.add(kind)
            answered[kind] = set()

    def score(pair: tuple[Kind, Kind]) -> float:
        (_, asked), answer = pair
        return (
            (1 + name_likeness(asked, answer[1]) + 0.5 * (asked != answer[1])) * pairs[pair] / counts[answer]
        )

    # Each is either a question or an answer.
    found: dict[Kind, str] = {}
    questions: set[Kind] = set()
    usual = [pair for pair in pairs if pairs[pair] >= 0.5 * counts[pair[1]]]
    for asked, answer in sorted(usual, key=lambda pair: (-score(pair), pair)):
        if asked not in found and answer not in found and answer not in questions:
            found[answer] = asked[1]
            questions.add(asked)
    return found
