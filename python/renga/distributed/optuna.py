"""Optuna with objectives that all ranks compute together.

``study = create_study(comm, ...)``, then ``study.optimize(objective, n_trials)`` on
every rank, with ``objective(trial)`` as for one process. Rank 0 alone has the real
study, so that any sampler, pruner and storage will do; what it decides, and what it
raises, reaches all ranks.
"""

from __future__ import annotations

import pickle
from typing import Any, Callable, NamedTuple

# What rank 0 tells the others to do.
_TRY, _END = range(2)


class _Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> _Outcome:
    try:
        return _Outcome(function(*args, **kwargs))
    except Exception as error:
        return _Outcome(error=_sendable(error))


def _sendable(error: Exception) -> Exception:
    """The exception, or one that says the same if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _on_rank_0(comm: Any, function: Callable[[], Any]) -> Any:
    """What ``function`` returns or raises on rank 0, on every rank."""
    told = _outcome(function) if comm.rank == 0 else None
    if comm.rank == 0 and comm.size == 1:
        return told.get()  # type: ignore[union-attr]
    return comm.bcast_obj(told).get()


def create_study(comm: Any, **kwargs: Any) -> Study:
    """``optuna.create_study(**kwargs)`` for all ranks.

    Raises: what it raises, on every rank; ImportError where there is no Optuna.
    """
    import optuna

    made: list[Any] = [None]
    _on_rank_0(comm, lambda: made.__setitem__(0, optuna.create_study(**kwargs)))
    return Study(made[0], comm)


class Study:
    """A study whose objective is computed by all ranks together.

    Args:
        study: Optuna's; matters on rank 0 only.
        comm: the ranks.
    """

    def __init__(self, study: Any, comm: Any) -> None:
        self.study = study if comm.rank == 0 else None
        self.comm = comm

    def optimize(
        self,
        func: Callable[[Any], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        catch: Any = (),
        callbacks: Any = None,
        show_progress_bar: bool = False,
    ) -> None:
        """``study.optimize`` on all ranks; the arguments matter on rank 0 but for func.

        Each rank calls ``func(trial)`` for every trial. Its value is rank 0's; where a
        rank raises, the trial has failed, or was pruned, for all. Every rank has to
        call the same methods of the trial in the same order.

        Raises: what ends Optuna's ``optimize``, on every rank.
        """
        if self.study is None:
            self._follow(func)
            return
        ended = _outcome(
            self.study.optimize,
            self._objective(func),
            n_trials=n_trials,
            timeout=timeout,
            catch=catch,
            callbacks=callbacks,
            show_progress_bar=show_progress_bar,
        )
        self.comm.bcast_obj((_END, ended))
        ended.get()

    def _objective(self, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def objective(trial: Any) -> Any:
            self.comm.bcast_obj((_TRY, trial.number))
            return self._compute(func, Trial(trial, self.comm, trial.number))

        return objective

    def _follow(self, func: Callable[[Any], Any]) -> None:
        while True:
            command, told = self.comm.bcast_obj(None)
            if command == _END:
                told.get()
                return
            _outcome(self._compute, func, Trial(None, self.comm, told))

    def _compute(self, func: Callable[[Any], Any], trial: Trial) -> Any:
        """Rank 0's value, unless a rank has failed; a failure goes before a pruning."""
        from optuna import TrialPruned

        own = _outcome(func, trial)
        errors = [error for error in self.comm.allgather_obj(own.error) if error]
        failures = [error for error in errors if not isinstance(error, TrialPruned)]
        for error in [*failures, *errors]:
            raise error
        return own.value

    def _ask(self, name: str) -> Any:
        return _on_rank_0(self.comm, lambda: getattr(self.study, name))

    @property
    def best_trial(self) -> Any:
        """The best trial; every rank has to ask for it."""
        return self._ask("best_trial")

    @property
    def best_params(self) -> dict[str, Any]:
        """Its parameters; every rank has to ask for them."""
        return self._ask("best_params")

    @property
    def best_value(self) -> float:
        """Its value; every rank has to ask for it."""
        return self._ask("best_value")

    @property
    def trials(self) -> list[Any]:
        """All trials; every rank has to ask for them."""
        return self._ask("trials")


class Trial:
    """Optuna's trial, whose methods give rank 0's values on every rank.

    What is given to ``report`` and ``set_user_attr`` is rank 0's, too. Every rank has
    to call the methods; ``number``, ``params`` and ``user_attrs`` are known to each.
    """

    def __init__(self, trial: Any, comm: Any, number: int) -> None:
        self._trial = trial
        self._comm = comm
        self.number = number
        self.params: dict[str, Any] = {}
        self.user_attrs: dict[str, Any] = {}

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keeps a value of rank 0's with the trial."""

        def keep() -> Any:
            self._trial.set_user_attr(key, value)
            return value

        self.user_attrs[key] = _on_rank_0(self._comm, keep)

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
