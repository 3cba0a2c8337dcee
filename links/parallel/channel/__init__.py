"""Layers whose channels are sharded: each rank has a part of every weight."""

from renga.links.parallel.channel.attention import (
    ParallelMultiHeadAttention as ParallelMultiHeadAttention,
)
from renga.links.parallel.channel.batch_normalization import (
    ParallelBatchNormalization as ParallelBatchNormalization,
)
from renga.links.parallel.channel.convolution_2d import (
    ParallelConvolution2D as ParallelConvolution2D,
)
from renga.links.parallel.channel.deconvolution_2d import (
    ParallelDeconvolution2D as ParallelDeconvolution2D,
)
from renga.links.parallel.channel.embed_id import ParallelEmbedID as ParallelEmbedID
from renga.links.parallel.channel.linear import ParallelLinear as ParallelLinear
from renga.links.parallel.channel.vocab_embed_id import (
    ParallelVocabEmbedID as ParallelVocabEmbedID,
)
