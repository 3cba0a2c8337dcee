"""Cells that keep their state between calls."""

from __future__ import annotations

from typing import ClassVar

from renga.core.device_resident import DeviceResidentsVisitor
from renga.core.link import Chain, Link
from renga.core.types import ArrayLike
from renga.core.variable import Variable


def first_state(link: Link, x: ArrayLike, size: int) -> Variable:
    """A state for each sample of ``x`` where there is none yet: zeros.

    Nobody asks for its gradient, which is not computed.
    """
    return Variable(link.xp.zeros((len(x), size), x.dtype), requires_grad=False)


class StatefulCell(Chain):
    """A chain whose attributes named in ``_states`` are its state, initially None.

    The state moves between devices with the parameters, and is not saved.
    """

    _states: ClassVar[tuple[str, ...]]

    def device_resident_accept(self, visitor: DeviceResidentsVisitor) -> None:
        super().device_resident_accept(visitor)
        for name in self._states:
            state = getattr(self, name)
            if state is not None:
                visitor.visit_variable(state)

    def reset_state(self) -> None:
        """Resets the state, before a new sequence."""
        for name in self._states:
            setattr(self, name, None)

    def _set_states(self, *states: Variable) -> None:
        for name, state in zip(self._states, states):
            assert isinstance(state, Variable), (
                f"set_state: expected {name} to be a Variable, "
                f"got {type(state).__name__}"
            )
            state.to_device(self.device)
            setattr(self, name, state)
