from __future__ import annotations

import contextlib
import json
import shlex
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command import kiebitz
from probe_command import probe, results, server
from processes_and_rows import KIEBITZ, free_port, until
from strength import a_few

from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.schafkopf.cards import NICHTS
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import EMPTY
from kiebitz.services.probing.program import ProgramError, TargetProgram


def test_a_right_server_passes() -> None:
    found = results("maexchen-server", "JOIN/whole ROLL/whole ANNOUNCE/token/nobodys-token rubbish")
    assert {case: each["verdict"] for case, each in found.items()} == {
        "JOIN/whole": "OK",
        "ROLL/whole": "OK",
        "ANNOUNCE/token/nobodys-token": "OK",
        "rubbish": "INFORMATIONAL",
    }
    for each in found.values():
        assert each["messages"], each
        assert each["reactions"], each
        assert bytes.fromhex(each["sent"][0]["hex"]), each


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["maexchen", "schafkopf", "catan", "okey", "cgml"])
def test_unchanged_messages_pass(protocol: str) -> None:
    done = probe(f"{protocol}-server", "*/whole" if protocol != "okey" else "JLOB/whole", "--json")
    assert done.failed == {}
    assert "OK" in done.verdicts.values()


@pytest.mark.full
def test_a_server_that_uses_the_name_of_a_case_continues() -> None:
    (result,) = results("catan-server", "Spieler/Name/outside-ascii").values()
    assert (result["verdict"], result["why"]) == ("OK", "it continues as if nothing were wrong")


@pytest.mark.full
def test_a_right_server_passes_all_that_must_be() -> None:
    cases = [case.name for case in generate_cases(MAEXCHEN, "server") if case.expectation.level == "must"]
    done = probe("maexchen-server", " ".join(case.partition("/")[2] for case in cases), "--json")
    assert done.failed == {}
    assert [*done.verdicts.values()].count("OK") > 0.8 * len(cases)


class _AsksAgain(socketserver.StreamRequestHandler):
    """Serves no game of Schafkopf; one who has no name is asked for it again."""

    def handle(self) -> None:
        ask = SCHAFKOPF.codec.encode("NAME", "s2c", {"name": EMPTY})
        go_on = SCHAFKOPF.codec.encode("ID", "s2c", {"id": 0}) + SCHAFKOPF.codec.encode(
            "MODUS", "s2c", {"modus": NICHTS}
        )
        self.wfile.write(ask)
        while (flag := self.rfile.readline()) and (field := self.rfile.readline()):
            is_named = field != b"!END\n" and self.rfile.readline()
            if flag == b"!NAME\n":
                self.wfile.write(go_on if is_named else ask)


@pytest.mark.full
def test_a_question_is_no_answer_to_the_message_of_its_name() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _AsksAgain) as asking:
        asking.daemon_threads = True
        threading.Thread(target=asking.serve_forever, daemon=True).start()
        port = asking.server_address[1]
        (result,) = results("schafkopf-server", "NAME/name/left-out", port=port, timeout_s=0.3).values()
        asking.shutdown()
    assert [message["name"] for message in result["messages"]][:2] == ["NAME", "NAME"]
    assert result["why"] == "it ignores it; the specification leaves that open"


@pytest.mark.full
def test_where_no_message_follows_a_heartbeat_does() -> None:
    # Who draws a tile or logs out says nothing more before the server does, unless another player happens to.
    found = results("okey-server", "DRAW/joined LOGO/joined").values()
    assert [each["verdict"] for each in found] == ["OK", "OK"]
    assert all(bytes.fromhex(each["sent"][0]["hex"]).endswith(b"PING\r\n") for each in found), found


# Reports.


@pytest.mark.full
def test_a_finding_is_kept_reported_and_tried_again(tmp_path: Path) -> None:
    port = free_port("udp")
    database, report, folder = (tmp_path / name for name in ("probe.db", "probe.html", "kept"))
    start = ["--restart", server(port, "dies-on-an-unknown-word"), "--timeout", "0.7"]
    more = [*start, "-w", str(database)]
    address = f"127.0.0.1:{port}"
    done = kiebitz(
        *("probe", "server", address, "-d", "maexchen", *more, "--report", str(report)),
        *("--keep", str(folder), "--only", "maexchen/unknown-message", "--only", "maexchen/JOIN/whole"),
    )
    assert done.status == 3
    assert "FAILED" in done.out
    assert f"kiebitz probe server {address} -d maexchen" in done.out
    assert "1 FAILED, 1 OK" in done.err
    page = report.read_text()
    assert "<script" not in page
    assert 'id="maexchen/unknown-message"' in page
    (capture,) = folder.iterdir()
    assert capture.name == "maexchen-unknown-message.pcapng"
    assert "unknown-message" in kiebitz("check", str(capture)).out
    listed = kiebitz("sessions", str(database), "--json").json
    assert {each["name"] for each in listed} >= {
        "probe server maexchen/unknown-message: FAILED",
        "probe server maexchen/JOIN/whole: OK",
    }
    again = kiebitz("probe", "server", address, "-d", "maexchen", *more, "--last-verdict", "failed", "--json")
    (found,) = again.json["results"]
    assert found["case"] == "maexchen/unknown-message"
    told = shlex.split(found["command"])
    assert told[1:] == ["probe", "server", address, "-d", "maexchen", *start, "--only", found["case"]]
    assert kiebitz(*told[1:]).status == 3


