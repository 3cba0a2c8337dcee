"""Models whose samples are divided among ranks, or among groups of ranks."""
