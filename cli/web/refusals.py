"""Refusals of API requests: the status and the record of each error, however the answer is sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from kiebitz.cli.web import records
from kiebitz.cli.web.reader import NotThereError, Reader
from kiebitz.cli.web.request_params import ApiRequest, BadRequestError, ForbiddenError
from kiebitz.cli.web.routes import Endpoint
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import FilterError

STATUS: dict[type[Exception], int] = {
    BadRequestError: 400,
    FilterError: 400,
    ForbiddenError: 403,
    NotThereError: 404,
    KiebitzError: 503,
    sqlite3.Error: 503,
}


def answered(endpoint: Endpoint, params: ApiRequest, reader: Reader) -> Any:
    """Return the response to a request."""
    resolve_player(params, reader)
    return endpoint.ask(reader, params)


def resolve_player(params: ApiRequest, reader: Reader) -> None:
    """Determine the player whose view is requested. Raises NotThereError."""
    if params.grant.player is not None:
        params.player = reader.label(params.grant)
    elif params.player is not None:
        reader.check_player_known(params.player)


def refusal(
    error: Exception, statuses: Mapping[type[Exception], int] = STATUS
) -> tuple[int, records.Refusal]:
    """Return the status and the record of an error of one of these kinds."""
    status = next(code for kind, code in statuses.items() if isinstance(error, kind))
    if isinstance(error, FilterError):
        return status, records.Refusal(str(error), error.position, error.length)
    return status, records.Refusal(str(error))
