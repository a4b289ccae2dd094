"""Exit statuses of commands."""

from __future__ import annotations

OK, FAILED, USAGE, VIOLATIONS, INTERRUPTED = 0, 1, 2, 3, 130
"""Success, failure, wrong usage, differences or violations found, interrupted."""
