"""Iterators over data sets, and the order of examples."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.iterators import (
    dali_iterator as dali_iterator,
    multiprocess_iterator as multiprocess_iterator,
    multithread_iterator as multithread_iterator,
    order_samplers as order_samplers,
    serial_iterator as serial_iterator,
)
from renga.iterators.dali_iterator import DaliIterator as DaliIterator
from renga.iterators.multiprocess_iterator import (
    MultiprocessIterator as MultiprocessIterator,
)
from renga.iterators.multithread_iterator import (
    MultithreadIterator as MultithreadIterator,
)
from renga.iterators.order_samplers import (
    OrderSampler as OrderSampler,
    ShuffleOrderSampler as ShuffleOrderSampler,
)
from renga.iterators.serial_iterator import SerialIterator as SerialIterator

_suggest_names(__name__)
