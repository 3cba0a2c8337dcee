"""Types of arguments, for annotations."""

from __future__ import annotations

from typing import Union

import numpy as np

# These arrays have any shape and dtype.
Array = np.ndarray
# A NumPy dtype, or its name; "bfloat16" names one that NumPy lacks.
DtypeLike = Union[np.dtype, type, str]
