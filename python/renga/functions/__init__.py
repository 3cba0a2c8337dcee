"""Differentiable functions of Variables and arrays."""

from renga._core.ops import absolute as absolute
from renga._core.ops import arccos as arccos
from renga._core.ops import arcsin as arcsin
from renga._core.ops import arctan as arctan
from renga._core.ops import arctan2 as arctan2
from renga._core.ops import arctanh as arctanh
from renga._core.ops import argmax as argmax
from renga._core.ops import argmin as argmin
from renga._core.ops import broadcast_to as broadcast_to
from renga._core.ops import ceil as ceil
from renga._core.ops import concat as concat
from renga._core.ops import cos as cos
from renga._core.ops import cosh as cosh
from renga._core.ops import cumprod as cumprod
from renga._core.ops import cumsum as cumsum
from renga._core.ops import digamma as digamma
from renga._core.ops import elu as elu
from renga._core.ops import embed_id as embed_id
from renga._core.ops import erf as erf
from renga._core.ops import erfc as erfc
from renga._core.ops import erfcinv as erfcinv
from renga._core.ops import erfcx as erfcx
from renga._core.ops import erfinv as erfinv
from renga._core.ops import exp as exp
from renga._core.ops import expand_dims as expand_dims
from renga._core.ops import expm1 as expm1
from renga._core.ops import fix as fix
from renga._core.ops import flatten as flatten
from renga._core.ops import floor as floor
from renga._core.ops import gelu as gelu
from renga._core.ops import hard_sigmoid as hard_sigmoid
from renga._core.ops import hard_swish as hard_swish
from renga._core.ops import leaky_relu as leaky_relu
from renga._core.ops import lgamma as lgamma
from renga._core.ops import log as log
from renga._core.ops import log1p as log1p
from renga._core.ops import log2 as log2
from renga._core.ops import log10 as log10
from renga._core.ops import log_ndtr as log_ndtr
from renga._core.ops import log_softmax as log_softmax
from renga._core.ops import logsumexp as logsumexp
from renga._core.ops import matmul as matmul
from renga._core.ops import max as max
from renga._core.ops import maximum as maximum
from renga._core.ops import min as min
from renga._core.ops import minimum as minimum
from renga._core.ops import mish as mish
from renga._core.ops import ndtr as ndtr
from renga._core.ops import ndtri as ndtri
from renga._core.ops import prod as prod
from renga._core.ops import relu as relu
from renga._core.ops import reshape as reshape
from renga._core.ops import rms_normalization as rms_normalization
from renga._core.ops import rsqrt as rsqrt
from renga._core.ops import select_item as select_item
from renga._core.ops import sigmoid as sigmoid
from renga._core.ops import sign as sign
from renga._core.ops import silu as silu
from renga._core.ops import sin as sin
from renga._core.ops import sinh as sinh
from renga._core.ops import softmax as softmax
from renga._core.ops import softplus as softplus
from renga._core.ops import sqrt as sqrt
from renga._core.ops import square as square
from renga._core.ops import squeeze as squeeze
from renga._core.ops import stack as stack
from renga._core.ops import sum as sum
from renga._core.ops import sum_to as sum_to
from renga._core.ops import swapaxes as swapaxes
from renga._core.ops import tan as tan
from renga._core.ops import tanh as tanh
from renga._core.ops import transpose as transpose
from renga._core.ops import where as where
from renga.functions.activation.learnt import prelu as prelu
from renga.functions.activation.learnt import swish as swish
from renga.functions.activation.rectifiers import clipped_relu as clipped_relu
from renga.functions.activation.rectifiers import crelu as crelu
from renga.functions.activation.rectifiers import maxout as maxout
from renga.functions.activation.rectifiers import relu6 as relu6
from renga.functions.activation.rectifiers import rrelu as rrelu
from renga.functions.activation.rectifiers import selu as selu
from renga.functions.array.as_strided import as_strided as as_strided
from renga.functions.array.broadcast import broadcast as broadcast
from renga.functions.array.cast import cast as cast
from renga.functions.array.copy import copy as copy
from renga.functions.array.diagonal import diagonal as diagonal
from renga.functions.array.get_item import get_item as get_item
from renga.functions.array.hstack import dstack as dstack
from renga.functions.array.hstack import hstack as hstack
from renga.functions.array.hstack import vstack as vstack
from renga.functions.array.im2col import im2col as im2col
from renga.functions.array.moveaxis import flip as flip
from renga.functions.array.moveaxis import fliplr as fliplr
from renga.functions.array.moveaxis import flipud as flipud
from renga.functions.array.moveaxis import moveaxis as moveaxis
from renga.functions.array.moveaxis import rollaxis as rollaxis
from renga.functions.array.pad import pad as pad
from renga.functions.array.permutate import permutate as permutate
from renga.functions.array.repeat import repeat as repeat
from renga.functions.array.repeat import tile as tile
from renga.functions.array.resize_images import resize_images as resize_images
from renga.functions.array.scatter_add import scatter_add as scatter_add
from renga.functions.array.sequences import pad_sequence as pad_sequence
from renga.functions.array.sequences import (
    transpose_sequence as transpose_sequence,
)
from renga.functions.array.space2depth import depth2space as depth2space
from renga.functions.array.space2depth import space2depth as space2depth
from renga.functions.array.spatial_transformer import (
    spatial_transformer_grid as spatial_transformer_grid,
)
from renga.functions.array.spatial_transformer import (
    spatial_transformer_sampler as spatial_transformer_sampler,
)
from renga.functions.array.split_axis import separate as separate
from renga.functions.array.split_axis import split_axis as split_axis
from renga.functions.connection.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from renga.functions.connection.convolution import convolution_1d as convolution_1d
from renga.functions.connection.convolution import convolution_2d as convolution_2d
from renga.functions.connection.convolution import convolution_3d as convolution_3d
from renga.functions.connection.convolution import convolution_nd as convolution_nd
from renga.functions.connection.convolution import (
    depthwise_convolution_2d as depthwise_convolution_2d,
)
from renga.functions.connection.convolution import (
    dilated_convolution_2d as dilated_convolution_2d,
)
from renga.functions.connection.deconvolution import (
    deconvolution_1d as deconvolution_1d,
)
from renga.functions.connection.deconvolution import (
    deconvolution_2d as deconvolution_2d,
)
from renga.functions.connection.deconvolution import (
    deconvolution_3d as deconvolution_3d,
)
from renga.functions.connection.deconvolution import (
    deconvolution_nd as deconvolution_nd,
)
from renga.functions.connection.deformable_convolution_2d_sampler import (
    deformable_convolution_2d_sampler as deformable_convolution_2d_sampler,
)
from renga.functions.connection.linear import bilinear as bilinear
from renga.functions.connection.linear import linear as linear
from renga.functions.connection.local_convolution_2d import (
    local_convolution_2d as local_convolution_2d,
)
from renga.functions.connection.position_embedding import (
    position_embedding as position_embedding,
)
from renga.functions.connection.rotary_embedding import (
    rotary_embedding as rotary_embedding,
)
from renga.functions.connection.shift import shift as shift
from renga.functions.evaluation.accuracy import accuracy as accuracy
from renga.functions.evaluation.accuracy import (
    binary_accuracy as binary_accuracy,
)
from renga.functions.evaluation.accuracy import r2_score as r2_score
from renga.functions.evaluation.classification_summary import (
    classification_summary as classification_summary,
)
from renga.functions.evaluation.classification_summary import f1_score as f1_score
from renga.functions.evaluation.classification_summary import precision as precision
from renga.functions.evaluation.classification_summary import recall as recall
from renga.functions.loss.black_out import black_out as black_out
from renga.functions.loss.covariance import cross_covariance as cross_covariance
from renga.functions.loss.covariance import decov as decov
from renga.functions.loss.crf1d import argmax_crf1d as argmax_crf1d
from renga.functions.loss.crf1d import crf1d as crf1d
from renga.functions.loss.cross_entropy import (
    label_smoothing_cross_entropy as label_smoothing_cross_entropy,
)
from renga.functions.loss.cross_entropy import (
    sigmoid_cross_entropy as sigmoid_cross_entropy,
)
from renga.functions.loss.cross_entropy import (
    softmax_cross_entropy as softmax_cross_entropy,
)
from renga.functions.loss.ctc import (
    connectionist_temporal_classification as connectionist_temporal_classification,
)
from renga.functions.loss.embedding import contrastive as contrastive
from renga.functions.loss.embedding import (
    discriminative_margin_based_clustering_loss as discriminative_margin_based_clustering_loss,  # noqa: E501
)
from renga.functions.loss.embedding import triplet as triplet
from renga.functions.loss.errors import absolute_error as absolute_error
from renga.functions.loss.errors import huber_loss as huber_loss
from renga.functions.loss.errors import (
    mean_absolute_error as mean_absolute_error,
)
from renga.functions.loss.errors import (
    mean_squared_error as mean_squared_error,
)
from renga.functions.loss.errors import (
    squared_difference as squared_difference,
)
from renga.functions.loss.errors import squared_error as squared_error
from renga.functions.loss.hinge import hinge as hinge
from renga.functions.loss.negative_sampling import (
    negative_sampling as negative_sampling,
)
from renga.functions.loss.vae import bernoulli_nll as bernoulli_nll
from renga.functions.loss.vae import gaussian_kl_divergence as gaussian_kl_divergence
from renga.functions.loss.vae import gaussian_nll as gaussian_nll
from renga.functions.math.along_axis import bias as bias
from renga.functions.math.along_axis import scale as scale
from renga.functions.math.average import average as average
from renga.functions.math.average import mean as mean
from renga.functions.math.batch_l2_norm_squared import (
    batch_l2_norm_squared as batch_l2_norm_squared,
)
from renga.functions.math.einsum import einsum as einsum
from renga.functions.math.elementwise import add as add
from renga.functions.math.elementwise import clip as clip
from renga.functions.math.elementwise import fmod as fmod
from renga.functions.math.elementwise import (
    linear_interpolate as linear_interpolate,
)
from renga.functions.math.fft import fft as fft
from renga.functions.math.fft import ifft as ifft
from renga.functions.math.gamma import polygamma as polygamma
from renga.functions.math.gamma import zeta as zeta
from renga.functions.math.identity import identity as identity
from renga.functions.math.matrices import batch_det as batch_det
from renga.functions.math.matrices import batch_inv as batch_inv
from renga.functions.math.matrices import batch_matmul as batch_matmul
from renga.functions.math.matrices import cholesky as cholesky
from renga.functions.math.matrices import det as det
from renga.functions.math.matrices import inv as inv
from renga.functions.math.sparse_matmul import sparse_matmul as sparse_matmul
from renga.functions.math.tensordot import tensordot as tensordot
from renga.functions.noise.dropout import dropout as dropout
from renga.functions.noise.dropout import (
    simplified_dropconnect as simplified_dropconnect,
)
from renga.functions.noise.dropout import zoneout as zoneout
from renga.functions.noise.gaussian import gaussian as gaussian
from renga.functions.noise.gaussian import gumbel_softmax as gumbel_softmax
from renga.functions.normalization.batch_normalization import (
    batch_normalization as batch_normalization,
)
from renga.functions.normalization.batch_normalization import (
    batch_renormalization as batch_renormalization,
)
from renga.functions.normalization.batch_normalization import (
    fixed_batch_normalization as fixed_batch_normalization,
)
from renga.functions.normalization.batch_normalization import (
    fixed_batch_renormalization as fixed_batch_renormalization,
)
from renga.functions.normalization.decorrelated_batch_normalization import (
    decorrelated_batch_normalization as decorrelated_batch_normalization,
)
from renga.functions.normalization.decorrelated_batch_normalization import (
    fixed_decorrelated_batch_normalization as fixed_decorrelated_batch_normalization,
)
from renga.functions.normalization.group_normalization import (
    group_normalization as group_normalization,
)
from renga.functions.normalization.group_normalization import (
    layer_normalization as layer_normalization,
)
from renga.functions.normalization.l2_normalization import normalize as normalize
from renga.functions.normalization.local_response_normalization import (
    local_response_normalization as local_response_normalization,
)
from renga.functions.pooling.average_pooling import (
    average_pooling_1d as average_pooling_1d,
)
from renga.functions.pooling.average_pooling import (
    average_pooling_2d as average_pooling_2d,
)
from renga.functions.pooling.average_pooling import (
    average_pooling_3d as average_pooling_3d,
)
from renga.functions.pooling.average_pooling import (
    average_pooling_nd as average_pooling_nd,
)
from renga.functions.pooling.max_pooling import max_pooling_1d as max_pooling_1d
from renga.functions.pooling.max_pooling import max_pooling_2d as max_pooling_2d
from renga.functions.pooling.max_pooling import max_pooling_3d as max_pooling_3d
from renga.functions.pooling.max_pooling import max_pooling_nd as max_pooling_nd
from renga.functions.pooling.roi import (
    roi_average_align_2d as roi_average_align_2d,
)
from renga.functions.pooling.roi import (
    roi_average_pooling_2d as roi_average_pooling_2d,
)
from renga.functions.pooling.roi import (
    roi_max_align_2d as roi_max_align_2d,
)
from renga.functions.pooling.roi import (
    roi_max_pooling_2d as roi_max_pooling_2d,
)
from renga.functions.pooling.roi import roi_pooling_2d as roi_pooling_2d
from renga.functions.pooling.spatial_pyramid_pooling_2d import (
    spatial_pyramid_pooling_2d as spatial_pyramid_pooling_2d,
)
from renga.functions.pooling.unpooling import unpooling_1d as unpooling_1d
from renga.functions.pooling.unpooling import unpooling_2d as unpooling_2d
from renga.functions.pooling.unpooling import unpooling_3d as unpooling_3d
from renga.functions.pooling.unpooling import unpooling_nd as unpooling_nd
from renga.functions.pooling.unpooling import upsampling_2d as upsampling_2d
from renga.functions.rnn.lstm import lstm as lstm
from renga.functions.rnn.lstm import slstm as slstm
from renga.functions.rnn.n_step import n_step_bigru as n_step_bigru
from renga.functions.rnn.n_step import n_step_bilstm as n_step_bilstm
from renga.functions.rnn.n_step import n_step_birnn as n_step_birnn
from renga.functions.rnn.n_step import n_step_gru as n_step_gru
from renga.functions.rnn.n_step import n_step_lstm as n_step_lstm
from renga.functions.rnn.n_step import n_step_rnn as n_step_rnn
from renga.functions.rnn.tree_lstm import tree_lstm as tree_lstm
from renga.functions.util.forget import forget as forget
