"""Work, depth, communication and memory of models."""
