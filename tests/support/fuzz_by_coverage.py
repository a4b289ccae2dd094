"""Fuzzing by hand, led by the code that an input reaches: `python fuzz_by_coverage.py TARGET`, with atheris.

Targets are those of `fuzz_targets.py`; what follows the name goes to libFuzzer, such as a folder that keeps
the inputs, or `-max_total_time=300`. What it finds becomes a case where its part is tested.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["dissectors", "proxy"]):
    from fuzz_targets import TARGETS, watched


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    target = TARGETS[sys.argv.pop(1)]
    # What is recorded is read before the fuzzer looks.
    target(b"")

    def once(data: bytes) -> None:
        with watched():
            target(data)

    atheris.Setup(sys.argv, once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
