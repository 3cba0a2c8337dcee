"""Settings: one global set, which every thread can override for itself."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from typing import Any, Callable, TextIO

import numpy

from renga import _core
from renga._runtime.suggestions import suggestion


class GlobalConfig:
    """The settings of every thread that has not its own; any name may be set."""

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting and its value, one per line."""
        _print_settings(self, file)


class Setting:
    """A setting: its default, what it does and, where they are few, its values.

    ``follow`` is called with each value that is set, None where a thread takes the
    global one again, and with the core's settings of all threads or of this one.
    """

    def __init__(
        self,
        default: object,
        text: str,
        values: tuple[object, ...] = (),
        follow: Callable[..., None] | None = None,
    ) -> None:
        self.default, self.text, self.values = default, text, values
        self.follow = follow

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Settings | None, kind: type) -> Any:
        return self if owner is None else vars(owner)[self.name]

    def __set__(self, owner: Settings, value: Any) -> None:
        vars(owner)[self.name] = value
        if self.follow is not None:
            self.follow(value, _core.process_settings)


class CoreSetting(Setting):
    """A setting that the core keeps, as it reads it in every operation."""

    def __init__(self, text: str, values: tuple[object, ...] = (False, True)) -> None:
        super().__init__(None, text, values)

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.default = getattr(_core.process_settings, name)

    def __get__(self, owner: Settings | None, kind: type) -> Any:
        return self if owner is None else getattr(_core.process_settings, self.name)

    def __set__(self, owner: Settings, value: Any) -> None:
        setattr(_core.process_settings, self.name, value)


def _follow_dtype(value: Any, core: Any) -> None:
    """Has products return bfloat16 where the dtype is ``mixed_bfloat16``."""
    is_bfloat16 = getattr(value, "name", None) == "mixed_bfloat16"
    core.bfloat16_activations = None if value is None else is_bfloat16


def _follow_train(value: Any, core: Any) -> None:
    core.training = None if value is None else bool(value)


def _follow_use_cudnn(value: Any, core: Any) -> None:
    core.cudnn = None if value is None else value != "never"


class Settings(GlobalConfig):
    """The settings of this process."""

    autotune = CoreSetting(
        "On CUDA, the first convolution of each shape runs several engines of cuDNN, "
        "later ones the fastest of them."
    )
    compute_mode = Setting(None, "What `renga.get_compute_mode` answers.")
    compute_precision = CoreSetting(
        "Of products of float32 arrays, in convolutions too: IEEE float32; three "
        "bfloat16 products for each; bfloat16 products with float32 sums.",
        ("highest", "high", "medium"),
    )
    cudnn_deterministic = CoreSetting(
        "On CUDA, convolutions sum in the same order in every run."
    )
    cudnn_fast_batch_normalization = Setting(False, "Not read.", (False, True))
    debug = Setting(
        False,
        "Functions raise an error where they compute NaN, forward and backward, and "
        "collectives compare the calls of their ranks.",
        (False, True),
    )
    dtype = Setting(
        numpy.dtype(numpy.float32),
        "Of new parameters, data sets and other arrays for which none is given; with "
        "`renga.mixed_bfloat16`, activations are bfloat16 and parameters float32.",
        follow=_follow_dtype,
    )
    enable_backprop = CoreSetting(
        "Operations are recorded in the graph, as `backward()` needs."
    )
    in_recomputing = CoreSetting(
        "A forward pass runs again, as in `F.forget`: running statistics, which its "
        "first run has updated, stay as they are."
    )
    keep_graph_on_report = Setting(
        False, "Reported variables keep the graph before them.", (False, True)
    )
    lazy_grad_sum = Setting(False, "Not read.", (False, True))
    schedule_func = Setting(None, "Not read.")
    show_kernels = Setting(
        False, "Prints which kernel each convolution selects.", (False, True)
    )
    train = Setting(
        True,
        "Links and functions behave as in training: dropout drops, and batch "
        "normalization uses the statistics of the batch.",
        (False, True),
        _follow_train,
    )
    type_check = Setting(
        True, "Functions in Python check the types of their inputs.", (False, True)
    )
    use_cudnn = Setting(
        "auto",
        "Whether convolutions on CUDA run on cuDNN.",
        ("always", "auto", "never"),
        _follow_use_cudnn,
    )
    use_cudnn_tensor_core = Setting(
        "auto",
        "What `renga.should_use_cudnn_tensor_core` answers; auto: for float16.",
        ("always", "auto", "never"),
    )
    use_ideep = Setting(
        "never",
        "What `renga.backends.intel64.should_use_ideep` answers.",
        ("always", "auto", "never"),
    )
    use_static_graph = Setting(
        True, "`static_graph` records calls and runs them again.", (False, True)
    )
    warn_nondeterministic = Setting(
        False,
        "Functions warn where two runs may compute different numbers.",
        (False, True),
    )

    def __init__(self) -> None:
        for setting in declared_settings(self).values():
            if not isinstance(setting, CoreSetting):
                vars(self)[setting.name] = setting.default


