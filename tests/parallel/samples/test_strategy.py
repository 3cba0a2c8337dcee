"""Models of which each group of ranks computes some of the samples."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.links.parallel.channel.link import LinkChoice
from renga.parallel.channel.strategy import ChannelStrategy
from renga.parallel.conversion.replacement import copy_with_replacements
from renga.parallel.samples.stacked_steps import stacked_steps
from renga.parallel.samples.strategy import SampleRun, SampleStrategy
from renga.utils.type_check import InvalidType


def parallel(model, comm, groups, stacked=(False,)):
    run = SampleRun.create(comm, groups, stacked)
    return copy_with_replacements(model, {}, run.class_of)


def numbers(*shape):
    return np.random.RandomState(len(shape)).normal(size=shape).astype(np.float32)


class Dropped(renga.Chain):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("groups", [2, 4])
def test_each_sample_has_its_own_zeros(monkeypatch, groups):
    x = np.ones((10, 50), np.float32)
    # Every rank's generator is in the same state, as after parallelize().
    monkeypatch.setattr(np.random, "random_sample", lambda: 0.625)

    def act(comm):
        return parallel(Dropped(F.dropout), comm, groups)(x).array

    ys = local.run(act, ranks=4)
    for y in ys:
        np.testing.assert_array_equal(y, ys[0])
    assert len({tuple(row) for row in ys[0]}) == 10
    assert 0.4 < np.mean(ys[0] > 0) < 0.6


@pytest.mark.parametrize("function", [F.dropout, F.rrelu], ids=["dropout", "rrelu"])
def test_generators_of_ranks_stay_alike(ranks_with_own_random_numbers, function):
    def act(comm):
        np.random.seed(3)
        parallel(Dropped(function), comm, comm.size)(numbers(7, 5))  # not even
        return np.random.rand()

    assert len(set(ranks_with_own_random_numbers(act))) == 1


class Several(renga.Chain):
    """Two inputs with samples, one without, and two outputs."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(4, 6, initialW=numbers(6, 4))
            self.second = L.Linear(6, 6, initialW=numbers(6, 6))
            self.unused = renga.Parameter(numbers(3))

    def forward(self, x, z, scale):
        h = F.tanh(self.first(x)) + z
        h = self.second(self.second(h)) * F.broadcast_to(scale, h.shape)
        return {"h": h, "sum": F.sum(h, axis=1)}


def gradients(model, arrays):
    xs = [renga.Variable(x) for x in arrays]
    ys = model(*xs)
    (F.sum(ys["h"] ** 2) + F.sum(ys["sum"] ** 3)).backward()
    found = {"h": ys["h"].array, "sum": ys["sum"].array}
    found |= {str(i): x.grad for i, x in enumerate(xs)}
    return found | {name: param.grad for name, param in model.namedparams()}


def test_arguments_of_all_kinds_get_gradients_of_all_samples(ranks):
    arrays = numbers(7, 4), numbers(7, 6), numbers(6)
    expected = gradients(Several(), arrays)

    def act(comm):
        return gradients(parallel(Several(), comm, comm.size), arrays)

    for found in ranks(act):
        assert found.keys() == expected.keys()
        assert found.pop("/unused") is None
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], 1e-4, 1e-5, err_msg=name)


class Listed(renga.Chain):
    """Refers to parameters and links in containers of its own, and to a Variable."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(4, 6, initialW=numbers(6, 4))
            self.second = L.Linear(6, 3, initialW=numbers(3, 6))
            self.second.b = self.first.b
        self.weights = [self.first.W, self.second.W]
        self.layers = {"last": self.second}
        self.offset = renga.Variable(numbers(1, 6))

    def forward(self, x):
        h = F.tanh(F.linear(x, self.weights[0], self.first.b) + self.offset)
        penalty = sum(F.mean(W**2) for W in self.weights)
        return F.linear(h, self.layers["last"].W) + penalty


def test_parameters_and_variables_that_a_model_keeps(several_ranks):
    x = numbers(7, 4)

    def differentiate(model):
        y = model(x)
        model.cleargrads()
        F.sum(y**2).backward()
        found = {name: param.grad for name, param in model.namedparams()}
        return {**found, "offset": model.offset.grad}

    expected = differentiate(Listed())
    for found in several_ranks(
        lambda comm: differentiate(parallel(Listed(), comm, comm.size))
    ):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-4, 1e-4, err_msg=name)


class Beside(renga.Chain):
    """Reads what is no argument of it, and leaves of its own calls."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        with self.init_scope():
            self.layer = L.Linear(4, 6, initialW=numbers(6, 4))

    def forward(self, x):
        zeros = renga.Variable(np.zeros((len(x), 6), np.float32))
        h = F.tanh(self.layer(x) + zeros) * self.read()
        (gh,) = renga.grad([F.sum(h**2)], [zeros], enable_double_backprop=True)
        return h + gh * self.read()


