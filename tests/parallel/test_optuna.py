"""Optuna's studies whose objectives all ranks compute together."""

import pytest

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

from renga.distributed.optuna import create_study  # noqa: E402


def serial(objective, n_trials, **kwargs):
    sampler = optuna.samplers.RandomSampler(seed=3)
    study = optuna.create_study(sampler=sampler, **kwargs)
    study.optimize(objective, n_trials=n_trials)
    return study


def parabola(trial):
    x = trial.suggest_float("x", -2, 2)
    y = trial.suggest_int("y", -3, 3)
    kind = trial.suggest_categorical("kind", ["sum", "max"])
    return x**2 + y**2 if kind == "sum" else max(x**2, y**2)


@pytest.mark.parametrize("storage", ["memory", "sqlite", "journal"])
def test_all_ranks_get_what_one_process_gets(some_ranks, storage, tmp_path):
    def act(comm):
        path = tmp_path / "study"
        where = None
        if comm.rank == 0 and storage == "sqlite":
            where = f"sqlite:///{path}.db"
        if comm.rank == 0 and storage == "journal":
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend

            where = JournalStorage(JournalFileBackend(f"{path}.log"))
        # Another seed on each rank: rank 0's has to win.
        sampler = optuna.samplers.RandomSampler(seed=3 + comm.rank)
        study = create_study(comm, storage=where, sampler=sampler)
        seen = []

        def objective(trial):
            value = parabola(trial)
            trial.set_user_attr("from", comm.rank)
            seen.append((trial.number, trial.params, trial.user_attrs))
            return value + comm.rank  # rank 0's counts

        study.optimize(objective, n_trials=4)
        best = study.best_trial.params, study.best_params, study.best_value
        return seen, best, [trial.value for trial in study.trials]

    expected = serial(parabola, 4)
    trials = [(t.number, t.params, {"from": 0}) for t in expected.trials]
    best = expected.best_params, expected.best_params, expected.best_value
    values = [trial.value for trial in expected.trials]
    results = some_ranks(act)
    assert results == [(trials, best, values)] * len(results)
    for name in tmp_path.iterdir():
        name.unlink()


def test_pruning(ranks):
    def objective(trial):
        slope = trial.suggest_float("slope", 0, 1)
        for step in range(5):
            trial.report(slope * (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return slope

    pruner = {"pruner": optuna.pruners.MedianPruner(n_startup_trials=2)}

    def act(comm):
        sampler = optuna.samplers.RandomSampler(seed=3)
        study = create_study(comm, sampler=sampler, **pruner)
        study.optimize(objective, n_trials=8)
        return [(trial.state, trial.last_step) for trial in study.trials]

    expected = [(t.state, t.last_step) for t in serial(objective, 8, **pruner).trials]
    assert len({state for state, _ in expected}) == 2
    for states in ranks(act):
        assert states == expected


def test_a_failure_of_any_rank_is_one_of_all(some_ranks):
    def act(comm):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.number == 1 and comm.rank == comm.size - 1:
                raise ArithmeticError("no luck")
            if trial.number == 3 and comm.rank == 0:
                raise LookupError("not caught")
            return x

        study = create_study(comm)
        with pytest.raises(LookupError, match="not caught"):
            study.optimize(objective, n_trials=9, catch=(ArithmeticError,))
        return [trial.state.name for trial in study.trials]

    for states in some_ranks(act):
        assert states == ["COMPLETE", "FAIL", "COMPLETE", "FAIL"]


def test_errors_of_optuna_are_raised_on_all_ranks(some_ranks):
    def act(comm):
        with pytest.raises(ValueError, match="direction"):
            create_study(comm, direction="sideways")
        study = create_study(comm)

        def objective(trial):
            with pytest.raises(ValueError, match="low"):
                trial.suggest_float("x", 1, 0)
            return trial.suggest_float("x", 0, 1)

        study.optimize(objective, n_trials=1)
        return study.best_value

    assert len(set(some_ranks(act))) == 1


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_exceptions_with_several_arguments(some_ranks):
    def act(comm):
        def objective(trial):
            raise Odd("this", "that")

        study = create_study(comm)
        with pytest.raises(Odd, match="this and that"):
            study.optimize(objective, n_trials=1)
        return True

    assert all(some_ranks(act))
