"""`-s hooks.py`: a hook in a process of its own, what it gives back, and all that it may do wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from command import ROOT, kiebitz
from hook_driver import hooked
from processes_and_rows import KIEBITZ, PATIENCE_S, child_of, free_port, running, until
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

GIVING = """
from kiebitz.hooks import Message
kept = []

def message(message: Message, table):
    name = message.fields.get("name")
    if message.name == "REGISTERED":
        return message
    if message.name == "ROLLED":
        return message.but(dice="2,1")
    if message.name == "ANNOUNCE":
        message.fields["dice"] = "4,3"
        return [message, message]
    if message.name == "PLAYER LOST":
        return None
    if message.name == "PLAYER ROLLS":
        return (one for one in [message.also("PLAYER WANTS TO SEE", name=name), message.later(0.25)])
    if message.name == "YOUR TURN":
        return message.reply("ROLL", token=message.fields["token"]), message
    if message.name == "SCORE":
        return message.but(scores={"ada": 7})
    if message.name == "PLAYER WANTS TO SEE":
        kept.append(message)
        return []
    if message.name == "ACTUAL DICE":
        return [message, *kept]
    return message
"""

GIVEN = [
    # What comes, and what is passed on: which way, what, after how many ms, and if it is the same.
    (b"REGISTERED", "s2c", [("s2c", b"REGISTERED", 0, True)]),
    (ROLLED, "s2c", [("s2c", b"ROLLED;2,1;t", 0, False)]),
    (b"ANNOUNCE;6,1;t", "c2s", [("c2s", b"ANNOUNCE;4,3;t", 0, False)] * 2),
    (LOST, "s2c", []),
    (
        b"PLAYER ROLLS;bob",
        "s2c",
        [("s2c", b"PLAYER WANTS TO SEE;bob", 0, False), ("s2c", b"PLAYER ROLLS;bob", 250, True)],
    ),
    (b"YOUR TURN;t", "s2c", [("c2s", b"ROLL;t", 0, False), ("s2c", b"YOUR TURN;t", 0, True)]),
    (b"SCORE;ada:3", "s2c", [("s2c", b"SCORE;ada:7", 0, False)]),
    (b"PLAYER WANTS TO SEE;bob", "s2c", []),
    (
        b"ACTUAL DICE;3,3",
        "s2c",
        [("s2c", b"ACTUAL DICE;3,3", 0, True), ("s2c", b"PLAYER WANTS TO SEE;bob", 0, False)],
    ),
    (b"\x00\xff?", "c2s", [("c2s", b"\x00\xff?", 0, True)]),
]


@pytest.mark.full
def test_returned_messages_are_forwarded(tmp_path: Path) -> None:
    with hooked(tmp_path, GIVING) as hook:
        assert hook.process.rule == f"-s {tmp_path / 'hooks.py'}"
        for frame, direction, expected in GIVEN:
            assert hook.says(frame, direction) == expected, frame  # type: ignore[arg-type]  # of a tuple's str
        # Each is answered in its turn, however many are on their way.
        tickets = [hook.asked(ROLLED) for _ in range(100)]
        hook.until(lambda: tickets[-1] in hook.answers)
        assert hook.order[-100:] == tickets
        assert hook.told == []


TELLING = """
def connected(stream):
    print("connected", stream.id, stream.transport, stream.client, stream.server, stream.player)

def message(message, table):
    if message.name == "ROLLED":
        before = table.state
        before["players"] = "altered"
        print(message.stream.player, sorted(before), table.protocol, table.server, message.time)
    elif message.name == "REGISTER":
        print("before", message.stream.player, table.state)
    return message

def closed(stream):
    print("closed", stream.id, stream.player)
"""


@pytest.mark.full
def test_arguments_of_a_hook(tmp_path: Path) -> None:
    with hooked(tmp_path, TELLING) as hook:
        for frame in (b"REGISTER;ada",):
            assert hook.says(frame, "c2s") == [("c2s", frame, 0, True)]
            hook.passes(frame, "c2s")
        hook.passes(b"REGISTERED")
        assert hook.says(ROLLED) is not None
        hook.process.closed(1)
        hook.until(lambda: len(hook.told) == 4)
    said = [line.partition(" says: ")[2] for line in hook.told]
    assert said[0] == "connected 1 udp 127.0.0.1:40001 127.0.0.1:9000 None"
    assert said[1] == "before ada {}"
    assert re.fullmatch(r"ada \['players'.*\] maexchen 127\.0\.0\.1:9000 17000000\d\d\.\d+", said[2]), said[2]
    assert said[3] == "closed 1 ada"


REFUSING = """
first = None

