"""Trainer extensions: measure, report, save, schedule."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.extensions import (
    computational_graph,
    evaluator,
    fail_on_nonnumber,
    variable_unchain,
)
from renga.extensions.computational_graph import DumpGraph, dump_graph
from renga.extensions.evaluator import Evaluator
from renga.extensions.exponential_moving_average import ExponentialMovingAverage
from renga.extensions.fail_on_nonnumber import FailOnNonNumber
from renga.extensions.large_batch import BatchSizeShift, LinearScaling, RMSpropWarmup
from renga.extensions.reports import (
    log_report,
    micro_average,
    parameter_statistics,
    plot_report,
    print_report,
    progress_bar,
    value_observation,
    variable_statistics_plot,
)
from renga.extensions.reports.html_report import HtmlReport
from renga.extensions.reports.log_report import LogReport
from renga.extensions.reports.micro_average import MicroAverage
from renga.extensions.reports.parameter_statistics import ParameterStatistics
from renga.extensions.reports.plot_report import PlotReport
from renga.extensions.reports.print_report import PrintReport
from renga.extensions.reports.progress_bar import ProgressBar
from renga.extensions.reports.trackers import (
    MLflowReport,
    TensorBoardReport,
    Tracker,
    WandbReport,
)
from renga.extensions.reports.value_observation import observe_lr, observe_value
from renga.extensions.reports.variable_statistics_plot import VariableStatisticsPlot
from renga.extensions.shifts import schedules as _schedules
from renga.extensions.shifts.schedules import (
    CosineShift,
    ExponentialShift,
    InverseShift,
    LinearShift,
    MultistepShift,
    OneCycleShift,
    PolynomialShift,
    StepShift,
    WarmupShift,
)
from renga.extensions.snapshots import snapshot_writers
from renga.extensions.snapshots.snapshot import snapshot, snapshot_object
from renga.extensions.variable_unchain import unchain_variables

# Chainer has a module for each of its schedules.
exponential_shift = inverse_shift = linear_shift = multistep_shift = _schedules
polynomial_shift = step_shift = warmup_shift = _schedules

__all__ = [
    "CosineShift",
    "DumpGraph",
    "Evaluator",
    "ExponentialMovingAverage",
    "ExponentialShift",
    "FailOnNonNumber",
    "HtmlReport",
    "InverseShift",
    "LinearShift",
    "BatchSizeShift",
    "LinearScaling",
    "LogReport",
    "RMSpropWarmup",
    "MLflowReport",
    "MicroAverage",
    "MultistepShift",
    "OneCycleShift",
    "ParameterStatistics",
    "PlotReport",
    "PolynomialShift",
    "PrintReport",
    "ProgressBar",
    "StepShift",
    "TensorBoardReport",
    "Tracker",
    "VariableStatisticsPlot",
    "WandbReport",
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

_suggest_names(__name__)
