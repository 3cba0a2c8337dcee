"""Folders of the user."""

from __future__ import annotations

import os
import tempfile


def home() -> str:
    """The home folder, without whose name MPI does not begin; any for users without."""
    folder = os.path.expanduser("~")
    return tempfile.gettempdir() if folder == "~" else folder
