"""Rows about which parameters a model has, and under which names."""

from __future__ import annotations

import numpy

import renga
import renga.functions as F
import renga.links as L
from tests.combinations.networks import Drawn, Images, Network
from tests.combinations.row import Row


class Plain(Row):
    """Nothing special: four links in a row."""

    name = "plain program"


class Tied(Row):
    """Two links have one weight."""

    name = "tied parameter"

    def build(self, model):
        with model.b.init_scope():
            model.b.W = model.a.W


class OneArray(Row):
    """Two parameters have one array, as those of ``link.copy("share")``."""

    name = "two parameters with one array"
    traits = frozenset({"one array"})

    def build(self, model):
        model.b.W.array = model.a.W.array


class TiedToChain(Row):
    """A parameter of a chain is a link's, too."""

    name = "a chain's parameter that is a link's"

    def build(self, model):
        with model.init_scope():
            model.shared = model.a.b

    class Mixin:
        def middle(self, h):
            scale = F.reshape(F.sum(self.shared**2), (1,) * h.ndim)
            return super().middle(h) * F.broadcast_to(scale, h.shape)


class Words(Network):
    """An embedding whose weight is that of the last link, too."""

    inputs, outputs, width = (), (7,), 5
    sizes = {"embed": (7, 5), "a": (5, 5), "b": (5, 5), "last": (5, 7)}

    def link(self, name, n_in, n_out, seed):
        if name == "embed":
            return L.EmbedID(7, 5, initialW=Drawn(seed))
        return L.Linear(n_in, n_out, initialW=Drawn(seed))

    def __init__(self, seed, is_lazy=False):
        super().__init__(seed, is_lazy)
        with self.last.init_scope():
            self.last.W = self.embed.W

    def forward(self, x):
        return self.last(self.middle(self.embed(x)))


class TiedEmbedding(Row):
    """An embedding and the last linear link have one weight."""

    name = "tied embedding"
    traits = frozenset({"integers"})
    kinds = ("vectors",)

    def network_class(self, kind):
        mixins = [row.Mixin for row in self.features if row.Mixin]
        return type("Model", (*mixins, Words), {})

    def data(self, network, step, samples):
        x, t = numpy.random.RandomState(step).randint(0, 7, (2, samples))
        return x.astype("i4"), t.astype("i4")

    def loss(self, model, x, t):
        return F.softmax_cross_entropy(model(x), t)


class OneLinkTwice(Row):
    """One link under two names."""

    name = "one link under two names"

    def build(self, model):
        del model.b
        with model.init_scope():
            model.b = model.a


class BesideItsLink(Row):
    """The model uses a parameter beside its link."""

    name = "parameter used beside its link"

    class Mixin:
        def forward(self, x):
            y = super().forward(x)
            extra = F.reshape(F.sum(self.b.W**2), (1,) * y.ndim)
            return y + 0.1 * F.broadcast_to(extra, y.shape)


class InTheLoss(Row):
    """The loss function uses a parameter."""

    name = "parameter used in the loss function"

    def penalty(self, model, x):
        return 0.1 * F.sum(model.b.W**2)


class OfTheLoss(Row):
    """The loss function computes of a parameter what the model then reads."""

    name = "attribute that the loss function computes of a parameter"

    def build(self, model):
        model.scale = renga.Variable(numpy.ones((), self.array_dtype))

    class Mixin:
        def middle(self, h):
            scale = F.reshape(self.scale, (1,) * h.ndim)
            return super().middle(h * F.broadcast_to(scale, h.shape))

    def loss(self, model, x, t):
        model.scale = F.mean(model.b.W**2)
        return super().loss(model, x, t)


class KeptNumber(Row):
    """The model keeps a number that it computes of an activation, for the loop."""

    name = "number that the model keeps of an activation"

    class Mixin:
        def middle(self, h):
            self.squares = float((renga.as_array(h) ** 2).sum())
            return super().middle(h)

    def after(self, run, step):
        run.observed.append(float(run.program.squares))


class CalledByLoss(Row):
    """The loss function calls links of the model itself, beside the model."""

    name = "links that the loss function calls"

    def penalty(self, model, x):
        h = model.call(getattr(model, next(iter(model.sizes))), x)
        return 0.1 * (F.mean(h**2) + F.mean(model.middle(F.tanh(h)) ** 2))


