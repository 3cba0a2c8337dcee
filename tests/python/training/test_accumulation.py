"""Gradients of several batches against those of the batch they form together."""

import json

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.iterators import SerialIterator
from renga.training import StandardUpdater, Trainer, extensions

rng = numpy.random.default_rng(0)
X = rng.normal(size=(22, 5)).astype("f")
T = rng.integers(0, 3, 22).astype("i")
DATA = list(zip(X, T))


def make_optimizer(optimizer=None):
    numpy.random.seed(0)
    model = L.Classifier(renga.Sequential(L.Linear(5, 8), F.tanh, L.Linear(8, 3)))
    return (optimizer or renga.optimizers.MomentumSGD(0.1)).setup(model)


def parameters(optimizer):
    return {name: p.array.copy() for name, p in optimizer.target.namedparams()}


def assert_same(a, b, rtol=1e-5):
    assert set(a) == set(b)
    for name in a:
        numpy.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=1e-7)


def joined(groups, make=make_optimizer):
    """The parameters after an update by each group of examples as one batch."""
    optimizer = make()
    for group in groups:
        optimizer.update(optimizer.target, X[group], T[group])
    return parameters(optimizer)


@pytest.mark.parametrize("repeat", [False, True])
def test_several_batches_train_as_one(repeat):
    optimizer = make_optimizer()
    iterator = SerialIterator(DATA, 4, repeat=repeat, shuffle=False)
    updater = StandardUpdater(iterator, optimizer, accumulate=2)
    for _ in range(3):
        updater.update()
    # The last group's batches have 4 and 2 examples, or 4 and 4 with a second epoch.
    last = [*range(16, 22)] + [0, 1] * repeat
    assert_same(parameters(optimizer), joined([range(8), range(8, 16), last]))
    assert optimizer.t == updater.iteration == 3


def test_a_resumed_updater_knows_the_epoch_before_its_last_iteration():
    def make():
        iterator = SerialIterator(DATA[:8], 3, shuffle=False)
        return StandardUpdater(iterator, make_optimizer(), accumulate=2)

    first, second, states = make(), make(), {}
    first.update()
    first.update()
    first.serialize(renga.serializers.DictionarySerializer(states))
    second.serialize(renga.serializers.NpzDeserializer(states))
    # Six of eight examples, and six more.
    assert (second.previous_epoch_detail, second.epoch_detail) == (6 / 8, 12 / 8)
    assert second.is_new_epoch


def test_a_snapshot_of_one_batch_in_an_iteration_is_gone_on_from():
    """On fewer ranks, which take several batches each."""

    def make(**options):
        iterator = SerialIterator(DATA[:8], 3, shuffle=False)
        return StandardUpdater(iterator, make_optimizer(), **options)

    first, second, states = make(), make(accumulate=2), {}
    for _ in range(2):
        first.update()
    first.serialize(renga.serializers.DictionarySerializer(states))
    second.serialize(renga.serializers.NpzDeserializer(states))
    assert (second.previous_epoch_detail, second.epoch_detail) == (3 / 8, 6 / 8)
    second.update()
    assert second.is_new_epoch and second.iteration == 3


def test_batches_weigh_as_much_as_their_examples():
    optimizer = make_optimizer(renga.optimizers.SGD(1.0))
    before = parameters(optimizer)
    updater = StandardUpdater(iter_of([[0, 1, 2, 3, 4], [5]]), optimizer, accumulate=2)
    updater.update()
    # The gradients are computed by hand: softmax minus one-hot, averaged over all six
    # examples, in float64.
    w1, b1 = before["/predictor/0/W"], before["/predictor/0/b"]
    w2, b2 = before["/predictor/1/W"], before["/predictor/1/b"]
    h = numpy.tanh(X[:6].astype("d") @ w1.T + b1)
    y = h @ w2.T + b2
    p = numpy.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    gy = (p - numpy.eye(3)[T[:6]]) / 6
    after = parameters(optimizer)
    numpy.testing.assert_allclose(after["/predictor/1/W"], w2 - gy.T @ h, atol=1e-6)
    numpy.testing.assert_allclose(after["/predictor/1/b"], b2 - gy.sum(0), atol=1e-6)


