"""Admission control: how much of the page's server each key and each address may use at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address, ip_address, ip_network

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kiebitz.cli.web.access import JsonResponse
from kiebitz.cli.web.records import Refusal
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.proxy.relay.endpoints import allow_open_files

LIVE_PATH = "/api/live"
LIVE_HOME_PATH = "/api/home/live"

MAX_STREAMS = 500
"""Maximum number of open event streams."""

MAX_REQUESTS = 600
"""Maximum number of other requests in progress: four for each of 100 browsers at one address."""

MAX_PENDING = 600
"""Maximum number of connections that have not sent a complete request yet."""

MAX_IDLE = 600
"""Maximum number of connections kept open between two requests: six for each of 100 browsers."""

MAX_ANSWER_BYTES = 128 << 20
"""Maximum size of all answers that are being sent, in bytes. A single larger answer is sent alone."""

_SHARE = 0.2
"""Share of each resource that is reserved for the full key, and the maximum share of one player's key."""

_OWN_FILES = 32
"""Open files of the server itself: the listener, the event loop, standard streams."""

_FILES_PER_SESSION = 24
"""Open files of a served session: database, WAL and shared memory of each reader."""

_PIECE_BYTES = 64 << 10
"""Maximum size of a piece of an answer. The next piece waits until the client has read most of this one."""

_RETRY_AFTER_S = 5

_IPV6_PREFIX_BITS = 64
"""Network that one IPv6 host may choose its addresses from."""


class BusyError(KiebitzError):
    """A request refused because a limit on concurrent use is reached."""

    def response(self) -> JsonResponse:
        """Return the answer. It closes the connection: requests sent ahead on it cost nothing."""
        headers = {"retry-after": str(_RETRY_AFTER_S), "connection": "close"}
        return JsonResponse(Refusal(str(self)), 503, headers)


class Limits(msgspec.Struct, frozen=True):
    """Maximum numbers of connections, by what the connection is used for."""

    streams: int = MAX_STREAMS
    requests: int = MAX_REQUESTS
    pending: int = MAX_PENDING
    idle: int = MAX_IDLE

    @property
    def connections(self) -> int:
        """Maximum number of connections."""
        return self.streams + self.requests + self.pending + self.idle


def affordable_limits(sessions: int) -> tuple[Limits, str | None]:
    """Raise the limit of open files as needed, and return the limits that it allows.

    The second value is a warning if the system allows fewer open files than the default limits need.
    """
    wanted = Limits()
    own = _OWN_FILES + sessions * _FILES_PER_SESSION
    allowed = allow_open_files(wanted.connections + own)
    scale = (allowed - own) / wanted.connections
    if scale >= 1:
        return wanted, None
    scaled = Limits(*(max(1, int(limit * scale)) for limit in msgspec.structs.astuple(wanted)))
    return scaled, (
        f"the system allows this process {allowed} open files: it serves at most {scaled.connections}"
        f" connections at once, {scaled.streams} of them live, instead of {wanted.connections} and"
        f" {wanted.streams}; raise the limit (ulimit -Hn)"
    )


def address_group(host: str) -> str:
    """Return the part of an address that a single client cannot change: IPv4 in full, IPv6 as its /64."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _IPV6_PREFIX_BITS), strict=False))


class Holder(msgspec.Struct, frozen=True):
    """Identity that a use is charged to: the player of the key (None for the full key), and the address."""

    player: str | None
    address: str


class Quota:
    """A limited resource of which no player's key and no single address can take everything.

    A fifth is reserved for the full key, and one player's key gets at most a fifth. An address gets at most
    four fifths. The full key and players' keys are counted apart there: a whole school may have one address.
    """

    def __init__(self, resource: str, total: int, unit: str = "") -> None:
        self._resource = resource
        self._unit = unit
        self._total = total
        self._per_player = max(1, int(total * _SHARE))
        self._shared = total - int(total * _SHARE)
        self._used: Counter[tuple[str, object]] = Counter()

    @contextmanager
    def hold(self, holder: Holder, amount: int = 1) -> Iterator[None]:
        """Use an amount inside a `with` block. Raises BusyError if a limit would be exceeded.

        An amount above a limit is granted if nothing else counts towards that limit.
        """
        limits = self._limits(holder)
        for (scope, counted), limit in limits.items():
            used = self._used[scope, counted]
            if used and used + amount > limit:
                raise BusyError(f"too many {self._resource}{scope} (limit {limit}{self._unit})")
        for share in limits:
            self._used[share] += amount
        try:
            yield
        finally:
            for share in limits:
                self._used[share] -= amount
                if not self._used[share]:
                    del self._used[share]

    def _limits(self, holder: Holder) -> dict[tuple[str, object], int]:
        """Return the limits that apply to a holder, by what the error message adds and what is counted."""
        is_player = holder.player is not None
        limits: dict[tuple[str, object], int] = {
            ("", None): self._total,
            (" from this address", (is_player, holder.address)): self._shared,
        }
        if is_player:
            limits[" by players' links", None] = self._shared
            limits[" by this player's link", holder.player] = self._per_player
        return limits


class Admission:
    """ASGI middleware behind `Access`: refuses requests beyond the quotas, and sends answers in pieces.

    A request counts until its answer is in the kernel's buffer. So a client that reads slowly holds its share
    until the connection is closed for lack of progress.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._streams = Quota("live connections", limits.streams)
        self._requests = Quota("requests at once", limits.requests)
        self._answer_bytes = Quota("large answers at once", MAX_ANSWER_BYTES, " bytes")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        holder = Holder(scope["grant"].owner, address_group(client[0]) if client else "")
        quota = self._streams if scope["path"] in (LIVE_PATH, LIVE_HOME_PATH) else self._requests
        is_refused = False

        async def refuse(error: BusyError) -> None:
            nonlocal is_refused
            is_refused = True
            await error.response()(scope, receive, send)

        with ExitStack() as held:

            async def send_pieces(message: Message) -> None:
                if is_refused:
                    return
                if message["type"] == "http.response.start":
                    length = int(Headers(raw=message["headers"]).get("content-length", 0))
                    if length > _PIECE_BYTES:
                        try:
                            held.enter_context(self._answer_bytes.hold(holder, length))
                        except BusyError as error:
                            await refuse(error)
                            return
                body = message.get("body", b"")
                while len(body) > _PIECE_BYTES:
                    await send({**message, "body": body[:_PIECE_BYTES], "more_body": True})
                    # Let other clients have their turn, and learn whether this one has gone.
                    await asyncio.sleep(0)
                    body = memoryview(body)[_PIECE_BYTES:]
                await send({**message, "body": bytes(body)} if "body" in message else message)

            try:
                held.enter_context(quota.hold(holder))
            except BusyError as error:
                await refuse(error)
            else:
                await self._app(scope, receive, send_pieces)
