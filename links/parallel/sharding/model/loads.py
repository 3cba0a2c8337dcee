"""Whether all ranks have loaded the model that they run together."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from renga.backend import get_array_types
from renga.backends import cuda
from renga.link import Link
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator


class Loads:
    """How often links of a model got values from files or other links on this rank."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, serializer: Deserializer | None = None) -> None:
        """Counts a link, unless the serializer fails later and restores it."""
        self.count += 1
        if serializer is not None:
            serializer.on_failure(self._restored)

    def _restored(self) -> None:
        self.count -= 1

    def require_same(self, comm: Communicator, name: str, model: Link) -> bool:
        """Checks the ranks' counts; all ranks call it. Whether these differed.

        They may differ if the ranks have the same values nevertheless, as if these had
        been broadcast.

        Raises:
            RuntimeError: on all ranks, if only some have loaded the model.
        """
        found = comm.allgather_obj((self.count, _digest(model)))
        counts = [count for count, _ in found]
        if len(set(counts)) == 1:
            return False
        digests = {digest for _, digest in found}
        if len(digests) > 1 or None in digests:
            raise RuntimeError(
                f"{name}: expected every rank to load its parameters, got {counts} "
                f"links loaded on ranks 0 to {comm.size - 1}"
            )
        self.count = max(counts)
        return True


def _digest(model: Link) -> bytes | None:
    """Of all parameters and persistent arrays; None if some are sharded."""
    digest = hashlib.blake2b(digest_size=8)
    if any(getattr(param, "shard_of", None) is not None for param in model.params()):
        return None
    for link in model.links():
        for name in sorted(link._params | link._persistent):
            value: Any = vars(link)[name]
            array = getattr(value, "array", value)
            if isinstance(array, get_array_types()):
                digest.update(cuda.to_cpu(array).tobytes())
    return digest.digest()
