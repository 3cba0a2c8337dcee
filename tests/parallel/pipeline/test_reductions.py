"""Means, sums and other functions of a batch in micro-batches, against one process."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer
from renga.optimizers import MomentumSGD
from renga.parallel.pipeline.batches.reductions import reductions_of
from renga.pipeline import Pipeline
from tests.files import saved
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    serial,
    whole,
)

DATA = batches()
RATE = 0.01


def squares(model, x, t):
    return F.square(model.predict(x) - np.eye(5)[t])


def cross_entropies(model, x, t):
    return F.softmax_cross_entropy(model.predict(x), t, reduce="no")


def penalty(model):
    return 0.1 * sum(F.sum(param**2) for param in model.params())


def times(factor, loss):
    return lambda *args: factor * loss(*args)


LOSSES = {
    "sum": lambda model, x, t: F.sum(cross_entropies(model, x, t)),
    "half a sum": lambda model, x, t: 0.5 * F.sum(squares(model, x, t)),
    "negative sum": lambda model, x, t: -F.sum(squares(model, x, t)) / 3,
    "weighted sum": lambda model, x, t: F.sum(cross_entropies(model, x, t) * (t + 1.0)),
    "sum of sums": lambda model, x, t: F.sum(F.sum(squares(model, x, t), 0)[:2]) / 9,
    "sum by a product": lambda model, x, t: F.matmul(
        np.ones(len(x)), cross_entropies(model, x, t)
    ),
    "function of functions": times(0.3, times(2, lambda m, x, t: m(x, t) * len(x))),
    "sum divided by samples": lambda model, x, t: F.sum(squares(model, x, t)) / len(x),
    "sum of means": lambda model, x, t: F.sum(F.mean(squares(model, x, t), 0)),
    "mean of sums": lambda model, x, t: F.mean(F.sum(squares(model, x, t), 1)),
    "mean and penalty": lambda model, x, t: model(x, t) + penalty(model),
}
MIXTURES = {
    "sum and mean": lambda model, x, t: model(x, t) + 0.1 * F.sum(squares(model, x, t)),
    "sum and penalty": lambda model, x, t: F.sum(squares(model, x, t)) + penalty(model),
    "sum and constant": lambda model, x, t: 0.5 - F.sum(squares(model, x, t)),
    "root of a mean": lambda model, x, t: F.sqrt(F.mean(squares(model, x, t))),
    "maximum": lambda model, x, t: F.max(squares(model, x, t)),
    "first sample": lambda model, x, t: cross_entropies(model, x, t)[0],
    "deviation": lambda model, x, t: F.mean(
        F.square(model.predict(x) - F.mean(model.predict(x), 0, keepdims=True))
    ),
    "zero": lambda model, x, t: 0 * F.sum(model.predict(x)),
    "infinite": lambda model, x, t: np.inf * F.sum(squares(model, x, t)),
}
NEITHER = "expected a loss that is .* neither, .*reduce='mean' or 'sum'"


def one_process(loss, data=DATA):
    """The parameters of a process that does not divide batches."""
    one, optimizer = Layers(), MomentumSGD(RATE)
    optimizer.setup(one)
    for batch in data:
        optimizer.update(lambda *b: loss(one, *b), *batch)
    return {path: p.array for path, p in one.namedparams()}


def trained(comm, loss, data=DATA, **options):
    model, optimizer = pipeline(Layers, comm, data, **options)
    optimizer.lr = RATE
    for batch in data:
        model.train_batch(optimizer, lambda *b: loss(model.model, *b), batch)
    return whole(model)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize(
    "options", [{"recompute": "all"}, {"schedule": "gpipe", "m": 2}], ids=str
)
def test_losses_that_are_means_or_sums(loss, options):
    expected = one_process(loss)
    for found in local.run(lambda comm: trained(comm, loss, **options), ranks=2):
        assert_close(found, expected)


@pytest.mark.parametrize("loss", ["half a sum", "mean and penalty"])
@pytest.mark.parametrize("schedule", ["1f1b", "interleaved"])
def test_on_several_ranks(several_ranks, loss, schedule):
    expected = one_process(LOSSES[loss])
    run = several_ranks(lambda c: trained(c, LOSSES[loss], schedule=schedule))
    for found in run:
        assert_close(found, expected)


@pytest.mark.parametrize("loss", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("schedule", ["1f1b", "pipedream"])
def test_losses_that_are_neither_are_refused(loss, schedule):
    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, schedule=schedule)
        before = whole(model)
        with pytest.raises(ValueError, match=NEITHER):
            model.train_batch(optimizer, lambda *b: loss(model.model, *b), DATA[0])
        assert_close(whole(model), before)

    local.run(run, ranks=2)


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_a_loss_that_is_told_is_computed_for_training_only(reduce):
    calls = []

    def loss(model, x, t):
        calls.append(1)
        return F.sum(squares(model, x, t)) / (len(x) if reduce == "mean" else 1)

    expected = one_process(loss)
    calls.clear()
    for found in local.run(lambda c: trained(c, loss, reduce=reduce), ranks=2):
        assert_close(found, expected)
    assert len(calls) == 3 * 3 * 2  # batches, micro-batches, ranks


@pytest.mark.parametrize(
    ("whole", "parts", "possible"),
    [
        (2.0, [1.0, 1.0], {"sum"}),
        (1.0, [1.0, 1.0], {"mean"}),
        (1.0, [1.0, None], set()),
        (1.0, [1.0, [1.0]], set()),
        ({"a": 1.0}, [{"b": 1.0}, {"b": 1.0}], set()),
    ],
)
def test_results_that_are_built_in_different_ways_have_no_reduction(
    whole, parts, possible
):
    found = reductions_of({"y": whole}, [{"y": y} for y in parts], [1, 1], [1, 1], 0, 4)
    assert found.possible == {"y": possible}


def test_functions_made_anew_are_seen_once():
    """For the two functions, two halves and a whole on each of two ranks."""
    calls, data = [], [(x, np.array([0, 4, *t[2:]], "i")) for x, t in DATA]

    def run(comm):
        model, optimizer = pipeline(Layers, comm, data, m=3)

        def loss_of(reduce):
            def loss(x, t):
                calls.append(len(x))
                return 0.1 * reduce(squares(model.model, x, t))

            return loss

        for batch in data:
            for reduce in (F.sum, F.mean):
                model.train_batch(optimizer, loss_of(reduce), batch)
        return whole(model)

    one, optimizer = Layers(), MomentumSGD(0.1)
    optimizer.setup(one)
    for batch in data:
        for reduce in (F.sum, F.mean):
            loss = lambda x, t: 0.1 * reduce(squares(one, x, t))  # noqa: E731, B023
            optimizer.update(loss, *batch)
    for found in local.run(run, ranks=2):
        assert_close(found, {path: p.array for path, p in one.namedparams()})
    assert len(calls) == 2 * (2 * 3 * 3 + 2 * 3)


class Stateful(Layers):
    """Counts its calls, draws numbers, keeps states and statistics, and reports."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.norm = L.BatchNormalization(8)
            self.state = L.StatefulGRU(8, 8)
        self.add_persistent("total", np.zeros(()))
        for _, param in sorted(self.state.namedparams()):
            param.array[...] = np.random.RandomState(1).normal(0, 0.3, param.shape)

    def predict(self, x):
        self.calls += 1
        self.total += 1
        h = self.state(self.norm(F.tanh(self.a(x))))
        if np.random.rand() < 0.5:
            h = F.dropout(h, 0.5)
        return self.d(F.tanh(self.c(self.b(h))))

    def forward(self, x, t):
        loss = super().forward(x, t)
        renga.report({"loss": loss}, self)
        return loss


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "pipedream"])
def test_seeing_what_a_loss_is_leaves_nothing_behind(schedule):
    """Training goes on as where the loss is told."""

    def run(comm, **options):
        np.random.seed(4)
        model, optimizer = pipeline(Stateful, comm, DATA, schedule=schedule, **options)
        reporter, observations = renga.Reporter(), []
        reporter.add_observer("main", model)
        for batch in DATA:
            with reporter.scope({}):
                model.train_batch(optimizer, model.model, batch)
                observations.append(float(reporter.observation["main/loss"]))
        model.drain()
        with model.gathered_parameters():
            arrays = {**saved(model.model), "state": model.model.state.h.array}
        numbers = [model.model.calls, np.random.rand(), *observations]
        return arrays, numbers

    (told,) = local.run(lambda comm: run(comm, reduce="mean"), ranks=1)
    ((arrays, numbers),) = local.run(run, ranks=1)
    assert_close(arrays, told[0])
    assert numbers == told[1]


