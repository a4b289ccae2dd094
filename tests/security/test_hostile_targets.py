"""Files that commands write: on a full disk, in folders that cannot be used, and when they are ended.

What others have planted is in tests/data/commands/planted_targets.txt.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from command import ODD, ROOT, TINY, kiebitz
from processes_and_rows import KIEBITZ, until
from recording_relays import full, small_disk
from strength import every

from kiebitz.services.output_files import make_folder, opened
from kiebitz.storage.database.schema import StorageError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_in_which_nothing_may_be_made(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a process of another user takes root to start it")
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    locked = tmp_path / "locked"
    locked.mkdir(0o755)
    program = (
        "import sys, os; sys.path.insert(0, sys.argv.pop(1))\n"
        "from kiebitz.services.output_files import opened\n"
        "os.setuid(65534)\n"
        "from kiebitz.storage.database.schema import StorageError\n"
        "try:\n    opened(sys.argv[1], 'x').__enter__()\nexcept StorageError as error:\n    print(error)"
    )
    done = subprocess.run(
        [KIEBITZ[0], "-c", program, str(ROOT), str(locked / "x")], capture_output=True, text=True, timeout=30
    )
    assert "permission denied" in done.stdout, done.stderr
    assert names(locked) == []


def test_the_folder_vanishes(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.mkdir()

    def write() -> None:
        with opened(str(short / "x"), TINY) as file:
            file.write(b"something")
            shutil.rmtree(short)

    with pytest.raises(StorageError, match="there is no such folder"):
        write()
    assert names(tmp_path) == []


@pytest.mark.parametrize("form", every(4, ["csv", "jsonl", "pcapng", "parquet"]))
def test_the_disk_is_full(tmp_path: Path, form: str) -> None:
    with small_disk(tmp_path / "disk", "100k") as disk:
        target = disk / "x"
        target.write_text("what was there")
        with full(disk):
            done = kiebitz("export", ODD, "-T", form, "-o", str(target))
            assert done.status == 1
            assert "the disk is full: make room" in done.err
            assert names(disk) == ["ballast", "x"]
        assert target.read_text() == "what was there"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_ended_in_the_middle(tmp_path: Path, number: signal.Signals) -> None:
    # It waits in the block, as it would for a slow disk.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pathlib import Path; import time\n"
        "from kiebitz.services.output_files import make_folder, opened\n"
        "with opened(sys.argv[1], 'x') as file:\n    file.write(b'x' * 1_000_000)\n    time.sleep(60)"
    )
    process = subprocess.Popen(
        [KIEBITZ[0], "-c", program, str(tmp_path / "x")], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        until(
            lambda: len(names(tmp_path)) == 1 and os.stat(tmp_path / names(tmp_path)[0]).st_size > 0,
            "it writes",
        )
        process.send_signal(number)
        assert process.wait(10) == -number
    finally:
        process.kill()
        process.wait()
    assert names(tmp_path) == []


def test_a_new_folder_of_captures_is_private(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    for path in ("new", "new", "link"):
        make_folder(str(tmp_path / path))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
