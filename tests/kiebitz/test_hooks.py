"""`-s hooks.py`: a hook in a process of its own, what it gives back, and all that it may do wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from altering_relay import Line, relaying
from command import ROOT
from conversation_files import Block, blocks, check
from hook_driver import Hooked, hooked
from processes_and_rows import PATIENCE_S, child_of, until
from snapshots import DATA, as_bytes, as_text
from strength import a_few

from kiebitz.hooks import Message, Stream, Table
from kiebitz.services.alteration import hook_process
from kiebitz.services.alteration import log_throttle as hook_words
from kiebitz.services.alteration.hook_file import HookError
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.hook_protocol import Outcome

DOCUMENT = (ROOT / "docs" / "hooks.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
ROLLED = b"ROLLED;6,5;t"
LOST = b"PLAYER LOST;bob;MIA"
STOPPED = "; the hook is stopped; from now on messages are forwarded unchanged"

BLOCKS = [*blocks(DATA / "hooks.txt").values()]
QUICK = {"stopped: hangs", "refused: none of them", "refused: raises"}


def answers(hook: Hooked, frames: list[str]) -> Iterator[str]:
    """Yield what is forwarded for messages that wait together, such as "< ROLLED;6,5;t"."""
    tickets = []
    for frame in frames:
        number, sign, text = re.fullmatch(r"(\d? ?)([<>]) (.*)", frame).groups()  # type: ignore[union-attr]
        tickets.append(hook.asked(as_bytes(text), "c2s" if sign == ">" else "s2c", int(number or 1)))
    hook.until(lambda: all(ticket is None or ticket in hook.answers for ticket in tickets))
    for ticket in tickets:
        if ticket is None or (outcomes := hook.answers[ticket]) is None:
            yield "    forwarded without the hook"
        else:
            yield from (outcome_text(one) for one in outcomes) if outcomes else ["    nothing"]
    assert hook.order == sorted(hook.order)


def outcome_text(one: Outcome) -> str:
    delay = f", after {one.delay_ns // 1_000_000} ms" if one.delay_ns else ""
    same = ", as it was" if one.is_same else ""
    return f"    {'>' if one.direction == 'c2s' else '<'} {as_text(one.data)}{delay}{same}"


def played(block: Block, folder: Path) -> Iterator[str]:
    """Yield the steps of a block, with what is forwarded and what is reported."""
    steps = [line for line in block.steps if not line.startswith(("|", "example "))]
    yield from (line for line in block.steps if line not in steps)
    source = [as_bytes(line[2:]) for line in block.steps if line.startswith("|")]
    source += [EXAMPLES[int(line[8:]) - 1].encode() for line in block.steps if line.startswith("example ")]
    hook = None
    try:
        with hooked(
            folder,
            b"\n".join([*source, b""]) if source else None,
            is_forced=block.title.startswith("by force"),
        ) as hook:
            for step in steps:
                yield step
                kind, _, rest = step.partition(" ")
                if kind == "forwarded":
                    hook.passes(as_bytes(rest[2:]), "c2s" if rest[0] == ">" else "s2c")
                elif kind == "closed":
                    hook.process.closed(int(rest))
                elif kind == "opened":
                    hook.process.opened(int(rest), "udp", "127.0.0.1:40002", "127.0.0.1:9000")
                else:
                    frames = re.split(" (?=[<>] )", rest) if kind == "together" else [step]
                    yield from answers(hook, frames)
    except HookError as refused:
        yield f"    {refused}" if refused.is_usage else f"    no usage error: {refused}"
    for told in hook.told if hook else ():
        assert "\n" not in told
        assert len(told) < 600 or block.title == "printed lines are reported"
        yield (
            f"    {as_text(told.encode())}"
            if "somehow" not in block.title
            else f"    …{told[-len(STOPPED) :]}"
        )


@pytest.mark.full
@pytest.mark.parametrize(
    "block", a_few(BLOCKS, lambda block: block.title in QUICK, lambda block: block.title)
)
def test_forwarded_messages_and_reports(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not block.title.startswith("repeated"):
        monkeypatch.setattr(hook_words, "PERIOD_S", 0.0 if "refused results" in block.title else 5.0)
    if not block.title.endswith("grows"):
        monkeypatch.setattr(hook_process, "MAX_CALL_S", 0.4)
    if block.title.startswith("not run"):
        # Reported before anything runs.
        monkeypatch.setattr(hook_process, "start_child", None)
    made = "\n".join(played(block, tmp_path)).replace(str(tmp_path / "hooks.py"), "FILE")
    check(block, re.sub(r"\b1700\d+\.\d+\b", "TIME", made))


@pytest.mark.full
def test_two_hooks_in_place_of_one_are_stopped(tmp_path: Path) -> None:
    source = "import os\ndef message(message, table):\n    os.fork()\n    return message\n"
    with hooked(tmp_path, source) as hook:
        tickets = [hook.asked(ROLLED) for _ in range(4)]
        hook.until(lambda: len(hook.answers) == len(tickets))
        hook.until(lambda: bool(hook.told))
        assert hook.asked(ROLLED) is None
    assert hook.told == [f"{tmp_path / 'hooks.py'}: its process sent an invalid record{STOPPED}"]


SLOW = """
import time

