"""Build hook: a wheel contains the rooms; an editable installation finds them through links in `kiebitz/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("cli", "dissectors", "proxy", "storage")


class RoomLinks(BuildHookInterface[Any]):
    """Add the rooms to a wheel; for an editable installation, create links to them.

    Links are missing in a source archive, and some versions of git write them as text files.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update({room: f"kiebitz/{room}" for room in ROOMS})
            return
        for room in ROOMS:
            link = Path(self.root, "kiebitz", room)
            if link.is_dir():
                continue
            try:
                link.unlink(missing_ok=True)
                link.symlink_to(Path("..", room), target_is_directory=True)
            except OSError as error:
                raise RuntimeError(
                    f"{link} must be a symbolic link to ../{room} and cannot be created ({error.strerror}): "
                    "clone with `git clone -c core.symlinks=true`, or install without --editable"
                ) from error
