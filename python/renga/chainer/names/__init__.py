"""Names of Chainer's modules that renga itself has no use for, and scripts import."""

from __future__ import annotations

import importlib

from renga.chainer.function_classes import find_class
from renga.chainer.names.hyperparameters import default_of

_FOLDER = "renga.chainer.names."
# The module here that has the names, by Chainer's module.
_SOURCES = {
    "chainer": "private",
    "chainer._backend": "environment",
    "chainer._backprop_utils": "backprop_utils",
    "chainer._environment_check": "environment",
    "chainer._runtime_info": "environment",
    "chainer._version": "environment",
    "chainer.backends._cpu": "private",
    "chainer.dataset.convert": "private",
    "chainer.datasets.pickle_dataset": "tools",
    "chainer.datasets.image_dataset": "helpers",
    "chainer.datasets.mnist": "helpers",
    "chainer.distributions.bernoulli": "distributions",
    "chainer.distributions.laplace": "distributions",
    "chainer.distributions.multivariate_normal": "distributions",
    "chainer.distributions.normal": "helpers",
    "chainer.distributions.utils": "distributions",
    "chainer.functions.activation.log_softmax": "helpers",
    "chainer.functions.array.as_strided": "arrays",
    "chainer.functions.array.broadcast": "private",
    "chainer.functions.array.flip": "private",
    "chainer.functions.connection.convolution_2d": "private",
    "chainer.functions.connection.deconvolution_2d": "private",
    "chainer.functions.loss.softmax_cross_entropy": "helpers",
    "chainer.functions.math.basic_math": "arithmetic",
    "chainer.functions.math.matmul": "arithmetic",
    "chainer.functions.normalization.batch_normalization": "helpers",
    "chainer.functions.pooling.pooling_2d": "private",
    "chainer.functions.rnn.lstm": "recurrent",
    "chainer.functions.rnn.n_step_gru": "recurrent",
    "chainer.functions.rnn.n_step_lstm": "recurrent",
    "chainer.functions.rnn.n_step_rnn": "recurrent",
    "chainer.gradient_check": "tools",
    "chainer.initializers": "tools",
    "chainer.iterators._statemachine": "pickles",
    "chainer.link_hooks.spectral_normalization": "links",
    "chainer.links.caffe.caffe_function": "private",
    "chainer.links.connection.convolution_2d": "private",
    "chainer.links.connection.deconvolution_2d": "private",
    "chainer.links.connection.deformable_convolution_2d": "pickles",
    "chainer.links.loss.hierarchical_softmax": "links",
    "chainer.links.model.vision.googlenet": "googlenet",
    "chainer.links.model.vision.resnet": "links",
    "chainer.links.model.vision.vgg": "links",
    "chainer.links.rnn.n_step_gru": "links",
    "chainer.links.rnn.n_step_lstm": "links",
    "chainer.links.rnn.n_step_rnn": "links",
    "chainer.memory_layouts": "arrays",
    "chainer.optimizer": "pickles",
    "chainer.optimizers.adam": "helpers",
    "chainer.serializers.hdf5": "private",
    "chainer.testing.training": "environment",
    "chainer.testing.unary_math_function_test": "environment",
    "chainer.training.extensions._snapshot": "private",
    "chainer.training.extensions.computational_graph": "environment",
    "chainer.training.extensions.evaluator": "progress",
    "chainer.training.extensions.plot_report": "statistics",
    "chainer.training.extensions.util": "progress",
    "chainer.training.extensions.variable_statistics_plot": "statistics",
    "chainer.training.trainer": "progress",
    "chainer.utils": "tools",
    "chainer.utils.array": "arrays",
    "chainer.utils.precision": "tools",
    "chainer.variable": "pickles",
    "chainermn.communicators._communication_utility": "communicators",
    "chainermn.communicators._memory_utility": "communicators",
    "chainermn.communicators.dummy_communicator": "communicators",
    "chainermn.communicators.flat_communicator": "communicators",
    "chainermn.communicators.mpi_communicator_base": "communicators",
    "chainermn.communicators.naive_communicator": "communicators",
    "chainermn.communicators.non_cuda_aware_communicator": "communicators",
    "chainermn.communicators.pure_nccl_communicator": "communicators",
    "chainermn.datasets.scatter": "chainermn",
    "chainermn.extensions._multi_node_snapshot": "chainermn",
    "chainermn.extensions.checkpoint": "chainermn",
    "chainermn.extensions.multi_node_evaluator": "chainermn",
    "chainermn.global_except_hook": "chainermn",
    "chainermn.iterators.multi_node_iterator": "chainermn",
    "chainermn.optimizers": "chainermn",
    "chainermn.testing": "chainermn",
    "chainermn.testing.device": "chainermn",
}


def source_of(module: str) -> str | None:
    """The module that has further names of Chainer's ``module``."""
    source = _SOURCES.get(module)
    return None if source is None else _FOLDER + source


def further_name(module: str, name: str) -> object:
    """A name of Chainer's ``module``; AttributeError without one."""
    source = source_of(module)
    if source is not None and (name == "__version__" or not name.startswith("__")):
        names = vars(importlib.import_module(source))
        if name in names:
            return names[name]
    if module.startswith("chainer.optimizers.") and name == "_default_hyperparam":
        defaults = default_of(module)
        if defaults is not None:
            return defaults
    if module.startswith("chainer.functions."):
        found = find_class(module, name)
        if found is not None:
            return found
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def add_all() -> None:
    """Loads the modules that have further names. The alias must be installed."""
    for chainers in _SOURCES:
        importlib.import_module(chainers)


def has_further_names(module: str) -> bool:
    """Whether renga's module may lack names of Chainer's ``module``."""
    packages = "chainer.functions.", "chainer.optimizers."
    return module.startswith(packages) or source_of(module) is not None
