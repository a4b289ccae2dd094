"""Who may see what: keys in addresses, and which requests are no reader's own.

On loopback no key is needed, as only programs of this machine get there; but a page from elsewhere that is
open in a browser here must not read along. So requests for another host's name (DNS rebinding) and requests
that another site makes are refused. On any other address nothing is answered without a key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kiebitz.cli.web.json_response import JsonAnswer
from kiebitz.cli.web.records import Refusal

COOKIE = "kiebitz-key"
"""The page's own files are asked for without its key: the browser remembers it for them."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}

_OPENER = ("cross-origin-opener-policy", "same-origin")
"""On another address browsers ignore it, and complain: they trust no page that was not encrypted."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

_NO_KEY = "this address needs its key: open the link that kiebitz serve has printed"
_FOREIGN_HOST = "this server is not called that: open the link that kiebitz serve has printed"
_CROSS_SITE = "another site asks for this, and is not answered"


class Reach(msgspec.Struct, frozen=True):
    """What a request may see: everything, or only what one player could know.

    A player's link belongs to a connection: it shows the player on that `stream` of that `session`, by their
    numbers, whatever name it takes. The name at the time of printing is `player`.
    """

    player: str | None = None
    session: int = 0
    stream: int = 0


class Keys:
    """The keys of one run: of everybody's view, and of each player's. None is kept: they are worked out."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def everybody(self) -> str:
        """The key of who may see everything."""
        return self._sign(b"")

    def player(self, reach: Reach) -> str:
        """The key of who may see what one player could know."""
        assert reach.player is not None
        named = f"{reach.session} {reach.stream} {reach.player}".encode(errors="surrogatepass")
        return f"{self._sign(b'as ' + named)}.{urlsafe_b64encode(named).decode().rstrip('=')}"

    def reach(self, key: str) -> Reach | None:
        """What a key opens; None if it is none."""
        _, dot, named = key.partition(".")
        if not dot:
            return Reach() if _same(key, self.everybody()) else None
        try:
            said = urlsafe_b64decode(named + "=" * (-len(named) % 4)).decode(errors="surrogatepass")
            session, stream, name = said.split(" ", 2)
            reach = Reach(name, int(session), int(stream))
        except ValueError:
            return None
        return reach if _same(key, self.player(reach)) else None

    def _sign(self, what: bytes) -> str:
        digest = hmac.new(self._secret, what, hashlib.sha256).digest()
        return urlsafe_b64encode(digest[:18]).decode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


class Access:
    """Lets requests through to an application, which finds their `Reach` in the scope as `reach`.

    `hosts` are the names under which it may be asked for besides addresses; `is_open` where no key is needed.
    """

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Collection[str], is_open: bool) -> None:
        self._app = app
        self._keys = keys
        self._hosts = {*_LOOPBACK, *(host.lower() for host in hosts)}
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = parse_qs(scope["query_string"].decode("latin-1")).get("key", [None])[0]
        shown = key if key is not None else _cookie(headers)
        reach = self._keys.reach(shown) if shown is not None else None
        if reach is None and self._is_open and key is None:
            reach = Reach()
        why = self._refused(scope, headers) or (_NO_KEY if reach is None else None)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                if self._is_open:
                    answer.setdefault(*_OPENER)
                if why is None and key is not None and scope["path"] == "/":
                    answer.append("set-cookie", f"{COOKIE}={key}; HttpOnly; SameSite=Strict; Path=/")
                message["headers"] = answer.raw
            await send(message)

        if why is not None:
            is_data = scope["path"].startswith("/api/")
            refusal = JsonAnswer(Refusal(why), 403) if is_data else PlainTextResponse(f"{why}\n", 403)
            # A client without a key does not keep its connection.
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, sent)
            return
        scope["reach"] = reach
        await self._app(scope, receive, sent)

    def _refused(self, scope: Scope, headers: Headers) -> str | None:
        """Why a request is not its reader's own, None if it is."""
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if not (name in self._hosts or (not self._is_open and _is_address(name))):
            return _FOREIGN_HOST
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scope['scheme']}://{host}":
            return _CROSS_SITE
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        # A link in a chat or a mail leads here, too.
        is_link = mode == "navigate" and scope["path"] == "/"
        return _CROSS_SITE if site in ("cross-site", "same-site") and not is_link else None


def _cookie(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
