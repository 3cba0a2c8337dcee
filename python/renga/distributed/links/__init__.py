"""Links that lie on several ranks, by ChainerMN's names."""

from renga.distributed.links.batch_normalization import MultiNodeBatchNormalization
from renga.distributed.links.create_mnbn_model import create_mnbn_model
from renga.distributed.links.multi_node_chain_list import MultiNodeChainList

__all__ = ["MultiNodeBatchNormalization", "MultiNodeChainList", "create_mnbn_model"]
