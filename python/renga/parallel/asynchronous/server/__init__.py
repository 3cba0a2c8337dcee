"""Parameter servers: shards of the parameters, and workers that push and pull."""