def message(message, table):
    time.sleep(0.15)
    return message
"""


@pytest.mark.full
def test_a_slow_hook_is_reported_but_not_each_time(tmp_path: Path) -> None:
    with hooked(tmp_path, SLOW) as hook:
        for _ in range(3):
            assert hook.says(ROLLED) == [("s2c", ROLLED, 0, True)]
    first, second = hook.told
    assert re.search(r"hooks\.py: message took \d+ ms for ROLLED on stream 1$", first), first
    assert re.search(r"took \d+ ms for ROLLED on stream 1 \(and 1 more like it\)$", second), second


WAITING = """
import time

def message(message, table):
    if message.name == "ROLLED":
        print(sorted(table.state.get("players", {})))
        time.sleep(0.3)
    return message
"""


@pytest.mark.full
def test_its_queue_is_bounded(tmp_path: Path) -> None:
    with hooked(tmp_path, WAITING) as hook:
        hook.passes(b"REGISTER;ada", "c2s")
        hook.passes(b"REGISTERED")
        ticket = hook.asked(ROLLED)
        assert ticket is not None
        long = b"PLAYER ROLLS;" + b"x" * 60_000
        for _ in range(100):
            hook.passes(long)
        for _ in range(3):
            assert hook.asked(b"?" * 100_000) is None
        assert len(hook.process._to_send) <= hook_process.MAX_QUEUED_BYTES
        hook.until_answered(ticket)
        # It catches up, and data that it missed is a gap: the rest can be read.
        hook.until(lambda: not hook.process._to_send)
        hook.passes(b"REGISTER;bob", "c2s")
        hook.passes(b"REGISTERED")
        assert hook.says(ROLLED) == [("s2c", ROLLED, 0, True)]
    path = tmp_path / "hooks.py"
    too_slow = f"{path} is too slow, 4 MiB wait for it: a message on stream 1 is forwarded unchanged"
    assert [told for told in hook.told if "took" not in told] == [
        too_slow,
        f"{path} says: ['ada']",
        f"{path} says: ['ada', 'bob']",
        f"{too_slow} (and 1 more like it)",
    ]


@pytest.mark.full
def test_streams_that_come_and_go_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_process, "MAX_QUEUED_BYTES", 1 << 18)
    with hooked(tmp_path, "import time\ndef connected(stream): time.sleep(0.2)\n") as hook:
        ticket = hook.asked(ROLLED)
        for number in range(2, 20_002):
            hook.process.opened(number, "udp", "127.0.0.1:40002", "127.0.0.1:9000")
            hook.process.closed(number)
        hook.until(lambda: any("number of streams" in told for told in hook.told))
        assert hook.answers == {ticket: None}
    assert hook.told[-1] == f"{tmp_path / 'hooks.py'} is too slow for the number of streams{STOPPED}"


@pytest.mark.full
@pytest.mark.parametrize(("missing", "known"), [(0, "boran"), (20, "nobody")])
def test_bytes_hidden_from_a_hook_are_a_gap(missing: int, known: str, tmp_path: Path) -> None:
    source = "def message(message, table):\n    print(*table.state.get('players') or ['nobody'])\n"
    with hooked(tmp_path, f"{source}    return message\n") as hook:
        hook.process.opened(2, "tcp", "127.0.0.1:40002", "127.0.0.1:9001")
        hook.passes(b"LOGI boran\r\n", "c2s", 2)
        hook.passes(b"+LOG", "s2c", 2)
        hook.misses(missing, "s2c", 2)
        hook.passes(b"I boran\r\n", "s2c", 2)
        hook.asked(b"PING\r\n", "s2c", 2, "okey")
    assert hook.told == [f"{tmp_path / 'hooks.py'} says: {known}"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "large"])
def test_special_files_are_rejected(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "hooks.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(HookError):
        HookProcess(str(path), tell=print).start()


NEIGHBOURLY = """
import atexit
import random
from dataclasses import dataclass
from pathlib import Path