def iter_of(groups):
    """An iterator over these batches."""

    class Batches:
        epoch, epoch_detail, is_new_epoch = 0, 0.0, False

        def __init__(self):
            self._batches = iter([[DATA[i] for i in group] for group in groups])

        def next(self):
            return next(self._batches)

        __next__ = next

        def finalize(self):
            pass

    return Batches()


def test_observations_are_means_over_examples(tmp_path):
    optimizer = make_optimizer()
    iterator = SerialIterator(DATA, 5, shuffle=False)
    updater = StandardUpdater(iterator, optimizer, accumulate=5)
    trainer = Trainer(updater, (1, "iteration"), out=tmp_path)
    trainer.extend(extensions.LogReport(trigger=(1, "iteration")))
    reference = make_optimizer()
    order = [*range(22), 0, 1, 2]  # the fifth batch of five begins the next epoch
    reference.target(X[order], T[order])
    trainer.run()
    (entry,) = json.loads((tmp_path / "log").read_text())
    assert entry["main/loss"] == pytest.approx(float(reference.target.loss.array), 1e-5)
    accuracy = float(reference.target.accuracy.array)
    assert entry["main/accuracy"] == pytest.approx(accuracy, 1e-5)


def test_epochs_that_end_inside_an_iteration_are_noticed(tmp_path):
    optimizer = make_optimizer()
    iterator = SerialIterator(DATA, 4, shuffle=False)
    updater = StandardUpdater(iterator, optimizer, accumulate=3)
    seen = []
    trainer = Trainer(updater, (2, "epoch"), out=tmp_path)
    trainer.extend(lambda t: seen.append(t.updater.iteration), "e", (1, "epoch"))
    trainer.run()
    # 12 examples in an iteration: 22 are passed in the second, 44 in the fourth.
    assert seen == [2, 4]
    assert updater.is_new_epoch and optimizer.epoch == 2
    assert updater.previous_epoch_detail == pytest.approx(36 / 22)


def test_resumed_training_has_the_same_bits(tmp_path):
    def run(until, resume=None):
        optimizer = make_optimizer()
        iterator = SerialIterator(DATA, 4)
        updater = StandardUpdater(iterator, optimizer, accumulate=3)
        trainer = Trainer(updater, (until, "iteration"), out=tmp_path)
        if resume is not None:
            renga.serializers.load_npz(resume, trainer)
        trainer.run()
        renga.serializers.save_npz(tmp_path / "trainer.npz", trainer)
        return parameters(optimizer)

    whole = run(5)
    run(2)
    resumed = run(5, tmp_path / "trainer.npz")
    for name in whole:
        numpy.testing.assert_array_equal(whole[name], resumed[name])


def test_loss_scale_changes_nothing():
    found = []
    for scale in (None, 128.0):
        optimizer = make_optimizer()
        iterator = SerialIterator(DATA, 4, shuffle=False)
        updater = StandardUpdater(iterator, optimizer, loss_scale=scale, accumulate=2)
        updater.update()
        found.append(parameters(optimizer))
    assert_same(*found)


def test_the_end_of_the_data():
    optimizer = make_optimizer()
    iterator = SerialIterator(DATA[:5], 4, repeat=False)
    updater = StandardUpdater(iterator, optimizer, accumulate=4)
    updater.update()
    with pytest.raises(StopIteration):
        updater.update()
    assert optimizer.t == 1


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (1.5, TypeError)])
def test_wrong_counts(count, error):
    with pytest.raises(error, match="StandardUpdater: accumulate"):
        StandardUpdater(SerialIterator(DATA, 4), make_optimizer(), accumulate=count)
