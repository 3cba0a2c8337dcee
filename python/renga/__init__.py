"""Define-by-run deep learning, spread over many processes by changing five lines."""

from renga._runtime import before_core as _before_core  # isort: skip  # noqa: F401

import sys
from typing import TYPE_CHECKING

from renga import _core as _core
from renga import backends as backends
from renga import dataset as dataset
from renga import function_hooks as function_hooks
from renga import functions as functions
from renga import graph_optimizations as graph_optimizations
from renga import initializers as initializers
from renga import iterators as iterators
from renga import link_hooks as link_hooks
from renga import links as links
from renga import optimizer_hooks as optimizer_hooks
from renga import optimizers as optimizers
from renga import serializers as serializers
from renga import training as training
from renga import utils as utils
from renga._core import __version__ as __version__
from renga._core import get_num_threads as get_num_threads
from renga._core import set_num_threads as set_num_threads
from renga._runtime import kernels as kernels
from renga._runtime import memory as memory
from renga._runtime.runtime_info import print_runtime_info as print_runtime_info
from renga._runtime.seed import seed_everything as seed_everything
from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.backends import cuda as cuda
from renga.backends.cuda import should_use_cudnn as should_use_cudnn
from renga.backends.cuda import (
    should_use_cudnn_tensor_core as should_use_cudnn_tensor_core,
)
from renga.core import around_call as around_call
from renga.core import backend as backend
from renga.core import computational_graph as computational_graph
from renga.core import configuration as configuration
from renga.core import derivatives as derivatives
from renga.core import device_resident as device_resident
from renga.core import distribution as distribution
from renga.core import dtypes as dtypes
from renga.core import function as function
from renga.core import function_hook as function_hook
from renga.core import function_node as function_node
from renga.core import gradients as gradients
from renga.core import initializer as initializer
from renga.core import link as link
from renga.core import link_hook as link_hook
from renga.core import numpy_functions as numpy_functions
from renga.core import operations as operations
from renga.core import optimizer as optimizer
from renga.core import parameter as parameter
from renga.core import reporter as reporter
from renga.core import sequential as sequential
from renga.core import serializer as serializer
from renga.core import statistics as statistics
from renga.core import types as types
from renga.core import variable as variable
from renga.core import warnings as warnings
from renga.core.backend import get_array_types as get_array_types
from renga.core.backend import get_cpu_array_types as get_cpu_array_types
from renga.core.backend import get_device as get_device
from renga.core.backend import using_device as using_device
from renga.core.configuration import DebugMode as DebugMode
from renga.core.configuration import config as config
from renga.core.configuration import force_backprop_mode as force_backprop_mode
from renga.core.configuration import get_compute_mode as get_compute_mode
from renga.core.configuration import global_config as global_config
from renga.core.configuration import is_debug as is_debug
from renga.core.configuration import no_backprop_mode as no_backprop_mode
from renga.core.configuration import set_debug as set_debug
from renga.core.configuration import using_config as using_config
from renga.core.derivatives import hessian as hessian
from renga.core.derivatives import hvp as hvp
from renga.core.derivatives import jvp as jvp
from renga.core.derivatives import per_sample_grad as per_sample_grad
from renga.core.device_resident import DeviceResident as DeviceResident
from renga.core.distribution import Distribution as Distribution
from renga.core.distribution import cross_entropy as cross_entropy
from renga.core.distribution import kl_divergence as kl_divergence
from renga.core.distribution import register_kl as register_kl
from renga.core.dtypes import get_dtype as get_dtype
from renga.core.dtypes import mixed16 as mixed16
from renga.core.dtypes import mixed_bfloat16 as mixed_bfloat16
from renga.core.function import Function as Function
from renga.core.function import FunctionAdapter as FunctionAdapter
from renga.core.function_hook import FunctionHook as FunctionHook
from renga.core.function_hook import get_function_hooks as get_function_hooks
from renga.core.function_node import FunctionNode as FunctionNode
from renga.core.gradients import backward as backward
from renga.core.gradients import grad as grad
from renga.core.initializer import Initializer as Initializer
from renga.core.link import Chain as Chain
from renga.core.link import ChainList as ChainList
from renga.core.link import Link as Link
from renga.core.link_hook import LinkHook as LinkHook
from renga.core.optimizer import GradientMethod as GradientMethod
from renga.core.optimizer import Optimizer as Optimizer
from renga.core.optimizer import UpdateRule as UpdateRule
from renga.core.parameter import Parameter as Parameter
from renga.core.reporter import DictSummary as DictSummary
from renga.core.reporter import Reporter as Reporter
from renga.core.reporter import Summary as Summary
from renga.core.reporter import get_current_reporter as get_current_reporter
from renga.core.reporter import report as report
from renga.core.reporter import report_scope as report_scope
from renga.core.sequential import Sequential as Sequential
from renga.core.serializer import AbstractSerializer as AbstractSerializer
from renga.core.serializer import Deserializer as Deserializer
from renga.core.serializer import Serializer as Serializer
from renga.core.variable import Variable as Variable
from renga.core.variable import as_array as as_array
from renga.core.variable import as_variable as as_variable
from renga.core.variable import from_dlpack as from_dlpack
from renga.graph_optimizations.static_graph import static_code as static_code
from renga.graph_optimizations.static_graph import static_graph as static_graph
from renga.graph_optimizations.static_step import static_step as static_step
from renga.launch import launch as launch

if TYPE_CHECKING:
    from renga import communicators as communicators
    from renga import datasets as datasets
    from renga import distributed as distributed
    from renga import distributions as distributions
    from renga import exporters as exporters
    from renga import extensions as extensions
    from renga import parallel as parallel
    from renga import profiling as profiling
    from renga import program as program
    from renga import transforms as transforms
    from renga.profiling.model_summary import model_summary as model_summary
    from renga.profiling.profiler import Profile as Profile
    from renga.profiling.profiler import profiler as profiler

_suggest_names(
    __name__,
    at_first_use={
        "renga": "communicators datasets distributed distributions exporters "
        "extensions parallel profiling program transforms",
        "renga.profiling.model_summary": "model_summary",
        "renga.profiling.profiler": "Profile profiler",
    },
)

# Chainer has these modules without `core`, as `renga.variable`; so have older pickles.
sys.modules.update(
    {
        name.replace(".core.", ".", 1).replace("._runtime.", ".", 1): module
        for name, module in list(sys.modules.items())
        if name.startswith(("renga.core.", "renga._runtime."))
    }
)

_core.install_call_sites([__file__.removesuffix("__init__.py")])
_core.finish_warm_up()
