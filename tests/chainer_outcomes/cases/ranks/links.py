"""Links that are spread over ranks."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
from chainermn.links import MultiNodeBatchNormalization as BN

LINES = """
normalized(comm, BN(2, comm))
normalized(comm, BN(2, comm, decay=.5))
normalized(comm, BN(2, comm, eps=.1))
normalized(comm, BN(2, comm, use_gamma=False))
normalized(comm, BN(2, comm, use_beta=False))
normalized(comm, BN(2, comm, dtype='d'), dtype='d')
normalized(comm, BN((2, 3), comm), shape=(4, 2, 3))
normalized(comm, BN(2, comm), shape=(2, 2, 3, 3))
normalized(comm, BN(2, comm), times=3)
normalized(comm, BN(2, comm), finetune=True, times=2)
normalized(comm, BN(2, comm, initial_gamma=2., initial_beta=1.))
normalized(comm, BN(2, comm, communication_backend='mpi'))
normalized(comm, BN(2, comm), train=False)
normalized(comm, chainermn.links.create_mnbn_model(L.BatchNormalization(2), comm))
BN(2, comm, communication_backend='unknown')
BN(2, comm, communication_backend='nccl')
BN(2, comm)(np.ones((2, 3), 'f'))
stepped(comm, L.NStepRNNTanh(1, 2, 3, 0.))
stepped(comm, L.NStepRNNReLU(2, 2, 3, 0.))
stepped(comm, L.NStepGRU(1, 2, 3, 0.))
stepped(comm, L.NStepLSTM(2, 2, 3, 0.))
stepped(comm, L.NStepBiRNNTanh(1, 2, 3, 0.))
stepped(comm, L.NStepBiLSTM(1, 2, 3, 0.))
stepped(comm, L.Linear(2, 3))
stepped(comm, L.LSTM(2, 3))
"""

EXPRESSIONS = LINES


def names(comm):
    """What the expressions see."""
    known = {"BN": BN, "L": L, "np": np, "chainermn": chainermn}
    return {**known, "normalized": normalized, "stepped": stepped}


def numbers(shape, start=0, dtype="f"):
    n = int(np.prod(shape))
    return (np.sin(np.arange(n) + start) * 1.5).reshape(shape).astype(dtype)


def normalized(
    comm, link, shape=(3, 2), dtype="f", times=1, train=True, finetune=False
):
    """Outputs, the running mean and gradients; other samples on every rank.

    ChainerMN corrects the running variance for the number of a rank's own samples.
    """
    x = chainer.Variable(numbers(shape, 10 * comm.rank, dtype))
    link.avg_var[...] = 1  # ChainerMN begins with 0
    if finetune:
        link.start_finetuning()
    with chainer.using_config("train", train):
        for _ in range(times):
            y = link(x, finetune=True) if finetune else link(x)
    link.cleargrads()
    F.sum(y * numbers(shape, 5, dtype)).backward()
    comm.multi_node_mean_grad(link)  # ChainerMN's gradient of gamma is one already
    grads = sorted((name, p.grad) for name, p in link.namedparams())
    return y.array, x.grad, grads, link.avg_mean, link.N


def stepped(comm, rnn):
    """A sequence whose parts are on the ranks, and its gradients."""
    for i, (_, param) in enumerate(sorted(rnn.namedparams())):
        param.array[...] = numbers(param.shape, i)
    before = comm.rank - 1 if comm.rank > 0 else None
    after = comm.rank + 1 if comm.rank + 1 < comm.size else None
    link = chainermn.links.create_multi_node_n_step_rnn(
        rnn, comm, rank_in=before, rank_out=after
    )
    xs = [chainer.Variable(numbers((n, 2), n + comm.rank)) for n in (3, 1)]
    found = link(xs)
    states, ys, delegate = found[:-2], found[-2], found[-1]
    loss = sum(F.sum(y * y) for y in ys) + sum(F.sum(state) for state in states)
    if delegate is not None:
        (loss,) = chainermn.functions.pseudo_connect(delegate, loss)
    link.cleargrads()
    loss.backward()
    grads = [p.grad for _, p in sorted(link.namedparams())]
    names = [name for name, _ in sorted(link.namedparams())]
    return (
        *([s.array for s in states], [y.array for y in ys], delegate is None),
        *([x.grad for x in xs], names, [g.sum() for g in grads]),
    )


class Part(chainer.Chain):
    def __init__(self, n_in, n_out, start):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(n_in, n_out, initialW=numbers((n_out, n_in), start))

    def __call__(self, *xs):
        return F.tanh(self.l(sum(xs)))


def trained(comm, model, *inputs, by_output=True):
    """Output and gradients of a model of which every rank has parts."""
    model.cleargrads()
    y = model(*inputs)
    loss = F.sum(y * y) if by_output else y
    loss.backward()
    grads = [(name, p.grad) for name, p in sorted(model.namedparams())]
    return y.array, grads


def x():
    return chainer.Variable(numbers((2, 3)))


def case_chain_from_first_to_last(comm):
    model = chainermn.MultiNodeChainList(comm)
    before = comm.rank - 1 if comm.rank > 0 else None
    after = comm.rank + 1 if comm.rank + 1 < comm.size else None
    model.add_link(Part(3, 3, comm.rank), rank_in=before, rank_out=after)
    inputs = [x()] if comm.rank == 0 else []
    return trained(comm, model, *inputs, by_output=comm.rank == comm.size - 1)


def case_chain_that_comes_back(comm):
    """Rank 0 has the first and the last part."""
    model, last = chainermn.MultiNodeChainList(comm), comm.size - 1
    if comm.rank == 0:
        model.add_link(Part(3, 2, 0), rank_out=last)
        model.add_link(Part(2, 1, 1), rank_in=last)
        return trained(comm, model, x())
    if comm.rank == last:
        model.add_link(Part(2, 2, 2), rank_in=0, rank_out=0)
        return trained(comm, model, by_output=False)
    return None


def case_chain_with_a_branch(comm):
    """Rank 0 sends to all others, the last of which adds what they send."""
    model, last = chainermn.MultiNodeChainList(comm), comm.size - 1
    others = list(range(1, comm.size))
    if comm.rank == 0:
        model.add_link(Part(3, 2, 0), rank_out=others)
        return trained(comm, model, x(), by_output=False)
    if comm.rank < last:
        model.add_link(Part(2, 2, comm.rank), rank_in=0, rank_out=last)
        return trained(comm, model, by_output=False)
    model.add_link(Part(2, 1, 7), rank_in=[0, *others[:-1]] if others[:-1] else 0)
    return trained(comm, model)


def case_chain_of_several_on_one_rank(comm):
    """Two parts of one rank, of which the first sends nothing."""
    model = chainermn.MultiNodeChainList(comm)
    model.add_link(Part(3, 2, comm.rank))
    return trained(comm, model, x())


def case_two_messages_of_a_pair(comm):
    """Both ranks have two parts, between which three messages go."""
    model, last = chainermn.MultiNodeChainList(comm), comm.size - 1
    if comm.rank == 0:
        model.add_link(Part(3, 2, 0), rank_out=last)
        model.add_link(Part(4, 3, 1), rank_in=last, rank_out=last)
        return trained(comm, model, x(), by_output=False)
    if comm.rank == last:
        model.add_link(Part(2, 4, 2), rank_in=0, rank_out=0)
        model.add_link(Part(3, 1, 3), rank_in=0)
        return trained(comm, model)
    return None


def case_chain_without_parts(comm):
    return chainermn.MultiNodeChainList(comm)(x())


def case_output_that_is_not_used(comm):
    model = chainermn.MultiNodeChainList(comm)
    model.add_link(Part(3, 2, 0))
    model.add_link(Part(3, 2, 1))
    return model(x()).array


def case_names_of_parts(comm):
    model = chainermn.MultiNodeChainList(comm)
    model.add_link(Part(3, 2, 0), rank_out=0)
    model.add_link(L.Linear(2, 2), rank_in=0)
    return sorted(name for name, _ in model.namedparams()), len(model), model.rank


def case_normalization_becomes_multi_node(comm):
    chain = chainer.Sequential(
        L.Linear(2, 2),
        L.BatchNormalization(2),
        chainer.Sequential(L.BatchNormalization(2)),
    )
    found = chainermn.links.create_mnbn_model(chain, comm)
    kinds = [type(link).__name__ for link in found.links(skipself=True)]
    return (
        kinds,
        found is chain,
        [type(link).__name__ for link in chain.links(skipself=True)],
    )


def case_normalization_keeps_parameters(comm):
    link = L.BatchNormalization(2, decay=0.8, eps=0.01, initial_gamma=3.0)
    link.avg_mean[...] = 4
    found = chainermn.links.create_mnbn_model(link, comm)
    return found.decay, found.eps, found.gamma.array, found.avg_mean


def case_copy_of_a_normalization(comm):
    found = BN(2, comm).copy()
    return type(found).__name__, found.comm is not None


def case_first_statistics(comm):
    link = BN(2, comm)
    return link.avg_mean, link.avg_var, link.N


def case_serialized_normalization(comm):
    link = BN(2, comm)
    link(numbers((3, 2), comm.rank))
    saved = chainer.serializers.DictionarySerializer()
    saved.save(link)
    return sorted((name, array.shape) for name, array in saved.target.items())
