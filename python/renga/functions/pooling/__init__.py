"""Functions of windows."""
