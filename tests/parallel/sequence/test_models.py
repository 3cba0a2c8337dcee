"""Models of sharded sequences: the script and the results are the serial ones."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks, optimizers, serializers
from renga.communicators import simulated
from renga.distributed import Replicate, redistribute
from renga.distributed.functions import (
    gather_sequence,
    scatter_sequence,
    softmax_cross_entropy,
)
from renga.distributed.links import (
    SequenceEmbedID,
    SequenceLayerNormalization,
    SequenceLinear,
    SequenceMultiHeadAttention,
    SequenceRMSNormalization,
)
from renga.parallel.parallelize import parallelize
from renga.parallel.sequence.strategy import SequenceReplacer
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array, in_float64
from tests.seeds import seeded

VOCABULARY, CONTEXT, BATCH = 11, 9, 2


@functools.cache
def gpt():
    with seeded(), renga.using_config("dtype", np.float64):
        return L.GPT2(VOCABULARY, CONTEXT, 8, 2, 2, dropout=0.0)


def texts():
    random = np.random.RandomState(1)
    for length in (9, 7, 3):
        x, t = random.randint(0, VOCABULARY, (2, BATCH, length)).astype("i4")
        t[0, 1] = -1
        yield x, t


def as_rows(scores):
    return F.reshape(scores, (-1, scores.shape[-1]))


def classes_of(model):
    return {base for link in model.links() for base in type(link).__mro__}


def train(model, loss_of):
    optimizer = optimizers.Adam(0.01).setup(model)
    optimizer.add_hook(optimizer_hooks.GradientClipping(0.5))
    losses = []
    for x, t in texts():
        loss = loss_of(model, x, t)
        losses.append(float(loss.array))
        model.cleargrads()
        loss.backward()
        optimizer.update()
    state = {}
    serializers.DictionarySerializer(state).save(model)
    return losses, state


def loss_of(model, x, t):
    return F.softmax_cross_entropy(as_rows(model(x)), t.ravel())


def loss_of_shards(comm, model, x, t):
    own_x, own_t = scatter_sequence(comm, x), scatter_sequence(comm, t)
    return softmax_cross_entropy(comm, as_rows(model(own_x)), own_t.ravel(), "batch")


@pytest.mark.parametrize("input", ["replicated", "sharded"])
def test_three_steps(ranks, input):
    with renga.using_config("dtype", np.float64):
        expected, wanted = train(gpt().copy("copy"), loss_of)

    @in_float64
    def on_rank(comm):
        example = [next(texts())[0]] if input == "replicated" else []
        model = parallelize(gpt(), comm, "sequence", *example, input=input)
        kinds = {SequenceEmbedID, SequenceLayerNormalization, SequenceLinear}
        assert comm.size == 1 or kinds <= classes_of(model)
        shards = functools.partial(loss_of_shards, comm)
        return train(model, loss_of if input == "replicated" else shards)

    for losses, state in ranks(on_rank):
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
        assert state.keys() == wanted.keys()
        for key, value in wanted.items():
            np.testing.assert_allclose(state[key], value, 1e-7, 1e-10, err_msg=key)


@pytest.mark.parametrize("ranks", [1, 3])
def test_attention_costs_gradients_and_a_ring_of_keys_and_values(ranks):
    model, x = renga.Sequential(L.MultiHeadAttention(8, 2)), np.zeros((2, 12, 8), "f")
    (found,) = SequenceReplacer(model, simulated.connect(ranks), [x]).replacements()
    others = ranks - 1
    # Of a ring-all-reduce of four layers' gradients.
    received = 4 * 4 * (8 * 8 + 8) * 2 * others / ranks
    if others:  # blocks of both in each pass, and the sums of all blocks' gradients
        received += (others + others + ranks) * 2 * 4 * x.size / ranks
    assert found.cost.bytes == pytest.approx(received)


class Decoder(renga.Chain):
    """Self and cross attention, both normalizations, functions that keep tokens."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.MultiHeadAttention(8, 2, rotary=True)
            self.norm = L.RMSNormalization(8)
            self.cross = L.MultiHeadAttention(8, 4)
            self.layer_norm = L.LayerNormalization(8)
            self.last = L.Linear(8, 3)

    def forward(self, x, memory, attn_mask=None):
        h = self.norm(x + self.first(x, is_causal=True))
        h = h + self.cross(h, memory, attn_mask)
        h = F.softmax(F.tanh(self.layer_norm(h)), axis=2) * np.float64(3)
        h = self.last(h, n_batch_axes=2)
        return {"scores": h, "sums": F.sum(h * np.ones(3), axis=-1)}


def test_encoder_and_decoder(some_ranks):
    xs = [array(1, 2, 7, 8), array(2, 2, 5, 8)]
    mask = np.random.RandomState(0).uniform(size=(1, 1, 7, 5)) < 0.8
    weight = array(3, 2, 7, 3)

    def differentiated(model):
        variables = [renga.Variable(x) for x in xs]
        found = model(*variables, attn_mask=mask)
        loss = F.sum(weight * F.square(found["scores"]))
        loss += F.sum(weight[:, :, 0] * F.square(found["sums"]))
        model.cleargrads()
        loss.backward()
        grads = {path: param.grad for path, param in model.namedparams()}
        return [y.array for y in found.values()], [x.grad for x in variables], grads

    with renga.using_config("dtype", np.float64):
        serial = Decoder()
        for param in serial.params():
            param.array[...] = array(param.size, *param.shape) / 2
        ys, gxs, expected = differentiated(serial)

    @in_float64
    def on_rank(comm):
        model = parallelize(serial, comm, "sequence")
        kinds = {SequenceMultiHeadAttention, SequenceRMSNormalization}
        assert kinds <= classes_of(model)
        return differentiated(model)

    for found_ys, found_gxs, found in some_ranks(on_rank):
        for own, wanted in zip([*found_ys, *found_gxs], [*ys, *gxs]):
            np.testing.assert_allclose(own, wanted, 1e-9, 1e-11)
        for path, wanted in expected.items():
            np.testing.assert_allclose(found[path], wanted, 1e-9, 1e-11, err_msg=path)


