"""Creators of Variables as objects of Chainer's classes, and the names in hooks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import renga.functions as F
from renga import _core
from renga.chainer.function_classes.generated import LABELS, ROWS, classes
from renga.chainer.function_classes.graph_attributes import (
    CREATOR_ATTRIBUTES,
    CREATOR_NAME,
    CREATOR_VIEW,
    leave_out_of_copies,
)
from renga.chainer.function_classes.kept import (
    KEEPING,
    attribute_of,
    kept_by,
    replace_in_links,
)
from renga.chainer.function_classes.operation import OperationNode
from renga.chainer.function_classes.window_attributes import (
    attributes_of_call,
    window_attributes,
)
from renga.core.around_call import FunctionCall
from renga.core.function_hook import FunctionHook, get_function_hooks
from renga.core.operations import operation_of
from renga.core.types import CalledFunction
from renga.core.variable import Variable
from renga.function_hooks import debug_print, timer
from renga.links import Classifier
from renga.program import Call, is_recording

# Functions and their classes, which the rows do not tell.
_FURTHER = """
average:Mean average_pooling_1d:AveragePoolingND average_pooling_3d:AveragePoolingND
batch_renormalization:BatchRenormalizationFunction
connectionist_temporal_classification:ConnectionistTemporalClassification
convolution_1d:ConvolutionND convolution_3d:ConvolutionND convolution_nd:ConvolutionND
deconvolution_1d:DeconvolutionND deconvolution_3d:DeconvolutionND
deconvolution_nd:DeconvolutionND
decorrelated_batch_normalization:DecorrelatedBatchNormalization dropout:Dropout
einsum:EinSum fft:FFT gaussian:Gaussian ifft:FFT
local_convolution_2d:LocalConvolution2DFunction max_pooling_1d:MaxPoolingND
max_pooling_2d:MaxPoolingND max_pooling_3d:MaxPoolingND max_pooling_nd:MaxPoolingND
negative_sampling:NegativeSamplingFunction relu6:ClippedReLU rrelu:RReLU
simplified_dropconnect:SimplifiedDropconnect softmax_cross_entropy:SoftmaxCrossEntropy
squared_difference:SquaredError tensordot:TensorDot unpooling_1d:UnpoolingND
unpooling_3d:UnpoolingND zoneout:Zoneout
"""
# These draw numbers or update averages: what runs again would be another function.
_IMPURE = (
    "batch_renormalization decorrelated_batch_normalization dropout gaussian "
    "negative_sampling rrelu simplified_dropconnect zoneout"
).split()
# Operations of the core whose results have the label of another one.
_SHARED = "squeeze stack sum_to swapaxes".split()
# The classes of functions that recorders see as one node.
_WHOLE: ContextVar[Collection[str]] = ContextVar("_WHOLE", default=())
# The classes of the core's labels that are not a class's name or label.
_OF_LABELS = {
    "-_": "Neg",
    "convolution2d": "Convolution2DFunction",
    "deconvolution2d": "Deconvolution2DFunction",
    "forget": "Forget",
    "lgamma": "LGamma",
    "maxpoolingnd": "MaxPoolingND",
    "negative": "Neg",
    "rsqrt": "DivFromConstant",
    "sigmoid_nll": "SigmoidCrossEntropy",
    "slice": "GetItem",
    "take": "GetItem",
}
_WITH_NUMBER = {
    "Add": "AddConstant",
    "Div": "DivFromConstant",
    "Mul": "MulConstant",
    "PowVarVar": "PowVarConst",
    "Sub": "SubFromConstant",
}
# What a hook does around functions.
_AROUND = (
    "forward_preprocess forward_postprocess backward_preprocess backward_postprocess"
).split()


def class_names() -> dict[str, str]:
    """The classes of Chainer's functions that are one FunctionNode, by function."""
    pattern = r"^\S+ (\w+)\(.*: .* -> F\.(\w+)\([^()]*\)$"
    found = {f: name for name, f in re.findall(pattern, ROWS, re.MULTILINE)}
    found.update(re.findall(r"(\w+):(\w+)", _FURTHER))
    del found["add"]  # of two, it is an operator
    return found


