"""A CGML server: the one where players log in, and the one where three who have met play hand after hand."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from kiebitz.dissectors.protocols.cgml.cards import SEATS
from peers.cgml_hand import GAME, Broken, Hand, renonc
from peers.cgml_wire import Element, Messages, Unreadable, element, message, number, player, read, text, words
from peers.program import LONGEST, Died, LineServer, Link, Setup

PATIENCE_S = 60.0
"""Time limit in seconds for an answer; the specification mentions a timeout without its value."""

PAUSE_S = 0.05
LONGEST_NAME = 100
MOST_GROUPS = 64
DEFAULT_URL = "127.0.0.1:7002"


class Group:
    """Three players that have all accepted, and their hands."""

    def __init__(self, server: CgmlServer, key: int, names: dict[int, str]) -> None:
        self.key = key
        self.names = names
        self.links: dict[int, Link] = {}
        self.random = server.random
        self._server = server
        self._order: list[int] = []
        self._ready: set[int] = set()
        self._hand: Generator[None, Element, str | None] | None = None
        self._wanted: tuple[Link, str, str] | None = None
        self._questions = 0

    # What a hand asks of its members.

    def has(self, fault: str) -> bool:
        return self._server.has(fault)

    def number(self, seat: int) -> int:
        return self._order[seat]

    def name(self, seat: int) -> str:
        return self.names[self._order[seat]]

    def tell(self, seat: int, *elements: str) -> None:
        self._server.say(self.links[self._order[seat]], *elements)

    def tell_all(self, *elements: str) -> None:
        for link in self.links.values():
            self._server.say(link, *elements)
        self.breathe()

    def breathe(self) -> None:
        self._server.breathe()

    def want(self, seat: int, tag: str, kind: str) -> None:
        self._wanted = self.links[self._order[seat]], tag, kind
        self._questions += 1
        if not self.has("waits-for-ever"):
            self._server.after(PATIENCE_S, partial(self._too_late, self._questions))

    # Its course.

    def accept(self, who: int, link: Link) -> None:
        self.links[who] = link
        self._order.append(who)
        if len(self.links) == SEATS:
            self._ask_for_hand()

    def _ask_for_hand(self) -> None:
        self._ready.clear()
        self._hand = None
        members = "".join(player(who, self.names[who]) for who in self._order)
        self.tell_all(element("newgame", members, status="ask"))

    def ready(self, link: Link) -> None:
        """A member agrees to another hand."""
        if self._hand is not None or len(self.links) < SEATS:
            return
        self._ready |= {who for who, its in self.links.items() if its is link}
        if len(self._ready) == SEATS:
            self._hand = Hand(self).play()
            self._go_on(None)

    def heard(self, link: Link, one: Element) -> None:
        """Process a member's message that may be an answer."""
        if one.tag == "pause":
            if one.get("type") not in ("start", "finish"):
                return
            for other in self.links.values():
                if other is not link and not self.has("keeps-pauses-to-itself"):
                    kind = one.get("type")
                    said = one.find("message")
                    why = element("message", text(words(said))) if said is not None else ""
                    self._server.say(other, element("pause", why, type=kind))
        elif self._wanted == (link, one.tag, one.get("type")) or (
            self.has("takes-turn-from-anyone")
            and self._wanted is not None
            and self._wanted[1:] == (one.tag, one.get("type"))
        ):
            self._wanted = None
            self._go_on(one)

    def _go_on(self, answer: Element | None) -> None:
        assert self._hand is not None
        try:
            # The first step takes nothing.
            next(self._hand) if answer is None else self._hand.send(answer)
            return
        except StopIteration as end:
            why = end.value
        except Broken as broken:
            who = self.number(broken.seat)
            self.tell_all(renonc(who, self.names[who], str(broken)))
            why = "renonc"
        if why is not None:
            self.tell_all(element("cancelgame", why))
        self._wanted = None
        self._questions += 1
        self._order.append(self._order.pop(0))
        self._server.count_game()
        if self._server.over:
            self._server.end_groups("end of group")
        else:
            self._server.after(PAUSE_S, self._next_hand)

    def _next_hand(self) -> None:
        if len(self.links) == SEATS:
            self._ask_for_hand()

    def _too_late(self, question: int) -> None:
        if question == self._questions and self._wanted is not None:
            self.abort(self._wanted[0], "timeout")

    def abort(self, link: Link, why: str) -> None:
        """A member is gone, or never answers: the group is dissolved."""
        if self.has("waits-for-who-is-gone"):
            return
        # One connection may have joined as two.
        who = next((who for who, its in self.links.items() if its is link), 0)
        if self._hand is not None and who:
            gone = player(who, self.names[who])
            del self.links[who]
            self.tell_all(element("abort", gone, element("message", why)))
            self.links[who] = link
        self.dissolve("end of group")

    def dissolve(self, why: str) -> None:
        self._wanted = None
        links, self.links = self.links, {}
        for link in links.values():
            self._server.dismiss(link, why)


