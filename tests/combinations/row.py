"""A row of the table: a feature of a model or of its training."""

from __future__ import annotations

import functools

import numpy

import renga
import renga.functions as F
from tests.combinations.networks import NETWORKS, normal

SAMPLES = 12  # of a step, on all ranks together
STEPS = 5


class Row:
    """A network, its data, and the steps of a training loop as a user writes them.

    A subclass overrides what its feature changes. ``run`` is a
    :class:`~tests.combinations.run.Run`: the objects that the loop of a rank works
    with. A row knows nothing of ranks but ``run.rank``, and columns do not know rows.
    """

    name = ""
    kinds: tuple[str, ...] = ("vectors", "images", "sequences")
    traits: frozenset[str] = frozenset()  # which a column may lack, with a reason
    Mixin: type | None = None  # of the network's class
    networks = 1  # of which each has an optimizer
    updates = 1  # in a step
    batch_axis = 0  # of the arguments of the loss function
    dtype = numpy.float64
    tolerance = 1e-9
    # After this many steps other ranks, as many as are named, go on from files.
    phases: tuple[tuple[int, int | None], ...] = ((STEPS, None),)
    loads = "all ranks"  # of files
    joins = False  # before the files of the first phase are written
    raises: str | None = None  # what a rank raises on purpose

    # The parts that a row has alone: rows that both change one are not composed.
    PARTS = (
        *("network", "optimizer", "arguments", "inputs", "update", "data", "loss"),
        *("shares", "networks", "updates", "dtype", "phases", "raises", "settings"),
        *("weight", "loads", "joins", "batch_axis"),
    )

    @property
    def features(self):
        """The classes of the rows that this one is composed of."""
        return (type(self),)

    def each(self, event, *args):
        """Calls a method of each feature; the results."""
        return [getattr(row, event)(self, *args) for row in self.features]

    def settings(self):
        """A context in which the row runs."""
        return renga.using_config("dtype", self.dtype)

    def network_class(self, kind):
        """The network's class, with what rows add to its methods."""
        mixins = [row.Mixin for row in self.features if row.Mixin]
        return type("Model", (*mixins, NETWORKS[kind]), {})

    def network(self, kind, seed):
        """A new network; ranks other than the first have other weights."""
        return self.network_class(kind)(seed)

    def build(self, model):
        """Changes a new network."""

    def optimizer(self):
        """A new optimizer."""
        return renga.optimizers.MomentumSGD(0.1)

    def start(self, run):
        """Before the first step."""

    def before(self, run, step):
        """Before a step."""

    def after(self, run, step):
        """After a step."""

    def shares(self, step, ranks):
        """The samples of each rank in a step."""
        return [len(x) for x in numpy.array_split(numpy.zeros(SAMPLES), ranks)]

    def data(self, network, step, samples):
        """The samples of all ranks in a step: inputs and targets."""
        shapes = (samples, *network.inputs), (samples, *network.outputs)
        return tuple(x.astype(self.array_dtype) for x in normal(100 + step, *shapes))

    @property
    def array_dtype(self):
        """Of the data: that of mixed precision is float32."""
        return numpy.float64 if self.dtype == numpy.float64 else numpy.float32

    def weight(self, x, t):
        """How much the mean over these samples counts beside others' means."""
        return len(x)

    def arguments(self, x, t):
        """A batch as the loss function gets it."""
        return (x, t), {}

    def inputs(self, x, t):
        """Inputs and targets, of the arguments of the loss function."""
        return x, t

    def loss(self, model, x, t):
        """The loss, a mean over samples."""
        return F.mean_squared_error(model(x), t)

    def penalty(self, model, x):
        """What is added to the loss, or None."""
        return None

    def whole_loss(self, model, x, t):
        """The loss with penalties, which is reported."""
        loss = self.loss(model, x, t)
        for penalty in self.each("penalty", model, x):
            if penalty is not None:
                loss = loss + F.cast(penalty, loss.dtype)
        renga.report({"loss": loss})
        return loss

    def loss_function(self, model):
        """The loss as a function of a batch's arguments."""

        def lossfun(*args, **kwargs):
            return self.whole_loss(model, *self.inputs(*args, **kwargs))

        return lossfun

    def update(self, run, x, t, index):
        """An update by a batch, the one with this index in the step."""
        args, kwargs = self.arguments(x, t)
        run.update(self.loss_function(run.program), *args, **kwargs)

    def __repr__(self):
        return self.name


def overrides(row, part):
    """Whether a row has a part of its own."""
    return getattr(type(row), part) is not getattr(Row, part)


def can_pair(a, b):
    """Whether two rows change different parts, and some kind of data is both's."""
    if isinstance(a, type(b)) or isinstance(b, type(a)):
        return False
    if "random" in a.traits & b.traits:  # each seeds the generator
        return False
    apart = not any(overrides(a, p) and overrides(b, p) for p in Row.PARTS)
    return apart and any(kind in b.kinds for kind in a.kinds)


@functools.lru_cache(None)
def adapted(row, dtype, optimizer):
    """The row with another dtype and optimizer, where it has none of its own."""
    own = {}
    if dtype is not None and not overrides(row, "dtype"):
        own = {"dtype": dtype, "tolerance": max(row.tolerance, 1e-5)}
    if optimizer is not None and not overrides(row, "optimizer"):
        own["optimizer"] = lambda self: optimizer(0.1)
    own["features"] = row.features
    return type(type(row).__name__, (type(row),), own)() if len(own) > 1 else row


@functools.lru_cache(None)
def pair(a, b):
    """Both rows at once."""
    classes = (type(a), type(b))
    both = {
        "name": f"{a.name} + {b.name}",
        "features": classes,
        "kinds": tuple(kind for kind in a.kinds if kind in b.kinds),
        "traits": a.traits | b.traits,
        "tolerance": max(a.tolerance, b.tolerance),
    }
    return type("Pair", classes, both)()
