"""The optimizer that updates one shard of the parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from renga.link import Link
from renga.optimizer import Optimizer
from renga.parameter import Parameter

if TYPE_CHECKING:
    from renga.communicators.communicator import Array


class ShardOptimizer:
    """A worker's optimizer with the pieces of a shard as its parameters.

    Args:
        arrays: the pieces, which the updates change.
        optimizer: of which this is a copy, without states.
    """

    def __init__(self, arrays: Iterable[Array], optimizer: Any) -> None:
        self._optimizer = _optimizer_of(arrays, optimizer)
        self._params = list(self._optimizer.target.params())

    @property
    def arrays(self) -> list[Array]:
        """The pieces."""
        return [param.array for param in self._params]

    def update(
        self, values: dict[str, float], gradients: list[Array], rate: float
    ) -> None:
        """Makes an update.

        Args:
            values: the numbers among the hyperparameters, by name.
            gradients: of the pieces.
            rate: by which the learning rate is multiplied.
        """
        hyperparam = self._optimizer.hyperparam
        for name, value in values.items():
            setattr(hyperparam, name, value)
        if rate != 1:
            name = rate_name(values)
            setattr(hyperparam, name, values[name] * rate)
        for param, gradient in zip(self._params, gradients):
            param.grad = gradient
        self._optimizer.update()

    @property
    def counts(self) -> list[int]:
        """Of updates, by the optimizer and by each rule."""
        return [self._optimizer.t, *(param.update_rule.t for param in self._params)]

    @counts.setter
    def counts(self, counts: Sequence[int]) -> None:
        self._optimizer.t, *of_rules = counts
        for param, t in zip(self._params, of_rules):
            param.update_rule.t = t

    def states(self) -> dict[str, Any]:
        """Copies of the pieces and of the states of their rules, to be sent."""
        rules = [param.update_rule for param in self._params]
        return {
            "arrays": [x.copy() for x in self.arrays],
            "t": self._optimizer.t,
            "rules": [(rule.t, copy.deepcopy(rule.state)) for rule in rules],
        }

    def set_states(self, t: int, rules: Iterable[tuple[int, Any]]) -> None:
        """Takes a count of updates, and those and the states of the rules."""
        self._optimizer.t = t
        for param, (of_rule, arrays) in zip(self._params, rules):
            param.update_rule.t, param.update_rule._state = of_rule, arrays

    def all_arrays(self) -> list[Array]:
        """The pieces, each with the arrays of its rule's state."""
        found = []
        for param in self._params:
            rule = param.update_rule
            if rule.state is None:
                rule._state = {}
                rule.init_state(param)
            found += [param.array, *(x for _, x in sorted(rule.state.items()))]
        return found

    def use_memory(self, arrays: Iterable[Array]) -> None:
        """Goes on in these arrays, in place of those of ``all_arrays``."""
        left = iter(arrays)
        for param in self._params:
            param.array = next(left)
            rule = param.update_rule
            rule._state = {name: next(left) for name in sorted(rule.state)}
            rule._state_device = param._device_name


def rate_name(values: dict[str, float]) -> str:
    """The name of the learning rate among hyperparameters.

    Raises:
        ValueError: if there is none.
    """
    for name in ("lr", "alpha"):
        if name in values:
            return name
    raise ValueError(
        "create_server_optimizer: expected an optimizer with a learning rate for "
        f"staleness_aware, got one with {sorted(values)}"
    )


def _optimizer_of(arrays: Iterable[Array], optimizer: Any) -> Any:
    """A copy of an optimizer for arrays, without states."""
    link = Link()
    with link.init_scope():
        for i, x in enumerate(arrays):
            setattr(link, f"piece_{i:06}", Parameter(x))
    own = copy.copy(optimizer)
    own.hyperparam = copy.copy(optimizer.hyperparam)
    if link.count_params():
        own.setup(link)
    else:  # more shards than cache lines; setup() would warn
        Optimizer.setup(own, link)
    for timing in ("pre", "post"):
        for name, hook in optimizer._hooks(timing).items():
            own.add_hook(hook, name, timing)
    return own
