"""Private functions of Chainer's that programs import."""

import os

import chainer
import chainer.links as L
import numpy as np
from chainer import optimizers
from chainer.backends import _cpu
from chainer.dataset import convert
from chainer.datasets import image_dataset, mnist
from chainer.distributions import normal
from chainer.functions.activation import log_softmax
from chainer.functions.array import flip
from chainer.functions.loss import softmax_cross_entropy
from chainer.functions.math import basic_math, matmul
from chainer.functions.normalization import batch_normalization
from chainer.functions.rnn import lstm, n_step_gru, n_step_lstm, n_step_rnn
from chainer.links.caffe import caffe_function
from chainer.links.model.vision import googlenet, resnet, vgg
from chainer.optimizers import adam
from chainer.training import trainer
from chainer.training.extensions import _snapshot
from chainer.utils import type_check
from chainermn import optimizers as chainermn_optimizers

IMAGE = np.arange(32, dtype="f").reshape(1, 2, 4, 4)
ONES, ZEROS = np.ones(2, "f"), np.zeros((3, 2), "d")
MATRIX = np.arange(6, dtype="f").reshape(2, 3)
FLAGS = [(a, b) for a in (False, True) for b in (False, True)]
FORMAT = "snapshot_iter_{.updater.iteration}"

EXPRESSIONS = """
    convert._concat_arrays([ONES, ONES * 2], None)
    convert._concat_arrays([ONES, np.zeros(3, "f")], 7)
    convert._concat_arrays([1, 2], None)
    convert._concat_arrays([1, 2.5], None)
    convert._concat_arrays([[1, 2], [3, 4]], 0)
    convert._concat_arrays([ONES, np.zeros(3, "f")], None)
    convert._concat_arrays_with_padding([ONES, np.zeros(3, "f")], -1)
    convert._concat_arrays_with_padding([ZEROS, np.ones((1, 4))], 5)
    len(chainer._get_link_hooks())
    L.Linear(2, 2)._device_id
    chainer.Chain()._device_id
    _cpu._to_cpu([ONES, None])
    _cpu._to_cpu((ONES, 3))
    _cpu._to_cpu(None)
    _cpu._to_cpu(2.5)
    _cpu._to_cpu(np.float16(1))
    _cpu._to_cpu(ONES) is ONES
    _cpu._array_to_cpu(ZEROS) is ZEROS
    _cpu._array_to_cpu([ONES])
    _cpu._array_to_cpu({})
    _cpu._to_cpu(chainer.Variable(ONES))
    convert._get_device(None), str(convert._get_device(-1))
    log_softmax._log_softmax(np.array([[1, 2, 4]], "f"))
    log_softmax._log_softmax(np.array([[1], [3]], "f"), axis=0)
    softmax_cross_entropy._check_class_weight_option(ONES)
    softmax_cross_entropy._check_class_weight_option(ONES[None])
    softmax_cross_entropy._check_class_weight_option(np.arange(2))
    softmax_cross_entropy._check_class_weight_option(chainer.Variable(ONES))
    softmax_cross_entropy._check_reduce_option("sum")
    lstm._extract_gates(np.arange(16).reshape(2, 8))
    adam._learning_rate(optimizers.Adam(beta1=0.5).hyperparam, 2)
    adam._learning_rate(optimizers.Adam().hyperparam, 0)
    basic_math._preprocess_const(ONES, 3).dtype
    normal.ENTROPYC, normal.LOGPROBC, normal.PROBC
    resnet._global_average_pooling_2d(IMAGE)
    vgg._max_pooling_2d(IMAGE)
    googlenet._max_pooling_2d(IMAGE)
    googlenet._average_pooling_2d_k5(np.ones((1, 1, 8, 8), "f")).shape
    googlenet._average_pooling_2d_k7(np.ones((1, 1, 8, 8), "f")).shape
    googlenet._local_response_normalization(IMAGE)
    image_dataset._postprocess_image(np.arange(6).reshape(2, 3))
    image_dataset._postprocess_image(np.arange(6).reshape(1, 2, 3))
    flip._flip(ZEROS + np.arange(3)[:, None], 0)
    flip._flip(np.arange(6).reshape(1, 2, 3), 2)
    basic_math._convert_value_to_string(2)
    basic_math._convert_value_to_string(-2)
    basic_math._convert_value_to_string(-0.5)
    basic_math._convert_value_to_string(ONES)
    basic_math._convert_value_to_string(chainer.Variable(ONES))
    basic_math._convert_value_to_string(None)
    basic_math._convert_value_to_string([1])
    basic_math.sub(ZEROS, ONES)
    basic_math.rsub(ONES, 3)
    basic_math.mul(chainer.Variable(ONES), 2.5)
    basic_math.mul(ONES, ONES)
    basic_math.mul(chainer.Variable(ONES), "2")
    basic_math.div(ONES, 4)
    basic_math.rdiv(ONES * 2, 4)
    basic_math.floordiv(ONES * 7, 2)
    basic_math.rfloordiv(ONES * 2, 7)
    basic_math.pow(ONES * 3, 2)
    basic_math.rpow(ONES * 3, 2)
    basic_math.rmatmul(MATRIX.T, MATRIX)
    basic_math.neg(ONES)
    matmul._matmul(MATRIX, MATRIX.T)
    matmul._matmul(MATRIX, MATRIX, transa=True)
    matmul._matmul(MATRIX, MATRIX, transb=True)
    matmul._matmul(MATRIX, MATRIX.T + 1, transout=True)
    matmul._matmul(ONES, ONES)
    matmul._matmul(np.ones((2, 3, 4)), np.ones((2, 4, 3)))
    [matmul._get_check_index(*flags) for flags in FLAGS]
    [matmul._get_check_index(*flags, row_idx=1, col_idx=2) for flags in FLAGS]
    matmul._check_ndim(type_of(MATRIX))
    matmul._check_ndim(type_of(MATRIX[None]))
    matmul._check_ndim(type_of(MATRIX[None]), 3, 3)
    batch_normalization._x_hat(MATRIX, MATRIX.mean(0), 2 * np.ones(3))
    lstm._sigmoid(MATRIX)
    lstm._grad_sigmoid(MATRIX)
    lstm._grad_tanh(MATRIX)
    optimizers.Adam().setup(L.Linear(2, 2)).target.W.update_rule.lr
    issubclass(chainermn_optimizers._DoubleBufferingOptimizer, object)
    callable(chainermn_optimizers._MultiNodeOptimizer)
    trainer._get_time() <= trainer._get_time()
    callable(mnist._retrieve_mnist_training), callable(mnist._retrieve_mnist_test)
"""


