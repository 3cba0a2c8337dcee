"""The profiler, against counts and sums computed by hand and a fake clock."""

import json
import threading
import time

import numpy
import pytest

import renga
import renga.functions as F
from renga import Variable

CONVOLUTION_FLOPS = 2 * 2 * 6 * 5 * 5 * 4 * 3 * 3  # two per product: N O H W I kh kw
LINEAR_FLOPS = 2 * 2 * 150 * 10


class Sleep(renga.FunctionNode):
    """Sleeps, as does the function that it calls."""

    def __init__(self, seconds, inner=None):
        self.seconds, self.inner = seconds, inner

    def forward(self, inputs):
        time.sleep(self.seconds)
        if self.inner:
            self.inner.apply(inputs)
        return (inputs[0] * 2,)

    def backward(self, indexes, grad_outputs):
        return (F.exp(grad_outputs[0]),)


def floats(*shape):
    return numpy.random.RandomState(0).uniform(-1, 1, shape).astype("f")


def variable(*shape):
    return Variable(floats(*shape))


def rows_of(profile):
    return {(row.name, row.direction): row for row in profile.rows()}


def train_twice(x, w, v):
    for _ in range(2):
        y = F.relu(F.convolution_2d(x, w, pad=1))
        F.sum(F.linear(y, v)).backward()


def test_counts_bytes_and_flops():
    x, w, v = floats(2, 4, 5, 5), variable(6, 4, 3, 3), variable(10, 150)
    with renga.profiler() as profile:
        train_twice(x, w, v)
    rows = rows_of(profile)
    for name in ("convolution_2d", "relu", "linear", "sum"):
        for direction in ("forward", "backward"):
            assert rows[name, direction].calls == 2
            assert rows[name, direction].seconds > 0
    forward = rows["convolution_2d", "forward"]
    assert forward.flops == 2 * CONVOLUTION_FLOPS
    assert forward.bytes == 2 * 4 * (200 + 216 + 300)  # x W y
    # The image needs no gradient, so only W's is computed.
    backward = rows["convolution_2d", "backward"]
    assert backward.flops == 2 * CONVOLUTION_FLOPS
    assert backward.bytes == 2 * 4 * (200 + 216 + 300 + 216)  # x W gy gW
    assert rows["linear", "forward"].flops == 2 * LINEAR_FLOPS
    assert rows["linear", "backward"].flops == 2 * 2 * LINEAR_FLOPS
    assert rows["relu", "forward"].bytes == 2 * 4 * (300 + 300)
    assert rows["relu", "forward"].flops == 2 * 300
    assert rows["relu", "backward"].flops is None


def test_bfloat16_takes_two_bytes_per_element():
    x, w, v = floats(2, 4, 5, 5), variable(6, 4, 3, 3), variable(10, 150)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        with renga.profiler() as profile:
            y = F.relu(F.convolution_2d(x, w, pad=1))
            F.sum(F.cast(F.linear(y, v), "f")).backward()
    rows = rows_of(profile)
    assert rows["cast", "forward"].bytes is not None
    # The image is rounded first; y and its gradient are bfloat16, W and gW float32.
    assert rows["convolution_2d", "forward"].bytes == 4 * 200 + 4 * 216 + 2 * 300
    assert rows["convolution_2d", "backward"].bytes == 2 * 200 + 2 * 4 * 216 + 2 * 300
    assert rows["relu", "forward"].bytes == 2 * (300 + 300)
    assert rows["relu", "backward"].bytes == 2 * (300 + 300 + 300)  # x gy gx
    assert rows["linear", "forward"].bytes == 2 * 300 + 4 * 1500 + 2 * 20


@pytest.mark.parametrize(
    "compute, products",
    [
        (lambda: F.matmul(floats(3, 4), floats(4, 5)), 3 * 4 * 5),
        (lambda: F.matmul(floats(4, 3), floats(5, 4), True, True), 3 * 4 * 5),
        (lambda: F.matmul(floats(7, 3, 4), floats(4, 5)), 7 * 3 * 4 * 5),
        (lambda: F.matmul(floats(3, 4), floats(4)), 3 * 4),
        (lambda: F.matmul(floats(4), floats(7, 4, 5)), 7 * 4 * 5),
        (lambda: F.matmul(floats(0, 4), floats(4, 5)), 0),
        (lambda: variable(3, 4) @ floats(4, 5), 3 * 4 * 5),
        (lambda: F.linear(floats(3, 4), floats(5, 4), floats(5)), 3 * 4 * 5),
        (
            lambda: F.convolution_2d(
                floats(2, 4, 9, 8), floats(6, 2, 3, 2), stride=2, groups=2
            ),
            2 * 6 * 4 * 4 * 2 * 3 * 2,
        ),
        (
            # Each pixel of the input is multiplied by each weight of its channel.
            lambda: F.deconvolution_2d(
                floats(2, 4, 5, 6), floats(4, 3, 2, 2), stride=2, groups=2
            ),
            2 * 4 * 5 * 6 * 3 * 2 * 2,
        ),
    ],
)
def test_known_arithmetic(compute, products):
    with renga.profiler() as profile:
        compute()
    assert sum(row.flops or 0 for row in profile.rows()) == 2 * products


