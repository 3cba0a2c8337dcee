"""Parameter servers: shards of the parameters, and workers that push and pull."""

from renga.parallel.asynchronous.server.server_optimizer import ServerOptimizer

__all__ = ["ServerOptimizer"]
