"""The page as a static site that runs Kiebitz in the browser, for any web server that serves files.

A site has the page, Python for the browser (Pyodide), Kiebitz and the libraries it needs there, and captures
as examples. Foreign parts are downloaded once from their registries and verified by their digests; the site
itself never asks another host for anything.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib.metadata import distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from kiebitz.cli.render.svg.theme import page_style
from kiebitz.cli.web.page import altered_page, page_files
from kiebitz.dissectors import registry
from kiebitz.dissectors.errors import KiebitzError

OnProgress = Callable[[int, int | None], None]
"""Called with the number of bytes done, and of all."""


class SiteError(KiebitzError):
    """A site cannot be written."""


class Part(NamedTuple):
    """A foreign part of the site: its address, its SHA-256 digest and its licence."""

    name: str
    address: str
    digest: str
    licence: str


PYODIDE = Part(
    "Pyodide 314.0.7",
    "https://registry.npmjs.org/pyodide/-/pyodide-314.0.7.tgz",
    "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    "Mozilla Public License 2.0; with CPython 3.14, Python Software Foundation License",
)
MSGSPEC = Part(
    "msgspec 0.22.0",
    "https://files.pythonhosted.org/packages/75/5d/c0e6bdb81a87f6bd56a663a330c271af7670490c80d8d635d9fa21ad1adf/"
    "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
    "BSD 3-Clause",
)
_OF_PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
_MAX_PART = 50_000_000
"""Maximum size in bytes of a downloaded part."""

_LIBRARIES = ("click", "lark", "rich")
"""Distributions in pure Python that Kiebitz imports in the browser."""

LEFT_OUT = (
    "cli/commands",
    "cli/interop",
    "cli/mitm",
    "cli/probe",
    "cli/tui",
    "cli/web/in_browser",
    "dissectors/drafting",
    "dissectors/probing",
    "kiebitz/services/interop",
    "kiebitz/services/probing",
    "proxy/mitmproxy",
    "proxy/taps",
)
"""Folders of Kiebitz that nothing in the browser imports."""

_ENDINGS = (".py", ".toml", ".lark", ".lua", ".sql", ".css", ".js", ".html", ".svg")
"""Endings of the files of Kiebitz and its libraries that are read at run time."""

_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; style-src 'self'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Content security policy of the page, and of its worker, which is made from a blob: and so inherits it."""

_SERVED_NOTE = (
    "The computer that serves this page opens them, for the full link only, and removes them when it ends."
)
"""The sentence of the served page that this site has another one for."""

_SAME_DATE = (2020, 1, 1, 0, 0, 0)
"""Date of all members of the archive, so that the same version always gives the same bytes."""


def write_site(folder: str, examples: Sequence[str], on_progress: OnProgress) -> None:
    """Write a site into a new or empty folder, with captures or databases as examples.

    Without examples, those of the built-in protocols are taken. Raises SiteError, OSError.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise SiteError(f"{folder} is not an empty folder")
    contents = {**_page(), **_python(on_progress), **_examples(examples)}
    digest = hashlib.sha256(b"".join(contents[name] for name in sorted(contents))).hexdigest()[:16]
    contents["service_worker.js"] = _service_worker(digest, ["./", *sorted(contents.keys() - {"index.html"})])
    for name, data in contents.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _page() -> dict[str, bytes]:
    """Return the files of the page."""
    own = files("kiebitz.cli.web").joinpath("in_browser")
    found = {name: data for name, data in page_files().items() if name not in ("app.js", "source_server.js")}
    for name in ("site.js", "file_store.js", "source_worker.js", "worker.js"):
        found[name] = own.joinpath(name).read_bytes()
    found["theme.css"] = page_style().encode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    changes = (
        ("<head>", f"<head>\n{policy}"),
        ('src="app.js"', 'src="site.js"'),
        (_SERVED_NOTE, "Kiebitz runs in this page: your files are sent nowhere."),
        (
            "  <details><summary>A protocol",
            own.joinpath("opener.html").read_text() + "  <details><summary>A protocol",
        ),
        ('<html lang="en">', '<html lang="en" class="is-empty is-opening">'),
    )
    return found | {"index.html": altered_page(changes).encode()}


def _python(on_progress: OnProgress) -> dict[str, bytes]:
    """Return Python for the browser, Kiebitz, and the licences of the foreign parts."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(_downloaded(PYODIDE, on_progress))) as packed:
        for name in _OF_PYODIDE:
            member = packed.extractfile(f"package/{name}")
            assert member is not None
            found[f"pyodide/{name}"] = member.read()
    found["msgspec.whl"] = _downloaded(MSGSPEC, on_progress)
    found["kiebitz.zip"] = build_archive()
    found["licences.txt"] = _licences().encode()
    return found


