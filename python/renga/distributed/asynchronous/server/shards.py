"""How parameters are divided among shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.distributed.data_parallel.sharded_states.layout import Piece, ShardLayout
from renga.optimizer_hooks.gradient_hard_clipping import GradientHardClipping
from renga.optimizer_hooks.lasso import Lasso
from renga.optimizer_hooks.weight_decay import WeightDecay

if TYPE_CHECKING:
    from renga.communicators.communicator import Array
    from renga.parameter import Parameter

# Hooks that give the same result on a part of a parameter as on all of it.
_ELEMENTWISE_HOOKS = (GradientHardClipping, Lasso, WeightDecay)


class Shards:
    """The pieces of the parameters that each shard has, of about equal sizes.

    Update rules that work element by element get equal shares, which begin and end
    within parameters; others get whole parameters.

    Args:
        params: initialized parameters, in the order of their names.
        optimizer: whose rules and hooks update them.
        count: of shards.

    Raises:
        ValueError: if a hook sees all parameters and there are several shards, or an
            update rule has settings of its own.
    """

    def __init__(self, params: Sequence[Parameter], optimizer: Any, count: int) -> None:
        self.params = list(params)
        self.count = count
        cuts = _cuts(optimizer, params, count)
        dtypes = sorted({param.dtype.str for param in params})
        groups = [
            [i for i, p in enumerate(params) if p.dtype.str == dtype]
            for dtype in dtypes
        ]
        layouts = [ShardLayout(g, self.params, count, cuts) for g in groups]
        self._pieces = [
            [piece for layout in layouts for piece in layout.pieces(shard)]
            for shard in range(count)
        ]
        for param in params:
            if not param.array.flags.c_contiguous:
                param.array = numpy.ascontiguousarray(param.array)

    def pieces(self, shard: int) -> list[Piece]:
        """The pieces of a shard."""
        return self._pieces[shard]

    def take(self, shard: int, arrays: Sequence[Array]) -> list[Array]:
        """A shard's pieces of arrays that are like the parameters, flat."""
        return [
            arrays[p.param].reshape(-1)[p.start : p.stop] for p in self.pieces(shard)
        ]

    def put(self, shard: int, pieces: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Writes a shard's pieces into arrays that are like the parameters."""
        for p, x in zip(self.pieces(shard), pieces):
            arrays[p.param].reshape(-1)[p.start : p.stop] = x

    def states(self, shard: int, rules: Sequence[Any]) -> list[tuple[int, Any]]:
        """Counts of updates and states of a shard's pieces; none before the first.

        Args:
            rules: the update rules of the parameters.
        """
        found = []
        for piece in self.pieces(shard):
            rule, size = rules[piece.param], self.params[piece.param].size
            if rule.state is None:
                return []
            arrays = {
                key: x.reshape(-1)[piece.start : piece.stop].copy()
                if x.size == size
                else x
                for key, x in rule.state.items()
            }
            found.append((rule.t, arrays))
        return found

    def put_states(
        self, shard: int, states: Sequence[tuple[int, Any]], rules: Sequence[Any]
    ) -> None:
        """Puts what ``states`` has returned, or a shard's server, into the rules."""
        for piece, (t, arrays) in zip(self.pieces(shard), states):
            self._put_state(piece, rules[piece.param], t, arrays)

    def _put_state(self, piece: Piece, rule: Any, t: int, arrays: Any) -> None:
        rule.t = t
        if arrays is None:
            return
        if rule.state is None:
            rule._state = {}
            rule.init_state(self.params[piece.param])
        for key, x in arrays.items():
            if isinstance(x, numpy.ndarray) and x.size == piece.stop - piece.start:
                rule.state[key].reshape(-1)[piece.start : piece.stop] = x
            else:
                rule.state[key] = x


def _cuts(optimizer: Any, params: Sequence[Parameter], count: int) -> bool:
    """Whether shards may begin and end within parameters."""
    for param in params:
        rule: Any = param.update_rule
        values = vars(rule.hyperparam).keys() - {"_parent"}
        if values or rule._hooks("pre") or rule._hooks("post") or not rule.enabled:
            raise ValueError(
                "create_server_optimizer: expected update rules like the optimizer's, "
                f"got one with settings of its own for {param.name}"
            )
    hooks = [*optimizer._hooks("pre").values(), *optimizer._hooks("post").values()]
    special = [hook for hook in hooks if not isinstance(hook, _ELEMENTWISE_HOOKS)]
    for hook in special:
        if count > 1 and not getattr(hook, "call_for_each_param", False):
            raise ValueError(
                "create_server_optimizer: expected one shard for the hook "
                f"{type(hook).__name__}, which sees all parameters, got {count}"
            )
    return not special and optimizer.create_update_rule().is_elementwise
