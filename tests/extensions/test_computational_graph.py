"""DumpGraph: the graph of the first iteration, and only of that."""

import os
import shutil

import numpy
import pytest

import renga
from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater


def run(dump, resume=None):
    trainer = get_trainer_with_mock_updater((3, "iteration"))
    graphs = []

    def compute(trainer):
        y = renga.Variable(numpy.ones((), "f"), name="weight") * 2
        renga.report({"y": y})
        graphs.append(trainer.observation["y"].creator is not None)

    trainer.extend(compute, priority=999)
    trainer.extend(dump)
    if resume is not None:
        trainer.serialize(NpzDeserializer(resume))
    trainer.run()
    return trainer, graphs


@pytest.mark.parametrize("png", [False, bool(shutil.which("dot"))])
def test_first_iteration_only(monkeypatch, png):
    if not png:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    trainer, graphs = run(extensions.DumpGraph("y", "g.dot"))
    assert sorted(os.listdir(trainer.out)) == ["g.dot", "g.png"][: 1 + png]
    with open(f"{trainer.out}/g.dot") as file:
        text = file.read()
    assert text.startswith("digraph") and "weight" in text and "->" in text
    assert graphs == [True, False, False]
    assert not renga.config.keep_graph_on_report

    saved = DictionarySerializer()
    trainer.serialize(saved)
    trainer, graphs = run(extensions.DumpGraph("y"), resume=saved.target)
    assert graphs == [False] * len(graphs) and os.listdir(trainer.out) == []


def test_nothing_to_draw():
    with pytest.raises(KeyError, match="nothing"):
        run(extensions.dump_graph("nothing", out_name="g"))
    assert not renga.config.keep_graph_on_report
