"""Random collectives in which one rank's call may differ from the others'.

    python tests/communicators/errors/mismatches.py --rounds 100000 --seed 1 --ranks 3

If all calls match, the result equals NumPy's. Otherwise every rank raises the same
InvalidType, nothing has been written, and the communicator can still be used. Runs on
threads, with and without shared memory, and, under mpiexec, on processes.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
from typing import Any

import numpy as np

from renga.communicators import create_communicator, local
from renga.utils.type_check import InvalidType

# The arguments that have to match, by collective.
FIELDS: dict[str, list[str]] = {
    "all_reduce": ["shape", "dtype", "op"],
    "all_reduce in place": ["shape", "dtype", "op"],
    "all_reduce of two": ["shape", "dtype", "op"],
    "reduce_scatter": ["shape", "dtype", "op"],
    "all_gather": ["shape", "dtype"],
    "all_to_all": ["shape", "dtype"],
    "broadcast": ["shape", "dtype", "root"],
    "barrier": [],
    "window": ["shape", "dtype"],
    "allgather": [],
    "alltoall": [],
    "bcast": ["root"],
    "gather": ["root"],
    "scatter": ["root"],
    "allgather_obj": [],
    "bcast_obj": ["root"],
    "gather_obj": ["root"],
    "scatter_obj": ["root"],
    "split": [],
}
# Empty, 0-d, short enough for the first message, and more than one chunk.
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (125,), (127,), (4097,), (300_000,)]
DTYPES = ["float32", "float64", "int32", "int64", "float16", "uint8", "bool"]
OPS = ["sum", "max", "min", "prod", "mean"]

Call = dict[str, Any]


def random_call(chance: random.Random, size: int) -> Call:
    call = {
        "name": chance.choice(list(FIELDS)),
        "shape": chance.choice(SHAPES),
        "dtype": chance.choice(DTYPES),
        "op": chance.choice(OPS),
        "root": chance.randrange(size),
        "gaps": chance.random() < 0.2,
    }
    if call["op"] == "mean" and "float" not in call["dtype"]:
        call["op"] = "max"
    if call["dtype"] == "bool":
        call["op"] = chance.choice(["max", "min"])
    return call


def asked(call: Call) -> tuple[Any, ...]:
    """What of a call the ranks have to agree on."""
    name = call["name"].replace(" in place", "")
    fields = FIELDS[call["name"]]
    if name == "window":
        size = int(np.prod(call["shape"])) * np.dtype(call["dtype"]).itemsize
        return name, size
    return name, *(call[field] for field in fields)


def random_calls(chance: random.Random, size: int) -> list[Call]:
    """One for each rank: the same, but for at most one rank and one thing."""
    call = random_call(chance, size)
    calls = [dict(call) for _ in range(size)]
    if chance.random() < 0.6:
        other = random_call(chance, size)
        one = chance.randrange(size)
        field = chance.choice(["name", "shape", "dtype", "op", "root", "all"])
        calls[one] = other if field == "all" else {**call, field: other[field]}
        both = [calls[one], call]
        if any(c["op"] == "mean" and "float" not in c["dtype"] for c in both):
            calls[one]["op"] = "max"
            if "float" not in call["dtype"]:
                for c in calls:
                    c["op"] = "max"
        if any(c["dtype"] == "bool" for c in both):
            for c in calls:
                c["op"] = "max"
    return calls


@functools.lru_cache(32)  # each rank computes what it expects from all ranks' operands
def values(shape: tuple[int, ...], rank: int) -> np.ndarray:
    """Small numbers, which operands are copies of."""
    return np.asarray(np.random.RandomState(rank + 7).randint(0, 3, shape, np.int8))


def operand(call: Call, rank: int, rows: int | None = None) -> np.ndarray:
    shape = call["shape"] if rows is None else (rows, *call["shape"])
    x = values(shape, rank).astype(call["dtype"])
    return np.repeat(x, 2, axis=-1)[..., ::2] if call["gaps"] and x.ndim else x


def operands(call: Call, size: int, rows: int | None = None) -> list[np.ndarray]:
    return [operand(call, rank, rows) for rank in range(size)]


def act(comm: Any, calls: list[Call]) -> tuple[Any, Any]:
    """What comes of this rank's call, and what has to."""
    call = calls[comm.rank]
    name, op, root = call["name"], call["op"], call["root"]
    join = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}
    join["prod"] = np.multiply
    mine = operand(call, comm.rank)

    def reduced(rows: int | None = None) -> np.ndarray:
        arrays = operands(call, comm.size, rows)
        arrays = arrays if rows is None else [x[comm.rank] for x in arrays]
        total = join[op].reduce(arrays, axis=0, dtype=arrays[0].dtype)
        return total / len(arrays) if op == "mean" else total

    if name == "all_reduce":
        return comm.all_reduce(mine, op), reduced()
    if name == "all_reduce in place":
        mine = mine.copy()
        return comm.all_reduce(mine, op, out=mine), reduced()
    if name == "all_reduce of two":
        ys = comm.all_reduce([mine, mine], op)
        return ys[1], reduced()
    if name == "reduce_scatter":
        mine = operand(call, comm.rank, comm.size)
        return comm.reduce_scatter(mine, op), reduced(comm.size)
    if name == "all_gather":
        return comm.all_gather(mine), np.stack(operands(call, comm.size))
    if name == "all_to_all":
        mine = operand(call, comm.rank, comm.size)
        every = operands(call, comm.size, comm.size)
        return comm.all_to_all(mine), np.stack([x[comm.rank] for x in every])
    if name == "broadcast":
        return comm.broadcast(mine.copy(), root), operand(call, root)
    if name == "barrier":
        return comm.barrier(), None
    if name == "window":
        return comm.window(call["shape"], call["dtype"]).shape, call["shape"]
    return act_unevenly(comm, name, calls[root], root)


