"""Whether a parallel model computes what the serial one does, for an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.backends import cuda
from renga.configuration import no_backprop_mode, using_config
from renga.link import Link
from renga.links.parallel.sharding.tracing import states_kept, variables

if TYPE_CHECKING:
    from renga.communicators import Communicator

# Of the largest output, by the size of numbers: sums in another order differ by less,
# shards taken for the whole by more. Activations may be bfloat16 where outputs are not.
_TOLERANCES = {8: 1e-6, 4: 1e-2, 2: 5e-2}


def require_same_outputs(
    comm: Communicator, serial: Link, parallel: Link, inputs: Sequence[Any], what: str
) -> None:
    """Checks the outputs of both models, in test mode, for the same inputs.

    A model may read from an activation what its graph does not tell, such as its shape
    or elements, and would read it from a shard. Nothing is compared where the outputs
    depend on random numbers, or where a model raises.

    Every rank calls it.

    Raises:
        ValueError: on all ranks, if the outputs differ on one.
    """
    numbers = numpy.random.get_state()
    expected = _outputs(serial, inputs)
    is_random = not _same_states(numbers, numpy.random.get_state())
    numpy.random.set_state(numbers)
    if expected is None or is_random:
        return
    found = _outputs(parallel, inputs)
    numpy.random.set_state(numbers)
    differ = found is not None and not all(map(_are_near, found, expected))
    if any(comm.allgather_obj(differ)):
        raise ValueError(
            f"parallelize: expected the {what} model to compute what the serial one "
            "does for the example, got other outputs: it reads shapes or elements of "
            "activations, which are those of shards; read them before the first link, "
            "or pass no example"
        )


def _outputs(model: Any, inputs: Sequence[Any]) -> list[numpy.ndarray] | None:
    with no_backprop_mode(), using_config("train", False), states_kept(model):
        try:
            y = model(*inputs)
        except Exception:
            return None  # it raises where the model is used
    return [cuda.to_cpu(x.array) for x in variables(y)]


def _same_states(a: Any, b: Any) -> bool:
    return all(numpy.array_equal(x, y) for x, y in zip(a, b))


def _are_near(a: numpy.ndarray, b: numpy.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return numpy.array_equal(a, b)
    scale = max(float(numpy.abs(b).max(initial=0)), 1e-6)
    return bool(numpy.allclose(a / scale, b / scale, 0, _TOLERANCES[a.itemsize], True))