@dataclass
class Count:
    n: "int" = 0

log = open(Path(__file__).parent / "log", "w")
count = Count()
atexit.register(lambda: log.write("the end\\n"))

def message(message, table):
    count.n += 1
    return message

def closed(stream):
    log.write(f"{random.__file__ == __file__} {count.n}\\n")
"""


@pytest.mark.full
def test_it_ends_as_programs_do_and_runs_no_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise AssertionError('run')")
    monkeypatch.chdir(tmp_path)
    with hooked(tmp_path, NEIGHBOURLY) as hook:
        assert hook.says(ROLLED) == [("s2c", ROLLED, 0, True)]
        hook.process.closed(1)
    assert (tmp_path / "log").read_text() == "False 1\nthe end\n"
    assert hook.told == []


ENDLESS = ["import re; re.match('(a+)+b', 'a' * 60)", "import time; time.sleep(1000)", "pass"]

PARENT = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from hook_driver import hooked

if __name__ == "__main__":
    with hooked(Path({folder!r}), {source!r}) as hook:
        hook.asked(b"ROLLED;6,5;t")
        print("asked", flush=True)
        sys.stdin.read()
"""


@pytest.mark.full
@pytest.mark.parametrize("does", a_few(ENDLESS, ENDLESS[:1]))
def test_it_ends_with_its_parent_however_that_ends(does: str, tmp_path: Path) -> None:
    source = f"def message(message, table):\n    {does}\n    return message\n"
    script = tmp_path / "parent.py"
    script.write_text(
        PARENT.format(tests=str(ROOT / "tests" / "support"), folder=str(tmp_path), source=source)
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    hook = None
    try:
        assert parent.stdout.readline() == b"asked\n"
        hook = child_of(parent.pid)
        # It has begun by then.
        time.sleep(0.1)
        parent.send_signal(signal.SIGKILL)
        parent.wait(PATIENCE_S)
        until(lambda: _is_gone(hook), "the hook ends", 5.0)
    finally:
        parent.kill()
        parent.wait()
        parent.stdin.close()
        parent.stdout.close()
        if hook is not None and not _is_gone(hook):
            os.kill(hook, signal.SIGKILL)


def _is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_relay_asks_it(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(EXAMPLES[-1])
    line = Line("maexchen")
    with relaying([line], tmp_path / "game.db", "-s", str(tmp_path / "hooks.py")):
        line.connect()
        line.say("c2s", b"REGISTER;ada")
        line.hear("c2s", [b"REGISTER;ada"])
        for token, dice in (("t", "6,5"), ("u", "6,5"), ("v", "6,6")):
            line.say("s2c", f"ROLLED;6,5;{token}".encode())
            line.hear("s2c", [b""])
            assert line.got["s2c"][-1] == f"ROLLED;{dice};{token}".encode()


@pytest.mark.full
def test_held_messages_pass_when_the_view_is_closed(tmp_path: Path) -> None:
    with hooked(tmp_path, SLOW) as hook:
        tickets = [hook.asked(ROLLED) for _ in range(3)]
        hook.process.leave()
        assert hook.answers == dict.fromkeys(tickets)
        assert hook.asked(ROLLED) is None


def test_each_example_of_the_page_is_in_the_text() -> None:
    used = [step for block in BLOCKS for step in block.steps if step.startswith("example ")]
    assert used == [f"example {number}" for number, _ in enumerate(EXAMPLES, 1)]


@pytest.mark.full
def test_a_hook_has_types(tmp_path: Path) -> None:
    typed = [example for example in EXAMPLES if "import Message" in example]
    assert len(typed) == len(EXAMPLES) - 1
    slip = typed[-1].replace('but(dice="6,6")', "butt()").replace("-> Message:", "-> int:")
    for number, source in enumerate([*typed, slip]):
        (tmp_path / f"hook_{number}.py").write_text(source)
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "mypy", f"hook_{number}.py"]
        environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert (done.returncode == 0) == (source is not slip), done.stdout
    assert '"Message" has no attribute "butt"' in done.stdout


def test_the_page_names_all_that_there_is() -> None:
    for record in (Message, Stream):
        missing = {name for name in record.__struct_fields__ if f"`{name}`" not in DOCUMENT}
        assert missing == set()
    for kind, owner in ((Message, ""), (Table, "table.")):
        methods = {name for name in vars(kind) if not name.startswith("_")} - {*Message.__struct_fields__}
        assert {name for name in methods if f"`{owner}{name}" not in DOCUMENT} == set()
