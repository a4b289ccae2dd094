"""Docstrings: public methods have one, unless they override a method of a base class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pkgutil import walk_packages

import kiebitz

CALLBACKS = ("_", "on_", "action_", "watch_", "compose")
"""Prefixes of the names of private methods, and of methods that Textual calls by their names."""


def _public_classes() -> Iterator[type]:
    """Yield the public classes of all modules, without those that need mitmproxy."""
    for module in walk_packages(kiebitz.__path__, "kiebitz."):
        if ".mitm" in module.name:
            continue
        for value in vars(import_module(module.name)).values():
            if inspect.isclass(value) and value.__module__ == module.name and value.__name__[0] != "_":
                yield value


def _function(attribute: object) -> object:
    """Return the function of a method, a property or a cached property."""
    if isinstance(attribute, property):
        return attribute.fget
    if isinstance(attribute, cached_property):
        return attribute.func
    return getattr(attribute, "__func__", attribute)


def _undocumented(owner: type) -> Iterator[str]:
    for name, attribute in vars(owner).items():
        function = _function(attribute)
        if not inspect.isfunction(function) or function.__module__ != owner.__module__:
            continue
        overrides = any(name in vars(base) for base in owner.__mro__[1:])
        if not name.startswith(CALLBACKS) and not overrides and not function.__doc__:
            yield f"{owner.__module__}.{owner.__qualname__}.{name}"


def test_each_public_method_has_a_docstring() -> None:
    classes = list(_public_classes())
    assert len(classes) > 500
    assert not [method for owner in classes for method in _undocumented(owner)]
