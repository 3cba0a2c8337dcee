"""Activations of which a rank has a shard, and which tell what a program reads of them.

Between two links of a model, an activation may be a shard. Functions and links know
their own shards. What the program reads of it in Python, a shape or elements, is that
of the whole where channels or samples are sharded::

    h = F.relu(self.conv(x))
    h = h / numpy.sqrt(h.shape[1])  # the number of all channels

The handler of calls says what it is: its ``whole_of`` is told where the program reads.
"""

from __future__ import annotations

import math
import sys
from types import CodeType
from typing import Any

import numpy

from renga import _core
from renga.backends import cuda
from renga.core.around_call import inner_handler, variables_in
from renga.core.variable import Variable, as_array

# The code that reads, and where in it.
ReadingSite = tuple[CodeType, int]

_array: Any = vars(_core.Variable)["array"]
_shape: Any = vars(_core.Variable)["shape"]
_array_of_shard: Any = property


class ActivationShard(Variable):
    """A variable that is a shard while its model runs.

    It is made of the Variable that a link or a function returns. Every rank has to read
    it, as ranks may tell each other what they have.
    """

    __slots__ = ()

    def _get_array(self) -> Any:
        whole = _whole_read(self)
        return _array.__get__(self) if whole is None else whole.array()

    def _set_array(self, value: Any) -> None:
        _array.__set__(self, value)

    array = data = _array_of_shard(_get_array, _set_array)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the whole, to the program."""
        whole = _whole_read(self)
        shape: tuple[int, ...]
        shape = _shape.__get__(self) if whole is None else whole.shape()
        return shape

    @property
    def size(self) -> int:
        """The number of elements of the whole, to the program."""
        whole = _whole_read(self)
        return math.prod(_shape.__get__(self) if whole is None else whole.shape())

    def __len__(self) -> int:
        whole = _whole_read(self)
        return int((_shape.__get__(self) if whole is None else whole.shape())[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = _whole_read(self)
        if whole is None:
            return super().__array__(dtype, copy)
        array = cuda.to_cpu(whole.array())
        return numpy.array(array, dtype) if copy else numpy.asarray(array, dtype)


def _whole_read(x: Variable) -> Any:
    """What reads the whole of ``x``, if the caller of a property is the program."""
    frame = sys._getframe(2)
    if frame.f_code is as_array.__code__ and frame.f_back is not None:
        frame = frame.f_back
    module: str = frame.f_globals.get("__name__", "")
    if module.partition(".")[0] == "renga":
        return None
    whole = getattr(inner_handler(), "whole_of", None)
    return None if whole is None else whole(x, (frame.f_code, frame.f_lasti))


def become_shards(value: object) -> None:
    """Makes shards of the Variables in a link's or a function's result."""
    for y in variables_in(value):
        if type(y) is Variable:
            y.__class__ = ActivationShard
