"""Programs that train small networks, in one process or on ranks that shard parameters.

Each takes a communicator, or None for one process, and returns the arrays to compare.
"""

import copy
import io
import pickle

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer
from renga.training import extensions

STEPS, BATCH, WIDTH = 4, 12, 5
RANDOM = np.random.RandomState(3)
X = RANDOM.uniform(-1, 1, (STEPS, BATCH, WIDTH))
T = RANDOM.uniform(-1, 1, (STEPS, BATCH, WIDTH))


class Net(renga.Chain):
    """Linear layers in float64, of which some share the first one's weight."""

    def __init__(self, seed=0, tied=False):
        super().__init__()
        random = np.random.RandomState(seed)
        with self.init_scope(), renga.using_config("dtype", np.float64):
            for name in "abc":
                array = random.uniform(-1, 1, (WIDTH, WIDTH))
                setattr(self, name, L.Linear(WIDTH, WIDTH, initialW=array))
        if tied:
            with self.c.init_scope():
                self.c.W = self.a.W

    def forward(self, x):
        return self.c(F.tanh(self.b(F.tanh(self.a(x)))))

    def loss(self, x, t):
        return F.mean_squared_error(self(x), t)


def make(comm, model=None, rule=None, **options):
    """A model, other on each rank until the first update, and its optimizer."""
    if model is None:
        model = Net(seed=0 if comm is None else comm.rank)
    optimizer = (rule or renga.optimizers.MomentumSGD(0.1)).setup(model)
    if comm is not None:
        options = {"shard": "parameters", **options}
        optimizer = create_multi_node_optimizer(optimizer, comm, **options)
    return model, optimizer


def own(comm, x):
    return x if comm is None else x[comm.rank :: comm.size]


def batches(comm, steps=range(STEPS)):
    return [(own(comm, X[i]), own(comm, T[i])) for i in steps]


def values(model):
    return {name: np.array(param.array) for name, param in model.namedparams()}


def train(comm, model, optimizer, loss=None, steps=range(STEPS)):
    for x, t in batches(comm, steps):
        optimizer.update(loss or model.loss, x, t)


def tied(comm):
    model, optimizer = make(comm, Net(seed=0 if comm is None else comm.rank, tied=True))
    train(comm, model, optimizer)
    return values(model)


def beside_its_link(comm):
    model, optimizer = make(comm)

    def loss(x, t):
        return model.loss(x, t) + 0.1 * F.sum(model.b.W**2) + F.sum(model.a.b[1:])

    train(comm, model, optimizer, loss)
    return values(model)


def gradient_penalty(comm):
    model, optimizer = make(comm)

    def loss(x, t):
        x = renga.Variable(x)
        y = model(x)
        (gx,) = renga.grad([F.sum(y * y)], [x], enable_double_backprop=True)
        return F.mean_squared_error(y, t) + F.mean_squared_error(gx, np.ones_like(t))

    train(comm, model, optimizer, loss)
    return values(model)


def recomputed(comm):
    model, optimizer = make(comm)

    def loss(x, t):
        return F.mean_squared_error(model.c(F.forget(model.b, model.a(x))), t)

    train(comm, model, optimizer, loss)
    return values(model)


def weights_set_by_hand(comm):
    model, optimizer = make(comm)
    train(comm, model, optimizer, steps=[0])
    model.a.W.array *= 0.5
    model.b.W.array[1:3] += 0.25
    model.c.b.array = np.linspace(0, 1, WIDTH)
    before = model.loss(*batches(comm)[1])
    train(comm, model, optimizer, steps=[1, 2])
    model.copyparams(Net(seed=7))
    train(comm, model, optimizer, steps=[3])
    assert before.array > 0
    return values(model)


def held_arrays(comm):
    """Arrays and slices that the caller holds see updates; updates see their writes."""
    model, optimizer = make(comm)
    weight, row = model.a.W.array, model.b.W.array[1]
    train(comm, model, optimizer, steps=[0, 1])
    later = model.c.W.array
    train(comm, model, optimizer, steps=[2])
    row += 0.5
    train(comm, model, optimizer, steps=[3])
    return {**values(model), "weight": weight, "row": row, "later": later}


def loaded_between_updates(comm):
    model, optimizer = make(comm)
    file = io.BytesIO()
    renga.serializers.save_npz(file, Net(seed=9))
    train(comm, model, optimizer, steps=[0, 1])
    file.seek(0)
    renga.serializers.load_npz(file, model)
    train(comm, model, optimizer, steps=[2, 3])
    return values(model)


