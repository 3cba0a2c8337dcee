"""Transforms in a row, and as a part of an updater."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from renga.core.types import Array
from renga.dataset import convert
from renga.transforms.mixup import Mixup


class Compose:
    """Calls transforms one after the other."""

    def __init__(self, *transforms: Callable[[Array], Array]) -> None:
        _check_callable("Compose", transforms)
        self.transforms = transforms

    def __call__(self, x: Array) -> Array:
        """The images after the last transform."""
        for transform in self.transforms:
            x = transform(x)
        return x


def converter(
    *transforms: Callable[..., object], converter: Callable = convert.concat_examples
) -> convert.Converter:
    """A converter for updaters that transforms the first array of a batch.

    A :class:`Mixup` among ``transforms`` is called with the labels, too, which are the
    second.

    Args:
        converter: makes arrays of the examples.

    Raises:
        TypeError: the examples are neither images nor tuples that begin with one, or
            a transform cannot be called.
    """

    _check_callable("transforms.converter", (*transforms, converter))

    @convert.converter()
    def convert_and_transform(batch: Any, device: Any = None) -> Any:
        arrays = convert._call_converter(converter, batch, None)
        if isinstance(arrays, dict):
            raise TypeError("transforms: expected examples that are tuples, got dict")
        is_tuple = isinstance(arrays, tuple)
        x: Any
        others: list[Any]
        x, *others = arrays if is_tuple else (arrays,)
        for transform in transforms:
            if isinstance(transform, Mixup):
                if not others:
                    raise TypeError("Mixup: expected examples (image, label)")
                x, others[0] = transform(x, others[0])
            else:
                x = transform(x)
        return convert.to_device(device, (x, *others) if is_tuple else x)

    return convert_and_transform


def _check_callable(where: str, functions: Iterable[Any]) -> None:
    for each in functions:
        if not callable(each):
            raise TypeError(f"{where}: expected a transform, got {each!r}")
