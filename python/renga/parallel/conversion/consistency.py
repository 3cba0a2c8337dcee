"""A check that all ranks made the same call, before they communicate."""

from __future__ import annotations

import hashlib

import numpy

from renga.communicators import Communicator


def require_same_on_all_ranks(
    comm: Communicator,
    caller: str,
    what: str,
    error: type[Exception],
    text: str,
    data: bytes = b"",
) -> None:
    """Raises the same error on every rank unless all have the same text and data.

    Every rank calls it. It costs a message of 8 bytes.

    Args:
        caller: the function that the error names.
        what: the text and the data are, for the error.
        error: the type of the error.
        text: what this rank has, as the error shows it.
        data: bytes that are compared, too, but not shown.

    Raises:
        error: the ranks differ.
    """
    if comm.size == 1:
        return
    digest = hashlib.blake2b(text.encode(), digest_size=8)
    digest.update(data)
    own = numpy.frombuffer(digest.digest(), numpy.int64)
    if (comm.all_gather(own) == own).all():  # on all ranks, or on none
        return
    texts = comm.allgather_obj(text)
    for rank, other in enumerate(texts):
        if other != texts[0]:
            raise error(
                f"{caller}: expected the same {what} on every rank, got {texts[0]} on "
                f"rank 0 and {other} on rank {rank}"
            )
    raise error(
        f"{caller}: expected the same {what} on every rank, got other values of "
        f"{texts[0]} on some"
    )
