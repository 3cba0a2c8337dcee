"""Models that run on shards: replaced links, and checks of calls and functions."""
