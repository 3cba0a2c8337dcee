"""Channels that are sharded over several ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.around_call import inner_handler, surrounding
from renga.core.link import Link
from renga.core.link.own_values import link_paths
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.embed_id import EmbedID
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.link import LinkChoice
from renga.links.parallel.channel.vocab_embed_id import ParallelVocabEmbedID
from renga.links.parallel.forms import FORMS
from renga.parallel.channel.kept_links import attentions, kept_links
from renga.parallel.channel.layout_search import choose_layouts, cost_of_call
from renga.parallel.channel.shard_checks import CheckedLink, ShardChecks
from renga.parallel.conversion.replacement import LinkReplacement, Replacer
from renga.parallel.conversion.strategy import LinkStrategy, ParallelRun, Sharded
from renga.parallel.conversion.tracing import CalledLink, Trace, trace
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement.whole_reads import WholeReads, gather_shards_for_functions
from renga.parallel.redistribute.cost import StepCost, rates_of, sum_of

_REPLICATED = ("replicated", "replicated")
_KEPT_BY_PLAN = LinkChoice(_REPLICATED, is_kept=True)


class ChannelReplacer(Replacer):
    """Makes links of which each rank has some channels.

    With example ``inputs`` the model is run once, and activations stay sharded between
    links where every operation on them allows it; without, they are replicated.

    Args:
        model: whose links are replaced.
        comm: the communicator of the ranks.
        inputs: arguments of the model; may be empty.
        choices: by the paths of links, in the place of what a cost model chooses.
            Other links are kept.
        output: ``sharded`` if the outputs of the model stay sharded.

    Raises:
        ValueError: outputs shall stay sharded and cannot, or there is no example; or,
            from ``replacements``, a plan shards the input or output of a link that has
            to be kept.
    """

    strategy = "channel"

    def __init__(
        self,
        model: Link,
        comm: Communicator,
        inputs: Sequence[object],
        choices: Mapping[str, LinkChoice] | None = None,
        output: str = "replicated",
    ) -> None:
        self.traced = trace_channels(model, inputs, output, follows_states=True)
        super().__init__(model, comm, self.traced.calls)
        if output == "sharded":
            _require_sharded_outputs(self.traced)
        self._choices = choices
        if choices is None:
            self._layouts_of = choose_layouts(self.traced, comm)
        self._paths = link_paths(model)

    def _choice(self, link: Link) -> LinkChoice:
        if self._choices is None:
            return LinkChoice(self._layouts_of(link))
        return self._choices.get(self._paths[id(link)], _KEPT_BY_PLAN)

    def is_whole(self, link: Link) -> bool:
        is_attention = super().is_whole(link) and id(link) not in self.traced.kept
        return is_attention and not self._choice(link).is_kept

    def reason(self, link: Link) -> str:
        if self.is_whole(link):
            return ""
        choice, reason = self._choice(link), self.traced.kept.get(id(link))
        if reason and choice.layouts != _REPLICATED:
            raise ValueError(
                f"parallelize: expected the model that the plan was made for, got one "
                f"in which {self._paths[id(link)]} cannot be sharded: {reason}"
            )
        if reason or choice.is_kept:
            return reason or "the plan keeps it"
        is_statistics = isinstance(link, BatchNormalization)
        if is_statistics and choice.layouts == _REPLICATED:
            return "its input and output are replicated"
        return ""

    def make(self, link: Any) -> Link:
        if self._is_vocabulary(link):
            layout = "channel" if self._scores_can_stay(link) else "replicated"
            return ParallelVocabEmbedID.from_link(link, self.comm, layout)
        call, kind = next(iter(self.calls_of(link)), None), self.forms[type(link)]
        new: Link = kind.from_link(link, self.comm, self._choice(link), call)
        return new

    def cost(self, link: Any) -> StepCost | None:
        if self._is_vocabulary(link):
            return self._cost_of_vocabulary(link)
        calls = self.calls_of(link.out_proj if self.is_whole(link) else link)
        if not calls:
            return None
        if self.is_whole(link):  # the all-reduces of y and of the gradient of x
            return sum_of(_cost_of_all_reduces(self.comm, 2, c.y_shape) for c in calls)
        layouts = self._choice(link).layouts
        return sum_of(cost_of_call(link, self.comm, layouts, call) for call in calls)

    def _attended(self, link: Link) -> list[CalledLink]:
        return [call for call in self.traced.attended if call.link is link]

    def _is_vocabulary(self, link: Link) -> bool:
        """Whether an embedding's weight gives the scores of a vocabulary, too."""
        is_embedding = isinstance(link, EmbedID)
        return is_embedding and bool(self._attended(link) or not self.traced.calls)

    def _scores_can_stay(self, link: Link) -> bool:
        attended, groups = self._attended(link), self.traced.groups
        return bool(attended) and all(groups.choices(call.y) for call in attended)

    def _cost_of_vocabulary(self, link: Link) -> StepCost | None:
        attended = self._attended(link)
        if not attended:
            return None
        # Vectors and the gradients of x are all-reduced, replicated scores gathered.
        comm = self.comm
        communication, _, moved = _cost_of_all_reduces(comm, 2, attended[0].x_shape)
        if not self._scores_can_stay(link):
            rates, others = rates_of(comm), comm.size - 1
            gathered = 4 * math.prod(attended[0].y_shape) * others / comm.size
            communication += others * rates.alpha + gathered * rates.beta
            moved += gathered
        return StepCost(communication, 0, moved)


