"""Models of which each rank, or each group of ranks, computes some of the samples."""
