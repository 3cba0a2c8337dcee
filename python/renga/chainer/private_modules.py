"""The names of the modules that Chainer 7.8 has, by package."""

_MODULES = {
    "chainer": (
        "_backend _backprop_utils _environment_check _runtime_info _version backend "
        "backends computational_graph configuration cuda dataset datasets "
        "device_resident distribution distributions exporters function "
        "function_hook function_hooks function_node functions gradient_check "
        "graph_optimizations initializer initializers iterators link link_hook "
        "link_hooks links memory_layouts optimizer optimizer_hooks optimizers "
        "reporter sequential serializer serializers testing training types utils "
        "variable warnings"
    ),
    "chainer.backends": "_chainerx _cpu cuda intel64",
    "chainer.dataset": "convert dataset_mixin download iterator tabular",
    "chainer.dataset.tabular": "delegate_dataset from_data tabular_dataset",
    "chainer.datasets": (
        "cifar concatenated_dataset dict_dataset fashion_mnist image_dataset "
        "kuzushiji_mnist mnist pickle_dataset ptb sub_dataset svhn text_dataset "
        "transform_dataset tuple_dataset"
    ),
    "chainer.distributions": (
        "bernoulli beta categorical cauchy chisquare dirichlet exponential gamma "
        "geometric gumbel independent laplace log_normal multivariate_normal normal "
        "one_hot_categorical pareto poisson uniform utils"
    ),
    "chainer.function_hooks": "cuda_profile cupy_memory_profile debug_print timer",
    "chainer.functions": (
        "activation array connection evaluation loss math noise normalization "
        "pooling rnn theano util"
    ),
    "chainer.functions.activation": (
        "clipped_relu crelu elu hard_sigmoid leaky_relu log_softmax maxout prelu "
        "relu rrelu selu sigmoid softmax softplus swish tanh"
    ),
    "chainer.functions.array": (
        "as_strided broadcast cast concat copy depth2space diagonal dstack "
        "expand_dims flatten flip fliplr flipud get_item hstack im2col moveaxis pad "
        "pad_sequence permutate repeat reshape resize_images rollaxis scatter_add "
        "select_item separate space2depth spatial_transformer_grid "
        "spatial_transformer_sampler split_axis squeeze stack swapaxes tile "
        "transpose transpose_sequence vstack where"
    ),
    "chainer.functions.connection": (
        "bilinear convolution_2d convolution_nd deconvolution_2d deconvolution_nd "
        "deformable_convolution_2d_sampler depthwise_convolution_2d "
        "dilated_convolution_2d embed_id linear local_convolution_2d shift"
    ),
    "chainer.functions.evaluation": (
        "accuracy binary_accuracy classification_summary r2_score"
    ),
    "chainer.functions.loss": (
        "absolute_error black_out contrastive crf1d cross_covariance ctc decov "
        "discriminative_loss hinge huber_loss mean_absolute_error "
        "mean_squared_error negative_sampling sigmoid_cross_entropy "
        "softmax_cross_entropy squared_error triplet vae"
    ),
    "chainer.functions.math": (
        "arctanh average basic_math batch_l2_norm_squared bias ceil cholesky clip "
        "cumprod cumsum det digamma einsum erf erfc erfcinv erfcx erfinv "
        "exponential exponential_m1 fft fix floor fmod hyperbolic identity inv "
        "lgamma linear_interpolate log_ndtr logarithm_1p logsumexp matmul maximum "
        "minimum minmax ndtr ndtri polygamma prod scale sign sparse_matmul sqrt "
        "square sum tensordot trigonometric zeta"
    ),
    "chainer.functions.noise": (
        "dropout gaussian gumbel_softmax simplified_dropconnect zoneout"
    ),
    "chainer.functions.normalization": (
        "batch_normalization batch_renormalization decorrelated_batch_normalization "
        "group_normalization l2_normalization layer_normalization "
        "local_response_normalization"
    ),
    "chainer.functions.pooling": (
        "average_pooling_2d average_pooling_nd average_pooling_nd_kernel "
        "max_pooling_nd max_pooling_nd_kernel pooling_2d pooling_nd "
        "pooling_nd_kernel roi_average_align_2d roi_average_pooling_2d "
        "roi_max_align_2d roi_max_pooling_2d roi_pooling_2d "
        "spatial_pyramid_pooling_2d unpooling_2d unpooling_nd upsampling_2d"
    ),
    "chainer.functions.rnn": "lstm n_step_gru n_step_lstm n_step_rnn slstm tree_lstm",
    "chainer.functions.theano": "theano_function",
    "chainer.functions.util": "forget",
    "chainer.graph_optimizations": "static_graph static_graph_utilities",
    "chainer.initializers": "constant normal orthogonal sampling uniform",
    "chainer.iterators": (
        "_statemachine dali_iterator multiprocess_iterator multithread_iterator "
        "order_samplers serial_iterator"
    ),
    "chainer.link_hooks": "spectral_normalization timer weight_standardization",
    "chainer.links": "activation caffe connection loss model normalization rnn theano",
    "chainer.links.activation": "maxout prelu simplified_dropconnect swish",
    "chainer.links.connection": (
        "bias bilinear convolution_2d convolution_nd deconvolution_2d "
        "deconvolution_nd deformable_convolution_2d depthwise_convolution_2d "
        "dilated_convolution_2d embed_id highway inception inceptionbn linear "
        "local_convolution_2d mlp_convolution_2d parameter scale"
    ),
    "chainer.links.loss": "black_out crf1d hierarchical_softmax negative_sampling",
    "chainer.links.model": "classifier vision",
    "chainer.links.model.vision": "googlenet resnet vgg",
    "chainer.links.normalization": (
        "batch_normalization batch_renormalization decorrelated_batch_normalization "
        "group_normalization layer_normalization"
    ),
    "chainer.links.rnn": (
        "gru lstm mgu n_step_gru n_step_lstm n_step_rnn peephole tree_lstm zoneoutlstm"
    ),
    "chainer.links.theano": "theano_function",
    "chainer.optimizer_hooks": (
        "gradient_clipping gradient_hard_clipping gradient_lars gradient_noise "
        "lasso weight_decay"
    ),
    "chainer.optimizers": (
        "ada_delta ada_grad adam corrected_momentum_sgd momentum_sgd msvag "
        "nesterov_ag rmsprop rmsprop_graves sgd smorms3"
    ),
    "chainer.serializers": "hdf5 npz",
    "chainer.testing": (
        "array attr backend condition distribution_test doctest_helper "
        "function_link helper matrix parameterized random serializer training "
        "unary_math_function_test"
    ),
    "chainer.training": (
        "extension extensions trainer trigger triggers updater updaters util"
    ),
    "chainer.training.extensions": (
        "_snapshot computational_graph evaluator exponential_shift fail_on_nonnumber "
        "inverse_shift linear_shift log_report micro_average multistep_shift "
        "parameter_statistics plot_report polynomial_shift print_report "
        "progress_bar snapshot_writers step_shift util value_observation "
        "variable_statistics_plot variable_unchain warmup_shift"
    ),
    "chainer.training.triggers": (
        "early_stopping_trigger interval_trigger manual_schedule_trigger "
        "minmax_value_trigger once_trigger time_trigger"
    ),
    "chainer.training.updaters": (
        "multiprocess_parallel_updater parallel_updater standard_updater"
    ),
    "chainer.utils": (
        "argument array cache conv conv_nd conv_nd_kernel error experimental "
        "imgproc meta nondeterministic precision sparse type_check walker_alias"
    ),
    "chainermn": (
        "communicators datasets extensions functions global_except_hook iterators "
        "links nccl optimizers testing"
    ),
    "chainermn.communicators": (
        "_communication_utility _memory_utility communicator_base "
        "dummy_communicator flat_communicator "
        "mpi_communicator_base naive_communicator non_cuda_aware_communicator "
        "pure_nccl_communicator"
    ),
    "chainermn.datasets": "empty_dataset scatter",
    "chainermn.extensions": (
        "_multi_node_snapshot allreduce_persistent checkpoint "
        "multi_node_early_stopping_trigger "
        "multi_node_evaluator observation_aggregator"
    ),
    "chainermn.functions": (
        "batch_normalization collective_communication point_to_point_communication "
        "pseudo_connect"
    ),
    "chainermn.iterators": "multi_node_iterator synchronized_iterator",
    "chainermn.links": (
        "batch_normalization create_mnbn_model multi_node_chain_list n_step_rnn"
    ),
    "chainermn.testing": "device",
}


def is_chainers(name: str) -> bool:
    """Whether Chainer has a module of that name."""
    package, _, module = name.rpartition(".")
    return module in modules_of(package)


def modules_of(package: str) -> list[str]:
    """The names of the modules in a package of Chainer."""
    return _MODULES.get(package, "").split()
