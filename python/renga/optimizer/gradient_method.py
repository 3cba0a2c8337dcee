"""GradientMethod: an optimizer with one update rule for every parameter."""

from __future__ import annotations

from typing import Any, Callable

from renga.link import Link
from renga.methods import is_method_of
from renga.optimizer.base import Optimizer
from renga.optimizer.hyperparameter import Hyperparameter
from renga.optimizer.update_rule import UpdateRule
from renga.optimizer_hooks.weight_decay import WeightDecay
from renga.parameter import Parameter


class GradientMethod(Optimizer):
    """Base of the optimizers that need only the gradients.

    A subclass sets its values in ``hyperparam`` and makes its rule in
    ``create_update_rule``.
    """

    _use_fp32_update = False

    def __init__(self) -> None:
        super().__init__()
        self.hyperparam = Hyperparameter()

    def setup(self, link: Link) -> GradientMethod:
        """Makes ``link`` the target and gives its parameters update rules."""
        super().setup(link)
        for param in link.params():
            param.update_rule = self.create_update_rule()
            if self._use_fp32_update:
                param.update_rule.use_fp32_update()
        return self

    def create_update_rule(self) -> UpdateRule:
        """A new rule whose hyperparameters follow those of the optimizer."""
        raise NotImplementedError

    def use_fp32_update(self, flag: bool = True) -> None:
        """Whether float16 parameters are updated through float32 copies of them."""
        self._use_fp32_update = flag
        if self.target is None:
            return
        for param in self.target.params():
            if param.update_rule is not None:
                param.update_rule.use_fp32_update(flag)

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Updates the parameters of the target by their gradients.

        With a loss function, it is called with the other arguments first, and the
        gradients are those of what it returns.
        """
        if lossfun is not None:
            loss = lossfun(*args, **kwds)
            self.target.cleargrads()
            loss.backward(loss_scale=self._loss_scale)
            del loss  # the graph must not outlive its use
        self.reallocate_cleared_grads()
        self.check_nan_in_grads()
        safe = self.is_safe_to_update()
        decay = self._call_pre_hooks() if safe else None
        self.t += 1
        if safe:
            for param in self.target.params():
                if decay is not None:
                    decay.before_update(param)
                param.update()
            self.reallocate_cleared_grads()
            self.call_hooks("post")
        self.update_loss_scale()

    def _call_pre_hooks(self) -> WeightDecay | None:
        """Calls the hooks, but for a WeightDecay that comes last.

        That is returned, to go with each parameter's update in one pass over memory.
        """
        hooks = list(self._hooks("pre").values())
        ours = is_method_of(self, Optimizer, "call_hooks", "call_hook")
        if ours and hooks and type(hooks[-1]) is WeightDecay:
            for hook in hooks[:-1]:
                self.call_hook(hook)
            return hooks[-1]
        self.call_hooks("pre")
        return None

    def is_one_pass(self) -> bool:
        """Whether an update is one pass for each parameter and nothing else.

        Nobody looks at a gradient, then, before its parameter's pass.
        """
        hooks = list(self._hooks("pre").values())
        return (
            is_method_of(self, GradientMethod, "update", "reallocate_cleared_grads")
            and is_method_of(self, Optimizer, "call_hooks", "call_hook")
            and not self._hooks("post")
            and (not hooks or [type(hook) for hook in hooks] == [WeightDecay])
            and self._loss_scale is None
            and all(
                is_method_of(param, Parameter, "update")
                and param.update_rule is not None
                and param.update_rule.is_one_pass(param)
                for param in self.target.params()
            )
        )

    def reallocate_cleared_grads(self) -> None:
        """Fills in zeros where a parameter has no gradient."""
        for param in self.target.params(include_uninit=False):
            if param.grad is None:
                param.grad = param.xp.zeros_like(param.array)
