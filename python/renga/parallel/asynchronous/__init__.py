"""Asynchronous and decentralised training: no barrier, or no centre.

Each function makes an optimizer that takes the place of a MultiNodeOptimizer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Callable

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod, Optimizer
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.parallel.asynchronous.elastic_averaging import ElasticAveragingOptimizer
from renga.parallel.asynchronous.extensions import (
    CommunicationReport,
    StalenessPlot,
    create_average_evaluator,
)
from renga.parallel.asynchronous.gossip.random_gossip import (
    GoSGDOptimizer,
    PairwiseOptimizer,
)
from renga.parallel.asynchronous.gossip.synchronous import (
    DPSGDOptimizer,
    PushSumOptimizer,
)
from renga.parallel.asynchronous.graphs import (
    Complete,
    ExponentialGraph,
    Graph,
    Hypercube,
    Ring,
    Torus,
    Weights,
)
from renga.parallel.asynchronous.hogwild import HogwildOptimizer
from renga.parallel.asynchronous.local_sgd import LocalSGDOptimizer
from renga.parallel.asynchronous.server.server_optimizer import ServerOptimizer
from renga.utils.argument import check_choice, check_count, check_number

__all__ = [
    "AsynchronousOptimizer",
    "CommunicationReport",
    "Complete",
    "ExponentialGraph",
    "Graph",
    "Hypercube",
    "Ring",
    "StalenessPlot",
    "Torus",
    "Weights",
    "create_average_evaluator",
    "create_elastic_averaging_optimizer",
    "create_gossip_optimizer",
    "create_hogwild_optimizer",
    "create_local_sgd_optimizer",
    "create_server_optimizer",
]


def create_server_optimizer(
    actual_optimizer: GradientMethod,
    communicator: Communicator,
    staleness: float = 4,
    shards: int | None = None,
    servers: int | None = None,
    staleness_aware: bool = True,
    timeout: float = 60.0,
    leaf: int = 1,
    rows: Mapping[str, Callable[..., object]] | None = None,
) -> ServerOptimizer:
    """An optimizer whose updates are made by parameter servers.

    Args:
        actual_optimizer: copies of it on the servers make the updates.
        communicator: of the ranks that serve and those that compute.
        staleness: how many updates a worker may be ahead of the slowest: 0 for
            synchronous updates by the mean of all gradients, ``math.inf`` for no bound.
        shards: into which the parameters are divided; by default one for each server.
        servers: how many ranks serve and do not compute, the first ones; by default
            every rank updates shards in memory that they share or, if they do not or
            the optimizer does not allow it, serves beside computing.
        staleness_aware: whether the learning rate of a gradient is divided by the
            number of updates since the parameters that it was computed with.
        timeout: the seconds after which a worker that is not heard of is lost.
        leaf: how many workers, of consecutive ranks, average their gradients and push
            as one, or all if there are fewer; to the servers they are one worker
            (hierarchical servers).
        rows: functions of the arguments of the loss function, which return the indices
            of the rows that it reads of a parameter, by the parameter's name such as
            ``"/embed/W"``. Only those are exchanged; the others have old values until
            ``averaged()`` or ``join()``.

    Raises:
        TypeError, ValueError: if an argument is not of these, or the optimizer has no
            learning rate to divide; in an update, if there are no such parameters or
            rows, or if a gradient is not zero in other rows.

    Source: Gupta et al., Model accuracy and runtime tradeoff in distributed deep
    learning (Rudra), ICDM 2016, for ``leaf``.
    """
    name = "create_server_optimizer"
    _check_participants(name, actual_optimizer, communicator)
    check_number(f"{name}: staleness", staleness, 0)
    if staleness != math.inf and staleness % 1:
        raise ValueError(
            f"{name}: staleness: expected a whole number or infinity, got {staleness}"
        )
    for what, count in (("shards", shards), ("servers", servers), ("leaf", leaf)):
        if count is not None:
            check_count(f"{name}: {what}", count)
    check_number(f"{name}: timeout", timeout, 0)
    if rows is not None and not (
        isinstance(rows, Mapping) and all(map(callable, rows.values()))
    ):
        raise TypeError(
            f"{name}: rows: expected functions by names of parameters, got {rows!r}"
        )
    return ServerOptimizer(
        actual_optimizer,
        communicator,
        servers,
        shards,
        staleness,
        staleness_aware,
        timeout,
        leaf,
        rows,
    )


def create_local_sgd_optimizer(
    actual_optimizer: GradientMethod,
    communicator: Communicator,
    every: int = 16,
    begin: tuple[int, str] = (0, "iteration"),
    outer: GradientMethod | None = None,
) -> LocalSGDOptimizer:
    """An optimizer that trains each rank alone and averages them now and then.

    Args:
        actual_optimizer: makes each rank's updates; its states stay on the rank.
        communicator: of the ranks that train one model.
        every: the updates between two averages.
        begin: when to begin, in ``"iteration"`` or ``"epoch"``; all ranks average
            their gradients in every update before (post-local SGD).
        outer: the optimizer that takes the mean of the ranks' moves as a gradient, such
            as ``NesterovAG(0.7, 0.9)`` (DiLoCo) or ``MomentumSGD(1.0)`` (slow
            momentum); by default the ranks get their mean.

    Raises:
        TypeError, ValueError: if ``every`` is no count, ``begin`` no such time, or
            another argument is not of these.
    """
    name = "create_local_sgd_optimizer"
    _check_participants(name, actual_optimizer, communicator)
    check_count(f"{name}: every", every)
    if not isinstance(begin, (tuple, list)) or len(begin) != 2:
        raise TypeError(
            f"{name}: begin: expected a count and its unit, such as (5, 'epoch'), got "
            f"{begin!r}"
        )
    check_count(f"{name}: begin", begin[0], 0)
    check_choice(f"{name}: expected begin in", begin[1], "iteration", "epoch")
    if outer is not None and not isinstance(outer, Optimizer):
        raise TypeError(f"{name}: outer: expected an optimizer, got {outer!r}")
    return LocalSGDOptimizer(actual_optimizer, communicator, every, begin, outer)


def create_gossip_optimizer(
    actual_optimizer: GradientMethod,
    communicator: Communicator,
    method: str = "sgp",
    graph: Graph | None = None,
    timeout: float = 60.0,
    probability: float = 0.1,
    seed: int = 0,
) -> DPSGDOptimizer | PushSumOptimizer | PairwiseOptimizer | GoSGDOptimizer:
    """An optimizer whose ranks exchange parameters with a few others.

    Args:
        actual_optimizer: makes each rank's updates; its states stay on the rank.
        communicator: of the ranks that train one model; all of them call this.
        method: ``"dpsgd"`` and ``"sgp"`` exchange in every step, with the ranks that
            the graph says; ``"adpsgd"`` and ``"gosgd"`` wait for no rank, and end with
            ``join()``.
        graph: by default :class:`ExponentialGraph`.
        timeout: the seconds after which a rank that is waited for is lost.
        probability: of an exchange after an update, for ``"gosgd"``.
        seed: of the neighbours that ``"adpsgd"`` and ``"gosgd"`` draw.

    Raises:
        TypeError, ValueError: for another method, a graph that does not fit it, or if
            another argument is not of these.
    """
    name = "create_gossip_optimizer"
    _check_participants(name, actual_optimizer, communicator)
    check_number(f"{name}: timeout", timeout, 0)
    check_number(f"{name}: probability", probability, 0)
    if probability > 1:
        raise ValueError(f"{name}: probability: expected at most 1, got {probability}")
    check_count(f"{name}: seed", seed, 0)
    graph = ExponentialGraph() if graph is None else graph
    if not isinstance(graph, Graph):
        raise TypeError(f"{name}: expected a graph, such as Ring(), got {graph!r}")
    common = actual_optimizer, communicator, graph, timeout
    if method == "dpsgd":
        return DPSGDOptimizer(*common)
    if method == "sgp":
        return PushSumOptimizer(*common)
    if method == "adpsgd":
        return PairwiseOptimizer(*common, seed)
    if method == "gosgd":
        return GoSGDOptimizer(*common, seed, probability)
    raise ValueError(
        f"{name}: expected method to be 'dpsgd', 'sgp', 'adpsgd' or 'gosgd', got "
        f"{method!r}"
    )


def create_elastic_averaging_optimizer(
    actual_optimizer: GradientMethod,
    communicator: Communicator,
    every: int = 10,
    beta: float = 0.9,
) -> ElasticAveragingOptimizer:
    """An optimizer whose ranks are pulled towards a common center, and it to them.

    Args:
        actual_optimizer: makes each rank's updates; its states stay on the rank.
        communicator: of the ranks that train one model.
        every: the updates between two pulls.
        beta: of the sum of the ranks' distances, the part by which the center moves;
            each rank moves by this part of its own over the number of ranks.

    Raises:
        TypeError, ValueError: if ``every`` is no count, ``beta`` is no number above 0,
            or another argument is not of these.
    """
    name = "create_elastic_averaging_optimizer"
    _check_participants(name, actual_optimizer, communicator)
    check_count(f"{name}: every", every)
    check_number(f"{name}: beta", beta)
    if not 0 < beta < math.inf:
        raise ValueError(f"{name}: beta: expected a finite number above 0, got {beta}")
    return ElasticAveragingOptimizer(actual_optimizer, communicator, every, beta)


def create_hogwild_optimizer(
    actual_optimizer: GradientMethod, communicator: Communicator
) -> HogwildOptimizer:
    """An optimizer whose ranks update the same memory without locks.

    Args:
        actual_optimizer: an SGD without hooks.
        communicator: of ranks of one node, which share memory.

    Raises:
        TypeError: for another optimizer.
        ValueError: if the ranks do not share memory.
    """
    name = "create_hogwild_optimizer"
    _check_participants(name, actual_optimizer, communicator)
    return HogwildOptimizer(actual_optimizer, communicator)


def _check_participants(
    function: str, optimizer: Optimizer, communicator: Communicator
) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{function}: expected an optimizer, got {optimizer!r}")
    if not hasattr(communicator, "bcast_data"):
        raise TypeError(f"{function}: expected a communicator, got {communicator!r}")
