"""Hyperparameters: of an optimizer, and of single parameters that differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from renga.utils.argument import check_number


class Hyperparameter:
    """A set of named values; one that is not set here is read from the parent.

    An optimizer's set is the parent of those of its update rules, so a change to
    the optimizer reaches every parameter that has no value of its own.
    """

    _parent: Hyperparameter | None

    def __init__(self, parent: Hyperparameter | None = None) -> None:
        self._parent = parent

    if TYPE_CHECKING:  # any name may be set

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        # copy and pickle read special methods before a parent is set.
        parent = vars(self).get("_parent")
        if parent is None:
            raise AttributeError(f"there is no hyperparameter {name!r}")
        return getattr(parent, name)

    def __repr__(self) -> str:
        values = sorted(self.get_dict().items())
        fields = ", ".join(f"{name}={value}" for name, value in values)
        return f"{type(self).__name__}({fields})"

    @property
    def parent(self) -> Hyperparameter | None:
        """The set from which unset values are read."""
        return self._parent

    def get_dict(self) -> dict[str, Any]:
        """Every value, those of the parents included."""
        values, parent = vars(self).copy(), self._parent
        while parent is not None:
            values = vars(parent) | values
            parent = parent._parent
        del values["_parent"]
        return values


class DefaultHyperparameter(Hyperparameter):
    """The parent of those of a rule that no optimizer has made."""


class HyperparameterProxy:
    """An attribute of an optimizer or a rule that reads and sets a hyperparameter."""

    def __init__(self, attr_name: str) -> None:
        self._attr_name = attr_name
        self._is_number = False
        self.__doc__ = f"Alias of ``self.hyperparam.{attr_name}``."

    def __set_name__(self, owner: type, name: str) -> None:
        # Hyperparameters of user-defined optimizers are not checked.
        self._is_number = owner.__module__.startswith("renga.optimizers.")

    def __get__(self, owner: Any, owner_type: Any = None) -> Any:
        if owner is None:
            return self
        return getattr(owner.hyperparam, self._attr_name)

    def __set__(self, owner: Any, value: Any) -> None:
        if self._is_number:
            check_hyperparameter(owner, self._attr_name, value)
        setattr(owner.hyperparam, self._attr_name, value)


def check_hyperparameter(optimizer: object, name: str, value: float) -> None:
    """Raises TypeError or ValueError for an invalid hyperparameter."""
    what = f"{type(optimizer).__name__}: {name}"
    check_number(what, value)
    if name in ("beta1", "beta2") and not 0 <= value < 1:
        raise ValueError(f"{what}: expected a number in [0, 1), got {value}")
