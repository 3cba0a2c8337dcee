"""Weights that make the mean over ranks a mean over samples."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga.core.around_call import hearing_counted

UNKNOWN_SAMPLES = -1


def number_of_samples(
    args: Sequence[object], kwargs: Mapping[str, object]
) -> int | None:
    """The number of samples in the arguments of a loss function.

    It is the length of the first axis of the first array, which may be inside
    dictionaries, tuples and lists; of a list of sequences, one for each sample, its
    length. Where integer labels fit the second axis of that array but not the first,
    the array is time-major, and its second axis counts.

    Returns:
        None where no argument has a length.
    """
    found = [input_ for x in (*args, *kwargs.values()) for input_ in _inputs_in(x)]
    if not found:
        return None
    first, others = found[0], found[1:]
    for size in first.sizes:
        if any(size == other.sizes[0] for other in others):
            return size
    labels = [x.sizes[0] for x in others if x.are_labels]
    return first.second if first.second in labels else first.sizes[0]


class _Input(NamedTuple):
    """What an argument's shape says about the number of samples."""

    sizes: tuple[int, ...]  # the likeliest first
    second: int | None = None  # length of the second axis, which may be that of samples
    are_labels: bool = False  # integers with one axis


def _inputs_in(x: Any) -> Iterator[_Input]:
    """The arrays, and lists of samples, in an argument, in order."""
    if isinstance(x, (str, bytes)) or not hasattr(x, "__len__"):
        return
    if isinstance(x, Mapping):
        for value in x.values():
            yield from _inputs_in(value)
    elif not isinstance(x, (list, tuple)):
        yield from _input_of(x)
    elif hasattr(x, "_fields") or not _are_samples(x):
        for value in x:
            yield from _inputs_in(value)
    else:
        # Sequences of one length may also be inputs of the same kind. A tuple mostly
        # has inputs, a list samples.
        lengths = {len(value) for value in x if getattr(value, "ndim", 0) > 0}
        sizes = (len(x), *lengths) if len(lengths) == 1 else (len(x),)
        yield _Input(sizes[::-1] if isinstance(x, tuple) else sizes)


def _input_of(x: Any) -> Iterator[_Input]:
    shape = getattr(x, "shape", None)
    if shape is None:
        yield _Input((len(x),))
    elif len(shape) > 0:
        are_labels = len(shape) == 1 and x.dtype.kind in "iu"
        second = shape[1] if len(shape) > 1 else None
        yield _Input((shape[0],), second, are_labels)


def _are_samples(items: Sequence[Any]) -> bool:
    """Whether items may be one for each sample: all of one kind, but for a length."""
    return len({_kind(x) for x in items}) <= 1


def _kind(x: Any) -> Any:
    if hasattr(x, "shape"):
        return x.dtype, x.ndim, x.shape[1:]
    return type(x)


def warn_of_unknown_samples(rank: int) -> None:
    """Warns that a rank's samples cannot be counted."""
    warnings.warn(
        f"update: rank {rank} cannot see in the arguments how many samples there are, "
        "so that all ranks count alike: pass update(..., samples=n), or set "
        "optimizer.samples, unless all have equally many",
        stacklevel=5,
    )


class IgnoredLabels:
    """Warns once of a mean over fewer elements than there are, as some are ignored.

    Ranks are weighted by their samples, unless the caller says otherwise: then the
    means over the ranks' labels are not a mean over all labels.
    """

    def __init__(self) -> None:
        self._found = ""
        self._has_warned = self._has_looked = False

    def noted(self, lossfun: Callable[..., object]) -> Callable[..., object]:
        """A loss function, with a look at what it takes means of."""
        if self._has_warned:
            return lossfun

        @functools.wraps(lossfun, updated=())
        def noting(*args: object, **kwds: object) -> Any:
            with hearing_counted(self._note):
                return lossfun(*args, **kwds)

        return noting

    def _note(self, function: str, counted: Any) -> None:
        on_device = not isinstance(counted, numpy.ndarray)
        if self._found or (on_device and self._has_looked):
            return  # a device would be waited for: once is enough
        number = int(counted.sum())
        if number < counted.size:
            self._found = f"{function} of {number} of {counted.size} elements"

    def warn(self, rank: int, samples: int | None) -> None:
        """Warns of what was found, after an update.

        Args:
            rank: of the caller.
            samples: by which the caller has said that the means are weighted; None if
                it has not.
        """
        self._has_looked = True
        if self._found and samples is None:
            self._has_warned = True
            warnings.warn(
                f"update: rank {rank} takes the mean in {self._found}, as the other "
                "labels are ignored, but ranks are weighted by all their samples: pass "
                "update(..., samples=n), or set optimizer.samples, to the number that "
                "counts",
                stacklevel=3,
            )
        self._found = ""


class GradientWeight(NamedTuple):
    """How the gradients of a rank's loss become their part of the mean over samples.

    Before ``backward()`` a loss is multiplied by its samples in units of the mean
    number of the step before, which all ranks know. What is left to multiply the
    gradients by afterwards is then the same on all ranks, and mostly 1: so the weights
    are right in graphs that cross ranks, too.

    Attributes:
        samples: how many samples the gradients come from; None if that is not known.
        unit: the samples of a loss that was not multiplied; 0 where there are none.
        total: the sum of the factors of the losses.
    """

    samples: int | None
    unit: float = 1.0
    total: float = 1.0

    def factor(self, samples: numpy.ndarray, rank: int) -> float:
        """What the gradients are multiplied by before the mean over all ranks.

        Where a rank does not know its number of samples, all ranks that have some count
        alike.

        Args:
            samples: by rank, how many samples its gradients come from, or
                UNKNOWN_SAMPLES.
        """
        if samples.min() >= 0:
            return self.unit / float(samples.mean()) if samples.any() else 0.0
        if samples[rank] == 0:
            return 0.0
        return 1 / float((samples != 0).mean()) / self.total
