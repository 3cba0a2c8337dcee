"""Mean of windows."""

from __future__ import annotations

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.window import pooling_window_2d


@overridable
def average_pooling_2d(
    x: ArrayLike, ksize: Extents, stride: Extents | None = None, pad: Extents = 0
) -> Variable:
    """The mean of each window of an image; padding counts as zeros.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        InvalidType: ``x`` is not an image of floats.
    """
    window = pooling_window_2d("average_pooling_2d", ksize, stride, pad)
    return _core.ops.average_pooling_2d(x, window)
