"""How parameters are divided among shards."""

from __future__ import annotations

import copy
import enum
from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.optimizer import Optimizer
from renga.core.optimizer.update_rule import MASTER, RuleValues, UpdateRule
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.optimizer_hooks.norm import GradientHardClipping
from renga.optimizer_hooks.penalties import Lasso, WeightDecay
from renga.parallel.asynchronous.server.settings import UpdateSettings
from renga.parallel.asynchronous.server.shard_optimizer import Change, shaped
from renga.parallel.data.sharded_states.layout import Piece, ShardLayout

# Hooks that give the same result on a part of a parameter as on all of it.
_ELEMENTWISE_HOOKS = (GradientHardClipping, Lasso, WeightDecay)


class Needs(enum.IntEnum):
    """What updates have to see of the parameters."""

    PARTS = 0
    WHOLE_PARAMETERS = 1
    ONE_SHARD = 2  # with all of them


def needs_of(optimizer: Optimizer, params: Sequence[Parameter]) -> Needs:
    """The needs of the present hooks and update rules.

    Rules that work element by element, and hooks that do, need parts only.
    """
    if _names_of_hooks(optimizer, params, on_whole_params=False):
        return Needs.ONE_SHARD
    hooks = _names_of_hooks(optimizer, params, on_whole_params=True)
    rules = [rule for rule in _rules(params) if rule is not None]
    if hooks or not all(rule.is_elementwise for rule in rules):
        return Needs.WHOLE_PARAMETERS
    return Needs.PARTS


