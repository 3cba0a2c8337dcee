"""A check that all ranks were called alike, before they communicate."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy


def require_alike(
    comm: Any, where: str, what: str, error: type[Exception], text: str, data: Any = b""
) -> None:
    """Raises the same error on every rank unless they all have the same.

    Every rank has to call it. It costs a message of 8 bytes.

    Args:
        where: what was called.
        what: what has to be the same.
        error: the type of the error.
        text: what this rank has, as the error shows it.
        data: bytes that have to be the same, too, but are not shown.
    """
    if comm.size == 1:
        return
    digest = hashlib.blake2b(text.encode(), digest_size=8)
    digest.update(data)
    own = numpy.frombuffer(digest.digest(), numpy.int64)
    if (comm.all_gather(own) == own).all():  # so on all ranks, or on none
        return
    texts = comm.allgather_obj(text)
    for rank, other in enumerate(texts):
        if other != texts[0]:
            raise error(
                f"{where}: expected the same {what} on every rank, got {texts[0]} on "
                f"rank 0 and {other} on rank {rank}"
            )
    raise error(
        f"{where}: expected the same {what} on every rank, got other values of "
        f"{texts[0]} on some"
    )
