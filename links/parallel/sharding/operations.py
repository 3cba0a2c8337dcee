"""Which operations keep the placement of their inputs."""

# Operations that compute each element from those at the same position.
ELEMENTWISE = frozenset(
    """absolute add arccos arcsin arctan arctan2 cast ceil clip cos cosh divide dropout
    elu erf exp expm1 fixed_batch_normalization floor floor_divide gaussian leaky_relu
    log log10 log1p log2 maximum minimum multiply negative power reciprocal relu rsqrt
    sigmoid sign sin sinh softplus sqrt square subtract tan tanh where""".split()
)
# Operations along an axis: they keep a variable sharded along other axes.
ALONG_AXIS = frozenset(
    """argmax argmin concat log_softmax logsumexp max min prod softmax split_axis
    sum""".split()
)
# Operations that compute each channel (axis 1) from the same channel only.
CHANNELWISE = frozenset(
    """absolute add average_pooling_2d batch_normalization cast ceil clip cosine
    divide dropout elu exp expm1 fixed_batch_normalization floor leaky_relu log log1p
    max_pooling_2d maximum minimum multiply negative power relu rsqrt sigmoid sign
    softplus sqrt square subtract tanh""".split()
)
# Operations that compute each sample (axis 0) from the same sample only.
BATCHWISE = CHANNELWISE - {"batch_normalization", "fixed_batch_normalization"}
