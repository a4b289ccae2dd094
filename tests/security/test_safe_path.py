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
from tables import tried_commands

from kiebitz.cli.main import COMMANDS
from kiebitz.services.importing.packets import MIN_SIZE_FOR_PROCESS

BIN = Path(sys.executable).parent
LARGE = "large.pcap"
PATIENT_S = 60.0


ENDLESS = {"relay", "serve", "collect", "mitmdump"}
QUICK = [["relay"], ["import"]]
"""Commands that `make test` runs; none is mitmdump."""

LEFT_OUT = {"altered.db", "socks5@{tcp}", "--publish", "--serve", "tiny.pcap"}


def test_every_command_is_tried() -> None:
    assert {command[0] for command in tried_commands("test_safe_path")} == {
        name for section in COMMANDS.values() for name in section
    }


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
    return [["kiebitz", *command] for command in tried_commands("test_safe_path")] + [["mitmdump"]]


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
