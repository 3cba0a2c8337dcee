"""Optimizers, evaluators, aggregation, early stopping."""

import sys

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
from chainer import optimizers, training

# Chainer itself, not renga under its name.
IS_CHAINER = "renga" not in sys.modules

LINES = """
updated(comm, 'SGD')
updated(comm, 'MomentumSGD')
updated(comm, 'Adam')
updated(comm, 'AdaGrad')
updated(comm, 'SGD', hook=chainer.optimizer_hooks.WeightDecay(.1))
updated(comm, 'SGD', hook=chainer.optimizer_hooks.GradientClipping(.1))
updated(comm, 'SGD', dtype='d')
updated(comm, 'SGD', zero_fill=False)
updated(comm, 'SGD', double_buffering=True)
updated(comm, 'MomentumSGD', double_buffering=True)
updated(comm, 'Adam', double_buffering=True, times=5)
aggregated(comm, (1, 'iteration'))
aggregated(comm, (2, 'iteration'))
aggregated(comm, (1, 'epoch'))
aggregated(comm, (1, 'iteration'), aggregated_key='all')
aggregated(comm, (2, 'iteration'), aggregator=lambda xs: [len(x) for x in xs])
aggregated(comm, (2, 'iteration'), aggregated_key='all', aggregator=lambda xs: max(sum(xs, [])))
aggregated(comm, (1, 'iteration'), key='unknown', aggregator=lambda xs: str(xs))
stopped(comm, patience=2)
stopped(comm, patience=1, mode='max')
stopped(comm, patience=2, check_trigger=(1, 'iteration'))
stopped(comm, patience=2, max_trigger=(2, 'epoch'))
stopped(comm, patients=2)
stopped(comm, patience=2, suffix='_of_all')
evaluated(comm)
evaluated(comm, total=24)
evaluated(comm, total=5)['main/mean']
mean_gradients(comm, zero_fill=False, unused=False)
mean_gradients(comm, zero_fill=True, unused=False)
mean_gradients(comm, zero_fill=True, unused=True)
mean_gradients(comm, zero_fill=False, unused='everywhere')
mean_gradients(comm, zero_fill=True, unused='everywhere')
"""

EXPRESSIONS = LINES


def names(comm):
    """What the expressions see."""
    functions = (updated, aggregated, stopped, evaluated, mean_gradients)
    return {"chainer": chainer, **{f.__name__: f for f in functions}}


def linear(comm, dtype="f"):
    """Other parameters on every rank."""
    link = L.Linear(2, 1, initialW=np.full((1, 2), comm.rank + 1.0, dtype))
    link.b.array[...] = comm.rank
    if dtype == "d":
        link.b.array = link.b.array.astype("d")
    return link


def multi_node(comm, optimizer, double_buffering=False, **options):
    """A multi-node optimizer.

    ChainerMN's own double buffering asks for a GPU, of which it uses only streams.
    """
    if not double_buffering or not IS_CHAINER:
        return chainermn.create_multi_node_optimizer(
            optimizer, comm, double_buffering, **options
        )
    chainer.cuda.Stream = Stream

    def now(target, zero_fill, stream):
        comm.multi_node_mean_grad(target, zero_fill)

    object.__setattr__(comm, "_multi_node_mean_grad_async", now)
    return chainermn.optimizers._DoubleBufferingOptimizer(optimizer, comm, True)


class Stream:
    def __init__(self, **options):
        pass

    def synchronize(self):
        pass


Stream.null = Stream()


def updated(comm, rule, hook=None, dtype="f", times=3, **options):
    """The parameters after updates with other samples on every rank.

    ChainerMN's first update only broadcasts parameters; so does this one everywhere.
    """
    link = linear(comm, dtype)
    optimizer = multi_node(comm, getattr(optimizers, rule)(), **options)
    optimizer.setup(link)
    if hook:
        optimizer.add_hook(hook)
    comm.bcast_data(link)
    x = np.arange(4, dtype=dtype).reshape(2, 2) - comm.rank
    if IS_CHAINER:
        optimizer.update(lambda: F.sum(link(x)))
    for _ in range(times):
        optimizer.update(lambda: F.sum(link(x) ** 2))
    return link.W.array, link.b.array, optimizer.t


