"""Servers and clients for `kiebitz interop` that do something wrong: `interop_programs.py KIND PORT …`."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path


def datagrams(port: int, is_server: bool) -> socket.socket:
    """Return the socket of a server, or of a client."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    (peer.bind if is_server else peer.connect)(("127.0.0.1", port))
    return peer


def stop(port: int, *said: str) -> None:
    """Serve: to the second REGISTER say these messages, and then nothing more."""
    peer, registered = datagrams(port, True), 0
    while True:
        data, sender = peer.recvfrom(1000)
        registered += data.startswith(b"REGISTER;")
        for message in said if registered == 2 else ():
            peer.sendto(message.encode(), sender)


def play(kind: str, port: int, name: str) -> None:
    """Play Mäxchen, but for what this kind of client does not do."""
    peer = datagrams(port, False)
    peer.send(f"REGISTER;{name}".encode())
    rounds, last = 0, ""
    while True:
        word, *values = peer.recv(1000).decode().split(";")
        if word == "ROUND STARTING" and kind != "never-joins":
            peer.send(f"JOIN;{values[-1]}".encode())
        elif word == "ROUND STARTED":
            rounds, last = rounds + 1, ""
            if rounds == 2 and kind == "quits":
                sys.exit(0)
            if rounds == 2 and kind == "crashes":
                os.abort()
        elif word == "ANNOUNCED":
            last = values[1]
        elif word == "YOUR TURN" and kind != "never-moves":
            peer.send(f"{'SEE' if last else 'ROLL'};{values[0]}".encode())
        elif word == "ROLLED" and kind != "never-announces":
            peer.send(f"ANNOUNCE;{values[0]};{values[1]}".encode())


def toss(port: int, name: str) -> None:
    """Play the game of `coins.toml`."""
    peer = socket.create_connection(("127.0.0.1", port))
    peer.sendall(f"LOGIN {name}\n".encode())
    for line in peer.makefile():
        if line == "START\n":
            peer.sendall(b"TOSS\n")


def serve_coins(port: int, how: str) -> None:
    """Serve that game; each ends like this."""
    server = socket.create_server(("127.0.0.1", port))
    while True:
        peer, _ = server.accept()
        lines = peer.makefile()
        name = next(lines).split()[1]
        peer.sendall(f"HELLO {name}\n".encode())
        for _ in range(200):
            peer.sendall(b"START\n")
            next(lines)
            peer.sendall(f"TOSSED {name}\nOVER {how}\n".encode())
            time.sleep(0.1)


def attack(kind: str, port: int, report: Path) -> None:
    """Escape as a daemon, put links into the report, or replace the databases of relays that belong to it."""
    if kind == "daemon":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                kept = bytearray(200_000_000)
                time.sleep(60)
                del kept
            os._exit(0)
        os.wait()
    with datagrams(port, True):
        time.sleep(1)
        if kind == "links":
            for name in ("programs", "badges"):
                (report / name).symlink_to(report.parent)
            os.mkfifo(report / "results.json")
            (report / "index.html").symlink_to("/nowhere")
        for number in filter(str.isdigit, os.listdir("/proc")) if kind.startswith("database") else ():
            try:
                words = Path(f"/proc/{number}/cmdline").read_text().split("\0")
            except OSError:
                continue
            if "relay" not in words or "-w" not in words:
                continue
            database = Path(words[words.index("-w") + 1])
            if not database.is_relative_to(report):
                # Another test's.
                continue
            database.rename(f"{database}.old")
            if kind == "database-pipe":
                os.mkfifo(database)
            else:
                database.write_text("something else")
        time.sleep(60 if kind == "daemon" else 0.5)
    sys.exit(1)


def main(kind: str, port: str, *more: str) -> None:
    if kind == "register":
        datagrams(int(port), False).send(b"REGISTER;" + more[0].encode())
        time.sleep(60)
    elif kind == "print-time":
        print(time.time(), flush=True)
        time.sleep(60)
    elif kind == "stop":
        stop(int(port), *more)
    elif kind == "toss":
        toss(int(port), more[0])
    elif kind == "serve-coins":
        serve_coins(int(port), more[0])
    elif kind in ("daemon", "links", "database-pipe", "database-text", "quiet"):
        attack(kind, int(port), Path(more[0]))
    else:
        play(kind, int(port), more[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
