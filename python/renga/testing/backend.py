"""The same test on several devices."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Callable

from renga.backends.device import Device
from renga.core import backend, configuration
from renga.testing import attr
from renga.testing.parameterized import unbundled

_DEFAULTS: dict[str, Any] = {
    "use_chainerx": False,
    "chainerx_device": None,
    "use_cuda": False,
    "cuda_device": None,
    "use_cudnn": "never",
    "cudnn_deterministic": False,
    "autotune": False,
    "cudnn_fast_batch_normalization": False,
    "use_ideep": "never",
}


class BackendConfig:
    """A device and its settings; a context in which they are active.

    Raises:
        ValueError: a setting does not exist.
    """

    def __init__(self, params: Mapping[str, object]) -> None:
        unknown = params.keys() - _DEFAULTS.keys()
        if unknown:
            raise ValueError(
                f"BackendConfig: expected known settings, got {sorted(unknown)}"
            )
        self._settings = {**_DEFAULTS, **params}
        vars(self).update(self._settings)
        self._contexts: list[contextlib.ExitStack] = []

    @property
    def device(self) -> Device:
        """The device to test on."""
        return backend.get_device(self._device_name)

    @property
    def _device_name(self) -> str:
        if self._settings["use_chainerx"]:
            return str(self._settings["chainerx_device"])
        if self._settings["use_cuda"]:
            return f"@cupy:{self._settings['cuda_device'] or 0}"
        return "@numpy" if self._settings["use_ideep"] == "never" else "@intel64"

    @property
    def xp(self) -> ModuleType:
        """The module of its arrays."""
        return self.device.xp

    def get_array(self, np_array: object) -> Any:
        """A NumPy array as one of the device's; None stays None."""
        return None if np_array is None else self.device.send(np_array)

    def get_func_str(self) -> str:
        """A short text for the name of a test."""
        words = [self._device_name.strip("@").replace(":", "_")]
        words += [
            f"{name}_{value}"
            for name, value in self._settings.items()
            if value != _DEFAULTS[name] and not name.endswith("_device")
        ]
        return "__".join(words)

    def get_pytest_marks(self) -> list[Any]:
        """Marks of the hardware and libraries that the test needs."""
        marks: list[Any] = []
        number = 0
        if self._settings["use_chainerx"]:
            marks.append(attr.chainerx)
            kind, _, index = str(self._settings["chainerx_device"]).partition(":")
            if kind == "cuda":
                marks.append(attr.gpu)
                number = int(index or 0)
        elif self._settings["use_cuda"]:
            marks.append(attr.gpu)
            number = self._settings["cuda_device"] or 0
            if self._settings["use_cudnn"] != "never":
                marks.append(attr.cudnn)
        elif self._settings["use_ideep"] != "never":
            marks.append(attr.ideep)
        return [*marks, attr.multi_gpu(number + 1)] if number else marks

    def __enter__(self) -> BackendConfig:
        context = contextlib.ExitStack()
        for name in ("use_cudnn", "cudnn_deterministic", "autotune", "use_ideep"):
            value = self._settings[name]
            context.enter_context(configuration.using_config(name, value))
        context.enter_context(backend.using_device(self.device))
        self._contexts.append(context)
        return self

    def __exit__(self, typ: Any, value: Any, traceback: Any) -> None:
        self._contexts.pop().close()

    def __repr__(self) -> str:
        settings = " ".join(f"{k}={v!r}" for k, v in self._settings.items())
        return f"<BackendConfig {settings}>"


def inject_backend_tests(
    method_names: list[str] | None, params: list[Mapping[str, object]]
) -> Callable[[type], object]:
    """Decorator that runs tests of a case once with each of several configurations.

    The methods, by default all tests that take an argument, are called with a
    ``BackendConfig`` and named after it. Names that the case does not have are passed
    over, so that cases can share a list.

    Raises:
        TypeError: the names are no list, or ``params`` no list of mappings.
    """
    if not isinstance(method_names, (list, type(None))):
        raise TypeError(
            f"inject_backend_tests: expected a list of names, got {method_names}"
        )
    if not isinstance(params, list) or not all(isinstance(p, Mapping) for p in params):
        raise TypeError(f"inject_backend_tests: expected a list of dicts, got {params}")
    configs = [BackendConfig(settings) for settings in params]

    def inject(decorated: Any) -> Any:
        cls = unbundled(decorated)
        names = _tests(cls) if method_names is None else method_names
        for name in names:
            method = getattr(cls, name, None)
            if method is None:  # of another case that shares the list
                continue
            setattr(cls, name, None)  # only callables are tests
            for i, config in enumerate(configs):
                test = _with_config(method, config)
                setattr(cls, f"{name}_{i}__{config.get_func_str()}", test)
        return decorated

    return inject


def _tests(cls: type) -> list[str]:
    return [
        name
        for name, value in inspect.getmembers(cls, callable)
        if name.startswith("test") and len(inspect.signature(value).parameters) > 1
    ]


def _with_config(method: Any, config: BackendConfig) -> Any:
    @functools.wraps(method)
    def test(self: Any) -> None:
        method(self, config)

    del test.__wrapped__  # its signature has one more argument
    for mark in config.get_pytest_marks():
        test = mark(test)
    return test
