"""Settings: one global set, which every thread can override for itself."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Callable, Iterator, TextIO

from renga import _core


class GlobalConfig:
    """The settings every thread sees unless it has its own; any name may be set.

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
    train: bool
    type_check: bool
    use_cudnn: str
    use_cudnn_tensor_core: str
    use_ideep: str
    use_static_graph: bool
    warn_nondeterministic: bool

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        mirror = _GLOBAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(value)

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting and its value, one per line."""
        _print_settings(vars(self), file)


class LocalConfig(threading.local):
    """This thread's settings; a name it has not set reads the global one."""

    _global: GlobalConfig

    def __init__(self, global_config: GlobalConfig) -> None:
        vars(self)["_global"] = global_config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._global, name)

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[name] = value
        mirror = _LOCAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(value)

    def __delattr__(self, name: str) -> None:
        if vars(self).pop(name, _UNSET) is _UNSET:
            raise AttributeError(name)
        mirror = _LOCAL_MIRRORS.get(name)
        if mirror is not None:
            mirror(None)

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting as this thread sees it, one per line."""
        settings = {**vars(self._global), **vars(self)}
        del settings["_global"]
        _print_settings(settings, file)


def _print_settings(settings: dict[str, Any], file: TextIO) -> None:
    names = sorted(settings)
    width = max(map(len, names))
    for name in names:
        print(f"{name:<{width}} {settings[name]}", file=file)


_UNSET = object()

# The core asks for these on every operation, so it keeps its own copy. A local
# value of None means that this thread follows the global one again.
_GLOBAL_MIRRORS: dict[str, Callable[[Any], None]] = {
    "enable_backprop": _core.set_default_backprop_enabled,
}
_LOCAL_MIRRORS: dict[str, Callable[[Any], None]] = {
    "enable_backprop": _core.set_backprop_enabled,
}

global_config = GlobalConfig()
global_config.autotune = False
global_config.compute_mode = None
global_config.compute_precision = "highest"
global_config.cudnn_deterministic = False
global_config.cudnn_fast_batch_normalization = False
global_config.debug = False
global_config.dtype = _core_dtype = None
