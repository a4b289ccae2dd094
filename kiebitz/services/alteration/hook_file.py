"""Reading and static checks of a hook's file, so that mistakes are reported before anything runs."""

from __future__ import annotations

import ast
import os
import stat
import warnings
from collections.abc import Iterator

from kiebitz.dissectors.errors import KiebitzError

SIGNATURES = {
    "message": "message(message, table)",
    "connected": "connected(stream)",
    "closed": "closed(stream)",
}
"""Signatures of a hook's functions by name; a hook has at least one of them."""

_MAX_BYTES = 1 << 20

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


class HookError(KiebitzError):
    """An unusable hook; the text names the file, the line and the reason."""

    is_usage = True


def read_hook(path: str) -> str:
    """Return the source of a hook that compiles. Raises HookError."""
    try:
        # Opening a pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise HookError(
                    f"{path} is not a file: name a Python file with a function {SIGNATURES['message']}"
                )
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise HookError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise HookError(f"{path!r} is not a file name") from error
    if len(data) > _MAX_BYTES:
        raise HookError(f"{path} is larger than {_MAX_BYTES >> 20} MiB: name the hook's file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HookError(f"{path}, line {line}: this is not UTF-8") from error
    _check(path, text)
    return text


def _check(path: str, text: str) -> None:
    try:
        with warnings.catch_warnings():
            # Warnings are printed when the hook is run.
            warnings.simplefilter("ignore")
            page = ast.parse(text, path)
            compile(page, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = path if error.lineno is None else f"{path}, line {error.lineno}"
        raise HookError(f"{place}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise HookError(f"{path}: {error or 'it cannot be read as Python'}") from error
    for function in page.body:
        if isinstance(function, ast.AsyncFunctionDef) and function.name in SIGNATURES:
            raise HookError(
                f"{path}, line {function.lineno}: {function.name} must be a def, not an async def"
            )
        if not isinstance(function, ast.FunctionDef) or function.name != "message":
            continue
        # A decorator may replace the function.
        if not function.decorator_list and not any(map(_returns_value, _nodes_in(function))):
            raise HookError(
                f"{path}, line {function.lineno}: message never returns a value, so every message would "
                "be dropped: end it with return message, or with return None to drop all"
            )


def _nodes_in(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of nested functions and classes."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, _Scope):
            yield from _nodes_in(node)


def _returns_value(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom) or (
        isinstance(node, ast.Return) and node.value is not None
    )
