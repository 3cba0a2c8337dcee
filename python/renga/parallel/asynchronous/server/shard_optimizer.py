"""The optimizer that updates one shard of the parameters."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, NamedTuple

from renga.core.link import Link
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.optimizer.update_rule import RuleValues
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.settings import UpdateSettings, use_settings


class Change(NamedTuple):
    """What a worker's caller has written into parameters, or loaded.

    Attributes:
        weights: for each piece a mask of the changed elements, and their values; None
            if there are none.
        states: the count of the optimizer's updates, and for each piece the values of
            its rule; None if none were loaded.
    """

    weights: Sequence[tuple[Array, Array]] | None
    states: tuple[int, Sequence[RuleValues]] | None


class ShardOptimizer:
    """A worker's optimizer with the pieces of a shard as its parameters.

    Args:
        arrays: the pieces, flat, which the updates change.
        shapes: in which hooks and rules see them.
        optimizer: of which this is a copy, without states.
    """

    def __init__(
        self,
        arrays: Iterable[Array],
        shapes: Iterable[tuple[int, ...]],
        optimizer: GradientMethod,
    ) -> None:
        pieces = [x.reshape(shape) for x, shape in zip(arrays, shapes)]
        self._optimizer = _optimizer_of(pieces, optimizer)
        self._params = list(self._optimizer.target.params())
        self._settings: UpdateSettings | None = None

    @property
    def arrays(self) -> list[Array]:
        """The pieces, flat."""
        return [param.array.reshape(-1) for param in self._params]

    def use(self, settings: UpdateSettings, find_hook: Callable[..., object]) -> None:
        """Updates by these settings, of the rules of the pieces, from now on."""
        if settings is not self._settings:
            use_settings(settings, self._optimizer, find_hook)
            self._settings = settings

    def update(self, gradient: Gradient, rate: float) -> None:
        """Makes an update.

        Args:
            gradient: of the pieces.
            rate: by which the learning rate is multiplied.

        Raises:
            ValueError: a hook has changed a hyperparameter, which are the workers'.
        """
        if not self._params:
            return
        vars(self._optimizer.hyperparam).update(gradient.values)
        scale = None if gradient.scale == 1 else gradient.scale
        for param, x in zip(self._params, gradient.arrays):
            param.grad, param.loss_scale = x.reshape(param.shape), scale
        unchanged = self._unchanged_hyperparameters
        watch = unchanged if self._runs_own_code() else contextlib.nullcontext
        with self._rates_multiplied(rate), watch():
            self._optimizer.update()

    def _runs_own_code(self) -> bool:
        """Whether an update calls hooks, or rules of the program."""
        return self._optimizer.has_update_hooks or any(
            rule.has_update_hooks or not type(rule).__module__.startswith("renga.")
            for rule in (param.update_rule for param in self._params)
        )

    @contextlib.contextmanager
    def _unchanged_hyperparameters(self) -> Iterator[None]:
        sets = [owner.hyperparam for owner in self._owners()]
        before = [(vars(each), dict(vars(each))) for each in sets]
        yield
        for own, values in before:
            changed = [name for name in own if own[name] is not values.get(name)]
            if changed:
                raise ValueError(
                    "create_server_optimizer: expected hooks that change no "
                    "hyperparameters, which come from the workers, got "
                    f"{changed[0]} changed by one: change it between updates"
                )

    def _owners(self) -> list[Any]:
        """Of hyperparameters: the optimizer and the rules."""
        return [self._optimizer, *(param.update_rule for param in self._params)]

    @contextlib.contextmanager
    def _rates_multiplied(self, rate: float) -> Iterator[None]:
        """A block in which all learning rates are multiplied."""
        kept = []
        for owner in self._owners() if rate != 1 else []:
            own, name = vars(owner.hyperparam), rate_name(owner.hyperparam.get_dict())
            if name in own:
                kept.append((own, name, own[name]))
                own[name] *= rate
        try:
            yield
        finally:
            for own, name, value in kept:
                own[name] = value

    def change(self, change: Change) -> None:
        """Makes a change that a worker's caller has made."""
        for x, (mask, values) in zip(self.arrays, change.weights or ()):
            x[mask] = values
        if change.states is not None:
            self.set_states(*change.states)

    @property
    def counts(self) -> list[int]:
        """Of updates, by the optimizer and by each rule."""
        return [self._optimizer.t, *(param.update_rule.t for param in self._params)]

    @counts.setter
    def counts(self, counts: Sequence[int]) -> None:
        self._optimizer.t, *of_rules = counts
        for param, t in zip(self._params, of_rules):
            param.update_rule.t = t

    def states(self) -> dict[str, object]:
        """Copies of the pieces and of the values of their rules, to be sent."""
        return {
            "arrays": [x.copy() for x in self.arrays],
            "t": self._optimizer.t,
            "rules": [
                copy.deepcopy(param.update_rule.get_values()) for param in self._params
            ],
        }

    def set_states(self, t: int, rules: Iterable[RuleValues]) -> None:
        """Takes a count of updates, and the values of the rules."""
        self._optimizer.t = t
        for param, values in zip(self._params, rules):
            param.update_rule.set_values(shaped(values, param.shape))

    def all_arrays(self) -> list[Array]:
        """The pieces, each with the arrays of its rule's state."""
        found = []
        for param in self._params:
            param.update_rule.prepare_state(param)
            state = param.update_rule.state
            found += [param.array, *(x for _, x in sorted(state.items()))]
        return found

    def use_memory(self, arrays: Iterable[Array]) -> None:
        """Goes on in these arrays, in place of those of ``all_arrays``."""
        left = iter(arrays)
        for param in self._params:
            param.array = next(left)
            rule = param.update_rule
            state = {name: next(left) for name in sorted(rule.state)}
            rule.set_values(rule.get_values()._replace(state=state))


def shaped(values: RuleValues, shape: tuple[int, ...]) -> RuleValues:
    """What a rule has, with the arrays of as many elements in a shape."""
    size = math.prod(shape)
    return values.with_named(
        {
            key: x.reshape(shape) if getattr(x, "size", -1) == size else x
            for key, x in values.named().items()
        }
    )


def rate_name(values: Mapping[str, float]) -> str:
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
    """A copy of an optimizer for arrays, without states and hooks.

    It updates by every gradient: a worker has decided whether one has overflowed.
    """
    link = Link()
    with link.init_scope():
        for i, x in enumerate(arrays):
            setattr(link, f"piece_{i:06}", Parameter(x))
    own = copy.copy(optimizer)
    own.hyperparam = copy.copy(optimizer.hyperparam)
    own.ignore_overflows()
    own.target = None
    if list(link.params()):
        own.setup(link)
    else:  # more shards than cache lines; setup() would warn
        Optimizer.setup(own, link)
    return own