class CgmlServer(LineServer):
    """Three who are logged in at the first door are a group, which plays at the second."""

    doors = 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._messages: dict[Link, Messages] = {}
        self._waiting: dict[int, tuple[Link, str]] = {}
        self._groups: dict[int, Group] = {}
        self._at: dict[Link, Group] = {}
        self._last_group = 3

    # Connections.

    def welcome(self, link: Link) -> None:
        self._messages[link] = Messages()

    def line(self, link: Link, line: bytes) -> None:
        messages = self._messages[link]
        whole = messages.line(line)
        if whole is not None:
            self._message(link, whole)
        elif messages.length > LONGEST:
            self.give_up(link, "too long")

    def leave(self, link: Link) -> None:
        self._messages.pop(link, None)
        self._waiting = {who: (its, name) for who, (its, name) in self._waiting.items() if its is not link}
        if self.has("keeps-groups-of-who-is-gone"):
            return
        group = self._at.pop(link, None)
        if group is not None:
            self._groups.pop(group.key, None)
            group.abort(link, "connection lost")

    def farewell(self, link: Link, why: str) -> None:
        self.say(link, element("disconnect", text(why)))

    def dismiss(self, link: Link, why: str) -> None:
        """End a client's connection, with a word."""
        self._at.pop(link, None)
        self.farewell(link, why)
        self.lose(link)
        link.close()

    def end_groups(self, why: str) -> None:
        for group in [*self._groups.values()]:
            group.dissolve(why)
        self._groups.clear()
        self.close_all()

    def say(self, link: Link, *elements: str) -> None:
        if self.has("says-everything-twice") and elements[0].startswith("<newgame"):
            elements *= 2
        data = message(*elements)
        if self.has("forgets-the-empty-line") and elements[0].startswith("<flek"):
            data = data.removesuffix(b"\r\n")
        if self.has("shouts") and elements[0].startswith("<round"):
            data = data.replace(b"<round", b"<ROUND").replace(b"</round", b"</ROUND")
        link.send(data)

    # Messages.

    def _message(self, link: Link, data: bytes) -> None:
        self.text(data)
        try:
            elements = read(data)
            for one in elements:
                if self.has("dies-on-a-missing-attribute"):
                    self._look_up(one)
                self._element(link, one)
        except Unreadable as problem:
            if self.has("dies-on-broken-xml"):
                raise Died from problem
            self.give_up(link, str(problem))

    def _look_up(self, one: Element) -> None:
        needed = {"newgroup": "id", "connect": "status", "newgame": "status"}.get(one.tag, "type")
        if one.tag in _KNOWN and needed not in one.attrib:
            raise Died(needed)

    def _element(self, link: Link, one: Element) -> None:
        group = self._at.get(link)
        match one.tag, one.get("status"):
            case "connect", ("active" | "passive") if link.door == 0:
                self._connect(link, one)
            case "newgroup", ("accept" | "reject") as status if link.door == 1:
                self._join(link, one, status)
            case "newgame", "accept" if group is not None:
                group.ready(link)
            case "newgame", "reject" if group is not None:
                self._groups.pop(group.key, None)
                group.dissolve("somebody has had enough")
            case "disconnect", _:
                self.lose(link)
                link.close()
            case _, None if group is not None:
                group.heard(link, one)
            case tag, _ if self.has("dies-on-an-unknown-element") and tag not in _KNOWN:
                raise Died(tag)

    def _connect(self, link: Link, one: Element) -> None:
        said = one.find("player")
        who = number(said)
        named = said.find("name") if said is not None else None
        name = words(named)[:LONGEST_NAME] if named is not None else ""
        is_taken = who in self._waiting and self._waiting[who][0] is not link
        if is_taken and not self.has("gives-ids-twice"):
            self.give_up(link, f"{who} is here already")
            return
        self._waiting[who] = link, name
        if len(self._waiting) < SEATS:
            return
        if len(self._groups) >= MOST_GROUPS:
            self.give_up(link, "overload")
            return
        self._last_group += 1
        chosen, self._waiting = self._waiting, {}
        names = {number: name for number, (_, name) in chosen.items()}
        self._groups[self._last_group] = Group(self, self._last_group, names)
        for member, (its, _) in chosen.items():
            others = "".join(player(other, names[other]) for other in names if other != member)
            content = GAME, others, element("url", self.setup.url or DEFAULT_URL)
            self.say(its, element("connect", *content, status="complete", id=self._last_group))
        self.breathe()

    def _join(self, link: Link, one: Element, status: str) -> None:
        group = self._groups.get(number(one))
        who = number(one.find("player"))
        if self.has("takes-anybody-into-a-group") and group is not None:
            group.names.setdefault(who, "")
        if group is None or who not in group.names or who in group.links:
            self.give_up(link, "no such group, or not yours")
            return
        if status == "reject":
            self._groups.pop(group.key)
            group.dissolve("somebody does not want to play")
            return
        self._at[link] = group
        group.accept(who, link)


_KNOWN = ("connect", "newgroup", "newgame", "licite", "playcard", "gametype", "flek", "pause")
