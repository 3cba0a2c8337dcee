# ruff: noqa: E501
"""A call of every function, for empty batches and unusual arrays.

In the calls N is the number of samples; ``u`` makes Variables of floats in (0, 1), ``s``
in (-2, 2), and ``i`` arrays of integers below its first argument.

``edge_outcomes.json`` has Chainer 7.8.1's outcomes, written by ``python edge_cases.py``
where that works: for batches of no and of two samples, in float32 and in float16, the
error, or of each output and each gradient dtype, shape, a weighted sum and the sum of
the absolute values (null for NaN and infinity).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy

CALLS = """
F.absolute(s(N, 3))
F.absolute_error(s(N, 3), s(N, 3))
F.accuracy(s(N, 3), i(3, N))
F.add(s(N, 3), s(N, 3), s(N, 3))
F.arccos(u(N, 3))
F.arcsin(u(N, 3))
F.arctan(s(N, 3))
F.arctan2(s(N, 3), s(N, 3))
F.arctanh(u(N, 3))
F.argmax(s(N, 3), axis=1)
F.argmax(s(N, 3), axis=0)
F.argmax(s(N, 3))
F.argmax_crf1d(s(3, 3), [s(N, 3), s(N, 3)])
F.argmin(s(N, 3), axis=1)
F.argmin(s(N, 3))
F.as_strided(s(2 * N, 3), (N, 3), (6, 1))
F.average(s(N, 3))
F.average(s(N, 3), axis=1)
F.average(s(N, 3), axis=0, weights=u(N))
F.average_pooling_1d(s(N, 3, 4), 2)
F.average_pooling_2d(s(N, 3, 4, 4), 2)
F.average_pooling_3d(s(N, 3, 4, 4, 4), 2)
F.average_pooling_nd(s(N, 3, 4, 4), 2)
F.batch_det(s(N, 2, 2))
F.batch_inv(s(N, 2, 2))
F.batch_l2_norm_squared(s(N, 3))
F.batch_matmul(s(N, 2, 3), s(N, 3, 4))
F.batch_normalization(s(N, 3), s(3), s(3))
F.batch_normalization(s(N, 3, 4, 4), s(3), s(3))
F.batch_renormalization(s(N, 3), s(3), s(3), 2., 1., running_mean=numpy.zeros(3, DTYPE), running_var=numpy.ones(3, DTYPE))
F.bernoulli_nll(u(N, 3), s(N, 3))
F.bernoulli_nll(u(N, 3), s(N, 3), reduce='no')
F.bias(s(N, 3), s(3))
F.bilinear(s(N, 2), s(N, 3), s(2, 3, 4), s(2, 4), s(3, 4), s(4))
F.binary_accuracy(s(N, 3), i(2, N, 3))
F.black_out(s(N, 3), i(4, N), s(4, 3), i(4, N, 2))
F.black_out(s(N, 3), i(4, N), s(4, 3), i(4, N, 2), reduce='no')
F.broadcast(s(N, 3), s(3), s(N, 1))
F.broadcast_to(s(N, 1), (N, 3))
F.cast(s(N, 3), 'd')
F.ceil(s(N, 3))
F.cholesky(0 * s(N, N) + numpy.eye(N))
F.classification_summary(s(N, 3), i(3, N))
F.clip(s(N, 3), -1., 1.)
F.clipped_relu(s(N, 3), 1.)
F.concat([s(N, 3), s(N, 2)])
F.concat([s(N, 3), s(2, 3)], axis=0)
F.connectionist_temporal_classification([s(N, 3), s(N, 3), s(N, 3)], i(2, N, 1) + 1, 0)
F.connectionist_temporal_classification([s(N, 3), s(N, 3), s(N, 3)], i(2, N, 1) + 1, 0, reduce='no')
F.contrastive(s(N, 3), s(N, 3), i(2, N))
F.contrastive(s(N, 3), s(N, 3), i(2, N), reduce='no')
F.convolution_1d(s(N, 3, 5), s(4, 3, 3), s(4))
F.convolution_2d(s(N, 3, 5, 5), s(4, 3, 3, 3), s(4))
F.convolution_2d(s(N, 4, 5, 5), s(4, 2, 3, 3), stride=2, pad=1, groups=2)
F.convolution_3d(s(N, 3, 4, 4, 4), s(4, 3, 3, 3, 3), s(4))
F.convolution_nd(s(N, 3, 5, 5), s(4, 3, 3, 3), s(4))
F.copy(s(N, 3), -1)
F.cos(s(N, 3))
F.cosh(s(N, 3))
F.crelu(s(N, 3))
F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)])
F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)], reduce='no')
F.cross_covariance(s(N, 3), s(N, 2))
F.cross_covariance(s(N, 3), s(N, 2), reduce='no')
F.cumprod(s(N, 3))
F.cumprod(s(N, 3), axis=0)
F.cumsum(s(N, 3))
F.cumsum(s(N, 3), axis=0)
F.deconvolution_1d(s(N, 4, 3), s(4, 3, 3), s(3))
F.deconvolution_2d(s(N, 4, 3, 3), s(4, 3, 3, 3), s(3))
F.deconvolution_2d(s(N, 4, 3, 3), s(4, 2, 3, 3), stride=2, groups=2)
F.deconvolution_3d(s(N, 4, 2, 2, 2), s(4, 3, 3, 3, 3), s(3))
F.deconvolution_nd(s(N, 4, 3, 3), s(4, 3, 3, 3), s(3))
F.decorrelated_batch_normalization(s(8 * N, 4), groups=2)
F.decov(s(N, 3))
F.decov(s(N, 3), reduce='no')
F.deformable_convolution_2d_sampler(s(N, 3, 5, 5), u(N, 18, 3, 3), s(4, 3, 3, 3), s(4))
F.depth2space(s(N, 4, 2, 2), 2)
F.depthwise_convolution_2d(s(N, 3, 5, 5), s(2, 3, 3, 3), s(6))
F.det(s(N, N))
F.diagonal(s(N, 3, 3), axis1=1, axis2=2)
F.diagonal(s(N, 3))
F.digamma(u(N, 3))
F.dilated_convolution_2d(s(N, 3, 6, 6), s(4, 3, 3, 3), s(4), dilate=2)
F.discriminative_margin_based_clustering_loss(s(N, 2, 4, 4), i(3, N, 4, 4), .5, 1.5, 2)
F.dropout(s(N, 3), mask=2 * i(2, N, 3).astype(DTYPE))
F.dstack([s(N, 3), s(N, 3)])
F.einsum('ij,kj->ik', s(N, 3), s(4, 3))
F.einsum('ij,ik->jk', s(N, 3), s(N, 4))
F.einsum('ij->i', s(N, 3))
F.elu(s(N, 3))
F.embed_id(i(4, N), s(4, 3))
F.embed_id(i(4, N, 2), s(4, 3), ignore_label=1)
F.erf(s(N, 3))
F.erfc(s(N, 3))
F.erfcinv(u(N, 3))
F.erfcx(s(N, 3))
F.erfinv(u(N, 3))
F.exp(s(N, 3))
F.expand_dims(s(N, 3), 1)
F.expm1(s(N, 3))
F.f1_score(s(N, 3), i(3, N))
F.fft((s(N, 4), s(N, 4)))
F.fix(s(N, 3))
F.fixed_batch_normalization(s(N, 3), s(3), s(3), s(3), u(3))
F.fixed_batch_renormalization(s(N, 3), s(3), s(3), s(3), u(3))
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2)
F.flatten(s(N, 3))
F.flip(s(N, 3), 0)
F.fliplr(s(N, 3))
F.flipud(s(N, 3))
F.floor(s(N, 3))
F.fmod(s(N, 3), u(N, 3))
F.forget(F.tanh, s(N, 3))
F.gaussian(s(N, 3), s(N, 3), eps=numpy.ones((N, 3), DTYPE))
F.gaussian_kl_divergence(s(N, 3), s(N, 3))
F.gaussian_kl_divergence(s(N, 3), s(N, 3), reduce='no')
F.gaussian_nll(s(N, 3), s(N, 3), s(N, 3))
F.gaussian_nll(s(N, 3), s(N, 3), s(N, 3), reduce='no')
F.get_item(s(N, 3), (slice(None, None, -1), [0, 2, 2]))
F.get_item(s(N, 3), (slice(None), None, slice(1, 3)))
F.get_item(s(3, N), 1)
F.group_normalization(s(N, 4, 3), 2, s(4), s(4))
F.gumbel_softmax(s(N, 3))
F.hard_sigmoid(s(N, 3))
F.hinge(s(N, 3), i(3, N))
F.hinge(s(N, 3), i(3, N), reduce='no')
F.hstack([s(N, 3), s(N, 2)])
F.huber_loss(s(N, 3), s(N, 3), 1.)
F.huber_loss(s(N, 3), s(N, 3), 1., reduce='no')
F.identity(s(N, 3))
F.ifft((s(N, 4), s(N, 4)))
F.im2col(s(N, 3, 5, 5), 3)
F.inv(s(N, N))
F.layer_normalization(s(N, 3), s(3), s(3))
F.leaky_relu(s(N, 3))
F.lgamma(u(N, 3))
F.linear(s(N, 3), s(4, 3), s(4))
F.linear(s(2, N, 3), s(4, 3), s(4), n_batch_axes=2)
F.linear_interpolate(u(N, 3), s(N, 3), s(N, 3))
F.local_convolution_2d(s(N, 3, 5, 5), s(4, 3, 3, 3, 3, 3), s(4, 3, 3))
F.local_response_normalization(s(N, 7, 2, 2))
F.log(u(N, 3))
F.log10(u(N, 3))
F.log1p(u(N, 3))
F.log2(u(N, 3))
F.log_ndtr(s(N, 3))
F.log_softmax(s(N, 3))
F.logsumexp(s(N, 3))
F.logsumexp(s(N, 3), axis=1)
F.lstm(s(N, 3), s(N, 12))
F.lstm(s(2, 3), s(N, 12))
F.matmul(s(N, 3), s(3, 4))
F.matmul(s(3, N), s(N, 4))
F.matmul(s(N, 3, 2), s(N, 3, 2), transb=True)
F.max(s(N, 3))
F.max(s(N, 3), axis=1)
F.max_pooling_1d(s(N, 3, 4), 2)
F.max_pooling_2d(s(N, 3, 4, 4), 2)
F.max_pooling_3d(s(N, 3, 4, 4, 4), 2)
F.max_pooling_nd(s(N, 3, 4, 4), 2)
F.maximum(s(N, 3), s(N, 3))
F.maxout(s(N, 6), 3)
F.mean(s(N, 3))
F.mean(s(N, 3), axis=1)
F.mean_absolute_error(s(N, 3), s(N, 3))
F.mean_squared_error(s(N, 3), s(N, 3))
F.min(s(N, 3))
F.min(s(N, 3), axis=1)
F.minimum(s(N, 3), s(N, 3))
F.moveaxis(s(N, 3, 2), 0, 2)
F.n_step_bigru(1, 0., s(2, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]] * 2, [[s(3)] * 6] * 2, [s(N, 2), s(N, 2)])
F.n_step_bilstm(1, 0., s(2, N, 3), s(2, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]] * 2, [[s(3)] * 8] * 2, [s(N, 2), s(N, 2)])
F.n_step_birnn(1, 0., s(2, N, 3), [[s(3, 2), s(3, 3)]] * 2, [[s(3), s(3)]] * 2, [s(N, 2), s(N, 2)])
F.n_step_gru(1, 0., s(1, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]], [[s(3)] * 6], [s(N, 2), s(N, 2)])
F.n_step_lstm(1, 0., s(1, N, 3), s(1, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(N, 2), s(N, 2)])
F.n_step_lstm(1, 0., s(1, 2, 3), s(1, 2, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(2, 2), s(N, 2)])
F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)])
F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)], activation='relu')
F.ndtr(s(N, 3))
F.ndtri(u(N, 3))
F.negative_sampling(s(N, 3), i(4, N), s(4, 3), lambda shape: i(4, *shape), 2)
F.negative_sampling(s(N, 3), i(4, N), s(4, 3), lambda shape: i(4, *shape), 2, reduce='no')
F.normalize(s(N, 3))
F.pad(s(N, 3), ((1, 0), (0, 2)), 'constant', constant_values=3.)
F.pad_sequence([s(N, 3), s(2, 3)])
F.permutate(s(N, 3), numpy.arange(N)[::-1])
F.permutate(s(N, 3), numpy.array([2, 0, 1]), axis=1)
F.polygamma(i(3, N, 3), u(N, 3))
F.precision(s(N, 3), i(3, N))
F.prelu(s(N, 3), s(3))
F.prod(s(N, 3))
F.prod(s(N, 3), axis=1)
F.r2_score(s(N, 3), s(N, 3))
F.recall(s(N, 3), i(3, N))
F.relu(s(N, 3))
F.relu6(s(N, 3))
F.repeat(s(N, 3), 2)
F.repeat(s(N, 3), (1, 2, 0), axis=1)
F.reshape(s(N, 6), (N, 2, 3))
F.reshape(s(N, 6), (3, -1))
F.resize_images(s(N, 3, 4, 4), (6, 3))
F.roi_average_align_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1., 2)
F.roi_average_pooling_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1.)
F.roi_max_align_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1., 2)
F.roi_max_pooling_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1.)
F.roi_pooling_2d(s(1, 3, 8, 8), numpy.array([[0, 1, 1, 5, 5], [0, 0, 2, 3, 7]], DTYPE)[:N], 2, 2, 1.)
F.rollaxis(s(N, 3, 2), 2)
F.rrelu(s(N, 3), r=numpy.full((N, 3), .25, DTYPE))
F.rsqrt(u(N, 3))
F.scale(s(N, 3), s(3))
F.scatter_add(s(4, 3), slice(0, N), s(N, 3))
F.scatter_add(s(N, 3), slice(0, N), s(N, 3))
F.select_item(s(N, 3), i(3, N))
F.selu(s(N, 3))
F.separate(s(N, 3))
F.separate(s(N, 3), axis=1)
F.shift(s(N, 9, 4, 4))
F.sigmoid(s(N, 3))
F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3))
F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3), normalize=False)
F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3), reduce='no')
F.sign(s(N, 3))
F.simplified_dropconnect(s(N, 3), s(4, 3), s(4), mask=i(2, N, 4, 3).astype('?'))
F.sin(s(N, 3))
F.sinh(s(N, 3))
F.slstm(s(N, 3), s(N, 3), s(N, 12), s(N, 12))
F.softmax(s(N, 3))
F.softmax(s(3, N), axis=1)
F.softmax_cross_entropy(s(N, 3), i(3, N))
F.softmax_cross_entropy(s(N, 3, 2), i(3, N, 2))
F.softmax_cross_entropy(s(N, 3), i(3, N), normalize=False)
F.softmax_cross_entropy(s(N, 3), i(3, N), class_weight=numpy.array([1, 2, 3], DTYPE))
F.softmax_cross_entropy(s(N, 3), i(3, N), reduce='no')
F.softmax_cross_entropy(s(N, 3), numpy.full((N, 3), 1 / 3, DTYPE))
F.softplus(s(N, 3))
F.space2depth(s(N, 2, 4, 4), 2)
F.sparse_matmul(coo(s(N).array, numpy.arange(N, dtype='i'), i(3, N), (N, 3)), s(3, 2))
F.spatial_pyramid_pooling_2d(s(N, 3, 4, 4), 2, 'max')
F.spatial_transformer_grid(s(N, 2, 3), (3, 4))
F.spatial_transformer_sampler(s(N, 3, 4, 4), u(N, 2, 3, 3))
F.split_axis(s(N, 4), 2, 1)
F.split_axis(s(N, 4), [1], 0)
F.sqrt(u(N, 3))
F.square(s(N, 3))
F.squared_difference(s(N, 3), s(N, 3))
F.squared_error(s(N, 3), s(N, 3))
F.squeeze(s(N, 1, 3))
F.stack([s(N, 3), s(N, 3)])
F.stack([s(N, 3), s(N, 3)], axis=2)
F.sum(s(N, 3))
F.sum(s(N, 3), axis=0)
F.sum(s(N, 3), axis=1, keepdims=True)
F.sum_to(s(N, 3), (1, 3))
F.sum_to(s(N, 3), (N, 1))
F.swapaxes(s(N, 3), 0, 1)
F.swish(s(N, 3), s(3))
F.tan(s(N, 3))
F.tanh(s(N, 3))
F.tensordot(s(N, 3), s(3, 4), axes=1)
F.tensordot(s(3, N), s(N, 4), axes=1)
F.tile(s(N, 3), (2, 1))
F.tile(s(2, 3), (N, 1))
F.transpose(s(N, 3))
F.transpose_sequence([s(3, N), s(2, N)])
F.transpose_sequence([s(3, 2), s(N, 2)])
F.tree_lstm(s(N, 3), s(N, 3), s(N, 15))
F.triplet(s(N, 3), s(N, 3), s(N, 3))
F.triplet(s(N, 3), s(N, 3), s(N, 3), reduce='no')
F.unpooling_1d(s(N, 3, 2), 2)
F.unpooling_2d(s(N, 3, 2, 2), 2)
F.unpooling_3d(s(N, 3, 2, 2, 2), 2)
F.unpooling_nd(s(N, 3, 2, 2), 2)
F.upsampling_2d(s(N, 3, 2, 2), i(4, N, 3, 2, 2), 2, cover_all=False)
F.vstack([s(N, 3), s(2, 3)])
F.where(i(2, N, 3).astype('?'), s(N, 3), s(N, 3))
F.zeta(2 + numpy.arange(3 * N).reshape(N, 3).astype(DTYPE), u(N, 3))
F.zoneout(s(N, 3), s(N, 3))
s(N, 3) + s(N, 3)
s(N, 3) - s(3)
s(N, 3) * s(N, 1)
s(N, 3) / u(N, 3)
u(N, 3) ** s(N, 3)
u(N, 3) ** 2.5
2 ** s(N, 3)
s(N, 3) // u(N, 3)
-s(N, 3)
abs(s(N, 3))
s(N, 3) @ s(3, 2)
3 - s(N, 3)
2 / u(N, 3)
s(N, 3)[:, 1]
s(N, 3)[::-1]
s(N, 3)[0:1]
s(N, 3).T
s(N, 3).reshape(-1)
F.absolute_error(s(), s())
F.add(s(), s(2, 3))
F.arctan2(s(), s())
F.average(s())
F.broadcast(s(), s(2))
F.broadcast_to(s(), (2, 3))
F.cast(s(), 'd')
F.clip(s(), -1., 1.)
F.clipped_relu(s(), 1.)
F.copy(s(), -1)
F.crelu(s())
F.cumsum(s())
F.cumprod(s())
F.einsum('->', s())
F.expand_dims(s(), 0)
F.flatten(s())
F.flip(s(), 0)
F.fmod(s(), u())
F.gaussian(s(), s(), eps=numpy.ones((), DTYPE))
F.gaussian_kl_divergence(s(), s())
F.gaussian_nll(s(), s(), s())
F.get_item(s(), ())
F.get_item(s(), Ellipsis)
F.get_item(s(), None)
F.identity(s())
F.linear(s(), s(4, 3))
F.linear_interpolate(u(), s(), s())
F.log_softmax(s())
F.logsumexp(s())
F.matmul(s(), s())
F.max(s())
F.maximum(s(), s())
F.mean(s())
F.mean_absolute_error(s(), s())
F.mean_squared_error(s(), s())
F.min(s())
F.minimum(s(), s())
F.pad(s(), (), 'constant')
F.prelu(s(), s())
F.prod(s())
F.repeat(s(), 2)
F.reshape(s(), (1, 1))
F.rrelu(s(), r=numpy.full((), .25, DTYPE))
F.separate(s())
F.sigmoid_cross_entropy(s(), i(2))
F.softmax(s())
F.split_axis(s(), 1, 0)
F.squared_difference(s(), s())
F.squared_error(s(), s())
F.squeeze(s())
F.stack([s(), s()])
F.sum(s())
F.sum_to(s(2, 3), ())
F.swish(s(), s())
F.tensordot(s(), s(), axes=0)
F.tile(s(), 2)
F.transpose(s())
F.transpose_sequence([s(), s()])
F.vstack([s(), s()])
F.hstack([s(), s()])
F.dstack([s(), s()])
F.concat([s(), s()], axis=0)
F.where(i(2).astype('?'), s(), s())
F.zoneout(s(), s())
s() + s()
s() - s(3)
s() * 2
s() / u()
u() ** s()
-s()
s() // u()
"""

# Called with a number alone, too.
ELEMENTWISE = """
absolute arctan argmax argmin ceil cos cosh elu erf erfc erfcx exp expm1 fix floor forget
hard_sigmoid leaky_relu log_ndtr ndtr relu relu6 selu sigmoid sign sin sinh softplus
square tan tanh
""".split()
BETWEEN_0_AND_1 = """
arccos arcsin arctanh digamma erfcinv erfinv lgamma log log10 log1p log2 ndtri rsqrt sqrt
""".split()

# How many samples, and of which dtype.
MODES = {"nothing": (0, "f"), "two": (2, "f"), "half": (2, "e")}


def calls() -> list[str]:
    singles = [f"F.{name}(s())" for name in ELEMENTWISE if name != "forget"]
    singles += [f"F.{name}(u())" for name in BETWEEN_0_AND_1]
    return CALLS.strip().split("\n") + singles


def plain(x: Any) -> Any:
    return x


class Inputs:
    """The names in a call; its float arrays become variables."""

    def __init__(self, library: Any, n: int, dtype: str, layout: Any = plain) -> None:
        self.library, self.layout, self.dtype = library, layout, dtype
        self.variables: list[Any] = []
        self.drawn = 0
        self.names = {"N": n, "numpy": numpy, "i": self.integers}
        self.names["F"] = library.functions
        self.names.update(s=self.signed, u=self.positive, DTYPE=dtype)
        self.names["coo"] = library.utils.CooMatrix

    def draw(self, shape: tuple[int, ...]) -> numpy.ndarray:
        """Numbers in (0, 1), no two alike, the same with every NumPy."""
        size = int(numpy.prod(shape))
        self.drawn += size + 3
        return ((numpy.arange(size) + self.drawn) * 0.6180339887 % 1).reshape(shape)

    def variable(self, x: numpy.ndarray) -> Any:
        array = self.layout(numpy.asarray(x).astype(self.dtype))
        self.variables.append(self.library.Variable(array))
        return self.variables[-1]

    def positive(self, *shape: int) -> Any:
        return self.variable(0.05 + 0.9 * self.draw(shape))

    def signed(self, *shape: int) -> Any:
        return self.variable(4 * self.draw(shape) - 2)

    def integers(self, below: int, *shape: int) -> numpy.ndarray:
        return self.layout((self.draw(shape) * below).astype("i"))


def digest(y: Any) -> list[Any]:
    """Dtype, shape, a weighted sum, the sum of the absolute values."""
    x = numpy.asarray(y).astype("d")
    weights = 1 + 0.5 * numpy.cos(numpy.arange(x.size)).reshape(x.shape)
    sums = (float((x * weights).sum()), float(abs(x).sum()))
    finite = [float(f"{v:.6g}") if abs(v) < numpy.inf else None for v in sums]
    return [str(y.dtype), list(y.shape), *finite]


def flat(ys: Any) -> list[Any]:
    if isinstance(ys, (list, tuple)):
        return [part for y in ys for part in flat(y)]
    return [ys]


def outcome(call: str, inputs: Inputs) -> Any:
    """The error's name, or what the call and its gradients are."""
    numpy.random.seed(0)
    dtype = inputs.library.using_config("dtype", numpy.dtype(inputs.dtype))
    with dtype, warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            ys = [y for y in flat(eval(call, inputs.names)) if hasattr(y, "dtype")]
            found = {"outputs": [digest(getattr(y, "array", y)) for y in ys]}
        except Exception as error:
            return type(error).__name__
        try:
            found["gradients"] = gradients(inputs.library, ys, inputs.variables)
        except Exception as error:
            found["gradients"] = type(error).__name__
    return found


