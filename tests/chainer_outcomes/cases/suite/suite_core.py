"""Variables, nodes, functions, links and devices, as Chainer's own tests look at them."""

import copy
import pickle
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import gradient_check, testing  # noqa: F401

X = np.array([[0.5, -1, 2], [1, 0, -2]], "f")
ONE = np.ones((2, 3), "f")


def warned(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = run()
    return value, sorted({w.category.__name__ for w in found})


def tried(run):
    try:
        return run()
    except Exception as error:
        return type(error).__name__


def message(run):
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error)


class Double(chainer.FunctionNode):
    def forward(self, inputs):
        return tuple(2 * x for x in inputs)

    def backward(self, indexes, gys):
        return tuple(2 * gys[i] for i in indexes)


class Old(chainer.Function):
    def forward(self, inputs):
        return (inputs[0] ** 2,)

    def backward(self, inputs, gys):
        return (2 * inputs[0] * gys[0],)


EXPRESSIONS = """
    chainer.get_device("@numpy").send(None)
    chainer.get_device("@numpy").send((X, None)) [1]
    type(chainer.get_device("@numpy").send((X, None)))
    type(chainer.get_device("@numpy").send([X, None]))
    chainer.get_device("@numpy").send([X, [None, X]])
    testing.BackendConfig({}).get_array(None)
    chainer.Variable(X)._node is chainer.Variable(X)._node
    chainer.Variable(X)._has_chainerx_array
    chainer.Variable._init_unchecked(X).array
    chainer.Variable._init_unchecked(X, requires_grad=False).requires_grad
    chainer.Variable._init_unchecked(X, name="x").name
    chainer.Variable._init_unchecked(grad=None).array
    chainer.Variable(X)._grad
    chainer.Parameter(shape=(2, 3))._grad
    chainer.Parameter(1.0, (2, 3))._grad
    chainer.Parameter()._grad
    chainer.backends.cuda.to_cpu(chainer.Variable(X))
    chainer.backward(chainer.Variable(X))
    chainer.backward([chainer.Variable(X)], chainer.Variable(ONE))
    chainer.backward([chainer.Variable(X)], [chainer.Variable(ONE)] * 2)
    chainer.backward([X])
    chainer.backward((chainer.Variable(X), 1.0))
    chainer.backend.using_device("nothing")
    chainer.backend.using_device(("@numpy", 1, 2))
    chainer.optimizers.SGD().setup("net")
    chainer.optimizers.Adam().setup(None)
    hash(chainer.Variable(X))
    Double()._impl_name
    chainer.computational_graph.build_computational_graph(chainer.Variable(X)).nodes.__len__()
    chainer.computational_graph.build_computational_graph(X)
    chainer.computational_graph.build_computational_graph([X])
    """


def case_a_node():
    x = chainer.Variable(X)
    return x._node is x.node


def case_lists_are_sent_once():
    array = X.copy()
    sent = chainer.get_device("@numpy").send([array, array])
    return sent[0] is sent[1], sent[0] is array


def case_rank_of_mixed_inputs():
    x = chainer.Variable(X)
    y = F.exp(x)
    z = Double().apply((x, y))
    return [v.rank for v in (x, y, *z, z[0] + y)]


def case_creators_are_what_was_applied():
    f, g = Double(), Old()
    (y,) = f.apply((chainer.Variable(X),))
    z = g(y)
    return y.creator is f, y.creator_node is f, z.creator is g, z.creator_node is g.node


def case_requires_grad_of_integers():
    (y,) = Double().apply((chainer.Variable(np.arange(3)),))
    (z,) = Double().apply((chainer.Variable(np.arange(3), requires_grad=False),))
    return y.requires_grad, z.requires_grad


def case_zerograd():
    x = chainer.Variable(X)
    x.grad_var = F.exp(chainer.Variable(ONE))
    value = warned(x.zerograd)[1]
    return x.grad, x.grad_var.creator, value


def case_zerograd_of_parameters():
    found = []
    for parameter in (chainer.Parameter(), chainer.Parameter(1.0)):
        found.append(warned(parameter.zerograd)[1])
        parameter.initialize((2, 3))
        found.append(parameter.grad)
    return found


def case_backward_of_one_element():
    x = chainer.Variable(np.full((1,), 3, "f"))
    y = x * 2
    return warned(lambda: y.backward()), x.grad, y.grad


def case_backward_of_one_element_of_two_axes():
    x = chainer.Variable(np.full((1, 1), 3, "f"))
    y = x * x
    return warned(lambda: y.backward(retain_grad=True)), x.grad, y.grad


