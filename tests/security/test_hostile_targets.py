from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import ODD, ROOT, TINY, kiebitz, spawn
from foreign_files import STRANGER, create_as_stranger, folder_for_all, give_to_stranger
from processes_and_rows import KIEBITZ, until
from recording_relays import full, small_disk
from strength import a_few, every

from kiebitz.services.output_files import make_folder, opened
from kiebitz.storage.database.schema import StorageError

Make = Callable[[Path], object]

CSV = ("export", TINY, "-T", "csv", "-o")
SVG = ("state", TINY, "--svg")
BOTH = pytest.mark.parametrize("command", [CSV, SVG], ids=["export", "svg"])


def assert_written(path: Path) -> None:
    assert stat.S_ISREG(path.lstat().st_mode)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert path.stat().st_uid == os.geteuid()
    text = path.read_text()
    assert text.startswith(("time,", "<svg", "<?xml"))
    assert "tail of something older" not in text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@BOTH
def test_a_planted_name_of_an_unfinished_file_is_not_written_to(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    shared = folder_for_all(tmp_path / "shared")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    target = shared / "x"
    create_as_stranger(shared / f"x.{os.getpid()}.part", lambda path: path.symlink_to(victim))
    assert kiebitz(*command, str(target)).status == 0
    assert_written(target)
    assert victim.read_text() == "mine\n"


@BOTH
def test_entries_of_an_older_one_are_not_in_the_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    leftover = tmp_path / f"x.{os.getpid()}.part"
    leftover.write_text("tail of something older" * 100_000)
    leftover.chmod(0o666)
    assert kiebitz(*command, str(tmp_path / "x")).status == 0
    assert_written(tmp_path / "x")


def link_to_a_file(path: Path) -> None:
    path.symlink_to(path.parent.parent / "victim")


def dangling_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "nothing")


def file_for_all(path: Path) -> None:
    path.write_text("tail of something older" * 1000)
    path.chmod(0o666)


def hard_link(path: Path) -> None:
    path.hardlink_to(path.parent.parent / "victim")


@pytest.mark.parametrize(
    ("make", "whose"),
    [(link_to_a_file, 0), (dangling_link, 0), (file_for_all, 0), (file_for_all, STRANGER), (hard_link, 0)],
    ids=["link", "dangling link", "older file", "another's file", "hard link"],
)
def test_a_link_of_ours_or_an_older_file_is_replaced_and_never_written_to(
    tmp_path: Path, make: Make, whose: int
) -> None:
    shared = folder_for_all(tmp_path / "shared")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    target = shared / "x"
    make(target)
    if whose:
        give_to_stranger(target)
    assert kiebitz(*CSV, str(target)).status == 0
    assert_written(target)
    assert victim.read_text() == "mine\n"
    assert names(shared) == ["x"]
    assert not (tmp_path / "nothing").exists()


