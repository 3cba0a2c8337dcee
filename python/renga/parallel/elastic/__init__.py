"""Jobs whose ranks may fail, leave and join while they train."""

from renga.parallel.elastic.checkpoints import Checkpoints
from renga.parallel.elastic.run import run
from renga.parallel.elastic.stream_iterator import StreamIterator

__all__ = ["Checkpoints", "StreamIterator", "run"]
