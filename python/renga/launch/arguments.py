"""What the options of ``renga run`` say about ranks and hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Count(NamedTuple):
    """The least and the largest number of ranks of a job."""

    least: int
    most: int


def parse_ranks(text: str) -> Count:
    """``4``, or ``2:4`` for a job that goes on with two to four ranks.

    Raises:
        ValueError: it is neither.
    """
    match = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    if match is None:
        raise ValueError(f"-n: expected a number of ranks or MIN:MAX, got {text!r}")
    least = int(match[1])
    count = Count(least, int(match[2] or least))
    if count.least < 1:
        raise ValueError(f"-n: expected at least one rank, got {text}")
    if count.least > count.most:
        raise ValueError(f"-n: expected MIN:MAX with MIN <= MAX, got {text}")
    return count


def parse_hosts(text: str) -> dict[str, int]:
    """``a:2,b:2``: hosts and how many ranks each of them takes, 1 unless given.

    Raises:
        ValueError: it is not a list of hosts.
    """
    hosts: dict[str, int] = {}
    for entry in text.split(","):
        match = re.fullmatch(r"([\w.-]+)(?::([1-9]\d*))?", entry.strip())
        if match is None or match[1] in hosts:
            raise ValueError(
                f"--hosts: expected NAME:RANKS,NAME:RANKS, got {entry!r} in {text!r}"
            )
        hosts[match[1]] = int(match[2] or 1)
    return hosts


def fill(hosts: Mapping[str, int], ranks: int) -> dict[str, int]:
    """The ranks of each host, if hosts are filled one after the other."""
    filled: dict[str, int] = {}
    for host, slots in hosts.items():
        count = min(slots, ranks - sum(filled.values()))
        if count > 0:
            filled[host] = count
    return filled


def written(hosts: Mapping[str, int]) -> str:
    """``a:2, b:2``."""
    return ", ".join(f"{host}:{count}" for host, count in hosts.items())
