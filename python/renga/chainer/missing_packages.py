"""Packages that came with Chainer, and that its scripts import without more ado."""

from __future__ import annotations

import sys
from types import TracebackType

# The modules of the packages that ``pip install renga[chainer]`` brings.
MODULES = "PIL filelock google h5py matplotlib mock scipy six typing_extensions".split()


def explain_missing_packages() -> None:
    """Has an error that ends the program say how to install a missing package."""
    show = sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            if error.name.partition(".")[0] in MODULES:
                error.msg += ": pip install 'renga[chainer]' installs it"
        show(kind, error, traceback)

    sys.excepthook = excepthook
