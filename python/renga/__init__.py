"""Define-by-run deep learning, spread over many processes by changing five lines."""

from renga._runtime import before_core as _before_core  # isort: skip  # noqa: F401

import contextlib
import sys
from typing import TYPE_CHECKING

from renga import (
    _core as _core,
    backends as backends,
    dataset as dataset,
    function_hooks as function_hooks,
    functions as functions,
    graph_optimizations as graph_optimizations,
    initializers as initializers,
    iterators as iterators,
    link_hooks as link_hooks,
    links as links,
    optimizer_hooks as optimizer_hooks,
    optimizers as optimizers,
    serializers as serializers,
    training as training,
    utils as utils,
)
from renga._core import (
    __version__ as __version__,
    get_num_threads as get_num_threads,
    set_num_threads as set_num_threads,
)
from renga._runtime import kernels as kernels, memory as memory
from renga._runtime.runtime_info import print_runtime_info as print_runtime_info
from renga._runtime.seed import seed_everything as seed_everything
from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.backends import cuda as cuda
from renga.backends.cuda import (
    should_use_cudnn as should_use_cudnn,
    should_use_cudnn_tensor_core as should_use_cudnn_tensor_core,
)
from renga.core import (
    around_call as around_call,
    backend as backend,
    computational_graph as computational_graph,
    configuration as configuration,
    derivatives as derivatives,
    device_resident as device_resident,
    distribution as distribution,
    dtypes as dtypes,
    function as function,
    function_hook as function_hook,
    function_node as function_node,
    gradients as gradients,
    initializer as initializer,
    kept_gradients as kept_gradients,
    link as link,
    link_hook as link_hook,
    numpy_functions as numpy_functions,
    operations as operations,
    optimizer as optimizer,
    parameter as parameter,
    reporter as reporter,
    sequential as sequential,
    serializer as serializer,
    statistics as statistics,
    types as types,
    variable as variable,
    warnings as warnings,
)
from renga.core.backend import (
    get_array_types as get_array_types,
    get_cpu_array_types as get_cpu_array_types,
    get_device as get_device,
    using_device as using_device,
)
from renga.core.configuration import (
    DebugMode as DebugMode,
    config as config,
    force_backprop_mode as force_backprop_mode,
    get_compute_mode as get_compute_mode,
    global_config as global_config,
    is_debug as is_debug,
    no_backprop_mode as no_backprop_mode,
    set_debug as set_debug,
    using_config as using_config,
)
from renga.core.derivatives import (
    hessian as hessian,
    hvp as hvp,
    jvp as jvp,
    per_sample_grad as per_sample_grad,
)
from renga.core.device_resident import DeviceResident as DeviceResident
from renga.core.distribution import (
    Distribution as Distribution,
    cross_entropy as cross_entropy,
    kl_divergence as kl_divergence,
    register_kl as register_kl,
)
from renga.core.dtypes import (
    get_dtype as get_dtype,
    mixed16 as mixed16,
    mixed_bfloat16 as mixed_bfloat16,
)
from renga.core.function import Function as Function, FunctionAdapter as FunctionAdapter
from renga.core.function_hook import (
    FunctionHook as FunctionHook,
    get_function_hooks as get_function_hooks,
)
from renga.core.function_node import FunctionNode as FunctionNode
from renga.core.gradients import backward as backward, grad as grad
from renga.core.initializer import Initializer as Initializer
from renga.core.link import Chain as Chain, ChainList as ChainList, Link as Link
from renga.core.link_hook import LinkHook as LinkHook
from renga.core.optimizer import (
    GradientMethod as GradientMethod,
    Optimizer as Optimizer,
    UpdateRule as UpdateRule,
)
from renga.core.parameter import Parameter as Parameter
from renga.core.reporter import (
    DictSummary as DictSummary,
    Reporter as Reporter,
    Summary as Summary,
    get_current_reporter as get_current_reporter,
    report as report,
    report_scope as report_scope,
)
from renga.core.sequential import Sequential as Sequential
from renga.core.serializer import (
    AbstractSerializer as AbstractSerializer,
    Deserializer as Deserializer,
    Serializer as Serializer,
)
from renga.core.variable import (
    Variable as Variable,
    as_array as as_array,
    as_variable as as_variable,
    from_dlpack as from_dlpack,
)
from renga.graph_optimizations.static_graph import (
    static_code as static_code,
    static_graph as static_graph,
)
from renga.graph_optimizations.static_step import static_step as static_step
from renga.launch import launch as launch

if TYPE_CHECKING:
    from renga import (
        communicators as communicators,
        datasets as datasets,
        distributed as distributed,
        distributions as distributions,
        exporters as exporters,
        extensions as extensions,
        parallel as parallel,
        profiling as profiling,
        program as program,
        transforms as transforms,
    )
    from renga.profiling.model_summary import model_summary as model_summary
    from renga.profiling.profiler import Profile as Profile, profiler as profiler

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

_core.install_call_sites([__file__.removesuffix("__init__.py"), contextlib.__file__])
_core.finish_warm_up()
