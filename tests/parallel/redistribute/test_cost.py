"""What strategies say that links send in a step, against what ranks send."""

import copy

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.channel.strategy import ChannelReplacer
from renga.parallel.sequence.strategy import SequenceReplacer
from renga.parallel.spatial.strategy import SpatialReplacer

HEADER = 160  # bytes of the message before each array that is sent


class Images(renga.Chain):
    """A link of each kind, two of which are called twice."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.wide = L.Convolution2D(4, 8, 3, pad=1)
            self.again = L.Convolution2D(8, 8, 3, pad=1)
            self.norm = L.BatchNormalization(8)
            self.large = L.Deconvolution2D(8, 4, 4, 2, 1)
            self.last = L.Linear(4 * 16 * 16, 12)

    def forward(self, x):
        h = self.wide(x)
        for _ in range(2):
            h = F.relu(self.norm(self.again(h)))
        return self.last(self.large(h))


class Text(renga.Chain):
    """An embedding that gives the scores, too, and blocks of an attention each."""

    def __init__(self, vocabulary=0):
        super().__init__()
        with self.init_scope():
            self.block = L.TransformerBlock(8, 4)
            if vocabulary:
                self.tokens = L.EmbedID(vocabulary, 8)

    def forward(self, x):
        if x.ndim == 3:
            return self.block(self.block(x))
        return self.tokens.attend(self.block(self.tokens(x)))


RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.normal(size=(8, 4, 8, 8)).astype("f")
VECTORS = RANDOM.normal(size=(2, 8, 8)).astype("f")
WORDS = RANDOM.randint(0, 12, (2, 8)).astype("i")


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    ("replacer", "make", "x"),
    [
        (ChannelReplacer, Images, IMAGES),
        (ChannelReplacer, Text, VECTORS),
        (ChannelReplacer, lambda: Text(12), WORDS),
        (SpatialReplacer, Images, IMAGES),
        (SequenceReplacer, Text, VECTORS),
        (SequenceReplacer, lambda: Text(12), WORDS),
    ],
    ids=["channel", "attention", "vocabulary", "spatial", "sequence", "tied"],
)
def test_a_step_sends_the_messages_and_bytes_that_are_predicted(
    replacer, make, x, size
):
    # A message takes a second, and its bytes no time.
    machine = simulated.Machine(size, node_latency=1.0, node_bandwidth=2.0**80)
    strategy, others = replacer.strategy, size - 1

    def act(comm):
        model = make()
        found = replacer(model, comm, (x,)).replacements()
        costs = [own.cost for own in found if own.replacement is not None]
        parallel = parallelize(model, comm, strategy, x)
        parallel(x)  # compared with the serial model
        before = copy.deepcopy(comm.traffic)
        y = parallel(renga.Variable(x, requires_grad=x.dtype.kind == "f"))
        y.grad = np.zeros_like(y.array)
        y.backward()
        after = comm.traffic
        arrays = after.calls["send"] - before.calls["send"]
        messages = after.messages - before.messages - arrays
        sent = after.bytes - before.bytes - HEADER * arrays
        if strategy == "sequence":  # tokens are counted, y and gx gathered
            name = "all_gather"
            messages -= others * (after.calls[name] - before.calls[name])
            sent -= after.bytes_by_call[name] - before.bytes_by_call[name]
        else:  # arguments are compared
            messages, sent = messages - others, sent - 8 * others
        if strategy != "channel":  # ranks tell whether they read in new places
            messages, sent = messages - 2 * others, sent - 2 * 8 * others // size
        if strategy == "spatial":  # gx is gathered
            messages, sent = messages - others, sent - x.nbytes * others / size
        assert sent == sum(cost.bytes for cost in costs)
        return messages, sum(cost.communication for cost in costs)

    messages, seconds = simulated.run(act, size, machine).results[0]
    assert messages == pytest.approx(seconds)