class Kept(Row):
    """A link keeps an activation, which the loss reads."""

    name = "activation that the loss reads"

    class Mixin:
        def middle(self, h):
            self.kept = F.tanh(self.call(self.a, h))
            return F.tanh(self.call(self.b, self.kept))

    def penalty(self, model, x):
        return 0.1 * F.mean(model.kept**2)


class KeptLoss(Row):
    """The model keeps its loss, which the loop reads, as that of ``L.Classifier``."""

    name = "loss that the model keeps for the loop"

    def loss(self, model, x, t):
        model.kept_loss = super().loss(model, x, t)
        return model.kept_loss

    def after(self, run, step):
        run.observed.append(float(run.program.kept_loss.array))


class Leaf(Row):
    """The loss reads a Variable that is no parameter; the loop reads its gradient."""

    name = "leaf beside the parameters"
    traits = frozenset({"leaf"})

    def build(self, model):
        model.leaf = renga.Variable(numpy.full((), 0.5, self.array_dtype))

    def penalty(self, model, x):
        return 0.1 * F.mean(model.leaf * model(x) ** 2)

    def after(self, run, step):
        run.observed.append(float(run.program.leaf.grad))
        run.program.leaf.cleargrad()


class CutOff(Row):
    """``unchain_backward`` cuts off the links below, which get no gradients."""

    name = "links below cut off by unchain_backward"

    class Mixin:
        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            h.unchain_backward()
            return F.tanh(self.call(self.b, h))


class CutOffBranch(Row):
    """``unchain_backward`` of a branch cuts off what another one uses, too."""

    name = "branch cut off by unchain_backward"

    class Mixin:
        def middle(self, h):
            one = F.tanh(self.call(self.a, h))
            two = F.tanh(self.call(self.b, one))
            other = F.tanh(self.call(self.b, h))
            two.unchain_backward()
            return one + two + other


class Detached(Row):
    """The elements of an activation go on in a new variable, without a graph."""

    name = "activation that goes on without a graph"

    class Mixin:
        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            h = renga.Variable(renga.as_array(h), requires_grad=False)
            return F.tanh(self.call(self.b, h))


class Normalized(Row):
    """A link hook divides a weight by its largest singular value."""

    name = "spectral normalization"

    def build(self, model):
        with model.init_scope():
            model.spectral_norm = model.link("spectral_norm", *model.sizes["b"], 90)
        model.spectral_norm.add_hook(renga.link_hooks.SpectralNormalization())
        model.spectral_norm.W_u[...] = 0.3

    class Mixin:
        def middle(self, h):
            return super().middle(F.tanh(self.call(self.spectral_norm, h)))


class HalfLayer(Row):
    """A link of float16 in a model of other numbers."""

    name = "a link in float16"
    tolerance = 2e-2

    def build(self, model):
        for param in model.a.params():
            param.array = param.array.astype(numpy.float16)

    class Mixin:
        def middle(self, h):
            y = self.call(self.a, F.cast(h, numpy.float16))
            return F.tanh(self.call(self.b, F.tanh(F.cast(y, h.dtype))))


class Deleted(Row):
    """A parameter is deleted on the way."""

    name = "parameter deleted on the way"

    def build(self, model):
        with model.init_scope():
            model.extra = renga.Parameter(numpy.ones(3, self.array_dtype))

    def before(self, run, step):
        if step == 2:
            del run.program.extra


class HookedLater(Row):
    """A link gets a hook that replaces its weight, and loses it again."""

    name = "weight standardization, later"
    kinds = ("images",)

    def before(self, run, step):
        if step == 2:
            run.program.b.add_hook(renga.link_hooks.WeightStandardization())
        if step == 4:
            run.program.b.delete_hook("WeightStandardization")


class Counted(Row):
    """The model counts its calls in a persistent value."""

    name = "persistent count of calls"

    class Mixin:
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.add_persistent("count", 0)

        def forward(self, x):
            self.count += 1
            return super().forward(x)


