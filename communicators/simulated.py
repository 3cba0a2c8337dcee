"""One rank of many that do not exist: shapes, counts and predicted times."""

from renga.communicators.transport.simulated import (
    Machine,
    SimulatedCommunicator,
    Traffic,
    connect,
)

__all__ = ["Machine", "SimulatedCommunicator", "Traffic", "connect"]
