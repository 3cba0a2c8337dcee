"""Numerical gradients, points without a derivative, what the checks accept."""

import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import gradient_check, testing

numerical_grad = gradient_check.numerical_grad
check_backward = gradient_check.check_backward
check_double_backward = gradient_check.check_double_backward
Nondifferentiable = gradient_check.NondifferentiableError


def points(*shape, dtype="d"):
    """Positive numbers without zeros."""
    n = int(np.prod(shape))
    return (0.5 + np.arange(n) * 0.37 % 1).reshape(shape).astype(dtype)


def numerical(f, x, *gys, **options):
    """Gradients of ``f`` at an array, and whether the array is as before."""
    x = np.array(x)
    before = x.copy()
    gxs = numerical_grad(lambda: f(x), (x,), gys, **options)
    return gxs, (x == before).all()


def at(f, x, **options):
    """Detection at a point; ``g`` is 1 for every output."""
    x = np.array(x, "d")
    gys = tuple(np.ones_like(y) for y in f(x))
    return numerical_grad(
        lambda: f(x), (x,), gys, detect_nondifferentiable=True, **options
    )


FUNCTIONS = {
    "abs": np.abs,
    "floor": np.floor,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0),
    "square": np.square,
    "cube": lambda x: x**3,
    "sqrt": np.sqrt,
    "log": np.log,
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "constant": lambda x: x * 0 + 1.5,
    "nan": lambda x: x * np.nan,
    "x abs x": lambda x: x * abs(x),
    "cube root": np.cbrt,
    "clip": lambda x: np.clip(x, -1, 1),
    "rounded": lambda x: np.round(x, 3),
    "step of nothing": lambda x: np.where(x > 0, x, x + 1e-9),
    "small step": lambda x: np.where(x > 0, x, x + 1e-5),
}
PLACES = (0.0, 0.0004, -0.0007, 0.00099, 0.0011, 1.0, -1.0, 0.9996, 2.5)

GENERATED = {
    f"{name} at {place}": lambda f=f, x=place: at(lambda x: (f(x),), x)
    for name, f in FUNCTIONS.items()
    for place in PLACES
}
GENERATED.update(
    {
        f"{name} at 0.3, {options}": lambda f=f, options=options: at(
            lambda x: (f(x),), 0.3, **options
        )
        for name, f in FUNCTIONS.items()
        for options in (
            {"eps": 1.0},
            {"eps": 1e-6},
            {"eps": 1.0, "diff_rtol": 0.5},
            {"eps": 1.0, "diff_atol": 1.0},
        )
    }
)

