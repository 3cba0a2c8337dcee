"""The course on pipelines: every kind of weights, and the trace of two ranks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy
import pytest

from tests.scripts import run_program, run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "08_pipelines"

pytestmark = pytest.mark.timeout(300)


def test_predicted_weights_train_better_than_stale_ones(run_offline, tmp_path):
    kinds = ["flush", "stale", "spectrain"]
    options = ["--stages", 8, "--epoch", 4, "--size", 256, "--weights", *kinds]
    done = run_offline("08_pipelines/compare.py", *options)
    assert [line.split()[0] for line in done.lines[-3:]] == kinds
    curves = json.loads((tmp_path / "digits.json").read_text())
    assert list(curves) == kinds
    assert (tmp_path / "digits.png").stat().st_size > 0
    flush, stale, spectrain = (curves[kind]["loss"][0][-1] for kind in kinds)
    assert flush < spectrain < 0.8 * stale


SERIAL = """
import json
import sys

import numpy

sys.path.append(sys.argv[1])
from tasks import Digits
from train_pipeline import train_on_virtual_ranks

import renga

EPOCHS = 3
task = Digits(200, width=2)
found = train_on_virtual_ranks(2, task, "flush", EPOCHS)

numpy.random.seed(0)
batches = renga.iterators.SerialIterator(task.train, task.batch_size)
model = task.model()
optimizer = task.optimizer()[0].setup(model)
expected, losses = [], []
while len(expected) < EPOCHS:
    x, t = renga.dataset.concat_examples(batches.next())
    optimizer.update(model, x, t)
    losses.append(float(model.loss.array))
    if batches.is_new_epoch:
        with renga.using_config("train", False):
            parts = [task.test[i : i + 64] for i in range(0, len(task.test), 64)]
            for i, part in enumerate(parts):
                model(*renga.dataset.concat_examples(part))
                parts[i] = float(model.accuracy.array)
        expected.append([numpy.mean(losses), numpy.mean(parts)])
        losses = []
        if batches.epoch == EPOCHS * 3 // 4:
            optimizer.lr *= 0.1
names = "main/loss", "validation/main/accuracy"
print(json.dumps([[[entry[name] for name in names] for entry in found], expected]))
"""


def test_an_epoch_of_the_log_is_that_of_a_single_process():
    pytest.importorskip("sklearn")
    done = run_program(SERIAL, EXAMPLES)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout.splitlines()[-1])
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_language_model(run_offline, tmp_path):
    # The notebook has the shorter network, with every kind of weights.
    options = ["--task", "long-text", "--stages", 4, "--epoch", 1, "--size", 2000]
    done = run_offline("08_pipelines/compare.py", *options, "--weights", "flush")
    assert done.lines[-1].split()[0] == "flush"
    (found,) = json.loads((tmp_path / "long-text.json").read_text()).values()
    # A text of words that are all as frequent has as many as the vocabulary.
    assert 100 < found["perplexity"][0][0] < 2000


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_the_trace_of_two_ranks(tmp_path):
    script, options = EXAMPLES / "trace_pipeline.py", ["--out", tmp_path / "trace.json"]
    done = run_script(script, *options, cwd=tmp_path, ranks=2)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"stage 0 (rank 0)", "stage 1 (rank 1)"}
    passes = numpy.array(
        [[e["pid"], e["name"][0] == "f"] for e in events if e.get("cat") == "pass"]
    )
    # 4 forward and backward passes, as often gradients of weights, and an update.
    for rank in (0, 1):
        forward = passes[passes[:, 0] == rank, 1]
        assert (forward.sum(), len(forward)) == (4, 13)
