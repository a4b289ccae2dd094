"""Games of Catan as texts (tests/data/catan_games.txt): what a server is made to do, and the findings.

A step calls a method of `catan_play.Server`: its name, then the arguments, written as in `_value`. Other
steps are

    game 3 3 3 costs=after      the beginning: `catan_play.a_game` with these rolls, in a dialect
    lobby Anna Bert             the beginning: these clients
    map 1 Dorf 0,0+1,0+1,-1     the beginning: a game with these buildings on its map; it is Anna's turn
    only Anna                   in the first line: only these connections are captured
    events rolled paid          events of these kinds are shown from here on; `events` shows all
    state players Anna          the state at this position
    games                       the games so far
    lose                        messages are not captured from here on, until `lose no`; `lose Bert`: his
    end                         the streams end

Indented lines are findings, which KIEBITZ_SNAPSHOTS=write rewrites: diagnostics with their messages and the
marked place, events with the number of their copies so far.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, takewhile
from typing import Any

from catan_play import ANNA, ANNA_2, BERT, BERT_2, CLEO, CLEO_2, NAMES, Dialect, Server, a_game
from catan_wire import Moment, Step, items
from conversation_files import Block, as_json, game_line
from snapshots import marked

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, Game, Ids, Item, Message
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.registry import BUILT_IN

SPOTS = {"ANNA": ANNA, "BERT": BERT, "CLEO": CLEO, "ANNA_2": ANNA_2, "BERT_2": BERT_2, "CLEO_2": CLEO_2}
"""Names of a village and its road: two arguments."""

_PLACE = r"-?\d+,-?\d+"


def _triples(words: list[str]) -> Iterator[tuple[Any, Any, Any]]:
    values = _values(words)
    return zip(values, values, values, strict=True)


def _values(words: list[str]) -> Iterator[Any]:
    for word in words:
        if word in SPOTS:
            yield from SPOTS[word]
        else:
            yield _value(word)


def _value(word: str) -> Any:
    """Return an argument: a number, dice 3+4, a place 1,-1, a spot 1,-1+1,0, JSON, or a text.

    Counts are Holz=1,Erz=2, those of several players 1:Holz=2;3:Erz=1.
    """
    if word == "-":
        return None
    if re.fullmatch(rf"{_PLACE}(\+{_PLACE})*", word):
        places = [tuple(map(int, place.split(","))) for place in word.split("+")]
        return tuple(places) if "+" in word else places[0]
    if re.fullmatch(r"\d+\+\d+", word):
        return tuple(map(int, word.split("+")))
    if re.match(r"\d:", word):
        return {int(part[0]): _value(part[2:]) for part in word.split(";")}
    if word[0] == "{" or re.fullmatch(r"-?\d+", word):
        return json.loads(word)
    if re.fullmatch(r"(\w+=-?\d+,?)+", word):
        return {kind: int(count) for kind, count in (part.split("=") for part in word.split(","))}
    return {"<": "s2c", ">": "c2s", "no": False}.get(word, word.replace("_", " "))


class _Play:
    """A script that is played step by step."""

    def __init__(self, mirrored: bool) -> None:
        self.mirrored = mirrored
        self.server = Server()
        self.inspector = Inspector(BUILT_IN, Ids())
        self.lines: list[str] = []
        self._shown: Collection[str] | None = ()
        self._lost: Collection[str] = ()
        self._state: State = {}
        self._messages: dict[int, Message] = {}
        self._copies: Counter[int | None] = Counter()
        self.diagnostics: list[Diagnostic] = []
        self._games: dict[int, Game] = {}
        self._sent: dict[tuple[int, Direction], bytes] = {}

    def take(self, step: str) -> Iterator[Step | Moment]:
        """Perform a step, and yield the messages that are sent."""
        self.lines.append(step)
        at = len(self.server.steps)
        verb, *words = re.findall(r"\{.*\}|\S+", step)
        match verb:
            case "game":
                options = (word.split("=") for word in words if "=" in word)
                dialect: Any = {name: value != "no" and value for name, value in options}
                numbers = " ".join(word for word in words if "=" not in word)
                self.server, at = a_game(numbers, Dialect(**dialect), self.mirrored), 0
            case "lobby":
                self.server, at = Server(*words, mirrored=self.mirrored), 0
            case "map":
                self.server, at = Server(*NAMES[:3], mirrored=self.mirrored), 0
                self.server.begin_with(*_triples(words))
            case "events":
                self._shown = words or None
            case "state":
                part: Any = self._state
                for key in words:
                    part = part[key.replace("_", " ")]
                self._add(as_json(part))
            case "games":
                self.lines += map(game_line, self._games.values())
            case "rounds":
                self.server.rounds(" ".join(words))
            case "start":
                self.server.start(*_triples(words))
            case "lose":
                self._lost = () if words == ["no"] else words or NAMES
            case "only" | "end" | "#":
                pass
            case _:
                getattr(self.server, verb)(*_values(words))
        for sent in self.server.steps[at:]:
            yield sent._replace(lost=True) if isinstance(sent, Step) and sent.client in self._lost else sent
        self.show()

    def feed(self, item: Item | Moment) -> None:
        if isinstance(item, Moment):
            return
        if isinstance(item, Chunk):
            key = item.stream.id, item.direction
            self._sent[key] = self._sent.get(key, b"") + item.data
        self.inspector.feed(item)

    def show(self) -> None:
        """Add what was found since the last step."""
        new = self.inspector.drain()
        self._messages |= {message.id: message for message in new.messages}
        self._copies.update(message.event_id for message in new.messages)
        self._games |= {game.id: game for game in new.games}
        for event in new.events:
            apply(self._state, event.changes)
            if self._shown is None or event.kind in self._shown:
                actor = f" of {event.actor}" if event.actor is not None else ""
                sentence = CATAN.presentation.describe(event)
                data = {key: value for key, value in event.data.items() if value is not None}
                self._add(f"{event.kind}{actor}, {self._copies[event.id]}x: {sentence} | {as_json(data)}")
        self.diagnostics += [one for one in new.diagnostics if one.group != "network"]
        # A message whose copies are awaited is returned only with its event.
        while self.diagnostics and (message := self._messages.get(self.diagnostics[0].message_id or 0)):
            one = self.diagnostics.pop(0)
            text = " | ".join(part for part in (one.text, one.expected, one.clause) if part)
            self._add(f"{one.severity} {one.code}, {one.blame}, {message.name}: {text}")
            start, end = message.offset, message.offset + message.length
            excerpt = self._sent[message.stream.id, message.direction][start:end]
            self.lines.append(f"      {marked(excerpt, [(one.offset - start, one.length)])}")

    def _add(self, line: str) -> None:
        self.lines.append(f"    {marked(line.encode(), ())}")


def played(block: Block, mirrored: bool = False) -> str:
    """Return the steps of a block, each followed by its findings; on the map upside down, if `mirrored`."""
    play = _Play(mirrored)
    steps = iter(block.steps)
    heard = block.steps[0].split()[1:] if block.steps[0].startswith("only ") else None
    until_end = takewhile(lambda step: step != "end", steps)
    for item in items(chain.from_iterable(map(play.take, until_end)), heard):
        play.feed(item)
    play.inspector.finish()
    for step in ["end", *steps]:
        for _ in play.take(step):
            pass
    assert not play.diagnostics
    return "\n".join(play.lines)
