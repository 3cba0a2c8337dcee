"""Cells and stacks of cells that carry a state along a sequence."""
