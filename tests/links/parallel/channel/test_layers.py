"""Channel-parallel links against the serial ones, for many shapes and ranks."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local, simulated
from renga.initializers import HeNormal
from renga.links.parallel.channel.batch_normalization import (
    ParallelBatchNormalization,
)
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.process_grid import requested_grids
from renga.parallel.placement.shard_ranges import as_slice, shard_range
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array, differentiate

LAYOUTS = st.sampled_from(["replicated", "channel", "batch"])
ALGORITHMS = {
    1: ["column-parallel"],
    2: ["row-parallel", "column-parallel", "weight-gathered"],
    3: ["row-parallel", "column-parallel", "weight-gathered"],
    4: ["row-parallel", "column-parallel", "2-D", "weight-gathered"],
}
IMAGES = [
    (L.Convolution2D, ParallelConvolution2D),
    (L.Deconvolution2D, ParallelDeconvolution2D),
]


def own_shard(comm, layout, x, axis=1):
    if layout == "replicated":
        return x
    axis = 0 if layout == "batch" else axis
    own = as_slice(shard_range(x.shape[axis], comm.size, comm.rank))
    return x[(slice(None),) * axis + (own,)]


def check(ranks, shared_memory, serial, make, x, layouts, params):
    """Compares a parallel link, made for a communicator, with the serial one."""
    y_shape = serial(x).shape
    weight, weight2 = array(5, *y_shape), array(6, *x.shape)
    expected = differentiate(serial, x, weight, weight2)

    def on_rank(comm):
        renga.config.dtype = np.float64
        link = make(comm)
        link.name = "link"
        own_x = [own_shard(comm, layouts[0], a) for a in (x, weight2)]
        found = differentiate(
            link, own_x[0], own_shard(comm, layouts[1], weight), own_x[1]
        )
        for name in params:  # renga.grad has returned whole gradients
            found[f"gg{name}"] = getattr(link, name).whole(found[f"gg{name}"])
        return found

    def close(actual, wanted, what):
        np.testing.assert_allclose(
            actual, wanted, rtol=1e-10, atol=1e-10 * (1 + abs(wanted).max(initial=0)),
            err_msg=what,
        )  # fmt: skip

    results = local.run(on_rank, ranks=ranks, shared_memory=shared_memory)
    for key, whole in expected.items():
        layout = layouts[1] if key == "y" else layouts[0]
        if key not in ("y", "gx", "ggx") or layout == "replicated":
            for rank, found in enumerate(results):
                close(found[key], whole, f"{key} on rank {rank}")
        else:
            shards = [found[key] for found in results]
            close(np.concatenate(shards, 1 if layout == "channel" else 0), whole, key)


@st.composite
def image_cases(draw):
    small = st.integers(1, 3)
    pair = st.tuples(small, small)
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    inputs, outputs = (groups * draw(st.integers(1, 3)) for _ in range(2))
    ksize, stride, dilate = draw(pair), draw(st.tuples(*[st.integers(1, 2)] * 2)), 1
    if draw(st.booleans()):
        dilate = draw(st.tuples(*[st.integers(1, 2)] * 2))
    pad = tuple(draw(st.integers(0, k - 1)) for k in ksize)
    reach = np.multiply(np.subtract(ksize, 1), dilate) + 1
    extents = [int(r) + draw(st.integers(0, 3)) for r in reach]
    ranks = draw(st.integers(1, 4))
    algorithms = ALGORITHMS[ranks]
    if groups > 1:
        algorithms = [
            a for a in algorithms if a in ("column-parallel", "weight-gathered")
        ]
    return dict(
        window=dict(stride=stride, pad=pad, dilate=dilate, groups=groups),
        channels=(inputs, outputs, ksize),
        x=(draw(st.integers(0, 3)), inputs, *extents),
        ranks=ranks,
        shared_memory=draw(st.booleans()),
        layouts=(draw(LAYOUTS), draw(LAYOUTS)),
        algorithm=draw(st.sampled_from([None, *algorithms])),
        pieces=draw(st.sampled_from([None, 0, 1, 2, 3])),
        nobias=draw(st.booleans()),
        deferred=draw(st.booleans()),
    )


@pytest.mark.parametrize(("serial", "parallel"), IMAGES, ids=["conv", "deconv"])
@given(image_cases())
def test_images(serial, parallel, case):
    inputs, outputs, ksize = case["channels"]
    groups = case["window"]["groups"]
    shape = (outputs, inputs // groups, *ksize)
    if serial is L.Deconvolution2D:
        shape = (inputs, outputs // groups, *ksize)
    W, b = array(1, *shape), array(2, outputs)
    kept = dict(
        nobias=case["nobias"], initialW=W, initial_bias=b, **case["window"]
    )  # fmt: skip
    layouts = case["layouts"]

    def make(comm):
        return parallel(
            comm,
            None if case["deferred"] else inputs,
            outputs,
            ksize,
            input_layout=layouts[0],
            output_layout=layouts[1],
            algorithm=case["algorithm"],
            pieces=case["pieces"],
            **kept,
        )

    with renga.using_config("dtype", np.float64):
        whole = serial(inputs, outputs, ksize, **kept)
        params = ["W"] if case["nobias"] else ["W", "b"]
        x = array(3, *case["x"])
        check(case["ranks"], case["shared_memory"], whole, make, x, layouts, params)


@given(
    in_channels=st.integers(1, 6),
    pixels=st.sampled_from([(), (2,), (3, 2)]),
    out_size=st.integers(1, 6),
    batch=st.sampled_from([(3,), (2, 3), (0,)]),
    ranks=st.integers(1, 4),
    shared_memory=st.booleans(),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    choice=st.integers(0, 4),
    pieces=st.sampled_from([0, 1, 2]),
    nobias=st.booleans(),
    deferred=st.booleans(),
)
def test_linear(
    in_channels,
    pixels,
    out_size,
    batch,
    ranks,
    shared_memory,
    layouts,
    choice,
    pieces,
    nobias,
    deferred,
):
    axes = len(batch)
    if axes > 1:  # the layout is of the first axis after those of the batch
        layouts = ("replicated", "replicated")
    per_channel = int(np.prod(pixels, dtype=int))
    in_size = in_channels * per_channel
    kept = dict(
        nobias=nobias,
        initialW=array(1, out_size, in_size),
        initial_bias=array(2, out_size),
    )
    algorithm = [None, *ALGORITHMS[ranks]][choice % (1 + len(ALGORITHMS[ranks]))]

    def batched(link):
        class Batched(renga.Chain):
            def forward(self, x):
                return self.link(x, axes)

        chain = Batched(link=link)
        chain.W, chain.b = link.W, link.b
        return chain

    def make(comm):
        return batched(
            ParallelLinear(
                comm,
                None if deferred else in_size,
                out_size,
                input_layout=layouts[0],
                output_layout=layouts[1],
                algorithm=algorithm,
                pieces=pieces,
                pixels=per_channel,
                **kept,
            )
        )

    with renga.using_config("dtype", np.float64):
        whole = batched(L.Linear(in_size, out_size, **kept))
        x = array(3, *batch, in_channels, *pixels)
        params = ["W"] if nobias else ["W", "b"]
        check(ranks, shared_memory, whole, make, x, layouts, params)


@given(
    shape=st.sampled_from([(4, 5), (3, 1, 2, 2), (2, 7, 3, 1), (3, 4, 5)]),
    ranks=st.integers(1, 4),
    shared_memory=st.booleans(),
    layouts=st.tuples(LAYOUTS, LAYOUTS),
    use_gamma=st.booleans(),
)
def test_batch_normalization(shape, ranks, shared_memory, layouts, use_gamma):
    size = shape[1]
    kept = dict(use_gamma=use_gamma, eps=1e-2, initial_beta=array(2, size))
    if use_gamma:
        kept["initial_gamma"] = array(1, size)
    statistics = {}

    def make(comm):
        link = ParallelBatchNormalization(
            comm, size, input_layout=layouts[0], output_layout=layouts[1], **kept
        )
        statistics[comm.rank] = link
        return link

    with renga.using_config("dtype", np.float64):
        whole = L.BatchNormalization(size, **kept)
        x = array(3, *shape)
        params = ["beta", "gamma"] if use_gamma else ["beta"]
        check(ranks, shared_memory, whole, make, x, layouts, params)
        # The serial one has run once more, to know the shape of its output.
        fresh = L.BatchNormalization(size, **kept)
        fresh(x)
    for name in ("avg_mean", "avg_var"):
        parts = [getattr(statistics[rank], name) for rank in range(ranks)]
        np.testing.assert_allclose(np.concatenate(parts), getattr(fresh, name))


@pytest.mark.parametrize("layout", ["replicated", "channel"])
def test_embed_id(ranks, layout):
    W, words = array(1, 6, 5), np.array([[3, 0], [-1, 3], [5, 5]], "i4")
    weight = array(2, 3, 2, 5)

    def run(link, weight):
        y = link(words)
        F.sum(weight * F.square(y)).backward()
        return y.array

    serial = L.EmbedID(6, 5, W, -1)
    serial.cleargrads()
    expected = run(serial, weight)

    def on_rank(comm):
        link = ParallelEmbedID(comm, 6, 5, W, -1, output_layout=layout)
        link.cleargrads()
        y = run(link, own_shard(comm, layout, weight, 2))
        return y, link.W.whole(link.W.grad)

    results = ranks(on_rank)
    ys = [y for y, _ in results]
    if layout == "channel":
        ys = [np.concatenate(ys, 2)]
    for y in ys:
        np.testing.assert_allclose(y, expected, rtol=1e-6)
    for _, gW in results:
        np.testing.assert_allclose(gW, serial.W.grad, rtol=1e-6, atol=1e-6)


def test_initial_weights_are_those_of_the_serial_link(ranks):
    def drawn(link, *args, **kept):
        return link(*args, initialW=HeNormal(rng=np.random.RandomState(7)), **kept)

    serials = [
        drawn(L.Convolution2D, 5, 7, 3),
        drawn(L.Deconvolution2D, 6, 4, 2, groups=2),
        drawn(L.Linear, 9, 5),
    ]

    def on_rank(comm):
        links = [
            drawn(ParallelConvolution2D, comm, 5, 7, 3),
            drawn(ParallelDeconvolution2D, comm, 6, 4, 2, groups=2),
            drawn(ParallelLinear, comm, 9, 5),
        ]
        return [(link.W.whole(), link.W.size) for link in links]

    results = ranks(on_rank)
    for i, serial in enumerate(serials):
        for result in results:
            np.testing.assert_array_equal(result[i][0], serial.W.array)
        assert sum(result[i][1] for result in results) == serial.W.size


def test_errors_name_the_link_the_rank_the_shard_and_the_whole(ranks):
    x = array(1, 2, 4, 5, 5).astype("f4")

    def on_rank(comm):
        whole = ParallelConvolution2D(comm, 5, 3, 3)
        whole.name = "conv"
        shard = ParallelConvolution2D(comm, 5, 3, 3, input_layout="channel")
        place = f"rank {comm.rank} of {comm.size}"
        with pytest.raises(InvalidType, match=f"Convolution2D conv.*all 5.*{place}"):
            whole(x)
        own = shard_range(5, comm.size, comm.rank)
        span = f"{own.start} to {own.stop - 1} of 5"
        wrong = x[:, : 0 if len(own) == 4 else 4]
        with pytest.raises(InvalidType, match=f"channels {span}.*{place}"):
            shard(wrong)
        with pytest.raises(ValueError, match="replicated, channel or batch, got"):
            ParallelLinear(comm, 3, 3, input_layout="rows")
        with pytest.raises(ValueError, match="expected algorithm to be one of"):
            ParallelLinear(comm, 3, 3, algorithm="stationary-z")
        with pytest.raises(ValueError, match="divisible by the number of groups"):
            ParallelConvolution2D(comm, 5, 4, 3, groups=2)
        return True

    assert all(ranks(on_rank))


@pytest.mark.parametrize("algorithm", ["weight-gathered", "weight-replicated"])
def test_gradients_have_the_memory_order_of_their_weights(algorithm):
    x = array(1, 4, 4, 5, 5).astype("f4")

    def on_rank(comm):
        layouts = dict(input_layout="batch", output_layout="batch")
        link = ParallelConvolution2D(comm, 4, 6, 3, algorithm=algorithm, **layouts)
        link.cleargrads()
        F.sum(link(own_shard(comm, "batch", x))).backward()
        return link.W.grad.strides == link.W.array.strides

    assert all(local.run(on_rank, ranks=2))


def test_a_request_may_name_one_of_several_grids():
    assert [g.name for g in requested_grids("2-D", 12)] == [
        "2-D 2x6",
        "2-D 3x4",
        "2-D 4x3",
        "2-D 6x2",
    ]
    (grid,) = requested_grids("2-D 3x4", 12)
    assert (grid.input_blocks, grid.output_blocks) == (3, 4)
    link = ParallelLinear(simulated.connect(12), 24, 36, algorithm="2-D 3x4")
    assert link.W.shape == (36 // 4, 24 // 3)
    with pytest.raises(ValueError, match="expected algorithm .* got '2-D 5x2'"):
        ParallelLinear(simulated.connect(12), 24, 36, algorithm="2-D 5x2")


@pytest.mark.parametrize("prepare", ["namedparams", "cleargrads", "zerograds"])
@pytest.mark.filterwarnings("ignore:zerograd")
def test_first_gradients_are_those_of_the_serial_link(prepare):
    found = []
    for link in (L.Linear(None, 4), ParallelLinear(simulated.connect(2), None, 4)):
        getattr(link, prepare)()
        link(np.ones((2, 6), "f"))
        found.append(None if link.W.grad is None else set(np.unique(link.W.grad)))
    expected = {"cleargrads": None, "zerograds": {0.0}}.get(prepare)
    if prepare == "namedparams":
        assert all(len(own) == 1 and np.isnan([*own]).all() for own in found)
    else:
        assert found == [expected, expected]
