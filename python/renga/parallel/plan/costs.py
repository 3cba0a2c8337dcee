"""What the tasks of an operation cost: measured seconds, or a model of a device."""

from __future__ import annotations

import dataclasses
import math
import os
import platform
from typing import Any

from renga import _core
from renga.core.types import Path
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.graph import PARAMETER, Operation
from renga.parallel.plan.json_file import read_json, write_json
from renga.utils.argument import check_number


@dataclasses.dataclass(frozen=True)
class Device:
    """A model of a device: a pass takes the longer of its products and its memory.

    Args:
        flops: floating-point operations per second.
        bandwidth: bytes per second of its memory.
        overhead: seconds of an operation, whatever its size.
        memory: bytes.
        update: seconds to update a byte of parameters, if they are measured.
        contention: how much longer computing takes while the device also adds up what
            ranks send it, as a part of its time. Copies do not slow it.

    Raises:
        TypeError: what should be a number is none.
        ValueError: a rate or the memory is not above 0, or a time is negative.
    """

    flops: float
    bandwidth: float
    overhead: float = 0.0
    memory: float = math.inf
    update: float | None = None
    contention: float = 0.0

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth", "memory"):
            check_number(f"Device: {name}", getattr(self, name), 0, is_above=True)
        check_number("Device: overhead", self.overhead, 0)
        check_number("Device: update", self.update or 0, 0)
        check_number("Device: contention", self.contention, 0)

    def seconds(self, flops: float, moved: float) -> float:
        """Of a pass with so many operations that reads and writes ``moved`` bytes."""
        return self.overhead + max(flops / self.flops, moved / self.bandwidth)


# Achieved rates are about 60 % of the peaks of NVIDIA's data sheets: 9.3 TFLOP/s and
# 732 GB/s; 2.8 TFLOP/s and 240 GB/s for each of the two devices of a K80.
P100 = Device(5.6e12, 440e9, 2e-5, 16e9)
K80 = Device(1.7e12, 145e9, 2e-5, 12e9)

# Bytes of an update that are read and written for each parameter: W, gW and a moment.
_UPDATE_BYTES = 20
Pass = tuple[float, float]  # seconds forward and backward


class Costs:
    """Seconds of tasks, by the operation's signature and the size of the task.

    Args:
        device: for operations that are not measured, and for updates.
        table: for each signature, the seconds of tasks by their splits, such as
            ``2x1x1x1r2``: degrees along the axes and of the reduction.
    """

    def __init__(
        self, device: Device, table: dict[str, dict[str, Pass]] | None = None
    ) -> None:
        self.device = device
        self.table = {} if table is None else table
        self._known: dict[Any, Pass] = {}

    def task(self, op: Operation, configuration: Configuration) -> Pass:
        """The seconds of the largest task, forward and backward.

        Between measured sizes they are interpolated as powers of the task's share of
        the operation, beyond them with the nearest measured time per share.
        """
        key = op.signature, configuration.degrees, configuration.reduction
        found = self._known.get(key)
        if found is None:
            measured = self.table.get(op.signature)
            if measured:
                found = _interpolated(measured, op, configuration)
            else:
                found = self._modelled(op, configuration)
            self._known[key] = found
        return found

    def update(self, op: Operation, configuration: Configuration) -> float:
        """The seconds to update a task's parameters; 0 without any."""
        return self.update_bytes(4 * parameter_share(op, configuration))

    def update_bytes(self, size: int) -> float:
        """The seconds to update so many bytes of parameters."""
        if self.device.update is not None:
            return self.device.update * size
        return _UPDATE_BYTES * size / 4 / self.device.bandwidth

    def _modelled(self, op: Operation, configuration: Configuration) -> Pass:
        if op.kind == "input":
            return 0.0, 0.0
        share = share_of(op, configuration)
        outputs = op.size * share * configuration.reduction
        moved = op.itemsize * (op.input_size * input_share(op, configuration) + outputs)
        moved += op.itemsize * parameter_share(op, configuration)
        forward = self.device.seconds(op.flops * share, moved)
        passes = 2 if op.parameters or op.shared else 1  # gradients of x and of W
        return forward, passes * forward

    def save(self, path: Path) -> None:
        """Writes the measured times, with the machine's identity, atomically."""
        content = {
            "machine": machine_identity(),
            "device": dataclasses.asdict(self.device),
            "table": self.table,
        }
        write_json(path, content)

    @classmethod
    def load(cls, path: Path) -> Costs:
        """The costs that ``save`` wrote on this machine.

        Raises:
            ValueError: the file is none of these, or of another machine.
        """
        content = read_json("Costs", path)
        known = {"machine", "device", "table"}
        if set(content) != known:
            raise ValueError(f"Costs: expected {sorted(known)} in {path}")
        if content["machine"] != machine_identity():
            raise ValueError(
                f"Costs: expected times of this machine, {machine_identity()}, in "
                f"{path}, got {content['machine']}"
            )
        table = {
            signature: {split: (float(f), float(b)) for split, (f, b) in times.items()}
            for signature, times in content["table"].items()
        }
        return cls(Device(**content["device"]), table)


