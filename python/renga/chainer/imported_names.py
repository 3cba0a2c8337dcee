"""Names that Chainer's modules have because they import them, and that scripts use."""

from __future__ import annotations

import importlib
from types import ModuleType

# The module that each name refers to.
_SOURCES = {
    "argument": "chainer.utils.argument",
    "array": "chainer.functions.array",
    "backend": "chainer.backend",
    "basic_math": "chainer.functions.math.basic_math",
    "cache": "chainer.utils.cache",
    "chainer": "chainer",
    "chainerx": "chainerx",
    "configuration": "chainer.configuration",
    "constant": "chainer.initializers.constant",
    "collections_abc": "collections.abc",
    "conv_nd_kernel": "chainer.utils.conv_nd_kernel",
    "cuda": "chainer.backends.cuda",
    "device_resident": "chainer.device_resident",
    "distribution": "chainer.distribution",
    "distributions": "chainer.distributions",
    "error": "chainer.utils.error",
    "extensions": "chainer.training.extensions",
    "function_hook": "chainer.function_hook",
    "function_link": "chainer.testing.function_link",
    "function_node": "chainer.function_node",
    "graph_optimizations": "chainer.graph_optimizations",
    "helper": "chainer.testing.helper",
    "imgproc": "chainer.utils.imgproc",
    "initializers": "chainer.initializers",
    "intel64": "chainer.backends.intel64",
    "interval_trigger": "chainer.training.triggers.interval_trigger",
    "link_hook": "chainer.link_hook",
    "link_hooks": "chainer.link_hooks",
    "link_module": "chainer.link",
    "memory_layouts": "chainer.memory_layouts",
    "optimizer_hooks": "chainer.optimizer_hooks",
    "precision": "chainer.utils.precision",
    "rnn": "chainer.functions.rnn",
    "sampling": "chainer.initializers.sampling",
    "serializer_module": "chainer.serializer",
    "testing": "chainer.testing",
    "theano": "chainer.functions.theano",
    "types": "chainer.types",
    "util": "chainer.functions.util",
    "utils": "chainer.utils",
    "variable": "chainer.variable",
    "warnings": "chainer.warnings",
}
_CLASSES = {
    "__version__": "renga.chainer.names.environment",
    "GradientClipping": "renga.chainer.names.optimizer",
    "GradientHardClipping": "renga.chainer.names.optimizer",
    "GradientNoise": "renga.chainer.names.optimizer",
    "Lasso": "renga.chainer.names.optimizer",
    "Parameter": "renga.core.parameter",
    "WeightDecay": "renga.chainer.names.optimizer",
    "make_deprecation_message": "renga.chainer.names.optimizer",
}
_IMPORTED = {
    "chainer": "array basic_math chainerx distribution distributions "
    "graph_optimizations link_hooks memory_layouts types warnings",
    "chainer.backend": "chainer chainerx types",
    "chainer.backends.cuda": "chainer chainerx config intel64 types",
    "chainer.backends.intel64": "chainer config",
    "chainer.computational_graph": "function_node variable",
    "chainer.configuration": "types",
    "chainer.dataset.convert": "chainer",
    "chainer.distributions": "utils:chainer.distributions.utils",
    "chainer.function": "backend chainer chainerx configuration cuda function_node "
    "variable",
    "chainer.function_node": "backend chainer chainerx configuration cuda "
    "function_hook utils variable",
    "chainer.functions": "rnn theano util",
    "chainer.graph_optimizations.static_graph": "chainer cuda",
    "chainer.gradient_check": "backend chainer chainerx configuration cuda testing "
    "utils variable",
    "chainer.initializers": "backend chainer sampling types",
    "chainer.link": "backend chainer cuda device_resident initializers link_hook types "
    "variable",
    "chainer.optimizer": "chainer chainerx link_module optimizer_hooks "
    "serializer_module variable GradientClipping GradientHardClipping GradientNoise "
    "Lasso WeightDecay make_deprecation_message",
    "chainer.reporter": "backend chainer chainerx serializer_module variable",
    "chainer.testing": "function_link helper",
    "chainer.training": "extensions",
    "chainer.training.extensions": "util:chainer.training.extensions.util",
    "chainer.training.util": "interval_trigger",
    "chainer.utils": "cache chainer collections_abc conv_nd_kernel error imgproc "
    "precision",
    "chainer.utils.conv": "cuda",
    "chainer.utils.conv_nd": "conv_nd_kernel cuda",
    "chainer.utils.type_check": "chainer cuda",
    "chainer.variable": "argument chainer chainerx constant cuda initializers intel64 "
    "types Parameter",
    "chainermn": "chainer __version__",
    "chainermn.communicators": "argument",
    "chainermn.optimizers": "chainer",
}
_TOP_LEVEL = (
    "Fallback",
    "disable_experimental_feature_warning",
    "is_arrays_compatible",
)


def add_imported_names() -> None:
    """Gives the modules those names that they lack. The alias must be installed."""
    top_level = importlib.import_module("renga.chainer.top_level")
    for name in _TOP_LEVEL:
        _add(importlib.import_module("chainer"), name, getattr(top_level, name))
    for module, names in _IMPORTED.items():
        for name in names.split():
            # "name:module": the name has another target.
            name, _, source = name.partition(":")
            value = importlib.import_module(source) if source else _value(name)
            _add(importlib.import_module(module), name, value)


def _value(name: str) -> object:
    if name == "config":
        return importlib.import_module("chainer.configuration").config
    if name in _CLASSES:
        return getattr(importlib.import_module(_CLASSES[name]), name)
    return importlib.import_module(_SOURCES[name])


def _add(module: ModuleType, name: str, value: object) -> None:
    if name not in vars(module):
        setattr(module, name, value)
