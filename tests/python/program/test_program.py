"""Recorded programs against networks that are written out by hand."""

import sys

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import program
from renga.core.around_call import surrounding
from renga.program import Recorder


class Tied(renga.Chain):
    """Two linear layers with one weight, and a branch around the second."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(3, 3)
            self.second = L.Linear(3, 3, nobias=True)
            self.second.W = self.first.W

    def forward(self, x):
        h = F.relu(self.first(x))
        return F.relu(self.second(h)) + h


X = np.ones((2, 3), np.float32)


def test_a_program_has_the_calls_and_values_of_the_network():
    found = program.record(Tied(), X)
    # x, the shared weight and a bias; then the results in their order.
    assert [value.kind for value in found.values] == [
        "input",
        *("parameter", "parameter"),
        *["result"] * 5,
    ]
    assert [p.name for p in found.parameters] == ["/first/W", "/first/b"]
    steps = [
        (call.operation, call.link, [str(x) for x in call.operands])
        for call in found.calls
    ]
    assert steps == [
        ("linear", "/first", ["%0", "/first/W", "/first/b"]),
        ("relu", "/", ["%1"]),
        ("linear", "/second", ["%2", "/first/W"]),
        ("relu", "/", ["%3"]),
        ("add", "/", ["%4", "%2"]),
    ]
    assert [call.results[0].number for call in found.calls] == [1, 2, 3, 4, 5]
    assert found.outputs is found.calls[-1].results[0]


def test_shapes_bytes_and_flops():
    found = program.record(L.Linear(3, 5), np.ones((4, 3), np.float32))
    (call,) = found.calls
    (y,) = call.results
    assert (y.shape, y.dtype, y.size, y.nbytes) == ((4, 5), "float32", 20, 80)
    assert call.bytes == 4 * (12 + 15 + 5 + 20)
    assert call.flops == 2 * 4 * 3 * 5


def test_text():
    assert str(program.record(Tied(), X)) == (
        "program of Tied\n"
        "  %0 float32[2, 3]: input\n"
        "  /first/W float32[3, 3]: parameter\n"
        "  /first/b float32[3]: parameter\n"
        "  %1 float32[2, 3] = linear(x=%0, W=/first/W, b=/first/b)  in /first\n"
        "  %2 float32[2, 3] = relu(x=%1)  in /\n"
        "  %3 float32[2, 3] = linear(x=%2, W=/first/W)  in /second\n"
        "  %4 float32[2, 3] = relu(x=%3)  in /\n"
        "  %5 float32[2, 3] = add(x1=%4, x2=%2)  in /\n"
        "  return %5"
    )


def test_programs_are_equal_if_they_compute_the_same():
    def net(pad):
        return renga.Sequential(L.Convolution2D(1, 2, 3, pad=pad), F.relu)

    x = np.ones((1, 1, 5, 5), np.float32)
    assert program.record(net(1), x) == program.record(net(1), x)
    assert program.record(net(1), x) != program.record(net(0), x)
    assert program.record(net(1), x) != program.record(net(1), x[:, :, :4])


def test_a_result_may_be_an_operand():
    (call,) = program.record(lambda x: F.reshape(x, (2, 3)), renga.Variable(X)).calls
    assert call.results == call.operands


def test_inputs_are_recognized_in_containers_and_as_arrays():
    def loss(inputs):
        return F.softmax_cross_entropy(inputs["x"], inputs["t"])

    found = program.record(loss, {"x": X, "t": np.zeros(2, np.int32)})
    assert [value.kind for value in found.values] == ["input", "input", "result"]
    assert found.calls[0].operands == tuple(found.inputs)


def test_arrays_of_integers_are_the_values_that_they_came_from():
    """Functions take indices as arrays; those of results and inputs are recognized."""
    words = renga.Variable(np.array([[1, 0], [0, 1]], np.int32))
    found = program.record(lambda x: F.embed_id(x[:, 0], X), words)
    column, embedded = found.calls[-2:]
    assert embedded.operation == "embed_id"
    assert embedded.operands[0] is column.results[0]


def test_settings_of_functions_of_python():
    index = np.array([1, 0])

    def picked(x, i):
        return F.erfcx(F.get_item(x, (None, i)))

    found = program.record(picked, renga.Variable(X), index)
    lines = str(found).splitlines()
    assert lines[-3].endswith("= GetItem(%0, keys=(None, %1))")
    assert lines[-2].endswith("= erfcx(x=%2)")


def test_who_has_called():
    line = sys._getframe().f_lineno + 1
    net = lambda x: F.absolute_error(x, x) + 1  # noqa: E731
    calls = program.record(net, X).calls
    assert {call.source for call in calls} == {f"{__file__}:{line}"}
    *parts, (operation, function) = [(call.operation, call.function) for call in calls]
    assert {function for _, function in parts} == {"absolute_error"}
    assert (operation, function) == ("add", "")


def test_runs_with_other_random_numbers_are_the_same_program():
    net = renga.Sequential(L.Linear(3, 3), F.dropout)
    assert program.record(net, X) == program.record(net, X)


def test_link_calls():
    net = Tied()
    found = program.record(net, X)
    assert [(call.path, call.calls) for call in found.links] == [
        ("/first", range(0, 1)),
        ("/second", range(2, 3)),
        ("/", range(0, 5)),
    ]
    assert [call.link for call in found.links] == [net.first, net.second, net]
    assert found.links[1].args == found.calls[1].results
    assert found.links[1].result is found.calls[2].results[0]


class Twice(renga.FunctionNode):
    def forward(self, inputs):
        return F.add(inputs[0], inputs[0]).array, None

    def backward(self, indexes, grad_outputs):
        return (2 * grad_outputs[0],)


def test_functions_of_python_and_what_runs_inside_of_them():
    found = program.record(lambda x: Twice().apply([x])[0] + 1, renga.Variable(X))
    assert [(call.operation, call.depth) for call in found.calls] == [
        ("add", 1),
        ("Twice", 0),
        ("add", 0),
    ]
    twice = found.calls[1]
    assert twice.operands == tuple(found.inputs) and len(twice.results) == 1
    assert isinstance(twice.node, Twice) and twice.flops is None
    assert found.calls[2].operands == twice.results


def test_seconds_of_both_passes():
    clock = iter(range(100))
    recorder = Recorder(None, timed=True, now=lambda: float(next(clock)))
    x = renga.Variable(X)
    with recorder:
        y = F.sum(F.exp(x))
    with recorder.timing_backward():
        y.backward()
    assert [call.seconds for call in recorder.program.calls] == [1.0, 1.0]
    assert [call.backward_seconds for call in recorder.program.calls] == [1.0, 1.0]


def test_seconds_of_links():
    clock, net = iter(range(100)), Tied()
    with Recorder(net, timed=True, now=lambda: float(next(clock))) as recorder:
        net(X)
    # Two readings of the clock around each call, and the link's own two.
    seconds = [(call.path, call.seconds) for call in recorder.program.links]
    assert seconds == [("/first", 3.0), ("/second", 3.0), ("/", 15.0)]


def test_a_table_of_both_passes():
    clock = iter(range(100))
    recorder = Recorder(None, timed=True, now=lambda: float(next(clock)))
    x = renga.Variable(np.ones((10, 30), "f"), requires_grad=False)
    W = renga.Parameter(np.ones((40, 30), "f"))
    with recorder:
        y = F.sum(F.linear(x, W))
    with recorder.timing_backward():
        y.backward()
    cells = [line.split() for line in recorder.program.table().splitlines()]
    rows = {(cell[0], cell[1]): cell[2:] for cell in cells}
    # Seconds are the clock's; of x 300, of W 1200 and of y 400 elements have 4 bytes.
    times = ["1", "1000.000", "1000000.0", "25.0%"]
    flops = f"{2 * 10 * 30 * 40 / 1e9:.1f}"
    assert rows["linear", "forward"] == [*times, "0.008", flops]
    assert rows["linear", "backward"] == [*times, "0.012", flops]
    assert rows["sum", "backward"] == [*times, "0.003", "-"]
    assert cells[-1] == "4 operations took 4000.000 ms".split()


def test_a_recorder_ends_and_leaves_others():
    class Names(renga.FunctionHook):
        def __init__(self):
            self.seen = []

        def forward_preprocess(self, function, in_data):
            self.seen.append(function.label)

    with Names() as names, Recorder(None) as outer:
        inner = program.record(F.relu, X)
        F.exp(X)
    F.tanh(X)
    assert names.seen == ["relu", "exp"]
    assert [call.operation for call in inner.calls] == ["relu"]
    assert [call.operation for call in outer.program.calls] == ["relu", "exp"]


def test_a_drawing_has_an_edge_for_each_use():
    dot = program.record(Tied(), X).dot()
    # Operands: 3, 1, 2, 1 and 2; a result of each of the five calls.
    assert dot.count("->") == 9 + 5 and dot.count("shape=box") == 5
    assert "/second" in dot and "float32[3, 3]" in dot


@pytest.mark.parametrize("depth", [10])
def test_elements_are_not_kept(depth):
    """Only the graph keeps arrays: without one, none lives longer than in the model."""
    import weakref

    arrays = []

    def net(x):
        for _ in range(depth):
            x = F.exp(x)
            arrays.append(weakref.ref(x))
        return x

    with renga.no_backprop_mode(), Recorder(net):
        net(X)
        assert [ref() for ref in arrays] == [None] * depth


def test_what_handlers_within_run_is_recorded():
    """A parallel model puts its handler around its calls: a recorder goes on."""
    labels = []

    def handler(call):
        labels.append(call.label)
        call.run()

    def net(x):
        with surrounding(handler):
            return F.exp(F.relu(x))

    found = program.record(net, X)
    assert labels == ["relu", "exp"]
    assert [call.operation for call in found.calls] == labels


@pytest.mark.parametrize(
    "model", [None, "model", np.ones(3, "f")], ids=["none", "text", "array"]
)
def test_what_cannot_be_called_is_refused(model):
    with pytest.raises(TypeError, match="record: expected a link or a function, got"):
        program.record(model, np.ones((2, 4), "f"))