@pytest.mark.full
def test_a_program_that_does_not_start_again_costs_no_result(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    program = server("{port}", "dies-on-an-unknown-word")
    # The third start, which would confirm the failure, is none.
    script = f"echo >> {starts}; [ $(wc -l < {starts}) -lt 3 ] && exec {program}; echo no licence; exit 7"
    restart = shlex.join(["sh", "-c", script])
    done = probe(
        "maexchen-server", "game JOIN/whole unknown-message", "--json", restart=restart, timeout_s=0.4
    )
    assert done.status == 1
    assert done.verdicts == {"game": "OK"}
    assert "2 cases: --restart" in done.json["left_out"]
    assert "it has ended (exit status 7)" in done.err
    assert "its last output: no licence" in done.err


def test_cases_are_listed_without_being_tried() -> None:
    done = kiebitz("probe", "server", "-d", "maexchen", "--list", "--json", "--only", "maexchen/JOIN/token")
    assert done.status == 0
    assert {each["case"] for each in done.json} >= {"maexchen/JOIN/token/left-out"}
    assert all(each["level"] in ("must", "should", "open") for each in done.json)


def test_nothing_is_sent_before_the_protocol_is_known() -> None:
    port = free_port("udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", port))
        silent.setblocking(False)
        done = kiebitz("probe", "server", str(port))
        assert done.status == 2
        assert "nothing is sent before it is" in done.err
        with pytest.raises(BlockingIOError):
            silent.recv(100)


def test_an_unreachable_server_is_reported() -> None:
    port = free_port("udp")
    done = probe("maexchen-server", "JOIN/whole", port=port)
    assert (done.status, done.out) == (1, "")
    assert f"udp 127.0.0.1:{port} does not answer. Start the server first" in done.err


# The program that is started.


def test_a_program_that_does_not_listen_is_reported() -> None:
    port = free_port("udp")
    with pytest.raises(ProgramError, match=r"it has ended \(exit status 7\).*its last output: no such table"):
        TargetProgram("sh -c 'echo no such table; sleep 0.2; exit 7'", "udp", port).start()
    with pytest.raises(ProgramError, match="No such file or directory"):
        TargetProgram("/nowhere/server", "udp", port).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        with pytest.raises(ProgramError, match=f"another program uses udp port {port}: end that one first"):
            TargetProgram("true", "udp", port).start()


def test_child_processes_end_with_their_program(tmp_path: Path) -> None:
    port = free_port("udp")
    script = tmp_path / "server.py"
    script.write_text(
        "import socket, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(61)'])\n"
        "listening = socket.socket(type=socket.SOCK_DGRAM)\n"
        f"listening.bind(('127.0.0.1', {port}))\n"
        "time.sleep(60)\n"
    )
    program = TargetProgram(shlex.join([sys.executable, str(script)]), "udp", port)
    program.start()
    group = program.number
    assert group is not None
    assert len(living(group)) == 2
    program.stop()
    until(lambda: not living(group), "all of it has ended", 10)


def living(group: int) -> list[str]:
    """Return the processes of a group that are more than waiting to be forgotten."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of_group, *_ = stat.read_text().rpartition(")")[2].split()
            if int(of_group) == group and state != "Z":
                found.append(stat.parent.name)
    return found


@pytest.mark.full
@pytest.mark.parametrize("number", a_few([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_an_interrupted_probe_reports_what_it_knows_and_ends_the_program(number: int, tmp_path: Path) -> None:
    port = free_port("udp")
    stubborn = shlex.join(["sh", "-c", f"trap '' TERM; exec {server(port)}"])
    command = [*KIEBITZ, "probe", "server", str(port), "-d", "maexchen", "--restart", stubborn, "--json"]
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen([*command, "-w", str(tmp_path / "probe.db")], stdout=out, stderr=err)
        end = time.monotonic() + 30
        while not (tmp_path / "probe.db").exists() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        # The second one comes while the program is being ended.
        time.sleep(0.5)
        process.send_signal(number)
        status = process.wait(30)
    said = (tmp_path / "err").read_text()
    assert status == 130, said
    assert "Traceback" not in said
    told = json.loads((tmp_path / "out").read_text())
    assert "interrupted" in told["left_out"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", port))
