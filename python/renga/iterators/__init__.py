"""Iterators over data sets, and the order of examples."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.iterators import (
    dali_iterator,
    multiprocess_iterator,
    multithread_iterator,
    order_samplers,
    serial_iterator,
)
from renga.iterators.dali_iterator import DaliIterator
from renga.iterators.multiprocess_iterator import MultiprocessIterator
from renga.iterators.multithread_iterator import MultithreadIterator
from renga.iterators.order_samplers import OrderSampler, ShuffleOrderSampler
from renga.iterators.serial_iterator import SerialIterator

__all__ = [
    "DaliIterator",
    "MultiprocessIterator",
    "MultithreadIterator",
    "OrderSampler",
    "SerialIterator",
    "ShuffleOrderSampler",
    "dali_iterator",
    "multiprocess_iterator",
    "multithread_iterator",
    "order_samplers",
    "serial_iterator",
]

_suggest_names(__name__)