@pytest.mark.parametrize(
    "value, read",
    [
        (renga.Variable, lambda x: x),
        (renga.Variable, lambda x: 2 * x),
        (renga.Variable, F.sum),
        (renga.Parameter, lambda x: x),
        (renga.Parameter, F.tanh),
    ],
)
def test_what_a_model_reads_beside_its_arguments(value, read, some_ranks):
    xs = numbers(7, 4), numbers(9, 4)[:4]

    def differentiate(wrap):
        of_program, found = value(numbers(1, 6)), []
        model = wrap(Beside(lambda: computed))
        for x in xs:
            computed = read(of_program)
            y = model(x)
            model.cleargrads()
            of_program.cleargrad()
            F.sum(y**2).backward()
            found += [y.array, of_program.grad, model.layer.W.grad]
        return found

    expected = differentiate(lambda model: model)
    for found in some_ranks(
        lambda comm: differentiate(lambda model: parallel(model, comm, comm.size))
    ):
        for own, value_of_one in zip(found, expected):
            np.testing.assert_allclose(own, value_of_one, 1e-4, 1e-4)


class Noting(renga.Chain):
    """Notes leaves that it makes of its samples, and of numbers that all ranks have."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def forward(self, x):
        self.noted += [renga.Variable(x), renga.Variable(numbers(4))]
        return self.noted[0] * F.broadcast_to(self.noted[1], x.shape)


def test_leaves_that_a_model_notes_in_its_call(several_ranks):
    x = numbers(7, 4)  # not even
    of_all = np.sum(2 * x * (x * numbers(4)), axis=0)

    def act(comm):
        model = Noting()
        parallel_model = parallel(model, comm, comm.size)
        y = parallel_model(x)
        F.sum(y**2).backward()
        own, shared = parallel_model.noted
        np.testing.assert_allclose(shared.grad, of_all, 1e-5, 1e-5)
        expected = 2 * own.array * numbers(4) ** 2
        np.testing.assert_allclose(own.grad, expected, 1e-5, 1e-5)
        return True

    assert all(several_ranks(act))


def test_gradients_of_second_order_are_those_of_all_samples(several_ranks):
    x = numbers(5, 4)

    def second(model):
        y = F.sum(F.tanh(model(x)) ** 2)
        (gW,) = renga.grad([y], [model.W], enable_double_backprop=True)
        (ggW,) = renga.grad([F.sum(gW**2)], [model.W])
        return ggW.array

    def make():
        return L.Linear(4, 3, initialW=numbers(3, 4))

    expected = second(make())
    for found in several_ranks(lambda comm: second(parallel(make(), comm, comm.size))):
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_batch_normalization_is_over_all_samples(ranks):
    x = numbers(7, 3, 2, 2)

    def run(model):
        for _ in range(2):
            y = model(x)
        F.sum(y**3).backward()
        return y.array, model.avg_mean, model.avg_var, model.gamma.grad, model.beta.grad

    expected = run(L.BatchNormalization(3))
    act = run
    for found in ranks(
        lambda comm: act(parallel(L.BatchNormalization(3), comm, comm.size))
    ):
        for own, value in zip(found, expected):
            np.testing.assert_allclose(own, value, 1e-4, 1e-4)


def test_calls_that_ranks_cannot_share(several_ranks):
    def act(comm):
        model = parallel(L.Linear(4, 3), comm, comm.size)
        with pytest.raises(InvalidType, match="expected the same inputs"):
            model(numbers(6 + comm.rank, 4))
        with pytest.raises(InvalidType, match=f"{comm.size} samples or more"):
            model(numbers(comm.size - 1, 4))
        with pytest.raises(InvalidType, match="got no array"):
            model()
        mean = parallel(Dropped(F.mean), comm, comm.size)
        with pytest.raises(InvalidType, match="a multiple of 1 rows"):
            mean(numbers(comm.size, 4))
        with pytest.raises(ValueError, match="create_groups: expected"):
            SampleRun.create(comm, comm.size + 1, ())
        return True

    assert all(several_ranks(act))


@pytest.mark.parametrize(
    "function, is_stacked",
    [
        (F.tanh, False),
        (lambda x: F.reshape(x, (-1, 4)), False),
        (lambda x: F.reshape(F.transpose(x, (1, 0, 2)), (-1, 4)), True),
        (lambda x: F.concat([x[:, t] for t in range(x.shape[1])], axis=0), True),
        (lambda x: F.sum(x, axis=(1, 2)), False),
    ],
)
def test_how_outputs_are_stacked(function, is_stacked, some_ranks):
    x = numbers(5, 3, 4)
    assert stacked_steps(Dropped(function), (x,), 2) == (is_stacked,)
    # The outputs are stacked with another number of time steps than the example, too.
    x, model = numbers(7, 6, 4), Dropped(function)

    def act(comm):
        return parallel(model, comm, comm.size, (is_stacked,))(x).array

    for found in some_ranks(act):
        np.testing.assert_allclose(found, function(renga.Variable(x)).array, 1e-5)


def forgetful(x):
    return F.forget(F.tanh, x)


@pytest.mark.parametrize(
    "model, reason",
    [
        (Dropped(F.mean), "no axis of samples"),
        (Dropped(lambda x: x - F.mean(x)), "depend on other samples"),
        (Dropped(lambda x: F.reshape(0 * x, (-1, 4))), "or are all equal"),
        (Dropped(lambda x: None), "returns no arrays"),
        (Dropped(forgetful), "F.forget"),
        (L.BatchRenormalization(3), "needs all samples"),
        (L.BatchNormalization(5, axis=(1, 2)), "needs all samples"),
    ],
)
def test_models_whose_samples_cannot_be_split(model, reason):
    with pytest.raises(ValueError, match=reason):
        stacked_steps(model, (numbers(5, 3, 4),), 2)
    with pytest.raises(ValueError, match="expected 6 samples or more, got 5"):
        stacked_steps(model, (numbers(5, 3, 4),), 6)


class TwoLinks(renga.Chain):
    """Links between which each rank of a group has some channels."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(4, 6, initialW=numbers(6, 4))
            self.second = L.Linear(6, 4, initialW=numbers(4, 6))

    def forward(self, x):
        return self.second(F.tanh(self.first(x)))


