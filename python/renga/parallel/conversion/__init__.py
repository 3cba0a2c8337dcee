"""Parallel links in place of serial ones in a model, and what a run of it needs."""
