"""The parameters of a pipeline's model, of which each rank has those of its stages."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.backend import get_array_types
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.own_values import own_persistent
from renga.core.optimizer import Optimizer
from renga.core.optimizer.update_rule import RuleValues
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.parallel.pipeline.schedule import rank_of_stage
from renga.parallel.placement.kept_by_link import PartKeptByLink
from renga.utils.containers import leaves

_own_array: Any = Parameter.array


class OtherStagesParameter(Parameter):
    """It has elements while its rank has those of all stages.

    Raises:
        NoElements: by ``array``, at other times.
    """

    def _get_array(self) -> Any:
        if self.is_meta:
            raise _core.NoElements(
                f"{self.name}.array: expected a parameter of a stage of this rank of a "
                f"Pipeline, got one of stage {self.stage}: read or change it in a "
                "context of gathered_parameters(), which every rank enters"
            )
        return _own_array.fget(self)

    array = data = _own_array.getter(_get_array)


def free_elements(param: Parameter) -> None:
    """Drops the elements of a parameter that is another rank's."""
    if type(param) is Parameter:
        param.__class__ = OtherStagesParameter
    param.move_to("meta:0")
    param.grad = None


class StageParameters:
    """Keeps other stages' parameters without elements, and gathers them for files.

    Args:
        model: the whole model; its parameters have their stages as attributes.
        comm: the ranks of the pipeline.
        homes: the stages that compute the persistent arrays of links, by paths.
    """

    def __init__(self, model: Link, comm: Communicator, homes: Mapping[str, int]):
        self.model = model
        self._comm = comm
        self._homes = homes

    def deepcopy(self, memo: dict[int, object]) -> StageParameters:
        """The same of a copy of the model."""
        for x in (*self.model.params(), *_kept_by_links(self.model)):
            if x.is_meta:
                memo[id(x)] = _copy_without_elements(x, memo)
        model = copy.deepcopy(self.model, memo)
        for param, copied in zip(self.model.params(), model.params()):
            copied.stage = param.stage
        return StageParameters(model, self._comm, self._homes)

    def copy(self, source: Link, copy_persistent: bool) -> None:
        """Copies the parameters, and the persistent values, of a model of this kind.

        Raises:
            ValueError: the models have other parameters.
        """
        params = dict(source.namedparams())
        for name, param in self.model.namedparams():
            if name not in params:
                raise ValueError(f"copyparams: expected a parameter {name}, got none")
            if not (param.is_meta or params[name].is_meta):
                param.copydata(params[name])
        links = dict(source.namedlinks())
        for path, link in self.model.namedlinks():
            if copy_persistent and path in links:
                _copy_persistent(link, links[path])

    def is_own(self, param: Parameter) -> bool:
        """Whether a parameter belongs to a stage of this rank.

        Raises:
            ValueError: the model got it after it was cut into stages.
        """
        if param.stage < 0:
            paths = [n for n, each in self.model.namedparams() if each is param]
            raise ValueError(
                "Pipeline: expected the parameters of the model that was cut into "
                f"stages, got another one, {', '.join(paths)}: make a Pipeline of the "
                "changed model"
            )
        return self._rank_of(param.stage) == self._comm.rank

    def _rank_of(self, stage: int) -> int:
        return rank_of_stage(stage, self._comm.size)

    def free_others(self) -> None:
        """Drops the elements and the optimizer's states of other ranks' parameters."""
        for param in self._params():
            if not self.is_own(param):
                free_elements(param)
                if param.update_rule is not None:
                    param.update_rule.set_values(RuleValues())

    def allocate_others(self) -> None:
        """Gives other ranks' parameters elements, to load into; those are NaN."""
        for param in self._params():
            if param.is_meta:
                param.array = numpy.full(param.shape, numpy.nan, param.dtype)

    def gather(self) -> None:
        """Gives every rank all parameters and persistent values; every rank calls it.

        After it and :meth:`gather_states`, files equal those of a single process.
        """
        for param in self._params():
            owner = self._rank_of(param.stage)
            param.array = self._broadcast(param, owner, self._comm)
        for path, link in sorted(self.model.namedlinks(), key=lambda item: item[0]):
            if path in self._homes:
                home = self._rank_of(self._homes[path])
                _broadcast_persistent(link, home, self._comm)

    def gather_states(self) -> None:
        """Gives every rank all states of the optimizer; every rank calls it."""
        for param in self._params():
            _broadcast_state(param, self._rank_of(param.stage), self._comm)

    def take_from(self, root: int, replicas: Communicator | None) -> None:
        """Sets this rank's parameters and persistent values to those of ``root``.

        Every rank calls it. What ``root`` has not loaded, which is NaN, stays as it is.

        Args:
            root: a rank of the pipeline.
            replicas: if given, ``root`` is a rank of these, which have the same stages.
        """
        comm = self._comm if replicas is None else replicas
        for param in self._params():
            if replicas is None or self.is_own(param):
                array = self._broadcast(param, root, comm)
                if self.is_own(param) and not numpy.isnan(array).all():
                    param.array[...] = array
        for _, link in sorted(self.model.namedlinks(), key=lambda item: item[0]):
            _broadcast_persistent(link, root, comm)

    def take_states_from(
        self, root: int, optimizer: Optimizer, replicas: Communicator | None
    ) -> None:
        """The same for the states of an optimizer, and its counts unless it is None."""
        comm = self._comm if replicas is None else replicas
        for param in self._params():
            if replicas is None or self.is_own(param):
                _broadcast_state(param, root, comm)
        if optimizer is not None:
            counts = comm.bcast_obj((optimizer.t, optimizer.epoch), root=root)
            optimizer.t, optimizer.epoch = counts

    def _params(self) -> list[Parameter]:
        distinct = distinct_params(self.model, include_uninit=False)
        return [each.param for each in distinct]

    def _broadcast(
        self, param: Parameter, root: int, comm: Communicator
    ) -> numpy.ndarray:
        """The elements that ``root`` has of a parameter."""
        if comm.rank == root:
            array = numpy.asarray(param.array, order="C")
        else:
            array = numpy.empty(param.shape, param.dtype)
        comm.broadcast(array, root)
        return array


