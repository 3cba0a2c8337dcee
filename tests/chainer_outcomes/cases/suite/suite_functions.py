"""Functions where Chainer's own tests look at more than values: classes, creators, kinds."""

import warnings

import chainer
import chainer.functions as F
import numpy as np
from chainer.functions.math import sparse_matmul

ROW, COL = np.array([0, 1], "i"), np.array([1, 0], "i")
X = np.array([[0.5, -1, 2], [1, 0, -2]], "f")
ONE = np.ones((2, 3), "f")
DATA, DENSE = np.array([2, 3], "f"), np.arange(1, 7, dtype="f").reshape(2, 3)


def warned(run):
    """What ``run`` returns, and the classes of its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = run()
    return value, sorted({w.category.__name__ for w in found})


def differentiated(function, *xs):
    """Output, gradients and, if there is one, the gradient of their squares."""
    xs = [chainer.Variable(x) for x in xs]
    (y,) = function.apply(xs)
    gy = chainer.Variable(1 + np.arange(y.size, dtype=y.dtype).reshape(y.shape) / 4)
    gxs = chainer.grad([y], xs, [gy], enable_double_backprop=True)
    second = chainer.grad([sum(F.sum(gx * gx) for gx in gxs)], [gy, *xs])
    return y, gxs, second


def _products():
    for order, flags in [("other", i) for i in range(8)] + [("C", 5), ("F", 6)]:
        if True:
            a, b, c = (bool(flags & bit) for bit in (1, 2, 4))

            def run(a=a, b=b, c=c, order=order):
                dense = DENSE.T.copy() if b else DENSE
                function = sparse_matmul.CooMatMul(
                    ROW, COL, (2, 2), sp_order=order, transa=a, transb=b, transc=c
                )
                return differentiated(function, DATA, dense)

            yield f"CooMatMul {order} {a} {b} {c}", run

            def run_batch(a=a, b=b, c=c, order=order):
                dense = np.stack([DENSE, -DENSE])
                dense = dense.swapaxes(1, 2).copy() if b else dense
                rows, cols = np.stack([ROW, COL]), np.stack([COL, COL])
                function = sparse_matmul.CooMatMul(rows, cols, (2, 2), order, a, b, c)
                return differentiated(function, np.stack([DATA, -DATA]), dense)

            yield f"CooMatMul of batches {order} {a} {b} {c}", run_batch

            def run_gradient(a=a, b=b, c=c, order=order):
                left = np.arange(4, dtype="f").reshape(2, 2)
                right = np.arange(4, 8, dtype="f").reshape(2, 2)
                function = sparse_matmul.CooMatMulGradSP(
                    ROW, COL, (2, 2), sp_order=order, transa=a, transb=b, transc=c
                )
                return differentiated(function, left, right)

            yield f"CooMatMulGradSP {order} {a} {b} {c}", run_gradient


GENERATED = dict(_products())

EXPRESSIONS = """
    F.sum(X, axis=[0])
    F.sum(X, axis=[0, 1], keepdims=True)
    F.sum(X, axis=range(1))
    F.prod(X, axis=[1])
    F.max(X, axis=[])
    F.min(X, axis=[0, 1])
    F.logsumexp(X, axis=[1])
    F.mean(X, axis=[0])
    F.squeeze(X[:, :1], axis=[1])
    F.squeeze(X[:, :1], axis=(1,))
    F.transpose(X, axes=[1, 0])
    F.fixed_batch_normalization(X, X[0], X[1], X[0], X[0] ** 2, axis=[0])
    sparse_matmul.CooMatMul(ROW, COL, (2, 2)).apply((DATA, DENSE.astype("d")))
    sparse_matmul.CooMatMul(ROW, COL, (2, 2), dtype="d").apply((DATA, DENSE))
    sparse_matmul.CooMatMulGradSP(ROW, COL, (2, 2), dtype="e").apply((DENSE[:, :2], DENSE[:, :2]))
    F.pad_sequence([np.array([True]), np.array([True, False])], padding=-1).array
    F.pad_sequence([np.array([True]), np.array([True, False])], padding=0.5).array
    F.pad_sequence([np.array([True]), np.array([True, False])]).array
    F.pad_sequence([np.array([True]), np.array([True, False])], length=3, padding=2).array
    F.unpooling_nd(np.ones((1, 1, 3, 2), "f"), 1, 1, 1).shape
    F.unpooling_nd(np.ones((1, 1, 3), "f"), 1, 1, 2).shape
    F.unpooling_2d(np.ones((1, 1, 3, 2), "f"), 1, 1, 1).shape
    F.sum(X, axis=1.0)
    F.gumbel_softmax(np.array(0.5, "f"), axis=0)
    F.reshape(X, (2, -1)).array is X
    F.copy(X, chainer.backends.cuda.DummyDevice)
    F.copy(X, -1)
    F.get_item(X, (Ellipsis, Ellipsis))
    F.scatter_add(X, (Ellipsis, Ellipsis), X)
    F.get_item(X, (0, 0, 0))
    F.scatter_add(X, (0, 0, 0), 1)
    F.repeat(X, 2, axis=True)
    F.repeat(X, (1, 2), axis=0)
    F.repeat((1, 2), 2)
    F.tile((1, 2), 2)
    F.tile(X, True)
    F.split_axis((1, 2), 2, 0)
    F.tensordot(X, X, ((2,), (0,)))
    F.tensordot(X, X, ((0,), (-3,)))
    F.einsum("a...,b...->ab...", np.ones((2, 3), "f"), np.ones((4, 3), "f"))
    F.huber_loss(X, X, 1.0, reduce="other")
    F.forget(lambda x: (x,), chainer.Variable(X)).shape
    type(F.forget(lambda x: (x,), chainer.Variable(X)))
    type(F.forget(lambda x: (x, x), chainer.Variable(X)))
