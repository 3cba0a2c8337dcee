"""A recurrent network whose time steps are on several ranks."""

from __future__ import annotations

from typing import Any

from renga.communicators import Communicator
from renga.core.link import Chain, Link
from renga.core.variable import Variable
from renga.links.rnn.n_step_rnn import NStepRNNBase
from renga.parallel.functions.point_to_point_communication import Recv, Send


def create_multi_node_n_step_rnn(
    actual_link: NStepRNNBase,
    communicator: Communicator,
    rank_in: int | None = None,
    rank_out: int | None = None,
) -> MultiNodeNStepRNN:
    """A link that continues the recurrence of another rank and passes it to a third.

    It is called with sequences only: the initial states are received from ``rank_in``,
    or are zeros, and the last states are sent to ``rank_out``. It returns the results
    of ``actual_link`` and a delegate, which is None without ``rank_out``.

    Raises:
        ValueError: the link is no NStepRNN, NStepLSTM or NStepGRU.
    """
    return MultiNodeNStepRNN(actual_link, communicator, rank_in, rank_out)


class MultiNodeNStepRNN(Chain):
    """One rank's time steps of a recurrent network."""

    def __init__(
        self,
        link: Link,
        communicator: Communicator,
        rank_in: int | None,
        rank_out: int | None,
    ) -> None:
        if not isinstance(link, NStepRNNBase):
            raise ValueError(
                "create_multi_node_n_step_rnn: expected an NStepRNN, NStepLSTM or "
                f"NStepGRU, got {type(link).__name__}"
            )
        super().__init__()
        self.communicator = communicator
        self.rank_in = rank_in
        self.rank_out = rank_out
        with self.init_scope():
            self.actual_rnn = link

    def forward(self, *inputs: object) -> tuple[Variable | list[Variable] | None, ...]:
        """The last states, the output sequences of this rank, and the delegate."""
        states: list[Any] = [None] * self.actual_rnn.n_cells
        if self.rank_in is not None:
            # One message, which contains shapes and dtypes.
            _, received = Recv(self.communicator, self.rank_in, 0).communicate([])
            states = list(received)
        outputs = self.actual_rnn(*states, *inputs)
        delegate = None
        if self.rank_out is not None:
            message = Send(self.communicator, self.rank_out, 0)
            delegate, _ = message.communicate(outputs[: len(states)])
        return (*outputs, delegate)