EXPRESSIONS = """
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)))
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), detect_nondifferentiable=True)
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=.1)
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=.1, detect_nondifferentiable=True, diff_rtol=1)
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=.1, detect_nondifferentiable=True, diff_rtol=1, center_outputs=(points(2, 3) ** 3,))
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=.1, detect_nondifferentiable=True, diff_rtol=1, center_outputs=(points(5),))
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=0)
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=-1e-3)
numerical(lambda x: (x**3,), points(2, 3, dtype='f'), np.ones((2, 3), 'f'))
numerical(lambda x: (x**3,), points(2, 3, dtype='e'), np.ones((2, 3), 'e'), eps=1e-1)
numerical(lambda x: (x**3,), np.arange(3), np.ones(3))
numerical(lambda x: (x**3,), points(2, 3), 2)
numerical(lambda x: (x**3,), points(2, 3), 2.5)
numerical(lambda x: (x**3, None), points(2), np.ones(2), None)
numerical(lambda x: (x**3, x), points(2), np.ones(2), None)
numerical(lambda x: (x**3, x), points(2), None, None)
numerical(lambda x: (x**3, x), points(2), np.ones(2))
numerical(lambda x: (x**3,), points(2), np.ones(2), np.ones(2))
numerical(lambda x: (x**3, None), points(2), np.ones(2), np.ones(2))
numerical(lambda x: (x**3,), points(2), np.ones(3))
numerical(lambda x: (x**3,), points(2), np.ones((2, 2)))
numerical(lambda x: [x**3], points(2), np.ones(2))
numerical(lambda x: (x**3,), points(), np.ones(()))
numerical(lambda x: (x**3,), points(0), np.ones(0))
numerical(lambda x: (x**3,), points(0), np.ones(0), detect_nondifferentiable=True)
numerical(lambda x: (x[:0],), points(2), np.ones(0), detect_nondifferentiable=True)
numerical(lambda x: (abs(x), x), np.zeros(2), np.ones(2), np.ones(2), detect_nondifferentiable=True)
numerical(lambda x: (x, abs(x)), np.zeros(2), np.ones(2), None, detect_nondifferentiable=True)
numerical(lambda x: (x * 2,), points(2), np.ones(2, 'i'))
numerical_grad(lambda: (np.ones(2),), [points(2)], [np.ones(2)])
numerical_grad(lambda: (np.ones(2),), points(2), [np.ones(2)])
testing.assert_allclose(5, np.ones((2, 2)))
testing.assert_allclose(np.zeros(2), np.zeros(2) + 1e-6)
testing.assert_allclose(np.zeros(2), np.zeros(2) + 1e-4)
numerical_grad(lambda: (np.ones(2),), (), (np.ones(2),))
numerical_grad(lambda: (), (points(2),), ())
check_backward(F.exp, points(2, 3), np.ones((2, 3)))
check_backward(F.exp, [points(2, 3)], [np.ones((2, 3))])
check_backward(F.sum, points(2, 3), None)
check_backward(lambda x: (F.sum(x),), points(2, 3), None)
check_backward(F.exp, points(2, 3), None)
check_backward(lambda x: (F.sum(x), F.sum(x)), points(2, 3), None)
check_backward(lambda x: (F.sum(x), F.sum(x)), points(2, 3), (None, None))
check_backward(lambda x: (x, x * 2), points(2), (np.ones(2), None))
check_backward(lambda x: (x, None), points(2), (np.ones(2), None))
check_backward(lambda x: (x, None), points(2), (np.ones(2), np.zeros(2)))
check_backward(lambda x: (x, None), points(2), (np.ones(2), np.ones(2)))
check_backward(lambda x: (x, x), points(2), np.ones(2))
check_backward(F.exp, points(2), np.ones(3))
check_backward(F.exp, points(2), np.ones(2, 'f'))
check_backward(F.exp, points(2), np.ones(2), dtype='i')
check_backward(F.exp, points(2), np.ones(2), dtype='f')
check_backward(F.exp, points(2, dtype='f'), np.ones(2, 'f'), dtype='d')
check_backward(F.exp, points(2, dtype='e'), np.ones(2, 'e'), dtype='d', atol=1e-2, rtol=1e-2)
check_backward(F.exp, points(2), np.ones(2), no_grads=[])
check_backward(F.exp, points(2), np.ones(2), no_grads=[False])
check_backward(F.exp, points(2), np.ones(2), no_grads=[True])
check_backward(F.exp, points(2), np.ones(2), no_grads=[False, True])
check_backward(lambda a, b: a * b, (points(2), points(2)), np.ones(2), no_grads=[False, True])
check_backward(lambda a, b: a * b.array, (points(2), points(2)), np.ones(2), no_grads=[False, True])
check_backward(lambda a, b: a * b.array, (points(2), points(2)), np.ones(2))
check_backward(lambda a, b: a * 2, (points(2), points(2)), np.ones(2))
check_backward(lambda a, b: a * b.array, (points(2), None), np.ones(2))
check_backward(lambda a, b: a * 2, (points(2), None), np.ones(2))
check_backward(lambda a, b: F.embed_id(a, b), (np.array([0, 1, 1]), points(2, 3)), np.ones((3, 3)))
check_backward(lambda a: a, np.arange(3), np.arange(3))
check_backward(lambda a: a.array, points(2), np.ones(2))
check_backward(lambda a: chainer.Variable(a.array), points(2), np.ones(2))
check_backward(lambda a: a * a.array, points(2), np.ones(2))
check_backward(lambda a: None, points(2), np.ones(2))
check_backward(lambda a: a * a.array, points(2), np.ones(2), atol=10)
check_backward(lambda a: a * a.array, points(2), np.ones(2), rtol=1)
check_backward(F.relu, np.zeros(3), np.ones(3))
check_backward(F.relu, np.zeros(3), np.ones(3), detect_nondifferentiable=True)
check_backward(F.relu, points(3), np.ones(3), detect_nondifferentiable=True)
check_backward(F.relu, points(3) * 1e-3, np.ones(3), eps=1e-6, detect_nondifferentiable=True)
check_backward(F.relu, np.array([1., 1e-5]), np.ones(2), eps=1e-2, detect_nondifferentiable=True)
check_backward(F.sign, points(3), np.ones(3), detect_nondifferentiable=True)
check_backward(F.floor, points(3) + 1.25, np.ones(3), detect_nondifferentiable=True)
check_backward(F.absolute, np.zeros(3), np.ones(3), detect_nondifferentiable=True)
check_backward(F.sqrt, np.array([1., 0.]), np.ones(2), detect_nondifferentiable=True)
check_backward(F.log, np.array([-1., -2.]), np.ones(2), detect_nondifferentiable=True)
check_backward(lambda x: F.maximum(x, x * 2), np.zeros(2), np.ones(2), detect_nondifferentiable=True)
check_backward(F.exp, points(2), np.ones(2), eps=0)
check_double_backward(lambda x: x ** 3, points(2), np.ones(2), np.ones(2))
check_double_backward(lambda x: x * 2, points(2), np.ones(2), np.ones(2))
check_double_backward(lambda x: x, points(2), np.ones(2), np.ones(2))
check_double_backward(lambda x: x ** 3, points(2), None, np.ones(2))
check_double_backward(F.sum, points(2), np.ones(()), np.ones(2))
check_double_backward(lambda x: x ** 3, points(2), np.ones(2), None)
check_double_backward(lambda x: x ** 3, points(2), np.ones(2), (np.ones(2), np.ones(2)))
check_double_backward(lambda x: x ** 3, points(2), np.ones(3), np.ones(2))
check_double_backward(lambda x: x ** 3, points(2), np.ones(2), np.ones(3))
check_double_backward(lambda x: (x ** 3, x ** 2), points(2), (np.ones(2), np.ones(2)), np.ones(2))
check_double_backward(lambda x: (x ** 3, x ** 2), points(2), (np.ones(2), None), np.ones(2))
check_double_backward(lambda a, b: a * b, (points(2), points(2)), np.ones(2), (np.ones(2), np.ones(2)))
check_double_backward(lambda a, b: a * a, (points(2), points(2)), np.ones(2), (np.ones(2), None))
check_double_backward(lambda a, b: a * a, (points(2), points(2)), np.ones(2), (np.ones(2), np.ones(2)))
check_double_backward(lambda i, W: F.embed_id(i, W) ** 2, (np.array([0, 1]), points(2, 3)), np.ones((2, 3)), np.ones((2, 3)))
check_double_backward(lambda x: x ** 2 * x.array, points(2), np.ones(2), np.ones(2))
check_double_backward(lambda x: F.cast(x, 'f') ** 2, points(2), np.ones(2, 'f'), np.ones(2), eps=1e-1, atol=1e-2, rtol=1e-2)
check_double_backward(lambda x: x ** 3, points(2, dtype='f'), np.ones(2, 'f'), np.ones(2, 'f'), dtype='d')
check_double_backward(lambda x: x ** 3, points(2, dtype='e'), np.ones(2, 'e'), np.ones(2, 'e'), dtype='d', atol=1e-1, rtol=1e-1)
check_double_backward(lambda x: F.relu(x) ** 2, np.zeros(3), np.ones(3), np.ones(3), detect_nondifferentiable=True)
check_double_backward(lambda x: F.relu(x) ** 2, points(3), np.ones(3), np.ones(3), detect_nondifferentiable=True)
check_double_backward(lambda a, b: a * b, (points(2), points(2)), np.ones(2), np.ones(2), no_grads=[False, True, False])
testing.assert_allclose(1, 1)
testing.assert_allclose(1, 1.00001)
testing.assert_allclose(1, 1.001)
testing.assert_allclose(1, 1.001, rtol=1e-2)
testing.assert_allclose(1, 1.001, atol=1e-2)
testing.assert_allclose(chainer.Variable(points(2)), points(2))
testing.assert_allclose([1, 2], [1, 2])
testing.assert_allclose(points(2), points(3))
testing.assert_allclose(points(2), points(1)[0])
testing.assert_allclose(points(2), points(2, dtype='f'))
testing.assert_allclose(np.full(2, np.nan), np.full(2, np.nan))
testing.assert_allclose(np.full(2, np.inf), np.full(2, np.inf))
testing.assert_allclose(np.full(2, np.inf), np.full(2, -np.inf))
testing.assert_allclose(np.ones(2, '?'), np.ones(2, '?'))
testing.assert_allclose(points(0), points(0))
testing.assert_allclose(points(2), points(2), 0, 0, False)
issubclass(Nondifferentiable, Exception), Nondifferentiable.__bases__
"""


