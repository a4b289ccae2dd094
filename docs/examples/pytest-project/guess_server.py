"""A server for the number-guessing game: `python guess_server.py PORT`."""

import random
import socketserver
import sys


class Game(socketserver.StreamRequestHandler):
    """One player's game."""

    def handle(self) -> None:
        number, tries = random.randint(1, 100), 0
        for line in self.rfile:
            words = line.decode(errors="replace").split()
            match words:
                case ["HELLO", name]:
                    self.say(f"WELCOME {name}")
                case ["GUESS", text] if text.isdecimal():
                    tries += 1
                    guess = int(text)
                    if guess == number:
                        self.say(f"WON {tries}")
                        return
                    self.say("HIGHER" if guess < number else "LOWER")
                case _:
                    self.say("ERROR what do you mean?")

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    """The server; each client has a thread."""

    allow_reuse_address = daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Game) as server:
        server.serve_forever()
