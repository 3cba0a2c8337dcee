"""Operations of the core that no public function calls directly."""

import numpy as np

from ..draw import Draw
from ..table import call, case
from . import normalization, oracles

case("ops.dropout", lambda g: call(g.x(*g.shape()), g.uniform(0, 0.9), g.integer(0, 2**40)), smooth=False, layouts=False)
case("ops.gaussian", lambda g: (lambda s: call(g.x(*s), g.x(*s), g.integer(0, 2**40)))(g.shape()))


def alone(own):
    """What a rank that is alone gathers."""
    return own[None]


def multi_node(g: Draw):
    x, gamma, beta, _, more = normalization.batch(g)
    return call(x, gamma, beta, (alone, g.chance(0.5), None), **more)


def multi_node_of(x, gamma, beta, ranks, axis=None):
    return oracles.normalized(x, gamma, beta, normalization.default(x, axis))


case("ops.multi_node_batch_normalization", multi_node, multi_node_of, within=20)
case(
    "ops.batch_normalization", normalization.normalization, normalization.normalized, within=20
)


def labelled(g: Draw):
    """Scores, labels (-1 is ignored) and at times the weights of the classes."""
    shape, c = g.shape(1, 3), g.extent(1)
    x = g.x(shape[0], c, *shape[1:])
    return x, g.index(c, *shape, low=-1), g.pick(None, g.positive(c, role="constant"))


def core_loss(g: Draw):
    x, t, weight = labelled(g)
    return call(x, t, g.chance(0.5), weight)


def cross_entropy(x, t, normalize, weight):
    losses = oracles.negative_log_softmax(x, t, weight, -1)
    count = (t.astype(int) != -1).sum() if normalize else len(t)
    return losses.sum() / max(count, 1)


case("ops.softmax_cross_entropy", core_loss, cross_entropy, within=2)
case("ops.softmax_nll", lambda g: call(*labelled(g)), lambda x, t, w: oracles.negative_log_softmax(x, t, w, -1))
case("ops.sum", lambda g: call(g.x(*g.shape(0, 6))), np.sum)