def trace_channels(
    model: Link,
    inputs: Sequence[object],
    output: str = "replicated",
    follows_states: bool = False,
) -> Trace:
    """Runs the model, as ``trace`` does, and finds layouts of its activations.

    Without ``inputs`` it is not run, and nothing is known but which links are kept.
    """
    # An attention is traced by its projections.
    kinds = tuple(set(FORMS["channel"]) - {MultiHeadAttention})
    traced = trace(model, inputs, kinds, output, follows_states)
    kept = kept_links(model, traced.leaves)
    replicated = {id(call.link) for call in traced.attended} | set(kept)
    for link in attentions(model):
        replicated.update(id(child) for child in link.children())
    for call in traced.calls:
        # Elements of vectors are channels only where they are the second axis.
        is_sequence = isinstance(call.link, EmbedID) and len(call.y_shape) != 2
        if is_sequence or id(call.link) in replicated:
            traced.groups.require_replicated(call.x)
            traced.groups.require_replicated(call.y)
        if isinstance(call.link, EmbedID):
            traced.groups.exclude(call.y, "batch")
    for call in traced.attended:
        if id(call.link) in kept:
            traced.groups.require_replicated(call.y)
    return traced._replace(kept=kept)


def _require_sharded_outputs(traced: Trace) -> None:
    groups = traced.groups
    of_links = {groups.find(call.y) for call in (*traced.calls, *traced.attended)}
    if not traced.outputs:
        raise ValueError(
            "parallelize: expected an example of the input for sharded outputs"
        )
    for y, maker in traced.outputs.items():
        if groups.find(y) not in of_links or not groups.choices(y):
            raise ValueError(
                "parallelize: expected outputs of links, which can stay sharded, or "
                f"pointwise functions of them, got {y.shape} of {maker}"
            )


def _cost_of_all_reduces(
    comm: Communicator, count: int, shape: Sequence[int]
) -> StepCost:
    others = comm.size - 1
    moved = 2 * count * 4 * math.prod(shape) * others / comm.size
    return rates_of(comm).cost(2 * count * others, moved)


class ChannelRun(ParallelRun):
    """Runs models: parallel links gather what they do not have.

    Args:
        comm: the communicator of the ranks.
        parallel: the ``id`` of each parallel link, which runs as it is.
    """

    strategy = "channel"

    def __init__(self, comm: Communicator, parallel: Collection[int]) -> None:
        super().__init__(comm)
        self.parallel = parallel

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        gather_shards_for_functions()
        # Stages of a pipeline, and gathered parameters, have handlers of their own.
        checks: Any = contextlib.nullcontext()
        if type(inner_handler()) is WholeReads:
            checks = surrounding(ShardChecks(self.comm))
        with checks, super().sharding(model, args, kwargs) as divided:
            yield divided

    def class_of(self, link: Link) -> type[Link]:
        if id(link) in self.parallel:
            return loaded_class(link, self, CheckedLink)
        return tracked_class(link, self)


class ChannelStrategy(LinkStrategy):
    """Each rank has some channels, features or heads of every layer.

    Args:
        choices: as for :class:`ChannelReplacer`.
    """

    name = "channel"
    outputs = ("replicated", "sharded")

    def __init__(self, choices: Mapping[str, LinkChoice] | None = None) -> None:
        self.choices = choices

    def divide(
        self, model: Link, comm: Communicator, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], ChannelRun]:
        replacer = ChannelReplacer(model, comm, example, self.choices, self.output)
        found = replacer.replacements()
        # The program calls the model, which has to compare calls.
        parallel = {id(r.replacement) for r in found if r.link is not model}
        return found, ChannelRun(comm, parallel)
