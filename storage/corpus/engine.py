"""Read-only DuckDB queries over the files of a corpus, with its tables as views.

The engine runs in memory and is sandboxed: it reads only the files of the corpus and writes nothing. Thus an
untrusted query or file can at worst give wrong answers.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Self, TypeVar

import duckdb
from duckdb import DuckDBPyConnection, StatementType
from duckdb.func import FunctionNullHandling, PythonUDFType

from kiebitz.storage.corpus.layout import (
    BY_CAPTURE,
    CAPTURE,
    COLUMNS,
    PROTOCOL,
    Corpus,
    CorpusError,
    file_name,
)
from kiebitz.storage.filters.sql import FUNCTIONS

_BATCH = 2_048
"""Rows fetched from the engine at once."""

TYPES = {int: "BIGINT", str: "VARCHAR", bytes: "BLOB"}
"""Python type -> DuckDB type."""

_EXPLAIN = re.compile(
    r"\s*explain\b(\s*analyze\b|\s*\(\s*(analyze|format)\b[\w\s,]*\))?", re.IGNORECASE | re.ASCII
)
"""The prefix of an explained statement."""

_GLOB = re.compile(r"([*?\[])")

T = TypeVar("T")


class FilterFunctions:
    """The functions that filter conditions call, registered with DuckDB, and the last exception of one.

    They are the same Python functions as for SQLite. DuckDB passes whole columns; the second one holds the
    same question in each row. DuckDB reports only the text of an exception, so the exception is kept here.
    """

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
        def call(values: Any, questions: Any) -> Any:
            import pyarrow as pa

            question = questions[0].as_py()
            try:
                return pa.array([function(value, question) for value in values.to_pylist()], pa.bool_())
            except BaseException as error:
                self.raised = error
                raise

        return call


class QueryError(CorpusError):
    """An invalid query; `excerpt` shows the engine's excerpt of it."""

    is_usage = True

    def __init__(self, message: str, below: Sequence[str]) -> None:
        super().__init__(message)
        self._below = below

    def excerpt(self) -> list[str]:
        """Return the line of the query and the caret below it, if there are any."""
        return [*self._below]


class QueryResult(NamedTuple):
    """The result of a query: the names of its columns, and its rows, which can be iterated once."""

    names: list[str]
    rows: Iterator[tuple[Any, ...]]