class Reporting(Layers):
    """Reports a sum, a mean and, if asked to, a maximum."""

    reports_maximum = False

    def forward(self, x, t):
        errors = squares(self, x, t)
        values = {"sum": F.sum(errors) / 2, "mean": F.mean(errors), "steps": 3}
        if self.reports_maximum:
            values["maximum"] = F.max(errors)
        renga.report(values, self)
        return F.mean(errors)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "pipedream"])
def test_reported_values_are_those_of_whole_batches(some_ranks, schedule):
    one, (x, t) = Reporting(), DATA[0]
    reporter = renga.Reporter()
    reporter.add_observer("main", one)
    with reporter:
        one(x, t)
    expected = {
        name: float(renga.as_array(y)) for name, y in reporter.observation.items()
    }

    def run(comm):
        model, optimizer = pipeline(Reporting, comm, DATA, schedule=schedule)
        reporter = renga.Reporter()
        reporter.add_observer("main", model)
        with reporter:
            model(x, t)
            evaluated = dict(reporter.observation)
            model.train_batch(optimizer, model.model, (x, t))
            model.drain()
        return evaluated, dict(reporter.observation)

    for found in some_ranks(run):
        for each in found:
            assert each.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_allclose(each[name], value, 1e-12, err_msg=name)


def test_reported_values_that_are_neither(some_ranks):
    """Training refuses them, evaluation does not divide the batch."""
    one, (x, t) = Layers(), DATA[0]
    expected = float(F.max(squares(one, x, t)).array)

    def run(comm):
        model, optimizer = pipeline(Reporting, comm, DATA)
        model.model.reports_maximum = True
        reporter, before = renga.Reporter(), whole(model)
        reporter.add_observer("main", model)
        with reporter:
            model(x, t)
            np.testing.assert_allclose(reporter.observation["main/maximum"], expected)
            with pytest.raises(ValueError, match="reported value 'main/maximum'"):
                model.train_batch(optimizer, model.model, (x, t))
        assert_close(whole(model), before)
        return True

    assert all(some_ranks(run))


