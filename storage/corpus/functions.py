"""What the conditions of a filter call, for DuckDB: the same functions in Python as for SQLite.

It gives them whole columns, and of each call the last argument is one question for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duckdb.func import FunctionNullHandling, PythonUDFType

from kiebitz.storage.filters.sql import FUNCTIONS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Functions:
    """The functions of one connection, with what one of them has raised, of which DuckDB tells the text."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self.raised: BaseException | None = None
        for name, function in FUNCTIONS.items():
            connection.create_function(
                name,
                self._of_columns(function),
                ["VARCHAR", "VARCHAR"],
                "BOOLEAN",
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )

    def _of_columns(self, function: Callable[[str | None, str], bool]) -> Callable[[Any, Any], Any]:
        def asked(values: Any, questions: Any) -> Any:
            import pyarrow as pa

            question = questions[0].as_py()
            try:
                return pa.array([function(value, question) for value in values.to_pylist()], pa.bool_())
            except BaseException as error:
                self.raised = error
                raise

        return asked
