"""forget: the same numbers, gradients and statistics as without it."""

import random

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L

rng = numpy.random.default_rng(0)
rows = rng.normal(size=(4, 12)).astype("f")
images = rng.normal(size=(4, 3, 5, 5)).astype("f")


def _train(wrap, make, x, steps):
    """The results of a few calls and one backward pass, by name."""
    numpy.random.seed(0)
    random.seed(0)
    func = make()
    # A chain of its own, so that its name comes before those of parameters.
    model = func if isinstance(func, renga.Link) else None
    xs = [renga.Variable(x + 0.3 * i) for i in range(steps)]
    loss = 0
    for v in xs:
        ys = wrap(func, v)
        for y in ys if isinstance(ys, tuple) else (ys,):
            loss = loss + F.sum(y * y * y * 0.1 + y)
    found = {"loss": loss.array}
    if model is not None:
        model.cleargrads()
    numpy.random.random_sample(3)
    random.random()
    loss.backward()
    for i, v in enumerate(xs):
        found[f"x{i}"] = v.grad
    if model is not None:
        found.update((name, param.grad) for name, param in model.namedparams())
        for path, link in model.namedlinks():
            found.update((f"{path} {k}", vars(link)[k]) for k in link._persistent)
            states = {k: v for k, v in vars(link).items() if k in ("c", "h")}
            found.update((k, v.array) for k, v in states.items())
    found["next"] = numpy.random.random_sample()
    found["next of Python"] = random.random()
    return found


def _check(make, x, steps=1):
    expected = _train(lambda f, v: f(v), make, x, steps)
    got = _train(F.forget, make, x, steps)
    assert got.keys() == expected.keys()
    for name in expected:
        assert (got[name] is None) == (expected[name] is None), name
        if got[name] is not None:
            numpy.testing.assert_allclose(
                got[name], expected[name], 1e-4, 2e-5, err_msg=name
            )


