"""Transforms in a row, and as a part of an updater."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

import numpy

from renga.core.types import Array
from renga.dataset import convert
from renga.transforms.color import Normalize
from renga.transforms.images import OfImages, as_batch, check_images
from renga.transforms.mixup import Mixup
from renga.utils.type_check import InvalidType


class Compose:
    """Calls transforms one after the other."""

    def __init__(self, *transforms: Callable[[Array], Array]) -> None:
        _check_callable("Compose", transforms)
        self.transforms = transforms

    def __call__(self, x: Array) -> Array:
        """The images after the last transform."""
        is_list = isinstance(x, list)
        return _transformed(self.transforms, as_batch("Compose", x) if is_list else x)


def _transformed(transforms: Sequence[Callable[..., Any]], x: Any) -> Any:
    """A batch, or images of any sizes, after the last transform.

    Transforms of single images give views, which the first other one makes a batch.
    """
    for transform in transforms:
        if isinstance(transform, OfImages) and len(x) > 0:
            is_batch = not isinstance(x, list)
            x = transform.of_images(check_images(transform, x) if is_batch else x)
        elif isinstance(transform, Normalize) and isinstance(x, list):
            x = transform.of_images(x, _shape_of(x))
        else:
            x = transform(_batch_of(x))
    return _batch_of(x)


def converter(
    *transforms: Callable[..., object], converter: Callable = convert.concat_examples
) -> convert.Converter:
    """A converter for updaters that transforms the first array of a batch.

    A :class:`Mixup` among ``transforms`` is called with the labels, too, which are the
    second. Images of several sizes become a batch by a crop, if it comes first.

    Args:
        converter: makes arrays of the examples.

    Raises:
        TypeError: the examples are neither images nor tuples that begin with one, or
            a transform cannot be called.
    """

    _check_callable("transforms.converter", (*transforms, converter))

    transforms = tuple(_flat(transforms))
    mixups = [i for i, each in enumerate(transforms) if isinstance(each, Mixup)]
    first = mixups[0] if mixups else len(transforms)

    @convert.converter()
    def convert_and_transform(batch: Any, device: Any = None) -> Any:
        x: Any
        x, others, is_tuple = _split(batch, converter, transforms[:first])
        x = _transformed(transforms[:first], x)
        for transform in transforms[first:]:
            if isinstance(transform, Mixup):
                if not others:
                    raise TypeError("Mixup: expected examples (image, label)")
                x, others[0] = transform(x, others[0])
            else:
                x = transform(x)
        return convert.to_device(device, (x, *others) if is_tuple else x)

    return convert_and_transform


def _flat(transforms: Iterable[Any]) -> Iterator[Callable[..., Any]]:
    for each in transforms:
        yield from _flat(each.transforms) if isinstance(each, Compose) else [each]


def _split(
    batch: Any, converter: Callable, transforms: Sequence[object]
) -> tuple[Any, list[Any], bool]:
    """The images of examples, arrays of what else they have, and whether they do.

    Images stay as they are, if the first transform takes them one by one.
    """
    takes_images = transforms and isinstance(transforms[0], (OfImages, Normalize))
    if takes_images and converter is convert.concat_examples:
        is_tuple = all(isinstance(example, tuple) for example in batch)
        images = [example[0] for example in batch] if is_tuple else list(batch)
        is_even = not is_tuple or len(set(map(len, batch))) == 1
        if is_even and _are_images(images):
            rest = [example[1:] for example in batch] if is_tuple else [()]
            others = convert._call_converter(converter, rest, None)
            return images, list(others), is_tuple
    arrays = convert._call_converter(converter, batch, None)
    if isinstance(arrays, dict):
        raise TypeError("transforms: expected examples that are tuples, got dict")
    is_tuple = isinstance(arrays, tuple)
    x, *others = arrays if is_tuple else (arrays,)
    return x, others, is_tuple


def _are_images(examples: Sequence[object]) -> bool:
    """Whether they are images (C, H, W) of one dtype and as many channels."""
    kinds = {
        (x.dtype, len(x))
        if isinstance(x, numpy.ndarray) and x.ndim == 3 and x.dtype.kind in "biuf"
        else None
        for x in examples
    }
    return len(kinds) == 1 and None not in kinds


def _shape_of(images: Sequence[numpy.ndarray]) -> tuple[int, ...]:
    """The shape that all images have; InvalidType if they differ."""
    shapes = sorted({image.shape for image in images})
    if len(shapes) > 1:
        raise InvalidType(
            "transforms: expected images of one shape, got "
            f"{', '.join(map(str, shapes))}"
        )
    return shapes[0]


def _batch_of(x: Any) -> Any:
    """An array of a list of images."""
    if not isinstance(x, list):
        return x
    _shape_of(x)
    return numpy.stack(x)


def _check_callable(where: str, functions: Iterable[Any]) -> None:
    for each in functions:
        if not callable(each):
            raise TypeError(f"{where}: expected a transform, got {each!r}")
