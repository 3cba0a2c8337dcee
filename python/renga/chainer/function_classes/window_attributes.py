"""The numbers that Chainer's functions of windows keep by axis: ``sy``, ``ph``, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renga.functions.window import as_pair
from renga.utils.conv_nd import as_tuple

# The options of classes, and the attributes for rows and columns.
_PAIRS = {
    "ksize": ("kh", "kw"),
    "stride": ("sy", "sx"),
    "pad": ("ph", "pw"),
    "dilate": ("dy", "dx"),
    "outsize": ("outh", "outw"),
    "output_shape": ("out_H", "out_W"),
}
_OF_IMAGES = {
    "AveragePooling2D": "ksize stride pad",
    "Convolution2DFunction": "stride pad dilate",
    "Deconvolution2DFunction": "stride pad dilate outsize",
    "Im2Col": "ksize stride pad dilate",
    "LocalConvolution2DFunction": "stride",
    "Pooling2D": "ksize stride pad",
    "ROIAverageAlign2D": "outsize",
    "ROIAveragePooling2D": "outsize",
    "ROIMaxAlign2D": "outsize",
    "ROIMaxPooling2D": "outsize",
    "ResizeImages": "output_shape",
    "Shift": "ksize dilate",
    "Unpooling2D": "ksize stride pad outsize",
    "Upsampling2D": "ksize stride pad outsize",
}
# Classes for any number of axes keep one number for each.
_OF_ANY_AXES = (
    "AveragePoolingND ConvolutionND DeconvolutionND MaxPoolingND UnpoolingND"
).split()
# The core's arguments after the arrays, where a call has a window among them.
_CONVOLUTION = ("stride", "pad", "dilate", "groups")
_POOLING = ("ksize", "stride", "pad")
_OF_CALLS = {
    "AveragePooling2D": (1, _POOLING, ()),
    "AveragePoolingND": (1, _POOLING, ("pad_value",)),
    "Convolution2DFunction": (3, _CONVOLUTION, ("cover_all",)),
    "ConvolutionND": (3, _CONVOLUTION, ("cover_all",)),
    "Deconvolution2DFunction": (3, _CONVOLUTION, ("outsize",)),
    "DeconvolutionND": (3, _CONVOLUTION, ("outsize",)),
    "MaxPoolingND": (1, _POOLING, ("cover_all",)),
    "Unpooling2D": (1, _POOLING, ("outsize",)),
}


def window_attributes(
    class_name: str, options: Mapping[str, object], n_axes: int | None = None
) -> dict[str, object]:
    """The attributes that the class sets by options of these names; {} without any.

    ``n_axes`` is the number of axes of windows, where ``options`` have no ``ndim``.

    Raises:
        ValueError: an option has other than two numbers for an image.
    """
    found: dict[str, object] = {}
    if class_name.startswith("AveragePooling"):
        found["cover_all"] = options.get("cover_all", False)
    if class_name in _OF_ANY_AXES:
        n: Any = options.get("ndim", n_axes)
        found["ndim"] = n
        for name in ("ksize", "stride", "pad", "dilate"):
            if name in options:
                extents = _given(options, name)
                found[name] = as_tuple(extents, n, class_name, name)
        if "outsize" in options:
            found["outs"] = options["outsize"]
        return found
    for name in _OF_IMAGES.get(class_name, "").split():
        if name in options:
            extents = _given(options, name)
            pair = (None, None) if extents is None else as_pair(extents, class_name)
            found.update(zip(_PAIRS[name], pair))
    return found


def attributes_of_call(
    class_name: str, arguments: Sequence[object]
) -> dict[str, object]:
    """The attributes for a call of the core; {} where it has no window."""
    if class_name not in _OF_CALLS:
        return {}
    position, names, further = _OF_CALLS[class_name]
    window: Any = arguments[position]
    options: dict[str, object] = dict(zip(names, map(_as_read, window)))
    options.update(zip(further, arguments[position + 1 :]))
    attributes = window_attributes(class_name, options, len(window[0]))
    return {**options, **attributes}


def _given(options: Mapping[str, Any], name: str) -> Any:
    """An option; poolings without a stride take steps of their windows."""
    value = options[name]
    return options["ksize"] if value is None and name == "stride" else value


def _as_read(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
