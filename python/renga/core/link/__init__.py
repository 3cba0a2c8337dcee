"""Links: parameters together with the computation that uses them."""

from renga.core.link import sharing_memory as sharing_memory, traces as traces
from renga.core.link.base import Link as Link
from renga.core.link.chain import Chain as Chain
from renga.core.link.chain_list import ChainList as ChainList
