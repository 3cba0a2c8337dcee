"""The package ``chainer``: renga's, with the version of Chainer that it stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import renga

#: The version whose behaviour the names have; programs branch on it.
VERSION = "7.8.1"


class Package(ModuleType):
    """A module whose attributes are those of renga, to read, set and delete.

    Only what describes the module itself, such as ``__name__``, is its own.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, renga.__doc__)
        self.__version__ = VERSION

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return vars(renga)

    @property
    def __all__(self) -> list[str]:
        """All public names but ``renga.chainer``, which would hide this package."""
        return [name for name in dir(renga) if name[0] != "_" and name != "chainer"]

    def __getattr__(self, name: str) -> Any:
        return getattr(renga, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(renga, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(renga, name)

    def __dir__(self) -> list[str]:
        return dir(renga)


class PackageMetadata(Distribution):
    """What ``importlib.metadata`` tells of an installed Chainer."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: chainer\nVersion: {VERSION}\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(str(renga.__file__)).parent / path


def find_distributions(name: str | None) -> Iterator[Distribution]:
    """Chainer's distribution, if it is ``name`` or if all are asked for by None."""
    if name in (None, "chainer"):
        yield PackageMetadata()
