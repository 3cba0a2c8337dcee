"""Mistakes that Chainer ignores: a warning names the mistake and the remedy."""

import warnings

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import distributions, extensions, gradient_check, iterators
from renga.communicators.simulated import connect


def _warnings_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def _model(init, base=renga.Chain):
    def __init__(self):
        base.__init__(self)
        init(self)

    return type("Model", (base,), {"__init__": __init__})


def _outside(self):
    self.l1 = L.Linear(3, 2)


def _within(self):
    with self.init_scope():
        self.l1 = L.Linear(3, 2)


def _parameter_outside(self):
    self.W = renga.Parameter(0, (2,))


def _shared(self):
    _within(self)
    self.again = self.l1
    self.W = self.l1.W
    self.l1 = L.Linear(3, 3)


def _without_parameters(self):
    self.pool = renga.Sequential(F.relu)


@pytest.mark.parametrize(
    ("init", "base", "message"),
    [
        (_without_parameters, renga.Chain, None),
        (_outside, renga.Chain, "Model.l1: the link is not registered"),
        (_outside, renga.Link, "to a Chain"),
        (_outside, renga.ChainList, "append"),
        (_within, renga.Link, "to a Chain"),
        (_parameter_outside, renga.Chain, "Model.W: the parameter is not registered"),
        (_within, renga.Chain, None),
        (_shared, renga.Chain, None),
    ],
)
def test_assignment_outside_init_scope(init, base, message):
    found = _warnings_of(_model(init, base))
    assert len(found) == (message is not None)
    assert not message or message in found[0]


def _in_list(self):
    _within(self)
    self.layers = [L.Linear(2, 2)]


def _in_registered_list(self):
    self.layers = []
    for i in range(2):
        self.layers.append(L.Linear(2, 2))
        self.add_link(f"l{i}", self.layers[-1])


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (lambda self: None, "has no parameters"),
        (_in_list, "Model.layers holds links that are not registered"),
        (_in_registered_list, None),
        (_within, None),
    ],
)
def test_setup_of_an_optimizer(init, message):
    model = _model(init)()
    found = _warnings_of(lambda: renga.optimizers.SGD().setup(model))
    assert len(found) == (message is not None)
    assert not message or message in found[0]


def test_unknown_setting():
    def use(name):
        with renga.using_config(name, False):
            pass

    (message,) = _warnings_of(lambda: use("trian"))
    assert "'trian'" in message and "'train'" in message
    assert not _warnings_of(lambda: use("train"))
    renga.config.a_setting_of_mine = 1
    assert not _warnings_of(lambda: use("a_setting_of_mine"))
    del renga.config.a_setting_of_mine


def test_backward_without_a_gradient():
    def backward(y):
        y.backward()

    x = renga.Variable(numpy.ones((2, 3), "f"))
    (message,) = _warnings_of(lambda: backward(x * 2))
    assert "(2, 3)" in message and "F.sum" in message
    y = x * 2
    y.grad = numpy.ones((2, 3), "f")
    assert not _warnings_of(lambda: backward(y))
    assert not _warnings_of(lambda: backward(F.sum(x)))
    (message,) = _warnings_of(lambda: backward(x[:1, :1]))
    assert "only one element" in message


@pytest.mark.parametrize(
    "base", [renga.Link, renga.Chain, renga.ChainList, renga.Sequential]
)
def test_link_before_init(base):
    model = type("Model", (base,), {"__init__": lambda self: None})()
    calls = [
        lambda: list(model.params()),
        lambda: list(model.namedparams()),
        model.cleargrads,
        model.copy,
        model.to_cpu,
        lambda: model.add_param("W", (2,)),
        lambda: model.add_persistent("n", 2),
        lambda: model.init_scope().__enter__(),
        lambda: model.serialize(renga.serializers.DictionarySerializer()),
        lambda: renga.optimizers.SGD().setup(model),
    ]
    if base is not renga.Link:
        calls += [lambda: list(model.children()), lambda: str(model)]
    if base is renga.Sequential:
        calls += [lambda: model(1), lambda: len(model)]
    for call in calls:
        with pytest.raises(
            RuntimeError, match=r"^Link.__init__\(\) has not been called.$"
        ):
            call()


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("Adam", "lr", "alpha"),
        ("AdamW", "lr", "alpha"),
        ("AMSGrad", "lr", "alpha"),
        ("AdaBound", "lr", "alpha"),
        ("AMSBound", "lr", "alpha"),
        ("SGD", "alpha", "lr"),
        ("MomentumSGD", "alpha", "lr"),
    ],
)
def test_name_of_the_learning_rate(name, wrong, right):
    cls = getattr(renga.optimizers, name)
    with pytest.raises(TypeError, match=f"called {right}, got {wrong}=0.5"):
        cls(**{wrong: 0.5})


