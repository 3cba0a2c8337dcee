"""Differentiable functions of Variables and arrays."""

from renga._core.ops import (
    absolute as absolute,
    arccos as arccos,
    arcsin as arcsin,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    argmax as argmax,
    argmin as argmin,
    broadcast_to as broadcast_to,
    ceil as ceil,
    concat as concat,
    cos as cos,
    cosh as cosh,
    cumprod as cumprod,
    cumsum as cumsum,
    digamma as digamma,
    elu as elu,
    embed_id as embed_id,
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfcx as erfcx,
    erfinv as erfinv,
    exp as exp,
    expand_dims as expand_dims,
    expm1 as expm1,
    fix as fix,
    flatten as flatten,
    floor as floor,
    gelu as gelu,
    hard_sigmoid as hard_sigmoid,
    hard_swish as hard_swish,
    leaky_relu as leaky_relu,
    lgamma as lgamma,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    log_ndtr as log_ndtr,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    matmul as matmul,
    max as max,
    maximum as maximum,
    min as min,
    minimum as minimum,
    mish as mish,
    ndtr as ndtr,
    ndtri as ndtri,
    prod as prod,
    relu as relu,
    reshape as reshape,
    rms_normalization as rms_normalization,
    rsqrt as rsqrt,
    select_item as select_item,
    sigmoid as sigmoid,
    sign as sign,
    silu as silu,
    sin as sin,
    sinh as sinh,
    softmax as softmax,
    softplus as softplus,
    sqrt as sqrt,
    square as square,
    squeeze as squeeze,
    stack as stack,
    sum as sum,
    sum_to as sum_to,
    swapaxes as swapaxes,
    tan as tan,
    tanh as tanh,
    transpose as transpose,
    where as where,
)
from renga.functions.activation.learnt import prelu as prelu, swish as swish
from renga.functions.activation.rectifiers import (
    clipped_relu as clipped_relu,
    crelu as crelu,
    maxout as maxout,
    relu6 as relu6,
    rrelu as rrelu,
    selu as selu,
)
from renga.functions.array.cast import cast as cast, copy as copy
from renga.functions.array.get_item import (
    get_item as get_item,
    scatter_add as scatter_add,
)
from renga.functions.array.hstack import (
    dstack as dstack,
    hstack as hstack,
    vstack as vstack,
)
from renga.functions.array.order import (
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    moveaxis as moveaxis,
    permutate as permutate,
    rollaxis as rollaxis,
)
from renga.functions.array.pad import pad as pad
from renga.functions.array.repeat import repeat as repeat, tile as tile
from renga.functions.array.sampling import (
    resize_images as resize_images,
    spatial_transformer_grid as spatial_transformer_grid,
    spatial_transformer_sampler as spatial_transformer_sampler,
)
from renga.functions.array.sequences import (
    pad_sequence as pad_sequence,
    transpose_sequence as transpose_sequence,
)
from renga.functions.array.split_axis import (
    separate as separate,
    split_axis as split_axis,
)
from renga.functions.array.views import (
    as_strided as as_strided,
    broadcast as broadcast,
    diagonal as diagonal,
)
from renga.functions.array.windows import (
    depth2space as depth2space,
    im2col as im2col,
    space2depth as space2depth,
)
from renga.functions.connection.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from renga.functions.connection.convolution import (
    convolution_1d as convolution_1d,
    convolution_2d as convolution_2d,
    convolution_3d as convolution_3d,
    convolution_nd as convolution_nd,
    depthwise_convolution_2d as depthwise_convolution_2d,
    dilated_convolution_2d as dilated_convolution_2d,
    local_convolution_2d as local_convolution_2d,
)
from renga.functions.connection.deconvolution import (
    deconvolution_1d as deconvolution_1d,
    deconvolution_2d as deconvolution_2d,
    deconvolution_3d as deconvolution_3d,
    deconvolution_nd as deconvolution_nd,
)
from renga.functions.connection.deformable_convolution_2d_sampler import (
    deformable_convolution_2d_sampler as deformable_convolution_2d_sampler,
)
from renga.functions.connection.linear import bilinear as bilinear, linear as linear
from renga.functions.connection.positions import (
    position_embedding as position_embedding,
    rotary_embedding as rotary_embedding,
)
from renga.functions.connection.shift import shift as shift
from renga.functions.evaluation.accuracy import (
    accuracy as accuracy,
    binary_accuracy as binary_accuracy,
    r2_score as r2_score,
)
from renga.functions.evaluation.classification_summary import (
    classification_summary as classification_summary,
    f1_score as f1_score,
    precision as precision,
    recall as recall,
)
from renga.functions.loss.black_out import black_out as black_out
from renga.functions.loss.covariance import (
    cross_covariance as cross_covariance,
    decov as decov,
)
from renga.functions.loss.crf1d import argmax_crf1d as argmax_crf1d, crf1d as crf1d
from renga.functions.loss.cross_entropy import (
    label_smoothing_cross_entropy as label_smoothing_cross_entropy,
    sigmoid_cross_entropy as sigmoid_cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
)
from renga.functions.loss.ctc import (
    connectionist_temporal_classification as connectionist_temporal_classification,
)
from renga.functions.loss.errors import (
    absolute_error as absolute_error,
    huber_loss as huber_loss,
    mean_absolute_error as mean_absolute_error,
    mean_squared_error as mean_squared_error,
    squared_difference as squared_difference,
    squared_error as squared_error,
)
from renga.functions.loss.margins import (
    contrastive as contrastive,
    discriminative_margin_based_clustering_loss as discriminative_margin_based_clustering_loss,  # noqa: E501
    hinge as hinge,
    triplet as triplet,
)
from renga.functions.loss.negative_sampling import (
    negative_sampling as negative_sampling,
)
from renga.functions.loss.vae import (
    bernoulli_nll as bernoulli_nll,
    gaussian_kl_divergence as gaussian_kl_divergence,
    gaussian_nll as gaussian_nll,
)
from renga.functions.math.along_axis import bias as bias, scale as scale
from renga.functions.math.average import (
    average as average,
    batch_l2_norm_squared as batch_l2_norm_squared,
    mean as mean,
)
from renga.functions.math.einsum import einsum as einsum
from renga.functions.math.elementwise import (
    add as add,
    clip as clip,
    fmod as fmod,
    identity as identity,
    linear_interpolate as linear_interpolate,
    polygamma as polygamma,
    zeta as zeta,
)
from renga.functions.math.fft import fft as fft, ifft as ifft
from renga.functions.math.matrices import (
    batch_det as batch_det,
    batch_inv as batch_inv,
    batch_matmul as batch_matmul,
    cholesky as cholesky,
    det as det,
    inv as inv,
)
from renga.functions.math.sparse_matmul import sparse_matmul as sparse_matmul
from renga.functions.math.tensordot import tensordot as tensordot
from renga.functions.noise.dropout import (
    dropout as dropout,
    simplified_dropconnect as simplified_dropconnect,
    zoneout as zoneout,
)
from renga.functions.noise.gaussian import (
    gaussian as gaussian,
    gumbel_softmax as gumbel_softmax,
)
from renga.functions.normalization.batch_normalization import (
    batch_normalization as batch_normalization,
    batch_renormalization as batch_renormalization,
    fixed_batch_normalization as fixed_batch_normalization,
    fixed_batch_renormalization as fixed_batch_renormalization,
)
from renga.functions.normalization.decorrelated_batch_normalization import (
    decorrelated_batch_normalization as decorrelated_batch_normalization,
    fixed_decorrelated_batch_normalization as fixed_decorrelated_batch_normalization,
)
from renga.functions.normalization.single_samples import (
    group_normalization as group_normalization,
    layer_normalization as layer_normalization,
    local_response_normalization as local_response_normalization,
    normalize as normalize,
)
from renga.functions.pooling.average_pooling import (
    average_pooling_1d as average_pooling_1d,
    average_pooling_2d as average_pooling_2d,
    average_pooling_3d as average_pooling_3d,
    average_pooling_nd as average_pooling_nd,
)
from renga.functions.pooling.max_pooling import (
    max_pooling_1d as max_pooling_1d,
    max_pooling_2d as max_pooling_2d,
    max_pooling_3d as max_pooling_3d,
    max_pooling_nd as max_pooling_nd,
    spatial_pyramid_pooling_2d as spatial_pyramid_pooling_2d,
)
from renga.functions.pooling.roi import (
    roi_average_align_2d as roi_average_align_2d,
    roi_average_pooling_2d as roi_average_pooling_2d,
    roi_max_align_2d as roi_max_align_2d,
    roi_max_pooling_2d as roi_max_pooling_2d,
    roi_pooling_2d as roi_pooling_2d,
)
from renga.functions.pooling.unpooling import (
    unpooling_1d as unpooling_1d,
    unpooling_2d as unpooling_2d,
    unpooling_3d as unpooling_3d,
    unpooling_nd as unpooling_nd,
    upsampling_2d as upsampling_2d,
)
from renga.functions.rnn.lstm import (
    lstm as lstm,
    slstm as slstm,
    tree_lstm as tree_lstm,
)
from renga.functions.rnn.n_step import (
    n_step_bigru as n_step_bigru,
    n_step_bilstm as n_step_bilstm,
    n_step_birnn as n_step_birnn,
    n_step_gru as n_step_gru,
    n_step_lstm as n_step_lstm,
    n_step_rnn as n_step_rnn,
)
from renga.functions.util.forget import forget as forget