def case_old_functions_are_differentiated_once():
    x = chainer.Variable(X)
    y = Old()(x)
    y.grad = ONE
    y.backward(enable_double_backprop=True)
    x.grad_var.grad = ONE
    x.grad_var.backward()


def case_old_functions_are_differentiated_once_by_grad():
    x = chainer.Variable(X)
    y = Old()(x)
    (gx,) = chainer.grad([y], [x], [chainer.Variable(ONE)], enable_double_backprop=True)
    return chainer.grad([gx], [x], [chainer.Variable(ONE)])


class Optional(chainer.FunctionNode):
    def forward(self, inputs):
        self.retain_inputs((0, 1))
        self.seen = [x is None for x in inputs]
        return (inputs[1] * 2,)

    def backward(self, indexes, gys):
        self.asked = indexes
        self.kept = [x is None for x in self.get_retained_inputs()]
        return (gys[0] * 2,)


def case_none_as_input():
    f, x = Optional(), chainer.Variable(X)
    (y,) = f.apply((None, x))
    y.grad = ONE
    y.backward()
    return f.seen, f.asked, f.kept, x.grad


class NoOutput(chainer.FunctionNode):
    def forward(self, inputs):
        self.retain_outputs((0, 1))
        return None, inputs[0] * 2

    def backward(self, indexes, gys):
        self.given = [gy is None for gy in gys]
        self.kept = [y is None for y in self.get_retained_outputs()]
        return (gys[1] * 2,)


def case_none_as_output():
    f, x = NoOutput(), chainer.Variable(X)
    ys = f.apply((x,))
    ys[1].grad = ONE
    ys[1].backward()
    return [y.array is None for y in ys], f.given, f.kept, x.grad


def case_output_data_with_none():
    f = NoOutput()
    ys = f.apply((chainer.Variable(X),))
    return [data is None for data in f.output_data], len(ys)


class All(chainer.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] + inputs[1],)

    def backward(self, indexes, gys):
        return gys[0], gys[0] * 3


def case_more_gradients_than_asked_for():
    x = chainer.Variable(X)
    (y,) = All().apply((X, x))
    y.grad = ONE
    y.backward()
    (z,) = All().apply((x, X))
    (gx,) = chainer.grad([z], [x], [chainer.Variable(ONE)])
    return x.grad, gx


def wrong(result, label="mine"):
    class Wrong(chainer.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, indexes, gys):
            return result(gys[0])

    Wrong.label = label
    return Wrong


WRONG = {
    "number": lambda gy: (gy, gy, gy),
    "shape": lambda gy: (gy[0],),
    "type": lambda gy: (1,),
}


def _debugged(result):
    with chainer.using_config("debug", True):
        (y,) = wrong(result)().apply((chainer.Variable(X),))
        y.grad = ONE
        try:
            y.backward()
        except Exception as error:
            text = str(error)
            return type(error).__name__, "mine" in text, "is incorrect" in text


def _old_debugged(result):
    class Wrong(chainer.Function):
        label = "mine"

        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, inputs, gys):
            return result(gys[0])

    with chainer.using_config("debug", True):
        y = Wrong()(chainer.Variable(X))
        y.grad = ONE
        try:
            y.backward()
        except Exception as error:
            return type(error).__name__, "mine" in str(error)


OLD = {
    "number": lambda gy: (gy, gy, gy),
    "shape": lambda gy: (gy[0],),
    "type": lambda gy: (1,),
    "dtype": lambda gy: (gy.astype("d"),),
    "nan": lambda gy: (gy * np.nan,),
}
GENERATED = {
    **{f"wrong {k}": (lambda r=r: _debugged(r)) for k, r in WRONG.items()},
    **{f"old, wrong {k}": (lambda r=r: _old_debugged(r)) for k, r in OLD.items()},
}


class NoTuple(chainer.FunctionNode):
    def __init__(self, result):
        self.result = result

    def forward(self, inputs):
        return self.result


def case_outputs_that_are_no_tuple():
    name, text = message(lambda: NoTuple(X).apply((chainer.Variable(X),)))
    return name, text.startswith("forward output must be a tuple"), "NoTuple" in text


def case_outputs_in_debug_mode():
    with chainer.using_config("debug", True):
        return [
            tried(lambda r=r: NoTuple(r).apply((chainer.Variable(X),)))
            for r in (X, [X], (1,), (X, 1))
        ]


def case_old_functions_that_return_numbers():
    class Ints(chainer.Function):
        label = "mine"

        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, inputs, gys):
            return (1,)

    y = Ints()(chainer.Variable(X))
    y.grad = ONE
    try:
        y.backward()
    except Exception as error:
        return type(error).__name__, "mine" in str(error)