def words(run, *known):
    """The class of an error, and which of the words its message has."""
    try:
        run()
    except Exception as error:
        return type(error).__name__, [word for word in known if word in str(error)]


def case_words_of_a_kink():
    names = "non-differentiable i_in: i_out: x: eps: diff_rtol: diff_atol: ymax: y[x-eps/2]:"
    return words(lambda: at(lambda x: (x, abs(x)), [1.0, 0.0]), *names.split())


def case_words_of_a_jump_to_infinity():
    names = "non-differentiable i_in: i_out: x: eps: y[x-eps/2]:"
    return words(lambda: at(lambda x: (np.log(x),), [1.0, 0.0]), *names.split())


def case_words_of_a_wrong_gradient():
    names = "check_backward inputs[0]: grad_outputs[0]: directions[0]: eps=0.001 atol= rtol="
    names += " (numeric): (backward):"
    return words(
        lambda: check_backward(lambda x: x * x.array, points(2), np.ones(2)),
        *names.split(),
    )


def case_words_of_a_wrong_second_gradient():
    names = "check_double_backward check_backward input[0]: grad_output[0]: grad_grad_input[0]:"
    return words(
        lambda: check_double_backward(
            lambda x: x**2 * x.array, points(2), np.ones(2), np.ones(2)
        ),
        *names.split(),
    )