def name_creators() -> None:
    """Gives creators Chainer's classes, which outputs of functions remember."""
    for function, name in class_names().items():
        own = getattr(F, function)
        if function in KEEPING:
            own = functools.wraps(own)(KEEPING[function](own))
        if isinstance(own, FunctionType) or function in _SHARED:
            setattr(F, function, _remembering(own, function, name))
    replace_in_links()
    leave_out_of_copies()
    # Its default loss is the function as it was.
    init = vars(Classifier)["__init__"]
    init.__defaults__ = tuple(
        getattr(F, x.__name__) if callable(x) else x for x in init.__defaults__
    )
    for cls in (_core.Variable, _core.VariableNode):
        setattr(cls, "creator", property(_creator, _set_creator))  # noqa: B010
    timer.operation_name = name_in_hooks
    debug_print.label_of = _label_in_hooks
    FunctionHook.__init_subclass__ = classmethod(_show_classes)  # type: ignore[assignment]


def _remembering(function: Any, name: str, class_name: str) -> Any:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        is_seen = get_function_hooks() and not is_recording()
        if name not in _IMPURE and (is_seen or class_name in _WHOLE.get()):
            return _seen_as(class_name, function, args, kwargs)
        ys = function(*args, **kwargs)
        for y in ys if isinstance(ys, (tuple, list)) else (ys,):
            # A function may hand on what it got.
            if isinstance(y, Variable) and all(y is not x for x in args):
                vars(y)[CREATOR_NAME] = class_name
        return ys

    # Pickles name the function by where this one is found, with and without the alias.
    call.__module__, call.__qualname__ = F.__name__, name
    return call


