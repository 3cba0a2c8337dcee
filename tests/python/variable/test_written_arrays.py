"""Arrays from the caller that the core writes to: written or refused."""

import threading

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from tests.layouts import read_only, unaligned


def overlapping(x):
    return np.lib.stride_tricks.as_strided(x, x.shape, (0,) * x.ndim, writeable=True)


REFUSED = {
    "read-only": read_only,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": unaligned,
    "overlapping": overlapping,
}
refused = pytest.mark.parametrize("kind", REFUSED)


@refused
@pytest.mark.parametrize("which", ["running_mean", "running_var"])
def test_running_statistics_that_cannot_be_written(kind, which):
    x = np.random.RandomState(0).randn(4, 3).astype("f")
    given = REFUSED[kind](np.ones(3, "f"))
    before = np.array(given)
    with pytest.raises(ValueError, match="written|overlap|byte order|aligned"):
        F.batch_normalization(x, np.ones(3, "f"), np.zeros(3, "f"), **{which: given})
    np.testing.assert_array_equal(given, before)


@refused
@pytest.mark.parametrize("which", [0, 1])
def test_running_statistics_of_renormalization(kind, which):
    x = np.random.RandomState(0).randn(4, 3).astype("f")
    averages = [np.zeros(3, "f"), np.ones(3, "f")]
    averages[which] = REFUSED[kind](averages[which])
    mean, var = averages
    ones = np.ones(3, "f")
    with pytest.raises(ValueError, match="batch_renormalization: running_"):
        F.batch_renormalization(
            x,
            ones,
            ones,
            rmax=3,
            dmax=5,
            running_mean=mean,
            running_var=var,
            update_statistics=True,
        )
    np.testing.assert_array_equal(averages, [[0] * 3, [1] * 3])


@refused
@pytest.mark.parametrize("which", ["running_mean", "running_projection"])
def test_running_statistics_of_decorrelation(kind, which):
    x = np.random.RandomState(0).randn(8, 4, 2, 2).astype("f")
    shape = (2, 2) if which == "running_mean" else (2, 2, 2)
    given = REFUSED[kind](np.ones(shape, "f"))
    with pytest.raises(ValueError, match=which):
        F.decorrelated_batch_normalization(x, groups=2, **{which: given})
    np.testing.assert_array_equal(given, 1)


def test_running_statistics_of_integers():
    x = np.random.RandomState(0).randn(4, 3).astype("f")
    ones = np.ones(3, "f")
    with pytest.raises(renga.utils.type_check.InvalidType, match="float dtype"):
        F.batch_normalization(x, ones, ones, running_mean=np.ones(3, int))


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_running_statistics_in_another_memory_layout(dtype):
    x = np.random.RandomState(0).randn(64, 3).astype("f")
    mean = np.zeros(6, dtype)[::2]
    link = L.BatchNormalization(3, decay=0.5)
    link.avg_mean = mean
    link(x)
    np.testing.assert_allclose(mean, x.astype("d").mean(0) / 2, rtol=2e-3)


def test_running_statistics_in_a_mapped_file(tmp_path):
    np.save(tmp_path / "mean.npy", np.zeros(3, "f"))
    x = np.ones((4, 3), "f")
    ones = np.ones(3, "f")
    held = np.load(tmp_path / "mean.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="read-only"):
        F.batch_normalization(x, ones, ones, running_mean=held)
    mapped = np.load(tmp_path / "mean.npy", mmap_mode="r+")
    F.batch_normalization(x, ones, ones, running_mean=mapped, decay=0.5)
    np.testing.assert_array_equal(mapped, 0.5)


@refused
def test_states_of_update_rules(kind):
    x, g = np.ones(3, "f"), np.ones(3, "f")
    with pytest.raises(ValueError, match="updated in place"):
        _core.optimizers.momentum_sgd(
            x, g, {"v": REFUSED[kind](np.zeros(3, "f"))}, {"lr": 0.1, "momentum": 0.9}
        )
    np.testing.assert_array_equal(x, 1)


@pytest.mark.parametrize("kind", ["byte-swapped", "unaligned"])
def test_variables_expose_the_array_that_they_compute_with(kind):
    values = np.arange(6, dtype="f").reshape(2, 3)
    given = REFUSED[kind](values.ravel()).reshape(2, 3)
    link = L.Linear(3, 2, nobias=True)
    link.W.array = given
    np.testing.assert_array_equal(link.W.array, values)
    assert link.W.array.dtype == np.float32 and link.W.array.flags.aligned
    link.W.array[...] = 2
    np.testing.assert_array_equal(link(np.ones((1, 3), "f")).array, 6)
    link.W.grad = REFUSED[kind](values.ravel()).reshape(2, 3)
    link.W.grad[...] = 1
    renga.optimizers.SGD(0.5).setup(link).update()
    np.testing.assert_array_equal(link.W.array, 1.5)
    made = renga.Variable(given)
    made.array[...] = 3
    np.testing.assert_array_equal((made * 2).array, 6)


def test_native_arrays_are_exposed_unchanged():
    given = np.ones((2, 3), "f")[:, ::-1]
    assert renga.Variable(given).array is given


def test_writes_of_other_threads_come_after_deferred_normalizations():
    """Another thread's writes to an input after the call do not change the result."""
    gamma, beta = np.ones(16, "f"), np.zeros(16, "f")
    values = np.random.RandomState(0).randn(64, 16, 16, 16).astype("f")
    for _ in range(20):
        x = renga.as_variable(values) * 1.0
        y = F.batch_normalization(x, gamma, beta)

        def write(x=x):
            x.array[...] = 5

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        z = F.relu(y)
        assert abs(float(y.array.std()) - 1) < 1e-3
        assert abs(float(z.array.mean()) - 0.3989) < 1e-2


def test_writes_of_other_threads_wait_for_a_normalization_that_runs():
    gamma, beta = np.ones(16, "f"), np.zeros(16, "f")
    values = np.random.RandomState(0).randn(64, 16, 16, 16).astype("f")
    for _ in range(50):
        x = renga.as_variable(values) * 1.0
        called = threading.Event()

        def write(x=x, called=called):
            called.wait()
            x.array[...] = 5

        thread = threading.Thread(target=write)
        thread.start()
        y = F.relu(F.batch_normalization(x, gamma, beta))
        called.set()
        mean = float(y.array.mean())
        thread.join()
        assert abs(mean - 0.3989) < 1e-2


@pytest.mark.parametrize("loss", [F.sum, F.mean])
def test_a_gradient_is_changed_one_number_at_a_time(loss):
    """The gradient of a sum has one number for all elements."""
    x = renga.Variable(np.ones((2, 3), "f"))
    h = x * 2
    loss(h).backward(retain_grad=True)
    wanted = np.full((2, 3), 1 if loss is F.sum else 1 / 6, "f")
    wanted[0] = 0
    h.grad[0] = 0
    np.testing.assert_array_equal(h.grad, wanted)
    np.testing.assert_array_equal(h.grad_var.array, wanted)


def test_arrays_that_repeat_numbers_are_read_only():
    """As NumPy's are."""
    x = np.ones((1, 4), "f")
    y = F.broadcast_to(renga.Variable(x), (3, 4))
    with pytest.raises(ValueError, match="read-only"):
        y.array[0] = 9
    np.testing.assert_array_equal(x, np.ones((1, 4)))
