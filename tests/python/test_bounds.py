# ruff: noqa: E501
"""Bounds of options: calls with the last values that are accepted, and the first that are not.

One row for each call: the error's name, or the dtypes and shapes of the results, or
their types. ``BELOW`` and ``ABOVE`` are the numbers next to 1, ``TINY`` the one above 0.
"""

import math

import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import testing, training, transforms
from renga.communicators import local, simulated
from renga.distributed import compression, scatter_dataset
from renga.launch.arguments import parse_ranks
from renga.parallel.pipeline.schedule import flush_schedule
from renga.parallel.placement.shard_ranges import shard_ranges
from renga.training import extensions
from renga.utils import imgproc
from tests.python.functions.cases import error_cases

NAMES = {
    **error_cases.namespace(F, renga.Variable),
    **{"BELOW": 1 - 2**-53, "ABOVE": 1 + 2**-52, "TINY": 5e-324},
    **{"L": L, "math": math, "renga": renga},
    **{"extensions": extensions, "training": training, "transforms": transforms},
    **{"local": local, "simulated": simulated, "compression": compression},
    **{"imgproc": imgproc, "testing": testing, "parse_ranks": parse_ranks},
    **{"flush_schedule": flush_schedule, "shard_ranges": shard_ranges},
    "scatter_dataset": scatter_dataset,
}

