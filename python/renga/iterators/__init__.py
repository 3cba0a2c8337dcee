"""Iterators over data sets, and the orders they take."""

from renga.iterators import (
    multiprocess_iterator,
    multithread_iterator,
    order_samplers,
    serial_iterator,
)
from renga.iterators.multiprocess_iterator import MultiprocessIterator
from renga.iterators.multithread_iterator import MultithreadIterator
from renga.iterators.order_samplers import OrderSampler, ShuffleOrderSampler
from renga.iterators.serial_iterator import SerialIterator

__all__ = [
    "MultiprocessIterator",
    "MultithreadIterator",
    "OrderSampler",
    "SerialIterator",
    "ShuffleOrderSampler",
    "multiprocess_iterator",
    "multithread_iterator",
    "order_samplers",
    "serial_iterator",
]