def declared_settings(config: GlobalConfig) -> dict[str, Setting]:
    """The settings of renga that ``config`` has, by name."""
    members = vars(type(config)).items()
    return {name: member for name, member in members if isinstance(member, Setting)}


class _Own(threading.local):
    """The settings that a thread has set, but those that the core keeps."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}


_get = object.__getattribute__


class LocalConfig:
    """This thread's settings; a name it has not set reads the global one."""

    def __init__(self, global_config: GlobalConfig) -> None:
        object.__setattr__(self, "_own", _Own())
        object.__setattr__(self, "_common", global_config)
        object.__setattr__(self, "_global", vars(global_config))
        object.__setattr__(self, "_declared", declared_settings(global_config))

    # Functions read settings on every call. Looking in both dicts first is four times
    # as fast as __getattr__, which runs only after the normal lookup has failed.
    def __getattribute__(self, name: str) -> Any:
        own = _get(self, "_own").by_name
        if name in own:
            return own[name]
        common = _get(self, "_global")
        if name in common:
            return common[name]
        if isinstance(_get(self, "_declared").get(name), CoreSetting):
            kept = getattr(_core.thread_settings, name)
            return getattr(_core.process_settings, name) if kept is None else kept
        return _get(self, name)

    def __getattr__(self, name: str) -> Any:
        hint = suggestion(name, values_of(self))
        raise AttributeError(f"config: there is no setting {name!r}{hint}")

    def __setattr__(self, name: str, value: Any) -> None:
        setting = _get(self, "_declared").get(name)
        if isinstance(setting, CoreSetting):
            setattr(_core.thread_settings, name, value)
            return
        _get(self, "_own").by_name[name] = value
        if setting is not None and setting.follow is not None:
            setting.follow(value, _core.thread_settings)

    def __delattr__(self, name: str) -> None:
        if _own_value(self, name) is _UNSET:
            raise AttributeError(name)
        setattr(self, name, None)
        _get(self, "_own").by_name.pop(name, None)

    def show(self, file: TextIO = sys.stdout) -> None:
        """Prints every setting of this thread, one per line."""
        _print_settings(self, file)


def values_of(config: LocalConfig | GlobalConfig) -> dict[str, object]:
    """Every setting of the threads, or of this one, and its value."""
    names: set[str] = set()
    if isinstance(config, LocalConfig):
        names.update(_get(config, "_own").by_name)
        common = _get(config, "_common")
    else:
        common = config
    names.update(vars(common), declared_settings(common))
    return {name: getattr(config, name) for name in sorted(names)}


def _print_settings(config: LocalConfig | GlobalConfig, file: TextIO) -> None:
    values = values_of(config)
    width = max(map(len, values))
    for name, value in values.items():
        print(f"{name:<{width}} {value}", file=file)


_UNSET = object()


def _own_value(config: LocalConfig | GlobalConfig, name: str) -> Any:
    """The value of a setting if it is set in ``config`` itself, else _UNSET."""
    if isinstance(config, GlobalConfig):
        return getattr(config, name, _UNSET)
    own = _get(config, "_own").by_name
    if name in own or not isinstance(_get(config, "_declared").get(name), CoreSetting):
        return own.get(name, _UNSET)
    kept = getattr(_core.thread_settings, name)
    return _UNSET if kept is None else kept


global_config = Settings()
config = LocalConfig(global_config)


class _ConfigContext(contextlib.ContextDecorator):
    """A context that may be entered again, also within itself.

    A setting stays as it is after ``__enter__()``, whether or not the object lives.
    """

    def __init__(
        self, name: str, value: object, config: LocalConfig | GlobalConfig
    ) -> None:
        self.name = name
        self.value = value
        self.config = config
        self._old_values: list[Any] = []

    def _recreate_cm(self) -> _ConfigContext:
        # Calls of a decorated function may run in several threads at once.
        return type(self)(self.name, self.value, self.config)

    def __enter__(self) -> None:
        old = _own_value(self.config, self.name)
        setattr(self.config, self.name, self.value)
        self._old_values.append(old)

    def __exit__(self, *_: object) -> None:
        old = self._old_values.pop()
        if old is _UNSET:
            delattr(self.config, self.name)
        else:
            setattr(self.config, self.name, old)


def using_config(
    name: str, value: object, config: LocalConfig | GlobalConfig = config
) -> contextlib.AbstractContextManager[None]:
    """Context in which the setting ``name`` has ``value``, in this thread.

    >>> import renga
    >>> with renga.using_config("train", False):
    ...     print(renga.config.train)
    False
    >>> renga.config.train
    True
    """
    if not hasattr(config, name):
        hint = suggestion(name, values_of(global_config))
        warnings.warn(
            f"using_config: there is no setting {name!r}{hint} (a setting of your own "
            f"exists once global_config.{name} is set)",
            stacklevel=2,
        )
    return _ConfigContext(name, value, config)


def override(name: str, value: object) -> contextlib.AbstractContextManager[None]:
    """``using_config`` for a setting that need not exist."""
    return _ConfigContext(name, value, config)


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
