"""Classifier: which argument is the label, and what is reported."""

import numpy
import pytest

import renga
import renga.links as L

X = numpy.array([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]], numpy.float32)
T = numpy.array([0, 1, 1], numpy.int32)


class Identity(renga.Link):
    def forward(self, x, scale=1.0):
        return renga.as_variable(x) * scale


def cross_entropy(y, t):
    y = y.astype("f8")
    return numpy.mean(numpy.log(numpy.exp(y).sum(1)) - y[range(len(t)), t])


def test_loss_and_accuracy():
    model = L.Classifier(Identity())
    reporter = renga.Reporter()
    reporter.add_observer("main", model)
    with reporter:
        loss = model(X, T)
    numpy.testing.assert_allclose(loss.array, cross_entropy(X, T), rtol=1e-5)
    numpy.testing.assert_allclose(model.accuracy.array, 2 / 3, rtol=1e-5)
    assert model.loss is loss
    numpy.testing.assert_array_equal(model.y.array, X)
    assert set(reporter.observation) == {"main/loss", "main/accuracy"}
    reported = renga.as_array(reporter.observation["main/loss"])
    numpy.testing.assert_array_equal(reported, loss.array)


def test_without_accuracy():
    model = L.Classifier(Identity())
    model(X, T)
    model.compute_accuracy = False
    model(X, T)
    assert model.accuracy is None


@pytest.mark.parametrize(
    ("key", "args", "kwargs"),
    [
        (-1, (X, 2.0, T), {}),
        (0, (T, X, 2.0), {}),
        (-3, (T, X, 2.0), {}),
        (1, (X, T), {"scale": 2.0}),
        ("t", (X,), {"t": T, "scale": 2.0}),
    ],
)
def test_label_key(key, args, kwargs):
    model = L.Classifier(Identity(), label_key=key)
    loss = model(*args, **kwargs)
    numpy.testing.assert_allclose(loss.array, cross_entropy(2 * X, T), rtol=1e-5)


def test_label_that_is_not_there():
    with pytest.raises(ValueError, match='"t" is not found'):
        L.Classifier(Identity(), label_key="t")(X, T)
    for key in (2, -3):
        with pytest.raises(ValueError, match=f"{key} is out of bounds"):
            L.Classifier(Identity(), label_key=key)(X, T)
    with pytest.raises(TypeError, match="label_key, got 1.5"):
        L.Classifier(Identity(), label_key=1.5)


def test_functions_of_ones_own():
    model = L.Classifier(
        Identity(), lossfun=lambda y, t: y[0, 0], accfun=lambda y, t: y[1, 1]
    )
    assert model(X, T).array == 1
    assert model.accuracy.array == 3


def test_predictor_is_a_child():
    model = L.Classifier(L.Linear(2, 3))
    assert [name for name, _ in model.namedparams()] == ["/predictor/W", "/predictor/b"]
