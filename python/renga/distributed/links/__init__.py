"""Links for several ranks, with ChainerMN's names."""

from renga.links.parallel import multi_node_batch_normalization as batch_normalization
from renga.links.parallel.channel.attention import ParallelMultiHeadAttention
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.vocab_embed_id import ParallelVocabEmbedID
from renga.links.parallel.multi_node_batch_normalization import (
    MultiNodeBatchNormalization,
)
from renga.links.parallel.multi_node_chain_list import MultiNodeChainList
from renga.links.parallel.n_step_rnn import create_multi_node_n_step_rnn
from renga.links.parallel.sequence import (
    SequenceEmbedID,
    SequenceLayerNormalization,
    SequenceLinear,
    SequenceMultiHeadAttention,
    SequenceRMSNormalization,
)
from renga.links.parallel.spatial import (
    SpatialAveragePooling2D,
    SpatialBatchNormalization,
    SpatialConvolution2D,
    SpatialConvolutionND,
    SpatialDeconvolution2D,
    SpatialDeconvolutionND,
    SpatialLinear,
    SpatialMaxPooling2D,
)
from renga.parallel.conversion.create_mnbn_model import create_mnbn_model

__all__ = [
    "MultiNodeBatchNormalization",
    "MultiNodeChainList",
    "ParallelBatchNormalization",
    "ParallelConvolution2D",
    "ParallelDeconvolution2D",
    "ParallelEmbedID",
    "ParallelLinear",
    "ParallelMultiHeadAttention",
    "SequenceEmbedID",
    "SequenceLayerNormalization",
    "SequenceLinear",
    "SequenceMultiHeadAttention",
    "SequenceRMSNormalization",
    "SpatialAveragePooling2D",
    "SpatialBatchNormalization",
    "SpatialConvolution2D",
    "SpatialConvolutionND",
    "SpatialDeconvolution2D",
    "SpatialDeconvolutionND",
    "SpatialLinear",
    "SpatialMaxPooling2D",
    "ParallelVocabEmbedID",
    "batch_normalization",
    "create_mnbn_model",
    "create_multi_node_n_step_rnn",
]