def frozen_and_unfrozen(comm):
    model, optimizer = make(comm, rule=renga.optimizers.Adam(0.05))
    model.a.disable_update()
    train(comm, model, optimizer, steps=[0, 1])
    model.a.enable_update()
    model.b.W.update_rule.enabled = False
    train(comm, model, optimizer, steps=[2, 3])
    return values(model)


def joined_in_between(comm):
    model, optimizer = make(comm)
    for i in range(STEPS):
        train(comm, model, optimizer, steps=[i])
        if comm is not None:
            optimizer.join()
    return values(model)


def hooks_added_later(comm):
    model, optimizer = make(comm)
    train(comm, model, optimizer, steps=[0])
    optimizer.add_hook(renga.optimizer_hooks.GradientLARS())
    train(comm, model, optimizer, steps=[1, 2])
    optimizer.remove_hook("GradientLARS")
    train(comm, model, optimizer, steps=[3])
    return values(model)


def rule_replaced_before_a_parameter(comm):
    model, optimizer = make(comm, rule=renga.optimizers.AdaGrad(0.1))
    train(comm, model, optimizer, steps=[0, 1])
    of_optimizer = model.a.W.update_rule.hyperparam.parent
    model.a.W.update_rule = renga.optimizers.rmsprop.AdaGradRule(of_optimizer)
    rule = model.c.W.update_rule
    with model.c.init_scope():
        model.c.W = renga.Parameter(model.c.W.array / 2)
    model.c.W.update_rule = rule
    train(comm, model, optimizer, steps=[2, 3])
    return values(model)


def own_hyperparameters(comm):
    model, optimizer = make(comm)
    model.b.W.update_rule.hyperparam.lr = 0.01
    train(comm, model, optimizer, steps=[0, 1])
    optimizer.lr = 0.02
    train(comm, model, optimizer, steps=[2, 3])
    return values(model)


def decay_and_clipping(comm):
    model, optimizer = make(comm)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(0.05))
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(0.3))
    train(comm, model, optimizer)
    return values(model)


def norms_of_layers(comm):
    model, optimizer = make(comm, rule=renga.optimizers.LAMB(0.01))
    train(comm, model, optimizer)
    return values(model)


def accumulated(comm):
    model, optimizer = make(comm)
    if comm is not None:
        optimizer.accumulate(2)
    for x, t in batches(comm):
        parts = [slice(None)] if comm is None else [slice(1), slice(1, None)]
        for part in parts:
            optimizer.update(model.loss, x[part], t[part])
    return values(model)


def averages_and_evaluation(comm):
    model, optimizer = make(comm)
    ema = extensions.ExponentialMovingAverage(model, 0.5)
    for i, (x, t) in enumerate(batches(comm)):
        optimizer.update(model.loss, x, t)
        ema()
        if comm is None or comm.rank == i % comm.size:
            with renga.no_backprop_mode(), renga.using_config("train", False):
                assert model.loss(X[0], T[0]).array > 0
    averages = {f"ema{name}": value for name, value in values(ema.model).items()}
    return {**values(model), **averages}


def copies(comm):
    """Copies and pickles of a model are independent of it, and complete."""
    model, optimizer = make(comm)
    train(comm, model, optimizer, steps=[0, 1])
    clones = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.copy("copy"),
    ]
    assert {type(p) for clone in clones for p in clone.params()} == {renga.Parameter}
    shared = model.copy("share")
    train(comm, model, optimizer, steps=[2, 3])
    found = {**values(model), **{f"s{k}": x for k, x in values(shared).items()}}
    for i, clone in enumerate(clones):
        found.update((f"{i}{name}", value) for name, value in values(clone).items())
    _, optimizer = make(comm, clones[0])
    train(comm, clones[0], optimizer)
    found.update((f"trained{k}", x) for k, x in values(clones[0]).items())
    return found


def two_networks(comm):
    generator, of_generator = make(comm)
    critic, of_critic = make(comm, Net(seed=1 if comm is None else 5 + comm.rank))
    if comm is not None:
        for model in (generator, critic):  # the first update of one uses the other
            model.copyparams(Net(seed=int(model is critic)))
    for x, t in batches(comm):
        of_critic.update(lambda x, t: critic.loss(generator(x), t), x, t)
        of_generator.update(lambda x: F.mean(critic(generator(x)) ** 2), x)
    found = values(generator)
    found.update((f"critic{name}", value) for name, value in values(critic).items())
    return found


