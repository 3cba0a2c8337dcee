"""Attention with sharded heads, sharded vocabularies, and models of both."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks, optimizers, serializers
from renga.communicators import simulated
from renga.distributed.functions import softmax_cross_entropy
from renga.distributed.links import (
    ParallelMultiHeadAttention,
    ParallelVocabEmbedID,
)
from renga.links.parallel.channel.linear import ParallelLinear
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array, in_float64
from tests.seeds import seeded

VOCABULARY, CONTEXT, BATCH = 11, 6, 2


@functools.cache
def gpt():
    with seeded(), renga.using_config("dtype", np.float64):
        return L.GPT2(VOCABULARY, CONTEXT, 12, 2, 3, dropout=0.0)


@functools.cache
def vision_transformer():
    with seeded(), renga.using_config("dtype", np.float64):
        return L.VisionTransformer(6, 3, 1, 2, 8, 10, num_classes=VOCABULARY)


def texts(count=3):
    random = np.random.RandomState(1)
    for _ in range(count):
        x, t = random.randint(0, VOCABULARY, (2, BATCH, CONTEXT)).astype("i4")
        t[0, 0] = -1
        yield x, t.ravel()


def images(count=3):
    random = np.random.RandomState(2)
    for _ in range(count):
        yield (
            random.normal(size=(BATCH, 3, 6, 6)),
            random.randint(0, VOCABULARY, BATCH).astype("i4"),
        )


def train(model, batches, loss_of=F.softmax_cross_entropy):
    optimizer = optimizers.Adam(0.01).setup(model)
    optimizer.add_hook(optimizer_hooks.GradientClipping(0.5))
    losses = []
    for x, t in batches:
        scores = model(x)
        loss = loss_of(F.reshape(scores, (-1, scores.shape[-1])), t)
        losses.append(float(loss.array))
        model.cleargrads()
        loss.backward()
        optimizer.update()
    state = {}
    serializers.DictionarySerializer(state).save(model)
    return losses, state


MODELS = {"GPT-2": (gpt, texts), "vision transformer": (vision_transformer, images)}


@functools.cache
def trained_alone(name):
    make, batches = MODELS[name]
    with renga.using_config("dtype", np.float64):
        return train(make().copy("copy"), batches())


def assert_trained(found, name):
    (losses, state), (expected, wanted) = found, trained_alone(name)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert state.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(state[key], value, 1e-7, 1e-10, err_msg=key)


@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
@pytest.mark.parametrize("name", MODELS)
def test_three_steps(some_ranks, name, has_example):
    make, batches = MODELS[name]
    example = [next(batches())[0]] if has_example else []

    @in_float64
    def on_rank(comm):
        model = parallelize(make(), comm, "channel", *example)
        return train(model, batches())

    for found in some_ranks(on_rank):
        assert_trained(found, name)


def test_three_steps_with_sharded_scores(some_ranks):
    @in_float64
    def on_rank(comm):
        x = next(texts())[0]
        model = parallelize(gpt(), comm, "channel", x, output="sharded")
        loss_of = functools.partial(softmax_cross_entropy, comm)
        return train(model, texts(), loss_of), model(x).shape[-1]

    results = some_ranks(on_rank)
    for found, _ in results:
        assert_trained(found, "GPT-2")
    assert sum(size for _, size in results) == VOCABULARY


class Returned(renga.Chain):
    """A function of a linear layer's output."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.linear = L.Linear(4, 6, initialW=array(1, 6, 4).astype("f4"))

    def forward(self, x):
        return self.function(self.linear(x, n_batch_axes=x.ndim - 1))


@pytest.mark.parametrize("shape", [(8, 4), (2, 3, 4)])
def test_other_outputs_that_stay_sharded(some_ranks, shape):
    x = array(2, *shape).astype("f4")
    expected = Returned(F.tanh)(x).array

    def on_rank(comm):
        model = Returned(F.tanh)
        return parallelize(model, comm, "channel", x, output="sharded")(x).array

    y = np.concatenate(some_ranks(on_rank), -1)
    np.testing.assert_allclose(y, expected, 1e-5, 1e-6)


def test_outputs_that_cannot_stay_sharded(some_ranks):
    x = array(2, 8, 4).astype("f4")

    def on_rank(comm):
        for function, message in (
            (F.softmax, "got .* of Softmax"),
            (lambda y: F.sum(y, 1), "got .* of Sum"),
        ):
            with pytest.raises(ValueError, match=message):
                parallelize(Returned(function), comm, "channel", x, output="sharded")
        with pytest.raises(ValueError, match="expected an example of the input"):
            parallelize(Returned(F.tanh), comm, "channel", output="sharded")
        return True

    assert all(some_ranks(on_rank))


