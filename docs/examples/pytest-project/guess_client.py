"""A client that guesses the number by halving the range."""

import socket


def play(port: int, name: str) -> int:
    """Play one game, and return the number of tries."""
    with socket.create_connection(("127.0.0.1", port)) as sock, sock.makefile("rw") as lines:

        def ask(line: str) -> list[str]:
            lines.write(f"{line}\n")
            lines.flush()
            return lines.readline().split()

        ask(f"HELLO {name}")
        low, high = 1, 100
        while True:
            guess = (low + high) // 2
            match ask(f"GUESS {guess}"):
                case ["HIGHER"]:
                    low = guess + 1
                case ["LOWER"]:
                    high = guess - 1
                case ["WON", tries]:
                    return int(tries)
                case answer:
                    raise ValueError(f"unexpected answer: {answer}")
