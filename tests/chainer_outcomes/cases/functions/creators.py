"""What functions leave in the graph: class and label of the creator of their outputs.

The calls are those of ``edge_cases``, with two samples.
"""

import io
import sys
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

sys.path.append(str(Path(__file__).parents[3] / "python/functions/cases"))
import edge_cases  # noqa: E402


def creators(call):
    """Class and label of the creator of each output that has one."""
    found = []
    ys = eval(call, edge_cases.Inputs(chainer, 2, "f").names)
    for y in edge_cases.flat(ys):
        creator = getattr(y, "creator", None)
        if creator is not None:
            found.append((type(creator).__name__, creator.label))
    return found


GENERATED = {
    call: lambda call=call: creators(call)
    for call in edge_cases.recorded("edge_functions")
    if "N" in call and "sparse_matmul" not in call
}
# SciPy is not there.
OMITTED = "ImportError"


def x(requires_grad=True):
    array = np.arange(6, dtype="f").reshape(2, 3) + 1
    return chainer.Variable(array, requires_grad=requires_grad)


def names_of(*ys):
    return [type(y.creator).__name__ for y in ys]


class Timer(chainer.function_hooks.TimerHook):
    """Only the names."""

    def names(self):
        return [name for name, _ in self.call_history]


def timed(run):
    """The names of the forward pass, and which of them the backward pass has."""
    with Timer() as hook:
        y = run()
        forward = hook.names()
        y.grad = np.ones_like(y.array)
        y.backward()
    return forward, sorted(set(hook.names()[len(forward) :]) & set(forward))


TIMED = """
F.relu(x())
F.mean(x())
F.sin(F.exp(x()))
F.sum(F.mean_squared_error(x(), x()))
F.softmax_cross_entropy(x(), np.array([0, 1], 'i'))
F.sigmoid_cross_entropy(x(), np.ones((2, 3), 'i'))
F.concat([x(), x()])
F.stack([x(), x()])
F.hstack([x(), F.flip(x(), 0)])
F.linear(x(), np.ones((4, 3), 'f'))
F.batch_matmul(F.reshape(x(), (1, 2, 3)), F.reshape(x(), (1, 3, 2)))
F.max_pooling_2d(F.reshape(x(), (1, 1, 2, 3)), 2)
F.average_pooling_2d(F.reshape(x(), (1, 1, 2, 3)), 2)
F.einsum('ij,ik->jk', x(), x())
F.clipped_relu(x(), 2.)
F.layer_normalization(x(), np.ones(3, 'f'), np.ones(3, 'f'))
F.normalize(x())
F.where(x().array > 2, x(), x())
F.permutate(x(), np.array([1, 0], 'i'))
F.huber_loss(x(), x(), 1., reduce='no')
F.tile(F.repeat(x(), 2), (2, 1))
F.depth2space(F.reshape(x(), (1, 6, 1, 1))[:, :4], 2)
F.dropout(x(), .5)
F.cumsum(x())
F.inv(x()[:, :2])
x() + x()
x() - x()
-x()
x() @ x().T
"""
GENERATED.update(
    {
        "timed " + text: lambda text=text: timed(lambda: eval(text))
        for text in TIMED.strip().split("\n")
    }
)


def case_instances_of_classes():
    from chainer.functions.activation.relu import ReLU
    from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy
    from chainer.functions.math.basic_math import Add

    y = F.relu(x())
    loss = F.softmax_cross_entropy(y, np.array([0, 1], "i"))
    return (
        isinstance(y.creator, ReLU),
        isinstance(y.creator, SoftmaxCrossEntropy),
        isinstance(y.creator, chainer.FunctionNode),
        isinstance(loss.creator, SoftmaxCrossEntropy),
        isinstance((y + y).creator, Add),
        loss.creator.__class__.__name__,
    )


def case_creators_are_the_same():
    y = F.mean(x())
    return (
        y.creator is y.creator,
        y.creator == y.creator,
        y.creator == F.mean(x()).creator,
    )


def case_creators_of_leaves():
    return x().creator, F.relu(x(False)).creator, F.mean(x().array).creator


def case_creator_after_unchaining():
    y = F.mean(x())
    y.unchain()
    return y.creator


def case_another_creator():
    y, z = F.mean(x()), F.sum(x())
    y.creator = z.creator
    return names_of(y, z)


def case_functions_of_users():
    class Own(chainer.FunctionNode):
        def forward(self, xs):
            return xs

    class Old(chainer.Function):
        def forward(self, xs):
            return xs

        def backward(self, xs, gys):
            return gys

    ys = Own().apply((x(),))[0], Old()(x())
    with Timer() as hook:
        Own().apply((x(),)), Old()(x())
    return names_of(*ys), [y.creator.label for y in ys], hook.names()


def case_results_of_links():
    link = L.Classifier(L.Linear(3, 2))
    loss = link(x(), np.array([0, 1], "i"))
    return names_of(loss, link.y)


def case_walking_up():
    """From a loss to its leaves, as drawings of graphs do."""
    y, found = F.sum(F.tanh(F.exp(x()))), []
    while y.creator is not None:
        found.append((type(y.creator).__name__, y.creator.label, y.creator.rank))
        (y,) = y.creator.inputs
    return found


def case_printed():
    file = io.StringIO()
    with chainer.function_hooks.PrintHook(file=file):
        F.mean_squared_error(F.relu(x()), x())
    lines = file.getvalue().split("\n")
    return [line for line in lines if line.startswith("function")]


def case_values_are_the_same_with_hooks():
    """Functions of a tuple, of options, of several outputs, of no Variable."""
    found = []
    with Timer():
        v = x()
        ys = F.separate(v, 1)
        y = F.hstack(
            [F.sum(ys[0]).reshape(1), F.average(v, weights=v.array).reshape(1)]
        )
        found += [type(ys).__name__, y, F.mean(v.array), F.squeeze(v.array)]
        F.sum(y**2).backward()
    return found, v.grad


def case_functions_keep_their_names():
    return F.mean.__name__, F.mean_squared_error.__name__, F.mean is F.mean
