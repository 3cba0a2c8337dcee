"""Long short-term memory along the branches of a tree."""

from __future__ import annotations

from typing import Any

from renga.core.link import Chain
from renga.core.variable import Variable
from renga.functions import concat, split_axis, tree_lstm
from renga.links.connection.linear import Linear
from renga.links.rnn.state import first_state
from renga.utils.extents import check_sizes


class ChildSumTreeLSTM(Chain):
    """A node of any number of children, whose outputs are added.

    ``link(c1, …, cn, h1, …, hn, x)`` returns the node's ``(c, h)``; a missing
    child may be None.

    Shapes:
        c1, …, cn, h1, …, hn, c, h: (N, out_size)
        x: (N, in_size)

    Raises:
        AssertionError: an even number of arguments.

    Source: Tai et al., Improved semantic representations from tree-structured long
    short-term memory networks, 2015.
    """

    W_x: Linear
    W_h_aio: Linear
    W_h_f: Linear

    def __init__(self, in_size: int | None, out_size: int) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        with self.init_scope():
            self.W_x = Linear(in_size, 4 * out_size)
            self.W_h_aio = Linear(out_size, 3 * out_size, nobias=True)
            self.W_h_f = Linear(out_size, out_size, nobias=True)
        self.in_size = in_size
        self.state_size = out_size

    def forward(self, *cshsx: object) -> tuple[Variable, Variable]:
        """The node's ``(c, h)``."""
        *children, x = cshsx
        x = _known(x, children, self)
        cs, hs = _states(children or [None, None], x, self)
        parts: Any = split_axis(self.W_x(x), [3 * self.state_size], 1)
        aio, f = parts
        if not children:
            return tree_lstm(*cs, concat([aio, f]))
        aio = aio + self.W_h_aio(sum(hs[1:], hs[0]))
        return tree_lstm(*cs, concat([aio, *(f + self.W_h_f(h) for h in hs)]))


class NaryTreeLSTM(Chain):
    """A node of ``n_ary`` children, with weights of its own for each of them.

    ``link(c1, …, cn, h1, …, hn, x)`` returns the node's ``(c, h)``; a missing
    child is None.

    Shapes:
        c1, …, cn, h1, …, hn, c, h: (N, out_size)
        x: (N, in_size)

    Raises:
        AssertionError: another number of children.

    Source: as ``ChildSumTreeLSTM``.
    """

    W_x: Linear

    def __init__(self, in_size: int | None, out_size: int, n_ary: int = 2) -> None:
        assert n_ary >= 1, f"NaryTreeLSTM: expected children, got {n_ary}"
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        gates = (3 + n_ary) * out_size
        with self.init_scope():
            self.W_x = Linear(in_size, gates)
        for k in range(1, n_ary + 1):
            self.add_link(f"W_h{k}", Linear(out_size, gates, nobias=True))
        self.in_size = in_size
        self.state_size = out_size
        self.n_ary = n_ary

    def forward(self, *cshsx: object) -> tuple[Variable, Variable]:
        """The node's ``(c, h)``."""
        *children, x = cshsx
        assert len(children) == 2 * self.n_ary, (
            f"NaryTreeLSTM: expected {self.n_ary} cells and outputs and x, got "
            f"{len(cshsx)} arguments"
        )
        x = _known(x, children, self)
        cs, _ = _states(children, x, self)
        gates = self.W_x(x)
        for k, h in enumerate(children[self.n_ary :], 1):
            if h is not None:
                gates = gates + self[f"W_h{k}"](h)
        return tree_lstm(*cs, gates)


def _known(x: Any, children: list[Any], link: Any) -> Any:
    """``x``, zeros where it is None.

    Raises:
        ValueError: nothing tells the number of samples.
    """
    if x is not None:
        return x
    known = [v for v in children if v is not None]
    if not known:
        raise ValueError(f"{type(link).__name__}: expected x or a state, got None")
    width = link.W_x.in_size
    return first_state(link, known[0], width)


def _states(children: list[Any], x: Any, link: Any) -> tuple[list[Any], list[Any]]:
    """Cells and outputs of the children, zeros for missing ones."""
    assert len(children) % 2 == 0, "tree_lstm: expected as many cells as outputs"
    zeros = first_state(link, x, link.state_size)
    states = [zeros if v is None else v for v in children]
    return states[: len(states) // 2], states[len(states) // 2 :]
