"""What pickles of Chainer name, and the conversion of the states in them.

The objects have the attributes of Chainer's. Most are those of renga, too; the others
are converted when pickle sets the state of an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.core.link import Link
from renga.core.optimizer import Optimizer, UpdateRule
from renga.core.parameter import Parameter
from renga.core.variable import Variable, _rebuild
from renga.iterators import MultithreadIterator
from renga.iterators.multithread_iterator import ReadAheadIterator
from renga.iterators.serial_iterator import OrderedIterator, _State as IteratorState
from renga.links import (
    BinaryHierarchicalSoftmax,
    Deconvolution2D,
)
from renga.links.convolution.deformable_convolution_2d import (
    DeformableConvolution2DSampler,
)
from renga.links.rnn.n_step_rnn import NStepRNNBase
from renga.optimizers.adam import AdamRule

__all__ = [
    "BinaryHierarchicalSoftmaxFunction",
    "DeformableConvolution2DSampler",
    "IteratorState",
    "_Hookable",
    "_OptimizerHookable",
    "_create_variable",
    "_recover_parameter",
    "convert_states",
]

State = dict[str, Any]


def _create_variable(
    data: Any, name: Any, grad: Any, requires_grad: bool, device: Any
) -> Variable:
    """The Variable of a pickle."""
    return _rebuild(Variable, data, name, grad, requires_grad)


def _recover_parameter(data: Any, name: Any, grad: Any, *rest: Any) -> Parameter:
    """The Parameter of a pickle; Chainer 7 tells whether ``grad`` is valid."""
    initializer, update_rule, device = rest[-3:]
    if data is None or rest[:1] == (False,):
        grad = None
    param: Any = _rebuild(Parameter, data, name, grad, True)
    param.initializer = initializer
    param.update_rule = update_rule
    param.to_device(device)
    return param


class _Hookable:
    """The hooks of an optimizer or a rule, which Chainer keeps in an object."""

    _pre_update_hooks: State
    _post_update_hooks: State


class _OptimizerHookable(_Hookable):
    """The hooks of an optimizer."""


class BinaryHierarchicalSoftmaxFunction:
    """The tree of a ``BinaryHierarchicalSoftmax``, a function in Chainer."""

    begins: Any
    paths: Any
    codes: Any


def convert_states() -> None:
    """Has pickle convert Chainer's states of links, optimizers and iterators."""
    for cls, convert in _CONVERSIONS.items():
        _add_conversion(cls, convert)


def _set_attributes(obj: Any, state: State) -> None:
    vars(obj).update(state)


def _add_conversion(cls: Any, convert: Callable[[Any, State], None]) -> None:
    own: Any = vars(cls).get("__setstate__", _set_attributes)

    def __setstate__(self: Any, state: State) -> None:
        state = dict(state)
        convert(self, state)
        own(self, state)

    cls.__setstate__ = __setstate__


def _convert_link(link: Link, state: State) -> None:
    state.pop("_overridden_to_methods", None)
    if state.pop("_Link__init_done", None) is None:
        return  # renga's own
    if isinstance(link, NStepRNNBase):
        del state["ws"], state["bs"]  # the parameters of the children
    elif isinstance(link, Deconvolution2D):
        W = state["W"]
        state["in_channels"] = W.shape[0] if W.is_initialized else None
        if state["outsize"] == (None, None):
            state["outsize"] = None
    elif isinstance(link, BinaryHierarchicalSoftmax):
        tree = state.pop("_func")
        state.update(_begins=tree.begins, _nodes=tree.paths, _sides=tree.codes)


def _convert_hooks(owner: Any, state: State) -> None:
    hooks = state.pop("_hookable", None)
    if hooks is not None:
        for name in ("_pre_update_hooks", "_post_update_hooks"):
            state[name] = dict(vars(hooks)[name])


def _convert_optimizer(optimizer: Optimizer, state: State) -> None:
    _convert_hooks(optimizer, state)
    if "_loss_scale" in state:
        state["_host_loss_scale"] = state.pop("_loss_scale")


def _convert_rule(rule: UpdateRule, state: State) -> None:
    if "_hookable" not in state:
        return  # renga's own
    _convert_hooks(rule, state)
    UpdateRule.__init__(rule)
    if isinstance(rule, AdamRule):
        state.setdefault("initial_alpha", state["hyperparam"].alpha)
    state.pop("beta_power", None)  # of MSVAG, computed from the number of updates


def _convert_iterator(iterator: OrderedIterator, state: State) -> None:
    options = state.pop("init", None)
    if options is not None:  # a MultiprocessIterator
        names = ("current_position", "epoch", "is_new_epoch", "order")
        position = IteratorState(*[state.pop(name) for name in names])
        before = state.pop("previous_epoch_detail")
        for name in ("repeat", "shuffle"):
            state[f"_{name}"] = options.pop(name)
        state["maxtasksperchild"] = options.pop("_maxtasksperchild")
        state.update(options, _state=position, _previous_epoch_detail=before)
    elif isinstance(iterator, MultithreadIterator):
        state.pop("_next", None)
        state.setdefault("n_prefetch", 1)
    state["_shuffle"] = state["_shuffle"] is not False


_CONVERSIONS: dict[type, Callable[[Any, State], None]] = {
    Link: _convert_link,
    Optimizer: _convert_optimizer,
    UpdateRule: _convert_rule,
    OrderedIterator: _convert_iterator,
    ReadAheadIterator: _convert_iterator,
}
