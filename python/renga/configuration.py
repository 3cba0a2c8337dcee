"""Settings: one global set, which every thread can override for itself."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Callable, TextIO

import numpy

from renga import _core
from renga.backends import cuda
from renga.nan_check import set_nan_check
from renga.suggestions import suggestion


class GlobalConfig:
    """The settings of every thread that has not its own; any name may be set.

    ``compute_precision`` is ``"highest"`` (IEEE float32), ``"high"`` (float32 as
    three bfloat16 products) or ``"medium"`` (bfloat16 products, float32 sums).
    """

    autotune: bool
    compute_mode: str | None
    compute_precision: str
    cudnn_deterministic: bool
    cudnn_fast_batch_normalization: bool
    debug: bool
    dtype: Any
    enable_backprop: bool
    in_recomputing: bool
    keep_graph_on_report: bool
    lazy_grad_sum: bool
    schedule_func: Any
    show_kernels: bool
    train: bool
    type_check: bool
    use_cudnn: str
    use_cudnn_tensor_core: str
    use_ideep: str
    use_static_graph: bool
    warn_nondeterministic: bool

    def __setattr__(self, name: str, value: Any) -> None:
        mirror = _GLOBAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(value)
        super().__setattr__(name, value)

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting and its value, one per line."""
        _print_settings(vars(self), file)


class _Choices(threading.local):
    """The settings that a thread has set."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}


class LocalConfig:
    """This thread's settings; a name it has not set reads the global one."""

    def __init__(self, global_config: GlobalConfig) -> None:
        object.__setattr__(self, "_choices", _Choices())
        object.__setattr__(self, "_global", vars(global_config))

    # Functions read settings on every call. Looking in both dicts first is four times
    # as fast as __getattr__, which runs only after the normal lookup has failed.
    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__(self, "_choices").by_name
        if name in own:
            return own[name]
        common = object.__getattribute__(self, "_global")
        if name in common:
            return common[name]
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        mirror = _LOCAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(value)
        self._choices.by_name[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"config: there is no setting {name!r}{suggestion(name, self._global)}"
        )

    def __delattr__(self, name: str) -> None:
        if self._choices.by_name.pop(name, _UNSET) is _UNSET:
            raise AttributeError(name)
        mirror = _LOCAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(None)

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting of this thread, one per line."""
        _print_settings({**self._global, **self._choices.by_name}, file)


def _print_settings(settings: dict[str, Any], file: TextIO) -> None:
    names = sorted(settings)
    width = max(map(len, names))
    for name in names:
        print(f"{name:<{width}} {settings[name]}", file=file)


_UNSET = object()


def _is_bfloat16(dtype: Any) -> bool:
    return getattr(dtype, "name", None) == "mixed_bfloat16"


def _set_nan_check(on: Any) -> None:
    set_nan_check(global_config.debug if on is None else on)


_OF_CONVOLUTIONS = ("use_cudnn", "cudnn_deterministic", "autotune")


def _set_convolutions_of_all(name: str) -> Callable[[Any], None]:
    def mirror(value: Any) -> None:
        cuda.set_convolution_options({**vars(global_config), name: value}, True)

    return mirror


def _set_convolutions_of_thread(name: str) -> Callable[[Any], None]:
    def mirror(value: Any) -> None:
        chosen = {**config._choices.by_name, name: value}
        own = {k: chosen[k] for k in _OF_CONVOLUTIONS if chosen.get(k) is not None}
        settings = {**vars(global_config), **own} if own else None
        cuda.set_convolution_options(settings, False)

    return mirror


# The core reads these in every operation, so it keeps its own copy. A local
# value of None means that this thread follows the global one again.
_GLOBAL_MIRRORS: dict[str, Callable[[Any], None]] = {
    "compute_precision": _core.set_default_compute_precision,
    "debug": _set_nan_check,
    "dtype": lambda value: _core.set_default_bfloat16_activations(_is_bfloat16(value)),
    "enable_backprop": _core.set_default_backprop_enabled,
    **{name: _set_convolutions_of_all(name) for name in _OF_CONVOLUTIONS},
}
_LOCAL_MIRRORS: dict[str, Callable[[Any], None]] = {
    "compute_precision": _core.set_compute_precision,
    "debug": _set_nan_check,
    "dtype": lambda value: _core.set_bfloat16_activations(
        None if value is None else _is_bfloat16(value)
    ),
    "enable_backprop": _core.set_backprop_enabled,
    "in_recomputing": lambda value: _core.freeze_statistics(bool(value)),
    **{name: _set_convolutions_of_thread(name) for name in _OF_CONVOLUTIONS},
}

global_config = GlobalConfig()
vars(global_config).update(
    autotune=False,
    compute_mode=None,
    compute_precision="highest",
    cudnn_deterministic=False,
    cudnn_fast_batch_normalization=False,
    debug=False,
    dtype=numpy.dtype(numpy.float32),
    enable_backprop=True,
    in_recomputing=False,
    keep_graph_on_report=False,
    lazy_grad_sum=False,
    schedule_func=None,
    show_kernels=False,
    train=True,
    type_check=True,
    use_cudnn="auto",
    use_cudnn_tensor_core="auto",
    use_ideep="never",
    use_static_graph=True,
    warn_nondeterministic=False,
)
config = LocalConfig(global_config)


@contextlib.contextmanager
def using_config(
    name: str, value: Any, config: LocalConfig | GlobalConfig = config
) -> Iterator[None]:
    """Context in which the setting ``name`` has ``value``, in this thread.

    >>> import renga
    >>> with renga.using_config("train", False):
    ...     print(renga.config.train)
    False
    >>> renga.config.train
    True
    """
    if not hasattr(config, name):
        _warn_of_unknown(name)
    with override(name, value, config):
        yield


@contextlib.contextmanager
def override(
    name: str, value: Any, config: LocalConfig | GlobalConfig = config
) -> Iterator[None]:
    """``using_config`` for a setting that need not exist."""
    own = config._choices.by_name if isinstance(config, LocalConfig) else vars(config)
    old = own.get(name, _UNSET)
    # During a backward pass the core has its own value, restored at the end.
    records = _core.thread_backprop_enabled()
    setattr(config, name, value)
    try:
        yield
    finally:
        if old is _UNSET:
            delattr(config, name)
        else:
            setattr(config, name, old)
        if name == "enable_backprop" and isinstance(config, LocalConfig):
            _core.set_backprop_enabled(records)


def _warn_of_unknown(name: str) -> None:
    hint = suggestion(name, vars(global_config))
    warnings.warn(
        f"using_config: there is no setting {name!r}{hint} (a setting of your own "
        f"exists once global_config.{name} is set)",
        stacklevel=4,
    )


def no_backprop_mode() -> contextlib.AbstractContextManager[None]:
    """Context in which this thread records no graph."""
    return using_config("enable_backprop", False)


def force_backprop_mode() -> contextlib.AbstractContextManager[None]:
    """Context in which this thread records the graph again."""
    return using_config("enable_backprop", True)


def get_compute_mode() -> str | None:
    """The setting ``compute_mode`` of this thread."""
    return config.compute_mode


def is_debug() -> bool:
    """Whether this thread is in debug mode, which checks every value for NaN."""
    return bool(config.debug)


def set_debug(debug: bool) -> None:
    """Turns debug mode on or off in this thread."""
    config.debug = debug


class DebugMode:
    """Context in which debug mode is on or off."""

    def __init__(self, debug: bool) -> None:
        self._context = using_config("debug", debug)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *args: Any) -> None:
        self._context.__exit__(*args)
