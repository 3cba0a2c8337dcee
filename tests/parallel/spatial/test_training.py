"""Training with sharded images: three steps, files, data, groups and errors."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_multi_node_optimizer, datasets
from renga.links.parallel import spatial as S
from renga.parallel.groups import create_groups
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType

IMAGE = (2, 3, 12, 7)
GRIDS = [(1,), (2,), (3,), (4,), (2, 2), (1, 3)]


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


class Net(renga.Chain):
    """Convolutions, pooling and normalization; a class for every pixel and image."""

    normalizes = True

    def __init__(self, pool):
        super().__init__()
        self.pool = pool
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.conv1 = L.Convolution2D(3, 4, 3, pad=1)
            self.bn = L.BatchNormalization(4, dtype=np.float64)
            self.conv2 = L.Convolution2D(4, 4, 4, 2, 1, dilate=2)
            self.up = L.Deconvolution2D(4, 2, 4, 2, 1)
            self.fc = L.Linear(None, 3)
            self.bn_fc = L.BatchNormalization(3)

    def forward(self, x):
        h = self.conv1(x)
        h = F.tanh(self.bn(h) if self.normalizes else h)
        h = F.tanh(self.conv2(self.pool(h)))
        y = self.fc(h)
        return self.up(h), self.bn_fc(y) if self.normalizes else y


def serial_net():
    np.random.seed(0)
    net = Net(lambda h: F.max_pooling_2d(h, 3, 1, 1))
    with renga.no_backprop_mode(), renga.using_config("dtype", np.float64):
        net(numbers(1, *IMAGE))
    return net


def loss_of(pixels, classes, average):
    return average(F.square(pixels - 1)) + F.average(F.square(classes - 1))


def state(net):
    return {name: p.array for name, p in net.namedparams()} | {
        "mean": net.bn.avg_mean,
        "var": net.bn.avg_var,
        "mean of classes": net.bn_fc.avg_mean,
        "var of classes": net.bn_fc.avg_var,
    }


def train(net, xs, average, wrap=lambda optimizer: optimizer):
    optimizer = wrap(renga.optimizers.MomentumSGD(0.1)).setup(net)
    for x in xs:
        optimizer.update(lambda x: loss_of(*net(x), average), x)
    return state(net)


def batches(n=5):
    return [numbers(10 + i, n, *IMAGE[1:]) for i in range(3)]


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(
            found[name], expected[name], rtol=1e-9, atol=1e-10, err_msg=name
        )


def train_on_shards(comm, serial, shape):
    with renga.using_config("dtype", np.float64):
        grid = S.SpatialGrid(comm, shape)
        net = parallelize(serial, grid, "spatial", input="sharded")
        xs = [S.scatter_image(grid, x).array for x in batches()]
        return train(net, xs, lambda y: S.spatial_average(grid, y))


@pytest.mark.parametrize("shape", GRIDS)
def test_three_steps_equal_those_of_one_process(shape, capsys):
    expected = train(serial_net(), batches(), F.average)
    ranks = int(np.prod(shape))
    for found in local.run(train_on_shards, serial_net(), shape, ranks=ranks):
        assert_same(found, expected)
    assert (
        "SpatialConvolution2D, halo exchange, spatial -> spatial"
        in capsys.readouterr().out
    )


def test_three_steps_on_processes_and_without_shared_memory(ranks):
    expected = train(serial_net(), batches(), F.average)
    for found in ranks(train_on_shards, serial_net(), None):
        assert_same(found, expected)


def test_data_parallel_groups_of_spatial_ranks():
    # Without batch normalization the mean of two gradients is that of the whole batch.
    def without_normalization():
        net = serial_net()
        net.normalizes = False
        return net

    def params(net):
        named = net.namedparams()
        return {name: p.array for name, p in named if not name.startswith("/bn")}

    net = without_normalization()
    optimizer = renga.optimizers.MomentumSGD(0.1).setup(net)
    for x in batches(4):
        optimizer.update(lambda x: loss_of(*net(x), F.average), x)
    expected = params(net)
    serial = without_normalization()

    def on_rank(comm):
        renga.config.dtype = np.float64
        groups = create_groups(comm, data=2, spatial=2)
        net = parallelize(serial, groups.spatial, "spatial", input="sharded")
        net.pool = S.SpatialMaxPooling2D(groups.spatial, 3, 1, 1)
        optimizer = renga.optimizers.MomentumSGD(0.1)
        optimizer = create_multi_node_optimizer(optimizer, groups.data).setup(net)
        for x in batches(4):
            own = S.scatter_image(groups.spatial, x[groups.data.rank * 2 :][:2])
            optimizer.update(
                lambda x: loss_of(
                    *net(x), lambda y: S.spatial_average(groups.spatial, y)
                ),
                own.array,
            )
        return params(net)

    for found in local.run(on_rank, ranks=4):
        assert_same(found, expected)


def test_serial_files_load_and_are_saved(tmp_path):
    serial = serial_net()
    renga.serializers.save_npz(tmp_path / "serial.npz", serial)

    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(Net(None), comm, "spatial", input="sharded")
        renga.serializers.load_npz(tmp_path / "serial.npz", net)
        if comm.rank == 0:
            renga.serializers.save_npz(tmp_path / "parallel.npz", net)
        return state(net)

    for found in local.run(on_rank, ranks=2):
        assert_same(found, state(serial))
    again = serial_net()
    again.conv1.W.array[...] = 0
    renga.serializers.load_npz(tmp_path / "parallel.npz", again)
    assert_same(state(again), state(serial))


def test_initial_parameters_are_those_of_rank_0():
    def on_rank(comm):
        np.random.seed(comm.rank)
        made = S.SpatialConvolution2D(comm, 2, 3, 3)
        deferred = S.SpatialDeconvolution2D(comm, None, 3, 3)
        links = [
            deferred,
            S.SpatialConvolutionND(comm, 2, None, 3, 3),
            S.SpatialDeconvolutionND(comm, 2, None, 3, 3),
            S.SpatialLinear(comm, None, 2),
        ]
        x = np.zeros((1, 2, 5, 4), "f")
        for link in links:
            x = link(x)
        return [link.W.array for link in (made, *links)]

    first, *others = local.run(on_rank, ranks=3)
    for other in others:
        for expected, found in zip(first, other):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ksize, stride", [(3, 1), (4, 2)])
def test_fast_kernels_of_float32(ksize, stride):
    # 32 channels: the serial link in float64 knows no kernel but the plain one.
    x, W = numbers(0, 1, 32, 16, 12), numbers(1, 32, 32, ksize, ksize) / 20
    with renga.using_config("dtype", np.float64):
        link = L.Convolution2D(32, 32, ksize, stride, 1)
    link.W.array, link.b.array = W, numbers(2, 32)
    x64 = renga.Variable(x)
    y = link(x64)
    weight = numbers(3, *y.shape)
    F.sum(y * weight).backward()
    expected = y.array, x64.grad, link.W.grad, link.b.grad

    def on_rank(comm):
        grid = S.SpatialGrid(comm, (2, comm.size // 2))
        spatial = S.SpatialConvolution2D(grid, 32, 32, ksize, stride, 1)
        spatial.W.array, spatial.b.array = W.astype("f"), link.b.array.astype("f")
        own = renga.Variable(S.scatter_image(grid, x.astype("f")).array.copy())
        y = spatial(own)
        F.sum(y * S.scatter_image(grid, weight.astype("f")).array).backward()
        whole = [S.gather_image(grid, a).array for a in (y, own.grad)]
        return [*whole, spatial.W.grad, spatial.b.grad]

    for size in (2, 4):
        for found in local.run(on_rank, ranks=size):
            for a, b in zip(found, expected):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * abs(b).max())


def test_gradients_through_scatter_and_gather():
    x, weight = numbers(0, 1, 2, 5, 4), numbers(1, 1, 2, 5, 4)

    def on_rank(comm):
        whole = renga.Variable(x)
        shard = S.scatter_image(comm, whole)
        again = S.gather_image(comm, shard * shard)
        F.sum(again * weight).backward()
        return again.array, whole.grad

    for y, gx in local.run(on_rank, ranks=3):
        np.testing.assert_array_equal(y, x * x)
        np.testing.assert_allclose(gx, 2 * x * weight, rtol=1e-14)


def test_average_over_pixels_and_over_all():
    x = numbers(0, 2, 3, 7, 5)

    def on_rank(comm):
        grid = S.SpatialGrid(comm, (2, 2))
        shard = S.scatter_image(grid, x)
        pooled = S.spatial_average(grid, shard, (2, 3))
        return pooled.array, S.spatial_average(grid, shard).array

    for pooled, mean in local.run(on_rank, ranks=4):
        np.testing.assert_allclose(pooled, x.mean((2, 3)), rtol=1e-12)
        np.testing.assert_allclose(mean, x.mean(), rtol=1e-12)


class Recording:
    """An image that records the indices by which it is read."""

    def __init__(self, image):
        self.image, self.shape, self.indices = image, image.shape, []

    def __getitem__(self, index):
        self.indices.append(index)
        return self.image[index]


def test_a_rank_reads_its_shard_only():
    image, mask = numbers(0, 3, 7, 5), numbers(1, 7, 5)

    def on_rank(comm):
        recorded = Recording(image)
        grid = S.SpatialGrid(comm, (2, 2))
        data = datasets.ImageShards(grid, [(recorded, mask, 4)])
        assert len(data) == 1
        return *data[0], recorded.indices

    rows, columns = [slice(0, 4), slice(4, 7)], [slice(0, 3), slice(3, 5)]
    for rank, (shard, own_mask, label, indices) in enumerate(
        local.run(on_rank, ranks=4)
    ):
        box = rows[rank // 2], columns[rank % 2]
        np.testing.assert_array_equal(shard, image[(slice(None), *box)])
        np.testing.assert_array_equal(own_mask, mask[box])
        assert label == 4
        assert indices == [(..., *box)]


def test_errors_name_link_rank_shard_and_whole():
    def wrong_shard(comm):
        rows = 5 if comm.rank == 0 else 3
        S.SpatialConvolution2D(comm, 2, 3, 3)(np.zeros((1, 2, rows, 4), "f"))

    with pytest.raises(InvalidType) as raised:
        local.run(wrong_shard, ranks=2)
    for word in (
        "SpatialConvolution2D: expected rank 0 to have (1, 2, 4, 4)",
        "[0:4, 0:4] of the whole (1, 2, 8, 4)",
        "got (1, 2, 5, 4)",
    ):
        assert word in str(raised.value)

    def wrong_channels(comm):
        S.SpatialConvolution2D(comm, 3, 3, 3)(np.zeros((1, 2, 4, 4), "f"))

    with pytest.raises(InvalidType) as raised:
        local.run(wrong_channels, ranks=2)
    assert "expected images with 3 channels" in str(raised.value)
    assert "of the whole (1, 2, 8, 4)" in str(raised.value)

    def wrong_grid(comm):
        S.SpatialGrid(comm, (3, 1))

    with pytest.raises(ValueError, match="expected a grid of 2 ranks"):
        local.run(wrong_grid, ranks=2)
