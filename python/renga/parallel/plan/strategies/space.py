"""Strategies that parallel links execute, as a space to search."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Union

from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.link import LinkChoice
from renga.links.parallel.channel.process_grid import requested_grids
from renga.parallel.channel.layout_search import choose_layouts
from renga.parallel.conversion.tracing import CalledLink
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.costs import Costs, share_of
from renga.parallel.plan.graph import Operation
from renga.parallel.plan.strategies.messages import (
    NONE,
    Messages,
    link_messages,
    of_one_number,
    parameter_sizes,
    simulated_ranks,
)
from renga.parallel.plan.strategies.sample_groups import SampleGroups
from renga.parallel.plan.strategies.step_chain import LinkTimes, StepChain
from renga.parallel.plan.strategies.traced_model import (
    HEADS,
    SERIAL,
    TracedCall,
    TracedModel,
)

_REPLICATED = ("replicated", "replicated")
_BY_CHANNEL = ("column-parallel", "channel", "features", HEADS)
# The algorithms and layouts of an attention by heads: of the projection of the results,
# and of that to queries, keys and values.
_OF_PROJECTIONS = (
    ("row-parallel", ("features", "replicated")),
    ("column-parallel", ("replicated", "features")),
)
_SAMPLES = "samples"  # what groups of ranks with samples of their own send
_CALLS = "calls"  # what ranks compare of the arguments of a model
Variable = Union[str, Any]  # the path of a link, or a group of activations


class LinkSpace:
    """The layouts of activations, and the algorithms of links.

    Every rank takes part in every link: by samples, by input or output channels or
    both, or each computes the same. Ranks run their operations one after the other,
    and wait in collectives.

    Args:
        cluster: of which ranks wait while they communicate.
        groups: of ranks with samples of their own, if these are the links and the ranks
            of one of them. Then activations are not sharded by samples any further.
    """

    def __init__(
        self,
        traced: TracedModel,
        cluster: Cluster,
        costs: Costs,
        groups: SampleGroups | None = None,
    ) -> None:
        self.traced, self.cluster, self.costs = traced, cluster, costs
        self.groups = groups
        ranks = cluster.ranks
        options: dict[Variable, list[str]] = {}
        if ranks > 1:
            options = {**traced.layouts(ranks), **traced.algorithms(ranks)}
        if groups is not None:
            options = {k: [o for o in v if o != "batch"] for k, v in options.items()}
        self._names = list(options)
        self._options = list(options.values())
        self.current: list[str] = [choices[0] for choices in self._options]
        self._index = {name: i for i, name in enumerate(self._names)}
        self._known: dict[Any, LinkTimes] = {}
        self._users = self._find_users()
        # The parameters of each link on rank 0, whose gradients groups sum, have these
        # sizes.
        self._sizes: dict[str, list[int]] = {}
        self._known_sizes: dict[tuple[str, str], list[int]] = {}
        for call in traced.calls if groups is not None else []:
            self._note_sizes(call)
        times = [self.times(call) for call in traced.calls]
        names = [call.path for call in traced.calls]
        if groups is not None:
            times += [_only(groups.gathers()), self._sums()]
            # Gradients are summed at the end of the backward pass.
            times, names = [times[-1], *times[:-1]], [_SAMPLES, *names, _SAMPLES]
        elif ranks > 1:
            times, names = [*times, _only(of_one_number(cluster))], [*names, _CALLS]
        self.step = StepChain(cluster, times, names)

    @classmethod
    def of_groups(cls, groups: SampleGroups) -> LinkSpace:
        """The space of a group of ranks that has samples of its own."""
        return cls(groups.traced, groups.inner, groups.costs, groups)

    def choices(self, variable: int) -> Sequence[str]:
        return self._options[variable]

    def draw(self, variable: int, generator: random.Random) -> str:
        return generator.choice(self._options[variable])

    def change(self, variable: int, choice: str) -> None:
        if self.current[variable] == choice:
            return
        self.current[variable] = choice
        first = 0 if self.groups is None else 1
        sizes = dict(self._sizes)
        for i in self._users[variable]:
            self.step.change(first + i, self.times(self.traced.calls[i]))
            if self.groups is not None:
                self._note_sizes(self.traced.calls[i])
        if self._sizes != sizes:
            self.step.change(0, self._sums())

    def seconds(self) -> float:
        return self.step.seconds()

    def memory(self) -> int:
        total = 0.0
        for traced in self.traced.calls:
            op = self.traced.graph.operations[traced.link]
            split = self._split(traced)
            parameters = op.parameters
            if not self._holds_all(traced):
                parameters = math.ceil(parameters / self.cluster.ranks)
            total += 4 * (3 * parameters + 2 * op.size * share_of(op, split))
        return math.ceil(total)

    def starts(self, generator: random.Random) -> dict[str, list[str]]:
        """Data-parallel, on one rank, hand-made ones and random.

        The hand-made ones shard all activations by channels, or choose layouts by the
        cost model of ``parallelize(model, comm, "channel")``.
        """
        modelled: list[str] = []
        comm = simulated_ranks(self.cluster)
        layouts_of = choose_layouts(self.traced.trace, comm)
        found: dict[Any, str] = {}
        for call in self.traced.trace.calls:
            for node, layout in zip((call.x, call.y), layouts_of(call.link)):
                found[self.traced.trace.groups.find(node)] = layout
        for name, options in zip(self._names, self._options):
            is_link = isinstance(name, str)
            own = "weight-gathered" if is_link else found.get(name, "replicated")
            modelled.append(_first(options, own))
        return {
            "data": [_first(o, "weight-replicated", "batch") for o in self._options],
            "serial": [options[0] for options in self._options],
            "channel": [_first(o, *_BY_CHANNEL) for o in self._options],
            "cost model": modelled,
            "random": [generator.choice(options) for options in self._options],
        }

    def describe(self, variable: int, choice: str) -> str:
        return choice

    def variables_of(self, index: int) -> list[int]:
        """The variables on which the times of a call depend."""
        return [v for v, users in enumerate(self._users) if index in users]

    def layouts(self, call: CalledLink) -> tuple[str, str]:
        """Of a call's input and output."""
        if self._is_by_heads(call.link):
            return _OF_PROJECTIONS[call.link is self._attention(call.link).in_proj][1]
        x, y = (self.traced.trace.groups.find(node) for node in (call.x, call.y))
        return self._chosen(x), self._chosen(y)

    def algorithm(self, traced: TracedCall) -> str:
        """Of a link; a link whose input or output is sharded cannot be serial."""
        layouts, link = self.layouts(traced.call), traced.call.link
        if self._is_by_heads(link):
            return _OF_PROJECTIONS[link is self._attention(link).in_proj][0]
        if id(link) in self.traced.attention_of:
            return SERIAL
        if isinstance(traced.call.link, BatchNormalization):
            return SERIAL if layouts == _REPLICATED else "statistics"
        if traced.path not in self._index:
            return SERIAL if self.cluster.ranks == 1 else "column-parallel"
        chosen = self.current[self._index[traced.path]]
        if chosen == SERIAL and layouts != _REPLICATED:
            return "weight-replicated"
        return chosen

    def link_choices(self) -> dict[str, LinkChoice]:
        """What ``ChannelStrategy`` takes. Its links do not overlap messages."""
        found = {}
        for traced in self.traced.calls:
            algorithm, layouts = self.algorithm(traced), self.layouts(traced.call)
            has_grid = traced.path in self._index and algorithm != SERIAL
            found[traced.path] = LinkChoice(
                layouts, algorithm if has_grid else None, 0, algorithm == SERIAL
            )
        for path in self.traced.attentions:
            if path in self._index:
                is_serial = self.current[self._index[path]] == SERIAL
                found[path] = LinkChoice(_REPLICATED, None, 0, is_serial)
        return found

    def times(self, traced: TracedCall) -> LinkTimes:
        """The predicted times of a call in the current strategy."""
        algorithm, layouts = self.algorithm(traced), self.layouts(traced.call)
        key = traced.link, layouts, algorithm
        if key not in self._known:
            self._known[key] = self._predicted(traced, layouts, algorithm)
        return self._known[key]

    def _predicted(
        self, traced: TracedCall, layouts: tuple[str, str], algorithm: str
    ) -> LinkTimes:
        operations = self.traced.graph.operations
        op, behind = operations[traced.link], operations[traced.functions]
        split = self._split(traced)
        messages = NONE
        if algorithm != SERIAL:
            link = traced.call.link
            messages = link_messages(
                link, traced.call, layouts, algorithm, self.cluster
            )
        if self.groups is not None and op.kind == "normalization":
            messages += self.groups.statistics(max(self._parameter_sizes(traced)))
        degrees = [1] * len(behind.extents)
        last = len(behind.extents) - 1
        axis = {"batch": 0, "channel": 1, "features": last}.get(layouts[1])
        if axis is not None:
            degrees[axis] = min(self.cluster.ranks, behind.extents[axis])
        share = Configuration(tuple(degrees), ())
        whole = Configuration((1,) * len(op.extents), ())
        holds_all = self._holds_all(traced)
        update = self.costs.update(op, whole) if op.parameters else 0.0
        if not holds_all:
            update /= self.cluster.ranks
        return LinkTimes(
            self.costs.task(op, split), self.costs.task(behind, share), messages, update
        )

    def _sums(self) -> LinkTimes:
        """Of the gradients of all parameters, over the groups."""
        assert self.groups is not None
        return _only(self.groups.sums([n for own in self._sizes.values() for n in own]))

    def _note_sizes(self, traced: TracedCall) -> None:
        self._sizes[traced.path] = self._parameter_sizes(traced)

    def _parameter_sizes(self, traced: TracedCall) -> list[int]:
        link, algorithm = traced.call.link, self.algorithm(traced)
        if algorithm == SERIAL or self.cluster.ranks == 1:
            return [param.size for param in link.params()]
        key = traced.path, algorithm
        if key not in self._known_sizes:
            self._known_sizes[key] = parameter_sizes(
                link, traced.call, algorithm, self.cluster
            )
        return self._known_sizes[key]

    def _holds_all(self, traced: TracedCall) -> bool:
        """Whether a rank has all parameters of a link."""
        algorithm = self.algorithm(traced)
        if algorithm == "statistics":
            return self.layouts(traced.call) == ("batch", "batch")
        return algorithm in (SERIAL, "weight-replicated")

    def _split(self, traced: TracedCall) -> Configuration:
        op = self.traced.graph.operations[traced.link]
        algorithm, layouts = self.algorithm(traced), self.layouts(traced.call)
        return link_split(op, algorithm, layouts, self.cluster.ranks)

    def _attention(self, link: Any) -> Any:
        return self.traced.attentions[self.traced.attention_of[id(link)]]

    def _is_by_heads(self, link: Any) -> bool:
        """Whether a link is a projection of an attention of which ranks have heads."""
        i = self._index.get(self.traced.attention_of.get(id(link)))
        return i is not None and self.current[i] == HEADS

    def _chosen(self, root: Any) -> str:
        i = self._index.get(root)
        return "replicated" if i is None else self.current[i]

    def _find_users(self) -> list[list[int]]:
        """The calls whose times depend on each variable."""
        users: list[list[int]] = [[] for _ in self._names]
        find = self.traced.trace.groups.find
        for i, traced in enumerate(self.traced.calls):
            attention = self.traced.attention_of.get(id(traced.call.link))
            nodes = find(traced.call.x), find(traced.call.y)
            for name in {traced.path, attention, *nodes}:
                if name in self._index:
                    users[self._index[name]].append(i)
        return users


def _only(messages: Messages) -> LinkTimes:
    """The times of messages by themselves."""
    return LinkTimes((0.0, 0.0), (0.0, 0.0), messages, 0.0)


def link_split(
    op: Operation, algorithm: str, layouts: tuple[str, str], ranks: int
) -> Configuration:
    """How the work of a link is split over the ranks."""
    degrees, reduction = [1] * len(op.extents), 1
    if algorithm.startswith("weight-"):
        degrees[0] = min(ranks, op.extents[0])
    elif algorithm == "statistics":
        axis = 0 if layouts == ("batch", "batch") else 1
        degrees[axis] = min(ranks, op.extents[axis])
    elif algorithm != SERIAL:
        axis = len(op.extents) - 1 if op.kind == "embedding" else 1
        (grid,) = requested_grids(algorithm, ranks)
        degrees[axis] = min(grid.output_blocks, op.extents[axis])
        reduction = min(grid.input_blocks, op.reduction)
    return Configuration(tuple(degrees), (), reduction)


def _first(options: Sequence[str], *preferred: str) -> str:
    """The first preferred option that there is, or else the first one."""
    return next((p for p in preferred if p in options), options[0])
