"""Every function with empty batches, single numbers, float16 and unusual strides.

The expected outcomes are Chainer 7.8.1's (see ``edge_cases.py``): values, dtypes and
shapes of results and gradients, or the error. The tables below list where renga's
differ on purpose.
"""

import json
import warnings

import numpy
import pytest

import renga
import renga.functions as F
from tests.catalogue import CATALOGUE
from tests.catalogue.row import function_name
from tests.python.functions.cases import edge_cases
from tests.python.functions.cases.edge_cases import same
from tests.python.functions.cases.function_check import strided

CHAINER = json.loads(edge_cases.FILE.read_text())

# Chainer's calls fail with empty batches only: it divides by N, reshapes with -1, or
# requires samples. Renga's have the same shapes as with samples, NaN for a mean over no
# elements and 0 for a sum.
EMPTY = {
    "average(s(N, 3))": [()],
    "average_pooling_1d": [(0, 3, 2)],
    "average_pooling_3d": [(0, 3, 2, 2, 2)],
    "average_pooling_nd": [(0, 3, 2, 2)],
    "batch_l2_norm_squared": [(0,)],
    "batch_matmul": [(0, 2, 4)],
    "black_out": [()],
    "contrastive(s(N, 3), s(N, 3), i(2, N))": [()],
    "contrastive(s(N, 3), s(N, 3), i(2, N), reduce='no')": [(0,)],
    "crf1d": [()],
    "deformable_convolution_2d_sampler": [(0, 4, 3, 3)],
    "discriminative_margin_based_clustering_loss": [(), (), ()],
    "group_normalization": [(0, 4, 3)],
    "linear(s(2, N, 3), s(4, 3), s(4), n_batch_axes=2)": [(2, 0, 4)],
    "logsumexp": [()],
    "max_pooling_1d": [(0, 3, 2)],
    "max_pooling_2d": [(0, 3, 2, 2)],
    "max_pooling_3d": [(0, 3, 2, 2, 2)],
    "max_pooling_nd": [(0, 3, 2, 2)],
    "mean(s(N, 3))": [()],
    "resize_images": [(0, 3, 6, 3)],
    "separate": [],
    "softmax(s(3, N), axis=1)": [(3, 0)],
    "softmax_cross_entropy": [()],
    "sparse_matmul": [(0, 2)],
    "spatial_pyramid_pooling_2d": [(0, 15, 1, 1)],
    "spatial_transformer_sampler": [(0, 3, 3, 3)],
    "triplet(s(N, 3), s(N, 3), s(N, 3))": [()],
    "triplet(s(N, 3), s(N, 3), s(N, 3), reduce='no')": [(0,)],
}

# Functions that draw numbers; only dtypes and shapes can be compared.
DRAWN = {"gumbel_softmax", "zoneout"}

# Renga's outcome where Chainer's is another one, always.
OTHERS = {
    # Wrong shapes are InvalidType, even where Chainer stumbles over them.
    "F.linear(s(), s(4, 3))": "InvalidType",
    "F.log_softmax(s())": "InvalidType",
    "F.softmax(s())": "InvalidType",
    "F.transpose_sequence([s(), s()])": "InvalidType",
    # Single numbers are arrays like others.
    "F.sigmoid_cross_entropy(s(), i(2))": [()],
    "F.zoneout(s(), s())": [()],
}

# Chainer knows these in float32 alone; float16 works everywhere in renga.
NOT_IN_HALF = {
    "batch_matmul",
    "bilinear",
    "cholesky",
    "decorrelated_batch_normalization",
    "resize_images",
    "roi_average_align_2d",
    "roi_max_align_2d",
}

# Chainer's gradients of mean and projection are not those of its function.
WRONG_GRADIENTS = {"fixed_decorrelated_batch_normalization"}

TOLERANCE = {"nothing": 1e-5, "two": 1e-4, "half": 3e-2}


def run(call, mode, layout=edge_cases.plain):
    inputs = edge_cases.Inputs(renga, *edge_cases.MODES[mode], layout)
    return edge_cases.outcome(call, inputs)


def listed(table, call):
    """The entry of a call, by its text or its function's name."""
    return table.get(call.removeprefix("F."), table.get(function_name(call)))


def test_every_function_is_called_with_batches():
    called = {function_name(call) for call in CHAINER if "N" in call}
    assert {row.name for row in CATALOGUE.values() if row.signature} <= called
    assert set(CHAINER) == set(edge_cases.calls())


@pytest.mark.parametrize("call", CHAINER)
def test_empty_batch(call):
    expected, found = CHAINER[call]["nothing"], run(call, "nothing")
    if call in OTHERS:
        return check_other(OTHERS[call], found)
    if found == expected:  # errors, too
        return
    if isinstance(expected, str):
        assert not isinstance(CHAINER[call]["two"], str)
        check_shapes(listed(EMPTY, call), found)
        return check_nothing(call, found)
    same(expected["outputs"], found["outputs"], TOLERANCE["nothing"])
    if isinstance(expected["gradients"], str):
        return check_nothing(call, found)
    same(expected["gradients"], found["gradients"], TOLERANCE["nothing"])


@pytest.mark.parametrize("call", CHAINER)
def test_second_derivatives_of_an_empty_batch(call):
    if isinstance(run(call, "nothing"), str):
        return  # an error, which the test above knows
    inputs = edge_cases.Inputs(renga, 0, "f")
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ys = edge_cases.flat(eval(call, inputs.names))
        squares = [y * y for y in ys if getattr(y, "requires_grad", False)]
        xs = [x for x in inputs.variables if squares]
        gxs = renga.grad(squares, xs, enable_double_backprop=True) if xs else []
        again = sum(F.sum(F.square(gx)) for gx in gxs if gx is not None)
    if not isinstance(again, int):
        again.backward()
        for x in xs:
            if x.grad is not None:
                assert x.grad.shape == x.shape and numpy.isfinite(x.grad).all()


def check_shapes(shapes, found):
    assert [tuple(y[1]) for y in found["outputs"]] == shapes


def check_nothing(call, found):
    """Nothing comes back from nothing, in the shapes of what was given."""
    wanted = edge_cases.Inputs(renga, 0, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(call, wanted.names)
    for x, gx in zip(wanted.variables, found["gradients"]):
        if gx is not None:
            assert gx == ["float32", list(x.shape), 0, 0]


def check_other(expected, found):
    if isinstance(expected, str):
        assert found == expected
    else:
        check_shapes(expected, found)


@pytest.mark.parametrize("layout", [edge_cases.plain, strided])
@pytest.mark.parametrize("mode", ["two", "half"])
@pytest.mark.parametrize("call", CHAINER)
def test_batch_of_two(call, mode, layout):
    """Values and gradients, whatever the strides; float16 as exact as it can be."""
    expected, found = CHAINER[call][mode], run(call, mode, layout)
    name = function_name(call)
    if call in OTHERS:
        return check_other(OTHERS[call], found)
    if mode == "half" and isinstance(expected, str) and name in NOT_IN_HALF:
        assert {y[0] for y in found["outputs"] + found["gradients"] if y} == {"float16"}
        expected = CHAINER[call]["two"]
        expected = {key: in_half(rows) for key, rows in expected.items()}
    if isinstance(expected, str):
        assert found == expected
        return
    tolerance = None if name in DRAWN else TOLERANCE[mode]
    same(expected["outputs"], found["outputs"], tolerance)
    if name not in WRONG_GRADIENTS:
        same(expected["gradients"], found["gradients"], tolerance)


def in_half(rows):
    return [row and ["float16", *row[1:]] for row in rows]
