# ruff: noqa: E501
"""What scripts for Chainer do beside calling functions: keep contexts, draw by a seed, share gradients."""

import chainer
import chainer.functions as F
import chainer.link_hooks
import chainer.links as L
import numpy as np
from chainer import distributions as D
from chainer.utils import WalkerAlias

EXPRESSIONS = """
L.BinaryHierarchicalSoftmax.create_huffman_tree({i: 1 for i in range(7)})
L.BinaryHierarchicalSoftmax.create_huffman_tree(dict(enumerate([2, 1, 1, 4, 2, 2, 8, 4, 1])))
L.BinaryHierarchicalSoftmax.create_huffman_tree({9: 3, 2: 3, 5: 1, 7: 2})
vars(WalkerAlias([1, 2, 3.]))["threshold"]
vars(WalkerAlias([1, 2, 3., 0, 5, 5]))["threshold"]
WalkerAlias([1, 2, 3.]).sample(40)
WalkerAlias([3, 0, 1, 1, 8, 2, 5, 5]).sample((5, 8))
WalkerAlias(np.arange(30) ** .75).sample((40, 3))
WalkerAlias(np.ones(9)).sample(40)
WalkerAlias([2]).sample(3)
L.NegativeSampling(4, [5, 1, 0, 7, 7, 2], 3)(ones(3, 4), np.array([0, 3, 1], 'i')).shape
D.Beta(ones(2), ones(2)).sample(3).requires_grad
D.Dirichlet(ones(2)).sample(3).requires_grad
D.Gamma(k=ones(2), theta=ones(2)).sample(3).requires_grad
D.Chisquare(ones(2)).sample(3).requires_grad
D.Bernoulli(p=ones(2) / 2).sample(3).requires_grad
D.Categorical(p=ones(2) / 2).sample(3).requires_grad
D.OneHotCategorical(ones(2) / 2).sample(3).requires_grad
D.Poisson(ones(2)).sample(3).requires_grad
D.Geometric(ones(2) / 2).sample(3).requires_grad
normalized(L.Linear(4, 3))
normalized(L.Convolution2D(4, 3, 1))
normalized(L.Linear(3))
"""


def ones(*shape):
    return np.ones(shape, "f")


def normalized(link):
    """Gradients of gamma that nobody has cleared, and of the weight, whose are NaN."""
    link.add_hook(chainer.link_hooks.SpectralNormalization(use_gamma=True))
    x = ones(2, 4, 1, 1) if isinstance(link, L.Convolution2D) else ones(2, 4)
    F.sum(link(x)).backward()
    return link.gamma, link.gamma.grad, link.W.grad


def case_score_of_a_sample():
    distribution = D.Beta(ones(2) * 2, ones(2) * 3)
    sample = distribution.sample()
    (score,) = chainer.grad([distribution.log_prob(sample)], [sample])
    return np.abs(score.array - 1 / sample.array + 2 / (1 - sample.array)) < 1e-2


def case_gradients_of_a_worker():
    """A link without shapes stays so until a worker has gradients."""
    shared, worker = L.Linear(2), L.Linear(3, 2)
    worker.cleargrads()
    shared.addgrads(worker)
    before = shared.W.is_initialized
    F.sum(worker(ones(1, 3))).backward()
    shared.cleargrads()
    shared.addgrads(worker)
    return before, shared.W.grad, shared.b.grad


def case_contexts_that_are_kept():
    evaluation = chainer.using_config("train", False), chainer.no_backprop_mode()
    found = []
    for _ in range(2):
        with evaluation[0], evaluation[1]:
            found.append((chainer.config.train, chainer.config.enable_backprop))
        found.append((chainer.config.train, chainer.config.enable_backprop))
    debug = chainer.DebugMode(True)
    for _ in range(2):
        with debug:
            found.append(chainer.is_debug())
    return found, chainer.is_debug()


def case_contexts_that_nobody_keeps():
    chainer.using_config("train", False).__enter__()
    chainer.no_backprop_mode().__enter__()
    found = chainer.config.train, chainer.config.enable_backprop
    chainer.config.train = chainer.config.enable_backprop = True
    return found