class Noted(Row):
    """The model notes its calls in attributes, which the loop reads and resets."""

    name = "calls noted in attributes"

    def build(self, model):
        model.b.notes = []

    class Mixin:
        calls = 0

        def middle(self, h):
            self.calls += 1
            self.b.notes.append("called")
            return super().middle(h)

    def after(self, run, step):
        model = run.program
        run.observed += [model.calls, len(model.b.notes)]
        model.calls = 0
        model.b.notes.clear()


class Averaged(Row):
    """The model averages over its calls, in an array in place and in new arrays."""

    name = "arrays that the model changes in its calls"

    class Mixin:
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.add_persistent("average", numpy.zeros(1))
            self.add_persistent("latest", numpy.zeros(1))

        def middle(self, h):
            self.average[...] = 0.5 * self.average + 1
            self.latest = 0.5 * self.latest + 1
            return super().middle(h)

    def after(self, run, step):
        model = run.program
        run.observed += [float(model.average[0]), float(model.latest[0])]


class OwnAttribute(Row):
    """The program gives a link an attribute, which the model reads."""

    name = "attribute of a link"

    def build(self, model):
        model.a.factor = 1.5

    class Mixin:
        def middle(self, h):
            return super().middle(h * self.a.factor)


class Lazy(Row):
    """Parameters get their shapes from the first batch."""

    name = "lazily shaped parameter"

    def network(self, kind, seed):
        return self.network_class(kind)(seed, is_lazy=True)


class Empty(Row):
    """A parameter without elements."""

    name = "empty parameter"

    def build(self, model):
        with model.init_scope():
            array = numpy.zeros((0, 3), self.array_dtype)
            model.empty = renga.Parameter(array)

    def penalty(self, model, x):
        return F.sum(model.empty)


class Scalar(Row):
    """A parameter without axes, which the model multiplies by."""

    name = "0-d parameter"

    def build(self, model):
        with model.init_scope():
            model.scale = renga.Parameter(1.5, ())

    class Mixin:
        def forward(self, x):
            y = super().forward(x)
            scale = F.reshape(self.scale, (1,) * y.ndim)
            return y * F.broadcast_to(scale, y.shape)


class OneSlope(Row):
    """A number that is learnt beside activations, whose gradient is a sum over them."""

    name = "one slope for all channels"

    def build(self, model):
        with model.init_scope():
            model.slope = L.PReLU()

    class Mixin:
        def middle(self, h):
            return super().middle(self.slope(h))


class Pixels(Row):
    """Factors and biases of single pixels are learnt."""

    name = "factors of pixels"
    kinds = ("images",)

    def build(self, model):
        with model.init_scope():
            model.factors = L.Scale(2, Images.inputs[1:], bias_term=True)
        for i, (_, param) in enumerate(sorted(model.factors.namedparams())):
            Drawn(50 + i)(param.array)

    class Mixin:
        def middle(self, h):
            return super().middle(self.factors(h))


class ComputedFilters(Row):
    """A function convolves images with filters that are computed of a parameter."""

    name = "filters computed of a parameter"
    kinds = ("images",)

    def build(self, model):
        with model.init_scope():
            model.filters = renga.Parameter(Drawn(60), (4, 4, 3, 3))

    class Mixin:
        def middle(self, h):
            filters = F.tanh(self.filters)
            return super().middle(F.convolution_2d(h, filters, pad=1))


class SometimesUsed(Row):
    """Every second step does not use a link."""

    name = "parameter that some steps do not use"

    class Mixin:
        uses_b = True

        def middle(self, h):
            return super().middle(h) if self.uses_b else F.tanh(self.call(self.a, h))

    def before(self, run, step):
        run.program.uses_b = step % 2 == 0


class OtherLater(Row):
    """Later steps call a function over channels, too."""

    name = "function over channels in some steps"

    class Mixin:
        normalizes = False

        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            if self.normalizes:
                h = F.softmax(h, axis=1 if h.ndim != 3 else 2)
            return F.tanh(self.call(self.b, h))

    def before(self, run, step):
        run.program.normalizes = step >= 2