REFUSED: dict[str, tuple[Make, str]] = {
    "link": (link_to_a_file, "another user's symbolic link"),
    "dangling link": (dangling_link, "another user's symbolic link"),
    "link to a device": (lambda path: path.symlink_to("/dev/full"), "another user's symbolic link"),
    "link to a folder": (lambda path: path.symlink_to("/"), "another user's symbolic link"),
    "pipe": (lambda path: os.mkfifo(path, 0o666), "this pipe has no reader"),
    "folder": (Path.mkdir, "this is a folder"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_another_user_s_planted_file_is_rejected(
    tmp_path: Path, make: Make, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kiebitz.services.output_files.READER_TIMEOUT_S", 0.1)
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    target = create_as_stranger(folder_for_all(tmp_path / "shared") / "x", make)
    before = target.lstat()
    done = kiebitz(*CSV, str(target))
    assert (done.status, done.out) == (1, "")
    assert words in done.err
    assert os.path.samestat(target.lstat(), before)
    assert names(target.parent) == ["x"]
    assert victim.read_text() == "mine\n"


@pytest.mark.parametrize("to", ["/", "x"], ids=["a folder", "itself"])
def test_a_link_of_ours_that_leads_to_no_file(tmp_path: Path, to: str) -> None:
    (tmp_path / "x").symlink_to(to)
    done = kiebitz(*CSV, str(tmp_path / "x"))
    assert done.status == 1
    assert ("this is a folder" if to == "/" else "symbolic links") in done.err


def test_a_device_is_written_to_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for path in ("/dev/null", tmp_path / "null"):
        assert kiebitz(*CSV, str(path)).status == 0
    done = kiebitz(*CSV, "/dev/full")
    assert done.status == 1
    assert "the disk is full" in done.err


@pytest.mark.parametrize("whose", [0, STRANGER], ids=["ours", "another's"])
def test_a_pipe_gets_it_only_if_it_is_ours(tmp_path: Path, whose: int) -> None:
    pipe = folder_for_all(tmp_path / "shared") / "x"
    os.mkfifo(pipe, 0o666)
    os.chown(pipe, whose, whose)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = kiebitz(*CSV, str(pipe))
    os.set_blocking(reader, True)
    with open(reader, "rb") as file:
        text = file.read()
    if whose:
        assert (done.status, text) == (1, b"")
        assert "another user's pipe" in done.err
    else:
        assert done.status == 0
        assert text == kiebitz(*CSV[:4]).out.encode()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.full
def test_a_reader_may_come_a_little_later(tmp_path: Path) -> None:
    pipe = tmp_path / "x"
    os.mkfifo(pipe)
    with spawn(*CSV, str(pipe)) as process:
        time.sleep(0.5)
        text = pipe.read_bytes()
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert text.startswith(b"time,")


@pytest.mark.full
@pytest.mark.parametrize("path", a_few(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"], ["/dev/stdout"]))
@pytest.mark.parametrize("into", ["file", "pipe"])
def test_standard_output_by_its_path(tmp_path: Path, path: str, into: str) -> None:
    before = os.lstat("/dev/stdout")
    found = tmp_path / "found"
    command = " ".join([*KIEBITZ, *CSV, path])
    piped = f"echo first; {command}" + ("" if into == "file" else " | cat")
    with found.open("wb") as file:
        subprocess.run(["sh", "-c", piped], stdout=file, check=True, timeout=30, cwd=ROOT)
    assert found.read_bytes() == b"first\n" + kiebitz(*CSV[:4]).out.encode()
    assert os.path.samestat(os.lstat("/dev/stdout"), before)
    assert names(tmp_path) == ["found"]


def test_a_descriptor_that_was_not_passed() -> None:
    # The database in memory has none, but python may have some.
    for number in ("3", "9", "99999999999999999999"):
        done = kiebitz(*CSV, f"/dev/fd/{number}")
        assert done.status == 1
        assert "without such a file" in done.err


def test_a_name_as_long_as_it_may_be(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    assert kiebitz(*CSV, str(target)).status == 0
    assert_written(target)
    done = kiebitz(*CSV, f"{target}x")
    assert done.status == 1
    assert "name too long" in done.err
    assert names(tmp_path) == [target.name]


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


def test_the_folder_is_missing_or_vanishes(tmp_path: Path) -> None:
    done = kiebitz(*CSV, str(tmp_path / "none" / "x"))
    assert done.status == 1
    assert "there is no such folder" in done.err
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


@pytest.mark.full
@pytest.mark.parametrize("session", ["named", "-"])
@pytest.mark.parametrize("way", a_few(["itself", "link", "hard link"], ["hard link"]))
def test_the_session_that_is_read_is_not_lost(tmp_path: Path, way: str, session: str) -> None:
    source = tmp_path / "game.pcap"
    shutil.copy(TINY, source)
    target = source if way == "itself" else tmp_path / "other"
    if way == "link":
        target.symlink_to(source)
    elif way == "hard link":
        target.hardlink_to(source)
    with source.open("rb") as given:
        done = subprocess.run(
            [
                *KIEBITZ,
                "export",
                str(source) if session == "named" else "-",
                "-T",
                "pcapng",
                "-o",
                str(target),
            ],
            stdin=given,
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1
    assert "is the session being read" in done.stderr
    assert source.read_bytes() == target.read_bytes() == Path(TINY).read_bytes()


@pytest.mark.parametrize("way", ["itself", "link", "game.db-wal", "game.db-shm", "game.db-journal"])
def test_no_database_is_lost(tmp_path: Path, way: str) -> None:
    database = tmp_path / "game.db"
    assert kiebitz("import", TINY, "-w", str(database)).status == 0
    target = database
    if way == "link":
        target = tmp_path / "other"
        target.symlink_to(database)
    elif way != "itself":
        target = tmp_path / way
        target.write_bytes(b"")
    before = database.read_bytes()
    done = kiebitz(*CSV, str(target))
    assert done.status == 1
    assert "database" in done.err
    assert database.read_bytes() == before
    assert target.is_symlink() == (way == "link")
    assert not any(name.startswith(".kiebitz") for name in names(tmp_path))


def test_another_users_folder_entry_does_not_stop_us(tmp_path: Path) -> None:
    """Another user's entry next to the target stays."""
    shared = folder_for_all(tmp_path / "shared")
    theirs = shared / ".kiebitz-x.part"
    theirs.write_text("theirs")
    give_to_stranger(theirs)
    assert kiebitz(*CSV, str(shared / "x")).status == 0
    assert theirs.read_text() == "theirs"


def _strange_folder(path: Path) -> None:
    path.mkdir()
    give_to_stranger(path)


def _folder_for_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def _strange_link(path: Path) -> None:
    (path.parent / "mine").mkdir()
    path.symlink_to("mine")
    give_to_stranger(path)


FOLDERS: dict[str, tuple[Make, str]] = {
    "another user's": (_strange_folder, "another user"),
    "another user's link": (_strange_link, "another user"),
    "for all": (_folder_for_all, "other users may write"),
    "a file": (Path.touch, "this is not a folder"),
    "a pipe": (os.mkfifo, "this is not a folder"),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), "there is no such folder"),
}


@pytest.mark.parametrize(("make", "words"), FOLDERS.values(), ids=FOLDERS.keys())
def test_a_folder_of_captures_is_ones_own(tmp_path: Path, make: Make, words: str) -> None:
    folder = tmp_path / "kept"
    make(folder)
    before = folder.lstat()
    done = kiebitz("probe", "server", "9", "-d", "maexchen", "--keep", str(folder), "--only", "*/rubbish")
    assert (done.status, done.out) == (1, "")
    assert words in done.err
    assert os.path.samestat(folder.lstat(), before)
    assert not folder.is_dir() or names(folder) == []


def test_a_new_folder_of_captures_is_private(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    for path in ("new", "new", "link"):
        make_folder(str(tmp_path / path))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