def _downloaded(part: Part, on_progress: OnProgress) -> bytes:
    """Return a part's bytes, from its registry or as they were downloaded before. Raises SiteError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kiebitz")
    kept = cache / part.address.rpartition("/")[2]
    if kept.is_file() and _is_whole(data := kept.read_bytes(), part):
        return data
    chunks: list[bytes] = []
    try:
        with urllib.request.urlopen(part.address, timeout=60) as response:
            size = int(response.headers.get("Content-Length") or 0) or None
            done = 0
            while chunk := response.read(1 << 16):
                chunks.append(chunk)
                done += len(chunk)
                if done > _MAX_PART:
                    raise SiteError(f"{part.address} is larger than {_MAX_PART:,} bytes")
                on_progress(done, size)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise SiteError(f"{part.name} cannot be downloaded from {part.address}: {error}") from error
    data = b"".join(chunks)
    if not _is_whole(data, part):
        raise SiteError(f"{part.address} is not {part.name}: its SHA-256 digest is another one")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
        file.write(data)
    os.replace(file.name, kept)
    return data


def _is_whole(data: bytes, part: Part) -> bool:
    return hashlib.sha256(data).hexdigest() == part.digest


def build_archive() -> bytes:
    """Return Kiebitz and its libraries as a ZIP archive: what the browser can use, by folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in _modules():
            archive.writestr(zipfile.ZipInfo(name, _SAME_DATE), data, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def _modules() -> Iterator[tuple[str, bytes]]:
    left_out = tuple(f"kiebitz/{folder.removeprefix('kiebitz/')}/" for folder in LEFT_OUT)
    for name, file in sorted(_walk(files("kiebitz"), "kiebitz/")):
        if not name.startswith(left_out):
            yield name, file.read_bytes()
    for library in _LIBRARIES:
        found = distribution(library)
        for path in found.files or ():
            if path.suffix in _ENDINGS and ".." not in path.parts:
                yield path.as_posix(), path.read_binary()
    metadata = distribution("kiebitz")
    yield f"kiebitz-{metadata.version}.dist-info/METADATA", str(metadata.metadata).encode()


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _walk(each, f"{path}{each.name}/")
        elif each.name.endswith(_ENDINGS):
            yield path + each.name, each


def _licences() -> str:
    lines = [f"{part.name}: {part.licence}\n{part.address}\n" for part in (PYODIDE, MSGSPEC)]
    for library in ("kiebitz", *_LIBRARIES):
        metadata = distribution(library).metadata
        licence = " ".join(metadata.get_all("License-Expression") or metadata.get_all("License") or ())
        lines.append(f"{library} {metadata['Version']}: {licence}\nhttps://pypi.org/project/{library}/\n")
    return "\n".join(lines)


def _examples(given: Sequence[str]) -> dict[str, bytes]:
    """Return the examples, and the list of them for the page."""
    found: dict[str, bytes] = {}
    titles: dict[str, str] = {}
    if given:
        for path in given:
            name = os.path.basename(path)
            found[f"examples/{name}"] = Path(path).read_bytes()
            titles[name] = name.split(".")[0]
    else:
        for dissector in registry.BUILT_IN:
            sample = files("kiebitz.dissectors.protocols").joinpath(dissector.protocol, "sample.pcapng.gz")
            found[f"examples/{dissector.protocol}.pcapng.gz"] = sample.read_bytes()
            titles[f"{dissector.protocol}.pcapng.gz"] = dissector.grammar.title
    return found | {"examples.json": json.dumps(titles).encode()}


def _service_worker(version: str, names: Sequence[str]) -> bytes:
    text = files("kiebitz.cli.web").joinpath("in_browser", "service_worker.js").read_text()
    return text.replace("{version}", version).replace("FILES = []", f"FILES = {json.dumps(names)}").encode()
