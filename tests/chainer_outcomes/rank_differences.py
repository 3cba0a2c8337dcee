# ruff: noqa: E501
"""Where renga's ranks differ from ChainerMN's on purpose: the outcome of every rank."""

from tests.chainer_outcomes.differences import COMPUTES, all_of, error, value

# The calls of every dtype but int32, int64, float32 and float64.
OF_DTYPES = {
    f"collectives: {call}": COMPUTES
    for dtype in "?bBhHILgF"
    for call in (
        f"comm.allreduce(ones(2, dtype='{dtype}'))",
        f"comm.allgather(ones(2, dtype='{dtype}'))",
        f"comm.gather(ones(2, dtype='{dtype}'))",
        f"comm.alltoall([ones(2, dtype='{dtype}')] * size)",
    )
    if (dtype, call[5:14]) != ("g", "allreduce")
}

DIFFERENCES = {
    **OF_DTYPES,
    **all_of(
        COMPUTES,
        """
collectives: comm.allreduce(2.5)
collectives: comm.allreduce([1, 2])
collectives: comm.allreduce([x(2), x(3)])
collectives: comm.allreduce((x(2), x(2)))
collectives: comm.allreduce(chainer.Variable(x(2)))
collectives: comm.allgather((x(2), x(2)))
collectives: comm.allgather(3)
collectives: comm.gather('text')
collectives: comm.alltoall([x() + i for i in range(size)])
collectives: comm.alltoall([x(2)] * (size - 1) + [x(2, dtype='d')])
collectives: comm.alltoall([x(2)] * (size - 1) + [3])
data: iterated(comm, [1., 2., 3., 4.], 2)
data: iterated(comm, [1., 2., 3.], 2)
data: iterated(comm, [1., 2., 3.], 2, repeat=True)
data: iterated(comm, [(1., 2), (3., 4), (5., 6)], 2)
data: iterated(comm, [1., 2., 3., 4.], 2, rank_master=last)
data: iterated(comm, ['a', 'b'], 1)
data: case_checkpoint_without_a_name
links: normalized(comm, BN((2, 3), comm), shape=(4, 2, 3))
messages: comm.send([1], 0, 0)
messages: comm.send(x('?'), 0, 0)
messages: comm.send([x('f'), x('d')], 0, 0)
messages: comm.send(chainer.Variable(x('f')), 0, 0)
messages: comm.send('text', 0, 0)
""",
    ),
    **all_of(
        error("TypeError"),
        """
collectives: comm.allreduce('text')
functions: CF.allgather(comm, None)
""",
    ),
    **all_of(
        error("InvalidType"),
        """
collectives: comm.allreduce([x(2), x(2, dtype='d')])
""",
    ),
    **all_of(
        error("ValueError"),
        """
collectives: case_configuration_with_unknown_keywords
data: case_snapshot_of_a_rank_that_does_not_exist
data: case_snapshot_of_sets_that_overlap
""",
    ),
    "collectives: case_all_of_the_configuration": value(
        {
            "allreduce_grad_dtype": None,
            "batched_copy": False,
            "all_reduce_algorithm": None,
        }
    ),
    "links: case_first_statistics": value(
        {"tuple": [["float32", [2], [0.0, 0.0]], ["float32", [2], [1.0, 1.0]], 0]}
    ),
    "training: evaluated(comm, total=5)['main/mean']": value(6.0),
}
