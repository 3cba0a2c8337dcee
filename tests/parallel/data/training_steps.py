"""Three training steps of a small model, and the parameters expected after them."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer

STEPS, BATCH, WIDTH = 3, 12, 5
RANDOM = np.random.RandomState(5)
X = RANDOM.uniform(-1, 1, (STEPS, BATCH, WIDTH)).astype("float32")
T = RANDOM.randint(0, WIDTH, (STEPS, BATCH)).astype("int32")
UNEVEN = {1: [12], 2: [1, 11], 3: [5, 0, 7], 4: [0, 8, 1, 3]}


class Net(renga.Chain):
    """Four layers; each call names those it uses."""

    def __init__(self, seed=0):
        super().__init__()
        random = np.random.RandomState(seed)
        with self.init_scope():
            self.layers = renga.ChainList()
        for _ in range(4):
            array = random.uniform(-1, 1, (WIDTH, WIDTH)).astype("float32")
            self.layers.append(L.Linear(WIDTH, WIDTH, initialW=array))

    def forward(self, x, t, used=(0, 1, 2, 3)):
        for i in used:
            x = F.tanh(self.layers[i](x))
        return F.softmax_cross_entropy(x, t)


def make(comm=None, kind=renga.optimizers.MomentumSGD, **options):
    """A model and its optimizer, for the ranks of ``comm`` or a single process."""
    # Different initial parameters on each rank: rank 0's are broadcast.
    model = Net(seed=0 if comm is None else comm.rank)
    optimizer = kind(0.1).setup(model)
    if comm is not None:
        optimizer = create_multi_node_optimizer(optimizer, comm, **options)
    return model, optimizer


def parameters(model):
    return {name: param.array.copy() for name, param in model.namedparams()}


def check(results, expected, atol=2e-6):
    for params in results:
        for name in expected:
            np.testing.assert_allclose(params[name], expected[name], rtol=0, atol=atol)
            np.testing.assert_array_equal(params[name], results[0][name])


def own_samples(comm, batch, counts=None):
    """This rank's samples of a global batch; of uneven numbers if given."""
    if counts is None:
        return batch[comm.rank :: comm.size]
    stop = np.cumsum(counts[comm.size])[comm.rank]
    return batch[stop - counts[comm.size][comm.rank] : stop]


def train(comm, model, optimizer, steps=range(STEPS), external=False):
    """The parameters after steps on uneven numbers of samples."""
    for step in np.arange(STEPS)[steps]:
        train_only(comm, model, optimizer, step, external)
    return parameters(model)


def train_only(comm, model, optimizer, step, external=False):
    """One step, after which nothing has read the parameters."""
    x, t = own_samples(comm, X[step], UNEVEN), own_samples(comm, T[step], UNEVEN)
    update(model, optimizer, x, t, external)


def update(model, optimizer, x, t, external):
    """One step; ``external``: the caller computes the gradients."""
    if external:
        model.cleargrads()
        model(x, t).backward()
        optimizer.update()
    else:
        optimizer.update(model, x, t)


class Barrier(renga.FunctionNode):
    """A barrier in the backward pass."""

    def __init__(self, comm):
        self.comm = comm

    def forward(self, inputs):
        return inputs

    def backward(self, indexes, gys):
        self.comm.barrier()
        return gys
