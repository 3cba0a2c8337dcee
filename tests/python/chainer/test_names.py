"""Names of Chainer's modules that programs import: what they compute."""

import io
import types

import numpy
import pytest

import renga
import renga.links as L
from renga.chainer.names import (
    arrays,
    communicators,
    environment,
    links,
    private,
    progress,
    ranks,
    tools,
)

X = numpy.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("x", [X[0, 0], X[0], X], ids=["1", "2", "3"])
def test_arrays_as_vectors_and_matrices(x):
    with pytest.warns(DeprecationWarning, match="as_vec is deprecated") as caught:
        vector = arrays.as_vec(x)
    assert caught[0].filename == __file__
    numpy.testing.assert_array_equal(vector, x.ravel())
    assert (vector is x) == (x.ndim == 1)
    with pytest.warns(DeprecationWarning, match="as_mat is deprecated"):
        matrix = arrays.as_mat(x)
    numpy.testing.assert_array_equal(matrix, x.reshape(len(x), -1))
    assert (matrix is x) == (x.ndim == 2)


def test_commands_that_succeed():
    for command, succeeds in ((["true"], True), (["false"], False), (["/"], False)):
        assert environment.is_return_code_zero(command) is succeeds


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [((2, 3, 4, 5), (), (2, 3, 4, 5)), ((0,) * 4, (6, 7, 8, 9), (6, 7, 8, 9))],
)
def test_extents_of_blobs_of_caffe(old, new, expected):
    named = dict(zip(("num", "channels", "height", "width"), old))
    blob = types.SimpleNamespace(**named, shape=types.SimpleNamespace(dim=new))
    extents = [getattr(private, f"_get_{name}")(blob) for name in named]
    assert tuple(extents) == expected


def test_speed_over_the_last_hundred_calls(monkeypatch):
    clock = iter(10 + 2 * numpy.arange(150.0))
    monkeypatch.setattr(progress.time, "time", lambda: next(clock))
    bar = progress.ProgressBar(out=io.StringIO())
    assert bar.update_speed(0, 0) == (float("inf"), float("inf"))
    for i in range(1, 50):  # two seconds each
        assert bar.update_speed(3 * i, i / 4) == pytest.approx((1.5, 1 / 8))
    for i in range(100):  # the first of which is the first of the last hundred
        speeds = bar.update_speed(150 + i, 12 + i / 2)
    assert speeds == pytest.approx((0.5, 1 / 4))


def test_power_iterations_find_the_largest_singular_value():
    found = links.l2normalize(numpy, numpy.array([3.0, 4.0]), eps=5.0)
    numpy.testing.assert_allclose(found, [0.3, 0.4])
    matrix = numpy.array([[2.0, 1, 0], [0, 1, -1], [3, 0, 1], [1, 1, 1]])
    weight = renga.Variable(matrix)
    u, v = links.update_approximate_vectors(weight, numpy.ones(4), 100, 1e-12)
    numpy.testing.assert_allclose(numpy.linalg.norm(u), 1)
    largest = numpy.linalg.svd(matrix)[1][0]
    y = links.calculate_max_singular_value(weight, u, v)
    numpy.testing.assert_allclose(y.array, largest)


@pytest.mark.parametrize("one", [False, True])
def test_gradients_with_respect_to_parameters_are_checked(one):
    p = renga.Parameter(X[0].copy())
    params = p if one else (p,)
    check = tools._check_backward_with_params
    check(lambda xs, params: xs[0] * params[0], X[1], X[0], params)
    with pytest.raises(AssertionError):
        check(lambda xs, params: xs[0] * params[0].array, X[1], X[0], params)


def test_parameters_that_communicators_count():
    model = renga.ChainList(L.Linear(2, 3), L.Linear(None, 4), L.Linear(5, 1))
    model.cleargrads()
    model[2].b.grad = numpy.ones(1, "f")
    params = communicators.extract_params_set_data(model)
    paths = {id(param): path for path, param in model.namedparams()}
    found = [paths[id(param)] for param in params]
    assert found == ["/0/W", "/0/b", "/1/b", "/2/W", "/2/b"]
    for zero_fill, count, size in ((False, 1, 1), (True, 5, 6 + 3 + 4 + 5 + 1)):
        own = communicators.extract_params_set_grad(model, zero_fill)
        assert [paths[id(param)] for param in own] == found[-count:]
        assert communicators.count_grad_elements(params, zero_fill) == size


def test_ranks_are_counted_from_those_that_were_given(monkeypatch):
    monkeypatch.setattr(ranks._Any, "rank_was_given", True)
    node = types.SimpleNamespace
    given, leaf = node(**{ranks._RANK: 5}), node(creator_node=None)
    for inputs, rank in (((), 1), ((leaf,), 1), ((leaf, given), 6), (None, 1)):
        y = node(creator_node=node(inputs=inputs))
        assert ranks._rank(y) == rank
        assert ranks._rank(node(creator_node=node(inputs=(y,)))) == rank + 1