def act_unevenly(comm: Any, name: str, call: Call, root: int) -> tuple[Any, Any]:
    """The same of methods whose ranks may bring anything; ``call`` is the root's."""
    here = comm.rank == root
    if name == "allgather":
        return comm.allgather(np.full(comm.rank, 5))[-1], np.full(comm.size - 1, 5)
    if name == "alltoall":
        sent = [np.full((comm.rank, to), comm.rank) for to in range(comm.size)]
        expected = np.full((comm.size - 1, comm.rank), comm.size - 1)
        return comm.alltoall(sent)[-1], expected
    if name == "bcast":
        x = operand(call, root)
        return comm.bcast(x if here else None, root=root), x
    if name == "gather":
        every = comm.gather(np.full(comm.rank, 2.0), root)
        return (every[-1], np.full(comm.size - 1, 2.0)) if here else (every, None)
    if name == "scatter":
        xs = operands(call, comm.size)
        return comm.scatter(xs if here else None, root), xs[comm.rank]
    if name == "allgather_obj":
        return comm.allgather_obj(comm.rank), list(range(comm.size))
    if name == "bcast_obj":
        return comm.bcast_obj("text" if here else None, root=root), "text"
    if name == "gather_obj":
        every = list(range(comm.size))
        return comm.gather_obj(comm.rank, root), every if here else None
    if name == "scatter_obj":
        return comm.scatter_obj(["a"] * comm.size if here else None, root), "a"
    return comm.split(0, -comm.rank).rank, comm.size - 1 - comm.rank


def play(comm: Any, rounds: int, seed: int, most_splits: int = 20) -> int:
    """Plays on one rank; the number of rounds in which the ranks agreed."""
    chance = random.Random(seed)
    agreed = splits = 0
    for number in range(rounds):
        calls = random_calls(chance, comm.size)
        made = {"split", "window"} & {call["name"] for call in calls}
        splits += bool(made)
        if made and splits > most_splits:
            continue  # they stay until the end
        same = len({asked(c) for c in calls}) == 1
        what = f"round {number} of seed {seed}: {calls}"
        text = None
        try:
            got, expected = act(comm, calls)
            if same:
                np.testing.assert_array_equal(got, expected, err_msg=what)
        except InvalidType as error:
            text = str(error)
        texts = set(comm.allgather_obj(text))
        assert len(texts) == 1, (what, texts)
        assert (text is None) == same, (what, text)
        assert same or "expected the same call on every rank" in str(text), text
        agreed += same
    return agreed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=3)
    arguments = parser.parse_args()
    rounds, seed, size = arguments.rounds, arguments.seed, arguments.ranks
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        for kind in ("mpi", "messages"):
            comm = create_communicator(kind)
            agreed = play(comm, rounds, seed)
            if comm.rank == 0:
                print(f"{kind}: {rounds} rounds, the ranks agreed in {agreed}")
        return
    for shared in (True, False):
        agreed = local.run(play, rounds, seed, ranks=size, shared_memory=shared)[0]
        name = "shared memory" if shared else "messages"
        print(f"{name}: {rounds} rounds, the ranks agreed in {agreed}")


if __name__ == "__main__":
    main()
