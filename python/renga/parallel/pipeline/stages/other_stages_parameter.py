"""A parameter of which another rank of a pipeline has the elements."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.parameter import Parameter

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
