"""An updater with a process for each device."""

from __future__ import annotations

import copy
import multiprocessing
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from renga.backends import cuda
from renga.backends.cuda_loader import load_nccl, nccl_unavailable_reason
from renga.backends.device import DeviceLike
from renga.core import backend, reporter
from renga.core.configuration import (
    global_config,
    no_backprop_mode,
    using_config,
    values_of,
)
from renga.core.optimizer import Optimizer
from renga.dataset import convert
from renga.training.updaters.gathering import (
    gather,
    gather_grads,
    gather_params,
    scatter,
    scatter_grads,
    scatter_params,
    size_num_grads,
)
from renga.training.updaters.gradient_exchange import NcclExchange, PipeExchange, tell
from renga.training.updaters.standard_updater import StandardUpdater
from renga.utils.exceptions import pack

__all__ = [
    "MultiprocessParallelUpdater",
    "gather_grads",
    "gather_params",
    "scatter_grads",
    "scatter_params",
    "size_num_grads",
]

_NAME = "MultiprocessParallelUpdater"
# Not forked: neither CUDA nor the core's threads survive a fork.
_processes: Any = multiprocessing.get_context("spawn")


class MultiprocessParallelUpdater(StandardUpdater):
    """Divides batches among processes, each with a device and an iterator of its own.

    The gradients of all processes are summed on the first device, where the optimizer
    updates the model; the other devices then copy its parameters. As the loss is a mean
    over each process's batch, the sum is ``n`` times the gradient of one device. So
    ``optimizer.lr`` is divided by ``n``, or ``eps`` multiplied, with a warning. Values
    that workers report are dropped.

    Processes with GPUs communicate through NCCL, others through pipes. Processes are
    spawned: the model, the iterators and the converter have to be picklable, and the
    script has to guard its training by ``if __name__ == "__main__"``.

    Args:
        iterators: one for each device, over parts of the data of the same length.
        devices: a list, or a dictionary whose ``"main"`` is the first.

    Raises:
        RuntimeError: GPUs are asked for and there is no NCCL; or a worker fails.
        ValueError: devices and iterators do not fit together.
    """

    def __init__(
        self,
        iterators: Sequence[Any],
        optimizer: Optimizer,
        converter: Callable = convert.concat_examples,
        devices: Mapping[str, DeviceLike] | Sequence[DeviceLike] | None = None,
        auto_new_epoch: bool = True,
    ) -> None:
        self._devices = _devices_from(devices)
        self._use_nccl = _use_nccl(self._devices)
        count = len(self._devices)
        lengths = {len(iterator.dataset) for iterator in iterators}
        if len(iterators) != count or len(lengths) != 1:
            raise ValueError(
                f"{_NAME}: expected {count} iterators, as there are devices, over data "
                f"of one length, got {len(iterators)} of lengths {sorted(lengths)}"
            )
        _adapt_hyperparameters(optimizer, count)
        super().__init__(
            iterators[0], optimizer, converter, auto_new_epoch=auto_new_epoch
        )
        self._master = optimizer.target
        self._mpu_iterators = list(iterators)
        self._workers: list[Any] = []
        self._pipes: list[Any] = []
        self._exchange: Any = None

    @staticmethod
    def available() -> bool:
        """Whether it works on GPUs: there are GPUs and NCCL."""
        return nccl_unavailable_reason() == ""

    def setup_workers(self) -> None:
        """Starts the processes; the first update calls it."""
        if self._exchange is not None:
            return
        count = len(self._devices)
        unique_id = load_nccl().create_unique_id() if self._use_nccl else None
        self._master.cleargrads()
        # Unpickling in a worker must not use the device of the main process.
        model = copy.deepcopy(self._master).to_device("@numpy")
        for rank in range(1, count):
            pipe, end = _processes.Pipe()
            worker = _Worker(
                rank,
                count,
                self._devices[rank].name,
                model,
                self._mpu_iterators[rank],
                self.converter,
                unique_id,
                values_of(global_config),
                numpy.random.randint(2**31),
            )
            process = _processes.Process(target=_run_worker, args=(end, worker))
            process.start()
            end.close()  # else the main process would not see the worker end
            self._pipes.append(pipe)
            self._workers.append(process)
        self._master.to_device(self._devices[0])
        self._exchange = _connect(self._pipes, unique_id, 0, count, self._devices[0])

    def update_core(self) -> None:
        """Trains on one batch of each process."""
        iterator, optimizer = self._iterators["main"], self._optimizers["main"]
        device = self._devices[0]
        batch = iterator.next()
        if self._exchange is None:
            self._initialize(batch)
        self.setup_workers()
        scale = optimizer.loss_scale
        for pipe in self._pipes:
            tell(pipe, ("update", scale))
        with backend.using_device(device):
            loss = _loss(self._master, self.converter, batch, device)
            self._master.cleargrads()
            loss.backward(loss_scale=scale)
            if self._pipes:
                grads = self._exchange.add_gradients(gather(self._master, "grad"))
                scatter(self._master, grads, "grad")
            optimizer.update()
            if self._pipes:
                self._exchange.send_parameters(gather(self._master, "data"))
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def _initialize(self, batch: Any) -> None:
        """Initializes parameters whose shapes depend on the data."""
        if all(param.is_initialized for param in self._master.params()):
            return
        device = self._devices[0]
        self._master.to_device(device)
        with no_backprop_mode(), using_config("train", False):
            with backend.using_device(device), _without_reports(self._master):
                _loss(self._master, self.converter, batch, device)

    def finalize(self) -> None:
        """Ends the processes and the iterators."""
        for pipe in self._pipes:
            tell(pipe, ("finalize", None))
        for worker in self._workers:
            worker.join()
        self._exchange = None
        super().finalize()