class GainLater(Row):
    """Later steps multiply by a parameter without axes, too."""

    name = "0-d parameter in some steps"

    def build(self, model):
        with model.init_scope():
            model.gain = renga.Parameter(1.5, ())

    class Mixin:
        multiplies = False

        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            if self.multiplies:
                gain = F.reshape(self.gain, (1,) * h.ndim)
                h = h * F.broadcast_to(gain, h.shape)
            return F.tanh(self.call(self.b, h))

    def before(self, run, step):
        run.program.multiplies = step >= 2


class ShapeLater(Row):
    """Later steps divide by the number of channels, which they read of a shape."""

    name = "number of channels read in some steps"

    class Mixin:
        divides = False

        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            if self.divides:
                h = h / h.shape[2 if h.ndim == 3 else 1]
            return F.tanh(self.call(self.b, h))

    def before(self, run, step):
        run.program.divides = step >= 2


class ExtentLater(Row):
    """Later steps divide by a number of rows or tokens, which they read of a shape."""

    name = "number of rows or tokens read in some steps"
    kinds = ("images", "sequences")

    class Mixin:
        divides = False

        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            if self.divides:
                h = h / h.shape[1 if h.ndim == 3 else 2]
            return F.tanh(self.call(self.b, h))

    def before(self, run, step):
        run.program.divides = step >= 2


class SamplesLater(Row):
    """Later steps divide by the number of samples, which they read of a shape."""

    name = "number of samples read in some steps"
    traits = frozenset({"samples read"})

    class Mixin:
        divides = False

        def middle(self, h):
            h = F.tanh(self.call(self.a, h))
            if self.divides:
                h = 6 * h / len(h)
            return F.tanh(self.call(self.b, h))

    def before(self, run, step):
        run.program.divides = step >= 2


class UsedBySomeRanks(SometimesUsed):
    """Every second rank does not use a link, in turns."""

    name = "parameter that some ranks do not use"
    traits = frozenset({"own samples"})

    def before(self, run, step):
        run.program.uses_b = (step + run.rank) % 2 == 0


class Unused(Row):
    """A parameter that no step uses."""

    name = "parameter that is never used"

    def build(self, model):
        with model.init_scope():
            model.unused = renga.Parameter(numpy.ones(3, self.array_dtype))


class BatchNormalized(Row):
    """Batch normalization, of each rank's or micro-batch's samples."""

    name = "batch normalization"
    kinds = ("vectors", "images")
    traits = frozenset({"batch statistics"})

    def build(self, model):
        with model.init_scope():
            model.norm = L.BatchNormalization(model.width)

    class Mixin:
        def middle(self, h):
            return super().middle(self.norm(h))


class Dropout(Row):
    """Dropout of the inputs and of the outputs."""

    name = "dropout"
    traits = frozenset({"random", "real inputs"})

    class Mixin:
        def forward(self, x):
            return F.dropout(super().forward(F.dropout(x, 0.3)), 0.3)

    def start(self, run):
        numpy.random.seed(run.rank)


class Recomputed(Row):
    """The backward pass computes links again, and a penalty on a weight."""

    name = "recomputed by F.forget"
    traits = frozenset({"recomputed"})

    class Mixin:
        def middle(self, h):
            return F.forget(super().middle, h)

    def penalty(self, model, x):
        return 0.1 * F.forget(lambda W: F.sum(W**2), model.b.W)


class Recurrent(Row):
    """A stateful link, whose state goes on from step to step."""

    name = "stateful recurrent link"
    kinds = ("vectors",)
    traits = frozenset({"state"})

    def build(self, model):
        with model.init_scope():
            model.lstm = L.LSTM(model.width, model.width)
        for i, (_, param) in enumerate(sorted(model.lstm.namedparams())):
            Drawn(40 + i)(param.array)

    class Mixin:
        def middle(self, h):
            return super().middle(self.lstm(h))

    def after(self, run, step):
        if run.program.lstm.h is not None:
            run.program.lstm.h.unchain_backward()
            run.program.lstm.c.unchain_backward()


class RecurrentInBatch(Row):
    """A stateful link that reads the steps of a sequence, and is reset before."""

    name = "recurrent link, reset in each batch"
    kinds = ("vectors",)

    build = Recurrent.build

    class Mixin:
        def middle(self, h):
            self.lstm.reset_state()
            for _ in range(3):
                h = self.lstm(h)
            return super().middle(h)
