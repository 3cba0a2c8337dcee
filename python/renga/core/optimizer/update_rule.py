"""UpdateRule: how one parameter changes by its gradient."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.core import backend
from renga.core.optimizer.hooks import Hookable, call_for_param
from renga.core.optimizer.hyperparameter import DefaultHyperparameter, Hyperparameter
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array
from renga.core.variable import Variable, as_factor
from renga.utils.argument import check_count

DISPATCHING = ("update", "_update", "update_core", "update_core_gpu")
# A class that overrides one of these changes what the next step is.
MASTER = "fp32_param"
"""The name in files of the float32 values of a float16 parameter."""
_UPDATING = {*DISPATCHING, "update_core_cpu", "next_step"}


def require_own_rules(operation: str, optimizer: Any) -> None:
    """Checks that no other optimizer was set up for parameters of this one's model.

    That has replaced their update rules, of which each parameter has one.

    Raises:
        ValueError: if one was.
    """
    rules = [param.update_rule for param in optimizer.target.params()]
    if any(_is_of_another(rule, optimizer) for rule in rules):
        _refuse_rules(operation, optimizer)


def require_free_rules(params: Iterable[Parameter], optimizer: object) -> None:
    """Checks that an optimizer applies no rule that is exclusively another one's.

    Raises:
        ValueError: if it would.
    """
    for param in params:
        rule = param.update_rule
        if rule is not None and rule.is_exclusive and _is_of_another(rule, optimizer):
            _refuse_rules("update", optimizer)


def _refuse_rules(operation: str, optimizer: Any) -> None:
    name = min(
        name
        for name, param in optimizer.target.namedparams()
        if _is_of_another(param.update_rule, optimizer)
    )
    raise ValueError(
        f"{operation}: expected parameters that one optimizer updates, got {name}, "
        "whose update rule is that of another one"
    )


def _is_of_another(rule: Any, optimizer: Any) -> bool:
    if not isinstance(rule, UpdateRule) or not rule.is_of_setup:
        return False
    # A rule of the user's may have no hyperparameters of an optimizer.
    parent = rule.hyperparam.parent
    if parent is None or isinstance(parent, DefaultHyperparameter):
        return False
    return parent is not optimizer.hyperparam


class RuleValues(NamedTuple):
    """What an update rule has of its parameter, besides hyperparameters and hooks.

    Attributes:
        t: the count of updates.
        state: by name; None before the first update.
        master: the float32 values of a float16 parameter; None if there are none.
    """

    t: int = 0
    state: dict[str, Any] | None = None
    master: Array | None = None

    def named(self) -> dict[str, Array]:
        """The values of the state, and the float32 values as ``MASTER``."""
        state = self.state or {}
        return state.copy() if self.master is None else {**state, MASTER: self.master}

    def with_named(self, values: Mapping[str, Array]) -> RuleValues:
        """The same count with values by name; the same state if none of it is named."""
        state = {name: value for name, value in values.items() if name != MASTER}
        return RuleValues(self.t, state or self.state, values.get(MASTER))


class UpdateRule(Hookable):
    """Updates one parameter, with its ``state``.

    A subclass creates the state's arrays in ``init_state`` and overrides
    ``update_core``, or ``update_core_cpu`` and ``update_core_gpu``. A rule with
    ``enabled`` False does nothing. Hooks take the rule and the parameter.
    """

    is_elementwise = False
    """Whether the update is elementwise, so that arrays may be concatenated."""
    is_of_setup = False
    """Whether the optimizer's ``setup`` has made it, not the user."""
    is_exclusive = False
    """Whether ranks share what it updates, so that no other optimizer may apply it."""
    _awaits_shape = False  # a parameter's, whose updates count already

    def __init__(self, parent_hyperparam: Hyperparameter | None = None) -> None:
        self.hyperparam = Hyperparameter(parent_hyperparam)
        self.enabled = True
        self.t = 0
        self._state: dict[str, Any] | None = None
        self._state_device: str | None = None  # None: unknown
        self._use_fp32_update = False
        self._fp32_param: Variable | None = None
        self.device_scale: Any = None  # by which a float16 gradient is multiplied

    @property
    def state(self) -> Any:
        """The arrays of the rule's state, by name; None before the first update."""
        return self._state

    def get_values(self) -> RuleValues:
        """The count of updates, the state, and the float32 copy of the parameter."""
        master = self._fp32_param
        return RuleValues(self.t, self._state, None if master is None else master.array)

    def set_values(self, values: RuleValues) -> None:
        """Sets what ``get_values`` returns; arrays may be on any device."""
        self.t, self._state, master = values
        self._state_device = None
        self._fp32_param = None if master is None else Variable(master)

    def update(self, param: Parameter) -> None:
        """Changes ``param`` by its gradient, with the hooks before and after it.

        An uninitialised parameter is unchanged, though its updates are counted as those
        without a gradient are: a rule's own ``update_core`` alone gets it.
        """
        if not self.enabled:
            return
        self.t += 1
        own = type(self).update_core is not UpdateRule.update_core
        if not (param.is_initialized or own):
            self._awaits_shape = True
            return
        if self.updates_in_fp32(param):
            self._update_in_fp32(param)
        else:
            _unscale_grad(param)
            self._update(param)

    def updates_in_fp32(self, param: Parameter) -> bool:
        """Whether it updates a float32 copy of ``param``."""
        return self._use_fp32_update and param.dtype == numpy.float16

    @property
    def sees_whole(self) -> bool:
        """Whether it has to see whole parameters where ranks have shards of them.

        That is a rule of the program which may depend on other elements than its own.
        """
        return not (self.is_elementwise or type(self).__module__.startswith("renga."))

    def _update(self, param: Any) -> None:
        with param.seen_whole() if self.sees_whole else contextlib.nullcontext():
            if param.is_initialized:
                self.prepare_state(param)
            for hook in self.update_hooks("pre").values():
                call_for_param(hook, self, param)
            self.update_core(param)
            for hook in self.update_hooks("post").values():
                call_for_param(hook, self, param)

    def prepare_state(self, param: Parameter) -> None:
        """Makes the state, or sends it to the device of the parameter."""
        if self._state is None:
            self._state = {}
            self.init_state(param)
        elif self._state_device != param.device_name:
            for name, value in self._state.items():
                if isinstance(value, backend.get_array_types()):
                    self._state[name] = param.device.send(value)
        self._state_device = param.device_name

    def _update_in_fp32(self, param: Any) -> None:
        master = self._fp32_param
        if not isinstance(master, Parameter):  # there is none, or a loaded array
            array = None if master is None else param.part_of(master.array)
            if param.is_initialized:
                array = param.array.astype(numpy.float32) if array is None else array
                master = self._fp32_param = param.with_array(array)
            else:
                master = param.with_array(array)
        master.to_device(param.device)
        # Divides by the loss scale in float32: small gradients would vanish in float16.
        grad = param.grad
        master.grad = None if grad is None else grad.astype(numpy.float32)
        master.loss_scale = param.loss_scale
        _unscale_grad(master)
        if self.device_scale is not None and master.grad is not None:
            master.grad /= as_factor(self.device_scale, master.grad)
        self._update(master)
        if param.is_initialized:
            param.array[...] = master.array

    def update_core(self, param: Parameter) -> None:
        """Changes ``param`` alone, without the hooks."""
        if param.grad is None:
            return
        if isinstance(param.array, numpy.ndarray):
            self.update_core_cpu(param)
        else:
            self.update_core_gpu(param)

    def update_core_cpu(self, param: Parameter) -> None:
        """Changes ``param`` on the CPU."""
        raise NotImplementedError

    def update_core_gpu(self, param: Parameter) -> None:
        """Changes ``param`` on a GPU."""
        raise NotImplementedError

    def is_one_pass(self, param: Parameter) -> bool:
        """Whether an update is one pass of the core, without user code before it."""
        return False

    def is_maskable(self) -> bool:
        """Whether a device may decide that an update changes nothing."""
        return False

    def fuse(self, param: Parameter, scale: float = 1.0, decay: float = 0.0) -> bool:
        """Makes the next update change the gradient in its own pass.

        It becomes ``scale * grad + decay * param``. Returns False, and does nothing, if
        the rule does not support it or user code might read the gradient before.
        """
        return False

    def init_state(self, param: Parameter) -> None:
        """Fills ``state`` before the first update of ``param``."""

    def init_zeros(self, param: Parameter, *names: str) -> None:
        """Adds arrays of zeros like that of ``param`` to ``state``, by these names."""
        for name in names:
            # The core's allocator gives the memory, as it reuses that of the step's
            # activations.
            state = _core.empty(param.shape, param.dtype, param.device_name)
            state[...] = 0
            self.state[name] = state

    def predict(self, param: Parameter, steps: int, out: Array | None = None) -> Array:
        """The values of ``param`` expected after ``steps`` further updates.

        They are the present ones and ``steps`` times the next step, if the moments stay
        as they are: exact if gradient and moments do not change. Before the first
        update, and of a disabled rule, they are the present values. Neither ``param``
        nor the rule is changed; hooks after the update are not considered.

        Args:
            steps: at least 0.
            out: an array of the parameter's shape and dtype to write into, which shares
                no memory with the parameter, its gradient or the rule's state.

        Returns:
            ``out``, or a new array.

        Raises:
            NotImplementedError: the rule has no ``next_step``.
            TypeError, ValueError, InvalidType: ``steps`` or ``out`` is not such.

        Source: PipeOptim, arXiv 2312.00839; with momentum also SpecTrain, arXiv
        1809.02839.
        """
        check_count(f"{type(self).__name__}.predict: steps", steps, 0)
        return _core.optimizers.predict([self.prediction(param, out)], steps)[0]

    def prediction(self, param: Parameter, out: Array | None) -> tuple[object, ...]:
        """The arguments that ``predict`` passes to the core for one parameter."""
        if not param.is_initialized:
            raise ValueError(
                f"{type(self).__name__}.predict: expected an initialized parameter, "
                f"got {param.name or 'one'} without an array"
            )
        if not self.enabled:
            return out, param, None, None
        self._require_next_step(param)
        if self.t == 0 or self._state is None:
            return out, param, None, None
        master = None
        if self.updates_in_fp32(param):
            master = self._fp32_param
            if master is None:
                master = param.array.astype(numpy.float32)
        return out, param, master, self.next_step(param)

    def next_step(self, param: Parameter) -> object:
        """The step of an update that leaves the moments as they are, for ``predict``.

        Called after the first update. A rule that overrides ``update_core`` or
        ``update_core_cpu`` and can predict returns a ``ScaledStep`` or ``AdamMoments``
        of ``_core.optimizers``, or None for no step.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.predict: expected a rule that can predict (of SGD, "
            "MomentumSGD, NesterovAG, or Adam and its variants) and an update that is "
            "not overridden"
        )

    def _require_next_step(self, param: Parameter) -> None:
        """Raises NotImplementedError if an update is overridden without its step."""
        for owner in (self, *type(self).__mro__):
            own = vars(owner)
            if not _UPDATING.isdisjoint(own):
                if "next_step" not in own:
                    UpdateRule.next_step(self, param)
                return

    @property
    def has_fp32_update(self) -> bool:
        """Whether a float16 parameter is updated through a float32 copy of it."""
        return self._use_fp32_update

    def use_fp32_update(self, flag: bool = True) -> None:
        """Sets whether a float16 parameter is updated through a float32 copy."""
        self._use_fp32_update = flag
        if not flag:
            self._fp32_param = None

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the count of updates and the state.

        Before its first update a rule has no state, and none is in the file; that of
        an uninitialised parameter is None there.
        """
        self._state_device = None
        if isinstance(serializer, Deserializer):
            self._load(serializer)
            return
        serializer("t", self.t)
        is_none = self._state is None and self._awaits_shape
        state = self._without_state() if is_none else self._state
        for name, value in (state or {}).items():
            serializer(name, value)
        if self._use_fp32_update:
            serializer(MASTER, self.get_values().master)

    def _load(self, serializer: Any) -> None:
        state = None if self._state is None else dict(self._state)
        old = {"t": self.t, "_state": state, "_fp32_param": self._fp32_param}
        serializer.on_failure(functools.partial(vars(self).update, old))
        self.t = serializer("t", self.t)
        state = self._without_state() if state is None else state
        if self.t > 0 or all(_is_stored(serializer, name) for name in state):
            loaded = {name: serializer(name, value) for name, value in state.items()}
            complete = all(
                value is not None or _is_stored_none(serializer, name)
                for name, value in loaded.items()
            )
            is_none = bool(loaded) and all(x is None for x in loaded.values())
            self._awaits_shape = complete and is_none
            self._state = loaded if complete and not is_none else None
        else:
            self._state = None
        if self._use_fp32_update:
            master = self._fp32_param
            array = serializer(MASTER, None if master is None else master.array)
            if master is None or array is not master.array:
                self._fp32_param = None if array is None else Variable(array)

    def _without_state(self) -> dict[str, Any]:
        """None for each entry of the state, which ``init_state`` alone defines."""
        one = numpy.zeros(1, numpy.float32)
        other = copy.copy(self)
        other._state = {}
        param = Parameter(one)
        param.grad = one
        other.init_state(param)
        return dict.fromkeys(other._state)


def _is_stored(serializer: Any, name: str) -> bool:
    try:
        return serializer(name, None) is not None
    except KeyError:
        return False


def _is_stored_none(serializer: Any, name: str) -> bool:
    """Whether an entry that was loaded as None is in the file at all."""
    return serializer(name, 0.0) is None


def _unscale_grad(param: Any) -> None:
    """Divides the gradient by the loss scale of backward(), if any."""
    scale, param.loss_scale = param.loss_scale, None
    if scale is not None and param.grad is not None:
        param.grad /= param.grad.dtype.type(scale)
