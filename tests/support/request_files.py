"""Requests to `kiebitz serve` as texts (tests/data/requests.txt), each with its answer.

A step is `METHOD /PATH [BODY] [Header=value ...]`; words are quoted as in a shell, `{port}` is the server's
port. The method ACT is a POST with the headers that the page sends. The answer is indented: its status, then
its body, or of a long one and of an event stream the type. A deed of the test, such as `hold` for a message
that a relay holds, is a step, too. KIEBITZ_SNAPSHOTS=write rewrites the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from conversation_files import Block, check
from served_pages import JSON, Answer, Serving
from snapshots import as_text
from walks import step_of

_HEADER = re.compile(r"([A-Z][\w-]+)=(.*)", re.DOTALL)
_LONGEST = 400
"""Length in characters of the longest body that is shown."""

HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


def compare(block: Block, server: Serving, deeds: Mapping[str, Callable[..., Any]] | None = None) -> None:
    """Send the requests of a block, and compare the answers."""
    check(block, "\n".join(_lines(block, server, deeds or {})))


def _lines(block: Block, server: Serving, deeds: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    for line in block.steps:
        yield line
        step = step_of(line)
        if step.deed(deeds) is not None:
            continue
        method, path, *rest = (word.replace("{port}", str(server.port)) for word in step.words)
        headers = JSON if method == "ACT" else {}
        headers = headers | {found[1]: found[2] for word in rest if (found := _HEADER.fullmatch(word))}
        (body,) = [word for word in rest if not _HEADER.fullmatch(word)] or [""]
        address = quote(path, safe="%/:?#[]@!$&'()*+,;=~")
        data = body.encode("utf-8", "surrogateescape")
        answer = server.ask(method.replace("ACT", "POST"), address, headers, data)
        assert_safe(answer, server.host == "127.0.0.1")
        yield f"    {answer.status} {_shown(answer)}".rstrip()


def _shown(answer: Answer) -> str:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    # Its reason depends on the version of msgspec.
    text = re.sub('(the body is not a valid action: )[^"]*', r"\1…", as_text(answer.body.rstrip(b"\n")))
    shown = text if text and len(text) <= _LONGEST else kind
    # Starlette's order varies.
    allowed = ", ".join(sorted(answer.headers.get("allow", "").split(", ")))
    return f"{shown} allow: {allowed}" if allowed else shown


def assert_safe(answer: Answer, is_near: bool = True) -> None:
    """Check the headers of an answer that say what a page may do."""
    assert HEADERS.items() <= answer.headers.items()
    # Elsewhere browsers complain of it, as the page is not encrypted.
    assert answer.headers.get("cross-origin-opener-policy") == ("same-origin" if is_near else None)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert not answer.headers.keys() & {"access-control-allow-origin", "server"}