def test_layouts(capsys):
    def on_rank(comm):
        model = parallelize(gpt(), comm, "channel", next(texts())[0])
        block = model.blocks[0]
        assert isinstance(block.attention, ParallelMultiHeadAttention)
        assert isinstance(model.tokens, ParallelVocabEmbedID)
        assert isinstance(block.up, ParallelLinear)
        assert isinstance(block.down, ParallelLinear)
        assert (block.up.input_layout, block.up.output_layout) == (
            "replicated",
            "channel",
        )
        assert (block.up.algorithm, block.down.algorithm) == (
            "column-parallel",
            "row-parallel",
        )
        assert (block.down.input_layout, block.down.output_layout) == (
            "channel",
            "replicated",
        )
        return block.attention.in_proj.W.shape, model.tokens.W.shape

    with renga.using_config("dtype", np.float64):
        results = simulated.run(on_rank, 2, simulated.Machine(2)).results
    assert results == [((24, 12), (6, 12)), ((12, 12), (5, 12))]
    text = capsys.readouterr().out
    assert "/blocks/0/attention  ParallelMultiHeadAttention, heads" in text


def test_generation_by_caches(some_ranks):
    prompt = np.array([[1, 2]], "i4")
    np.random.seed(5)
    with renga.using_config("dtype", np.float64):
        expected = gpt().generate(prompt, 3)

    @in_float64
    def on_rank(comm):
        model = parallelize(gpt(), comm, "channel", next(texts())[0])
        scores = model(prompt).array
        caches = [L.KeyValueCache() for _ in model.blocks]
        with renga.no_backprop_mode():
            steps = [model(prompt[:, i : i + 1], caches).array for i in range(2)]
        np.testing.assert_allclose(np.concatenate(steps, 1), scores, 1e-9, 1e-12)
        return scores

    with renga.using_config("dtype", np.float64):
        wanted = gpt()(prompt).array
    for scores in some_ranks(on_rank):
        np.testing.assert_allclose(scores, wanted, 1e-9, 1e-12)
    assert expected.shape == (1, 5)


MASK = np.random.RandomState(3).uniform(size=(1, 1, 5, 4)) < 0.7
ATTENTIONS = {  # arguments of the link, and of the call with a memory or without
    "self": ((8, 4), {}, {}),
    "causal, rotated": ((8, 2), {"rotary": True}, {"is_causal": True}),
    "without biases": ((6, 3), {"nobias": True}, {}),
    "cross, masked": ((8, 4), {}, {"memory": array(6, 2, 4, 8), "attn_mask": MASK}),
}


def second_order(model, x, weight, weight2):
    """Whole gradients of Σ weight y², and of Σ weight2 gx² of these."""
    x = renga.Variable(x)
    y = model(x)
    first = F.sum(weight * F.square(y))
    (gx,) = renga.grad([first], [x], enable_double_backprop=True)
    second = F.sum(weight2 * F.square(gx))
    found = {"y": y.array, "gx": gx.array}
    for order, loss in enumerate([first, second]):
        model.cleargrads()
        loss.backward()
        for path, param in model.namedparams():
            if param.grad is not None:  # one has no influence on gx
                is_sharded = hasattr(param, "whole")
                grad = param.whole(param.grad) if is_sharded else param.grad
                found[path, order] = grad
    return found | {"ggx": x.grad}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(some_ranks, name):
    sizes, options, call = ATTENTIONS[name]
    x = array(1, 2, 5, sizes[0])
    weights = array(2, *x.shape), array(3, *x.shape)

    class Model(renga.Chain):
        def forward(self, x):
            return self.attention(x, **call)

    with renga.using_config("dtype", np.float64):
        serial = Model(attention=L.MultiHeadAttention(*sizes, **options))
        for param in serial.params():
            param.array[...] = array(param.size, *param.shape) / 2
    expected = second_order(serial, x, *weights)

    @in_float64
    def on_rank(comm):
        link = ParallelMultiHeadAttention.from_link(serial.attention, comm)
        model = Model(attention=link)
        return second_order(model, x, *weights)

    for found in some_ranks(on_rank):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-9, 1e-11, err_msg=key)