class Observed(training.Extension):
    """Reports values of its own on every rank."""

    priority = training.PRIORITY_WRITER

    def __init__(self, values):
        self.values = values

    def __call__(self, trainer):
        i = trainer.updater.iteration - 1
        trainer.observation["value"] = self.values[i % len(self.values)]


def trainer_of(comm, stop, values, per_epoch=2):
    link = linear(comm)
    optimizer = optimizers.SGD(0.0).setup(link)
    data = np.ones((per_epoch, 2), "f")
    iterator = chainer.iterators.SerialIterator(data, 1, shuffle=False)
    updater = training.StandardUpdater(
        iterator, optimizer, loss_func=lambda x: F.sum(link(x))
    )
    trainer = training.Trainer(updater, stop, out="result")
    trainer.extend(Observed(values), name="observed", trigger=(1, "iteration"))
    return trainer


def aggregated(comm, trigger, key="value", aggregated_key=None, aggregator=None):
    """What every rank observes after each of six iterations."""
    values = [float(10 * i + comm.rank) for i in range(6)]
    trainer = trainer_of(comm, (6, "iteration"), values)
    trainer.extend(
        chainermn.extensions.ObservationAggregator(
            comm, key, aggregated_key, comm_trigger=trigger, aggregator=aggregator
        ),
        trigger=(1, "iteration"),
    )
    found = []
    trainer.extend(
        lambda t: found.append(sorted(t.observation.items())),
        name="found",
        priority=-1,
        trigger=(1, "iteration"),
    )
    trainer.run()
    return found


def stopped(comm, **options):
    """The iteration at which early stopping ends the training."""
    values = [3, 3, 2, 2, 2.5, 1.5 + 2 * comm.rank, 3, 3, 3, 3, 3, 3]
    trigger = chainermn.extensions.MultiNodeEarlyStoppingTrigger(
        comm, monitor="value", **{"max_trigger": (6, "epoch"), **options}
    )
    trainer = trainer_of(comm, trigger, [float(value) for value in values])
    trainer.run()
    return trainer.updater.iteration, trigger.get_training_length()


class Squares(chainer.Chain):
    """Reports means of its samples."""

    def __call__(self, x):
        chainer.report({"mean": float(x.mean()), "first": float(x[0])}, self)


def evaluated(comm, total=12):
    samples = np.arange(total, dtype="f") ** 2
    mine = samples[comm.rank :: comm.size]
    iterator = chainer.iterators.SerialIterator(mine, 2, repeat=False, shuffle=False)
    evaluator = training.extensions.Evaluator(iterator, Squares())
    return chainermn.create_multi_node_evaluator(evaluator, comm)()


