"""Features of models and training × ways to run on ranks: equal to one process.

A :class:`~tests.combinations.row.Row` is a feature: a model, its data and the steps of
a training loop, as a user writes them. A
:class:`~tests.combinations.column.Column` is a way to run on ranks. ``table.py``
crosses them; each cell is a test of ``test_cells.py``.
"""