class Several(Layers):
    """Returns functions of a batch of all kinds."""

    def forward(self, x, t):
        errors = squares(self, x, t)
        centered = errors - F.mean(errors, 0, keepdims=True)
        numbers = {"sum": F.sum(errors), "mean": F.mean(errors), "size": len(x)}
        return {**numbers, "maximum": F.max(errors), "centered": centered}


def test_evaluation_of_what_is_neither(some_ranks):
    one, (x, t) = Several(), DATA[0]
    expected = {name: renga.as_array(y) for name, y in one(x, t).items()}

    def run(comm):
        model, _ = pipeline(Several, comm, DATA)
        return [{k: renga.as_array(y) for k, y in model(x, t).items()} for _ in "ab"]

    for found in some_ranks(run):
        for each in found:
            for name, value in expected.items():
                np.testing.assert_allclose(each[name], value, 1e-12, err_msg=name)


def test_ignored_labels_without_samples_are_refused():
    x, t = DATA[0]
    ignored = np.where(np.arange(len(t)) == 1, -1, t).astype("i")

    def run(comm, **options):
        model, optimizer = pipeline(Layers, comm, DATA, **options)
        model.train_batch(optimizer, model.model, (x, ignored))
        return whole(model)

    with pytest.raises(ValueError, match="samples= where some samples do not count"):
        local.run(run, ranks=2)
    expected = serial(Layers, [(x, ignored)])
    for found in local.run(
        lambda c: run(c, samples=lambda x, t: (t >= 0).sum()), ranks=2
    ):
        assert_close(found, expected)


def test_a_function_of_batches_of_one_size_is_refused():
    def run(comm, **options):
        model, optimizer = pipeline(Layers, comm, DATA, m=2, **options)

        def loss(x, t):
            y = F.reshape(model.model.predict(x), (3, 5))
            return F.softmax_cross_entropy(y, t)

        model.train_batch(optimizer, loss, [array[:6] for array in DATA[0]])
        return whole(model)

    with pytest.raises(ValueError, match="takes 6 samples as it takes 3.*reduce="):
        local.run(run, ranks=2)
    expected = serial(Layers, [[array[:6] for array in DATA[0]]])
    for found in local.run(lambda comm: run(comm, reduce="mean"), ranks=2):
        assert_close(found, expected)