CASES = r"""
F.clip(f(2), 1, 1) -> ValueError
F.clip(f(2), 1, ABOVE) -> float32 (2,)
F.clip(f(2), -math.inf, None) -> float32 (2,)
F.connectionist_temporal_classification([f(1, 3)], l(1, 1), 2) -> float32 ()
F.connectionist_temporal_classification([f(1, 3)], l(1, 1), 3) -> ValueError
F.connectionist_temporal_classification([f(1, 3)], l(1, 1), -1) -> ValueError
F.contrastive(f(2, 3), f(2, 3), l(2), TINY) -> float32 ()
F.contrastive(f(2, 3), f(2, 3), l(2), 0) -> ValueError
F.diagonal(f(2, 3)) -> float32 (2,)
F.diagonal(f(3)) -> InvalidType
F.diagonal(f(3), numpy.int64(0)) -> InvalidType
F.diagonal(f(2, 3), numpy.int64(0)) -> float32 (2,)
F.dropout(f(2), 0) -> float32 (2,)
F.dropout(f(2), BELOW) -> float32 (2,)
F.group_normalization(f(2, 6), 6, f(6), f(6)) -> float32 (2, 6)
F.group_normalization(f(2, 6), 1, f(6), f(6)) -> float32 (2, 6)
F.group_normalization(f(2, 6), 0, f(6), f(6)) -> ValueError
F.group_normalization(f(2, 6), 4, f(6), f(6)) -> ValueError
F.decorrelated_batch_normalization(f(4, 4), groups=1) -> float32 (4, 4)
F.decorrelated_batch_normalization(f(4, 4), groups=4) -> float32 (4, 4)
F.decorrelated_batch_normalization(f(4, 4), groups=3) -> InvalidType
F.gumbel_softmax(f(2, 3), tau=1e-9) -> float32 (2, 3)
F.label_smoothing_cross_entropy(f(2, 3), l(2), 0) -> float32 ()
F.label_smoothing_cross_entropy(f(2, 3), l(2), 1) -> float32 ()
F.label_smoothing_cross_entropy(f(2, 3), l(2), -TINY) -> ValueError
F.label_smoothing_cross_entropy(f(2, 3), l(2), ABOVE) -> ValueError
F.max_pooling_nd(f(1, 2, 3), 2) -> float32 (1, 2, 2)
F.average_pooling_nd(f(2, 3), ()) -> InvalidType
F.pad_sequence([f(2), f(3)], length=3) -> float32 (2, 3)
F.pad_sequence([f(2), f(3)], length=2) -> InvalidType
F.position_embedding(f(5, 4), l(1, 3), 2) -> float32 (3, 4)
F.position_embedding(f(5, 4), l(1, 3), 3) -> InvalidType
F.position_embedding(f(5, 4), l(1, 3), -1) -> InvalidType
F.position_embedding(f(5, 4), l(3)) -> InvalidType
F.roi_pooling_2d(f(1, 2, 3, 3), f(0, 5), 2, 2, TINY) -> float32 (0, 2, 2, 2)
F.roi_pooling_2d(f(1, 2, 3, 3), f(0, 5), 2, 2, 0.0) -> TypeError
F.rollaxis(f(2, 3), 0, 2) -> float32 (3, 2)
F.rollaxis(f(2, 3), 0, 3) -> InvalidType
F.rollaxis(f(2, 3), 1, -2) -> float32 (3, 2)
F.rotary_embedding(f(3, 4), 2**31 - 1) -> float32 (3, 4)
F.rotary_embedding(f(3, 4), 2**31) -> ValueError
F.rotary_embedding(f(3, 4), -(2**31)) -> ValueError
F.rotary_embedding(f(3, 4), base=TINY) -> float32 (3, 4)
F.rotary_embedding(f(3, 4), base=0) -> ValueError
F.rotary_embedding(f(3, 4)[0]) -> InvalidType
F.rrelu(f(2), 0, TINY) -> float32 (2,)
F.rrelu(f(2), -TINY, .5) -> ValueError
F.rrelu(f(2), .5, .5) -> ValueError
F.rrelu(f(2), 0, BELOW) -> float32 (2,)
F.rrelu(f(2), 0, 1) -> ValueError
F.scaled_dot_product_attention(f(2, 3), f(4, 3), f(4, 5)) -> float32 (2, 5)
F.scaled_dot_product_attention(f(1, 1, 2, 3), f(1, 1, 4, 3), f(1, 1, 4, 5)) -> float32 (1, 1, 2, 5)
F.scaled_dot_product_attention(f(3), f(3), f(3)) -> InvalidType
F.scaled_dot_product_attention(f(1, 1, 1, 2, 3), f(1, 1, 1, 4, 3), f(1, 1, 1, 4, 5)) -> InvalidType
F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=0) -> float32 (2, 4)
F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=1) -> ValueError
F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=-TINY) -> ValueError
F.split_axis(f(2, 4), 0, 1) -> ValueError
F.split_axis(f(2, 4), 1, 1) -> float32 (2, 4)
F.split_axis(f(2, 4), [4], 1) -> float32 (2, 4); float32 (2, 0)
F.split_axis(f(2, 4), [5], 1) -> InvalidType
F.split_axis(f(2, 4), [-4], 1) -> float32 (2, 0); float32 (2, 4)
F.split_axis(f(2, 4), [-5], 1) -> InvalidType
F.tensordot(f(2, 3), f(2, 3), 0) -> float32 (2, 3, 2, 3)
F.tensordot(f(2, 3), f(2, 3), 2) -> float32 ()
F.tensordot(f(2, 3), f(2, 3), 3) -> ValueError
F.tensordot(f(2, 3), f(2, 3), -1) -> ValueError
F.triplet(f(2, 3), f(2, 3), f(2, 3), TINY) -> float32 ()
F.triplet(f(2, 3), f(2, 3), f(2, 3), 0) -> ValueError
F.zoneout(f(2), f(2), 0) -> float32 (2,)
F.zoneout(f(2), f(2), 1) -> float32 (2,)
F.zoneout(f(2), f(2), ABOVE) -> ValueError
F.zoneout(f(2), f(2), -TINY) -> ValueError
renga.datasets.ConcatenatedDataset(range(2), range(3))[4] -> int
renga.datasets.ConcatenatedDataset(range(2), range(3))[-5] -> int
renga.datasets.ConcatenatedDataset(range(2), range(3))[5] -> IndexError
renga.datasets.ConcatenatedDataset(range(2), range(3))[-6] -> IndexError
renga.datasets.SubDataset(range(3), 0, 3) -> SubDataset
renga.datasets.SubDataset(range(3), -1, 3) -> ValueError
renga.datasets.SubDataset(range(3), 0, 4) -> ValueError
renga.datasets.SubDataset(range(3), 0, 3, [-3, 2, 0]) -> SubDataset
renga.datasets.SubDataset(range(3), 0, 3, [-4, 2, 0]) -> ValueError
renga.datasets.SubDataset(range(3), 0, 3, [0, 1, 3]) -> ValueError
renga.datasets.SubDataset(range(9), 2, 5)[-3] -> int
renga.datasets.SubDataset(range(9), 2, 5)[-4] -> IndexError
renga.datasets.SubDataset(range(9), 2, 5)[2] -> int
renga.datasets.SubDataset(range(9), 2, 5)[3] -> IndexError
renga.datasets.split_dataset(range(3), 3) -> SubDataset; SubDataset
renga.datasets.split_dataset(range(3), 4) -> ValueError
renga.datasets.split_dataset(range(3), -1) -> ValueError
renga.distributions.Independent(renga.distributions.Normal(f(2, 3), 1), 2) -> Independent
renga.distributions.Independent(renga.distributions.Normal(f(2, 3), 1), 3) -> ValueError
renga.initializer.get_fans((3, 2)) -> int; int
renga.initializer.get_fans((3,)) -> ValueError
L.Classifier(len, label_key=0)(f(1)) -> TypeError
L.Classifier(len, label_key=1)(f(1)) -> ValueError
L.Classifier(len, label_key=-2)(f(1)) -> ValueError
L.GPT2(9, 4, 8, 1, 2)(l(1, 4)) -> float32 (1, 4, 9)
L.GPT2(9, 4, 8, 1, 2)(l(1, 5)) -> ValueError
L.GroupNormalization(1)(f(2, 3)) -> float32 (2, 3)
L.GroupNormalization(1)(f(3)) -> ValueError
L.LocalConvolution2D(1, 1, 3, 3) -> LocalConvolution2D
L.LocalConvolution2D(1, 1, 3, 4) -> ValueError
L.MultiHeadAttention(4, 1, num_kv_heads=1) -> MultiHeadAttention
L.MultiHeadAttention(4, 0) -> ValueError
L.MultiHeadAttention(4, 2, num_kv_heads=0) -> ValueError
renga.optimizer_hooks.GradientHardClipping(1, 1) -> GradientHardClipping
renga.optimizer_hooks.GradientHardClipping(ABOVE, 1) -> ValueError
renga.optimizers.Adam(beta1=0, beta2=BELOW) -> Adam
renga.optimizers.Adam(beta2=-TINY) -> ValueError
renga.optimizers.SGD().loss_scaling(1) -> NoneType
renga.optimizers.SGD().loss_scaling(0) -> ValueError
renga.optimizers.SGD().set_loss_scale(TINY) -> NoneType
renga.optimizers.SGD().set_loss_scale(0) -> ValueError
renga.optimizers.SGD().set_loss_scale(math.inf) -> ValueError
renga.seed_everything(2**32 - 1) -> int
renga.seed_everything(2**32) -> ValueError
renga.Sequential(abs, abs).insert(2, abs) -> NoneType
renga.Sequential(abs, abs).insert(3, abs) -> IndexError
renga.Sequential(abs, abs).insert(-2, abs) -> NoneType
renga.Sequential(abs, abs).insert(-3, abs) -> IndexError
renga.Sequential(abs, abs).__setitem__(1, abs) -> NoneType
renga.Sequential(abs, abs).__setitem__(2, abs) -> ValueError
testing.generate_matrix((1, 1), singular_values=1) -> float64 (1, 1)
testing.generate_matrix((1,), singular_values=1) -> ValueError
testing.condition.repeat_with_success_at_least(2, 2) -> function
testing.condition.repeat_with_success_at_least(2, 3) -> ValueError
extensions.ExponentialMovingAverage(L.Linear(1), 0) -> ExponentialMovingAverage
extensions.ExponentialMovingAverage(L.Linear(1), -TINY) -> ValueError
extensions.ExponentialMovingAverage(L.Linear(1), 1) -> ValueError
extensions.ExponentialShift('lr', 0) -> ExponentialShift
extensions.ExponentialShift('lr', -TINY) -> ValueError
extensions.InverseShift('lr', 0, 1) -> InverseShift
extensions.InverseShift('lr', -TINY, 1) -> ValueError
extensions.LinearShift('lr', (1, 2), (3, 3)) -> LinearShift
extensions.OneCycleShift('lr', 10, TINY) -> OneCycleShift
extensions.OneCycleShift('lr', 10, 0) -> ValueError
extensions.OneCycleShift('lr', 10, BELOW) -> OneCycleShift
extensions.OneCycleShift('lr', 10, 1) -> ValueError
extensions.snapshot(filename=str, n_retains=0) -> _Snapshot
extensions.snapshot(filename=str, n_retains=1) -> ValueError
extensions.snapshot(filename=str, autoload=True) -> ValueError
training.lr_range_test(None, [], 0, 1) -> ValueError
training.lr_range_test(None, [], TINY, TINY) -> ValueError
training.lr_range_test(None, [], TINY, math.inf) -> ValueError
training.lr_range_test(None, [], TINY, 1) -> TypeError
training.triggers.IntervalTrigger(TINY, 'epoch') -> IntervalTrigger
training.triggers.IntervalTrigger(0, 'epoch') -> ValueError
training.triggers.TimeTrigger(TINY) -> TimeTrigger
training.triggers.TimeTrigger(0) -> ValueError
transforms.RandomHorizontalFlip(0) -> RandomHorizontalFlip
transforms.RandomHorizontalFlip(1) -> RandomHorizontalFlip
transforms.RandomHorizontalFlip(-TINY) -> ValueError
transforms.RandomHorizontalFlip(ABOVE) -> ValueError
transforms.RandomResizedCrop(2, (1, 1), (TINY, TINY)) -> RandomResizedCrop
transforms.RandomResizedCrop(2, (1, ABOVE)) -> ValueError
transforms.RandomResizedCrop(2, (0, 1)) -> ValueError
transforms.RandomResizedCrop(2, ratio=(1, math.inf)) -> ValueError
transforms.CenterCrop((4, 3))(f(1, 2, 4, 3)) -> float32 (1, 2, 4, 3)
transforms.CenterCrop((4, 3))(f(1, 2, 3, 3)) -> InvalidType
transforms.Mixup(2, TINY) -> Mixup
transforms.Mixup(2, 0) -> ValueError
transforms.Mixup(2, math.inf) -> ValueError
transforms.Mixup(2)(f(2, 3), l(2)) -> float32 (2, 3); float32 (2, 2)
transforms.Mixup(1)(f(2, 3), l(2)) -> IndexError
transforms.Mixup(2)(f(2, 3), l(2) - 1) -> IndexError
imgproc.oversample(f(1, 2, 4, 3), (4, 3)) -> float32 (10, 2, 4, 3)
imgproc.oversample(f(1, 2, 4, 3), (5, 3)) -> ValueError
imgproc.oversample(f(1, 2, 4, 3), (4, 4)) -> ValueError
parse_ranks('1:1') -> int; int
parse_ranks('0:1') -> ValueError
parse_ranks('2:1') -> ValueError
compression.TopK(1) -> TopK
compression.TopK(TINY) -> TopK
compression.TopK(0) -> ValueError
compression.TopK(ABOVE) -> ValueError
compression.DGC(momentum=0, clip=TINY) -> DGC
compression.DGC(momentum=-TINY) -> ValueError
compression.DGC(momentum=1) -> ValueError
compression.DGC(clip=0) -> ValueError
shard_ranges(0, 1, 1) -> range
shard_ranges(2, 0) -> ValueError
shard_ranges(-1, 1) -> ValueError
shard_ranges(2, 1, 0) -> ValueError
flush_schedule('gpipe', 1, 1, 1) -> list
flush_schedule('gpipe', 0, 1) -> ValueError
flush_schedule('gpipe', 1, 0) -> ValueError
flush_schedule('gpipe', 1, 1, 0) -> ValueError
flush_schedule('gpipe', 1, 1, 2) -> ValueError
scatter_dataset([1], simulated.connect(3), root=2) -> DatasetShard
scatter_dataset([1], simulated.connect(3), root=3) -> ValueError
scatter_dataset([1], simulated.connect(3), root=-1) -> ValueError
simulated.connect(3, 2) -> SimulatedCommunicator
simulated.connect(3, 3) -> ValueError
simulated.connect(3, -1) -> ValueError
simulated.run(len, 0) -> ValueError
local.run(len, ranks=0) -> ValueError
local.run(id, ranks=2, nodes=3) -> ValueError
local.run(id, ranks=2, nodes=0) -> ValueError
local.run(id, ranks=2, nodes=2) -> int; int
"""


BY_NAME = error_cases.by_name(CASES)


@pytest.mark.parametrize("name", BY_NAME)
def test_outcomes(name):
    wrong = error_cases.differences(BY_NAME[name], NAMES)
    assert not wrong, wrong
