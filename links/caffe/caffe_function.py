"""CaffeFunction: a network from one of Caffe's files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from renga.core.link import Chain, Link
from renga.core.variable import Variable, as_variable
from renga.links.caffe.layers import BUILDERS
from renga.links.caffe.network import read_layers
from renga.serializers.files import File, name_of, parsing
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs

# Methods of subclasses that add layers of further types, by type; called with a layer.
METHODS: dict[str, Callable[[Any, Any], Any]] = {}


class CaffeFunction(Chain):
    """The network of a ``.caffemodel`` file, with its weights.

    Layers with weights are children of the layers' names. The layers are Caffe's of
    types BatchNorm, Concat, Convolution, Deconvolution, Dropout, Eltwise,
    InnerProduct, LRN, Pooling, ReLU, Reshape, Scale, Sigmoid, Slice, Softmax,
    SoftmaxWithLoss and Split; others are skipped with a warning. The file is read
    without Protocol Buffers' library.

    Raises:
        FileFormatError: the file is damaged or not a Caffe network.
        RuntimeError: a layer has an option that is not supported.
    """

    def __init__(self, model_path: File) -> None:
        super().__init__()
        self.forwards: dict[str, Any] = {}
        # Outputs that are equal to their layer's input.
        self.split_map: dict[str, str] = {}
        # Those of them that were equal to an input that another layer has replaced.
        self._overwritten: set[str] = set()
        # Name, inputs and outputs of each layer.
        self.layers: list[tuple[str, list[str], list[str]]] = []
        for layer in read_layers(model_path):
            what = f'{name_of(model_path)}: expected the layer "{layer.name}"'
            with parsing(f"{what} of type {layer.type}", model_path, RuntimeError):
                self._add(layer)

    def _add(self, layer: Any) -> None:
        if layer.type in METHODS:
            METHODS[layer.type](self, layer)
        elif layer.type == "Split":
            (source,) = self._bottom(layer)
            self.split_map.update(dict.fromkeys(layer.top, source))
            self._overwritten.difference_update(layer.top)
        elif layer.type in BUILDERS:
            if layer.name in self.forwards:
                raise ValueError("a name that another layer has")
            function = BUILDERS[layer.type](layer)
            self.forwards[layer.name] = function
            self._add_layer(layer)
            if isinstance(function, Link):
                if hasattr(type(self), layer.name):
                    raise ValueError("a name that is a method's")
                self.add_link(layer.name, function)
        elif layer.type != "Data":
            warnings.warn(
                f'Skip the layer "{layer.name}", since CaffeFunction does not '
                f"support {layer.type} layer",
                stacklevel=3,
            )

    def _add_layer(self, layer: Any) -> None:
        """Adds a layer, whose function is in ``forwards``, to those that run."""
        self.layers.append((layer.name, self._bottom(layer), list(layer.top)))
        for top in layer.top:
            self.split_map.pop(top, None)
            same = [name for name, x in self.split_map.items() if x == top]
            self._overwritten.update(same)

    def _bottom(self, layer: Any) -> list[str]:
        for name in layer.bottom:
            if name in self._overwritten:
                raise ValueError(f"another input than {name}, which is overwritten")
        return [self.split_map.get(name, name) for name in layer.bottom]

    def forward(
        self,
        inputs: Mapping[str, object],
        outputs: Sequence[str],
        disable: Collection[str] = (),
        **kwargs: object,
    ) -> tuple[Variable, ...]:
        """The blobs named ``outputs``, computed from those in ``inputs``.

        Layers named in ``disable``, and those whose inputs are missing, do not run.
        """
        check_unexpected_kwargs(
            kwargs, train="train argument is not supported: use renga.using_config"
        )
        assert_kwargs_empty(kwargs)
        variables = {name: as_variable(x) for name, x in inputs.items()}
        for name, bottom, top in self.layers:
            if name in disable or any(blob not in variables for blob in bottom):
                continue
            ys = self.forwards[name](*(variables[blob] for blob in bottom))
            variables.update(zip(top, ys if isinstance(ys, (tuple, list)) else (ys,)))
        return tuple(variables[blob] for blob in outputs)
