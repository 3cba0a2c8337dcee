"""Running means of parameters, against the recurrence in float64."""

import numpy
import pytest

import renga
import renga.links as L
from renga.iterators import SerialIterator
from renga.training import StandardUpdater, Trainer, extensions

rng = numpy.random.default_rng(0)
DATA = [(x, numpy.int32(i % 3)) for i, x in enumerate(rng.normal(size=(20, 4)))]
DATA = [(x.astype("f"), t) for x, t in DATA]


def make(decay, out, until=6):
    numpy.random.seed(0)
    predictor = renga.Sequential(L.Linear(None, 5), L.BatchNormalization(5))
    predictor.append(L.Linear(5, 3))
    model = L.Classifier(predictor)
    optimizer = renga.optimizers.SGD(0.5).setup(model)
    updater = StandardUpdater(SerialIterator(DATA, 4), optimizer)
    trainer = Trainer(updater, (until, "iteration"), out=out)
    ema = extensions.ExponentialMovingAverage(model, decay)
    trainer.extend(ema)
    return trainer, model, ema


def test_means_of_parameters_and_the_last_statistics(tmp_path):
    trainer, model, ema = make(0.75, tmp_path)
    course = []
    trainer.extend(
        lambda t: course.append({n: p.array.copy() for n, p in model.namedparams()}),
        "course",
    )
    trainer.run()
    averages = dict(ema.model.namedparams())
    assert len(course) == 6 and len(averages) == 6
    for name, average in averages.items():
        expected = course[0][name].astype("d")
        for values in course[1:]:
            expected = 0.75 * expected + 0.25 * values[name]
        numpy.testing.assert_allclose(average.array, expected, rtol=1e-5, atol=1e-7)
    numpy.testing.assert_array_equal(
        ema.model.predictor[1].avg_mean, model.predictor[1].avg_mean
    )
    assert not numpy.shares_memory(
        ema.model.predictor[2].W.array, model.predictor[2].W.array
    )


def test_resuming_has_the_same_bits(tmp_path):
    _, _, whole = (made := make(0.9, tmp_path))
    made[0].run()
    first, _, _ = make(0.9, tmp_path, until=3)
    first.run()
    renga.serializers.save_npz(tmp_path / "trainer.npz", first)
    second, _, resumed = make(0.9, tmp_path)
    renga.serializers.load_npz(tmp_path / "trainer.npz", second)
    second.run()
    for a, b in zip(whole.model.params(), resumed.model.params()):
        numpy.testing.assert_array_equal(a.array, b.array)


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_wrong_decays(decay):
    with pytest.raises(ValueError, match="expected a decay from 0 to below 1"):
        extensions.ExponentialMovingAverage(L.Linear(2, 2), decay)


def test_shared_scalar_and_empty_parameters():
    model = renga.Chain(a=L.Linear(2, 2), b=L.Linear(2, 2))
    with model.init_scope():
        model.same = model.a
        model.scale = renga.Parameter(numpy.array(0.5))
        model.nothing = renga.Parameter(numpy.zeros((0, 3)))
    with model.b.init_scope():
        model.b.W = model.a.W
    ema = extensions.ExponentialMovingAverage(model, 0.75)
    expected = None
    for step in range(4):
        model.a.W.array[...] = step**2
        model.scale.array[...] = step
        ema()
        present = numpy.array([step**2, step], "d")
        expected = present if step == 0 else 0.75 * expected + 0.25 * present
        average = ema.model
        assert average.b.W is average.a.W and average.same is average.a
        numpy.testing.assert_allclose(average.a.W.array, expected[0])
        numpy.testing.assert_allclose(average.scale.array, expected[1])
        assert average.scale.shape == () and average.nothing.shape == (0, 3)