def _broadcast_state(param: Parameter, root: int, comm: Communicator) -> None:
    rule = param.update_rule
    values = _sent(None if rule is None else rule.get_values(), root, comm)
    if comm.rank != root and rule is not None:
        rule.set_values(values)


def _broadcast_persistent(link: Link, root: int, comm: Communicator) -> None:
    own = own_persistent(link)
    if not own:
        return
    values = _sent(own, root, comm)
    if comm.rank != root:
        vars(link).update(values)


def _sent(value: Any, root: int, comm: Communicator) -> Any:
    """The value that ``root`` has, on every rank."""
    return comm.bcast_obj(value if comm.rank == root else None, root=root)


def _kept_by_links(model: Link) -> Iterator[Variable]:
    """The Variables that links have as attributes."""
    for link in model.links():
        for value in vars(link).values():
            kept = value.value if isinstance(value, PartKeptByLink) else value
            yield from (leaf for leaf in leaves(kept) if isinstance(leaf, Variable))


def _copy_without_elements(x: Variable, memo: dict[int, Any]) -> Variable:
    """A copy of another rank's Variable, with a shape and a dtype only."""
    new = type(x).__new__(type(x))
    array = numpy.empty(x.shape, x.dtype)
    Variable.__init__(new, array, name=x.name, requires_grad=x.requires_grad)
    new.move_to("meta:0")
    new.__dict__.update(copy.deepcopy(vars(x), memo))
    return new


def _copy_persistent(link: Link, source: Link) -> None:
    array_types: Any = get_array_types()
    for name, value in own_persistent(link).items():
        new = getattr(source, name)
        if isinstance(value, array_types):
            value[...] = link.device.send(new)
        else:
            setattr(link, name, copy.deepcopy(new))
