"""No process of any command runs code from the current folder.

The folder is an untrusted one: a capture and a database, and modules with the names of the standard
library's,
of dependencies' and of Kiebitz's, and a package with a plug-in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from command import ROOT, TINY
from processes_and_rows import PATIENCE_S, free_port, until
from strength import a_few

from kiebitz.cli.main import COMMANDS
from kiebitz.services.importing.packets import MIN_SIZE_FOR_PROCESS

BIN = Path(sys.executable).parent
LARGE = "large.pcap"
PATIENT_S = 60.0

RUNS: dict[str, list[list[str]]] = {
    "relay": [
        ["-m", "reverse:udp://127.0.0.1:9@{udp}", "-w", "relayed.db"],
        ["-m", "reverse:udp://127.0.0.1:9@{udp}", "-w", "served.db", "--serve", "127.0.0.1:{tcp}"],
        ["-m", "reverse:udp://127.0.0.1:9@{udp}", "-w", "altered.db", "-s", "a_hook.txt"],
        ["-m", "socks5@{tcp}", "-w", "proxied.db"],
        [
            *("-m", "reverse:udp://127.0.0.1:9@{udp}", "-w", "tapped.db"),
            *("--publish", "nats://127.0.0.1:{tcp}/class"),
        ],
    ],
    "sniff": [["-i", "-", "-w", "sniffed.db"]],
    "import": [["tiny.pcap", "-w", "imported.db"], [LARGE, "-w", "large.db"]],
    # No server is there, so it retries.
    "collect": [["nats://127.0.0.1:{tcp}/class", "-w", "collected.db"]],
    "sessions": [["game.db"], ["game.db", "--note", "1", "played at noon"]],
    "streams": [["game.db"]],
    "games": [["game.db"]],
    "messages": [["game.db", "-Y", 'name matches "^a"']],
    "show": [["game.db", "#3"]],
    "watch": [["game.db"]],
    "serve": [["game.db", "--port", "0"], ["tiny.pcap", "--port", "0"]],
    "events": [["game.db"], [LARGE]],
    "state": [["game.db"], ["game.db", "--svg", "state.svg"]],
    "sequence": [["game.db"], ["game.db", "-T", "svg", "-o", "sequence.svg"]],
    "stats": [["game.db"], ["game.db", "--svg", "stats.svg"]],
    "check": [["game.db"]],
    "diff": [["game.db", "tiny.pcap"]],
    "whatif": [["game.db", "--drop", "#3"]],
    "follow": [["game.db", "1"]],
    "replay": [["game.db", "--speed", "100000"], ["game.db", "--connect", "127.0.0.1:{udp}"]],
    "probe": [
        ["server", "-d", "maexchen", "--list"],
        ["server", "127.0.0.1:{udp}", "-d", "maexchen", "--only", "maexchen/REGISTER/whole"],
        [
            *("client", "127.0.0.1:{tcp}", "-d", "okey", "--only", "okey/rubbish", "--restart", "true"),
            *("--max-time", "1", "--report", "probe.html", "-w", "probe.db", "--keep", "probed"),
        ],
    ],
    "interop": [["plan.toml", "--list"], ["plan.toml", "-o", "report"]],
    "class": [["class.toml", "--check"]],
    "corpus": [["add", "corpus", "tiny.pcap"], ["query", "corpus", "select 1"]],
    "export": [
        ["game.db", "-T", form, "-o", f"game.{form}"]
        for form in ("pcapng", "jsonl", "csv", "parquet", "datasette", "html")
    ]
    + [["game.db", "-T", "pcapng", "--game", "1", "-o", "round.pcapng"]]
    + [["game.db", "-T", "jsonl", "-o", "nobody.jsonl", "--anonymize", "--mapping-file", "who.txt"]],
    "redissect": [["game.db"]],
    "protocols": [[], ["maexchen", "-T", "lua", "-o", "maexchen.lua"]],
    "draft": [["tiny.pcap"]],
    "addon-path": [[]],
    "completion": [["bash"]],
    "help": [["filters"]],
}
"""Command -> arguments, each list for a run of its own; `{udp}` and `{tcp}` are free ports."""

ENDLESS = {"relay", "serve", "collect", "mitmdump"}
QUICK = [["relay"], ["import"]]
"""Commands that `make test` runs; none is mitmdump."""

LEFT_OUT = {"altered.db", "socks5@{tcp}", "--publish", "--serve", "tiny.pcap"}


def test_every_command_is_tried() -> None:
    assert RUNS.keys() == {name for section in COMMANDS.values() for name in section}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with bait; what of it is run leaves its name in `marks`."""
    made = tmp_path_factory.mktemp("bait")
    bait = f"with open({str(made / 'marks')!r}, 'a') as marks:\n    marks.write(__name__ + '\\n')\n"
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "planted"}
    for name in names:
        # Only names of single-file modules are bait.
        if "/" not in name:
            (made / f"{name}.py").write_text(bait)
    offer = made / "planted-1.0.dist-info"
    offer.mkdir()
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (offer / "entry_points.txt").write_text("[kiebitz.dissectors]\nplanted = planted:PLANTED\n")
    # The one file that should run imports others, none of which is here.
    hook = "import random, textwrap, click\n\n\ndef message(message, table):\n    return message\n"
    (made / "a_hook.txt").write_text(hook)
    programs = "".join(
        f'[[{role}]]\nname = "it"\ncommand = "sleep 9{{port}}"\n' for role in ("server", "client")
    )
    (made / "plan.toml").write_text(f'protocol = "maexchen"\ntimeout = "1s"\n{programs}')
    (made / "class.toml").write_text((ROOT / "docs/examples/class.toml").read_text())
    tiny = Path(TINY).read_bytes()
    (made / "tiny.pcap").write_bytes(tiny)
    head, packets = tiny[:24], tiny[24:]
    (made / LARGE).write_bytes(head + packets * (MIN_SIZE_FOR_PROCESS // len(packets) + 1))
    assert _run(made, [str(BIN / "kiebitz"), "import", "tiny.pcap", "-w", "game.db"]).wait(PATIENT_S) == 0
    return made


def _run(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    # The checkout, so that it is tested whatever is installed; not the folder itself.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log, (folder / "tiny.pcap").open("rb") as capture:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=capture, stdout=log, stderr=subprocess.STDOUT
        )


def _runs() -> list[list[str]]:
    commands = [[name, *arguments] for name, lists in RUNS.items() for arguments in lists]
    return [["kiebitz", *command] for command in commands] + [["mitmdump"]]


@pytest.mark.full
@pytest.mark.parametrize(
    "command", a_few(_runs(), lambda run: run[1:2] in QUICK and not LEFT_OUT & {*run}, " ".join)
)
def test_nothing_in_the_folder_is_run(command: list[str], folder: Path) -> None:
    ports = {"udp": free_port("udp"), "tcp": free_port("tcp")}
    arguments = [
        argument.replace("{udp}", "%(udp)s").replace("{tcp}", "%(tcp)s") % ports for argument in command
    ]
    if command == ["mitmdump"]:
        script = ROOT / "cli" / "mitm" / "addon.py"
        arguments += ["-s", str(script), "-p", str(ports["tcp"]), "--set", "kiebitz_db=flows.db"]
    marks = folder / "marks"
    marks.unlink(missing_ok=True)
    process = _run(folder, [str(BIN / arguments[0]), *arguments[1:]])
    try:
        if ENDLESS & {*command[:2]}:
            until(lambda: _says_that_it_listens(folder), "it listens", PATIENT_S)
            process.send_signal(signal.SIGINT)
        process.wait(PATIENT_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    said = (folder / "log").read_text()
    assert not marks.exists(), f"it ran {marks.read_text().split()}: {said}"
    # What it was to do, it did; a live peer is not there, nor a terminal.
    statuses = {"watch": (2,), "serve": (130,)}
    assert process.returncode in statuses.get(command[1] if command[1:] else "", (0, 1, 3)), said
    assert "Traceback" not in said


def _says_that_it_listens(folder: Path) -> bool:
    said = (folder / "log").read_text()
    return any(words in said for words in ("listening on", "listening at", "Ctrl-C ends it", "retrying"))
