"""The graph behind some variables, and a drawing of it in Graphviz's language DOT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from renga import _core

Style = Union[str, Mapping[str, Any]]  # "default" or DOT attributes

_VARIABLE_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}
_FUNCTION_STYLE = {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}


def functions_before(nodes: Iterable[_core.VariableNode]) -> Iterator[_core.Node]:
    """The functions that variable nodes depend on, each once, depth first."""
    pending = list(nodes)[::-1]
    seen: dict[int, Any] = {}  # by ids, which stay theirs
    while pending:
        function = pending.pop().creator_node
        if function is not None and id(function) not in seen:
            seen[id(function)] = function
            yield function
            pending += reversed(function.inputs or ())


class DotNode:
    """A node of the drawing."""

    def __init__(
        self,
        node: object,
        attribute: Mapping[str, object] | None = None,
        show_name: bool = True,
    ) -> None:
        self.node = node
        self.id_ = id(node)
        self.attribute = {"label": _label(node, show_name), **(attribute or {})}

    @property
    def label(self) -> str:
        """Its DOT statement."""
        pairs = ",".join(f'{k}="{_escaped(v)}"' for k, v in self.attribute.items())
        return f"{self.id_} [{pairs}];"


class ComputationalGraph:
    """Variables and functions with the edges between them."""

    def __init__(
        self,
        nodes: Sequence[object],
        edges: Sequence[tuple[object, object]],
        variable_style: Style = "default",
        function_style: Style = "default",
        rankdir: str = "TB",
        remove_variable: bool = False,
        show_name: bool = True,
    ) -> None:
        if rankdir not in ("TB", "BT", "LR", "RL"):
            raise ValueError(
                f"ComputationalGraph: expected TB, BT, LR or RL, got {rankdir!r}"
            )
        self.nodes = nodes
        self.edges = edges
        self.variable_style = _style(variable_style, _VARIABLE_STYLE)
        self.function_style = _style(function_style, _FUNCTION_STYLE)
        self.rankdir = rankdir
        self.remove_variable = remove_variable
        self.show_name = show_name

    def dump(self, format: str = "dot") -> str:
        """The drawing as text; ``format`` can only be ``"dot"``."""
        if format != "dot":
            raise NotImplementedError(f"dump: expected 'dot', got {format!r}")
        nodes, edges = self.nodes, self.edges
        if self.remove_variable:
            nodes, edges = _without_variables(nodes, edges)
        lines = [f"rankdir={self.rankdir};"]
        for node in nodes:
            function = not isinstance(node, _core.VariableNode)
            style = self.function_style if function else self.variable_style
            lines.append(DotNode(node, style, self.show_name).label)
        lines += [f"{id(head)} -> {id(tail)};" for head, tail in edges]
        return "digraph graphname{" + "".join(lines) + "}"


def build_computational_graph(
    outputs: Iterable[object],
    remove_split: bool = True,
    variable_style: Style = "default",
    function_style: Style = "default",
    rankdir: str = "TB",
    remove_variable: bool = False,
    show_name: bool = True,
) -> ComputationalGraph:
    """The graph behind ``outputs``: a Variable, or several, or nodes of their graph.

    Raises:
        TypeError: an output is something else.
        ValueError: ``remove_split`` is off: a split has no node of its own.
    """
    if not remove_split:
        raise ValueError("build_computational_graph: expected remove_split=True")
    nodes: dict[int, Any] = {}
    edges: list[tuple[Any, Any]] = []
    open_functions: list[Any] = []

    def visit(node: Any) -> None:
        if id(node) in nodes:
            return
        nodes[id(node)] = node
        if isinstance(node, _core.VariableNode):
            if node.creator_node is not None:
                visit(node.creator_node)
                edges.append((node.creator_node, node))
        else:
            open_functions.append(node)

    for output in (outputs,) if isinstance(outputs, _core.Variable) else outputs:
        node = output.node if isinstance(output, _core.Variable) else output
        if not isinstance(node, _core.VariableNode) and not hasattr(node, "inputs"):
            raise TypeError(
                "build_computational_graph: expected Variables, or nodes of their "
                f"graph, got {type(node).__name__}"
            )
        visit(node)
    while open_functions:
        function = open_functions.pop()
        for x in function.inputs:
            visit(x)
            edges.append((x, function))
    return ComputationalGraph(
        list(nodes.values()),
        edges,
        variable_style,
        function_style,
        rankdir,
        remove_variable,
        show_name,
    )


def _without_variables(
    nodes: Sequence[Any], edges: Sequence[tuple[Any, Any]]
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    functions = [n for n in nodes if not isinstance(n, _core.VariableNode)]
    creators = {
        id(tail): head for head, tail in edges if isinstance(tail, _core.VariableNode)
    }
    return functions, [
        (creators[id(head)], tail) for head, tail in edges if id(head) in creators
    ]


def _style(style: Style, default: dict[str, str]) -> Mapping[str, Any]:
    if isinstance(style, str):
        return default
    return {"shape": default["shape"], **style}


def _label(node: Any, show_name: bool) -> str:
    label = str(node.label)
    name = getattr(node, "name", None) if show_name else None
    return f"{name}: {label}" if name and name != label else label


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"')
