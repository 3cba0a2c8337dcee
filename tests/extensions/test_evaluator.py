"""Evaluator: means over batches in test mode, names, hooks, iterators."""

import copy
import types

import numpy
import pytest

import renga
from renga import extensions, reporter
from renga.testing import get_trainer_with_mock_updater


class Batches:
    """An iterator over given batches that can be reset."""

    repeat = False

    def __init__(self, batches):
        self.batches = batches
        self.finalized = False
        self.reset()

    def reset(self):
        self._rest = iter(self.batches)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._rest)

    def finalize(self):
        self.finalized = True


class Model(renga.Chain):
    """Reports the mean of its argument, and the configuration."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.inner = renga.Link()

    def __call__(self, x, t=0):
        renga.report(
            {"mean": renga.Variable(numpy.asarray(numpy.mean(x))), "t": numpy.sum(t)},
            self,
        )
        renga.report({"train": renga.config.train}, self.inner)
        renga.report({"backprop": renga.config.enable_backprop}, self.inner)


X = numpy.random.RandomState(0).normal(size=10).astype("f")
BATCHES = [list(X[:4]), list(X[4:8]), list(X[8:])]


def means_of_batches():
    return numpy.mean([numpy.mean(batch, dtype=float) for batch in BATCHES])


def test_mean_over_batches_in_test_mode():
    evaluator = extensions.Evaluator(Batches(BATCHES), Model())
    for _ in range(2):  # the iterator starts again
        result = evaluator()
        assert result["main/mean"] == pytest.approx(means_of_batches(), rel=1e-6)
        assert result["main/inner/train"] == 0
        assert result["main/inner/backprop"] == 0
    assert renga.config.train and renga.config.enable_backprop


def test_name_prefixes_and_outer_reporter():
    trainer = get_trainer_with_mock_updater((1, "iteration"), iter_per_epoch=1)
    seen = {}
    trainer.extend(extensions.Evaluator(Batches(BATCHES), Model()))
    trainer.extend(extensions.Evaluator(Batches(BATCHES), Model()), name="test")
    trainer.extend(lambda t: seen.update(t.observation))
    trainer.run()
    names = ("mean", "t", "inner/train", "inner/backprop")
    assert set(seen) == {f"{e}/main/{n}" for e in ("validation", "test") for n in names}


@pytest.mark.parametrize(
    "batch, expected",
    [
        ([(X[0], 1), (X[1], 2)], ("x", "t")),
        ([{"x": X[0], "t": 1}, {"x": X[1], "t": 2}], ("x", "t")),
        ([X[0], X[1]], ("x",)),
    ],
)
def test_kinds_of_examples(batch, expected):
    seen = []

    def eval_func(x, t=None):
        seen.append((x, t))

    model = Model()
    extensions.Evaluator(Batches([batch]), model, eval_func=eval_func)()
    [(x, t)] = seen
    numpy.testing.assert_array_equal(x, X[:2])
    assert t is None if expected == ("x",) else t.tolist() == [1, 2]


def test_converter_device_and_hook():
    calls = []

    def converter(batch, device):
        calls.append(device)
        return numpy.array(batch) * 2

    evaluator = extensions.Evaluator(
        Batches(BATCHES), Model(), converter, -1, eval_hook=calls.append
    )
    assert evaluator()["main/mean"] == pytest.approx(2 * means_of_batches(), rel=1e-6)
    assert calls == [evaluator, -1, -1, -1]


def test_evaluate_batches_yields_batch_sizes():
    evaluator = extensions.Evaluator(Batches(BATCHES), Model())
    with reporter.Reporter() as outer:
        outer.add_observer("m", evaluator.get_target("main"))
        outer.add_observer("i", evaluator.get_target("main").inner)
        pairs = list(evaluator.evaluate_batches())
    assert [n for _, n in pairs] == [4, 4, 2]
    total = sum(n * float(seen["m/mean"].array) for seen, n in pairs)
    assert total / 10 == pytest.approx(X.mean(dtype=float), rel=1e-6)


def test_iterator_without_reset_is_copied():
    class Once:
        def __init__(self):
            self.rest = list(BATCHES)

        def __iter__(self):
            return self

        def __next__(self):
            if not self.rest:
                raise StopIteration
            batch, *self.rest = self.rest
            return batch

    iterator = Once()
    evaluator = extensions.Evaluator(iterator, Model())
    assert (
        evaluator()
        == evaluator()
        == extensions.Evaluator(copy.copy(iterator), Model())()
    )
    assert len(iterator.rest) == 3


def test_several_iterators_and_targets():
    iterators = {"main": Batches(BATCHES), "other": Batches([])}
    targets = {"main": Model(), "other": Model()}
    evaluator = extensions.Evaluator(iterators, targets)
    assert evaluator.get_iterator("other") is iterators["other"]
    assert evaluator.get_target("other") is targets["other"]
    assert evaluator.get_all_iterators() == iterators
    assert evaluator.get_all_targets() == targets
    evaluator.finalize()
    assert iterators["main"].finalized and iterators["other"].finalized


def test_warns_of_an_endless_iterator():
    endless = types.SimpleNamespace(repeat=True)
    with pytest.warns(UserWarning, match="'main' has repeat=True"):
        extensions.Evaluator(endless, Model())


def test_progress_bar_is_silent_in_a_file(capsys):
    evaluator = extensions.Evaluator(Batches(BATCHES), Model(), progress_bar=True)
    assert evaluator()["main/mean"] == pytest.approx(means_of_batches(), rel=1e-6)
    assert capsys.readouterr().out == ""


def test_unknown_argument():
    with pytest.raises(TypeError):
        extensions.Evaluator(Batches([]), Model(), devise=-1)