def message(message, table):
    global first
    first = first or message
    if message.name == "ROLLED":
        return [message, message.but(dice="9,9")]
    if message.name == "PLAYER LOST":
        return message.but(colour="red")
    if message.name == "PLAYER ROLLS":
        return message.also("ROLLS")
    if message.name == "REGISTERED":
        return message.reply("ROLL")
    if message.name == "ACTUAL DICE":
        return message.but(dice=object())
    if message.name == "SCORE":
        del message.fields["scores"]
    if message.name == "unreadable":
        return message.but(dice="2,1")
    if message.name == "ROUND CANCELED":
        return first
    return message
"""

REFUSED = [
    (ROLLED, "ROLLED on stream 1 is sent unchanged: dice=9,9 does not fit"),
    (LOST, "PLAYER LOST has no field colour"),
    (b"PLAYER ROLLS;bob", "maexchen has no message ROLLS; did you mean"),
    (b"REGISTERED", "ROLL needs a value for token, too"),
    (b"ACTUAL DICE;3,3", "ACTUAL DICE cannot be written (TypeError: Encoding objects of type object"),
    (b"SCORE;ada:3", "SCORE needs a value for scores, too"),
    (b"?", "this message could not be read: it can be dropped, but not edited"),
]


@pytest.mark.full
def test_unmatched_messages_pass_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_words, "PERIOD_S", 0.0)
    with hooked(tmp_path, REFUSING) as hook:
        for frame, sentence in REFUSED:
            assert hook.says(frame) is None
            assert sentence in hook.told[-1]
        hook.process.opened(2, "udp", "127.0.0.1:40002", "127.0.0.1:9000")
        assert hook.says(b"ROUND CANCELED;NO_PLAYERS", number=2) is None
        assert "a message of stream 1 cannot replace one of stream 2" in hook.told[-1]
        # The hook continues.
        assert hook.says(b"PLAYER WANTS TO SEE;bob") == [("s2c", b"PLAYER WANTS TO SEE;bob", 0, True)]
    assert len(hook.told) == len(REFUSED) + 1


@pytest.mark.full
def test_repeated_refusals_are_counted(tmp_path: Path) -> None:
    with hooked(tmp_path, REFUSING) as hook:
        for _ in range(5):
            assert hook.says(ROLLED) is None
        assert len(hook.told) == 1
    assert hook.told[1:] == [f"{hook.told[0]} (and 3 more like it)"]


@pytest.mark.full
def test_by_force_it_is_passed_on_all_the_same(tmp_path: Path) -> None:
    with hooked(tmp_path, REFUSING, is_forced=True) as hook:
        assert hook.says(ROLLED) == [("s2c", ROLLED, 0, True), ("s2c", b"ROLLED;9,9;t", 0, False)]
        # Force cannot write an unknown field.
        assert hook.says(LOST) is None


BAD = {
    # The results of a hook for a message, and its notices, after the file's name.
    "raises": (
        "x = 1 / 0",
        ", line 4: message raised ZeroDivisionError: division by zero, at ROLLED on stream 1",
    ),
    "raises below": (
        "import json; json.loads('\\x1b')",
        ", line 4: message raised JSONDecodeError: Expecting value",
    ),
    "raises lines": ("raise ValueError('a\\nb' * 1000)", ", line 4: message raised ValueError: a ba b"),
    "ends": ("import sys; sys.exit(3)", ", line 4: message raised SystemExit: 3, at ROLLED"),
    "recurses": ("return message_(message, table)", ", line 4: message raised NameError"),
    "raises late": (
        "return (1 / 0 for _ in [1])",
        ", line 4: message raised ZeroDivisionError: division by zero, at ROLLED on stream 1",
    ),
    "exits": (
        "import os; os._exit(3)",
        ": its process exited (exit status 3), at ROLLED on stream 1",
    ),
    "crashes": (
        "import os; os.kill(os.getpid(), 11)",
        ": its process was ended by SIGSEGV, at ROLLED on stream 1",
    ),
    "hangs": ("while True: pass", ": message takes over 0.4 seconds for ROLLED on stream 1"),
    "sleeps": ("import time; time.sleep(1000)", ": message takes over 0.4 seconds for ROLLED on stream 1"),
    "hangs in C": (
        "import re; re.match('(a+)+b', 'a' * 60)",
        ": message takes over 0.4 seconds for ROLLED on stream 1",
    ),
    "floods": (
        "return (message for _ in iter(int, 1))",
        ", line 2: message returned over 64 messages for one, at ROLLED on stream 1",
    ),
    "floods with bytes": (
        "return [message.but(token='x' * 700_000)] * 2",
        ", line 2: message returned over 1 MiB for one message, at ROLLED on stream 1",
    ),
    "grows": (
        "grown = []\n    while True: grown.append(bytearray(1 << 29))",
        ", line 5: message raised MemoryError, at ROLLED on stream 1: a hook has 1 GiB of memory, "
        "and it needs more",
    ),
    "gives a number": (
        "return 7",
        ", line 2: message returned an int; expected the message, several in a list, or None, at ROLLED on",
    ),
    "gives a text": ("return 'ROLLED'", ", line 2: message returned a str; expected the message"),
    "gives another class": ("return object()", ", line 2: message returned an object; expected the message"),
    "gives a mixture": (
        "return [message, None]",
        ", line 2: message returned several, one of them a NoneType; expected messages",
    ),
    "gives one made wrongly": (
        "return type(message)(name='ROLLED', fields={}, direction='back', stream=message.stream, time=0.0, "
        "protocol='maexchen')",
        ", line 2: message returned a message with the direction 'back', at ROLLED on stream 1",
    ),
    "waits for ever": (
        "import msgspec; return msgspec.structs.replace(message, delay=float('inf'))",
        ", line 2: message returned a message with the delay inf, at ROLLED on stream 1",
    ),
    "asks the terminal": ("input()", ", line 4: message raised EOFError: EOF when reading a line, at ROLLED"),
    "waits for a program": (
        "import subprocess; subprocess.run(['sleep', '1000'])",
        ": message takes over 0.4 seconds for ROLLED on stream 1",
    ),
    "is a circle": (
        "message.fields['dice'] = one = []; one.append(one); raise ValueError(one)",
        ", line 4: mess",
    ),
    "waits for an hour": (
        "return message.later(3601)",
        ", line 4: message raised ValueError: a message is kept back for 0 to 3600 seconds, not 3601",
    ),
    "closes everything": ("import os; os.closerange(0, 1000)", ""),
    "says what it wants": (
        "import os\n    for number in range(3, 1024):\n        try: os.write(number, b'x' * 99)\n"
        "        except OSError: pass",
        "",
    ),
    "forks and hangs": (
        "import os, time\n    os.fork()\n    time.sleep(1000)",
        ": message takes over 0.4 seconds for ROLLED on stream 1",
    ),
    "leaves a child": ("import os, time\n    if os.fork(): os._exit(0)\n    time.sleep(1000)", ""),
}
QUICK = {"hangs"}


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(BAD, QUICK))
def test_a_bad_hook_is_stopped_and_messages_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "grows":
        monkeypatch.setattr(hook_process, "MAX_CALL_S", 0.4)
    does, sentence = BAD[name]
    source = (
        "\ndef message(message, table):\n    if message.name != 'ROLLED': return message\n"
        f"    {does}\n    return message\n"
    )
    with hooked(tmp_path, source) as hook:
        assert hook.says(LOST) == [("s2c", LOST, 0, True)]
        tickets = [hook.asked(frame) for frame in (LOST, ROLLED, LOST, ROLLED)]
        hook.until(lambda: tickets[-1] in hook.answers)
        assert [hook.answers[ticket] for ticket in tickets if ticket is not None] == [
            [Outcome("s2c", LOST, 0, True)],
            None,
            None,
            None,
        ]
        assert hook.order == sorted(hook.order)
        assert hook.asked(LOST) is None
        # Its other output is discarded.
        hook.process.opened(2, "udp", "127.0.0.1:40002", "127.0.0.1:9000")
        hook.passes(LOST)
        hook.process.closed(1)
    (told,) = hook.told
    assert told.startswith(f"{tmp_path / 'hooks.py'}{sentence}"), told
    assert told.endswith(STOPPED)
    assert "\n" not in told
    assert len(told) < 600


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


PRINTING = r"""
import os, sys