def test_times_add_up_to_no_more_than_the_clock():
    x, w, v = variable(2, 4, 5, 5), variable(6, 4, 3, 3), variable(10, 150)
    profile = renga.profiler()
    before = time.perf_counter()
    with profile:
        train_twice(x, w, v)
        Sleep(0.02, inner=Sleep(0.03)).apply((x,))
    wall = time.perf_counter() - before
    assert 0.05 <= sum(row.seconds for row in profile.rows()) <= profile.block_seconds
    assert profile.block_seconds <= wall
    inner, outer = (event for event in profile.events if event.name == "Sleep")
    assert inner.own == inner.elapsed >= 30e6
    assert outer.own == outer.elapsed - inner.elapsed >= 20e6
    assert rows_of(profile)["Sleep", "forward"].calls == 2


def test_python_functions():
    x = variable(2, 3)
    with renga.profiler() as profile:
        (y,) = Sleep(0).apply((x,))
        y.grad = floats(2, 3)
        y.backward()
    rows = rows_of(profile)
    assert rows["Sleep", "forward"].bytes == 4 * (6 + 6)
    assert rows["Sleep", "backward"].bytes == 4 * (6 + 6 + 6)
    assert rows["exp", "forward"].calls == 1
    with renga.profiler() as profile, renga.no_backprop_mode():
        Sleep(0).apply((x,))
        F.exp(x)
    rows = rows_of(profile)
    assert rows["Sleep", "forward"].bytes is None
    assert rows["exp", "forward"].bytes == 4 * (6 + 6)


def test_table():
    with renga.profiler() as profile:
        F.matmul(floats(20, 30), floats(30, 40))
        Sleep(0).apply((floats(2),))
    heading, *lines, summary = str(profile).splitlines()
    columns = "operation direction calls ms us each share MB GFLOP/s"
    assert heading.split() == columns.split()
    cells = {line.split()[0]: line.split()[1:] for line in lines}
    assert set(cells) == {"matmul", "Sleep"}
    row = rows_of(profile)["matmul", "forward"]
    gflops = 2 * 20 * 30 * 40 / 1e9 / row.seconds
    assert cells["matmul"][:2] == ["forward", "1"]
    assert float(cells["matmul"][2]) == pytest.approx(row.seconds * 1e3, abs=6e-4)
    assert cells["matmul"][5:] == ["0.010", f"{gflops:.1f}"]
    assert cells["Sleep"][-1] == "-"
    shares = [float(row[4].rstrip("%")) for row in cells.values()]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert summary.startswith("2 operations took ")
    assert str(renga.profiler()).splitlines()[1] == "0 operations took 0.000 ms"


def test_trace(tmp_path):
    before = time.perf_counter()
    with renga.profiler() as profile:
        Sleep(0.001, inner=Sleep(0.001)).apply((floats(2),))
        F.matmul(floats(2, 3), floats(3, 4))
    after = time.perf_counter()
    path = tmp_path / "trace.json"
    profile.save_trace(path)
    assert list(tmp_path.iterdir()) == [path]
    trace = json.loads(path.read_text())
    thread, *events = trace["traceEvents"]
    assert thread["ph"] == "M" and thread["args"] == {"name": "MainThread"}
    for event in events:
        assert event["ph"] == "X" and event["cat"] == "forward"
        assert (event["pid"], event["tid"]) == (thread["pid"], thread["tid"])
        assert before * 1e6 <= event["ts"] <= event["ts"] + event["dur"] <= after * 1e6
    inner, outer, matmul = events
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] <= matmul["ts"]
    assert matmul["name"] == "matmul"
    assert matmul["args"] == {"bytes": 4 * (6 + 12 + 8), "flops": 2 * 2 * 3 * 4}


def test_nested_profiles():
    with renga.profiler() as outer:
        F.exp(floats(2))
        with renga.profiler() as inner:
            F.sin(floats(2))
        with pytest.raises(KeyError):
            outer.__enter__()
    assert [event.name for event in outer.events] == ["exp", "sin"]
    assert [event.name for event in inner.events] == ["sin"]
    F.cos(floats(2))
    with inner:
        F.tan(floats(2))
    assert [event.name for event in inner.events] == ["sin", "tan"]
    assert len(outer.events) == 2
    assert renga.get_function_hooks() == {}


def test_threads(tmp_path):
    profile = renga.profiler()

    def seen():
        with profile:
            F.sin(floats(2))

    def unseen():
        F.cos(floats(2))

    with profile:
        for target in (seen, unseen):
            thread = threading.Thread(target=target, name=target.__name__)
            thread.start()
            thread.join()
        F.exp(floats(2))
    sin, exp = profile.events
    assert (sin.name, exp.name) == ("sin", "exp")
    assert sin.thread != exp.thread == threading.get_native_id()
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {exp.thread: "MainThread", sin.thread: "seen"}


def test_several_outputs():
    x = variable(2, 3, 4, 4)
    with renga.profiler() as profile:
        F.split_axis(x, 3, 1)
        F.max_pooling_2d(x, 2, return_indices=True)
    split, pool, _ = profile.events  # the last one converts the indices
    assert split.cost.bytes == 2 * 4 * 96
    # The indices are a plain array.
    indices = F.max_pooling_2d(x, 2, return_indices=True)[1]
    assert pool.cost.bytes == 4 * (96 + 24) + indices.size


def test_an_operation_that_raises():
    profile = renga.profiler()
    with pytest.raises(renga.utils.type_check.InvalidType), profile:
        F.matmul(floats(2, 3), floats(2, 3))
    with profile:
        with pytest.raises(renga.utils.type_check.InvalidType):
            F.matmul(floats(2, 3), floats(2, 3))
        F.exp(floats(2))
    (event,) = profile.events
    assert event.name == "exp" and event.own == event.elapsed