@contextlib.contextmanager
def seen_as_one(class_names: Collection[str]) -> Iterator[None]:
    """A context in which functions of these classes are one node for recorders."""
    token = _WHOLE.set(class_names)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def _seen_as(class_name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Calls the function as one node, which is what hooks see of it."""
    call, single = FunctionCall(function, args, kwargs), []

    def compute(*given: object) -> Any:
        ys = call.result_of(given)
        single.append(isinstance(ys, Variable))
        return ys

    members = {"label": _label(class_name, class_name), **_class_member(class_name)}
    node = type(class_name, (OperationNode,), members)()
    node.compute = compute
    options = _options(function, args, kwargs)
    vars(node).update(options)
    with contextlib.suppress(AssertionError, TypeError, ValueError):
        # The function itself refuses what is no window.
        n_axes = getattr(args[0] if args else kwargs.get("x"), "ndim", 2) - 2
        vars(node).update(window_attributes(class_name, options, n_axes))
    ys = node.apply(call.operands)
    return ys[0] if single[0] else ys


def _options(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments that are no Variables, by names that are mostly Chainer's."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # no signature, or a call that fails
        return {}
    bound.apply_defaults()
    return {k: v for k, v in bound.arguments.items() if not isinstance(v, Variable)}


def _label(class_name: str, default: str) -> str:
    label = LABELS.get(class_name, class_name)
    return default if "{" in label else label


def _creator(self: Any) -> Any:
    """The function that computed it, with the name of Chainer's class."""
    node, attributes = self.creator_node, kept_by(self)
    if not _is_own(node) and (node is not None or attributes is None):
        return getattr(node, "function", node)
    kept = getattr(self, "__dict__", {})
    view = kept.get(CREATOR_VIEW)
    if view is None or view.node is not node:
        name = kept.get(CREATOR_NAME) or _name_of(node)
        output = getattr(self, "node", self)
        kept[CREATOR_VIEW] = view = _views(name)(node, attributes, output)
    return view


def _is_own(node: Any) -> bool:
    """Whether renga made the node, and not a class of the user's."""
    module = type(node).__module__
    return isinstance(node, _core.Node) or module.startswith("renga.functions.")


def _set_creator(self: Any, function: Any) -> None:
    for name in (CREATOR_NAME, CREATOR_ATTRIBUTES):
        getattr(self, "__dict__", {}).pop(name, None)
    self.creator_node = getattr(function, "node", function)


class Creator:
    """A node of the core's graph, with the name of Chainer's class."""

    chainers_name = ""

    def __init__(
        self, node: Any, kept: dict[str, object] | None, output: object
    ) -> None:
        self.node = node
        self._kept = kept
        # What is computed of the node's outputs needs them after their Variables.
        self._output = output

    def __getattr__(self, name: str) -> Any:
        return attribute_of(self.chainers_name, self.node, self._kept, name)

    def __eq__(self, other: object) -> bool:
        return self.node is getattr(other, "node", other)

    def __hash__(self) -> int:
        return hash(self.node)

    @property
    def _impl_name(self) -> str:
        return self.chainers_name

    @property
    def label(self) -> str:
        """The name in messages and drawings."""
        return _label(self.chainers_name, self.node.label)


@functools.cache
def _views(name: str) -> type:
    """The class of views of that name; they are instances of Chainer's class, too."""
    members: dict[str, Any] = {"chainers_name": name}
    return type(name, (Creator,), {**members, **_class_member(name)})


def _class_member(name: str) -> dict[str, Any]:
    """The member that makes objects instances of Chainer's class of that name."""
    for (_, known), cls in classes().items():
        if known == name:
            return {"__class__": property(functools.partial(_constant, cls))}
    return {}


def _constant(value: type, _: Any) -> type:
    return value


@functools.cache
def _names_of_labels() -> dict[str, str]:
    names = {name for _, name in classes()}
    known = {name.lower(): name for name in names}
    known.update({LABELS.get(name, name).lower(): name for name in names})
    return {**known, **_OF_LABELS}


def _name_of(node: Any) -> str:
    """The class of a node, by its label."""
    name = _name_of_label(node.label)
    inputs = node.operands if isinstance(node, _core.Call) else node.inputs
    one_input = inputs is not None and len(inputs) == 1
    return _WITH_NUMBER.get(name, name) if one_input else name


def _name_of_label(label: str) -> str:
    names, key = _names_of_labels(), label.lower()
    return names.get(key) or names.get(key.replace("_", ""), label)


def name_in_hooks(function: CalledFunction) -> str:
    """The class's name of a function that a hook sees."""
    if not isinstance(function, _core.Call) and not _is_own(function):
        return type(getattr(function, "function", function)).__name__
    operation = operation_of(function)
    name = None if operation is None else class_names().get(operation.name)
    return name or _name_of(function)


def name_of_call(call: Call) -> str:
    """The class's name of a call of a program."""
    if call.node is not None:
        return name_in_hooks(call.node)
    name = class_names().get(call.operation) or _name_of_label(call.label)
    return _WITH_NUMBER.get(name, name) if len(call.operands) == 1 else name


def _label_in_hooks(function: Any) -> str:
    """The label of a function that a hook sees."""
    if isinstance(function, _core.Call) or _is_own(function):
        return _label(name_in_hooks(function), function.label)
    return str(function.label)


def _show_classes(cls: type[FunctionHook], **kwargs: Any) -> None:
    """Has the methods of a user's hook see objects of Chainer's classes."""
    super(FunctionHook, cls).__init_subclass__(**kwargs)
    for name in _AROUND if not cls.__module__.startswith("renga.") else ():
        if isinstance(vars(cls).get(name), FunctionType):
            setattr(cls, name, _with_view(vars(cls)[name]))


def _with_view(method: Any) -> Any:
    @functools.wraps(method)
    def around(self: FunctionHook, function: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(function, _core.Call) or _is_own(function):
            name, kept = name_in_hooks(function), None
            if isinstance(function, _core.Call):
                # It has no outputs yet that could have kept attributes.
                kept = attributes_of_call(name, function.arguments)
            function = _views(name)(function, kept, None)
        return method(self, function, *args, **kwargs)

    return around
