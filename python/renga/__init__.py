"""Define-by-run deep learning, spread over many processes by changing five lines."""

from renga import _before_core as _before_core  # isort: skip

from renga import _core as _core
from renga import backend as backend
from renga import backends as backends
from renga import communicators as communicators
from renga import computational_graph as computational_graph
from renga import configuration as configuration
from renga import dataset as dataset
from renga import datasets as datasets
from renga import device_resident as device_resident
from renga import distribution as distribution
from renga import distributions as distributions
from renga import dtypes as dtypes
from renga import exporters as exporters
from renga import extensions as extensions
from renga import function as function
from renga import function_hook as function_hook
from renga import function_hooks as function_hooks
from renga import function_node as function_node
from renga import functions as functions
from renga import graph_optimizations as graph_optimizations
from renga import initializer as initializer
from renga import initializers as initializers
from renga import iterators as iterators
from renga import kernels as kernels
from renga import link as link
from renga import link_hook as link_hook
from renga import link_hooks as link_hooks
from renga import links as links
from renga import memory as memory
from renga import numpy_functions as numpy_functions
from renga import optimizer as optimizer
from renga import optimizer_hooks as optimizer_hooks
from renga import optimizers as optimizers
from renga import program as program
from renga import reporter as reporter
from renga import sequential as sequential
from renga import serializer as serializer
from renga import serializers as serializers
from renga import training as training
from renga import transforms as transforms
from renga import utils as utils
from renga import variable as variable
from renga import warnings as warnings
from renga._core import __version__ as __version__
from renga._core import get_num_threads as get_num_threads
from renga._core import set_num_threads as set_num_threads
from renga.backend import get_array_types as get_array_types
from renga.backend import get_cpu_array_types as get_cpu_array_types
from renga.backend import get_device as get_device
from renga.backend import using_device as using_device
from renga.backends import cuda as cuda
from renga.configuration import DebugMode as DebugMode
from renga.configuration import config as config
from renga.configuration import force_backprop_mode as force_backprop_mode
from renga.configuration import get_compute_mode as get_compute_mode
from renga.configuration import global_config as global_config
from renga.configuration import is_debug as is_debug
from renga.configuration import no_backprop_mode as no_backprop_mode
from renga.configuration import set_debug as set_debug
from renga.configuration import using_config as using_config
from renga.device_resident import DeviceResident as DeviceResident
from renga.distribution import Distribution as Distribution
from renga.distribution import cross_entropy as cross_entropy
from renga.distribution import kl_divergence as kl_divergence
from renga.distribution import register_kl as register_kl
from renga.dtypes import get_dtype as get_dtype
from renga.dtypes import mixed16 as mixed16
from renga.dtypes import mixed_bfloat16 as mixed_bfloat16
from renga.function import Function as Function
from renga.function import FunctionAdapter as FunctionAdapter
from renga.function_hook import FunctionHook as FunctionHook
from renga.function_hook import get_function_hooks as get_function_hooks
from renga.function_node import FunctionNode as FunctionNode
from renga.function_node import backward as backward
from renga.function_node import grad as grad
from renga.graph_optimizations.static_graph import static_code as static_code
from renga.graph_optimizations.static_graph import static_graph as static_graph
from renga.initializer import Initializer as Initializer
from renga.launch import launch as launch
from renga.link import Chain as Chain
from renga.link import ChainList as ChainList
from renga.link import Link as Link
from renga.link_hook import LinkHook as LinkHook
from renga.optimizer import GradientMethod as GradientMethod
from renga.optimizer import Optimizer as Optimizer
from renga.optimizer import UpdateRule as UpdateRule
from renga.parameter import Parameter as Parameter
from renga.profiling.model_summary import model_summary as model_summary
from renga.profiling.profiler import Profile as Profile
from renga.profiling.profiler import profiler as profiler
from renga.reporter import DictSummary as DictSummary
from renga.reporter import Reporter as Reporter
from renga.reporter import Summary as Summary
from renga.reporter import get_current_reporter as get_current_reporter
from renga.reporter import report as report
from renga.reporter import report_scope as report_scope
from renga.runtime_info import print_runtime_info as print_runtime_info
from renga.seed import seed_everything as seed_everything
from renga.sequential import Sequential as Sequential
from renga.serializer import AbstractSerializer as AbstractSerializer
from renga.serializer import Deserializer as Deserializer
from renga.serializer import Serializer as Serializer
from renga.variable import Variable as Variable
from renga.variable import as_array as as_array
from renga.variable import as_variable as as_variable
from renga.variable import from_dlpack as from_dlpack

# Last, because it extends what training and its extensions define.
from renga import distributed as distributed  # isort: skip
from renga.backends.cuda import should_use_cudnn as should_use_cudnn
from renga.backends.cuda import (
    should_use_cudnn_tensor_core as should_use_cudnn_tensor_core,
)

# An editable installation has some packages outside the folder of this file.
_core.install_call_sites(
    [__file__.removesuffix("__init__.py")]
    + [f"{package.__path__[0]}/" for package in (links, extensions, communicators)]
)
_core.finish_warm_up()