def test_learning_rate_of_adam_is_not_set_by_lr():
    optimizer = renga.optimizers.Adam()
    with pytest.raises(AttributeError, match="alpha"):
        optimizer.lr = 0.1
    with pytest.raises(RuntimeError):
        optimizer.lr  # noqa: B018 (not known before an update)


def _run(extension, tmp_path):
    model = L.Classifier(L.Linear(3, 2))
    optimizer = renga.optimizers.SGD().setup(model)
    data = [(numpy.ones(3, "f"), numpy.int32(1))] * 4
    iterator = renga.iterators.SerialIterator(data, 2)
    updater = renga.training.StandardUpdater(iterator, optimizer)
    trainer = renga.training.Trainer(updater, (1, "epoch"), out=str(tmp_path))
    trainer.extend(renga.training.extensions.LogReport())
    trainer.extend(extension)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.run()
    return [str(w.message) for w in caught]


def test_keys_that_are_never_observed(tmp_path, capsys):
    extensions = renga.training.extensions
    (message,) = _run(extensions.PrintReport(["epoch", "main/los"]), tmp_path)
    assert message == "PrintReport: nothing was reported as main/los"
    assert not _run(extensions.PrintReport(["epoch", "main/loss"]), tmp_path)
    (message,) = _run(extensions.PlotReport(["main/los", "main/loss"]), tmp_path)
    assert message == "PlotReport: nothing was reported as main/los"
    assert not _run(extensions.PlotReport(["main/loss"]), tmp_path)


def _used(name):
    with renga.using_config("warn_nondeterministic", True):
        renga.utils.nondeterministic(name)


def _named(name):
    renga.utils.experimental(name)


X, ONES = numpy.ones((1, 3), "f"), numpy.ones(3, "f")
LINK, ENDLESS = L.Linear(None, 2), iterators.SerialIterator([1], 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.batch_matmul(X[None], X.T[None]), "batch_matmul is deprecated"),
        (lambda: F.batch_normalization(X, ONES, ONES), "a batch of one sample"),
        (
            lambda: F.fixed_batch_renormalization(X, ONES, ONES, ONES, ONES),
            "fixed_batch_renormalization is deprecated",
        ),
        (lambda: renga.Variable(X).zerograd(), "zerograd is deprecated"),
        (lambda: renga.Parameter(X).zerograd(), "zerograd is deprecated"),
        (lambda: renga.backward([renga.Variable(X)]), "an output has no gradient"),
        (lambda: renga.optimizers.SGD().use_cleargrads(), "use_cleargrads"),
        (lambda: LINK.to_cpu(), "to_cpu is deprecated, use to_device"),
        (lambda: LINK.count_params(), "'/W' has not been initialized"),
        (
            lambda: type("Moved", (renga.Link,), {"to_gpu": len}),
            "Moved.to_gpu: overriding it is deprecated",
        ),
        (lambda: _used("a"), "a: expected determinism"),
        (lambda: _named("b"), "b is experimental"),
        (lambda: distributions.Cauchy(X, X).mean, "Mean of the cauchy"),
        (lambda: gradient_check.assert_allclose(X, X), "use testing.assert_allclose"),
        (lambda: extensions.snapshot(num_retain=2), "num_retain is deprecated"),
        (lambda: extensions.Evaluator(ENDLESS, LINK), "'main' has repeat=True"),
        (lambda: connect().allreduce_grad(LINK), "allreduce_grad is deprecated"),
    ],
)
def test_a_warning_is_of_the_line_that_causes_it(call, message):
    (found,) = _warnings_of(call)
    assert message in found


def test_zeros_in_all_gradients_are_deprecated():
    with pytest.warns(DeprecationWarning, match="zerograds is deprecated") as caught:
        LINK.zerograds()
    assert caught[0].filename == __file__  # each parameter warns, too
