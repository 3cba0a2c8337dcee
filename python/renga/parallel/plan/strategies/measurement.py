"""Measured times of a model's operations, whole and split."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.communicators import Communicator
from renga.core.around_call import variables_in
from renga.core.configuration import using_config
from renga.core.gradients import backward, grad
from renga.core.link import Link
from renga.core.types import Array, Path
from renga.core.variable import Variable
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.parallel.channel.process_grid import process_grids
from renga.optimizers import SGD
from renga.parallel.plan.costs import Costs, Pass, split_text
from renga.parallel.plan.device import cache_filler, lower_quartile, measured_device
from renga.parallel.plan.graph import Operation
from renga.parallel.plan.strategies.traced_model import TracedCall, TracedModel
from renga.program import Program, Recorder

# Repetitions: at least three, and more of what is short.
_REPETITIONS, _MOST_REPETITIONS, _SECONDS = 3, 10, 0.5


def measure(
    model: Link, x: Array, comm: Communicator, cache: Path | None = None
) -> Costs:
    """The times of a model's links, as they are and split over the ranks.

    Links and the functions behind them are timed in training steps with whole and
    smaller batches; products also with the channels that a rank would have. Ranks
    measure at the same time, since they will also compute at the same time, and get
    rank 0's numbers. Running statistics of the model do not change.

    Args:
        x: an example of the input, or a tuple of several.
        cache: a JSON file of :meth:`Costs.save`. Times in it are not measured again,
            and new ones are added. A file of another machine is replaced.
    """
    inputs = x if isinstance(x, tuple) else (x,)
    model = copy.deepcopy(model)
    traced = TracedModel(model, inputs)
    costs: Costs | None = None
    if cache is not None and comm.rank == 0 and os.path.exists(cache):
        with contextlib.suppress(ValueError):  # such a file is replaced
            costs = Costs.load(cache)
    costs = comm.bcast_obj(costs) or Costs(comm.bcast_obj(measured_device(comm)[0]))
    operations = traced.graph.operations
    if any(_missing(op, min(comm.size, len(inputs[0])), costs) for op in operations):
        factor = _measure_batches(traced, comm, costs)
        for call in traced.calls:
            _measure_channels(call, traced, comm, costs, factor)
        costs = comm.bcast_obj(costs)
        if cache is not None and comm.rank == 0:
            costs.save(cache)
    return costs


def _missing(op: Operation, parts: int, costs: Costs) -> bool:
    """Whether an operation has not been measured for so many ranks."""
    degrees = (parts,) + (1,) * (len(op.extents) - 1)
    return split_text(degrees, 1) not in costs.table.get(op.signature, {})


def _measure_batches(traced: TracedModel, comm: Communicator, costs: Costs) -> float:
    """Measures operations with all samples and with those of a rank, and updates.

    Returns:
        How many times as long as its operations a step takes with those of a rank.
    """
    samples, factor = len(traced.inputs[0]), 1.0
    operations = traced.graph.operations
    size = sum(param.array.nbytes for param in traced.model.params())
    for parts in dict.fromkeys((1, min(comm.size, samples))):
        part = [x[: math.ceil(samples / parts)] for x in traced.inputs]
        passes, seconds, update = _time_steps(traced, part, comm)
        factor = seconds / sum(map(sum, passes))
        for i, own in enumerate(passes):
            call, index = traced.calls[i // 2], i % 2
            op = operations[call.functions if index else call.link]
            degrees = (parts,) + (1,) * (len(op.extents) - 1)
            times = factor * own[0], factor * own[1]
            costs.table.setdefault(op.signature, {})[split_text(degrees, 1)] = times
        rate = update / max(1, size)
        costs.device = dataclasses.replace(costs.device, update=rate)
    return factor


def _time_steps(
    traced: TracedModel, inputs: Sequence[Array], comm: Communicator
) -> tuple[list[Pass], float, float]:
    """Of each call of a link, and of the functions behind it; of both passes; of SGD.

    The passes take longer than their functions: arrays are allocated, gradients added
    up, and Python runs in between. An update finds the parameters in memory as the
    passes left them.
    """
    runs, model = [], traced.model
    optimizer = SGD(0.0).setup(model)

    def time_step() -> Pass:
        runs.append(_seconds_of(_timed_step(model, inputs), traced.calls))
        comm.barrier()
        start = time.perf_counter()
        run_passes(model, inputs)
        middle = time.perf_counter()
        optimizer.update()
        return middle - start, time.perf_counter() - middle

    step, update = _typical(comm, time_step)
    passes = [
        _lower_quartiles([run[i] for run in runs]) for i in range(2 * len(traced.calls))
    ]
    return passes, step, update


def _typical(comm: Communicator, time_once: Callable[[], Pass]) -> Pass:
    """The lower quartile of repetitions, each as long as on the slowest rank."""
    times: list[Pass] = []
    while len(times) < _REPETITIONS or (
        len(times) < _MOST_REPETITIONS and sum(map(sum, times)) < _SECONDS
    ):
        found = comm.allgather_obj(time_once())
        times.append((max(t[0] for t in found), max(t[1] for t in found)))
    return _lower_quartiles(times)


def _lower_quartiles(times: Sequence[Sequence[float]]) -> Pass:
    """Of the forward and of the backward passes."""
    return lower_quartile(t[0] for t in times), lower_quartile(t[1] for t in times)


def run_passes(model: Link, inputs: Sequence[object]) -> None:
    """Runs a forward and a backward pass of a training step."""
    with using_config("train", True):
        backward(outputs_of(model, inputs))


def _timed_step(model: Any, inputs: Sequence[Any]) -> Program:
    """The program of a step, with the times of both passes."""
    recorder = Recorder(model, timed=True)
    with using_config("train", True):
        with recorder:
            ys = outputs_of(model, inputs)
        with recorder.timing_backward():
            backward(ys)
    return recorder.program


def outputs_of(model: Link, inputs: Sequence[object]) -> list[Variable]:
    """The outputs of a forward pass, with gradients, before a backward pass."""
    model.cleargrads()
    ys = variables_in(model(*inputs))
    for y in ys:
        y.grad = y.xp.ones_like(y.array)
    return ys


def _seconds_of(program: Program, calls: Sequence[TracedCall]) -> list[list[float]]:
    """Of each call of a link, and of the functions behind it; of both passes."""
    links = {id(traced.call.link) for traced in calls}
    ranges = [call.calls for call in program.links if id(call.link) in links]
    seconds = [[0.0, 0.0] for _ in range(2 * len(calls))]
    for i, call in enumerate(program.calls):
        if call.depth == 0:  # not inside of another function
            ended = sum(own.stop <= i for own in ranges)
            is_inside = any(i in own for own in ranges)
            index = 2 * ended if is_inside else max(1, 2 * ended - 1)
            seconds[index][0] += call.seconds
            seconds[index][1] += call.backward_seconds
    return seconds


def _measure_channels(
    traced: TracedCall,
    model: TracedModel,
    comm: Communicator,
    costs: Costs,
    factor: float,
) -> None:
    """Products with the channels of one rank, and what comes between them."""
    op = model.graph.operations[traced.link]
    if comm.size == 1 or op.kind not in ("convolution", "linear"):
        return
    if getattr(traced.call.link, "groups", 1) > 1:
        return
    grids = {grid[:2] for grid in process_grids(comm.size)}
    table = costs.table.setdefault(op.signature, {})
    has_gradient = traced.call.x is not None and traced.call.x.is_inner
    for inputs, outputs in sorted(grids):
        if inputs <= op.reduction and outputs <= op.extents[1]:
            degrees = (1, outputs) + (1,) * (len(op.extents) - 2)
            times = _time_product(traced, inputs, outputs, has_gradient, comm)
            scaled = factor * times[0], factor * times[1]
            table[split_text(degrees, inputs)] = scaled


def _time_product(
    traced: TracedCall,
    inputs: int,
    outputs: int,
    has_gradient: bool,
    comm: Communicator,
) -> Pass:
    """As in a step, x has just been written, and the weight is in no cache."""
    link: Any = traced.call.link
    shape = traced.call.x_shape
    is_transposed = isinstance(link, Deconvolution2D)
    parts = (inputs, outputs) if is_transposed else (outputs, inputs)
    rows, columns = (math.ceil(n / p) for n, p in zip(link.W.shape, parts))
    random = numpy.random.RandomState(0)  # leaves the global generator as it is
    W = Variable(random.randn(rows, columns, *link.W.shape[2:]).astype(link.W.dtype))
    if link.W.ndim == 2:
        samples = math.prod(shape) // link.W.shape[1]
        values = random.randn(samples, columns)
    else:
        values = random.randn(shape[0], rows if is_transposed else columns, *shape[2:])
    x = Variable(values.astype(link.W.dtype), requires_grad=has_gradient)
    wanted = [x, W] if has_gradient else [W]
    fill_caches = cache_filler()

    def time_once() -> Pass:
        fill_caches()
        x.array[...] = values
        comm.barrier()
        start = time.perf_counter()
        y = _product(link, x, W)
        _finish(y)
        middle = time.perf_counter()
        fill_caches()  # other operations come between the passes
        gy = Variable(y.xp.ones_like(y.array))
        between = time.perf_counter()
        for g in grad([y], wanted, [gy]):
            _finish(g)
        return middle - start, time.perf_counter() - between

    return _typical(comm, time_once)


def _product(link: Any, x: Variable, W: Variable) -> Any:
    if W.ndim == 2:
        return F.linear(x, W)
    window = dict(stride=link.stride, pad=link.pad, dilate=link.dilate)
    if isinstance(link, Deconvolution2D):
        return F.deconvolution_2d(x, W, outsize=link.outsize, **window)
    return F.convolution_2d(x, W, **window)


def _finish(y: Variable) -> None:
    """Has a deferred array computed."""
    assert y.array is not None
