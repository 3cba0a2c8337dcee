"""A recurrent network whose steps lie on several ranks."""

from __future__ import annotations

from typing import Any

from renga.distributed.functions.point_to_point_communication import Recv, Send
from renga.link import Chain
from renga.links.rnn.n_step_rnn import NStepRNNBase


def create_multi_node_n_step_rnn(
    actual_link: NStepRNNBase,
    communicator: Any,
    rank_in: int | None = None,
    rank_out: int | None = None,
) -> MultiNodeNStepRNN:
    """A link that continues another rank's recurrence and hands it on to a third.

    It is called with the sequences alone: the states come from ``rank_in``, or are
    zeros, and go to ``rank_out``. What ``actual_link`` gives is followed by a delegate,
    None without ``rank_out``.

    Raises:
        ValueError: the link is no recurrent network over sequences.
    """
    return MultiNodeNStepRNN(actual_link, communicator, rank_in, rank_out)


class MultiNodeNStepRNN(Chain):
    """One rank's steps of a recurrent network."""

    def __init__(
        self, link: Any, communicator: Any, rank_in: int | None, rank_out: int | None
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

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """The last states, the sequences of this rank's steps, and the delegate."""
        states: list[Any] = [None] * self.actual_rnn.n_cells
        if self.rank_in is not None:
            # In one message, so that shapes and dtypes come with it.
            _, received = Recv(self.communicator, self.rank_in, 0).communicate([])
            states = list(received)
        outputs = self.actual_rnn(*states, *inputs)
        delegate = None
        if self.rank_out is not None:
            message = Send(self.communicator, self.rank_out, 0)
            delegate, _ = message.communicate(outputs[: len(states)])
        return (*outputs, delegate)
