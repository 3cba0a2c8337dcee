"""Crops of images."""

from __future__ import annotations

import numpy


def oversample(images: object, crop_dims: tuple[int, int]) -> numpy.ndarray:
    """The four corner crops and the centre crop of each image, and their mirror images.

    Shapes:
        images: (N, C, H, W)
        crop_dims: (h, w)
        return: (10 N, C, h, w), grouped by image
    """
    images = numpy.asarray(images)
    rows, columns = (n - c for n, c in zip(images.shape[2:], crop_dims))
    if rows < 0 or columns < 0:
        raise ValueError(
            f"oversample: expected images of at least {crop_dims}, got {images.shape}"
        )
    starts = [(r, c) for r in (0, rows) for c in (0, columns)]
    starts.append((rows // 2, columns // 2))
    height, width = crop_dims
    crops = [images[:, :, r : r + height, c : c + width] for r, c in starts]
    crops += [crop[..., ::-1] for crop in crops]
    return numpy.stack(crops, 1).reshape(-1, images.shape[1], height, width)
