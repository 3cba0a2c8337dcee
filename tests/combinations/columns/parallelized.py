"""``parallelize`` with each strategy, and plans."""

from __future__ import annotations

import contextlib
import io

from renga import planning
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.plan.costs import Costs, Device
from renga.parallel.plan.plan import Plan
from renga.parallel.plan.strategies.sample_groups import sample_groups
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.traced_model import TracedModel
from tests.combinations.column import SameBatches


class Parallelized(SameBatches):
    """A model of ``parallelize``, with an example of its input."""

    strategy = "channel"
    with_example = True

    def wrap(self, comm, model, optimizer, example, row):
        inputs = (example,) if self.with_example else ()
        with contextlib.redirect_stdout(io.StringIO()):
            model = parallelize(model, comm, self.chosen(comm, model, example), *inputs)
        return model, model, optimizer.setup(model)

    def chosen(self, comm, model, example):
        """The strategy, or a plan."""
        return self.strategy


class Channel(Parallelized):
    name = "channel"
    in_processes = True
    covers = ("parallelize: channel", "with an example")
    kinds = ("vectors", "images", "sequences")


class ChannelWithoutExample(Channel):
    name = "channel, without an example"
    in_processes = False
    covers = ("without an example",)
    with_example = False


class ChannelOfImages(Channel):
    name = "channel, images"
    in_processes = False
    kinds = ("images",)


class ChannelOfTransformers(Channel):
    name = "channel, 3 ranks, transformers"
    in_processes = False
    kinds = ("sequences",)
    ranks = 3


class Spatial(Parallelized):
    name = "spatial"
    in_processes = True
    covers = ("parallelize: spatial",)
    strategy = "spatial"
    agrees_on = frozenset({"random"})  # each rank has the random numbers of its shard
    kinds = ("images",)


class SpatialWithoutExample(Spatial):
    name = "spatial, without an example"
    in_processes = False
    with_example = False


class Sequence(Parallelized):
    name = "sequence"
    covers = ("parallelize: sequence",)
    strategy = "sequence"
    agrees_on = frozenset({"random"})
    kinds = ("sequences",)


class SequenceWithoutExample(Sequence):
    name = "sequence, without an example"
    with_example = False


class BySamples(Parallelized):
    """A plan in which each rank has samples of its own."""

    name = "plan by samples"
    covers = ("plan: groups",)
    agrees_on = frozenset({"random"})
    lacks = {
        **SameBatches.lacks,
        "state": "planning finds no groups for a model with a state",
        "recomputed": "planning finds no groups for a model that recomputes",
        "other ranks": "a plan is for its number of ranks",
    }
    groups = 2

    def chosen(self, comm, model, example):
        machine = simulated.Machine(intra_size=comm.size)
        cluster = planning.Cluster(comm.size, machine, False)
        traced, costs = TracedModel(model, (example,)), Costs(Device(1e10, 1e10))
        found = sample_groups(traced, cluster, costs)
        (groups,) = [each for each in found if each.count == self.groups]
        links = LinkSpace.of_groups(groups).link_choices()
        options = dict(groups=self.groups, stacked=groups.stacked)
        return Plan("combinations", cluster, 0.0, 0.0, [], links, **options)


class Hybrid(BySamples):
    """Two groups of two ranks, which share the model by channels."""

    name = "plan by samples and channels"
    covers = ("plan: groups and channels",)
    ranks = 4


COLUMNS = [
    *(Channel(), ChannelWithoutExample(), ChannelOfImages(), ChannelOfTransformers()),
    *(Spatial(), SpatialWithoutExample(), Sequence(), SequenceWithoutExample()),
    *(BySamples(), Hybrid()),
]