class Odd(renga.Chain):
    """Parameters without axes, without elements, and without a shape yet."""

    def __init__(self):
        super().__init__()
        fill = renga.initializers.Constant(0.1, np.float64)
        with self.init_scope():
            self.scale = renga.Parameter(np.array(1.5))
            self.empty = renga.Parameter(np.zeros((0, 3)))
            self.layer = L.Linear(None, WIDTH, initialW=fill, initial_bias=fill)

    def loss(self, x, t):
        y = self.scale * self.layer(x)
        return F.mean_squared_error(y, t) + F.sum(self.empty)


def odd_shapes(comm):
    model, optimizer = make(comm, Odd(), renga.optimizers.Adam())
    train(comm, model, optimizer)
    assert model.scale.array.shape == () and model.empty.array.shape == (0, 3)
    return values(model)


def stateful(comm):
    with renga.using_config("dtype", np.float64):
        model = L.LSTM(WIDTH, WIDTH, lateral_init=0.3, upward_init=0.2)
    model, optimizer = make(comm, model, renga.optimizers.RMSprop())
    for x, t in batches(comm):
        optimizer.update(lambda x, t: F.mean_squared_error(model(x), t), x, t)
    return values(model)


def gradients_of_inputs_first(comm):
    """A pass for inputs, then a deeper graph of the same layers."""
    model, optimizer = make(comm)

    def loss(x, t):
        x = renga.Variable(x)
        (gx,) = renga.grad([model.loss(x, t)], [x])
        return model.loss(F.tanh(F.tanh(x + 0.1 * F.sign(gx))), t)

    train(comm, model, optimizer, loss)
    return values(model)


def gradients_by_hand(comm):
    """Two graphs of one model, whose passes come after both."""
    model, optimizer = make(comm)
    if comm is not None:
        comm.bcast_data(model)
    for x, t in batches(comm):
        model.cleargrads()
        first, second = model.loss(x, t), 0.5 * F.sum(F.sin(model.b.W) * model.a.W)
        first.backward()
        second.backward()
        optimizer.update()
    return values(model)


def weights_multiplied(comm):
    """A weight is the operand of another one, which several products use."""
    model, optimizer = make(comm, rule=renga.optimizers.SGD(1e-3))

    def loss(x, t):
        y = model(x)
        both = F.linear(model.a.W, model.b.W, F.mean(y, axis=0))
        return F.mean_squared_error(y, t) + F.sum(both)

    train(comm, model, optimizer, loss)
    return values(model)


class Doubled(renga.FunctionNode):
    """2 x w of one weight, in Python."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        x, w = inputs
        return (2 * x @ w.T,)

    def backward(self, indexes, grad_outputs):
        x, w = self.get_retained_inputs()
        (gy,) = grad_outputs
        return 2 * F.matmul(gy, w), 2 * F.matmul(gy, x, transa=True)


def functions_in_python(comm):
    """One in the graph, and one in a part that is recomputed."""
    model, optimizer = make(comm)

    def part(x):
        return model.c(F.tanh(Doubled().apply((model.b(x), model.c.W))[0]))

    def loss(x, t):
        y = Doubled().apply((renga.Variable(x), model.a.W))[0]
        return F.mean_squared_error(F.forget(part, F.forget(part, y)), t)

    train(comm, model, optimizer, loss)
    return values(model)


def communications(comm):
    """A loss of all ranks' results: the square of their mean."""
    model, optimizer = make(comm)

    def loss(x, t):
        y = model(x)
        mean = F.mean(y)
        if comm is not None:
            means = renga.distributed.functions.allgather(comm, F.reshape(mean, (1,)))
            mean = sum(F.sum(each) for each in means) / comm.size
        return F.mean_squared_error(y, t) + mean**2

    train(comm, model, optimizer, loss)
    return values(model)


PROGRAMS = [
    *(tied, beside_its_link, gradient_penalty, recomputed, weights_set_by_hand),
    *(held_arrays, loaded_between_updates, frozen_and_unfrozen, own_hyperparameters),
    *(joined_in_between, hooks_added_later, rule_replaced_before_a_parameter),
    *(decay_and_clipping, norms_of_layers, accumulated, averages_and_evaluation),
    *(copies, two_networks, odd_shapes, stateful, gradients_of_inputs_first),
    *(gradients_by_hand, weights_multiplied, functions_in_python, communications),
]
