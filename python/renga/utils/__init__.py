"""Chainer's ``utils``: array checks, window sizes and small NumPy functions."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from renga.utils import (
    argument,
    array,
    conv,
    conv_nd,
    imgproc,
    sparse,
    type_check,
    walker_alias,
)
from renga.utils.array import force_array, force_type, size_of_shape, sum_to
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from renga.utils.experimental import experimental
from renga.utils.meta import enable_final, final
from renga.utils.nondeterministic import nondeterministic
from renga.utils.sparse import CooMatrix, get_order, to_coo
from renga.utils.walker_alias import WalkerAlias

__all__ = [
    "CooMatrix",
    "WalkerAlias",
    "argument",
    "array",
    "conv",
    "conv_nd",
    "enable_final",
    "experimental",
    "final",
    "force_array",
    "force_type",
    "get_conv_outsize",
    "get_deconv_outsize",
    "get_order",
    "imgproc",
    "nondeterministic",
    "size_of_shape",
    "sparse",
    "sum_to",
    "tempdir",
    "to_coo",
    "type_check",
    "walker_alias",
]


@contextlib.contextmanager
def tempdir(**kwargs: Any) -> Iterator[str]:
    """Context with a new temporary directory, removed at its end."""
    ignore_errors = kwargs.pop("ignore_errors", False)
    path = tempfile.mkdtemp(**kwargs)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=ignore_errors)
