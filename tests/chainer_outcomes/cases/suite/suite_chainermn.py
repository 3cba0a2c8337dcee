"""Private functions of ChainerMN's that need no ranks."""

from chainermn.communicators import _communication_utility
from chainermn.datasets import scatter
from chainermn.extensions import _multi_node_snapshot, checkpoint
from chainermn.iterators import multi_node_iterator

EXPRESSIONS = """
    multi_node_iterator._build_ctrl_msg(True, False, True, False, 7)
    multi_node_iterator._build_ctrl_msg(False, True, True, True, 0)
    multi_node_iterator._parse_ctrl_msg([0, 1, 0, 1, 3])
    multi_node_iterator._parse_ctrl_msg(multi_node_iterator._build_ctrl_msg(True, True, False, False, 12))
    list(scatter._scatter_index(10, 3, False))
    list(scatter._scatter_index(10, 3, True))
    list(scatter._scatter_index(9, 3, True))
    list(scatter._scatter_index(2, 4, False))
    list(scatter._scatter_index(2, 4, True))
    [sorted(s) for s in _multi_node_snapshot._parse_replica_sets([0], 4)]
    [sorted(s) for s in _multi_node_snapshot._parse_replica_sets([], 3)]
    [sorted(s) for s in _multi_node_snapshot._parse_replica_sets([[0, 1], range(2, 4)], 5)]
    type(_multi_node_snapshot._parse_replica_sets([0], 2)[0])
    _multi_node_snapshot._parse_replica_sets([[0, 1], [1, 2]], 3)
    _multi_node_snapshot._parse_replica_sets([5], 3)
    _communication_utility.INT_MAX
    _communication_utility.chunked_bcast_obj(1, None, 0)
    _communication_utility.chunked_bcast_obj(1, None, _communication_utility.INT_MAX)
    checkpoint._CheckpointStats().report()
"""


def case_statistics():
    stats = checkpoint._CheckpointStats()
    stats.end()
    before = stats.report()
    stats.start()
    stats.end()
    return before, isinstance(stats.report(), str), stats.report() == before