def test_masks_of_each_head_are_those_of_the_ranks_heads(several_ranks):
    mask = np.ones((1, 12, 5, 5), bool)
    mask[0, :, 2:] = np.tri(12, 5, dtype=bool)[:, None]
    mask[..., 0] = True
    x = array(1, 2, 5, 24).astype("f")
    with seeded():
        serial = L.MultiHeadAttention(24, 12)
    expected = serial(x, attn_mask=mask).array

    def on_rank(comm):
        link = ParallelMultiHeadAttention.from_link(serial, comm)
        own = np.array_split(mask, comm.size, 1)[comm.rank]
        y = link(x, attn_mask=own).array
        heads = f"this rank's {own.shape[1]} of 12 heads, .* got \\(1, 12, 5, 5\\)"
        with pytest.raises(InvalidType, match=heads):
            link(x, attn_mask=mask)
        return y

    for y in several_ranks(on_rank):
        np.testing.assert_allclose(y, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("layout", ["channel", "batch"])
@pytest.mark.parametrize("normalize", [True, False])
def test_loss_of_sharded_scores(ranks, layout, normalize):
    axis = {"channel": 1, "batch": 0}[layout]
    x, weight = array(1, 7, 9), array(2, 7, 9)
    t = np.array([3, 0, -1, 8, 5, 5, 2])

    def differentiated(loss_of, x, weight):
        x = renga.Variable(x)
        loss = loss_of(x)
        (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
        F.sum(weight * F.square(gx)).backward()
        again = renga.Variable(x.array)
        loss_of(again).backward()  # without gradients of higher order
        return loss.array, gx.array, again.grad, x.grad

    expected = differentiated(
        lambda x: F.softmax_cross_entropy(x, t, normalize), x, weight
    )

    def on_rank(comm):
        own, own_weight = (
            np.array_split(a, comm.size, axis)[comm.rank] for a in (x, weight)
        )
        labels = t if axis else np.array_split(t, comm.size)[comm.rank]
        return differentiated(
            lambda x: softmax_cross_entropy(comm, x, labels, layout, normalize),
            own,
            own_weight,
        )

    results = ranks(on_rank)
    for loss, *_ in results:
        np.testing.assert_allclose(loss, expected[0], rtol=1e-12)
    for i in (1, 2, 3):
        whole = np.concatenate([found[i] for found in results], axis)
        np.testing.assert_allclose(whole, expected[i], 1e-9, 1e-13)


def test_loss_of_large_scores(some_ranks):
    x, t = array(1, 4, 8).astype("f4") * 1e4, np.array([0, 3, 5, 7])
    expected = F.softmax_cross_entropy(x, t).array

    def on_rank(comm):
        own = np.array_split(x, comm.size, 1)[comm.rank]
        return softmax_cross_entropy(comm, own, t).array

    for loss in some_ranks(on_rank):
        np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_vocabulary(ranks):
    W, words = array(1, 7, 5), np.array([[3, 0], [-1, 3], [6, 5]], "i4")
    weight, scores_weight = array(2, 3, 2, 5), array(3, 3, 2, 7)

    def run(link):
        link.cleargrads()
        y = link(words)
        scores = link.attend(y)
        loss = F.sum(weight * F.square(y)) + F.sum(scores_weight * F.square(scores))
        loss.backward()
        return y.array, scores.array

    with renga.using_config("dtype", np.float64):
        serial = L.EmbedID(7, 5, W, -1)
        expected = run(serial)

    @in_float64
    def on_rank(comm):
        link = ParallelVocabEmbedID(comm, 7, 5, W, -1)
        return (*run(link), link.W.whole(link.W.grad))

    for found in ranks(on_rank):
        for own, wanted in zip(found, (*expected, serial.W.grad)):
            np.testing.assert_allclose(own, wanted, 1e-10, 1e-12)


class Tied(renga.Chain):
    """Uses the weight of a link by a function."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(5, 4, array(1, 5, 4).astype("f4"))

    def forward(self, x):
        return F.linear(F.tanh(self.embed(x)), self.embed.W, n_batch_axes=2)


def test_links_whose_parameters_others_use_are_kept(capsys, some_ranks):
    model, x = Tied(), np.array([[1, 4], [0, 2]], "i4")
    expected = model(x).array

    def on_rank(comm):
        return parallelize(model, comm, "channel", x)(x).array

    for y in some_ranks(on_rank):
        np.testing.assert_array_equal(y, expected)


def test_errors(some_ranks):
    def on_rank(comm):
        link = ParallelVocabEmbedID(comm, 5, 3)
        with pytest.raises(ValueError, match="integers from 0 to 4, got 5"):
            link(np.array([1, 5]))
        with pytest.raises(ValueError, match="attend_layout to be replicated or chan"):
            ParallelVocabEmbedID(comm, 5, 3, attend_layout="batch")
        x = np.zeros((3, 4), "f4")
        with pytest.raises(InvalidType, match=r"x of shape \(M, C\) and integers"):
            softmax_cross_entropy(comm, x, np.zeros((2,), "i4"))
        with pytest.raises(ValueError, match="layout to be channel or batch, got 'row"):
            softmax_cross_entropy(comm, x, np.zeros((3,), "i4"), "rows")
        label = 4 * comm.size
        with pytest.raises(ValueError, match=f"from 0 to {label - 1}, got {label}"):
            softmax_cross_entropy(comm, x, np.array([0, 1, label]))
        with pytest.raises(ValueError, match="expected output to be replicated for s"):
            parallelize(gpt(), comm, "spatial", output="sharded")
        return True

    assert all(some_ranks(on_rank))
