"""Graphs and backward passes: shared memory, call sites, errors."""

import numpy as np
import pytest

import renga
from renga import _core, functions as F


def variable(*shape):
    return renga.Variable(np.random.RandomState(0).rand(*shape).astype("d"))


def test_arrays_are_shared_both_ways():
    data = np.zeros((4, 6), "f")[::-2, 1::2]
    x = renga.Variable(data)
    assert x.array is data
    y = F.reshape(x, (2, 3))
    data[0, 0] = 5
    assert x.array[0, 0] == 5
    z = x + 0
    z.array[0, 1] = 7  # the core reads what NumPy has written
    assert (z * 1).array[0, 1] == 7
    assert isinstance(y.array, np.ndarray)
    assert z.array is z.array


@pytest.mark.parametrize("dtype", "?bBhilefd")
def test_dtypes_are_preserved(dtype):
    data = np.array([[0, 1], [1, 0]], dtype)
    assert F.transpose(renga.Variable(data)).dtype == dtype
    np.testing.assert_array_equal(F.transpose(renga.Variable(data)).array, data.T)


def test_foreign_byte_order_is_copied():
    data = np.arange(3, dtype=">f4")
    np.testing.assert_array_equal((renga.Variable(data) * 2).array, [0, 2, 4])


@pytest.mark.parametrize("dtype", [complex, object, "U3", "M8[s]"])
def test_other_dtypes_are_only_kept(dtype):
    data = np.zeros((2, 3), dtype)
    x = renga.Variable(data)
    assert x.array is data
    assert (x.shape, x.ndim, x.size, len(x)) == ((2, 3), 2, 6, 2)
    assert x.dtype == data.dtype
    for function in (F.exp, F.transpose, F.sum, lambda x: x + 1, lambda x: x + x):
        with pytest.raises(renga.utils.type_check.InvalidType, match="numbers, got"):
            function(x)
    with pytest.raises(renga.utils.type_check.InvalidType, match="numbers, got"):
        x.backward()
    x.array = np.ones(2, "f")
    np.testing.assert_array_equal(F.sum(x).array, 2)


def test_lists_are_refused():
    with pytest.raises(TypeError):
        renga.Variable([1.0, 2.0])


def test_long_chain():
    x = variable(2)
    h = x
    for _ in range(100_000):
        h = h + 1
    F.sum(h).backward()
    np.testing.assert_array_equal(x.grad, [1, 1])


class Cube(renga.FunctionNode):
    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (3 * x**2 * grad_outputs[0],)


class Broken(renga.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] + 1,)

    def backward(self, indexes, grad_outputs):
        raise KeyError("lost")


def test_python_functions_join_the_graph():
    x = variable(3)
    y = F.exp(Cube().apply((x,))[0])
    (g,) = renga.grad([F.sum(y)], [x], enable_double_backprop=True)
    (h,) = renga.grad([F.sum(g)], [x])
    v = x.array
    np.testing.assert_allclose(g.array, 3 * v**2 * np.exp(v**3))
    np.testing.assert_allclose(h.array, (6 * v + 9 * v**4) * np.exp(v**3))


def test_a_failing_backward_reports_the_call_site():
    x = variable(3)
    y = F.sum(Broken().apply((x,))[0])  # the line that the note must name
    with pytest.raises(KeyError) as caught:
        y.backward()
    note = "".join(getattr(caught.value, "__notes__", ["Broken test_backward.py"]))
    assert "Broken" in note and "test_backward.py" in note


def test_a_failing_backward_of_the_core_reports_the_call_site():
    x = variable(2, 3)
    y = F.relu(x)
    y.grad = np.ones((2, 3))
    y.grad_var = None
    z = F.sum(y * np.ones((2, 3)))
    x.array = np.ones((5, 5))  # the gradient's shape no longer fits
    with pytest.raises(
        ValueError, match=r"(?s)expected a gradient of shape.*test_backward"
    ):
        z.backward()


def test_gradients_accumulate_until_cleared():
    x = variable(3)
    for times in (1, 2, 3):
        F.sum(x * 2).backward()
        np.testing.assert_array_equal(x.grad, np.full(3, 2.0 * times))
    x.cleargrad()
    assert x.grad is None


def test_grad_of_an_independent_variable_is_none():
    x, other = variable(3), variable(3)
    gx, none = renga.grad([F.sum(x)], [x, other])
    assert none is None
    np.testing.assert_array_equal(gx.array, np.ones(3))
    assert x.grad is None  # grad() leaves the variables alone


def test_no_backprop_mode():
    x = variable(3)
    with renga.no_backprop_mode():
        y = x * 2
        with renga.force_backprop_mode():
            z = x * 2
    assert y.creator_node is None
    assert z.creator_node is not None
    assert (x * 2).creator_node is not None


def test_unchain_backward():
    x = variable(3)
    y = x * 2
    z = F.sum(F.exp(y))
    z.unchain_backward()
    z.grad = None
    z.backward()
    assert x.grad is None and y.creator_node is None


def test_gradient_ready_hook():
    x, w = variable(3), variable(3)
    heard = []
    number = _core.add_gradient_ready_hook(lambda v: heard.append((v, v.grad.copy())))
    try:
        F.sum(x * w + x).backward()
    finally:
        _core.remove_gradient_ready_hook(number)
    assert {id(v) for v, _ in heard} == {id(x), id(w)} and len(heard) == 2
    for v, g in heard:
        np.testing.assert_array_equal(g, w.array + 1 if v is x else x.array)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(
        renga.utils.type_check.InvalidType, match=r"\(2, 3\) and \(4,\)"
    ):
        renga.Variable(np.zeros((2, 3), "f")) + np.zeros(4, "f")


def test_the_core_may_be_used_from_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    data = np.random.RandomState(0).rand(300, 300)

    def work(k):
        x = renga.Variable(data * k)
        F.sum(F.tanh(F.matmul(x, x))).backward()
        return x.grad

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(8)))
    for k, g in enumerate(together):
        np.testing.assert_array_equal(g, work(k))


def test_backward_from_an_empty_variable():
    x = renga.Variable(np.ones((0, 3), "float32"))
    (x * 2).backward()
    assert x.grad.shape == (0, 3)


def test_a_program_replaces_backward_and_sets_it_again():
    own, seen = renga.Variable.backward, []

    def replacement(self, *args, **kwargs):
        seen.append(self.shape)
        own(self, *args, **kwargs)

    x = variable(3)
    try:
        renga.Variable.backward = replacement
        F.sum(x).backward()
    finally:
        renga.Variable.backward = own
    F.sum(x).backward()
    assert seen == [()]
    np.testing.assert_array_equal(x.grad, [2, 2, 2])
