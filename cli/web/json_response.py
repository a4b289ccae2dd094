"""JSON responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response


class JsonResponse(Response):
    """A record as JSON."""

    media_type = "application/json"

    def __init__(self, answer: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(msgspec.json.encode(answer), status, headers)