@pytest.mark.parametrize("sizes", [(7, 0), (1, 6), (0, 1)])
def test_replicas_agree_what_a_loss_is(sizes):
    """Of which one has too few samples to see it."""
    (x, t), expected = DATA[0], one_process(LOSSES["half a sum"], DATA[:1])

    def run(comm):
        groups = create_groups(comm, stage=2)
        example = x[:2], t[:2]
        model = Pipeline(Layers(), groups.stage, *example, micro_batches=2)
        optimizer = create_multi_node_optimizer(MomentumSGD(2 * RATE), groups.data)
        optimizer.setup(model)
        start = sum(sizes[: groups.data.rank])
        own = slice(start, start + sizes[groups.data.rank])

        def loss(x, t):  # the optimizer takes the mean of the replicas' gradients
            return LOSSES["half a sum"](model.model, x, t)

        model.train_batch(optimizer, loss, (x[own], t[own]))
        return whole(model)

    if sizes == (0, 1):  # no replica sees it
        with pytest.raises(ValueError, match=NEITHER):
            local.run(run, ranks=4)
        return
    for found in local.run(run, ranks=4):
        assert_close(found, expected)


def test_batches_of_one_sample_that_are_added_up():
    """Two of them make one update; what their loss is cannot be seen."""
    x, t = DATA[0]

    def run(comm, **options):
        model, optimizer = pipeline(Layers, comm, DATA, m=1, **options)
        model.train_batches(optimizer, model.model, [(x[:1], t[:1]), (x[1:2], t[1:2])])
        return whole(model)

    with pytest.raises(ValueError, match=NEITHER):
        local.run(run, ranks=2)
    expected = serial(Layers, [(x[:2], t[:2])])
    for found in local.run(lambda comm: run(comm, reduce="mean"), ranks=2):
        assert_close(found, expected)


def ignoring(*labels):
    """The batches, of which the second one's labels at these places are ignored."""
    data = [(x, t.copy()) for x, t in DATA]
    data[1][1][list(labels)] = -1
    return data


def accurate(model, x, t):
    """A loss over all labels, with an accuracy over those that count."""
    renga.report({"accuracy": F.accuracy(model.predict(x), t, ignore_label=-1)}, model)
    return F.sum(squares(model, x, abs(t))) / len(x)


def binary(model, x, t):
    labels = np.eye(5, dtype="i")[t]
    labels[t < 0] = -1
    renga.report({"right": F.binary_accuracy(model.predict(x), labels)}, model)
    return F.sigmoid_cross_entropy(model.predict(x), labels)


def smoothed(model, x, t):
    return F.label_smoothing_cross_entropy(model.predict(x), t)


@pytest.mark.parametrize("loss", [Layers.forward, accurate, binary, smoothed])
@pytest.mark.parametrize("schedule", ["gpipe", "interleaved", "pipedream"])
def test_labels_that_only_a_later_batch_ignores(loss, schedule):
    """They are refused unless it is told how many labels count."""
    data = ignoring(0, 1)

    def untold(comm):
        model, optimizer = pipeline(Layers, comm, data, schedule=schedule)
        of_batch = functools.partial(loss, model.model)
        model.train_batch(optimizer, of_batch, data[0])
        model.drain()
        before = [param.array.copy() for param in model.params()]
        with pytest.raises(ValueError, match="samples="):
            model.train_batch(optimizer, of_batch, data[1])
        if schedule != "pipedream":
            for param, array in zip(model.params(), before):
                np.testing.assert_array_equal(param.array, array)

    local.run(untold, ranks=1)


@pytest.mark.parametrize("loss", [Layers.forward, binary, smoothed])
def test_labels_whose_number_is_told(some_ranks, loss):
    data = ignoring(0, 1)
    expected = one_process(loss, data)
    count = lambda x, t: (t >= 0).sum()  # noqa: E731
    for found in some_ranks(lambda c: trained(c, loss, data, samples=count)):
        assert_close(found, expected)