class Typed(chainer.FunctionNode):
    label = "typed"

    def check_type_forward(self, in_types):
        chainer.utils.type_check.expect(in_types[0].dtype == np.float32)

    def forward(self, inputs):
        return inputs


def case_texts_of_invalid_types():
    return message(lambda: Typed().apply((X.astype("d"),)))[1].replace("class ", "")


def case_links_without_constructor():
    class Forgotten(chainer.Link):
        def __init__(self):
            pass

    def scope():
        with Forgotten().init_scope():
            pass

    class ForgottenChain(chainer.Chain):
        def __init__(self):
            pass

    return [
        message(scope),
        message(lambda: Forgotten().add_param("x")),
        message(lambda: ForgottenChain().add_link("l", L.Linear(2))),
    ]


def case_calls_of_links_without_constructor():
    class Forgotten(chainer.Link):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    return message(lambda: Forgotten()(X))


def case_classes_that_override_moves():
    def define(name):
        return warned(
            lambda: type("Mine", (chainer.Link,), {name: lambda self, *a: self})
        )[1]

    names = "to_cpu to_gpu to_intel64 to_device to_chx from_chx".split()
    return {name: tried(lambda n=name: define(n)) for name in names}


def case_overridden_moves_are_called():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        class Child(chainer.Link):
            called = 0

            def to_cpu(self):
                self.called += 1
                return super().to_cpu()

    child = Child()
    parent = chainer.Chain(child=child)
    parent.to_device("@numpy")
    return child.called


def case_names_of_copies():
    link = L.Linear(2, 2)
    link.name = "mine"
    return {mode: link.copy(mode).name for mode in ("share", "copy", "init")}


def case_copies_of_parameters():
    p = chainer.Parameter(1.0)
    q = copy.copy(p)
    p.initialize((2,))
    return q.array, q.array is p.array


def case_mocks_as_serializers():
    class Serializer(chainer.Serializer):
        seen = []

        def __getitem__(self, key):
            self.seen.append(key)
            return self

        def __call__(self, key, value):
            self.seen.append(key)
            return "nothing"

    chain = chainer.Chain(l=L.Linear(2, 2))
    chain.serialize(Serializer())
    return sorted(Serializer.seen)


def case_mixed_in_calls():
    class MixIn:
        def __call__(self, x):
            return x * 2

    class Mine(chainer.Link, MixIn):
        pass

    class First(MixIn, chainer.Link):
        pass

    return Mine()(X), First()(X)


def case_old_style_nodes():
    f = chainer.FunctionNode
    return hasattr(f, "_impl_name"), F.exp(chainer.Variable(X)).creator._impl_name


def case_debug_print():
    import contextlib
    import io

    def text(x):
        found = x.debug_print()
        return found.split("\n")[1:]

    x = chainer.Variable(X, name="x")
    x.grad = ONE
    return text(x), text(chainer.Variable(X)), text(chainer.Variable())


def case_data_of_nodes():
    x = chainer.Variable(X)
    node = x.node
    node.retain_data()
    x.data = X[:1] * 2
    return node.data, node.shape


def case_data_of_nodes_that_keep_none():
    x = chainer.Variable(X)
    node = x.node
    x.data = X[:1] * 2
    return node.data, node.shape


def case_own_devices():
    class Device(chainer.backends._cpu.CpuDevice):
        pass

    link = L.Linear(None, 2)
    device = Device()
    link.to_device(device)
    found = [link.device is device, link.W.device is device, link.b.device is device]
    link(X)
    return found, link.W.device is device


def case_update_rules():
    rule = chainer.UpdateRule()
    return hasattr(rule, "update_core_chainerx"), hasattr(
        chainer.optimizers.SGD().create_update_rule(), "update_core_chainerx"
    )


class Rule(chainer.UpdateRule):
    def __init__(self):
        super().__init__()
        self.seen = []

    def update_core(self, param):
        known = param.array is not None
        self.seen.append((known and str(param.dtype), known and param.grad is None))


def _updated(parameter, in_fp32=False):
    rule = Rule()
    rule.add_hook(lambda rule, param: rule.seen.append("hook"))
    if in_fp32:
        rule.use_fp32_update()
    for _ in range(2):
        rule.update(parameter)
    return rule.seen, rule.t


def case_rules_of_parameters_without_shape():
    half = chainer.initializers.Constant(1, dtype=np.float16)
    return [
        _updated(chainer.Parameter(value), in_fp32)
        for value in (1.0, half)
        for in_fp32 in (False, True)
    ]