class Engine:
    """A context manager that runs queries on a corpus, one at a time; Ctrl-C interrupts a query.

    Raises CorpusError.
    """

    def __init__(self, corpus: Corpus) -> None:
        corpus.check_files()
        self.corpus = corpus
        self._temporary = tempfile.TemporaryDirectory(prefix="kiebitz-")
        self._thread = ThreadPoolExecutor(1, "duckdb")
        self._connection = duckdb.connect(":memory:")
        self._functions = FilterFunctions(self._connection)
        try:
            self._prepare(os.path.abspath(corpus.path))
        except duckdb.Error as error:
            self.close()
            raise self._corpus_error(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        self._thread.shutdown()
        self._connection.close()
        self._temporary.cleanup()

    def captures(self) -> int:
        """Return the number of captures in the corpus."""
        ((count,),) = self.rows("SELECT count(*) FROM sessions")
        return int(count)

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that Kiebitz itself wrote."""
        return self._answer(query, parameters).rows

    def ask(self, query: str) -> QueryResult:
        """Return the answer to a user's query, which must be one SELECT, or EXPLAIN of one.

        Raises QueryError.
        """
        kind = self._kind(query)
        if kind is StatementType.EXPLAIN:
            # EXPLAIN ANALYZE executes the statement behind it, whatever it is.
            kind = self._kind(query[match.end() :] if (match := _EXPLAIN.match(query)) else "")
        if kind is not StatementType.SELECT:
            raise QueryError("a corpus is read-only: write one SELECT, or EXPLAIN of one", ())
        try:
            return self._answer(query, ())
        except CorpusError as error:
            if isinstance(error.__cause__, duckdb.Error):
                raise _query_error(error.__cause__) from error.__cause__
            raise

    def _kind(self, query: str) -> StatementType | None:
        """Return the type of a query that is one statement, else None."""
        try:
            query.encode()
        except UnicodeEncodeError as error:
            raise QueryError("the query is not UTF-8", ()) from error
        try:
            statements = self._connection.extract_statements(query)
        except duckdb.Error as error:
            raise _query_error(error) from error
        return statements[0].type if len(statements) == 1 else None

    def _answer(self, query: str, parameters: Sequence[Any]) -> QueryResult:
        # An open answer keeps its connection busy.
        cursor = self._connection.cursor()
        try:
            reader = self._in_thread(
                cursor, lambda: cursor.sql(query, params=list(parameters)).to_arrow_reader(_BATCH)
            )
        except BaseException:
            cursor.close()
            raise
        return QueryResult(reader.schema.names, self._read(cursor, reader))

    def _read(self, cursor: DuckDBPyConnection, reader: Any) -> Iterator[tuple[Any, ...]]:
        try:
            while (batch := self._in_thread(cursor, lambda: next(reader, None))) is not None:
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        finally:
            cursor.close()

    def _in_thread(self, cursor: DuckDBPyConnection, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, as DuckDB itself ignores Ctrl-C. Raises CorpusError."""
        future = self._thread.submit(work)
        try:
            return future.result()
        except (duckdb.Error, OSError) as error:
            # Arrow wraps DuckDB's errors in OSError.
            raise self._corpus_error(error) from error
        except BaseException:
            while not future.done():
                cursor.interrupt()
                wait([future], 0.1)
            raise

    def _prepare(self, folder: str) -> None:
        """Create a view of each table, then restrict file access. Raises duckdb.Error."""
        # Brackets make a special character literal in a glob pattern.
        inside = _GLOB.sub(r"[\1]", folder)
        for table, columns in COLUMNS.items():
            by = [CAPTURE] if table == BY_CAPTURE else [CAPTURE, PROTOCOL]
            pattern = os.path.join(inside, *(f"{key}=*" for key in by), file_name(table))
            found = self._connection.execute("SELECT 1 FROM glob(?) LIMIT 1", [pattern]).fetchone()
            if found is None:
                typed = [f"{key} VARCHAR" for key in by]
                typed += [f'"{column}" {TYPES[kind]}' for column, kind in columns.items()]
                self._connection.execute(f"CREATE TABLE {table} ({', '.join(typed)})")
                continue
            names = ", ".join([*by, *(f'"{column}"' for column in columns)])
            parted = ", ".join(f"{key}: VARCHAR" for key in by)
            quoted = pattern.replace("'", "''")
            self._connection.execute(
                f"CREATE VIEW {table} AS SELECT {names} FROM read_parquet('{quoted}',"
                f" hive_partitioning = true, hive_types = {{{parted}}})"
            )
        settings: dict[str, str | list[str] | bool] = {
            "temp_directory": self._temporary.name,
            # By default it may fill 90 % of the disk.
            "max_temp_directory_size": f"{shutil.disk_usage(self._temporary.name).free // 2} bytes",
            # DuckDB checks the glob pattern itself as if it were a path, too.
            "allowed_directories": [os.path.join(folder, ""), os.path.join(inside, "")],
            "enable_external_access": False,
            "lock_configuration": True,
        }
        for setting, value in settings.items():
            self._connection.execute(f"SET {setting} = ?", [value])

    def _corpus_error(self, error: Exception) -> Exception:
        raised, self._functions.raised = self._functions.raised, None
        if raised is not None and isinstance(raised, Exception):
            return raised
        return CorpusError(f"{self.corpus.path}: {str(error).splitlines()[0]}")


def _query_error(error: duckdb.Error) -> QueryError:
    first, *rest = str(error).splitlines()
    return QueryError(first.partition(" Error: ")[2] or first, [line for line in rest if line.strip()])
