"""Build hook: a wheel contains the rooms; an editable installation finds them through links in `kiebitz/`.

With KIEBITZ_COMPILE=1 in the environment a wheel also contains extension modules, made by Cython from the
unchanged sources that pyproject.toml names, for this Python and platform. Python prefers them to the sources.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("cli", "dissectors", "proxy", "storage")
EXAMPLES = ("nim21.toml", "roborally.toml")


class RoomLinks(BuildHookInterface[Any]):
    """Add the rooms to a wheel; for an editable installation, create links to them.

    Links are missing in a source archive, and some versions of git write them as text files.
    """

    def dependencies(self) -> list[str]:
        return ["cython>=3.1", "setuptools>=77.0.3"] if _is_compiling() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update({room: f"kiebitz/{room}" for room in ROOMS})
            examples = {f"docs/examples/{name}": f"kiebitz/services/examples/{name}" for name in EXAMPLES}
            build_data["force_include"].update(examples)
            if _is_compiling():
                self._compile(build_data)
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

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if folder := build_data.pop("kiebitz_compiled", None):
            shutil.rmtree(folder)

    def _compile(self, build_data: dict[str, Any]) -> None:
        """Add an extension module beside each source that the configuration names."""
        from Cython.Build import cythonize
        from setuptools import Extension
        from setuptools.command.build_ext import build_ext
        from setuptools.dist import Distribution

        # Cython needs the packages as one tree without links.
        folder = build_data["kiebitz_compiled"] = tempfile.mkdtemp()
        package = Path(folder, "kiebitz")
        shutil.copytree(Path(self.root, "kiebitz"), package, ignore=shutil.ignore_patterns(*ROOMS))
        for room in ROOMS:
            shutil.copytree(Path(self.root, room), package / room)
        sources = {path for glob in self.config["compiled"] for path in package.glob(glob)}
        sources -= {path for glob in self.config["not-compiled"] for path in package.glob(glob)}
        count = os.cpu_count() or 1
        with chdir(folder):
            names = [path.relative_to(folder) for path in sorted(sources) if path.name != "__init__.py"]
            modules = cythonize(
                [
                    Extension(
                        ".".join(name.with_suffix("").parts), [str(name)], extra_compile_args=["-O2", "-g0"]
                    )
                    for name in names
                ],
                # Annotations are for mypy: taken as declarations, they would refuse subclasses and plug-ins.
                compiler_directives={"language_level": "3", "annotation_typing": False},
                nthreads=count,
                quiet=True,
            )
            command = build_ext(Distribution({"ext_modules": modules}))
            command.inplace, command.parallel = True, count
            command.ensure_finalized()
            command.run()
        made = {str(path): str(path.relative_to(folder)) for path in package.rglob("*.so")}
        build_data["force_include"].update(made)
        build_data["pure_python"], build_data["infer_tag"] = False, True


def _is_compiling() -> bool:
    return os.environ.get("KIEBITZ_COMPILE", "0") not in ("", "0")
