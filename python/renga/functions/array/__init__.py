"""Functions that rearrange, join and pick elements."""