"""


def case_leaky_relu_without_slope():
    x = chainer.Variable(X)
    y = F.leaky_relu(x, slope=0)
    y.grad = ONE
    y.backward()
    return y, x.grad


def _loss(t_requires_grad=True, **kwargs):
    x = chainer.Variable(X)
    soft = np.array([[0.2, 0.3, 0.5], [0.1, 0.9, 0]], "f")
    t = chainer.Variable(soft, requires_grad=t_requires_grad)
    return x, t, F.softmax_cross_entropy(x, t, **kwargs)


def case_soft_targets_get_no_gradient():
    found = []
    for kwargs in (
        {},
        {"soft_target_loss": "kl-divergence"},
        {"reduce": "no"},
        {"reduce": "no", "soft_target_loss": "kl-divergence"},
    ):
        x, t, loss = _loss(**kwargs)
        loss.grad = np.ones_like(loss.array)
        loss.backward()
        found.append((loss, x.grad, t.grad))
    return found


def case_soft_targets_of_positions():
    x = chainer.Variable(np.arange(12, dtype="f").reshape(2, 3, 2) / 7)
    t = chainer.Variable(np.full((2, 3, 2), 1 / 3, "f"))
    loss = F.softmax_cross_entropy(x, t)
    loss.backward()
    return loss, x.grad, t.grad


def _creator_of_loss(**kwargs):
    t = np.array([0, 2], "i")
    return F.softmax_cross_entropy(chainer.Variable(X), t, **kwargs).creator


def case_probabilities_of_the_loss():
    return _creator_of_loss().y


def case_probabilities_of_the_loss_of_arrays():
    t = np.array([0, 2], "i")
    with chainer.using_config("train", False):
        return F.softmax_cross_entropy(X, t).creator is None


def case_probabilities_of_half_floats():
    x = chainer.Variable(X.astype("e"))
    return F.softmax_cross_entropy(x, np.array([0, 2], "i")).creator.y


def case_probabilities_of_positions():
    x = chainer.Variable(np.arange(12, dtype="f").reshape(2, 3, 2) / 7)
    return F.softmax_cross_entropy(x, np.array([[0, 2], [1, 1]], "i")).creator.y


def case_probabilities_that_are_not_kept():
    return _creator_of_loss(cache_score=False).y


def case_probabilities_of_the_differentiable_loss():
    return hasattr(_creator_of_loss(enable_double_backprop=True), "y")


def case_mask_of_dropout():
    x = np.ones((3, 4), "f")
    y = F.dropout(x, 0.25)
    mask = y.creator.mask
    found = set(np.round(np.unique(mask), 4).tolist()) <= {0, 1.3333}
    return found, mask.dtype, mask.shape, np.array_equal(y.array, x * mask)


def case_mask_of_dropout_of_a_variable():
    x = chainer.Variable(np.ones((3, 4), "d"))
    y = F.dropout(x, 0.5)
    return y.creator.mask.dtype, np.array_equal(y.array, x.array * y.creator.mask)


def case_masks_of_dropconnect():
    found = []
    x, W = np.ones((4, 3), "f"), np.arange(6, dtype="f").reshape(2, 3)
    for given in (x, chainer.Variable(x)):
        for batchwise in (True, False):
            y = F.simplified_dropconnect(
                given, W, None, 0.5, use_batchwise_mask=batchwise
            )
            mask = y.creator.mask
            kept = np.broadcast_to(mask, (4, 2, 3)) * W / 0.5
            same = np.allclose((kept * x[:, None]).sum(2), y.array)
            found.append((mask.dtype, mask.shape, same))
    return found


def case_flags_of_zoneout():
    h, x = np.full((3, 4), 2, "f"), np.ones((3, 4), "f")
    found = []
    for given in ((h, x), (chainer.Variable(h), x)):
        y = F.zoneout(*given, 0.5)
        flag_h, flag_x = y.creator.flag_h, y.creator.flag_x
        same = np.array_equal(y.array, h * flag_h + x * flag_x)
        found.append((flag_h.dtype, same, np.array_equal(flag_h, ~flag_x)))
    return found


def case_fixed_batch_renormalization():
    args = X, np.ones(3, "f"), np.zeros(3, "f"), np.ones(3, "f"), np.full(3, 4, "f")
    return warned(lambda: F.fixed_batch_renormalization(*args))


def case_batch_normalization_of_one_sample():
    one = np.ones(3, "f")
    return [
        warned(lambda: F.batch_normalization(X[:1], one, one))[1],
        warned(lambda: F.batch_normalization(X, one, one))[1],
        warned(lambda: F.batch_normalization(np.ones((1, 3, 1, 1), "f"), one, one))[1],
        warned(lambda: F.batch_normalization(np.ones((1, 3, 2, 1), "f"), one, one))[1],
    ]


def case_debug_of_bias_and_scale():
    found = []
    for f in (F.bias, F.scale):
        for shape, axis in (((3,), 0), ((2, 2), 0), ((3,), 1), ((3, 1), 1)):
            with chainer.using_config("debug", True):
                try:
                    found.append(f(X, np.ones(shape, "f"), axis).shape)
                except Exception as error:
                    found.append(type(error).__name__)
    return found


def case_debug_of_split_axis():
    with chainer.using_config("debug", True):
        return F.split_axis(X, np.array([2, 1]), 1)


def case_variables_and_arrays_of_integers():
    x = chainer.Variable(X)
    y = x * np.array([[1, 2, 3]])
    return y.dtype, y


def case_numbers_of_the_mask_are_drawn_once():
    drawn = []
    original = np.random.rand

    def rand(*shape):
        drawn.append(shape)
        return original(*shape)

    np.random.rand = rand
    try:
        F.zoneout(X, X, 0.5)
        F.simplified_dropconnect(X, np.ones((2, 3), "f"), None, 0.5)
    finally:
        np.random.rand = original
    return drawn
