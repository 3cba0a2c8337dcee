"""Private functions of Chainer's modules that programs import."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy

from renga import _core
from renga.backends import cuda
from renga.backends.device import Device
from renga.chainer.names.pickles import BinaryHierarchicalSoftmaxFunction
from renga.core import backend
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.link_hook import thread_hooks as _get_link_hooks  # noqa: F401
from renga.core.optimizer import UpdateRule
from renga.core.optimizer.loss_scaling import LossScaling
from renga.core.variable import Variable, _rebuild
from renga.dataset import convert
from renga.datasets import TextDataset
from renga.functions import broadcast_to  # noqa: F401
from renga.functions.window import as_pair as _pair  # noqa: F401
from renga.links import BinaryHierarchicalSoftmax
from renga.links.caffe.caffe_function import METHODS
from renga.training import Trainer
from renga.training.triggers import IntervalTrigger, ManualScheduleTrigger


def add_to_classes() -> None:
    """Gives renga's classes what clients read of Chainer's."""
    setattr(Link, "_device_id", property(_device_id))  # noqa: B010
    members: dict[Any, dict[str, Any]] = {
        BinaryHierarchicalSoftmax: {"_func": property(_paths_of_words)},
        FunctionNode: {"_impl_name": property(lambda self: type(self).__name__)},
        TextDataset: {"_fps": property(lambda self: self._files)},
        Trainer: {
            "_done": _member_of("_has_ended"),
            "_extensions": property(_extensions_of),
            "_final_elapsed_time": _member_of("_final_elapsed"),
            "_snapshot_elapsed_time": _member_of("_elapsed_before"),
            "_start_at": _member_of("_started"),
        },
        UpdateRule: {"update_core_chainerx": UpdateRule.update_core_gpu},
        Variable: {
            "_grad": property(lambda self: self.grad),
            "_has_chainerx_array": False,
            "_init_unchecked": classmethod(_init_unchecked),
            "_loss_scale": Variable.loss_scale,
            "_node": Variable.node,
            "_requires_grad": Variable.requires_grad,
        },
        LossScaling: {"_loss_scale": LossScaling.loss_scale},
        _core.VariableNode: {"_requires_grad": _core.VariableNode.requires_grad},
    }
    for trigger in (IntervalTrigger, ManualScheduleTrigger):
        members[trigger] = {
            "_previous_epoch_detail": _member_of("_progress._epoch_detail"),
            "_previous_iteration": _member_of("_progress._iteration"),
        }
    for cls, added in members.items():
        for name, member in added.items():
            setattr(cls, name, member)


def _init_unchecked(
    cls: Any,
    data: Any = None,
    device: Any = None,
    name: str | None = None,
    grad: Any = None,
    grad_valid: bool = True,
    requires_grad: bool = True,
    is_chainerx_array: bool | None = None,
    node: Any = None,
    layout: Any = None,
) -> Any:
    """A Variable; what ChainerX and other layouts need has no effect."""
    return _rebuild(cls, data, name, grad, requires_grad)


def _paths_of_words(link: BinaryHierarchicalSoftmax) -> Any:
    """The function that a link of Chainer's has its tree in."""
    function = BinaryHierarchicalSoftmaxFunction()
    function.begins, function.paths = link._begins, link._nodes
    function.codes = link._sides
    return function


def _member_of(path: str) -> property:
    """An attribute that is another one, which a path of names leads to."""
    *owners, name = path.split(".")

    def owner(self: Any) -> Any:
        return functools.reduce(getattr, owners, self)

    def write(self: Any, value: Any) -> None:
        setattr(owner(self), name, value)

    return property(lambda self: getattr(owner(self), name), write)


def _extensions_of(trainer: Trainer) -> Any:
    """The entries of a trainer by name, which programs add and remove."""
    if not isinstance(trainer._entries, collections.OrderedDict):
        trainer._entries = collections.OrderedDict(trainer._entries)
    return trainer._entries