def type_of(array):
    return type_check.get_types((array,), "in_types", False)[0]


def case_link_hooks():
    class Hook(chainer.LinkHook):
        name = "mine"

    with Hook():
        return list(chainer._get_link_hooks())


def case_a_step_of_lstm():
    rng = np.random.RandomState(0)
    x, h, c = (rng.randn(2, n).astype("f") for n in (3, 4, 4))
    w = [rng.randn(4, n).astype("f") for n in (3, 3, 3, 3, 4, 4, 4, 4)]
    b = [rng.randn(4).astype("f") for _ in range(8)]
    return n_step_lstm._lstm(x, h, c, w, b)


def case_bases_of_recurrent_functions():
    rng = np.random.RandomState(0)
    xs = [rng.randn(n, 3).astype("f") for n in (2, 1)]
    found = []
    for bidirectional in (False, True):
        hx = rng.randn(1 + bidirectional, 2, 4).astype("f")
        layers = []
        for gates in (2, 6, 8):
            columns = [3] * (gates // 2) + [4] * (gates // 2)
            ws = [rng.randn(4, n).astype("f") for n in columns]
            bs = [rng.randn(4).astype("f") for _ in columns]
            layers.append(([ws] * (1 + bidirectional), [bs] * (1 + bidirectional)))
        (rnn, gru, lstm_) = layers
        found += [
            n_step_rnn.n_step_rnn_base(1, 0.0, hx, *rnn, xs, "tanh", bidirectional),
            n_step_gru.n_step_gru_base(1, 0.0, hx, *gru, xs, bidirectional),
            n_step_lstm.n_step_lstm_base(1, 0.0, hx, hx, *lstm_, xs, bidirectional),
        ]
    return found


class Blob:
    def __init__(self, num=0, channels=0, height=0, width=0, dim=()):
        self.num, self.channels = num, channels
        self.height, self.width = height, width
        self.shape = type("Shape", (), {"dim": list(dim)})


def case_extents_of_blobs():
    blobs = (
        Blob(2, 3, 4, 5),
        Blob(dim=(6, 7, 8, 9)),
        Blob(dim=(6, 7)),
        Blob(1, dim=(3,)),
    )
    found = []
    for name in ("num", "channels", "height", "width"):
        for blob in blobs:
            try:
                found.append(getattr(caffe_function, "_get_" + name)(blob))
            except (IndexError, RuntimeError) as error:
                found.append(type(error).__name__)
    return found


def _folder():
    for i, number in enumerate((1, 3, 2)):
        name = f"snapshot_iter_{number}"
        open(name, "w").close()
        os.utime(name, (100 + i, 100 + i))
    open("others", "w").close()
    return "."


def case_snapshots():
    folder = _folder()
    return [
        _snapshot._find_snapshot_files(FORMAT, folder),
        _snapshot._find_latest_snapshot(FORMAT, folder),
        _snapshot._find_latest_snapshot("nothing_{}", folder),
        [list(_snapshot._find_stale_snapshots(FORMAT, folder, n)) for n in range(5)],
        _snapshot._find_snapshot_files("snap{}_2", folder),
    ]
