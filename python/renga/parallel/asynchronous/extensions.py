"""Extensions for ranks that do not have equal parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from renga.extensions.reports.plot import Plot
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.parallel.asynchronous.server.server_optimizer import ServerOptimizer
from renga.training import extension
from renga.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Evaluator = TypeVar("_Evaluator")


def create_average_evaluator(
    actual_evaluator: _Evaluator, optimizer: AsynchronousOptimizer
) -> _Evaluator:
    """Makes an evaluator evaluate what the ranks' parameters approximate.

    That is their average, the center of elastic averaging, or the parameters of the
    servers: those of the optimizer's ``averaged()``. Unless there are servers, every
    rank has to evaluate. If training ends on one before another evaluates, the latter
    raises a RuntimeError.

    Args:
        actual_evaluator: an Evaluator, also of several ranks; it is changed.
        optimizer: from one of the functions of ``renga.distributed.asynchronous``.

    Raises:
        TypeError: if they are not.
    """
    if not hasattr(actual_evaluator, "evaluate"):
        raise TypeError(
            f"create_average_evaluator: expected an evaluator, got {actual_evaluator!r}"
        )
    _check_optimizer("create_average_evaluator", optimizer)
    evaluator: Any = actual_evaluator
    evaluate = evaluator.evaluate
    optimizer.end_with(evaluator)

    def evaluate_average() -> Any:
        with optimizer.averaged():
            return evaluate()

    evaluator.evaluate = evaluate_average
    return actual_evaluator


class CommunicationReport(extension.Extension):
    """Observes what an asynchronous optimizer says about its communication.

    The names are those of ``optimizer.observe()``, such as ``messages``, ``bytes`` and
    ``staleness``, and ``consensus_distance``.

    Args:
        optimizer: from one of the functions of ``renga.distributed.asynchronous``.
        consensus: whether to observe how far this rank's parameters are from the mean;
            all ranks that train then have to report equally often. If training ends on
            one before another reports, the latter raises a RuntimeError.

    Raises:
        TypeError: if the optimizer is another one.
    """

    trigger = (1, "epoch")
    priority = extension.PRIORITY_WRITER

    def __init__(
        self, optimizer: AsynchronousOptimizer, consensus: bool = False
    ) -> None:
        _check_optimizer("CommunicationReport", optimizer)
        self._optimizer = optimizer
        self._consensus = consensus
        if consensus:
            optimizer.end_with(self)

    def __call__(self, trainer: Trainer) -> None:
        """Adds the numbers to the observation."""
        trainer.observation.update(self._optimizer.observe())
        if self._consensus:
            distance = self._optimizer.consensus_distance()
            trainer.observation["consensus_distance"] = distance


class StalenessPlot(Plot):
    """Draws how many gradients of this rank were how stale, with matplotlib.

    Without matplotlib it warns and draws nothing.

    Args:
        optimizer: from ``create_server_optimizer``.
        filename: name in the trainer's directory; its suffix is the format.

    Raises:
        TypeError: if the optimizer is another one.
    """

    trigger = (1, "epoch")

    def __init__(
        self, optimizer: ServerOptimizer, filename: str = "staleness.png"
    ) -> None:
        if not isinstance(optimizer, ServerOptimizer):
            raise TypeError(
                "StalenessPlot: expected an optimizer from create_server_optimizer, "
                f"got {optimizer!r}"
            )
        self._optimizer = optimizer
        super().__init__(filename)

    def __call__(self, trainer: Trainer) -> None:
        """Draws the histogram so far."""
        self._redraw(trainer)

    def _draw(self, figure: Figure) -> None:
        self.draw(figure.add_subplot())

    def draw(self, axes: Axes) -> None:
        """Draws a bar for each staleness, in clocks."""
        counts = self._optimizer.staleness_histogram()
        axes.bar(list(counts), list(counts.values()))
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("staleness in updates of a worker")
        axes.set_ylabel("gradients")


def _check_optimizer(call: str, optimizer: Any) -> None:
    if not isinstance(optimizer, AsynchronousOptimizer):
        raise TypeError(
            f"{call}: expected an optimizer from renga.parallel.asynchronous, got "
            f"{optimizer!r}"
        )