def _device_id(link: Link) -> int | None:
    """The number of the link's GPU; None on the CPU."""
    return getattr(getattr(link.device, "device", None), "id", None)


# chainer.dataset.convert


def _concat_arrays(arrays: Any, padding: Any) -> Any:
    """The arrays or numbers as one array, filled up with ``padding`` unless None."""
    return convert._concat(arrays, None, padding)


def _concat_arrays_with_padding(arrays: Any, padding: Any) -> Any:
    """The arrays as one of the largest extents, filled up with ``padding``."""
    return convert._stack_padded(arrays, padding, None)


# chainer.functions.array.flip


def _flip(array: Any, axis: int) -> Any:
    """An array backwards along an axis."""
    slices = [slice(None)] * array.ndim
    slices[axis] = slice(None, None, -1)
    return array[tuple(slices)]


# chainer.dataset.convert


def _get_device(device_spec: Any) -> Device | None:
    """A device, or None for None."""
    return None if device_spec is None else backend.get_device(device_spec)


# chainer.serializers.hdf5

_available = find_spec("h5py") is not None


# chainer.backends._cpu


def _to_cpu(array: Any) -> Any:
    """An array, or a list or tuple of arrays, in the main memory."""
    if isinstance(array, (list, tuple)):
        return type(array)([_array_to_cpu(each) for each in array])
    return _array_to_cpu(array)


def _array_to_cpu(array: Any) -> Any:
    """An array in the main memory: a NumPy array as it is, a number as an array."""
    if array is None or isinstance(array, numpy.ndarray):
        return array
    if isinstance(array, cuda.ndarray):
        return cuda.to_cpu(array)
    if numpy.isscalar(array):
        return numpy.asarray(array)
    raise TypeError(f"to_cpu: expected an array or a number, got {type(array)}")


# chainer.training.extensions._snapshot


def _find_snapshot_files(fmt: str, path: str) -> list[tuple[float, str]]:
    """The times and names of the snapshots of a format, the oldest first."""
    start, end = fmt.partition("{")[0], fmt.rpartition("}")[2]
    names = [n for n in os.listdir(path) if n.startswith(start) and n.endswith(end)]
    return sorted((os.stat(os.path.join(path, n)).st_mtime, n) for n in names)


def _find_latest_snapshot(fmt: str, path: str) -> str | None:
    """The name of the newest snapshot; None without one."""
    found = _find_snapshot_files(fmt, path)
    return found[-1][1] if found else None


def _find_stale_snapshots(fmt: str, path: str, n_retains: int) -> Iterator[str]:
    """The names of all snapshots but the newest ``n_retains``, the oldest first."""
    found = _find_snapshot_files(fmt, path)
    yield from (name for _, name in found[: max(len(found) - n_retains, 0)])


# chainer.links.caffe.caffe_function


def _layer(typ: str, oldname: str | None) -> Callable[[Any], Any]:
    """Decorator of a method of a ``CaffeFunction`` that adds layers of a type.

    ``oldname`` is the type in files of old versions, whose layers get the new one.
    """

    def register(method: Any) -> Any:
        METHODS[typ] = method
        return method

    return register


def _get_num(blob: Any) -> int:
    """The first extent of a blob."""
    return blob.num if blob.num > 0 else blob.shape.dim[0]


def _get_channels(blob: Any) -> int:
    """The second extent of a blob."""
    return blob.channels if blob.channels > 0 else blob.shape.dim[1]


def _get_height(blob: Any) -> int:
    """The rows of a blob of two or four axes."""
    return blob.height if blob.height > 0 else _extent(blob, -2)


def _get_width(blob: Any) -> int:
    """The columns of a blob of two or four axes."""
    return blob.width if blob.width > 0 else _extent(blob, -1)


def _extent(blob: Any, axis: int) -> int:
    extents = list(blob.shape.dim)
    if len(extents) not in (2, 4):
        raise RuntimeError(f"caffe: expected a blob of 2 or 4 axes, got {extents}")
    return extents[axis]
