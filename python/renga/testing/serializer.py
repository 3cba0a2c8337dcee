"""Objects saved to a file and loaded into others."""

from __future__ import annotations

import os
import tempfile
from typing import Callable

from renga import serializers


def save_and_load(
    src: object,
    dst: object,
    filename: str,
    saver: Callable[..., object],
    loader: Callable[..., object],
) -> None:
    """Saves ``src`` to a file of that name and loads it into ``dst``."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, filename)
        saver(path, src)
        loader(path, dst)


def save_and_load_npz(src: object, dst: object) -> None:
    """Through an npz file."""
    save_and_load(src, dst, "tmp.npz", serializers.save_npz, serializers.load_npz)


def save_and_load_hdf5(src: object, dst: object) -> None:
    """Through an HDF5 file."""
    save_and_load(src, dst, "tmp.h5", serializers.save_hdf5, serializers.load_hdf5)
