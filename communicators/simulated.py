"""Ranks that are simulated: one of many that do not exist, or all of a program."""

from renga.communicators.transport.simulated import (
    Deadlock,
    Machine,
    Outcome,
    SimulatedCommunicator,
    Traffic,
    VirtualCommunicator,
    connect,
    run,
)

__all__ = [
    "Deadlock",
    "Machine",
    "Outcome",
    "SimulatedCommunicator",
    "Traffic",
    "VirtualCommunicator",
    "connect",
    "run",
]