RANDOM = {
    "dropout": lambda x: F.dropout(x),
    "dropout with mask": lambda x: F.dropout(x, return_mask=True)[0],
    "gaussian": lambda x: F.gaussian(x, x),
    "zoneout": lambda x: F.zoneout(x * 2, x),
    "rrelu": lambda x: F.rrelu(x),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "simplified_dropconnect": lambda x: F.simplified_dropconnect(x, rows),
    "NumPy": lambda x: x * numpy.random.normal(size=x.shape).astype("f"),
    "Python": lambda x: x * random.random(),
    "twice": lambda x: (F.dropout(x), F.dropout(x)),
    "nested": lambda x: F.dropout(F.forget(F.dropout, F.dropout(x))),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_drawn_once(name):
    _check(lambda: RANDOM[name], rows, steps=2)


class _Nested(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.inner = L.LSTM(12, 4)
            self.norm = L.BatchRenormalization(4, rmax=2, dmax=1)

    def forward(self, x):
        return F.forget(self.norm, F.dropout(F.forget(self.inner, x)))


LINKS = {
    "Linear": lambda: L.Linear(12, 5),
    "Linear of unknown size": lambda: L.Linear(5),
    "SimplifiedDropconnect": lambda: L.SimplifiedDropconnect(12, 5),
    "LSTM": lambda: L.LSTM(12, 5),
    "StatefulGRU": lambda: L.StatefulGRU(12, 5),
    "StatefulZoneoutLSTM": lambda: L.StatefulZoneoutLSTM(12, 5),
    "nested": _Nested,
}


@pytest.mark.parametrize("name", LINKS)
def test_links_get_their_gradients(name):
    _check(LINKS[name], rows, steps=3)


NORMALIZATIONS = {
    "BatchNormalization": lambda: L.BatchNormalization(3),
    "of unknown size": lambda: L.BatchNormalization(axis=(0, 2, 3)),
    "BatchRenormalization": lambda: L.BatchRenormalization(3, rmax=2, dmax=1),
    "Decorrelated": lambda: L.DecorrelatedBatchNormalization(3, groups=1),
    "Sequential": lambda: renga.Sequential(
        L.Convolution2D(3, 4, 3), L.BatchNormalization(4), F.relu, F.dropout
    ),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_statistics_are_updated_once(name):
    _check(NORMALIZATIONS[name], images, steps=3)


def test_statistics_of_a_function_are_updated_once():
    mean, var = numpy.zeros(3, "f"), numpy.ones(3, "f")
    ones = numpy.ones(3, "f")
    x = renga.Variable(images)
    y = F.forget(
        lambda x: F.batch_normalization(
            x, ones, ones, running_mean=mean, running_var=var, decay=0.5
        ),
        x,
    )
    kept = mean.copy()
    numpy.testing.assert_allclose(kept, images.mean((0, 2, 3)) / 2, 1e-5, 1e-6)
    F.sum(y).backward()
    numpy.testing.assert_array_equal(mean, kept)


def test_finetuning_counts_once():
    link = L.BatchNormalization(3)
    y = F.forget(lambda x: link(x, finetune=True), renga.Variable(images))
    F.sum(y).backward()
    assert link.N == 1


def test_arrays_are_enough_for_a_link_to_train():
    link = L.Linear(12, 5)
    link.cleargrads()
    F.sum(F.forget(link, rows)).backward()
    numpy.testing.assert_allclose(link.W.grad, numpy.tile(rows.sum(0), (5, 1)), 1e-5)


def test_what_a_function_closes_over_gets_its_gradient():
    w = renga.Parameter(numpy.array([2.0, 3.0]))
    h = w * w
    x = renga.Variable(numpy.array([1.0, 4.0]))
    y = F.forget(lambda x: x * h * w, x * h)
    gw, gx = renga.grad([y], [w, x])
    numpy.testing.assert_allclose(gw.array, 5 * x.array * w.array**4)
    numpy.testing.assert_allclose(gx.array, w.array**5)
    assert w.grad is None or numpy.isnan(w.grad).all()


def _third_derivative(wrap):
    x = renga.Variable(numpy.array([0.3, 0.7]))
    w = renga.Parameter(numpy.array([0.2, 1.1]))
    (y,) = [wrap(lambda x: F.sin(x * w) * w, x)]
    for variable in (x, w, x):
        (y,) = renga.grad([y], [variable], enable_double_backprop=True)
    return y.array


def test_derivatives_of_higher_order():
    expected = _third_derivative(lambda f, x: f(x))
    numpy.testing.assert_allclose(_third_derivative(F.forget), expected)


def test_gradient_penalty_with_random_numbers():
    def gradients(wrap):
        numpy.random.seed(0)
        link, x = L.Linear(12, 5), renga.Variable(rows)
        y = wrap(lambda x: F.tanh(F.dropout(link(x))), x)
        gx, gW = renga.grad([F.sum(y * y)], [x, link.W], enable_double_backprop=True)
        link.cleargrads()
        (F.sum(gx**2) + F.sum(gW**3)).backward()
        return x.grad, link.W.grad, link.b.grad

    for got, expected in zip(gradients(F.forget), gradients(lambda f, x: f(x))):
        numpy.testing.assert_allclose(got, expected, 1e-4, 1e-5)


def test_recomputation_uses_the_settings_of_the_first_run():
    x = renga.Variable(rows)
    with renga.using_config("train", False):
        y = F.forget(F.dropout, x)
    F.sum(y).backward()
    numpy.testing.assert_array_equal(x.grad, numpy.ones_like(rows))
    assert renga.config.train


def test_attributes_of_links_remain_connected_to_the_graph():
    model = L.Classifier(L.Linear(12, 5))
    t = numpy.zeros(4, "i")
    for _ in range(3):
        F.forget(model, rows, t)
        model.cleargrads()
        model.loss.backward()
        assert abs(model.predictor.W.grad).sum() > 0
    # What was computed before is not recomputed.
    assert len(model.loss.creator_node.inputs) == 2 + 2


def test_errors_restore_all_state():
    def function(x):
        if renga.config.in_recomputing:
            raise KeyError("again")
        return F.dropout(x)

    y = F.forget(function, renga.Variable(rows))
    numpy.random.seed(5)
    with pytest.raises(KeyError):
        F.sum(y).backward()
    assert not renga.config.in_recomputing
    got = numpy.random.random_sample()
    numpy.random.seed(5)
    assert got == numpy.random.random_sample()


def test_another_shape_when_recomputed_is_an_error():
    y = F.forget(
        lambda x: x[1:] if renga.config.in_recomputing else x, renga.Variable(rows)
    )
    with pytest.raises(RuntimeError, match="first run"):
        F.sum(y).backward()


def test_settings_in_a_backward_do_not_affect_the_backward_pass():
    seen = []

    class Settings(renga.FunctionNode):
        def forward(self, inputs):
            return inputs

        def backward(self, indexes, gys):
            seen.append(renga.config.enable_backprop)
            with renga.force_backprop_mode():
                pass
            return gys

    x = renga.Variable(rows)
    y = x
    for _ in range(3):
        (y,) = Settings().apply((y,))
    F.sum(y).backward()
    assert seen == [False] * 3
    assert x.grad_var.creator_node is None
