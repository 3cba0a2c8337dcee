"""Downloads: verified, cached, and made by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, Callable, TypeVar

from renga.serializers.atomic import atomic_write, flush_to_disk

_Content = TypeVar("_Content")
_TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 18
_dataset_root: str | None = None


def get_dataset_root() -> str:
    """The folder of all data sets: ``$CHAINER_DATASET_ROOT`` or ``~/.chainer/dataset``.

    A folder given to ``set_dataset_root`` has precedence.
    """
    if _dataset_root is not None:
        return _dataset_root
    default = os.path.join(os.path.expanduser("~"), ".chainer", "dataset")
    return os.environ.get("CHAINER_DATASET_ROOT", default)


def set_dataset_root(path: str) -> None:
    """Make ``path`` the folder of all data sets in this process."""
    global _dataset_root
    _dataset_root = path


def get_dataset_directory(dataset_name: str, create_directory: bool = True) -> str:
    """The folder of one data set, created unless ``create_directory`` is off."""
    path = os.path.join(get_dataset_root(), dataset_name)
    if create_directory:
        os.makedirs(path, exist_ok=True)
    return path


def cached_download(url: str) -> str:
    """The path of a cached copy of ``url``, downloaded if needed.

    Raises:
        OSError: it cannot be downloaded; the message says where to put the file.
    """
    return download([url], _cache_path(url))


def find_cached(url: str) -> str | None:
    """The path of the copy of ``url`` that ``cached_download`` has kept, if any."""
    path = _cache_path(url)
    return path if os.path.exists(path) else None


def _cache_path(url: str) -> str:
    """Where ``cached_download`` has its copy, here as in Chainer."""
    name = hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    return os.path.join(get_dataset_root(), "_dl_cache", name)


def cache_or_load_file(
    path: str, creator: Callable[[str], _Content], loader: Callable[[str], _Content]
) -> _Content:
    """``loader(path)``, or, if there is no such file, ``creator(new_path)``.

    ``creator`` writes the file at ``new_path`` and returns the content. The file
    appears at ``path`` once it is complete; of several processes one creates it, the
    others wait.
    """
    if os.path.exists(path):
        return loader(path)
    with _locked(path):
        if os.path.exists(path):
            return loader(path)
        folder, name = os.path.split(os.path.abspath(path))
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
            new = os.path.join(temporary, name)
            content = creator(new)
            flush_to_disk(new)
            os.replace(new, path)
            flush_to_disk(folder)
        return content


def download(urls: Sequence[str], path: str, checksum: str | None = None) -> str:
    """Downloads a file to ``path`` from the first mirror that has it; returns ``path``.

    Without a file there, the copy that ``cached_download`` has of one of the mirrors is
    the result, as it is: Chainer has made it. ``checksum`` is ``"sha256:…"`` or another
    algorithm of hashlib. An existing file is verified and kept. Of several processes
    one downloads, the others wait.

    Raises:
        ValueError: an existing file is not the expected one.
        OSError: no mirror answers; the message says where to put the file.
    """
    if not os.path.exists(path):
        for copy in map(_cache_path, urls):
            if copy != path and os.path.exists(copy):
                return copy
        with _locked(path):
            if not os.path.exists(path):
                _fetch(urls, path, checksum)
                return path
    if checksum is not None:
        with open(path, "rb") as file:
            found = _digest(file, checksum)
        if found != checksum:
            raise ValueError(
                f"download: {path}: expected {checksum}, got {found}; "
                "remove the file to fetch it again"
            )
    return path


def _fetch(urls: Sequence[str], path: str, checksum: str | None) -> None:
    from http.client import HTTPException

    reasons = []
    for url in urls:
        try:
            with atomic_write(path, "w+b") as file:
                _copy(url, file)
                file.seek(0)
                found = checksum and _digest(file, checksum)
                if found != checksum:
                    raise OSError(f"expected {checksum}, got {found}")
            return
        except (OSError, HTTPException) as error:
            reasons.append(f"\n  {url}: {error}")
    name = urls[0].rpartition("/")[2]
    raise OSError(
        f"download: cannot fetch {name}:{''.join(reasons)}\n"
        f"Without a network, put the file {name} at {path}"
    )


def _copy(url: str, file: IO[bytes]) -> None:
    # Imported late: only a download needs them, and they are slow to import.
    from urllib.request import Request, urlopen

    request = Request(url, headers={"User-Agent": "renga"})
    with urlopen(request, timeout=_TIMEOUT) as response:
        total = int(response.headers.get("Content-Length") or 0)
        done = 0
        with _progress(url, total) as update:
            while block := response.read(_BLOCK):
                file.write(block)
                done += len(block)
                update(done)
    if total and done != total:
        raise OSError(f"expected {total} bytes, got {done}")


@contextlib.contextmanager
def _progress(url: str, total: int) -> Iterator[Callable[[int], None]]:
    """Prints what is downloaded, and on a terminal also the progress."""
    is_terminal = sys.stderr.isatty()
    last = float("-inf")

    def update(done: int) -> None:
        nonlocal last
        if is_terminal and (done == total or time.monotonic() - last > 0.1):
            last = time.monotonic()
            of = f" of {total / 1e6:.1f} MB, {done / total:.0%}" if total else " MB"
            print(f"\r  {done / 1e6:.1f}{of}", end="", file=sys.stderr, flush=True)

    print(f"Downloading {url}", file=sys.stderr, flush=True)
    try:
        yield update
    finally:
        if is_terminal:
            print(file=sys.stderr)


def _digest(file: IO[bytes], checksum: str) -> str:
    """The checksum of a file, by the algorithm that ``checksum`` begins with."""
    algorithm = checksum.partition(":")[0]
    digest = hashlib.new(algorithm, usedforsecurity=False)
    while block := file.read(_BLOCK):
        digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Lock of ``path`` between processes and threads."""
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f".{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released on close, even of a killed process
        yield
