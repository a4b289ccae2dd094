"""Rights of users, extras, and an installation by pipx, whose script has `python -E`: it relays."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import ROOT, TINY, kiebitz
from processes_and_rows import free_port, rows, running
from strength import every
from udp_relays import Echo, ask, client_of

from kiebitz.dissectors import extras
from kiebitz.dissectors.extras import EXTRAS
from kiebitz.proxy.system import sudo

CAPTURE = TINY

CALLER = 54_321
"""A user id that no account of this machine has."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be started by sudo")
needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")


def under_sudo(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as the user `CALLER` does by sudo."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "kiebitz", *arguments],
        cwd=cwd,
        env={**os.environ, "SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


MAKING = {
    "game.db": f"import {CAPTURE} -w game.db",
    "game.pcapng": f"export {CAPTURE} -T pcapng -o game.pcapng",
    "names.txt": f"export {CAPTURE} -T csv --anonymize --mapping-file names.txt -o game.csv",
}


@pytest.mark.full
@as_root
@pytest.mark.parametrize("made", every(3, MAKING))
def test_files_made_under_sudo_belong_to_the_caller(made: str, tmp_path: Path) -> None:
    # A second command may write into the caller's database.
    for command in (MAKING[made], MAKING["game.db"]):
        done = under_sudo(*command.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        there = (tmp_path / made).stat()
        assert (there.st_uid, there.st_gid) == (CALLER, CALLER)


@pytest.mark.full(but=1)
@as_root
@needs_setpriv
@pytest.mark.parametrize("command", ["relay", "sniff"])
def test_a_recording_under_sudo_continues_as_the_caller(command: str, tmp_path: Path) -> None:
    (tmp_path / "setpriv").write_text(
        '#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\necho "$HOME ${SUDO_UID-}"\n'
    )
    (tmp_path / "setpriv").chmod(0o755)
    arguments = {"relay": ["-m", "reverse:udp://127.0.0.1:9@0"], "sniff": ["-i", "lo"]}[command]
    changed = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SUDO_GID": str(CALLER + 1)}
    done = under_sudo(command, *arguments, "-w", "game.db", cwd=tmp_path, **changed)
    words = done.stdout.splitlines()
    assert words[:3] == [f"--reuid={CALLER}", f"--regid={CALLER + 1}", "--clear-groups"]
    assert "net_raw" in words[4]
    assert words[4].startswith("--ambient-caps=-all")
    assert words[-len(arguments) - 4 : -1] == [command, *arguments, "-w", "game.db"]
    # The next process must not take itself for one that sudo has started.
    assert words[-1] == os.environ["HOME"] + " "


@pytest.mark.full
@as_root
@needs_setpriv
def test_a_capture_with_one_right_only(tmp_path: Path) -> None:
    """The real setpriv, where the interpreter lies in a folder that other users may enter."""
    reachable = ["setpriv", f"--reuid={CALLER}", "--clear-groups", sys.executable, "-c", "import kiebitz"]
    if subprocess.run(reachable, capture_output=True, cwd="/").returncode != 0:
        pytest.skip("the interpreter lies in a folder that other users cannot enter")
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:3]:
        folder.chmod(folder.stat().st_mode | 0o711)
    done = under_sudo("sniff", "-i", "lo", "-a", "duration:1", "-w", "game.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "game.db").stat().st_uid == CALLER


@pytest.mark.full
@as_root
@needs_setpriv
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lo is Linux's name")
def test_without_rights_complete_commands_are_printed(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("kiebitz")
    command = [str(script), "sniff", "-i", "lo", "-w", "my game.db"]
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    first, second = (line.strip() for line in done.stderr.splitlines()[-2:])
    assert shlex.split(first) == ["sudo", *command]
    assert re.fullmatch(
        rf"sudo tcpdump -i lo -U -w - \| {re.escape(str(script))} sniff -i - -w game.db", second
    )
    assert "setcap" not in done.stderr


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SUDO_UID": "1000"}, None),
        ({"SUDO_UID": "x", "SUDO_GID": "1"}, None),
        # root called sudo.
        ({"SUDO_UID": "0", "SUDO_GID": "0"}, None),
        ({"SUDO_UID": "1000", "SUDO_GID": "100"}, (1000, 100)),
    ],
)
def test_the_caller_of_sudo(
    environment: dict[str, str], expected: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert sudo.invoking_user() == expected
    # Only root is started by sudo: for others the variables mean nothing.
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert sudo.invoking_user() is None


@pytest.mark.full
def test_a_relay_works_under_e(tmp_path: Path) -> None:
    """The script of pipx has `python -E`; a planted module of the current folder must not run."""
    (tmp_path / "multiprocessing.py").write_text("open('planted', 'w')")
    script = str(Path(sys.executable).with_name("kiebitz"))
    mode = ["-m", "reverse:udp://127.0.0.1:9@0"]
    relay = subprocess.Popen(
        [sys.executable, "-E", script, "relay", *mode, "-w", "game.db"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with relay:
        assert relay.stderr is not None
        assert relay.stderr.readline().startswith("listening on udp")
        relay.send_signal(signal.SIGINT)
        assert relay.wait(60) == 0
    assert (tmp_path / "game.db").exists()
    assert not (tmp_path / "planted").exists()


RECEIPTS = {
    "uv-receipt.toml": "uv tool install --force",
    "pipx_metadata.json": "pipx install --force",
    None: f"{sys.executable} -m pip install",
}
USES = {
    "corpus": "corpus sessions years",
    "mitmproxy": "relay -m socks5@0 -w game.db",
    "parquet": f"export {CAPTURE} -T parquet -o game.parquet",
    "taps": "relay -m reverse:udp://127.0.0.1:9@0 --publish nats://127.0.0.1:1/class -w game.db",
}


@pytest.mark.parametrize("extra", USES)
@pytest.mark.parametrize("receipt", RECEIPTS)
def test_a_missing_extra_is_named_with_its_command(
    extra: str, receipt: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if receipt is not None:
        (tmp_path / receipt).touch()
    monkeypatch.setitem(EXTRAS, extra, ("no_such_module",))
    done = kiebitz(*USES[extra].split())
    assert (done.status, done.out) == (1, "")
    assert "no_such_module, which is not installed" in done.err
    command = done.err.splitlines()[-1].strip()
    assert command.startswith(RECEIPTS[receipt])
    (names,) = re.findall(r"\[([a-z,]+)\]", command)
    # Existing ones are kept.
    assert set(names.split(",")) == EXTRAS.keys() - {"test"}


def comes_from(origin: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this installation's metadata name another source, or none; no extra is present."""
    installed = SimpleNamespace(
        read_text={"direct_url.json": None if origin is None else json.dumps(origin)}.__getitem__
    )
    monkeypatch.setattr(metadata, "distribution", lambda name: installed)
    monkeypatch.setattr(extras, "find_spec", lambda name: True if name == "pip" else None)


WHEEL = Path(__file__).as_uri()
"""A file that exists, as the address of a wheel."""

GIT = "https://example.org/k.git"


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        (f"git+{GIT}", {"url": GIT, "vcs_info": {"vcs": "git"}}),
        (f"git+{GIT}@v1", {"url": GIT, "vcs_info": {"vcs": "git", "requested_revision": "v1"}}),
        (WHEEL, {"url": WHEEL, "archive_info": {}}),
        ("https://example.org/k.whl", {"url": "https://example.org/k.whl", "archive_info": {}}),
    ],
)
def test_the_command_names_where_kiebitz_came_from(
    source: str, origin: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_from(origin, monkeypatch)
    assert shlex.split(extras.install_command("taps"))[-1] == f"kiebitz[taps] @ {source}"


@pytest.mark.parametrize(
    "origin",
    [
        None,
        {"url": "file:///no/such/folder", "dir_info": {}},
        {"url": "file:///no/such/kiebitz.whl", "archive_info": {}},
    ],
    ids=["from an index", "folder gone", "wheel gone"],
)
@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        ("uv-receipt.toml", ["uv", "pip", "install", "--python", sys.executable]),
        ("pipx_metadata.json", ["pipx", "inject", "kiebitz"]),
        ("none", [sys.executable, "-m", "pip", "install"]),
    ],
)
def test_without_a_source_the_command_names_dependencies(
    receipt: str,
    command: list[str],
    origin: dict[str, Any] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name `kiebitz` on a package index is not ours to advise."""
    comes_from(origin, monkeypatch)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "kiebitz"))
    (tmp_path / "kiebitz").mkdir()
    (tmp_path / "kiebitz" / receipt).touch()
    dependencies = ["dask", "distributed", "duckdb", "numpy", "pyarrow"]
    assert shlex.split(extras.install_command("corpus")) == [*command, *dependencies]


def test_pip_of_a_managed_python_needs_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's pip refuses without it, for `pip install --user` as well."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert "--break-system-packages" not in extras.install_command("taps")
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    assert "--break-system-packages" in extras.install_command("taps")


@pytest.mark.full
def test_pipx_installs_a_kiebitz_that_relays(tmp_path: Path) -> None:
    pipx = pytest.importorskip("pipx")
    environment = os.environ | {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    done = subprocess.run(
        [sys.executable, "-m", pipx.__name__, "install", str(ROOT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    if done.returncode != 0 and "Could not" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    script = tmp_path / "bin" / "kiebitz"
    assert script.read_text().splitlines()[0].endswith(" -E")
    database, port = tmp_path / "game.db", free_port("udp")
    with Echo() as server:
        mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
        relay = running(str(script), "relay", "-m", mode, "-w", str(database), ready="listening on")
        with relay, client_of(("127.0.0.1", port)) as client:
            assert ask(client, b"REGISTER;alice") == b"REGISTER;alice"
    assert rows(database, "SELECT count(*) FROM chunks") == [(2,)]
