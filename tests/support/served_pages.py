"""`kiebitz serve` as browsers see it: the real command, real sockets, and a reader of its event streams."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from command import spawn
from processes_and_rows import PATIENCE_S, until

QUICK_S = 10.0
"""Time limit in seconds for an answer."""

Query = str | int | None


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """The error message."""
        error: str = self.json["error"]
        return error


def fragment(place: Mapping[str, Any]) -> str:
    """Return the fragment of an address."""
    return f"#{urlencode({name.rstrip('_'): value for name, value in place.items()})}"


def target(path: str, query: Mapping[str, Query]) -> str:
    """Return a path with parameters; `as_` becomes `as`, and None omits one."""
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    asked = urlencode(given, errors="surrogatepass")
    return f"/{path}{'?' if asked and '?' not in path else '&' if asked else ''}{asked}"


class Serving:
    """A server that runs; `address` is as it was printed, key and all."""

    def __init__(self, *arguments: str, command: str = "serve", **options: Any) -> None:
        self.process = spawn(command, *arguments, start_new_session=True, **options)
        self._said = [self._reading(self.process.stdout), self._reading(self.process.stderr)]

    def _reading(self, pipe: IO[bytes] | None) -> tuple[list[str], threading.Thread]:
        lines: list[str] = []
        assert pipe is not None

        def read() -> None:
            with pipe:
                for line in pipe:
                    lines.append(line.decode())

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return lines, thread

    @property
    def out(self) -> str:
        return "".join(self._said[0][0])

    @property
    def err(self) -> str:
        return "".join(self._said[1][0])

    def ready(self) -> Self:
        """Wait for the server's address."""
        until(lambda: "Ctrl-C ends it" in self.out + self.err or self.is_over, "it says where it is")
        assert not self.is_over, self.err
        return self

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    @property
    def address(self) -> str:
        """Return the first link, which shows everything."""
        found = re.search(r"^http://\S+", self.out + self.err, re.MULTILINE)
        assert found is not None, self.out + self.err
        return found.group()

    @property
    def host(self) -> str:
        return urlsplit(self.address).hostname or ""

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    def at(self, **place: Any) -> str:
        """Return the address of a moment; `as_` is `as`."""
        return self.address + fragment(place)

    @property
    def key(self) -> str | None:
        """Return the key of the first link."""
        return key_of(self.address)

    def link(self, player: str) -> str:
        """Return a player's link, once it is there."""
        until(lambda: player in self.links(), f"there is a link for {player}")
        return f"http://{self.host}:{self.port}/?key={self.links()[player]}"

    def links(self) -> dict[str, str]:
        """Return the keys of the players' links, by name."""
        return {
            name: key_of(link) or ""
            for name, link in re.findall(r"^  (.*): (http://\S+)$", self.out, re.MULTILINE)
        }

    def ask(self, method: str, address: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Send a request with these headers; of an event stream only the head is read."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=QUICK_S)
        try:
            connection.putrequest(method, address, "Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if method == "POST":
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            is_stream = found.get("content-type", "").startswith("text/event-stream")
            return Answer(response.status, found, b"" if is_stream else response.read())
        finally:
            connection.close()

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", **query: Query
    ) -> Answer:
        """Ask for a path without its slash; `as_` is the parameter `as`."""
        return self.ask(method, target(path, query), headers or {})

    def well(self, path: str, **query: Query) -> Any:
        """Return the JSON of a successful answer."""
        answer = self.get(path, None, "GET", **query)
        assert answer.status == 200, answer
        return answer.json

    def raw(self, request: bytes) -> Answer:
        """Send these bytes and nothing else."""
        with socket.create_connection((self.host, self.port), QUICK_S) as sock:
            sock.sendall(request)
            response = http.client.HTTPResponse(sock)
            response.begin()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def live(
        self, headers: Mapping[str, str] | None = None, *, path: str = "api/live", **query: Query
    ) -> Live:
        """Listen to what is new."""
        return Live(self, target(path, query), headers or {})

    def end(self, how: signal.Signals = signal.SIGINT, patience_s: float = QUICK_S) -> int:
        """Stop the server and return the exit status."""
        if not self.is_over:
            self.process.send_signal(how)
        try:
            return self.process.wait(patience_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it by force, if it still runs."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for _, thread in self._said:
            thread.join(QUICK_S)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found.group(1)) * 1024

    def sockets(self) -> int:
        """Return the number of open files and sockets."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def key_of(link: str) -> str | None:
    """Return a link's key."""
    return parse_qs(urlsplit(link).query).get("key", [None])[0]


@contextmanager
def serving(*arguments: str, port: int = 0, **options: Any) -> Iterator[Serving]:
    """Run a server, by default at a port of its own; after the block, check that it exits successfully."""
    server = Serving(*arguments, "--port", str(port), **options)
    try:
        yield server.ready()
        status = server.end()
    finally:
        server.kill()
    assert status == 130, server.err
    assert "Traceback" not in server.err
    assert "error of Kiebitz" not in server.err, server.err


# Server-sent events.


class ServerSentEvent(NamedTuple):
    """An event of a stream; `kind` is "message" where it does not say."""

    kind: str
    id: str | None
    data: Any


class Live:
    """An event stream, which is read only when events are requested."""

    def __init__(self, server: Serving, path: str, headers: Mapping[str, str]) -> None:
        self._sock = socket.socket(socket.AF_INET6 if ":" in server.host else socket.AF_INET)
        self._sock.settimeout(QUICK_S)
        self._sock.connect((server.host, server.port))
        host = f"[{server.host}]" if ":" in server.host else server.host
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{server.port}", "Accept: text/event-stream"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        self._bytes = b""
        self._text = b""
        self.is_over = False
        self.status, self.headers = self._head()
        self.last_id: str | None = None
        self._take(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def _head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self._bytes:
            piece = self._sock.recv(65_536)
            assert piece, self._bytes
            self._bytes += piece
        head, _, self._bytes = self._bytes.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in rest)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    def next(self, patience_s: float = QUICK_S) -> ServerSentEvent | None:
        """Return the next event; None where none has come by then, or the stream is over."""
        end = time.monotonic() + patience_s
        while True:
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                told = self._event(block.decode())
                if told is not None:
                    return told
            if self.is_over or not self._read(end - time.monotonic()):
                return None

    def _event(self, block: str) -> ServerSentEvent | None:
        kind, told_id, data = "message", None, []
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                told_id = self.last_id = value
            elif name == "data":
                data.append(value)
            else:
                assert not name, line
        return ServerSentEvent(kind, told_id, json.loads("\n".join(data))) if data else None

    def _read(self, patience_s: float) -> bool:
        """Read some more; whether there was any."""
        if patience_s <= 0:
            return False
        self._sock.settimeout(patience_s)
        try:
            piece = self._sock.recv(1 << 20)
        except TimeoutError:
            return False
        except ConnectionError:
            piece = b""
        self.is_over = not piece
        self._take(piece)
        return True

    def _take(self, piece: bytes) -> None:
        self._bytes += piece
        while (chunk := re.match(rb"([0-9a-fA-F]+)\r\n", self._bytes)) is not None:
            length, begin = int(chunk.group(1), 16), chunk.end()
            if len(self._bytes) < begin + length + 2:
                break
            self._text += self._bytes[begin : begin + length]
            self._bytes = self._bytes[begin + length + 2 :]
            if not length:
                self.is_over = True

    def body(self) -> bytes:
        """Return the body of an answer that is no stream."""
        while len(self._bytes) < int(self.headers.get("content-length", 0)):
            piece = self._sock.recv(65_536)
            assert piece, self._bytes
            self._bytes += piece
        return self._bytes

    def events(self, count: int, patience_s: float = QUICK_S) -> list[dict[str, Any]]:
        """Return this many table events, or those received by the timeout."""
        found: list[dict[str, Any]] = []
        end = time.monotonic() + patience_s
        while len(found) < count:
            told = self.next(end - time.monotonic())
            if told is None:
                break
            if told.kind == "message":
                found += told.data["events"]
        return found

    def of_kind(self, kind: str, patience_s: float = QUICK_S) -> Any:
        """Return the data of the next event of this kind; those of others are passed over."""
        end = time.monotonic() + patience_s
        while (told := self.next(end - time.monotonic())) is not None:
            if told.kind == kind:
                return told.data
        raise AssertionError(f"no {kind} came within {patience_s} s")


def own_address() -> str:
    """Return an address of this machine by which others get here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but the loopback's")
        address: str = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no address but the loopback's")
    return address


JSON = {"Content-Type": "application/json", "Kiebitz-Hands": "1"}


def post(
    server: Serving, body: Any, headers: dict[str, str] | None = None, path: str = "api/held", **query: Any
) -> Answer:
    """Send a deed, by default as the page does."""
    data = json.dumps(body).encode()
    return server.ask("POST", target(path, query), JSON if headers is None else headers, data)
