"""GradientMethod: an optimizer with one update rule for every parameter."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import numpy

from renga import _core
from renga._runtime.suggestions import suggestion
from renga.core.link import Link
from renga.core.optimizer.base import Optimizer
from renga.core.optimizer.device_loss_scale import DeviceLossScale
from renga.core.optimizer.fused_rule import FusedRule, default_values_of
from renga.core.optimizer.hyperparameter import (
    Hyperparameter,
    HyperparameterProxy,
    check_hyperparameter,
)
from renga.core.optimizer.joint_updates import update_params
from renga.core.optimizer.loss_scaling import LossScaling
from renga.core.optimizer.update_rule import UpdateRule, require_free_rules
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable, check_loss
from renga.optimizer_hooks.norm import (
    GradientClipping,
    GradientHardClipping,
    GradientLARS,
)
from renga.optimizer_hooks.penalties import Lasso, WeightDecay
from renga.utils.argument import check_count
from renga.utils.meta import is_method_of

if TYPE_CHECKING:  # for which alone it is
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Callable[[Any], Any]:
        """Says that a decorator makes constructors of annotated attributes."""
        return lambda decorator: decorator


_Self = TypeVar("_Self", bound="GradientMethod")
_Kind = TypeVar("_Kind", bound="type[GradientMethod]")

DEFAULT: Any = object()
"""The value that the rule of an optimizer has for a hyperparameter."""

# User code may override these to see or change the loss scale.
_SCALING = ("check_nan_in_grads", "is_safe_to_update", "update_loss_scale")
_MASKABLE_HOOKS = {
    GradientClipping,
    GradientHardClipping,
    GradientLARS,
    Lasso,
    WeightDecay,
}


def _warn_of_untrained(model: Link) -> None:
    trained = {id(param) for param in model.params()}
    if not trained:
        warnings.warn(
            f"Optimizer.setup: {type(model).__name__} has no parameters to train: were "
            "its links assigned within `with self.init_scope():`?",
            stacklevel=3,
        )
    for name, link in _links_in_containers(model):
        # Parameters without elements are trained by another rank of a pipeline.
        if any(id(p) not in trained and not p.is_meta for p in link.params()):
            warnings.warn(
                f"Optimizer.setup: {name} holds links that are not registered and will "
                "not be trained: use a ChainList or add_link()",
                stacklevel=3,
            )
            return


def _warn_of_first_nan(model: Link) -> None:
    """Gradients are initially NaN, and remain so if backward() adds to them."""
    for name, param in model.namedparams(include_uninit=False):
        grad = param.grad
        if grad is not None and grad.size and math.isnan(grad[(0,) * grad.ndim]):
            warnings.warn(
                f"update: the gradient of {name} is NaN at the first update: call "
                "model.cleargrads() before loss.backward(), unless the loss is NaN",
                stacklevel=3,
            )
            return


def _links_in_containers(model: Link) -> Iterator[tuple[str, Link]]:
    """The links in lists, tuples and dictionaries that are attributes of links."""
    for link in model.links():
        for name, value in vars(link).items():
            items = value.values() if isinstance(value, dict) else value
            if isinstance(value, (dict, list, tuple)):
                for item in items:
                    if isinstance(item, Link):
                        yield f"{type(link).__name__}.{name}", item


def _checked_init(cls: type) -> Callable[..., None]:
    """``__init__`` of ``cls`` with a check of its arguments."""
    init = vars(cls)["__init__"]
    known = inspect.signature(init).parameters
    is_ours = cls.__module__.startswith("renga.optimizers.")
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return init

    @functools.wraps(init)
    def checked(
        self: GradientMethod, *args: float | Variable | None, **kwargs: object
    ) -> None:
        for given, name in (("lr", "alpha"), ("alpha", "lr")):
            if given in kwargs and given not in known and name in known:
                raise TypeError(
                    f"{type(self).__name__}: the learning rate is called {name}, "
                    f"got {given}={kwargs[given]!r}"
                )
        for given in kwargs.keys() - known.keys():
            raise TypeError(
                f"{type(self).__name__}: got an unexpected argument {given!r}"
                f"{suggestion(given, known)}"
            )
        init(self, *args, **kwargs)
        if is_ours:
            values = vars(self.hyperparam)
            for name in values.keys() & known.keys():
                check_hyperparameter(self, name, values[name])

    return checked


class GradientMethod(Optimizer):
    """Base of the optimizers that need only the gradients.

    A subclass gives its hyperparameters to ``__init__`` by their names, or sets them in
    ``hyperparam``, and makes its rule in ``create_update_rule``.
    """

    _rule: type[UpdateRule] | None = None  # what create_update_rule makes
    _use_fp32_update = False

    def __init__(self, **hyperparameters: float) -> None:
        super().__init__()
        self.hyperparam = Hyperparameter()
        vars(self.hyperparam).update(hyperparameters)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _checked_init(cls)  # type: ignore[method-assign]

    def use_cleargrads(self, use: bool = True) -> None:
        """Does nothing: ``update`` clears gradients. Deprecated, as in Chainer."""
        warnings.warn(
            "use_cleargrads is deprecated, and has no effect",
            DeprecationWarning,
            stacklevel=2,
        )

    def setup(self: _Self, link: Link) -> _Self:
        """Makes ``link`` the target and gives its parameters update rules."""
        super().setup(link)
        _warn_of_untrained(link)
        for param in link.params_of_all_stages():
            param.update_rule = self.create_update_rule()
            param.update_rule.is_of_setup = True
            if self._use_fp32_update:
                param.update_rule.use_fp32_update()
        return self

    def create_update_rule(self) -> UpdateRule:
        """A new rule whose hyperparameters follow those of the optimizer."""
        if self._rule is None:
            raise NotImplementedError
        return self._rule(self.hyperparam)

    def use_fp32_update(self, flag: bool = True) -> None:
        """Whether float16 parameters are updated through float32 copies of them."""
        self._use_fp32_update = flag
        if self.target is None:
            return
        for param in self.target.params_of_all_stages():
            if param.update_rule is not None:
                param.update_rule.use_fp32_update(flag)

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: object,
        **kwds: object,
    ) -> None:
        """Updates the parameters of the target by their gradients.

        With a loss function, it is called with the other arguments first, and its
        result is differentiated.

        Frees what graphs have saved for their backward pass, if ``backward()`` has run
        through them and only their losses keep them alive.
        """
        self.require_target("update")
        self._require_own_parts("update")
        if lossfun is not None:
            loss: Any = lossfun(*args, **kwds)
            check_loss(f"{type(self).__name__}.update", loss)
            self.target.cleargrads()
            device = self._device_that_scales(loss)
            if device is not None:
                self._update_masked(self._loss_scale_on(device), loss)
                return
            loss.backward(loss_scale=self.loss_scale)
            del loss  # frees the graph before the update
        params = list(self.target.params())
        self._reallocate(params)
        if self.t == 0 and not self._loss_scaling_is_dynamic:
            _warn_of_first_nan(self.target)
        self.check_nan_in_grads()
        safe = self.is_safe_to_update()
        before_update = self._call_pre_hooks() if safe else None
        self.t += 1
        if safe:
            # Graphs are freed before the updates, so that these may use their memory.
            _core.free_propagated_graphs(params)
            require_free_rules(params, self)
            update_params(params, before_update)
            self._reallocate(params)
            self.call_hooks("post")
        self.update_loss_scale()

    def _device_that_scales(self, loss: Any) -> str | None:
        """The CUDA device that adapts a dynamic loss scale and masks updates, if any.

        Not where code of the user, or another rank, takes part in the update.
        """
        if not (self._loss_scaling_is_dynamic and isinstance(loss, _core.Variable)):
            return None
        device: str = loss.device_name
        params = list(self.target.params())
        hooks = list(self.update_hooks("pre").values())
        can = (
            device.startswith("cuda")
            and loss.size == 1
            and loss.grad_var is None
            and type(self.target).sum_over_stages is Link.sum_over_stages
            and is_method_of(self, GradientMethod, "update", "reallocate_cleared_grads")
            and is_method_of(self, GradientMethod, "call_hooks", "call_hook")
            and is_method_of(self, LossScaling, *_SCALING)
            and not self.update_hooks("post")
            and all(type(hook) in _MASKABLE_HOOKS for hook in hooks)
            and all(
                param.is_initialized
                and param.device_name == device
                and is_method_of(param, Parameter, "update")
                and param.update_rule is not None
                and param.update_rule.is_maskable()
                and not param.is_divided
                # Hooks would read what is still multiplied by the scale.
                and not (hooks and param.dtype == numpy.float16)
                for param in params
            )
        )
        return device if can else None

    def _update_masked(self, scale: DeviceLossScale, loss: Any) -> None:
        """``update`` by a loss, without a wait for the scale or for an overflow."""
        scale.backward(loss)
        self.reallocate_cleared_grads()
        params = list(self.target.params())
        scale.check(param.grad for param in params)
        scale.unscale(params)
        before_update = self._call_pre_hooks()
        self.t += 1
        scale.update(params, before_update)
        self.reallocate_cleared_grads()
        self._adapt_device_loss_scale(scale)

    def predict(
        self, steps: int, outs: Sequence[Array | None] | None = None
    ) -> list[Array]:
        """The values of the parameters expected after ``steps`` further updates.

        :meth:`UpdateRule.predict` of all ``target.params(include_uninit=False)``, in
        one pass.

        Args:
            steps: at least 0.
            outs: an array to write into for each of these parameters.

        Returns:
            ``outs``, or new arrays, in the order of the parameters.

        Raises:
            RuntimeError: before ``setup``.
            NotImplementedError: a rule cannot predict.
            TypeError, ValueError, InvalidType: ``steps`` or ``outs`` are not such.
        """
        self.require_target("predict")
        check_count(f"{type(self).__name__}.predict: steps", steps, 0)
        params = list(self.target.params(include_uninit=False))
        if outs is None:
            outs = [None] * len(params)
        if len(outs) != len(params):
            raise ValueError(
                f"{type(self).__name__}.predict: expected an array for each of "
                f"{len(params)} initialized parameters, got {len(outs)} outs"
            )
        return _core.optimizers.predict(
            [
                (out, param, None, None)
                if param.update_rule is None
                else param.update_rule.prediction(param, out)
                for param, out in zip(params, outs)
            ],
            steps,
        )

    def call_hook(self, hook: Callable[..., object]) -> None:
        """Calls one hook; gradients that it clears are zeros afterwards."""
        super().call_hook(hook)
        self._reallocate(list(self.target.params()))

    def _call_pre_hooks(self) -> Callable[[Any], None] | None:
        """Calls the hooks before an update.

        What a WeightDecay or GradientClipping that comes last does to each parameter is
        returned instead, to be fused with the parameter's update.
        """
        hooks = list(self.update_hooks("pre").values())
        ours = is_method_of(self, GradientMethod, "call_hooks", "call_hook")
        last: Any = hooks[-1] if ours and hooks else None
        if type(last) in (WeightDecay, GradientClipping):
            for hook in hooks[:-1]:
                self.call_hook(hook)
            before_update: Callable[[Any], None] | None = last.fused(self)
            return before_update
        self.call_hooks("pre")
        return None

    def is_one_pass(self) -> bool:
        """Whether an update is one fused pass for each parameter and nothing else.

        Then no user code reads a gradient before its parameter's pass.
        """
        hooks = list(self.update_hooks("pre").values())
        return (
            is_method_of(self, GradientMethod, "update", "reallocate_cleared_grads")
            and is_method_of(self, GradientMethod, "call_hooks", "call_hook")
            and not self.update_hooks("post")
            and (not hooks or [type(hook) for hook in hooks] == [WeightDecay])
            and self.loss_scale is None
            and all(map(_is_one_pass, self.target.params()))
        )

    def reallocate_cleared_grads(self) -> None:
        """Sets the gradient to zeros for parameters without one."""
        _fill_gradients(list(self.target.params()))

    def _reallocate(self, params: list[Parameter]) -> None:
        if is_method_of(self, GradientMethod, "reallocate_cleared_grads"):
            _fill_gradients(params)
        else:
            self.reallocate_cleared_grads()


def _fill_gradients(params: list[Parameter]) -> None:
    for param in _core.optimizers.without_gradient(params):
        param.grad = param.xp.zeros_like(param.array)


def _is_one_pass(param: Any) -> bool:
    """Whether an update of a parameter is one pass of the core, without user code."""
    return (
        is_method_of(param, Parameter, "update")
        and param.update_rule is not None
        and param.update_rule.is_one_pass(param)
    )


@dataclass_transform(eq_default=False)
def with_hyperparameters(cls: _Kind) -> _Kind:
    """Makes the annotated attributes of an optimizer its hyperparameters.

    They are the arguments of its constructor in their order, with the attributes'
    values as defaults, where ``DEFAULT`` stands for that of the optimizer's rule.
    """
    made: Any = cls
    kind, rule = inspect.Parameter.POSITIONAL_OR_KEYWORD, cls._rule
    parameters = []
    for name, annotation in cls.__annotations__.items():
        default = vars(cls)[name]
        if default is DEFAULT:
            assert rule is not None and issubclass(rule, FusedRule), cls
            default = default_values_of(rule)[name]
        parameter = inspect.Parameter(
            name, kind, default=default, annotation=annotation
        )
        parameters.append(parameter)
        proxy = HyperparameterProxy(name)
        proxy.__set_name__(cls, name)
        setattr(cls, name, proxy)
    signature = inspect.Signature(parameters)

    def __init__(self: Any, *args: float, **kwargs: float) -> None:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        given.apply_defaults()
        super(made, self).__init__(**given.arguments)

    made.__init__ = __init__
    made.__init__.__signature__ = signature.replace(
        parameters=[inspect.Parameter("self", kind), *parameters]
    )
    made.__init__ = _checked_init(made)
    return cls
