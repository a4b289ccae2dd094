"""Access control: keys in links, the file that keeps them, and refusal of requests from other sites.

On loopback no key is needed, as only programs of this machine can connect. But a foreign page in a browser
on this machine must not read the session. So requests with a foreign host name (DNS rebinding) and
cross-site requests are refused. On any other address every request needs a key.

A file with the secret of the page's keys, so that links stay valid when the server is started again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kiebitz.cli.web.grants import SPECTATOR, Grant
from kiebitz.cli.web.records import Refusal
from kiebitz.services.output_files import make_folder
from kiebitz.storage.database.schema import StorageError

COOKIE = "kiebitz-key"
"""Remembers the key for the page's own files, whose links have none."""

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

_OPENER_POLICY = ("cross-origin-opener-policy", "same-origin")
"""Sent on loopback only: browsers ignore it on unencrypted connections, with a warning."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

SECRET_BYTES = 32

_NO_KEY = "a key is required: open the link printed by kiebitz serve"
_FOREIGN_HOST = "unknown host name: open the link printed by kiebitz serve"
_CROSS_SITE = "cross-site request refused"


class Keys:
    """The keys of the server's links, derived from a secret; by default, a random one of this run."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(SECRET_BYTES)

    def full_key(self) -> str:
        """Return the key that shows everything."""
        return self._sign(b"")

    def late_key(self) -> str:
        """Return the key that shows the public view, live sessions with the delay, if any."""
        return self._sign(b"late")

    def player(self, grant: Grant) -> str:
        """Return the key that shows one player's view."""
        assert grant.player is not None
        named = f"{grant.session} {grant.opened_ns} {grant.stream} {grant.player}".encode(
            errors="surrogatepass"
        )
        return f"{self._sign(b'as ' + named)}.{urlsafe_b64encode(named).decode().rstrip('=')}"

    def grant(self, key: str) -> Grant | None:
        """Return the permission of a key; None if the key is invalid."""
        _, dot, named = key.partition(".")
        if not dot:
            if _equal(key, self.late_key()):
                return SPECTATOR
            return Grant() if _equal(key, self.full_key()) else None
        try:
            said = urlsafe_b64decode(named + "=" * (-len(named) % 4)).decode(errors="surrogatepass")
            session, opened_ns, stream, name = said.split(" ", 3)
            grant = Grant(name, int(session), int(stream), opened_ns=int(opened_ns))
        except ValueError:
            return None
        return grant if _equal(key, self.player(grant)) else None

    def _sign(self, what: bytes) -> str:
        digest = hmac.new(self._secret, what, hashlib.sha256).digest()
        return urlsafe_b64encode(digest[:18]).decode()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


class Access:
    """ASGI middleware that refuses requests without permission.

    `scope["grant"]` has the permission of accepted requests. `hosts` are the accepted host names other than
    addresses; `is_open` is True if no key is needed; then `is_late` is True if requests without a key are
    spectators'. Such a server ignores cookies: otherwise, a browser that once opened the full link would show
    live games at once on spectators' page, too.
    """

    def __init__(
        self, app: ASGIApp, keys: Keys, hosts: Collection[str], is_open: bool, is_late: bool
    ) -> None:
        self._app = app
        self._keys = keys
        self._hosts = {*_LOOPBACK, *(host.lower() for host in hosts)}
        self._is_open = is_open
        self._without_key = SPECTATOR if is_late else Grant()
        self._has_cookies = not (is_open and is_late)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = parse_qs(scope["query_string"].decode("latin-1")).get("key", [None])[0]
        shown = _cookie(headers) if key is None and self._has_cookies else key
        grant = self._keys.grant(shown) if shown is not None else None
        if grant is None and self._is_open and key is None:
            grant = self._without_key
        why = self._refused(scope, headers) or (_NO_KEY if grant is None else None)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                if self._is_open:
                    answer.setdefault(*_OPENER_POLICY)
                if self._has_cookies and why is None and key is not None and scope["path"] == "/":
                    answer.append("set-cookie", f"{COOKIE}={key}; HttpOnly; SameSite=Strict; Path=/")
                message["headers"] = answer.raw
            await send(message)

        if why is not None:
            is_data = scope["path"].startswith("/api/")
            refusal = JsonResponse(Refusal(why), 403) if is_data else PlainTextResponse(f"{why}\n", 403)
            # Clients without a key do not keep a connection.
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, sent)
            return
        scope["grant"] = grant
        await self._app(scope, receive, sent)

    def _refused(self, scope: Scope, headers: Headers) -> str | None:
        """Return why a request is refused, None if it is not."""
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if not (name in self._hosts or (not self._is_open and _is_address(name))):
            return _FOREIGN_HOST
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scope['scheme']}://{host}":
            return _CROSS_SITE
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        # Links to the page from other sites are allowed.
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


class JsonResponse(Response):
    """A record as JSON."""

    media_type = "application/json"

    def __init__(self, answer: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(msgspec.json.encode(answer), status, headers)


def kept_keys(path: str) -> Keys:
    """Return the keys of a file, which is created if it is missing. Raises StorageError.

    Others must not know them: a file that belongs to another user, or that others may read, is refused.
    """
    folder = os.path.dirname(path)
    if folder:
        make_folder(folder)
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600)
        except FileExistsError:
            with open(os.open(path, os.O_RDONLY | flags), "rb") as file:
                return _read(path, file.fileno(), file.read(2 * SECRET_BYTES + 2))
        with open(descriptor, "wb") as file:
            secret = secrets.token_bytes(SECRET_BYTES)
            file.write(secret.hex().encode() + b"\n")
            return Keys(secret)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: name another file for the keys") from error


def _read(path: str, descriptor: int, text: bytes) -> Keys:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StorageError(f"{path}: others may know these keys: remove the file, and new ones are made")
    try:
        secret = bytes.fromhex(text.decode())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise StorageError(f"{path}: this file has no keys: name another one, or remove it")
    return Keys(secret)
