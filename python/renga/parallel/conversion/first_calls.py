"""Whether parallel models compute what serial ones do, seen in their first calls."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.around_call import inner_handler, variables_in
from renga.core.backend import get_array_types
from renga.core.configuration import config, no_backprop_mode, using_config
from renga.core.dtypes import mixed_bfloat16
from renga.core.link import Link
from renga.core.link.own_values import own_params, own_persistent
from renga.core.link.traces import traces_of
from renga.core.parameter import Parameter
from renga.core.reporter import KeptReports
from renga.core.variable import Variable, as_array
from renga.functions.noise.seed import is_same_state
from renga.links.parallel.forms import is_form
from renga.parallel.conversion.arguments import arrays_in
from renga.parallel.conversion.kept_shards import KeptShards, kept_by
from renga.parallel.conversion.replacement import copy_with_replacements
from renga.parallel.placement.activation_shard import ReadingSite
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.utils.containers import leaves

# The tolerance is a part of the largest output, by the size of numbers: sums in another
# order differ by less, shards taken for the whole by more.
_TOLERANCES = {8: 1e-6, 4: 1e-3, 2: 5e-2}


_Arrays = dict[tuple[str, str], list[numpy.ndarray]]


class FirstCalls:
    """Compares the first call of each link from outside of a model with a serial one.

    A model may read from an activation what its graph does not tell, such as its shape
    or elements, and would read it from a shard. A later call in which it does so in a
    place where no call has done it before is compared, too.

    Args:
        readers: the ranks that read of shards; None if the model reads of the whole.
    """

    def __init__(self, readers: Communicator | None = None) -> None:
        self._readers = readers
        self.kept = KeptShards()
        self._serial: Mapping[int, Link] = {}  # by the ids of links that replace them
        self._links: set[int] = set()  # ids of all links of the model
        self._expected: set[int] = set()  # of those that have not been called
        self._sites: set[ReadingSite] = set()
        self._reads_anew = False  # whether the present call has added one of these

    def expect(self, model: Link, serial: Mapping[int, Link]) -> None:
        """Has the calls of a model compared.

        Args:
            model: takes and returns replicated arrays.
            serial: by the ``id`` of links of the model, those that they replace, whose
                parameters are not needed elsewhere.
        """
        self._serial = serial
        self._root, self._links = id(model), {id(link) for link in model.links()}
        self._expected = set(self._links)

    def note_read(self, site: ReadingSite) -> None:
        """Takes note that the program reads a shape or elements of a shard.

        A rank may do so that the others do not, as for a log.
        """
        self._reads_anew |= site not in self._sites
        self._sites.add(site)

    def begin(self, link: Link) -> Callable[[object, object], None]:
        """Before a call of a link from outside: what compares it, if it has to be.

        It is called with the arguments, after the call, in which parameters may have
        got their shapes. A stage of a pipeline has not all of the numbers to compare.
        """
        self._reads_anew = False
        is_divided = getattr(inner_handler(), "is_divided", False)
        is_known = id(link) in self._links and not is_divided
        is_first = is_known and id(link) in self._expected
        set_back = None
        if is_first:
            self._expected.discard(id(link))
            set_back = traces_of(link)

        def compare(args: Any, kwargs: Any) -> None:
            if not is_first and not (is_known and self._some_rank_reads_anew()):
                return
            go_on = traces_of(link)
            if set_back is not None:
                set_back()
            try:
                self._compare(link, args, kwargs)
            finally:
                go_on()
                if id(link) == self._root:
                    self._expected.clear()
                if not self._expected:
                    _leave_out_arrays(self._serial.values())

        return compare

    def _some_rank_reads_anew(self) -> bool:
        """Whether the present call reads in a new place; every rank calls it."""
        if self._readers is None:
            return False
        own = numpy.array([self._reads_anew], numpy.int64)
        return bool(self._readers.all_reduce(own, "max")[0])

    def _compare(self, link: Any, args: Any, kwargs: Any) -> None:
        """Checks the outputs of both links; every rank calls it.

        Where they depend on random numbers, they are compared in test mode instead. If
        they do there, too, or if a link raises, nothing is compared. Attributes that
        differ are shards, which nothing outside of the model may read.

        Raises:
            ValueError: on all ranks, if what the links return, report or keep in
                persistent values differs on one.
        """
        serial = self._serial_link(link)
        undo = traces_of(serial)
        found = _results_of_both(serial, link, args, kwargs)
        if found is None and config.train:
            undo()  # such as an update of running statistics
            with using_config("train", False):
                found = _results_of_both(serial, link, args, kwargs)
        expected, own = found or (None, None)
        differ, kept = False, []
        if expected is not None and own is not None:
            # A layer of half precision rounds what others compute in double precision.
            size = min((param.dtype.itemsize for param in link.params()), default=8)
            differ = not _are_all_near(own.values, expected.values, size) or bool(
                _differing(own.persistent, expected.persistent, size)
            )
            kept = _differing(own.kept, expected.kept, size)
        of_ranks = link.parallel_run.comm.allgather_obj((differ, kept))
        if any(differ for differ, _ in of_ranks):
            raise ValueError(
                f"{type(link).__name__}: expected the parallel model to compute what "
                "the serial one does, got other outputs: it reads shapes or elements "
                "of activations, which are those of shards; read them before the first "
                "link"
            )
        links = dict(link.namedlinks())
        for _, kept in of_ranks:
            for path, name in kept:
                self.kept.add(links[path], name)

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


def _leave_out_arrays(links: Iterable[Link]) -> None:
    """Frees parameters that are loaded before links are called."""
    for each in itertools.chain(*(link.links() for link in links)):
        for name in own_params(each):
            vars(each)[name] = Parameter()


def _serial_class(link: Link) -> type[Link]:
    kind = type(link)
    return kind.__bases__[-1] if "parallel_run" in vars(kind) else kind


class _Results:
    """What a call has computed.

    Attributes:
        values: the numbers of its outputs, and of what it has reported.
        persistent: those of persistent values, by the paths of links and by name.
        kept: likewise, of other attributes that it has set.
    """

    def __init__(self, outputs: object, reports: object, model: Link, kept: Any):
        self.values = _arrays(variables_in(outputs)) + _arrays(reports)
        self.kept = {key: _arrays(value) for key, value in kept.items()}
        self.persistent = {
            (path, name): _arrays(value)
            for path, link in model.namedlinks()
            if not is_form(link)
            for name, value in own_persistent(link).items()
        }


def _results_of_both(
    serial: Any, link: Any, args: Any, kwargs: Any
) -> tuple[_Results | None, _Results | None] | None:
    """Those of both links; None if they depend on random numbers, which are put back.

    They do on all ranks or on none: ranks that are threads share NumPy's generator, and
    may see each other's numbers or not.
    """
    numbers = numpy.random.get_state()
    expected = _results(serial, args, kwargs)
    is_random = not is_same_state(numbers, numpy.random.get_state())
    numpy.random.set_state(numbers)
    if any(link.parallel_run.comm.allgather_obj(is_random)):
        return None
    found = _results(link, args, kwargs)
    numpy.random.set_state(numbers)
    return expected, found


def _results(model: Any, args: Any, kwargs: Any) -> _Results | None:
    """Those of a call; None if it raises, as it does where the model is used."""
    given = {id(x): x for x in arrays_in((args, kwargs))}
    before, reports = kept_by(model), KeptReports()
    with no_backprop_mode(), reports:
        try:
            # A call may change other arguments, such as key-value caches.
            args, kwargs = copy.deepcopy((args, kwargs), given)
            y = model(*args, **kwargs)
        except Exception:
            return None
    kept = {k: x for k, x in kept_by(model).items() if before.get(k) is not x}
    return _Results(y, reports.all, model, kept)


def _arrays(value: object) -> list[numpy.ndarray]:
    """The numbers, arrays and Variables in lists, tuples and dictionaries, in order."""
    found = []
    for leaf in leaves(value):
        if isinstance(leaf, (Variable, *get_array_types())):
            found.append(numpy.array(cuda.to_cpu(as_array(leaf))))
        elif isinstance(leaf, (int, float, numpy.generic)):
            found.append(numpy.array(leaf))
    return found


def _differing(own: _Arrays, expected: _Arrays, size: int) -> list[tuple[str, str]]:
    """Where arrays are others than those of the serial model."""
    return [
        key
        for key, xs in own.items()
        if not _are_all_near(xs, expected.get(key, []), size)
    ]


def _are_all_near(xs: list[numpy.ndarray], ys: list[numpy.ndarray], size: int) -> bool:
    """Whether they are, where numbers of at least so many bytes are computed with."""
    pairs = zip(xs, ys)
    return len(xs) == len(ys) and all(_are_near(x, y, size) for x, y in pairs)


def _are_near(a: numpy.ndarray, b: numpy.ndarray, size: int) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return numpy.array_equal(a, b)
    is_rounded = config.dtype is mixed_bfloat16 or config.compute_precision != "highest"
    size = min(size, a.itemsize)
    tolerance = _TOLERANCES[2 if is_rounded and size == 4 else size]
    scale = max(float(numpy.abs(b).max(initial=0)), 1e-6)
    return bool(numpy.allclose(a / scale, b / scale, 0, tolerance, True))
