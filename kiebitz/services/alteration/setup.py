"""Setup of interception in a relay: the engine, its hooks, and the control socket for held messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kiebitz.proxy.forwarder import Companion
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.alteration.control_server import ControlServer
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.manual_decisions import ManualDecisions
from kiebitz.services.alteration.rules import Hold, Rule, Script
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.standard_streams import warn


class Alteration(NamedTuple):
    """An engine, and the companions that run with the relay."""

    engine: Engine
    beside: Sequence[Companion]


@contextmanager
def alteration(
    rules: Sequence[Rule],
    *,
    decode_as: tuple[str, ...],
    on_notice: Notice,
    is_forced: bool,
    drops_held: bool,
    folder: Path,
    session: Callable[[], str],
) -> Iterator[Alteration]:
    """Set up interception; `folder` is that of the recording's journal, `session` returns the session's name.

    Raises HookError and ControlError.
    """
    with ExitStack() as stack:
        hooks: dict[str, HookProcess] = {}
        for rule in rules:
            if isinstance(rule, Script) and rule.path not in hooks:
                hook = HookProcess(
                    rule.path,
                    tell=warn,
                    is_forced=is_forced,
                    decode_as=decode_as,
                )
                stack.callback(hook.discard)
                hook.start()
                hooks[rule.path] = hook
        engine = Engine(
            rules,
            started_ns=now_ns(),
            on_notice=on_notice,
            decode_as=parse_decode_as(decode_as),
            hooks=hooks,
            drops_held=drops_held,
        )
        beside: list[Companion] = [*hooks.values()]
        if any(isinstance(rule, Hold) for rule in rules):
            hands = ControlServer(ManualDecisions(engine), folder, session)
            stack.callback(hands.close)
            beside.append(hands)
        yield Alteration(engine, beside)
