"""Optuna, with objectives that all ranks compute together.

``study = create_study(comm, ...)``, then ``study.optimize(objective, n_trials)`` on
every rank, with ``objective(trial)`` as for one process. Only rank 0 has the real
study, so that any sampler, pruner and storage can be used; its decisions and its
exceptions are broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Callable

from renga.communicators import Communicator
from renga.utils.exceptions import CallOutcome, pack

if TYPE_CHECKING:
    import optuna


class _Command(Enum):
    """From rank 0 to the others."""

    TRY = 0
    END = 1


def _on_rank_0(comm: Communicator, function: Callable[[], Any]) -> Any:
    """Returns or raises, on every rank, what ``function`` does on rank 0."""
    outcome = CallOutcome(function) if comm.rank == 0 else None
    if outcome is not None and comm.size == 1:
        return outcome.get()
    return comm.bcast_obj(outcome).get()


def create_study(comm: Communicator, **kwargs: Any) -> Study:
    """``optuna.create_study(**kwargs)`` for all ranks.

    Raises:
        ImportError: Optuna is not installed.
        Exception: any that it raises, on every rank.
    """
    import optuna

    created: list[Any] = []  # empty on other ranks, where studies are not sent
    _on_rank_0(comm, lambda: created.append(optuna.create_study(**kwargs)))
    return Study(created[0] if created else None, comm)


class Study:
    """A study whose objective is computed by all ranks together.

    Args:
        study: Optuna's; used on rank 0 only.
        comm: the communicator.
    """

    def __init__(self, study: optuna.Study | None, comm: Communicator) -> None:
        self.study = study if comm.rank == 0 else None
        self.comm = comm

    def optimize(
        self,
        func: Callable[[Trial], object],
        n_trials: int | None = None,
        timeout: float | None = None,
        catch: type[Exception] | Sequence[type[Exception]] = (),
        callbacks: Sequence[Callable[..., object]] | None = None,
        show_progress_bar: bool = False,
    ) -> None:
        """``study.optimize`` on all ranks; all but ``func`` is used on rank 0 only.

        Each rank calls ``func(trial)`` for every trial. The value is rank 0's; if a
        rank raises, the trial has failed, or was pruned, for all. Every rank has to
        call the same methods of the trial in the same order.

        Raises:
            Exception: any that Optuna's ``optimize`` raises, on every rank.
        """
        if self.study is None:
            self._follow(func)
            return
        outcome = CallOutcome(
            self.study.optimize,
            self._objective(func),
            n_trials=n_trials,
            timeout=timeout,
            catch=catch,
            callbacks=callbacks,
            show_progress_bar=show_progress_bar,
        )
        self.comm.bcast_obj((_Command.END, outcome))
        outcome.get()

    def _objective(self, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def objective(trial: Any) -> Any:
            self.comm.bcast_obj((_Command.TRY, trial.number))
            return self._compute(func, Trial(trial, self.comm, trial.number))

        return objective

    def _follow(self, func: Callable[[Any], Any]) -> None:
        while True:
            command, content = self.comm.bcast_obj(None)
            if command is _Command.END:
                content.get()
                return
            CallOutcome(self._compute, func, Trial(None, self.comm, content))

    def _compute(self, func: Callable[[Any], Any], trial: Trial) -> Any:
        """This rank's value; raises if any rank has, failures before prunings."""
        from optuna import TrialPruned

        own = CallOutcome(func, trial)
        sent = None if own.error is None else pack(own.error)
        errors = [error.unpack() for error in self.comm.allgather_obj(sent) if error]
        failures = [error for error in errors if not isinstance(error, TrialPruned)]
        for error in [*failures, *errors]:
            raise error
        return own.get()

    def _ask(self, name: str) -> Any:
        return _on_rank_0(self.comm, lambda: getattr(self.study, name))

    @property
    def best_trial(self) -> optuna.trial.FrozenTrial:
        """The best trial; every rank has to read it."""
        trial: optuna.trial.FrozenTrial = self._ask("best_trial")
        return trial

    @property
    def best_params(self) -> dict[str, Any]:
        """Its parameters; every rank has to read them."""
        params: dict[str, Any] = self._ask("best_params")
        return params

    @property
    def best_value(self) -> float:
        """Its value; every rank has to read it."""
        return float(self._ask("best_value"))

    @property
    def trials(self) -> list[object]:
        """All trials; every rank has to read them."""
        trials: list[Any] = self._ask("trials")
        return trials


class Trial:
    """Optuna's trial, whose methods give rank 0's values on every rank.

    The arguments of ``report`` and ``set_user_attr`` are rank 0's, too. Every rank has
    to call the methods; ``number``, ``params`` and ``user_attrs`` are read locally.
    """

    def __init__(
        self, trial: optuna.Trial | None, comm: Communicator, number: int
    ) -> None:
        self._trial: Any = trial
        self._comm = comm
        self.number = number
        self.params: dict[str, Any] = {}
        self.user_attrs: dict[str, Any] = {}

    def set_user_attr(self, key: str, value: object) -> None:
        """Stores rank 0's value with the trial."""

        def store() -> Any:
            self._trial.set_user_attr(key, value)
            return value

        self.user_attrs[key] = _on_rank_0(self._comm, store)

    def __getattr__(self, name: str) -> Any:
        from optuna.trial import Trial as OptunaTrial

        if name.startswith("_"):
            raise AttributeError(name)
        if not callable(getattr(OptunaTrial, name)):
            return _on_rank_0(self._comm, lambda: getattr(self._trial, name))

        def method(*args: Any, **kwargs: Any) -> Any:
            value = _on_rank_0(
                self._comm, lambda: getattr(self._trial, name)(*args, **kwargs)
            )
            if name.startswith("suggest_"):
                self.params[args[0] if args else kwargs["name"]] = value
            return value

        return method
