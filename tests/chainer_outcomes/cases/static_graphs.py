"""Chains with static graphs: results, gradients, and the manager of their schedules."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer.graph_optimizations.static_graph import static_graph
from chainer.graph_optimizations.static_graph_utilities import static_code

STATE = "train_count max_in_use_train forward_over minimize_cache_size verbosity_level"


def x(n=2, dtype="f"):
    return chainer.Variable(np.arange(3 * n, dtype=dtype).reshape(n, 3) / 4)


def chain(decorate=static_graph, forward=None):
    """A chain whose ``forward`` is decorated."""
    forward = forward or (lambda self, x: F.tanh(self.l(x)))
    cls = type("Static", (chainer.Chain,), {"forward": decorate(forward)})
    return cls(l=L.Linear(3, 2, initialW=0.5))


def state(model):
    manager = model.schedule_manager
    counts = sorted(manager.in_use_count.items())
    return [getattr(manager, name) for name in STATE.split()], counts


def case_results_and_gradients():
    model, found = chain(), []
    for n in (2, 2, 3, 2):
        model.cleargrads()
        v = x(n)
        loss = F.sum(model(v) ** 2)
        loss.backward()
        found.append((loss, model.l.W.grad, v.grad))
    return found


def case_before_the_first_call():
    return hasattr(chain(), "schedule_manager"), hasattr(chain(), "static_schedule")


def case_after_a_call():
    model = chain()
    model(x())
    return state(model), type(model.schedule_manager).__name__


def case_the_manager_stays():
    model = chain()
    model(x())
    before = model.schedule_manager
    model(x())
    return before is model.schedule_manager


def case_several_calls():
    model, found = chain(), []
    for n in (2, 2, 3):
        model(x(n))
        found.append(state(model))
    return found


def case_end_forward():
    model, found = chain(), []
    for _ in range(2):
        model(x())
        model(x(3))
        model.schedule_manager.end_forward()
        found.append(state(model))
        model.schedule_manager.end_forward()
        found.append(state(model))
    model(x())
    return found, state(model)


def case_backward_after_several_calls():
    """Whichever it is that ends the iteration, the next one begins like the first."""
    model, found = chain(), []
    for _ in range(2):
        y = model(x()) + model(x())
        F.sum(y).backward()
        model.schedule_manager.end_forward()
        found.append(state(model))
    return found


def case_test_mode():
    model = chain()
    with chainer.using_config("train", False):
        ys = [model(x()), model(x())]
    return ys, state(model)


def case_no_backprop_mode():
    model = chain()
    with chainer.no_backprop_mode():
        y = model(x())
    return y, state(model)


def case_training_and_test():
    model, found = chain(), []
    for train in (True, False, True):
        with chainer.using_config("train", train):
            model(x())
        found.append(state(model))
    return found


def case_options():
    model = chain(static_graph(minimize_cache_size=False, verbosity_level=0))
    found = []
    for train in (True, False, True):
        with chainer.using_config("train", train):
            model(x())
        found.append(state(model))
    return found


def case_no_options():
    model = chain(static_graph())
    return model(x()), state(model)


def case_define_by_run_in_tests():
    model = chain(static_graph(force_test_define_by_run=True))
    with chainer.using_config("train", False):
        y = model(x())
    before = hasattr(model, "schedule_manager")
    model(x())
    return y, before, state(model)


def case_switched_off():
    model = chain()
    with chainer.using_config("use_static_graph", False):
        y = model(x())
    return y, hasattr(model, "schedule_manager")


def case_two_inputs_and_outputs():
    model = chain(forward=lambda self, a, b: (self.l(a), self.l(b) * 2))
    return model(x(), x(3)), state(model)


def case_nested_inputs():
    model = chain(forward=lambda self, xs: F.concat([self.l(v) for v in xs], 0))
    return model([x(), x(3)]), state(model)


def case_dtypes_of_schedules():
    model = chain(forward=lambda self, v: v * 2)
    for dtype in "fdf":
        model(x(dtype=dtype))
    return state(model)


def case_static_code():
    """Code with side effects runs each time."""
    calls = []

    class Model(chainer.Chain):
        @static_graph
        def forward(self, v):
            self.count()
            return v * 2

        @static_code
        def count(self):
            calls.append(len(calls))

    model = Model()
    ys = [model(x()) for _ in range(3)]
    return ys, len(calls) >= 3


def case_static_code_on_arrays():
    @static_code(func_name="twice")
    def twice(inputs, outputs):
        outputs[0][...] = 2 * inputs[0]

    y = np.zeros(2)
    return twice(inputs=[np.ones(2)], outputs=[y]), y


def case_two_objects_of_a_class():
    cls = type(chain())
    a, b = (cls(l=L.Linear(3, 2, initialW=w)) for w in (0.5, 0.25))
    return a(x()), b(x()), a.schedule_manager is b.schedule_manager
