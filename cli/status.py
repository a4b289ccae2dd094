"""Exit statuses: how a command has ended, for the shell."""

from __future__ import annotations

OK, FAILED, USAGE, VIOLATIONS, INTERRUPTED = 0, 1, 2, 3, 130
"""Well, failed, wrong usage, differences or violations found, interrupted."""
