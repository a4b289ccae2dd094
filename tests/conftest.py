"""What holds for all tests: none of them is timed."""

from __future__ import annotations

from hypothesis import settings

# All else stays as it was: for CI, hypothesis makes up the same cases each time.
settings.register_profile("kiebitz", parent=settings(), deadline=None)
settings.load_profile("kiebitz")
