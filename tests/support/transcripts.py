r"""Transcripts of commands as text files: the arguments of `kiebitz` after `$`, then its output, indented.

A block begins with a title after `==` and runs in an empty folder with `captures`, `docs`, and `data` of the
tests. Lines of stderr begin with `2>`, and a status other than 0 is shown. KIEBITZ_SNAPSHOTS=write rewrites
the indented lines. `make test` leaves out a block whose title ends with `, full` or with a number from 2 on.

    $ HOME=$PWD events x.db | grep carl    with an environment variable; the lines of stdout with a pattern
    $ TERM=xterm COLUMNS=60 events x.db    as on a terminal
    $ diff a.db b.db --json | .equal .same  these values of a JSON object, or of each object of a list
    file NAME:                             writes a file; its lines follow after `| `
    in NAME: OLD => NEW                    replaces a text in a file; \n is a line end
    database NAME                          a recorded capture as the database NAME.db
    database NAME.db: CAPTURE              the same, under another name
    session NAME.db [CLIENT SERVER [tcp]]: records datagrams: `| > ROLL;x`, `| < ROLLED +5 missing`, `| fault`
    talk NAME.db FILE [coarse]:            a conversation by a protocol file: `| a> JOIN ann`, `| *< HI`,
                                           perhaps with times of a coarse clock
    altered NAME.db: CAPTURE CHANGE ...    a recorded capture, altered by a function of `altered_captures`
    deeds NAME.db: CAPTURE                 as if Kiebitz had altered messages: `| drop #3`; see `done_to`
    corpus NAME: CAPTURE ...               a corpus of recorded captures
    sql NAME.db: STATEMENT                 what SQLite answers
    dice.pcapng, dice.toml                 the game and the protocol file of `dice_file.py`
    cat NAME, ls [NAME]                    a file, and the names in the folder, or in one of it
    sh COMMAND                             a line of a shell; $KIEBITZ is the command as a process
    each recording NAME.db                 the different outputs of all commands that record into a database;
                                           `each writing`: and of those that change it; `each corpus`: that
                                           read a corpus
    complete LINE                          the candidates of zsh for the last word of a line
    as: TITLE                              the steps of another block, without their output
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import altered_captures
import file_conversations
import pytest
from altered_message import altered_session, done_to
from altered_sessions import recorded
from command import CAPTURES, ROOT, Done, kiebitz
from conversation_files import Block, as_json, blocks
from corpora import add_here
from damaged_databases import writing
from dice_file import capture_game, write_file
from file_conversations import dissector_of
from hostile_text import PROGRESS, on_a_terminal
from imported_databases import copy_of_database
from processes_and_rows import KIEBITZ
from session_factory import SERVER, Conversation, record
from shells import offered
from snapshots import DATA, as_bytes, as_words, marked

CLIENT = "127.0.0.1:40000"

_VARYING = [
    (re.compile(r"\d+(?:\.\d+)? (?:ms|s)\b(?= \(|, [\d,]+ (?:packets|messages) per second)"), "N s"),
    (re.compile(rf"(?<![\d.]){re.escape(version('kiebitz'))}(?![\d.])"), "VERSION"),
    (re.compile(r"(?<=this is no baseline file: )[^;\n]*(?=;)"), "WHY"),
    (re.compile(r"Name or service not known|Temporary failure in name resolution"), "NO SUCH HOST"),
]
"""Parts of an output that differ from run to run, and how a transcript shows them."""


def played(block: Block, folder: Path, run: Callable[..., Done] = kiebitz) -> str:
    """Run the commands of a block in a folder, and return them with their output."""
    for source in (CAPTURES, ROOT / "docs", DATA):
        (folder / source.name).symlink_to(source)
    return "\n".join(_lines(block, folder, run))


def _lines(block: Block, folder: Path, run: Callable[..., Done]) -> Iterator[str]:
    for step in re.findall(r"^.*(?:\n\|.*)*", "\n".join(block.steps), re.MULTILINE):
        yield step
        first, *rest = step.split("\n")
        body = [line.removeprefix("|").removeprefix(" ") for line in rest]
        if first.startswith("$ "):
            yield from shown(_done(first.removeprefix("$ "), run))
        elif first.startswith("as: "):
            [*_lines(blocks(block.path)[first.removeprefix("as: ")], folder, run)]
        else:
            yield from _prepared(first, body, folder)


def _prepared(step: str, body: list[str], folder: Path) -> Iterator[str]:
    kind, _, rest = step.partition(" ")
    name, _, text = rest.partition(": ")
    path = folder / name.removesuffix(":").split(" ")[0]
    match kind:
        case "file":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(as_bytes(line) + b"\n" for line in body))
        case "in":
            old, _, new = (text.replace(r"\n", "\n")).partition(" => ")
            assert old in path.read_text(), step
            path.write_text(path.read_text().replace(old, new))
        case "database":
            copy_of_database(text or name, path if text else folder / f"{name}.db")
        case "session":
            _, client, server, *transport = (
                rest.removesuffix(":").split(" ") if " " in rest else (0, CLIENT, SERVER)
            )
            talk = Conversation(client, server)
            talk.stream.transport = "tcp" if transport else "udp"
            record(path, talk.talk(*body).items)
        case "talk":
            _, file, *clock = rest.removesuffix(":").split(" ")
            said = file_conversations.Conversation(dissector_of((folder / file).read_text())).send(*body)
            for item in said.items if clock == ["coarse"] else ():
                item.ts_ns -= item.ts_ns % 15_625_000
            record(path, said.items, begin_ns=said.items[0].ts_ns)
        case "altered":
            capture, change, *arguments = as_words(text)
            known = recorded(capture)
            alter = getattr(altered_captures, change)(*arguments)
            known.with_said(alter(list(known.said))).write(path)
        case "deeds":
            capture = str(CAPTURES / text)
            altered_session(path, capture, done_to(capture, body)).connection.close()
        case "complete":
            # Of nothing, the line end is left.
            found = [line for line in offered(as_bytes(rest).decode(), "zsh") if line]
            for kind, value, about in zip(*(found[part::3] for part in range(3)), strict=True):
                told = about.strip("_") if kind == "plain" else f"({kind})"
                yield f"    {value.replace(chr(92), '')} {told}".rstrip()
        case "corpus":
            for outcome in add_here(path, [ROOT / "captures" / each for each in text.split()]):
                yield from [f"    {outcome.failed}"] if outcome.failed else []
        case "sql":
            with closing(sqlite3.connect(path)) as connection, connection:
                for row in connection.execute(text):
                    yield f"    {row}"
        case "cat":
            yield from shown(Done(0, path.read_text(), ""))
        case "ls":
            names = sorted(each.name for each in path.iterdir() if not each.is_symlink())
            yield f"    {' '.join(names) or '(nothing)'}"
        case "sh":
            yield from shown(_in_shell(rest))
        case "each":
            way, database = rest.split(" ")
            recording = writing(database)
            reading = (["check"], ["sessions"], ["games"], ["query", "select 1"])
            commands = {
                "recording": recording,
                "writing": [*recording, ["redissect", database]],
                "corpus": [["corpus", command, database, *query] for command, *query in reading],
            }[way]
            for lines in dict.fromkeys(tuple(shown(kiebitz(*command))) for command in commands):
                yield from lines
        case "dice.pcapng":
            capture_game(folder)
        case "dice.toml":
            write_file(folder)
        case _:
            pytest.fail(f"no step: {step}")


def _done(line: str, run: Callable[..., Done]) -> Done:
    """Run a command line."""
    words = as_words(line)
    words, selected = (
        (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    )
    # A command may set variables itself.
    with patch.dict(os.environ):
        names = []
        while re.match(r"[A-Z_]+=", words[0]):
            name, value = words.pop(0).split("=", 1)
            os.environ[name] = value.replace("$PWD", os.getcwd())
            names.append(name)
        done = (on_a_terminal if "TERM" in names else run)(*words)
    if "TERM" in names:
        done = Done(done.status, PROGRESS.sub("", done.out), "")
    if selected[:1] == ["grep"]:
        lines = done.out.splitlines(keepends=True)
        return Done(done.status, "".join(line for line in lines if re.search(selected[1], line)), done.err)
    if selected:
        found, keys = done.json, [key[1:] for key in selected]
        if isinstance(found, list):
            rows = [" ".join(as_json(row[key]) for key in keys) for row in found]
        else:
            rows = [f".{key} {as_json(found[key])}" for key in keys]
        return Done(done.status, "".join(f"{row}\n" for row in rows), done.err)
    return done


def _in_shell(line: str) -> Done:
    """Run a line in a shell; skip the block if a program is missing, or root's rights."""
    for program in re.findall(r"\b(?:tshark|capinfos)\b", line):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if re.search(r"\b(?:chown|mount)\b", line) and os.geteuid() != 0:
        pytest.skip("this needs root")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "KIEBITZ": shlex.join(KIEBITZ)}
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, env=variables, stdin=subprocess.DEVNULL, timeout=120
    )
    out, err = (part.decode("utf-8", "surrogateescape") for part in (done.stdout, done.stderr))
    return Done(done.returncode, out, err)


def shown(done: Done) -> Iterator[str]:
    """Yield the lines of a command's output."""
    for sign, text in (("", done.out), ("2> ", done.err)):
        text = text.replace(os.getcwd(), "$PWD")
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        for line in text.removesuffix("\n").split("\n") if text else ():
            yield f"    {sign}{marked(line.encode('utf-8', 'surrogateescape'), []) or '␊'}"
        if text and not text.endswith("\n"):
            yield "    (no line end)"
    if done.status:
        yield f"    status {done.status}"