class _Worker:
    """A worker process: computes gradients of its own batches."""

    def __init__(
        self,
        rank: int,
        count: int,
        device: str,
        model: Any,
        iterator: Any,
        converter: Callable,
        unique_id: bytes | None,
        settings: dict[str, Any],
        seed: int,
    ) -> None:
        self.rank, self.count, self.device = rank, count, device
        self.model, self.iterator, self.converter = model, iterator, converter
        self.unique_id, self.settings, self.seed = unique_id, settings, seed

    def run(self, pipe: Any) -> None:
        """Computes gradients until the main process sends ``finalize``."""
        for name, value in self.settings.items():
            setattr(global_config, name, value)
        numpy.random.seed(self.seed)
        device = backend.get_device(self.device)
        device.use()
        self.model.to_device(device)
        exchange = _connect([pipe], self.unique_id, self.rank, self.count, device)
        while True:
            job, scale = pipe.recv()
            if job == "finalize":
                break
            with _without_reports(self.model):
                batch = self.iterator.next()
                loss = _loss(self.model, self.converter, batch, device)
            self.model.cleargrads()
            loss.backward(loss_scale=scale)
            exchange.send_gradients(gather(self.model, "grad"))
            self.model.cleargrads()
            parameters = exchange.receive_parameters(gather(self.model, "data"))
            scatter(self.model, parameters, "data")
        self.iterator.finalize()


def _run_worker(pipe: Any, worker: _Worker) -> None:
    try:
        worker.run(pipe)
    except (EOFError, ConnectionError):
        pass  # the main process has ended
    except Exception as error:
        pipe.send(pack(error))


def _connect(
    pipes: Sequence[Any], unique_id: bytes | None, rank: int, count: int, device: Any
) -> Any:
    if unique_id is None:
        return PipeExchange(pipes)
    return NcclExchange(pipes, unique_id, rank, count, device.device.id)


def _without_reports(model: Any) -> Any:
    """A context in which values that the model reports are dropped."""
    observer = reporter.Reporter()
    observer.add_links("main", model)
    return observer.scope({})


def _loss(model: Any, converter: Callable, batch: Any, device: Any) -> Any:
    args, kwargs = convert.arguments_from(converter, batch, device)
    return model(*args, **kwargs)


def _devices_from(devices: Any) -> list[Any]:
    if isinstance(devices, Mapping):
        rest = dict(devices)
        devices = [rest.pop("main"), *rest.values()]
    if not isinstance(devices, (list, tuple)) or None in devices or not devices:
        raise ValueError(
            f"{_NAME}: expected a list or dictionary of devices, got {devices!r}"
        )
    return [backend.get_device(device) for device in devices]


def _use_nccl(devices: list[Any]) -> bool:
    on_gpu = [isinstance(device, cuda.GpuDevice) for device in devices]
    names = [device.name for device in devices]
    if not any(on_gpu):
        return False
    if not all(on_gpu) or len(set(names)) < len(names):
        raise ValueError(f"{_NAME}: expected different GPUs, or CPUs, got {names}")
    reason = nccl_unavailable_reason()
    if reason and len(devices) > 1:
        raise RuntimeError(f"{_NAME}: expected NCCL for {names}, got none: {reason}")
    return len(devices) > 1


def _adapt_hyperparameters(optimizer: Any, count: int) -> None:
    """Adapts hyperparameters to gradients that are ``count`` times as large."""
    kind = type(optimizer).__name__
    if kind in ("Adam", "AdaGrad", "RMSprop"):
        name, value = "eps", optimizer.eps * count
    elif kind in ("RMSpropGraves", "AdaDelta"):
        name, value = "eps", optimizer.eps * count**2
    elif hasattr(optimizer, "lr"):
        name, value = "lr", optimizer.lr / count
    else:
        return
    setattr(optimizer, name, value)
    warnings.warn(
        f"optimizer.{name} is changed to {value} by {_NAME} for new batch size.",
        stacklevel=3,
    )