def machine_identity() -> str:
    """What times depend on: processor, cores and threads."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("model name")]
        name = lines[0].partition(":")[2].strip() if lines else name
    except OSError:
        pass
    threads = _core.get_num_threads()
    return (
        f"{name}, {os.cpu_count()} cores, {threads} threads, renga {_core.__version__}"
    )


def split_text(degrees: tuple[int, ...], reduction: int) -> str:
    """The key of a split in a table of measured times."""
    return f"{'x'.join(map(str, degrees))}r{reduction}"


def share_of(op: Operation, configuration: Configuration) -> float:
    """The part of an operation that its largest task computes."""
    share = 1.0
    for extent, degree in zip(op.extents, configuration.degrees):
        share *= math.ceil(extent / degree) / extent
    return share * math.ceil(op.reduction / configuration.reduction) / op.reduction


def input_share(op: Operation, configuration: Configuration) -> float:
    """The part of its inputs that a task reads, without halos."""
    if not op.inputs:
        return 0.0
    total = 0.0
    for read in op.inputs:
        share = 1.0
        for axis in read.axes:
            if axis.source >= 0:
                share /= configuration.degrees[axis.source]
            elif axis.source == axis.REDUCTION:
                share /= configuration.reduction
        total += share * math.prod(read.extents)
    return total / max(1, op.input_size)


def parameter_share(op: Operation, configuration: Configuration) -> int:
    """The number of parameters of a task."""
    parts = configuration.reduction
    for kind, degree in zip(op.axes, configuration.degrees):
        parts *= degree if kind == PARAMETER else 1
    return math.ceil(op.parameters / parts)


def _interpolated(
    measured: dict[str, Pass], op: Operation, configuration: Configuration
) -> Pass:
    exact = measured.get(split_text(configuration.degrees, configuration.reduction))
    if exact is not None:
        return exact
    points = sorted((_share(op, text), times) for text, times in measured.items())
    share = share_of(op, configuration)
    below = max((p for p in points if p[0] <= share), default=points[0])
    above = min((p for p in points if p[0] >= share), default=points[-1])
    if below[0] == above[0]:
        factor = share / below[0]
        return below[1][0] * factor, below[1][1] * factor
    weight = math.log(share / below[0]) / math.log(above[0] / below[0])
    first, second = (
        max(a, 1e-9) ** (1 - weight) * max(b, 1e-9) ** weight
        for a, b in zip(below[1], above[1])
    )
    return first, second


def _share(op: Operation, text: str) -> float:
    degrees, _, reduction = text.partition("r")
    split = Configuration(tuple(map(int, degrees.split("x"))), (), int(reduction))
    return share_of(op, split)
