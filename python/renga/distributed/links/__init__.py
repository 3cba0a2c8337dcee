"""Links that lie on several ranks, by ChainerMN's names."""

from renga.distributed.links.batch_normalization import MultiNodeBatchNormalization
from renga.distributed.links.create_mnbn_model import create_mnbn_model

__all__ = ["MultiNodeBatchNormalization", "create_mnbn_model"]
