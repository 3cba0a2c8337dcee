"""An evaluation whose results are not averaged but aggregated on one rank."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from renga.backends.device import DeviceLike
from renga.communicators import Communicator
from renga.core import configuration, reporter as reporter_module
from renga.core.link import Link
from renga.dataset import convert
from renga.dataset.iterator import Iterator as DatasetIterator
from renga.parallel.data.datasets.shard import without_repeats
from renga.parallel.data.extensions.rounds import Rounds
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils import argument


class GenericMultiNodeEvaluator(extension.Extension):
    """Gathers the results of all ranks' batches on the root, which aggregates them.

    A subclass defines ``aggregate``, which computes for example the BLEU of all
    translations, and may define ``calc_local``, the result of a batch. An example that
    two ranks have is in a batch of one of them.

    Args:
        comm: the communicator.
        iterator: this rank's batches, or a dictionary with them as ``"main"``.
        target: the model, or a dictionary with it as ``"main"``.
        device: of the batches.
        converter: from (batch, device) to arrays.
        root: the rank that aggregates and reports.
        kwargs: ``progress_hook``, called with each batch on the root.
    """

    trigger = (1, "epoch")
    default_name = "validation"
    priority = extension.PRIORITY_WRITER

    def __init__(
        self,
        comm: Communicator,
        iterator: DatasetIterator | dict[str, DatasetIterator],
        target: Link | dict[str, Link],
        device: DeviceLike | None = None,
        converter: Callable[..., object] = convert.concat_examples,
        root: int = 0,
        **kwargs: object,
    ) -> None:
        (self._progress_hook,) = argument.parse_kwargs(kwargs, ("progress_hook", None))
        self.comm = comm
        self._iterators, self._targets = map(argument.by_name, (iterator, target))
        self.device = device
        self.converter = converter
        self.root = root
        self._rounds = Rounds(type(self).__name__, comm)

    def calc_local(self, *args: object, **kwargs: object) -> object:
        """The result of the arrays of a batch; it has to be picklable.

        By default that of the target.
        """
        return self._targets["main"](*args, **kwargs)

    def aggregate(self, results: list[object]) -> object:
        """The result, from all batches': first batches first, in rank order.

        A dict is reported. By default the results themselves.
        """
        return results

    def __call__(self, trainer: Trainer) -> object:
        """Evaluates; the root reports and returns the result, other ranks None.

        Raises:
            RuntimeError: training has ended on another rank.
        """
        prefix = "" if self.name is None else f"{self.name}/"
        reporter = reporter_module.Reporter()
        for name, target in self._targets.items():
            reporter.add_links(prefix + name, target)
        with reporter, configuration.using_config("train", False):
            self._rounds.begin()
            own = list(self._local_results())
            self._rounds.begin()
            results = self.comm.gather_obj(own, self.root)
            if results is None:
                return None
            result = self.aggregate(_interleaved(results))
            if not isinstance(result, MutableMapping):
                return result
            observation: dict[str, Any] = {}
            with reporter.scope(observation):
                reporter_module.report(result, self._targets["main"])
        reporter_module.report(observation)
        return result

    def finalize(self) -> None:
        """Tells the other ranks, which might wait for this one, that training ends."""
        self._rounds.end()

    def _local_results(self) -> Iterator[Any]:
        dataset = getattr(self._iterators["main"], "dataset", ())
        with without_repeats(type(self).__name__, dataset, self.comm):
            yield from self._results_of_batches()

    def _results_of_batches(self) -> Iterator[Any]:
        iterator = self._iterators["main"]
        if hasattr(iterator, "reset"):
            iterator.reset()
        else:
            iterator = copy.copy(iterator)
        for batch in iterator:
            args, kwargs = convert.arguments_from(self.converter, batch, self.device)
            with configuration.no_backprop_mode():
                yield self.calc_local(*args, **kwargs)
            if self.comm.rank == self.root and self._progress_hook is not None:
                self._progress_hook(batch)


def _interleaved(results: list[list[Any]]) -> list[Any]:
    length = max(map(len, results))
    return [own[i] for i in range(length) for own in results if i < len(own)]
