"""The example of Optuna: two ranks give a study with pruned trials and its plot."""

import os
from pathlib import Path

import pytest

from tests.scripts import run_script

optuna = pytest.importorskip("optuna")
SCRIPT = Path(__file__).resolve().parents[2] / "examples/04_optuna/tune_digits.py"


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_tuning_on_two_ranks(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    options = ["--trials", 8, "--epoch", 3, "--out", tmp_path, "--storage", storage]
    done = run_script(SCRIPT, *options, cwd=tmp_path, ranks=2)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "study.png").read_bytes()[:4] == b"\x89PNG"
    (name,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=name, storage=storage).trials
    states = [trial.state.name for trial in trials]
    assert set(states) == {"COMPLETE", "PRUNED"} and len(states) == 8
    # Chance alone gives 0.1.
    assert max(trial.value for trial in trials if trial.value) > 0.8