def test_equally_many_ignored_labels_in_all_micro_batches(some_ranks):
    """One of two in each; a batch with other numbers of them is refused."""
    data = [(x[:6], t[:6]) for x, t in ignoring(0, 2, 4)]
    expected = one_process(Layers.forward, data)
    for found in some_ranks(lambda c: trained(c, Layers.forward, data)):
        assert_close(found, expected)
    data += [(x[:6], t[:6]) for x, t in ignoring(0)[1:2]]
    with pytest.raises(ValueError, match="over one share of the samples.*samples="):
        local.run(lambda comm: trained(comm, Layers.forward, data), ranks=1)


def masked(model, x, t, mask):
    """The mean over what a mask leaves; it is one over all samples while it is full."""
    errors = squares(model, x, t) * mask
    return F.sum(errors) / (mask.astype("d").sum() * 5)


def padded(model, x, t):
    """The mean over labels that are no padding, which is the number 3."""
    count = (t != 3).sum()
    return F.sum(cross_entropies(model, x, t) * (t != 3)) / count


@pytest.mark.parametrize("schedule", ["1f1b", "pipedream"])
@pytest.mark.parametrize("dtype", ["d", "?", "i"])
@pytest.mark.parametrize("masked_at", [0, 6])
def test_masks_that_are_full_at_first(schedule, dtype, masked_at):
    """They are refused in the first batch where they are not, unless it is told."""
    data = [(x, t, np.ones((len(t), 1), dtype)) for x, t in DATA]
    data[2][2][masked_at] = 0

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, schedule=schedule)
        of_batch = functools.partial(masked, model.model)
        for batch in data[:2]:
            model.train_batch(optimizer, of_batch, batch)
        model.drain()
        before = whole(model)
        with pytest.raises(ValueError, match=NEITHER):
            model.train_batch(optimizer, of_batch, data[2])
        assert_close(whole(model), before)

    def told(comm, **options):
        model, optimizer = pipeline(Layers, comm, DATA, **options)
        optimizer.lr = RATE
        for batch in data:
            model.train_batch(optimizer, lambda *b: masked(model.model, *b), batch)
        return whole(model)

    local.run(run, ranks=2)
    expected = one_process(masked, data)
    count = lambda x, t, mask: mask.sum()  # noqa: E731
    if schedule == "1f1b":
        for found in local.run(lambda c: told(c, samples=count), ranks=2):
            assert_close(found, expected)


@pytest.mark.parametrize("as_input", [dict, list])
def test_padding_that_only_a_later_batch_has(as_input):
    data = [(x, np.minimum(t, 2).astype("i")) for x, t in DATA]
    data[1][1][[1, 4]] = 3

    def loss(model, batch):
        return padded(model, *(batch.values() if as_input is dict else batch))

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        of_batch = functools.partial(loss, model.model)
        batches = [as_input(zip("xt", b) if as_input is dict else b) for b in data]
        model.train_batch(optimizer, of_batch, (batches[0],))
        before = whole(model)
        with pytest.raises(ValueError, match=NEITHER):
            model.train_batch(optimizer, of_batch, (batches[1],))
        assert_close(whole(model), before)

    local.run(run, ranks=2)


def test_a_term_whose_weight_was_zero_at_first():
    """Of a sum of losses and a penalty, which is refused as soon as it counts."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)

        def loss(weight):
            inner = LOSSES["sum"]
            return lambda *b: inner(model.model, *b) + weight * penalty(model.model)

        model.train_batch(optimizer, loss(0), DATA[0])
        before = whole(model)
        with pytest.raises(ValueError, match=NEITHER):
            model.train_batch(optimizer, loss(0.5), DATA[1])
        assert_close(whole(model), before)

    local.run(run, ranks=2)


def test_ranks_that_have_other_values():
    """A batch which one rank alone would look at again is refused on all ranks."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        x, t = DATA[0]
        model.train_batch(optimizer, model.model, (x, t))
        before = whole(model)
        own = np.where(t == t[0], -comm.rank, t).astype(t.dtype)
        with pytest.raises(RuntimeError, match="values of new kinds in 0 parts.* in 1"):
            model.train_batch(optimizer, model.model, (x, own))
        assert_close(whole(model), before)

    local.run(run, ranks=2)