def case_rules_of_parameters_without_gradient():
    found = []
    for dtype in "fe":
        parameter = chainer.Parameter(np.ones(2, dtype))
        parameter.cleargrad()
        found.append(_updated(parameter))
        parameter.grad = np.ones(2, dtype)
        found.append(_updated(parameter, dtype == "e"))
    return found


def case_gradients_that_are_set():
    x, y, parameter = chainer.Variable(X), chainer.Variable(X), chainer.Parameter(X)
    x.grad = parameter.grad = ONE
    y.grad_var = chainer.Variable(ONE)
    z = chainer.Variable(X)
    F.sum(z * z).backward(enable_double_backprop=True)
    return [v.grad_var.requires_grad for v in (x, y, parameter, z)]


def case_given_gradients_flow_on():
    x = chainer.Variable(np.array([3], "f"))
    h = 2 * x
    y = 2 * h
    a, b = (chainer.Variable(np.array([value], "f")) for value in (100, 1000))
    u = h * h
    other = F.exp(x)
    return [
        chainer.grad([y], [h, x], None, [a, b]),
        chainer.grad([y], [x, h], None, [None, b]),
        chainer.grad([h, y], [x], [a, b], [a]),
        chainer.grad([u], [h, x], [b], [a, None]),
        # The output does not depend on the second input.
        chainer.grad([y], [x, other], None, [a, b]),
    ]


def case_nodes_that_need_no_gradient():
    found = []
    for stopped in (0, 1):
        x = chainer.Variable(X)
        h = F.exp(x)
        y = h * 2
        (x, h)[stopped].node._requires_grad = False
        y.grad = ONE
        y.backward()
        found.append(x.grad)
    return found


def case_gradients_that_hooks_need():
    link = chainer.Link()
    with link.init_scope():
        link.p = chainer.Parameter(1.0, (2,))
    optimizer = chainer.optimizers.SGD().setup(link)
    found = []

    def hook(opt):
        found.append(link.p.grad)

    optimizer.add_hook(hook)
    link.cleargrads()
    optimizer.update()
    optimizer.reallocate_cleared_grads()
    return found, link.p.grad


def case_experimental():
    chainer.disable_experimental_feature_warning = False
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        chainer.utils.experimental("my.feature")
        chainer.disable_experimental_feature_warning = True
        chainer.utils.experimental("my.feature")
    chainer.disable_experimental_feature_warning = False
    return [
        (w.category.__name__, str(w.message).startswith("my.feature is experimental."))
        for w in found
    ]


def case_texts_of_unexpected_arguments():
    def f(**kwargs):
        chainer.utils.argument.parse_kwargs(kwargs)

    return message(lambda: f(a=1, b=2)), message(lambda: f(b=2))


def case_rank_can_be_set():
    x = chainer.Variable(X)
    before = x.node._rank
    x.node._rank = 7
    return before, x.rank, x.node.rank, (x * 2).rank, F.exp(x + 1).rank


def case_rank_can_be_set_of_inputs_of_own_functions():
    found = []
    for ranks in ((0, 0), (3, 1), (2, 5)):
        xs = chainer.Variable(X), chainer.Variable(ONE)
        for x, rank in zip(xs, ranks):
            x.node._rank = rank
        ys = Double().apply(xs)
        found.append(([y.rank for y in ys], ys[0].creator.rank, F.exp(ys[1]).rank))
        z = Old()(xs[1])
        found.append((z.rank, z.creator.rank))
    return found


def case_rank_stays():
    found = []
    for remove in (
        lambda y: y.unchain(),
        lambda y: setattr(y, "creator", None),
        lambda y: setattr(y, "creator_node", None),
        lambda y: y.node.unchain(),
    ):
        y = F.exp(F.exp(chainer.Variable(X)))
        remove(y)
        found.append((y.rank, y.creator, y.creator_node, (y * 2).rank))
    return found


def case_rank_stays_of_own_functions():
    (y,) = Double().apply((F.exp(chainer.Variable(X)),))
    y.unchain()
    return y.rank, y.creator


def case_set_creators():
    v, f, g = chainer.Variable(X), Old(), Double()
    v.creator = f
    found = [v.creator is f, v.creator_node is f.node, v.rank]
    v = chainer.Variable(X)
    v.creator_node = g
    return found + [v.creator is g, v.creator_node is g, v.rank]


def case_set_creator_with_a_rank():
    v, w, f, g = chainer.Variable(X), chainer.Variable(X), Double(), Double()
    f.rank, g.rank = 10, 4
    v.set_creator(f)
    w.set_creator_node(g)
    return v.rank, w.rank, (v + w).rank