@pytest.mark.parametrize("ranks", [2, 4])
def test_links_that_a_program_calls_take_and_give_whole_arrays(ranks):
    x = numbers(6, 4)

    def results(model):
        h = model.first(x)
        y = model.second(h)
        (F.sum(h**2) + F.sum(y**2)).backward()
        return [h.array, y.array, *(p.grad for _, p in sorted(model.namedparams()))]

    def act(comm):
        choices = {
            "/first": LinkChoice(("replicated", "channel")),
            "/second": LinkChoice(("channel", "replicated")),
        }
        strategy = ChannelStrategy(choices)
        if ranks == 4:
            strategy = SampleStrategy(strategy, 2, (False,))
        serial = TwoLinks()
        found, run = strategy.divide(serial, comm, (x,))
        new = {id(each.link): each.replacement for each in found}
        model = copy_with_replacements(serial, new, run.class_of)
        model(x)  # with shards of channels in between
        h, y, *grads = results(model)
        params = [param for _, param in sorted(model.namedparams())]
        return h, y, *map(whole, params, grads)

    expected = results(TwoLinks())
    for found in local.run(act, ranks=ranks):
        for own, of_one_process in zip(found, expected):
            np.testing.assert_allclose(own, of_one_process, 1e-5, 1e-5)


def whole(param, grad):
    is_shard = getattr(param, "shard_of", None) is not None
    return param.whole(grad) if is_shard else grad
