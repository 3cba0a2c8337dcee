"""Variables, parameters and hooks: gradients, creators, copies."""

import copy
import pickle

import chainer
import chainer.functions as F
import chainer.initializers
from cases.core import OldScale, P, Scale, V, linear, ones, warned


def two_outputs(x):
    return F.split_axis(x, 2, 0)


def case_duplicate_outputs_of_backward():
    y = F.sum(V(ones(2)))
    return warned(lambda: chainer.grad([y, y], [V(ones(2))]))


def case_duplicate_outputs_of_chainer_backward():
    x = V(ones(2))
    y = F.sum(x * x)
    found = warned(lambda: chainer.backward([y, y]))
    return found, x.grad


def case_deprecated_arguments():
    from chainer import training

    return warned(
        lambda: training.triggers.EarlyStoppingTrigger(patients=3)
    ), training.triggers.EarlyStoppingTrigger(patience=3).patience


def case_grad_of_an_array():
    x = V(ones(2))
    x.grad = V(ones(2))


def case_grad_of_another_shape():
    x = V(ones(2))
    x.grad = ones(3)


def case_grad_of_another_dtype():
    x = V(ones(2))
    x.grad = ones(2, dtype="d")


def case_grad_var_of_another_shape():
    x = V(ones(2))
    x.grad_var = V(ones(3))


def case_array_of_another_shape():
    x = V(ones(2))
    x.array = ones(3)
    return x.shape


def case_array_of_another_type():
    x = V(ones(2))
    x.array = [1.0]


def case_set_creator():
    x = V(ones(2))
    y = V(ones(2))
    g = OldScale()
    z = g(x)
    y.set_creator(z.creator)
    return y.creator is z.creator, y.rank, z.rank


def case_set_creator_node():
    x = V(ones(2))
    (z,) = Scale().apply((x,))
    y = V(ones(2))
    y.set_creator_node(z.creator_node)
    return y.creator is z.creator, y.rank


def case_rank_of_an_adapter():
    y = OldScale()(V(ones(2)))
    y.creator.rank = 5
    return y.creator_node.rank, y.creator.rank


def case_unchain():
    x = V(ones(2))
    y = F.exp(x)
    z = F.sum(y)
    z.unchain_backward()
    return z.creator is None, y.creator is None


def case_retained_gradient():
    x = V(ones(2))
    y = x * 2
    F.sum(y).backward(retain_grad=True)
    return y.grad, x.grad


def case_gradient_that_is_not_retained():
    x = V(ones(2))
    y = x * 2
    F.sum(y).backward()
    return y.grad, x.grad


def case_second_backward_accumulates():
    x = V(ones(2))
    y = F.sum(x * x)
    y.backward()
    y.grad = None
    y.backward()
    return x.grad


def case_backward_of_no_gradient_mode():
    x = V(ones(2))
    with chainer.no_backprop_mode():
        y = F.sum(x * x)
    return y.creator, y.requires_grad


def case_parameter_initialized_twice():
    p = P(1.0)
    p.initialize((2,))
    p.initialize((3,))
    return p.array


def case_parameter_initialized_by_an_initializer():
    p = P(chainer.initializers.Normal(0.0))
    p.initialize((2,))
    return p.array, p.grad


def case_uninitialized_parameter_cleared():
    p = P(1.0)
    p.cleargrad()
    p.initialize((2,))
    return p.grad


def case_uninitialized_parameter_zeroed():
    p = P(1.0)
    p.zerograd()
    p.initialize((2,))
    return p.grad


def case_parameter_pickled():
    p = P(1.0, (2,), name="p")
    q = pickle.loads(pickle.dumps(p))
    return q.array, q.name, q.is_initialized


def case_uninitialized_parameter_pickled():
    q = pickle.loads(pickle.dumps(P(3.0)))
    q.initialize((2,))
    return q.array


def case_variable_copied():
    x = V(ones(2), name="x")
    return copy.deepcopy(x).array, copy.copy(x).array is x.array


def case_link_copied():
    link = linear(2, 1)
    other = copy.deepcopy(link)
    other.W.array[...] = 5
    return link.W.array, type(other).__name__


def case_hook_sees_old_functions():
    calls = []

    class Hook(chainer.FunctionHook):
        name = "mine"

        def forward_preprocess(self, function, in_data):
            calls.append(("before", function.label, len(in_data)))

        def forward_postprocess(self, function, in_data):
            calls.append(("after", function.label))

        def backward_preprocess(self, function, in_data, out_grad):
            calls.append(("before backward", function.label))

        def backward_postprocess(self, function, in_data, out_grad):
            calls.append(("after backward", function.label))

    with Hook():
        y = OldScale()(V(ones(2)))
        y.grad = ones(2)
        y.backward()
    return calls


def case_local_hook():
    calls = []

    class Hook(chainer.FunctionHook):
        name = "mine"

        def forward_preprocess(self, function, in_data):
            calls.append(type(function).__name__)

    function = Scale()
    function.add_hook(Hook())
    function.apply((V(ones(2)),))
    try:
        function.add_hook(Hook())
    except KeyError:
        calls.append("twice")
    function.delete_hook("mine")
    return calls


def case_hook_twice():
    with chainer.function_hooks.TimerHook():
        with chainer.function_hooks.TimerHook():
            pass


def case_link_hook():
    calls = []

    class Hook(chainer.LinkHook):
        name = "mine"

        def added(self, link):
            calls.append(("added", link is None))

        def deleted(self, link):
            calls.append(("deleted", link is None))

        def forward_preprocess(self, args):
            calls.append((args.forward_name, len(args.args), sorted(args.kwargs)))

        def forward_postprocess(self, args):
            calls.append(args.out.shape)

    link = linear(2, 1)
    link.add_hook(Hook())
    link(ones(1, 2))
    link(x=ones(1, 2))
    link.delete_hook("mine")
    with Hook():
        link(ones(3, 2))
    return calls


def case_timer_hook():
    hook = chainer.function_hooks.TimerHook()
    with hook:
        F.exp(V(ones(2)))
    return len(hook.call_history), sorted(
        hook.summary()["Exp"]
    ) if "Exp" in hook.summary() else sorted(hook.summary())
