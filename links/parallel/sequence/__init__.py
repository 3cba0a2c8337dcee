"""Links and functions of sequences whose tokens are sharded over several ranks."""

from renga.links.parallel.sequence.attention import (
    SequenceMultiHeadAttention as SequenceMultiHeadAttention,
)
from renga.links.parallel.sequence.links import SequenceEmbedID as SequenceEmbedID
from renga.links.parallel.sequence.links import (
    SequenceLayerNormalization as SequenceLayerNormalization,
)
from renga.links.parallel.sequence.links import SequenceLinear as SequenceLinear
from renga.links.parallel.sequence.links import (
    SequenceRMSNormalization as SequenceRMSNormalization,
)
from renga.links.parallel.sequence.ring_attention import (
    ring_attention as ring_attention,
)
from renga.links.parallel.sequence.tokens import gather_sequence as gather_sequence
from renga.links.parallel.sequence.tokens import scatter_sequence as scatter_sequence