def gradients(library: Any, ys: list[Any], xs: list[Any]) -> list[Any]:
    ys = [y for y in ys if getattr(y, "requires_grad", False) and y.dtype.kind == "f"]
    starts = []
    for y in ys:
        values = 1 + 0.5 * numpy.sin(numpy.arange(y.size))
        starts.append(library.Variable(values.reshape(y.shape).astype(y.dtype)))
    gxs = library.grad(ys, xs, starts) if ys else [None] * len(xs)
    return [gx if gx is None else digest(gx.array) for gx in gxs]


def same(expected: list[Any], found: list[Any], tolerance: float | None) -> None:
    """Asserts that arrays are equal; without a tolerance only dtypes and shapes.

    A missing gradient equals zeros.
    """
    assert len(found) == len(expected)
    for y, e in zip(found, expected):
        if e is None:
            assert y is None or y[2:] == [0, 0]
            continue
        assert y[:2] == e[:2]
        for a, b in zip(y[2:], e[2:]) if tolerance is not None else ():
            assert a is b or abs(a - b) <= tolerance * (1 + e[3])


def write(file: Path, calls: list[str], inputs: Any) -> None:
    """Writes Chainer's outcomes."""
    import chainer
    import chainer.utils

    lines = []
    for call in calls:
        found = {m: outcome(call, inputs(chainer, *MODES[m])) for m in MODES}
        lines.append(f"{json.dumps(call)}: {json.dumps(found)}")
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(Path(__file__).with_name("edge_outcomes.json"), calls(), Inputs)
