"""Links: parameters together with the computation that uses them."""

from renga.link.base import Link as Link
from renga.link.chain import Chain as Chain
from renga.link.chain_list import ChainList as ChainList