class Shards:
    """The pieces of the parameters that each shard has, of about equal sizes.

    Args:
        params: initialized parameters, in the order of their names.
        count: of shards.
        needs: of their updates; for ``ONE_SHARD``, that is the first one.
    """

    def __init__(self, params: Sequence[Parameter], count: int, needs: Needs) -> None:
        self.params = list(params)
        self.count = count
        self._cuts = needs is Needs.PARTS
        self._pieces = self._divided(1 if needs is Needs.ONE_SHARD else count)
        self._has_several = sum(map(bool, self._pieces)) > 1

    @classmethod
    def of_pieces(
        cls, params: Sequence[Parameter], pieces: Sequence[Sequence[Piece]]
    ) -> Shards:
        """A division that others have made, of parameters like theirs."""
        shards = cls(params, len(pieces), Needs.PARTS)
        shards._pieces = list(map(list, pieces))
        return shards

    def _divided(self, used: int) -> list[list[Piece]]:
        """The pieces of each shard, of which the first ones are used."""
        params = self.params
        groups: dict[str, list[int]] = {}
        for i, param in enumerate(params):
            groups.setdefault(param.dtype.str, []).append(i)
        layouts = [
            ShardLayout(groups[dtype], params, used, self._cuts)
            for dtype in sorted(groups)
        ]
        divided = [
            [piece for layout in layouts for piece in layout.pieces(shard)]
            if shard < used
            else []
            for shard in range(self.count)
        ]
        there = {piece.param for pieces in divided for piece in pieces}
        for i in sorted(set(range(len(params))) - there):
            divided[0].append(Piece(i, 0, 0, 0))  # without elements
        return divided

    def check(self, optimizer: Optimizer) -> None:
        """Checks that the present hooks can be called for these shards.

        Raises:
            ValueError: if they see more than a shard has.
        """
        hooks = _names_of_hooks(optimizer, self.params, on_whole_params=False)
        if hooks and self._has_several:
            raise ValueError(
                f"create_server_optimizer: expected one shard for the hook {hooks[0]}, "
                f"which sees all parameters, got {self.count}: pass shards=1, or add "
                "it before the first update"
            )
        if not self.fits(optimizer):
            hooks = _names_of_hooks(optimizer, self.params, on_whole_params=True)
            raise ValueError(
                f"create_server_optimizer: expected the hook {hooks[0]}, which sees "
                "whole parameters, to be added before the first update, got it later"
            )

    def fits(self, optimizer: Optimizer) -> bool:
        """Whether the present hooks can be called for these shards."""
        least = Needs.PARTS if self._cuts else Needs.WHOLE_PARAMETERS
        return not self._has_several or needs_of(optimizer, self.params) <= least

    @property
    def arrays(self) -> list[Array]:
        """Those of the parameters, in C order."""
        for param in self.params:
            if not param.array.flags.c_contiguous:
                param.array = numpy.ascontiguousarray(param.array)
        return [param.array for param in self.params]

    def pieces(self, shard: int) -> list[Piece]:
        """The pieces of a shard."""
        return self._pieces[shard]

    def shapes(self, shard: int) -> list[tuple[int, ...]]:
        """Those in which hooks and rules see a shard's pieces.

        Whole parameters have their own, parts of them are flat.
        """
        sizes = [(p.stop - p.start, self.params[p.param]) for p in self.pieces(shard)]
        return [param.shape if size == param.size else (size,) for size, param in sizes]

    def take(self, shard: int, arrays: Sequence[Array]) -> list[Array]:
        """A shard's pieces of arrays that are like the parameters, flat."""
        return [
            arrays[p.param].reshape(-1)[p.start : p.stop] for p in self.pieces(shard)
        ]

    def put(self, shard: int, pieces: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Writes a shard's pieces into arrays that are like the parameters."""
        for p, x in zip(self.pieces(shard), pieces):
            arrays[p.param].reshape(-1)[p.start : p.stop] = x

    def settings(self, shard: int, settings: UpdateSettings) -> UpdateSettings:
        """Those of the rules of a shard's pieces, from those of all parameters."""
        rules = [settings.rules[piece.param] for piece in self.pieces(shard)]
        return settings._replace(rules=rules)

    def change(
        self,
        shard: int,
        masks: Sequence[Array],
        states: tuple[int, Sequence[UpdateRule | None]] | None,
    ) -> Change:
        """A shard's part of what the caller has changed.

        Args:
            shard: its number.
            masks: of the changed elements of the parameters; none if there are none.
            states: the count of the optimizer's updates, and the update rules with
                loaded states; None if none were loaded.
        """
        weights = None
        if masks:
            chosen = self.take(shard, masks)
            values = self.take(shard, self.arrays)
            weights = [(mask, x[mask]) for mask, x in zip(chosen, values)]
        if states is None:
            return Change(weights, None)
        t, rules = states
        return Change(weights, (t, self.states(shard, rules)))

    def states(
        self, shard: int, rules: Sequence[UpdateRule | None]
    ) -> list[RuleValues]:
        """What the rules of a shard's pieces have, in copies.

        Args:
            rules: the update rules of the parameters.
        """
        return [self._state(piece, rules[piece.param]) for piece in self.pieces(shard)]

    def _state(self, piece: Piece, rule: Any) -> RuleValues:
        values = RuleValues() if rule is None else rule.get_values()
        size = self.params[piece.param].size
        return values.with_named(
            {
                key: x.reshape(-1)[piece.start : piece.stop].copy()
                if getattr(x, "size", -1) == size
                else copy.deepcopy(x)
                for key, x in values.named().items()
            }
        )

    def put_states(
        self,
        shard: int,
        states: Sequence[RuleValues],
        rules: Sequence[UpdateRule | None],
    ) -> None:
        """Puts what ``states`` has returned, or a shard's server, into the rules."""
        for piece, values in zip(self.pieces(shard), states):
            if rules[piece.param] is not None:
                self._put_state(piece, rules[piece.param], values)

    def _put_state(self, piece: Piece, rule: Any, values: RuleValues) -> None:
        param = self.params[piece.param]
        if values.state is None or piece.stop - piece.start == param.size:
            rule.set_values(shaped(values, param.shape))
            return
        rule.prepare_state(param)
        whole = rule.get_values().named()
        if values.master is not None:
            whole.setdefault(MASTER, param.array.astype(numpy.float32))
        for key, x in values.named().items():
            if isinstance(x, numpy.ndarray) and x.size == piece.stop - piece.start:
                whole[key].reshape(-1)[piece.start : piece.stop] = x
            else:
                whole[key] = x
        rule.set_values(values.with_named(whole))


def _rules(params: Sequence[Parameter]) -> list[Any]:
    return [param.update_rule for param in params]


def _names_of_hooks(
    optimizer: Any, params: Sequence[Parameter], on_whole_params: bool
) -> list[str]:
    """Hooks that see whole parameters, or else all of them at once."""
    found = []
    for timing in ("pre", "post"):
        for hook in optimizer.update_hooks(timing).values():
            is_for_each = bool(getattr(hook, "call_for_each_param", False))
            if is_for_each == on_whole_params:
                found.append(hook)
        if on_whole_params:
            for rule in _rules(params):
                if rule is not None:
                    found.extend(rule.update_hooks(timing).values())
    return [
        getattr(hook, "__name__", type(hook).__name__)
        for hook in found
        if not isinstance(hook, _ELEMENTWISE_HOOKS)
    ]
