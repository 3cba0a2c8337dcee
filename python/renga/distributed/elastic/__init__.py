"""Jobs whose ranks may fail, leave and join while they train."""

from renga.distributed.elastic.checkpoints import Checkpoints
from renga.distributed.elastic.run import run
from renga.distributed.elastic.stream_iterator import StreamIterator

__all__ = ["Checkpoints", "StreamIterator", "run"]
