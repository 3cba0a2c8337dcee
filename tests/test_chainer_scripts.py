"""Scripts written for Chainer, run as they are."""

import os
import pathlib

import pytest

from tests.scripts import run_script

FOLDER = pathlib.Path(__file__).parent / "chainer_scripts"
SCRIPTS = {path.stem: path for path in FOLDER.glob("*/*.py")}

# The last line of each script says this.
EXPECTED = {
    "trainer": lambda line: float(line.removeprefix("accuracy ")) > 0.9,
    "custom_loop": lambda line: float(line.removeprefix("accuracy ")) > 0.95,
    "function_node": lambda line: line == "Sum",
    "custom_updater": lambda line: line.startswith("loss "),
    "gan_updater": lambda line: line == "['dis/loss', 'gen/loss']",
    "resume": lambda line: (
        line == "['predictor/0/W', 'predictor/0/b', 'predictor/1/W', 'predictor/1/b']"
    ),
    "n_step_lstm": lambda line: float(line.removeprefix("accuracy ")) > 0.85,
    "parallel_updater": lambda line: float(line.removeprefix("accuracy ")) > 0.9,
    "dual_parallel": lambda line: float(line.removeprefix("accuracy ")) > 0.9,
    "multiprocess_iterator": lambda line: line == str(list(range(12))),
    "ptb": lambda line: float(line.removeprefix("perplexity ")) < 1.2,
    "text_classification": lambda line: float(line.removeprefix("accuracy ")) > 0.9,
    "seq2seq": lambda line: float(line.removeprefix("perplexity ")) < 1.3,
    "word2vec": lambda line: line == "losses fall: True",
    "sentiment": lambda line: float(line.removeprefix("accuracy ")) > 0.9,
    "link_hook": lambda line: line == "norms near 1: True",
    "static_graph": lambda line: line == "loss falls: True",
    "reinforcement": lambda line: line == "actions [1, 1, 1, 1]",
    "super_resolution": lambda line: line == "loss falls: True",
    "custom_extension": lambda line: line == "loss below 0.01: True",
}

# Scripts of several processes; under mpiexec themselves they are skipped.
RANKS = {"dual_parallel": 4, "seq2seq": 2}


def run(name, folder):
    """What a script prints, and how it ends."""
    ranks = RANKS.get(name, 1)
    if ranks > 1:
        pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
        if "OMPI_COMM_WORLD_RANK" in os.environ:
            pytest.skip("starts mpiexec")
    return run_script(SCRIPTS[name], cwd=folder, chainer=True, ranks=ranks)


def test_every_script_is_known():
    assert SCRIPTS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_script(name, tmp_path):
    pytest.importorskip("sklearn")
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert EXPECTED[name](done.stdout.splitlines()[-1]), done.stdout
