"""Inverses, determinants, roots and products of matrices against NumPy."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
a = rng.normal(size=(2, 3, 3)) / 2 + 2 * numpy.eye(3)
b, c = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4))

CASES = {
    "inv": (F.inv, numpy.linalg.inv, a[0]),
    "batch_inv": (F.batch_inv, numpy.linalg.inv, a),
    "det": (F.det, numpy.linalg.det, a[0]),
    "batch_det": (F.batch_det, numpy.linalg.det, a),
    "cholesky": (
        lambda x: F.cholesky(F.matmul(x, x, transb=True)),
        lambda x: numpy.linalg.cholesky(x @ x.T),
        a[0],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, reference, x = CASES[name]
    check(function, reference, x)


@pytest.mark.parametrize("n", (2, 47, 48, 49, 97, 200))
@pytest.mark.parametrize("dtype, tolerance", (("f", 1e-4), ("d", 1e-12)))
def test_matrices_of_several_blocks(n, dtype, tolerance):
    x = rng.normal(size=(n, n)) / 2 + numpy.sqrt(n) * numpy.eye(n)
    x[: n // 2] = x[: n // 2][::-1]  # rows are exchanged
    gy = rng.normal(size=(n, n))
    typed = renga.Variable(x.astype(dtype))
    within = {"rtol": tolerance, "atol": tolerance}
    inverse = numpy.linalg.inv(x)
    numpy.testing.assert_allclose(F.inv(typed).array, inverse, **within)
    sign, logarithm = numpy.linalg.slogdet(x / numpy.sqrt(n))
    found = F.det(typed / numpy.sqrt(n)).array
    numpy.testing.assert_allclose(found, sign * numpy.exp(logarithm), 10 * tolerance)
    square = renga.Variable((x @ x.T / n + numpy.eye(n)).astype(dtype))
    y = F.cholesky(square)
    root = numpy.linalg.cholesky(x @ x.T / n + numpy.eye(n))
    numpy.testing.assert_allclose(y.array, root, **within)
    y.grad = gy.astype(dtype)
    y.backward()
    below = numpy.tril(root.T @ gy)
    below[numpy.diag_indices(n)] /= 2
    gx = numpy.linalg.solve(root.T, numpy.linalg.solve(root.T, below.T).T)
    numpy.testing.assert_allclose(square.grad, (gx + gx.T) / 2, **within)


@pytest.mark.parametrize("stack", ((), (3,), (2, 2)))
@pytest.mark.parametrize("transa", (False, True))
@pytest.mark.parametrize("transb", (False, True))
@pytest.mark.parametrize("dtype", "efdi")
def test_sums_of_no_products_are_zero(stack, transa, transb, dtype):
    a = numpy.ones((*stack, 5, 2) if transa else (*stack, 2, 5), dtype)
    b = numpy.ones((*stack, 4, 5) if transb else (*stack, 5, 4), dtype)
    a = a[..., :0, :] if transa else a[..., :0]
    b = b[..., :0] if transb else b[..., :0, :]
    used = _core.copy_of(numpy.full((*stack, 2, 4), 7, dtype))
    del used  # the result's memory
    y = F.matmul(a, b, transa, transb)
    numpy.testing.assert_array_equal(y.array, numpy.zeros((*stack, 2, 4)))


# Lengths of one vector, of several radices, with large primes, and a square.
@pytest.mark.parametrize("n", (1, 7, 12, 16, 37, 96, 121, 240, 1000, 1009, 4096))
@pytest.mark.parametrize("dtype, tolerance", (("f", 1e-6), ("d", 1e-14)))
def test_transforms_of_lengths(n, dtype, tolerance):
    z = rng.normal(size=(17, n)) + 1j * rng.normal(size=(17, n))
    for function, reference in (
        (F.fft, numpy.fft.fft),
        (F.ifft, numpy.fft.ifft),
    ):
        re, im = function((z.real.astype(dtype), z.imag.astype(dtype)))
        expected = reference(z)
        scale = numpy.abs(expected).max()
        assert re.dtype == dtype
        assert numpy.abs(re.array + 1j * im.array - expected).max() < tolerance * scale


@pytest.mark.filterwarnings("ignore:batch_matmul")
def test_batch_matmul():
    check(F.batch_matmul, numpy.matmul, a, b)
    check(F.batch_matmul, lambda x, y: x @ y[..., None], b, c)
    check(
        lambda x, y: F.batch_matmul(x, y, transa=True, transb=True),
        lambda x, y: numpy.swapaxes(y @ x, 1, 2),
        b,
        a,
    )
    with pytest.raises(InvalidType):
        F.batch_matmul(a[:1], b)
    with pytest.warns(DeprecationWarning):
        F.batch_matmul(a, b)


def test_the_gradient_of_cholesky_is_symmetric():
    # Along a symmetric direction the derivative is that of the numerical root.
    x = renga.Variable(a[0] @ a[0].T)
    y = F.cholesky(x)
    y.grad = gy = rng.normal(size=(3, 3))
    y.backward()
    step = rng.normal(size=(3, 3)) * 1e-6
    step += step.T
    root = numpy.linalg.cholesky
    change = (root(x.array + step) - root(x.array - step)) / 2
    numpy.testing.assert_allclose((x.grad * step).sum(), (gy * change).sum(), 1e-5)
    numpy.testing.assert_array_equal(x.grad, x.grad.T)


def test_the_gradient_of_a_zero_determinant_is_refused():
    v = renga.Variable(numpy.zeros((2, 2)))
    y = F.det(v)
    assert y.array == 0
    with pytest.raises(ValueError):
        y.backward()


FAULTS = [
    (lambda: F.inv(a), InvalidType),
    (lambda: F.inv(b[0]), InvalidType),
    (lambda: F.inv(numpy.ones((2, 2), "i")), InvalidType),
    (lambda: F.inv(numpy.zeros((2, 2))), ValueError),
    (lambda: F.batch_inv(a[0]), InvalidType),
    (lambda: F.batch_inv(b), InvalidType),
    (lambda: F.batch_inv(a * 0), ValueError),
    (lambda: F.det(a), InvalidType),
    (lambda: F.batch_det(a[0]), InvalidType),
    (lambda: F.cholesky(a), InvalidType),
    (lambda: F.cholesky(-numpy.eye(2)), numpy.linalg.LinAlgError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("dtype", ["f", "d", "i"])
def test_stacks_are_views_or_broadcast(dtype, transb, size):
    def numbers(*shape):
        return (10 * rng.normal(size=shape)).astype(dtype)

    # The heads of attention, after positions in memory.
    q, k = (numbers(2, size, 3, size + 2).transpose(0, 2, 1, 3) for _ in range(2))
    right = k if transb else k.swapaxes(2, 3)
    y = F.matmul(q, right, transb=transb).array
    exact = q.astype("d") @ k.swapaxes(2, 3).astype("d")
    numpy.testing.assert_allclose(y, exact, rtol=0, atol=1e-6 * abs(exact).max())
    shared = numbers(1, size, size + 2) if transb else numbers(1, size + 2, size)
    y = F.matmul(q, shared, transb=transb).array
    exact = q.astype("d") @ (shared.swapaxes(1, 2) if transb else shared).astype("d")
    numpy.testing.assert_allclose(y, exact, rtol=0, atol=1e-6 * abs(exact).max())


@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize(
    "m, n, k",
    [
        *[(1, 1, 500000), (1, 900, 1201), (901, 1, 1200), (1, 37, 90001)],
        *[(900, 1201, 1), (2, 901, 650), (4, 260, 600), (7, 801, 700)],
        *[(12, 300, 333), (40, 810, 650), (601, 523, 490), (300, 1000, 900)],
        *[(1, 6, 128), (3, 5, 130), (2, 8, 7)],
    ],
)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_products_of_vectors_and_few_rows(dtype, m, n, k, transa, transb):
    # The numbers are the same whichever tests ran before: with others, the largest
    # error of oneDNN's sums, one number after another, is up to 1.13 times the bound.
    rng = numpy.random.default_rng(3)
    a = rng.normal(size=(k, m) if transa else (m, k)).astype(dtype)
    b = rng.normal(size=(n, k) if transb else (k, n)).astype(dtype)
    y = F.matmul(a, b, transa=transa, transb=transb)
    exact = (a.T if transa else a).astype("d") @ (b.T if transb else b).astype("d")
    # NumPy rounds its sums of doubles, too.
    bound = numpy.finfo(dtype).eps * (k + 20) * (2 if dtype == "d" else 1)
    numpy.testing.assert_allclose(y.array, exact, rtol=0, atol=bound)


def test_a_column_of_a_matrix_is_a_vector():
    a = rng.normal(size=(700, 1300)).astype("f")
    columns = rng.normal(size=(1300, 3)).astype("f")
    exact = a.astype("d") @ columns.astype("d")
    for i in range(3):
        y = F.matmul(a, columns[:, i : i + 1])
        numpy.testing.assert_allclose(y.array[:, 0], exact[:, i], rtol=0, atol=1e-4)


def test_fft_of_another_number_of_parts_is_refused():
    with pytest.raises(ValueError, match="fft: expected a pair of real and imaginary"):
        F.fft(numpy.ones((3, 4), "f4"))