class Halves(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        with self.init_scope():
            self.used = linear(comm)
            self.unused = linear(comm)
            self.unknown = L.Linear(None, 2)


def mean_gradients(comm, zero_fill, unused):
    """Gradients of a link that rank 0, or no rank, has used."""
    link = Halves(comm)
    link.cleargrads()
    link.used.W.grad = np.full((1, 2), comm.rank, "f")
    link.used.b.grad = np.full(1, comm.rank + 1, "f")
    if unused != "everywhere" and (not unused or comm.rank == 0):
        link.unused.W.grad = np.full((1, 2), 4 * comm.rank + 2, "f")
        link.unused.b.grad = np.ones(1, "f")
    comm.multi_node_mean_grad(link, zero_fill)
    return sorted((name, p.grad) for name, p in link.namedparams() if p.is_initialized)


def case_bcast_data_leaves_uninitialized_parameters(comm):
    link = Halves(comm)
    comm.bcast_data(link)
    return sorted((n, p.array) for n, p in link.namedparams())


def case_bcast_data_of_half_precision(comm):
    link = L.Linear(2, 2, initialW=np.full((2, 2), comm.rank + 0.5, "e"))
    link.b.array = np.full(2, comm.rank, "e")
    comm.bcast_data(link)
    return link.W.array, link.b.array


def case_mean_gradients_of_half_precision(comm):
    link = L.Linear(2, 2, initialW=np.ones((2, 2), "e"), nobias=True)
    link.W.grad = np.full((2, 2), comm.rank, "e")
    comm.multi_node_mean_grad(link)
    return link.W.grad


def case_optimizer_attributes(comm):
    optimizer = chainermn.create_multi_node_optimizer(optimizers.Adam(0.5), comm)
    link = linear(comm)
    returned = optimizer.setup(link)
    optimizer.alpha = 0.25
    optimizer.extra = 1
    return (
        *(returned is optimizer, optimizer.target is link, optimizer.alpha),
        *(optimizer.actual_optimizer.alpha, optimizer.actual_optimizer.extra),
        *(optimizer.t, optimizer.communicator is comm, optimizer.zero_fill),
    )


def case_unknown_optimizer_attribute(comm):
    return chainermn.create_multi_node_optimizer(optimizers.SGD(), comm).unknown


def case_gradients_without_a_loss(comm):
    """Gradients that the caller has computed are averaged as well."""
    link = linear(comm)
    optimizer = chainermn.create_multi_node_optimizer(optimizers.SGD(1.0), comm)
    optimizer.setup(link)
    comm.bcast_data(link)
    updates = 2 if IS_CHAINER else 1
    for _ in range(updates):
        link.W.grad = np.full((1, 2), comm.rank, "f")
        link.b.grad = np.full(1, comm.rank, "f")
        optimizer.update()
    return link.W.array, link.b.array


def case_custom_evaluator(comm):
    class Sorted(chainermn.extensions.GenericMultiNodeEvaluator):
        def calc_local(self, *xs):
            return [float(x) for x in xs[0]]

        def aggregate(self, results):
            return len(results), sorted(sum(results, []))

    mine = np.arange(6, dtype="f")[comm.rank :: comm.size].reshape(-1, 1)
    iterator = chainer.iterators.SerialIterator(mine, 1, repeat=False, shuffle=False)

    def converter(batch, device):
        return (np.stack(batch).ravel(),)

    return Sorted(comm, iterator, Squares(), converter=converter)(None)


def case_custom_evaluator_of_dicts(comm):
    class Named(chainermn.extensions.GenericMultiNodeEvaluator):
        def calc_local(self, a, b):
            return float((a * b).sum())

        def aggregate(self, results):
            return results

    rows = [{"a": np.float32(i), "b": np.float32(comm.rank)} for i in range(4)]
    iterator = chainer.iterators.SerialIterator(rows, 2, repeat=False, shuffle=False)
    return Named(comm, iterator, Squares(), root=comm.size - 1)(None)


def case_evaluator_is_the_given_one(comm):
    iterator = chainer.iterators.SerialIterator([1.0], 1, repeat=False, shuffle=False)
    evaluator = training.extensions.Evaluator(iterator, Squares())
    evaluator.name = "mine"
    found = chainermn.create_multi_node_evaluator(evaluator, comm)
    return found is evaluator, found.name, found.default_name


def case_persistent_values(comm):
    link = L.BatchNormalization(2)
    link.avg_mean[...] = comm.rank
    link.avg_var[...] = comm.rank + 1
    link.N = comm.rank
    chainermn.extensions.AllreducePersistent(link, comm)()
    return link.avg_mean, link.avg_var, link.N


def case_persistent_values_of_a_chain(comm):
    link = chainer.Sequential(L.Linear(2, 2), L.BatchNormalization(2))
    link[1].avg_mean[...] = comm.rank
    link[0].add_persistent("extra", np.full(2, comm.rank, "d"))
    extension = chainermn.extensions.AllreducePersistent(link, comm)
    extension(None)
    return link[1].avg_mean, link[0].extra, extension.trigger, extension.priority


def case_attributes_of_aggregators(comm):
    kinds = chainermn.extensions
    one = kinds.ObservationAggregator(comm, "a")
    two = kinds.MultiNodeEarlyStoppingTrigger(comm)
    return (
        one.original_key,
        one.aggregated_key,
        one.priority,
        one.trigger,
        two.get_training_length(),
    )
