"""What converters of functions make nodes with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy

# The function that is converted, with its number among those of its class.
_FUNCTION: ContextVar[str] = ContextVar("_FUNCTION", default="")


@contextlib.contextmanager
def converting(name: str) -> Iterator[None]:
    """A context in which the function of this name is converted."""
    token = _FUNCTION.set(name)
    try:
        yield
    finally:
        _FUNCTION.reset(token)


def get_func_name() -> str:
    """The name of the function that is converted, such as ``ReLU_0``."""
    return _FUNCTION.get()


def make_node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], **kwargs: Any
) -> object:
    """``onnx.helper.make_node``, with the name of the function that is converted."""
    import onnx

    name = get_func_name()
    return onnx.helper.make_node(op_type, inputs, outputs, name, **kwargs)


class GraphBuilder:
    """Makes the nodes of one function, and the names between them."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []

    def op(
        self,
        op_name: str,
        input_names: Sequence[str],
        num_outputs: int = 1,
        **kwargs: object,
    ) -> str | tuple[str, ...]:
        """Adds a node; the name of its output, or the names of several."""
        name = self.node_name()
        names = [name]
        if num_outputs != 1:
            names = [f"{name}_{i}" for i in range(num_outputs)]
        return self.op_output_named(op_name, input_names, names, **kwargs)

    def op_output_named(
        self,
        op_name: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        **kwargs: object,
    ) -> str | tuple[str, ...]:
        """Adds a node whose outputs have these names, which it returns.

        Raises:
            TypeError: ``input_names`` is one string.
        """
        import onnx

        if isinstance(input_names, str):
            raise TypeError(f"op: expected a list of names, got {input_names!r}")
        options: dict[str, Any] = {**kwargs, "name": self.node_name()}
        node = onnx.helper.make_node(op_name, input_names, output_names, **options)
        self._nodes.append(node)
        return node.output[0] if len(output_names) == 1 else tuple(node.output)

    def node_name(self) -> str:
        """The name of the next node."""
        return f"{get_func_name()}_tmp_{len(self._nodes)}"

    def nodes(self, output_names: Sequence[str] | None = None) -> tuple[object, ...]:
        """All nodes; the outputs of the last have ``output_names``, if given."""
        if output_names is not None:
            self._nodes[-1].output[:] = output_names
        return tuple(self._nodes)


def write_tensor_pb(filename: str, name: str, value: numpy.ndarray) -> None:
    """Saves an array as a tensor of this name."""
    import onnx

    with open(filename, "wb") as file:
        file.write(onnx.numpy_helper.from_array(value, name).SerializeToString())


def cleanse_param_name(name: str) -> str:
    """The name in a graph of a parameter, by its path in the model."""
    return "param" + name.replace("/", "_")


def is_support_non_standard_domain() -> bool:
    """True: ONNX does not check operators of other domains, since its version 1.5."""
    return True
