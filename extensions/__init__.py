"""What a trainer can do besides training: measure, report, save, schedule."""

from renga.extensions import (
    computational_graph,
    evaluator,
    exponential_shift,
    fail_on_nonnumber,
    inverse_shift,
    linear_shift,
    log_report,
    micro_average,
    multistep_shift,
    parameter_statistics,
    plot_report,
    polynomial_shift,
    print_report,
    progress_bar,
    snapshot_writers,
    step_shift,
    value_observation,
    variable_statistics_plot,
    variable_unchain,
    warmup_shift,
)
from renga.extensions._snapshot import snapshot, snapshot_object
from renga.extensions.computational_graph import DumpGraph, dump_graph
from renga.extensions.evaluator import Evaluator
from renga.extensions.exponential_shift import ExponentialShift
from renga.extensions.fail_on_nonnumber import FailOnNonNumber
from renga.extensions.inverse_shift import InverseShift
from renga.extensions.large_batch import BatchSizeShift, LinearScaling, RMSpropWarmup
from renga.extensions.linear_shift import LinearShift
from renga.extensions.log_report import LogReport
from renga.extensions.micro_average import MicroAverage
from renga.extensions.multistep_shift import MultistepShift
from renga.extensions.parameter_statistics import ParameterStatistics
from renga.extensions.plot_report import PlotReport
from renga.extensions.polynomial_shift import PolynomialShift
from renga.extensions.print_report import PrintReport
from renga.extensions.progress_bar import ProgressBar
from renga.extensions.step_shift import StepShift
from renga.extensions.value_observation import observe_lr, observe_value
from renga.extensions.variable_statistics_plot import VariableStatisticsPlot
from renga.extensions.variable_unchain import unchain_variables
from renga.extensions.warmup_shift import WarmupShift

__all__ = [
    "DumpGraph",
    "Evaluator",
    "ExponentialShift",
    "FailOnNonNumber",
    "InverseShift",
    "LinearShift",
    "BatchSizeShift",
    "LinearScaling",
    "LogReport",
    "RMSpropWarmup",
    "MicroAverage",
    "MultistepShift",
    "ParameterStatistics",
    "PlotReport",
    "PolynomialShift",
    "PrintReport",
    "ProgressBar",
    "StepShift",
    "VariableStatisticsPlot",
    "WarmupShift",
    "computational_graph",
    "dump_graph",
    "evaluator",
    "exponential_shift",
    "fail_on_nonnumber",
    "inverse_shift",
    "linear_shift",
    "log_report",
    "micro_average",
    "multistep_shift",
    "observe_lr",
    "observe_value",
    "parameter_statistics",
    "plot_report",
    "polynomial_shift",
    "print_report",
    "progress_bar",
    "snapshot",
    "snapshot_object",
    "snapshot_writers",
    "step_shift",
    "unchain_variables",
    "value_observation",
    "variable_statistics_plot",
    "variable_unchain",
    "warmup_shift",
]
