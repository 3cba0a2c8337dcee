"""Functions that connect layers of a network."""