def case_words_of_unequal_arrays():
    names = "shape: dtype: x[i]: y[i]: i: relative absolute total x: y:"
    return words(
        lambda: testing.assert_allclose(np.array([1, 2]), points(2)), *names.split()
    )


def case_words_of_gradients_of_another_shape():
    names = "(2,):float64 (3,):float64"
    return words(lambda: check_backward(F.exp, points(2), np.ones(3)), *names.split())


def case_deprecated_assert_allclose():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gradient_check.assert_allclose(1, 1)
    return [w.category.__name__ for w in found if w.category is DeprecationWarning]


def case_calls_of_numerical_grad():
    """The points that are evaluated."""
    found = []
    for detect in (False, True):
        x = np.array([1.0, 2.0])

        def f(x=x):
            found.append(x.tolist())
            return (x,)

        numerical_grad(f, (x,), (np.ones(2),), eps=0.5, detect_nondifferentiable=detect)
    return sorted(found)


def case_type_checks_are_off():
    found = []

    def f():
        found.append(chainer.config.type_check)
        return (np.ones(1),)

    numerical_grad(f, (np.ones(1),), (np.ones(1),))
    return found, chainer.config.type_check


def case_uninitialized_parameters():
    link = L.Linear(None, 2)
    check_backward(
        link, points(3, 4, dtype="f"), np.ones((3, 2), "f"), (link.W, link.b), dtype="d"
    )
    return link.W.shape


def case_parameters_stay():
    link = L.Linear(4, 2, initialW=0.5)
    check_backward(
        link, points(3, 4, dtype="f"), np.ones((3, 2), "f"), [link.W, link.b], dtype="d"
    )
    return link.W.array, link.b.array


def case_wrong_gradient_of_a_parameter():
    p = chainer.Parameter(points(2))
    check_backward(lambda x: x * p.array, points(2), np.ones(2), p)


def case_unused_parameter():
    p = chainer.Parameter(points(2))
    check_backward(lambda x: x * 2, points(2), np.ones(2), p)


def case_function_that_calls_backward():
    def f(x):
        y = F.sum(x**3)
        (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
        y.backward()
        return gx

    check_backward(f, points(2), np.ones(2))


def case_second_gradients_of_parameters():
    p = chainer.Parameter(points(2))
    check_double_backward(
        lambda x: x**2 * p**2, points(2), np.ones(2), np.ones(2), p, np.ones(2)
    )


def case_second_gradients_of_parameters_not_given():
    p = chainer.Parameter(points(2))
    check_double_backward(lambda x: x**2 * p**2, points(2), np.ones(2), np.ones(2), p)


def case_inputs_of_functions():
    """The dtypes of what the function gets, and whether it requires gradients."""
    found = []

    def f(x, i):
        found.append((str(x.dtype), x.requires_grad, str(i.dtype), i.requires_grad))
        return x * 2

    check_backward(f, (points(2, dtype="f"), np.arange(2)), np.ones(2, "f"), dtype="d")
    return found


def case_gradients_given_stay():
    gy = np.ones(2)
    check_backward(lambda x: F.exp(x) + x, points(2), gy)
    return gy
