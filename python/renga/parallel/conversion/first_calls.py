"""Whether parallel models compute what serial ones do, seen in their first calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.around_call import inner_handler, variables_in
from renga.core.configuration import config, no_backprop_mode, using_config
from renga.core.dtypes import mixed_bfloat16
from renga.core.link import Link
from renga.core.link.traces import traces_of
from renga.parallel.conversion.arguments import arrays_in
from renga.parallel.conversion.replacement import copy_with_replacements
from renga.serializers import DictionarySerializer, NpzDeserializer

# The tolerance is a part of the largest output, by the size of numbers: sums in another
# order differ by less, shards taken for the whole by more.
_TOLERANCES = {8: 1e-6, 4: 1e-3, 2: 5e-2}


class FirstCalls:
    """Compares the first call of each link from outside of a model with a serial one.

    A model may read from an activation what its graph does not tell, such as its shape
    or elements, and would read it from a shard.
    """

    def __init__(self) -> None:
        self._serial: Mapping[int, Link] = {}  # by the ids of links that replace them
        self._expected: set[int] = set()  # ids of links that have not been called

    def expect(self, model: Link, serial: Mapping[int, Link]) -> None:
        """Has the calls of a model compared.

        Args:
            model: takes and returns replicated arrays.
            serial: by the ``id`` of links of the model, those that they replace.
        """
        self._serial = serial
        self._root, self._expected = id(model), {id(link) for link in model.links()}

    def begin(self, link: Link) -> Callable[[object, object], None] | None:
        """Before a call of a link from outside: what compares it; None for later calls.

        It is called with the arguments, after the call, in which parameters may have
        got their shapes. A stage of a pipeline has not all of the numbers to compare.
        """
        is_divided = getattr(inner_handler(), "is_divided", False)
        if id(link) not in self._expected or is_divided:
            return None
        self._expected.discard(id(link))
        set_back = traces_of(link)

        def compare(args: Any, kwargs: Any) -> None:
            go_on = traces_of(link)
            set_back()
            try:
                self._compare(link, args, kwargs)
            finally:
                go_on()
                if id(link) == self._root:
                    self._expected, self._serial = set(), {}

        return compare

    def _compare(self, link: Any, args: Any, kwargs: Any) -> None:
        """Checks the outputs of both links; every rank calls it.

        Where they depend on random numbers, they are compared in test mode instead. If
        they do there, too, or if a link raises, nothing is compared.

        Raises:
            ValueError: on all ranks, if the outputs differ on one.
        """
        serial = self._serial_link(link)
        undo = traces_of(serial)
        differ = _differ(serial, link, args, kwargs)
        if differ is None and config.train:
            undo()  # such as an update of running statistics
            with using_config("train", False):
                differ = _differ(serial, link, args, kwargs)
        if any(link.parallel_run.comm.allgather_obj(bool(differ))):
            raise ValueError(
                f"{type(link).__name__}: expected the parallel model to compute what "
                "the serial one does, got other outputs: it reads shapes or elements "
                "of activations, which are those of shards; read them before the first "
                "link"
            )

    def _serial_link(self, link: Link) -> Any:
        """A copy of a link with serial ones in the place of parallel ones."""
        copied = copy_with_replacements(link, self._serial, _serial_class)
        values = DictionarySerializer()
        values.save(link)
        params = dict(copied.namedparams())
        for name, _ in link.namedparams(include_uninit=False):
            if not params[name].is_initialized:  # loading would draw random numbers
                params[name].array = values.target[name.lstrip("/")]
        NpzDeserializer(values.target).load(copied)
        return copied.to_device(link.device)


def _serial_class(link: Link) -> type[Link]:
    kind = type(link)
    return kind.__bases__[-1] if "parallel_run" in vars(kind) else kind


def _differ(serial: Any, link: Any, args: Any, kwargs: Any) -> bool | None:
    """Whether outputs do; None if they depend on random numbers, which are put back.

    They do on all ranks or on none: ranks that are threads share NumPy's generator, and
    may see each other's numbers or not.
    """
    numbers = numpy.random.get_state()
    expected = _outputs(serial, args, kwargs)
    is_random = not _same_states(numbers, numpy.random.get_state())
    numpy.random.set_state(numbers)
    if any(link.parallel_run.comm.allgather_obj(is_random)):
        return None
    found = _outputs(link, args, kwargs)
    numpy.random.set_state(numbers)
    if expected is None or found is None:
        return False
    return not all(map(_are_near, found, expected))


def _outputs(model: Any, args: Any, kwargs: Any) -> list[numpy.ndarray] | None:
    kept = {id(x): x for x in arrays_in((args, kwargs))}
    with no_backprop_mode():
        try:
            # A call may change other arguments, such as key-value caches.
            args, kwargs = copy.deepcopy((args, kwargs), kept)
            y = model(*args, **kwargs)
        except Exception:
            return None  # it raises where the model is used
    return [cuda.to_cpu(x.array) for x in variables_in(y)]


def _same_states(a: Any, b: Any) -> bool:
    return all(numpy.array_equal(x, y) for x, y in zip(a, b))


def _are_near(a: numpy.ndarray, b: numpy.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return numpy.array_equal(a, b)
    is_rounded = config.dtype is mixed_bfloat16 or config.compute_precision != "highest"
    tolerance = _TOLERANCES[2 if is_rounded and a.itemsize == 4 else a.itemsize]
    scale = max(float(numpy.abs(b).max(initial=0)), 1e-6)
    return bool(numpy.allclose(a / scale, b / scale, 0, tolerance, True))
