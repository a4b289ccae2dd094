"""The command `kiebitz`, also as `python -m kiebitz`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command `kiebitz` and exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules are loaded, Ctrl-C ends the process: a KeyboardInterrupt may be swallowed there.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kiebitz.cli.main import main

    main()


if __name__ == "__main__":
    main()
