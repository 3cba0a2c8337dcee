"""Links and functions of sequences whose tokens are sharded over several ranks."""

from renga.links.parallel.sequence.attention import (
    SequenceMultiHeadAttention as SequenceMultiHeadAttention,
)
from renga.links.parallel.sequence.links import (
    SequenceEmbedID as SequenceEmbedID,
    SequenceLayerNormalization as SequenceLayerNormalization,
    SequenceLinear as SequenceLinear,
    SequenceRMSNormalization as SequenceRMSNormalization,
)
from renga.links.parallel.sequence.ring_attention import (
    ring_attention as ring_attention,
)
from renga.links.parallel.sequence.tokens import (
    gather_sequence as gather_sequence,
    scatter_sequence as scatter_sequence,
)
