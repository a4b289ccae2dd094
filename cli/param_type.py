"""The base class of option types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """click's type, generic at run time, as click's own is since 8.4."""

        def __class_getitem__(cls, _item: Any) -> type:
            return cls
