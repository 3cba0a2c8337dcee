"""Training steps of recurrent networks: forward and backward, the same for each side.

Renga and Chainer run the same lines, which Python 3.8 must understand.
"""

import importlib

import numpy

# Sequences' lengths (from, to), how many, input and state size, layers.
SIZES = {
    "short": ((5, 30), 20, 128, 2),
    "long": ((50, 50), 64, 256, 2),
    "many": ((3, 12), 256, 64, 1),
}


def sequences(size):
    (low, high), n, units, _ = SIZES[size]
    rng = numpy.random.RandomState(0)
    lengths = rng.randint(low, high + 1, n)
    return [rng.normal(size=(length, units)).astype("f") for length in lengths]


def chainer_step(kind, size, package="chainer"):
    chainer = importlib.import_module(package)
    F, L = (importlib.import_module(f"{package}.{n}") for n in ("functions", "links"))
    *_, units, layers = SIZES[size]
    xs = sequences(size)
    if kind == "cell":
        return cell_step(F, L.LSTM(units, units), len(xs), units)
    name = {"lstm": "NStepLSTM", "gru": "NStepGRU", "rnn": "NStepRNNTanh"}[kind]
    link = getattr(L, name)(layers, units, units, 0.0)
    inputs = [chainer.Variable(x) for x in xs]
    nothing = [None] * (2 if kind == "lstm" else 1)

    def step():
        link.cleargrads()
        *_, ys = link(*nothing, inputs)
        loss = F.sum(F.square(F.concat(ys, axis=0)))
        loss.backward()
        return float(loss.array)

    return step


def cell_step(F, link, n, units):
    """A cell over 35 steps, each a function of its own."""
    xs = numpy.random.RandomState(0).normal(size=(35, n, units)).astype("f")

    def step():
        link.cleargrads()
        link.reset_state()
        loss = sum(F.sum(F.square(link(x))) for x in xs)
        loss.backward()
        return float(loss.array)

    return step


def renga_step(kind, size):
    return chainer_step(kind, size, "renga")


def torch_step(kind, size):
    import torch
    from torch.nn.utils.rnn import pack_sequence

    *_, units, layers = SIZES[size]
    xs = [torch.from_numpy(x) for x in sequences(size)]
    if kind == "cell":
        return torch_cell_step(torch, len(xs), units)
    net = getattr(torch.nn, kind.upper())(units, units, layers)

    def step():
        net.zero_grad()
        ys, _ = net(pack_sequence(xs, enforce_sorted=False))
        loss = ys.data.square().sum()
        loss.backward()
        return loss.item()

    return step


def torch_cell_step(torch, n, units):
    cell = torch.nn.LSTMCell(units, units)
    xs = numpy.random.RandomState(0).normal(size=(35, n, units)).astype("f")
    inputs = list(torch.from_numpy(xs))

    def step():
        cell.zero_grad()
        state, loss = None, 0
        for x in inputs:
            state = cell(x, state)
            loss = loss + state[0].square().sum()
        loss.backward()
        return loss.item()

    return step


SIDES = {"renga": renga_step, "torch": torch_step, "chainer": chainer_step}
