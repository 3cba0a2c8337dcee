"""What a communicator has in the place of its ranks after its end."""

from __future__ import annotations

from typing import Any, NoReturn


class Finalized:
    """Raises whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _raise(name)


def _raise(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: this communicator was ended by finalize()")