def message(message, table):
    if message.name == "ROLLED":
        os.write(2, b"\xff\xfe" + b"x" * 100_000 + b"\n")
        print("\x1b[31m", end="")
    else:
        for number in range(10_000):
            print(number)
    return message
"""


@pytest.mark.full
def test_printed_lines_are_reported(tmp_path: Path) -> None:
    with hooked(tmp_path, PRINTING) as hook:
        assert hook.says(ROLLED) == [("s2c", ROLLED, 0, True)]
        assert hook.says(LOST) == [("s2c", LOST, 0, True)]
    path = tmp_path / "hooks.py"
    first, second, *others = hook.told
    assert first == f"{path} says: \ufffd\ufffd{'x' * 298}…"
    # The renderer escapes it.
    assert second == f"{path} says: \x1b[31m0"
    assert others[:18] == [f"{path} says: {number}" for number in range(1, 19)]
    assert others[18:] == [f"{path} says: 9999 (and 9,980 lines before it)"]


UNUSABLE = {
    "no file": (None, "{path} cannot be read: No such file or directory"),
    "a slip": ("def message(message, table):\n  return (\n", "{path}, line 2: '(' was never closed"),
    "not UTF-8": (b"x = 1\ny = '\xff'\n", "{path}, line 2: this is not UTF-8"),
    "bytes": (b"\x00", "{path}: source code string cannot contain null bytes"),
    "too deep": ("(" * 500 + ")" * 500, "{path}, line 1: too many nested parentheses"),
    "drops all": (
        "def message(message, table):\n    def inner(): return 1\n    message.fields['a'] = 2\n    return\n",
        "{path}, line 1: message never returns a value, so every message would be dropped: end it with "
        "return message, or with return None to drop all",
    ),
    "async": (
        "async def message(message, table):\n    return message\n",
        "{path}, line 1: message must be a def, not an async def",
    ),
    "none of them": (
        "from kiebitz.hooks import Message as message\ndef massage(message, table): return message\n",
        "{path} has no function of a hook: message(message, table), connected(stream), closed(stream)",
    ),
    "too few parameters": (
        "\ndef message(message):\n    return message\n",
        "{path}, line 2: message cannot be called as message(message, table): too many positional arguments",
    ),
    "too many parameters": (
        "def message(message, table): return message\n\ndef closed(stream, why): ...\n",
        "{path}, line 3: closed cannot be called as closed(stream): missing a required argument: 'why'",
    ),
    "raises": (
        "import os\nos.nothing\ndef message(message, table): return message\n",
        "{path}, line 2: while it is loaded, raised AttributeError: module 'os' has no attribute 'nothing'",
    ),
    "ends": (
        "import os\nos._exit(4)\n",
        "{path}: while it was loaded, its process exited (exit status 4)",
    ),
    "hangs": ("while True: pass\n", "{path}: it has not loaded within 0.5 seconds"),
}
STATIC = {"no file", "a slip", "not UTF-8", "bytes", "too deep", "drops all", "async"}


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(UNUSABLE, {"none of them", "raises"}))
def test_a_file_that_is_no_hook_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "hangs":
        monkeypatch.setattr(hook_process, "_LOAD_TIMEOUT_S", 0.5)
    if name in STATIC:
        # Reported before anything runs.
        monkeypatch.setattr(hook_process, "start_child", None)
    source, sentence = UNUSABLE[name]
    path = tmp_path / "hooks.py"
    if source is not None:
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
    process = HookProcess(str(path), tell=print)
    with pytest.raises(HookError) as refused:
        process.start()
    assert str(refused.value) == sentence.format(path=path)
    assert refused.value.is_usage


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
    port, server_port = free_port("udp"), free_port("udp")
    with closing(socket.socket(type=socket.SOCK_DGRAM)) as server:
        server.bind(("127.0.0.1", server_port))
        server.settimeout(PATIENCE_S)
        command = [*KIEBITZ, "relay", "-q", "-m", f"reverse:udp://127.0.0.1:{server_port}@{port}"]
        command += ["-w", str(tmp_path / "game.db"), "-s", str(tmp_path / "hooks.py")]
        with (
            running(*command, ready="listening on"),
            closing(socket.socket(type=socket.SOCK_DGRAM)) as client,
        ):
            client.connect(("127.0.0.1", port))
            client.settimeout(PATIENCE_S)
            client.send(b"REGISTER;ada")
            said, address = server.recvfrom(2000)
            assert said == b"REGISTER;ada"
            for token, dice in (("t", "6,5"), ("u", "6,5"), ("v", "6,6")):
                server.sendto(f"ROLLED;6,5;{token}".encode(), address)
                assert client.recv(2000) == f"ROLLED;{dice};{token}".encode()


def test_a_relay_does_not_start_with_a_bad_one(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def message(message, table) return message")
    mode = f"reverse:udp://127.0.0.1:9@{free_port('udp')}"
    done = kiebitz("relay", "-m", mode, "-w", str(tmp_path / "game.db"), "-s", str(tmp_path / "hooks.py"))
    assert done.status == 2
    assert done.err == f"kiebitz: {tmp_path / 'hooks.py'}, line 1: expected ':'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["hooks.py"]


@pytest.mark.full
def test_messages_without_a_handler_pass(tmp_path: Path) -> None:
    with hooked(tmp_path, "def connected(stream): print(stream.id)\n") as hook:
        assert hook.says(ROLLED) is None
    assert hook.told == [f"{tmp_path / 'hooks.py'} says: 1"]


@pytest.mark.full
def test_held_messages_pass_when_the_view_is_closed(tmp_path: Path) -> None:
    with hooked(tmp_path, SLOW) as hook:
        tickets = [hook.asked(ROLLED) for _ in range(3)]
        hook.process.leave()
        assert hook.answers == dict.fromkeys(tickets)
        assert hook.asked(ROLLED) is None


@pytest.mark.full
def test_one_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_process, "_EXIT_TIMEOUT_S", 0.2)
    source = "import time\ndef closed(stream): time.sleep(1000)\n"
    with hooked(tmp_path, source) as hook:
        hook.process.closed(1)
    assert hook.told == [f"{tmp_path / 'hooks.py'}: it did not exit, and was killed"]


ANNOUNCED = b"ANNOUNCED;ada;6,5"
SHOWN = [
    # For each example: what is passed on, what comes, and what is passed on in its place.
    ([], {ROLLED: [b"ROLLED;2,1;t"], LOST: [LOST]}),
    ([], {b"REGISTER;eve": [b"REJECTED"], ANNOUNCED: [ANNOUNCED] * 2, LOST: [LOST]}),
    (
        [b"REGISTER;ada", b"REGISTERED", b"ROUND STARTED;1;bob,ada", b"PLAYER ROLLS;bob"],
        {
            b"REGISTER;ada": [b"REGISTER;ada"],
            b"ANNOUNCE;6,5;t": [],
            b"REGISTER;bob": [b"REGISTER;bob"],
            b"ANNOUNCE;6,5;u": [b"ANNOUNCE;6,5;u"],
        },
    ),
    ([], {ROLLED: [ROLLED], b"ROLLED;6,5;u": [b"ROLLED;6,5;u"], b"ROLLED;6,5;v": [b"ROLLED;6,6;v"]}),
]
FROM_CLIENTS = (b"REGISTER;", b"ANNOUNCE;")


@pytest.mark.full
@pytest.mark.parametrize("number", a_few(range(len(SHOWN)), {2}))
def test_the_examples_of_the_page_work(number: int, tmp_path: Path) -> None:
    assert len(EXAMPLES) == len(SHOWN)
    before, given = SHOWN[number]
    with hooked(tmp_path, EXAMPLES[number]) as hook:
        for frame in before:
            hook.passes(frame, "c2s" if frame.startswith(FROM_CLIENTS) else "s2c")
        for frame, expected in given.items():
            found = hook.says(frame, "c2s" if frame.startswith(FROM_CLIENTS) else "s2c")
            assert found is not None
            assert [data for _, data, _, _ in found] == expected
        hook.process.closed(1)
    assert all(" has rolled " in told for told in hook.told)


@pytest.mark.full
def test_a_hook_has_types(tmp_path: Path) -> None:
    typed = [example for example in EXAMPLES if "import Message" in example]
    assert len(typed) == len(EXAMPLES) - 1
    slip = typed[-1].replace('but(dice="6,6")', "butt()").replace("-> Message:", "-> int:")
    for number, source in enumerate([*typed, slip]):
        (tmp_path / f"hook_{number}.py").write_text(source)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "mypy",
                "--strict",
                "--cache-dir",
                str(tmp_path / "mypy"),
                f"hook_{number}.py",
            ],
            cwd=tmp_path,
            env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
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
