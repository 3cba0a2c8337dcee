"""Function hooks that time functions, or print what goes through them."""

from renga.function_hooks.debug_print import PrintHook as PrintHook
from renga.function_hooks.timer import TimerHook as TimerHook