class Function(renga.Chain):
    """A function of what a link returns."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.linear = L.Linear(4, 4)
            self.scale = renga.Parameter(array(1, 4).astype("f4"))

    def forward(self, x):
        return self.function(self, self.linear(x, n_batch_axes=2))


def summed(model, h):
    comm = model.linear.comm
    return h * redistribute(model.scale, comm, "replicated", Replicate(True))


def gathered(model, h):
    whole = gather_sequence(model.linear.comm, h)
    return F.reshape(F.mean(whole, 1), (-1, 4))


def log_softmax(h):
    return h - np.log(np.exp(h).sum(2, keepdims=True))


ALLOWED = {  # and what they compute of h and the parameter
    "pointwise": (lambda model, h: F.tanh(h) + h, lambda h, scale: np.tanh(h) + h),
    "an axis": (
        lambda model, h: F.log_softmax(h, axis=2),
        lambda h, scale: log_softmax(h),
    ),
    "heads": (
        lambda model, h: F.reshape(h, (*h.shape[:2], 2, 2)),
        lambda h, scale: h.reshape(2, 7, 2, 2),
    ),
    "a constant": (
        lambda model, h: h * np.arange(4, dtype="f4").reshape(1, 1, 4),
        lambda h, scale: h * np.arange(4),
    ),
    "a parameter": (lambda model, h: h * model.scale, lambda h, scale: h * scale),
    "summed": (summed, lambda h, scale: h * scale),
    "gathered": (gathered, lambda h, scale: h.mean(1)),
}
REFUSED = {
    "mean": lambda model, h: F.mean(h, 1),
    "first": lambda model, h: h[:, 0],
    "rows": lambda model, h: F.reshape(h, (-1, 4)),
    "order": lambda model, h: F.transpose(h, (1, 0, 2)),
    "softmax": lambda model, h: F.softmax(h, axis=1),
    "table": lambda model, h: h + np.ones((h.shape[1], 4), "f"),
    "function": lambda model, h: F.linear(h, np.ones((4, 4), "f"), n_batch_axes=2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_need_other_tokens_are_refused(some_ranks, name):
    x = array(2, 2, 8, 4).astype("f4")

    def on_rank(comm):
        model = parallelize(Function(REFUSED[name]), comm, "sequence", x)
        with pytest.raises(ValueError, match="gather_seq"):
            model(x)
        return True

    assert all(some_ranks(on_rank))


@pytest.mark.parametrize("name", ALLOWED)
def test_functions_that_keep_tokens(some_ranks, name):
    x = array(2, 2, 7, 4).astype("f4")
    function, formula = ALLOWED[name]

    def on_rank(comm):
        model = parallelize(Function(function), comm, "sequence")
        return model(x).array, x @ model.linear.W.array.T, model.scale.array

    for y, h, scale in some_ranks(on_rank):
        np.testing.assert_allclose(y, formula(h, scale), 1e-4, 1e-5)


class Embedded(renga.Chain):
    """Of integers that it computes, and of replicated ones."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(5, 4, array(3, 5, 4).astype("f4"))
            self.positions = renga.Parameter(array(1, 9, 4).astype("f4"))

    def forward(self, x, kinds=None):
        h = self.embed(x % 5) + F.position_embedding(self.positions, x + 1, 1)
        return h, self.embed(kinds)


def test_integers(some_ranks):
    x, kinds = np.arange(14).reshape(2, 7), np.array([[1, 4]])
    weight = array(2, 2, 7, 4).astype("f4")

    def differentiated(model):
        y, of_kinds = model(x, kinds=kinds)
        model.cleargrads()
        (F.sum(weight * y) + F.sum(of_kinds)).backward()
        return y.array, of_kinds.array, model.embed.W.grad, model.positions.grad

    serial = Embedded()
    expected = differentiated(serial)

    def on_rank(comm):
        return differentiated(parallelize(serial, comm, "sequence"))

    for found in some_ranks(on_rank):
        for own, wanted in zip(found, expected):
            np.testing.assert_allclose(own, wanted, 1e-5, 1e-6)


def test_random_zeros_of_tokens_differ(some_ranks):
    def on_rank(comm):
        model = parallelize(Function(lambda model, h: F.dropout(h)), comm, "sequence")
        model.linear.b.array[...] = 1
        model.linear.W.array[...] = 0
        return model(np.ones((1, 40, 4), "f4")).array != 0

    for kept in some_ranks(on_rank):
        assert 0.3 < kept.mean() < 0.7
        first, second = kept[0, ::2], kept[0, 1::2]
        assert 0.3 < np.mean(first == second) < 0.7


def test_errors(some_ranks):
    def on_rank(comm):
        model = parallelize(gpt(), comm, "sequence")
        with pytest.raises(InvalidType, match="L at most 9 less position 0, got 10"):
            model(np.zeros((1, 10), "i4"))
        with pytest.raises(ValueError, match="expected no cache"):
            model.generate(np.zeros((1, 2), "i4"), 1)
        with pytest.raises(ValueError, match="expected a serial model"):
            parallelize(model, comm, "sequence")
        link = SequenceMultiHeadAttention(comm, 4, 2)
        with pytest.raises(InvalidType, match="expected n_batch_axes of 2"):
            link.in_proj(np.zeros((2, 3, 4), "f4"))
        return True

    assert all(some_ranks(on_rank))
