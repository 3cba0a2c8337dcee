"""Extensions that send observations to TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

import importlib
from typing import Any

from renga.core.reporter import DictSummary
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.extensions.reports.terminal import is_first_rank
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger


class Tracker(extension.Extension):
    """Base: sends the means of observations over each interval, from rank 0 alone.

    Args:
        interval: the trigger that ends an interval.
    """

    trigger = (1, "iteration")

    def __init__(self, interval: TriggerLike = (1, "epoch")) -> None:
        self._interval = get_trigger(interval)
        self._summary = DictSummary()
        self._sends = True

    def initialize(self, trainer: Trainer) -> None:
        """Begins a run."""
        self._sends = is_first_rank(trainer)
        if self._sends:
            self.begin(trainer)

    def begin(self, trainer: Trainer) -> None:
        """Opens the run; subclasses override it."""

    def send(self, values: dict[str, float], iteration: int) -> None:
        """Sends the means of an interval; subclasses override it."""
        raise NotImplementedError

    def __call__(self, trainer: Trainer) -> None:
        """Adds the observations to the means; sends them if an interval ended."""
        self._summary.add(trainer.observation)
        if not self._interval(trainer):
            return
        values = {k: float(v) for k, v in self._summary.compute_mean().items()}
        values["epoch"] = trainer.updater.epoch_detail
        self._summary = DictSummary()
        if self._sends:
            self.send(values, trainer.updater.iteration)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the current interval."""
        serialize_part(self._interval, serializer, "_interval")
        self._summary.serialize(serializer["_summary"])


class TensorBoardReport(Tracker):
    """Writes means as scalars for TensorBoard, by the package tensorboardX.

    Args:
        writer: a ``SummaryWriter`` of tensorboardX or PyTorch; unless given, one of the
            folder ``tensorboard`` in the trainer's directory, closed at the end.
    """

    def __init__(
        self, writer: object = None, interval: TriggerLike = (1, "epoch")
    ) -> None:
        super().__init__(interval)
        _check_method("TensorBoardReport", writer, "add_scalar")
        self._writer: Any = writer
        self._owned: Any = None

    def begin(self, trainer: Trainer) -> None:
        """Opens a writer unless there is one."""
        if self._writer is None:
            module = _require("TensorBoardReport", "tensorboardX", "tensorboard")
            self._writer = self._owned = module.SummaryWriter(
                f"{trainer.out}/tensorboard"
            )

    def send(self, values: dict[str, float], iteration: int) -> None:
        """Writes each value at the iteration."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)
        self._writer.flush()

    def finalize(self) -> None:
        """Closes the writer that it opened."""
        if self._owned is not None:
            self._owned.close()


class WandbReport(Tracker):
    """Logs means to a run of Weights & Biases.

    Args:
        run: a run; unless given, ``wandb.init(**init)`` begins one, which ends with
            training.
    """

    def __init__(
        self, run: object = None, interval: TriggerLike = (1, "epoch"), **init: object
    ) -> None:
        super().__init__(interval)
        _check_method("WandbReport", run, "log")
        self._run: Any = run
        self._init = init
        self._owned: Any = None

    def begin(self, trainer: Trainer) -> None:
        """Begins a run unless there is one."""
        if self._run is None:
            wandb = _require("WandbReport", "wandb", "wandb")
            self._run = self._owned = wandb.init(**self._init)

    def send(self, values: dict[str, float], iteration: int) -> None:
        """Logs the values as those of the iteration."""
        self._run.log(values, step=iteration)

    def finalize(self) -> None:
        """Ends the run that it began."""
        if self._owned is not None:
            self._owned.finish()


class MLflowReport(Tracker):
    """Logs means as metrics to MLflow's active run.

    Args:
        start: arguments of ``mlflow.start_run``, which begins a run, ended with
            training, if none is active.
    """

    def __init__(self, interval: TriggerLike = (1, "epoch"), **start: object) -> None:
        super().__init__(interval)
        self._start = start
        self._mlflow: Any = None
        self._began = False

    def begin(self, trainer: Trainer) -> None:
        """Begins a run unless one is active."""
        self._mlflow = _require("MLflowReport", "mlflow", "mlflow")
        if self._mlflow.active_run() is None:
            self._mlflow.start_run(**self._start)
            self._began = True

    def send(self, values: dict[str, float], iteration: int) -> None:
        """Logs the values as those of the iteration."""
        self._mlflow.log_metrics(values, step=iteration)

    def finalize(self) -> None:
        """Ends the run that it began."""
        if self._began:
            self._mlflow.end_run()


def _check_method(extension_name: str, tracker: Any, method: str) -> None:
    if tracker is not None and not hasattr(tracker, method):
        raise TypeError(
            f"{extension_name}: expected an object with {method}(), got {tracker!r}"
        )


def _require(extension_name: str, package: str, extra: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{extension_name}: expected the package {package}; "
            f"`pip install 'renga[{extra}]'`"
        ) from error
