"""Parameter servers: shards of the parameters, and workers that push and pull."""

from renga.distributed.asynchronous.server.server_optimizer import ServerOptimizer

__all__ = ["ServerOptimizer"]
