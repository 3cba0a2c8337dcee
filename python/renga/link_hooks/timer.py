"""Times of links."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.link_hook import (
    LinkHook,
    _ForwardPostprocessCallbackArgs,
    _ForwardPreprocessCallbackArgs,
)
from renga.function_hooks.call_times import CallTimes


class TimerHook(CallTimes, LinkHook):
    """Measures the time of links, including the links that they call.

    ``call_history`` lists the class and the seconds of each call; on CUDA devices they
    are measured there.
    """

    name = "TimerHook"
    _header = "LinkName"

    def deleted(self, link: Link) -> None:
        if link is None:
            self._running.clear()

    def forward_preprocess(self, args: _ForwardPreprocessCallbackArgs) -> None:
        self._start(args.link, (*args.args, *args.kwargs.values()))

    def forward_postprocess(self, args: _ForwardPostprocessCallbackArgs) -> None:
        self._stop(args.link, type(args.link).__name__)
