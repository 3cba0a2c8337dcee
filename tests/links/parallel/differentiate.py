"""Outputs, gradients and second-order gradients of a link, serial or parallel."""

import numpy as np

import renga
import renga.functions as F


def differentiate(link, x, weight, weight2):
    """Gradients of Σ weight y², and of Σ weight2 gx² + Σ gW² of these.

    With shards of x or y, the sums are over this rank's terms.
    """
    x = renga.Variable(x)
    y = link(x)
    params = [p for _, p in sorted(link.namedparams())]
    loss = F.sum(weight * F.square(y))
    link.cleargrads()
    firsts = renga.grad([loss], [x, *params], enable_double_backprop=True)
    loss = F.sum(weight2 * F.square(firsts[0]))
    for g in firsts[1:]:
        loss += F.sum(F.square(g))
    loss.backward()
    return {
        "y": y.array,
        "gx": firsts[0].array,
        "ggx": x.grad,
        **{f"g{p.name}": g.array for p, g in zip(params, firsts[1:])},
        **{f"gg{p.name}": p.grad for p in params},
    }


def array(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


def in_float64(function):
    """A function of a rank, with links and data of that dtype."""

    def on_rank(comm):
        with renga.using_config("dtype", np.float64):
            return function(comm)

    return on_rank
