"""Jobs whose ranks may fail, leave and join while they train."""

from renga.parallel.elastic import *  # noqa: F403
from renga.parallel.elastic import __all__ as __all__
