"""Tables of the fields of Caffe's messages that describe networks."""

from __future__ import annotations

from renga.links.caffe.wire import Field

BLOB = {
    "num": Field(1, default=0),
    "channels": Field(2, default=0),
    "height": Field(3, default=0),
    "width": Field(4, default=0),
    "data": Field(5, "float", repeated=True),
    "shape": Field(7, {"dim": Field(1, repeated=True)}),
    "double_data": Field(8, "double", repeated=True),
}
BATCH_NORM = {
    "use_global_stats": Field(1, bool, False),
    "moving_average_fraction": Field(2, "float", 0.999),
    "eps": Field(3, "float", 1e-5),
}
CONCAT = {"axis": Field(2, default=1), "concat_dim": Field(1, default=1)}
CONVOLUTION = {
    "num_output": Field(1, default=0),
    "bias_term": Field(2, bool, True),
    "pad": Field(3, repeated=True),
    "kernel_size": Field(4, repeated=True),
    "group": Field(5, default=1),
    "stride": Field(6, repeated=True),
    "pad_h": Field(9, default=0),
    "pad_w": Field(10, default=0),
    "kernel_h": Field(11, default=0),
    "kernel_w": Field(12, default=0),
    "stride_h": Field(13, default=0),
    "stride_w": Field(14, default=0),
    "dilation": Field(18, repeated=True),
}
DROPOUT = {"dropout_ratio": Field(1, "float", 0.5)}
ELTWISE = {
    "operation": Field(1, default=1),
    "coeff": Field(2, "float", repeated=True),
}
INNER_PRODUCT = {
    "num_output": Field(1, default=0),
    "bias_term": Field(2, bool, True),
    "axis": Field(5, default=1),
    "transpose": Field(6, bool, False),
}
LOSS = {
    "ignore_label": Field(1, default=0),
    "normalize": Field(2, bool, True),
    "normalization": Field(3, default=1),
}
LRN = {
    "local_size": Field(1, default=5),
    "alpha": Field(2, "float", 1.0),
    "beta": Field(3, "float", 0.75),
    "norm_region": Field(4, default=0),
    "k": Field(5, "float", 1.0),
}
POOLING = {
    "pool": Field(1, default=0),
    "kernel_size": Field(2, default=0),
    "stride": Field(3, default=1),
    "pad": Field(4, default=0),
    "kernel_h": Field(5, default=0),
    "kernel_w": Field(6, default=0),
    "stride_h": Field(7, default=0),
    "stride_w": Field(8, default=0),
    "pad_h": Field(9, default=0),
    "pad_w": Field(10, default=0),
    "global_pooling": Field(12, bool, False),
    "round_mode": Field(13, default=0),
}
RELU = {"negative_slope": Field(1, "float", 0.0)}
RESHAPE = {
    "shape": Field(1, {"dim": Field(1, repeated=True)}),
    "axis": Field(2, default=0),
    "num_axes": Field(3, default=-1),
}
SCALE = {
    "axis": Field(1, default=1),
    "bias_term": Field(4, bool, False),
}
SLICE = {
    "slice_dim": Field(1, default=1),
    "slice_point": Field(2, repeated=True),
    "axis": Field(3, default=1),
}
SOFTMAX = {"axis": Field(2, default=1)}

LAYER = {
    "name": Field(1, str, ""),
    "type": Field(2, str, ""),
    "bottom": Field(3, str, repeated=True),
    "top": Field(4, str, repeated=True),
    "blobs": Field(7, BLOB, repeated=True),
    "loss_param": Field(101, LOSS),
    "concat_param": Field(104, CONCAT),
    "convolution_param": Field(106, CONVOLUTION),
    "dropout_param": Field(108, DROPOUT),
    "eltwise_param": Field(110, ELTWISE),
    "inner_product_param": Field(117, INNER_PRODUCT),
    "lrn_param": Field(118, LRN),
    "pooling_param": Field(121, POOLING),
    "relu_param": Field(123, RELU),
    "softmax_param": Field(125, SOFTMAX),
    "slice_param": Field(126, SLICE),
    "reshape_param": Field(133, RESHAPE),
    "batch_norm_param": Field(139, BATCH_NORM),
    "scale_param": Field(142, SCALE),
}
# The layers before 2014: other field numbers, and a number as the type.
OLD_LAYER = {
    "bottom": Field(2, str, repeated=True),
    "top": Field(3, str, repeated=True),
    "name": Field(4, str, ""),
    "type": Field(5, default=0),
    "blobs": Field(6, BLOB, repeated=True),
    "concat_param": Field(9, CONCAT),
    "convolution_param": Field(10, CONVOLUTION),
    "dropout_param": Field(12, DROPOUT),
    "inner_product_param": Field(17, INNER_PRODUCT),
    "lrn_param": Field(18, LRN),
    "pooling_param": Field(19, POOLING),
    "eltwise_param": Field(24, ELTWISE),
    "relu_param": Field(30, RELU),
    "slice_param": Field(31, SLICE),
    "softmax_param": Field(39, SOFTMAX),
    "loss_param": Field(42, LOSS),
}
OLD_TYPES = {
    3: "Concat",
    4: "Convolution",
    5: "Data",
    6: "Dropout",
    14: "InnerProduct",
    15: "LRN",
    17: "Pooling",
    18: "ReLU",
    19: "Sigmoid",
    20: "Softmax",
    21: "SoftmaxWithLoss",
    22: "Split",
    25: "Eltwise",
    33: "Slice",
    39: "Deconvolution",
}
NET = {
    "name": Field(1, str, ""),
    "layers": Field(2, OLD_LAYER, repeated=True),
    "layer": Field(100, LAYER, repeated=True),
}
