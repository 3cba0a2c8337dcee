"""Training steps written for renga and for PyTorch, the same work in both.

Each module has ``STEPS``: by model a function that builds everything and returns a
function that makes one step (forward, loss, backward, update) on fixed data.
"""
