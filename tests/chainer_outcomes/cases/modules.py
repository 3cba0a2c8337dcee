"""The names that Chainer's modules define, and of which kind they are."""

import importlib
import inspect

NAMES = """
chainer: config global_config Fallback get_function_hooks get_array_types get_cpu_array_types is_arrays_compatible mixed16 is_debug set_debug DebugMode get_dtype get_compute_mode disable_experimental_feature_warning
chainer._backend: Device
chainer._environment_check: check
chainer._runtime_info: print_runtime_info
chainer.backend: copyto get_device using_device get_array_module get_device_from_array
chainer.backends._chainerx: ChainerxDevice to_chx from_chx
chainer.backends._cpu: CpuDevice
chainer.backends.cuda: config available cudnn_enabled ndarray Device Event Stream cupy check_cuda_available DummyDeviceType DummyDevice GpuDevice get_device_from_id get_device_from_array get_device to_gpu to_cpu copy memoize clear_memo elementwise reduce raw get_array_module get_max_workspace_size set_max_workspace_size fuse should_use_cudnn should_use_cudnn_tensor_core get_cudnn_dropout_states get_cudnn_dropout_states_core
chainer.backends.intel64: config mdarray Intel64Device is_ideep_available check_ideep_available should_use_ideep inputs_all_ready
chainer.computational_graph: DotNode ComputationalGraph build_computational_graph
chainer.configuration: GlobalConfig LocalConfig global_config config using_config
chainer.cuda: config available cudnn_enabled cupy DummyDevice
chainer.dataset: concat_examples
chainer.dataset.convert: Converter converter to_device concat_examples_func concat_examples ConcatWithAsyncTransfer Conveyor
chainer.dataset.dataset_mixin: DatasetMixin
chainer.dataset.download: get_dataset_root set_dataset_root get_dataset_directory cached_download cache_or_load_file
chainer.dataset.iterator: Iterator
chainer.dataset.tabular.delegate_dataset: DelegateDataset
chainer.dataset.tabular.from_data: from_data
chainer.dataset.tabular.tabular_dataset: TabularDataset
chainer.datasets.cifar: get_cifar10 get_cifar100
chainer.datasets.concatenated_dataset: ConcatenatedDataset
chainer.datasets.dict_dataset: DictDataset
chainer.datasets.fashion_mnist: get_fashion_mnist_labels get_fashion_mnist
chainer.datasets.image_dataset: available ImageDataset LabeledImageDataset LabeledZippedImageDataset MultiZippedImageDataset ZippedImageDataset
chainer.datasets.kuzushiji_mnist: get_kuzushiji_mnist_labels get_kuzushiji_mnist
chainer.datasets.mnist: get_mnist
chainer.datasets.pickle_dataset: PickleDatasetWriter PickleDataset open_pickle_dataset open_pickle_dataset_writer
chainer.datasets.ptb: get_ptb_words get_ptb_words_vocabulary
chainer.datasets.sub_dataset: SubDataset split_dataset split_dataset_random split_dataset_n split_dataset_n_random get_cross_validation_datasets get_cross_validation_datasets_random
chainer.datasets.svhn: get_svhn
chainer.datasets.text_dataset: TextDataset
chainer.datasets.transform_dataset: TransformDataset
chainer.datasets.tuple_dataset: TupleDataset
chainer.device_resident: DeviceResident DeviceResidentsVisitor
chainer.distribution: Distribution register_kl kl_divergence cross_entropy
chainer.distributions.bernoulli: Bernoulli
chainer.distributions.beta: Beta
chainer.distributions.categorical: Categorical
chainer.distributions.cauchy: Cauchy
chainer.distributions.chisquare: Chisquare
chainer.distributions.dirichlet: Dirichlet
chainer.distributions.exponential: Exponential
chainer.distributions.gamma: Gamma
chainer.distributions.geometric: Geometric
chainer.distributions.gumbel: Gumbel
chainer.distributions.independent: Independent
chainer.distributions.laplace: Laplace
chainer.distributions.log_normal: LogNormal
chainer.distributions.multivariate_normal: MultivariateNormal
chainer.distributions.normal: Normal
chainer.distributions.one_hot_categorical: OneHotCategorical
chainer.distributions.pareto: Pareto
chainer.distributions.poisson: Poisson
chainer.distributions.uniform: Uniform
chainer.function: no_backprop_mode force_backprop_mode FunctionAdapter Function
chainer.function_hook: FunctionHook
chainer.function_hooks.cuda_profile: CUDAProfileHook
chainer.function_hooks.cupy_memory_profile: CupyMemoryProfileHook
chainer.function_hooks.debug_print: PrintHook
chainer.function_hooks.timer: TimerHook
chainer.function_node: FunctionNode grad
chainer.functions.activation.clipped_relu: ClippedReLU clipped_relu relu6
chainer.functions.activation.crelu: CReLU crelu
chainer.functions.activation.elu: ELU elu
chainer.functions.activation.hard_sigmoid: HardSigmoid hard_sigmoid
chainer.functions.activation.leaky_relu: LeakyReLU leaky_relu
chainer.functions.activation.log_softmax: logsumexp LogSoftmax log_softmax
chainer.functions.activation.maxout: maxout
chainer.functions.activation.prelu: PReLUFunction prelu
chainer.functions.activation.relu: ReLU relu
chainer.functions.activation.rrelu: RReLU rrelu
chainer.functions.activation.selu: selu
chainer.functions.activation.sigmoid: Sigmoid sigmoid
chainer.functions.activation.softmax: Softmax softmax
chainer.functions.activation.softplus: Softplus softplus
chainer.functions.activation.swish: Swish swish
chainer.functions.activation.tanh: Tanh tanh
chainer.functions.array.as_strided: AsStrided as_strided
chainer.functions.array.broadcast: Broadcast broadcast BroadcastTo
chainer.functions.array.cast: Cast cast
chainer.functions.array.concat: Concat concat
chainer.functions.array.copy: Copy copy
chainer.functions.array.depth2space: Depth2Space depth2space
chainer.functions.array.diagonal: Diagonal diagonal
chainer.functions.array.dstack: Dstack dstack
chainer.functions.array.expand_dims: ExpandDims expand_dims
chainer.functions.array.flatten: flatten
chainer.functions.array.flip: Flip flip
chainer.functions.array.fliplr: FlipLR fliplr
chainer.functions.array.flipud: FlipUD flipud
chainer.functions.array.get_item: GetItem get_item
chainer.functions.array.hstack: Hstack hstack
chainer.functions.array.im2col: Im2Col im2col
chainer.functions.array.moveaxis: Moveaxis moveaxis
chainer.functions.array.pad: Pad pad
chainer.functions.array.pad_sequence: PadSequence pad_sequence
chainer.functions.array.permutate: Permutate permutate
chainer.functions.array.repeat: Repeat repeat
chainer.functions.array.reshape: Reshape reshape
chainer.functions.array.resize_images: ResizeImages resize_images
chainer.functions.array.rollaxis: Rollaxis rollaxis
chainer.functions.array.scatter_add: ScatterAdd scatter_add
chainer.functions.array.select_item: SelectItem select_item
chainer.functions.array.separate: Separate separate
chainer.functions.array.space2depth: Space2Depth space2depth
chainer.functions.array.spatial_transformer_grid: SpatialTransformerGrid spatial_transformer_grid
chainer.functions.array.spatial_transformer_sampler: SpatialTransformerSampler spatial_transformer_sampler
chainer.functions.array.split_axis: SplitAxis split_axis
chainer.functions.array.squeeze: Squeeze squeeze
chainer.functions.array.stack: Stack stack
chainer.functions.array.swapaxes: Swapaxes swapaxes
chainer.functions.array.tile: Tile tile
chainer.functions.array.transpose: Transpose transpose
chainer.functions.array.transpose_sequence: TransposeSequence transpose_sequence
chainer.functions.array.vstack: Vstack vstack
chainer.functions.array.where: Where where
chainer.functions.connection.bilinear: BilinearFunction bilinear
chainer.functions.connection.convolution_2d: Convolution2DFunction convolution_2d
chainer.functions.connection.convolution_nd: ConvolutionND convolution_nd convolution_1d convolution_3d
chainer.functions.connection.deconvolution_2d: Deconvolution2DFunction deconvolution_2d
chainer.functions.connection.deconvolution_nd: DeconvolutionND deconvolution_nd deconvolution_1d deconvolution_3d
chainer.functions.connection.deformable_convolution_2d_sampler: deformable_convolution_2d_sampler
chainer.functions.connection.depthwise_convolution_2d: depthwise_convolution_2d
chainer.functions.connection.dilated_convolution_2d: dilated_convolution_2d
chainer.functions.connection.embed_id: EmbedIDFunction embed_id
chainer.functions.connection.linear: LinearFunction linear
chainer.functions.connection.local_convolution_2d: LocalConvolution2DFunction local_convolution_2d
chainer.functions.connection.shift: Shift shift
chainer.functions.evaluation.accuracy: Accuracy accuracy
chainer.functions.evaluation.binary_accuracy: BinaryAccuracy binary_accuracy
chainer.functions.evaluation.classification_summary: ClassificationSummary classification_summary precision recall f1_score
chainer.functions.evaluation.r2_score: R2_score r2_score
chainer.functions.loss.absolute_error: AbsoluteError absolute_error
chainer.functions.loss.black_out: black_out
chainer.functions.loss.contrastive: Contrastive contrastive
chainer.functions.loss.crf1d: crf1d argmax_crf1d
chainer.functions.loss.cross_covariance: CrossCovariance cross_covariance
chainer.functions.loss.ctc: connectionist_temporal_classification
chainer.functions.loss.decov: DeCov decov
chainer.functions.loss.discriminative_loss: discriminative_margin_based_clustering_loss
chainer.functions.loss.hinge: Hinge hinge
chainer.functions.loss.huber_loss: HuberLoss huber_loss
chainer.functions.loss.mean_absolute_error: MeanAbsoluteError mean_absolute_error
chainer.functions.loss.mean_squared_error: MeanSquaredError mean_squared_error
chainer.functions.loss.negative_sampling: negative_sampling
chainer.functions.loss.sigmoid_cross_entropy: SigmoidCrossEntropy sigmoid_cross_entropy
chainer.functions.loss.softmax_cross_entropy: SoftmaxCrossEntropy softmax_cross_entropy
chainer.functions.loss.squared_error: SquaredError squared_error squared_difference
chainer.functions.loss.triplet: Triplet triplet
chainer.functions.loss.vae: gaussian_kl_divergence bernoulli_nll gaussian_nll
chainer.functions.math.arctanh: Arctanh arctanh
chainer.functions.math.average: Mean average
chainer.functions.math.basic_math: Neg Absolute absolute Add AddConstant MultiAdd add Sub SubFromConstant Mul MulConstant Div DivFromConstant PowVarVar PowVarConst PowConstVar matmul
chainer.functions.math.batch_l2_norm_squared: BatchL2NormSquared batch_l2_norm_squared
chainer.functions.math.bias: bias
chainer.functions.math.ceil: ceil
chainer.functions.math.cholesky: Cholesky cholesky
chainer.functions.math.clip: Clip clip
chainer.functions.math.cumprod: Cumprod cumprod
chainer.functions.math.cumsum: Cumsum cumsum
chainer.functions.math.det: BatchDet batch_det det
chainer.functions.math.digamma: DiGamma digamma
chainer.functions.math.einsum: einsum
chainer.functions.math.erf: Erf erf
chainer.functions.math.erfc: Erfc erfc
chainer.functions.math.erfcinv: ErfcInv erfcinv
chainer.functions.math.erfcx: Erfcx erfcx
chainer.functions.math.erfinv: ErfInv erfinv
chainer.functions.math.exponential: Exp exp Log log Log2 log2 Log10 log10
chainer.functions.math.exponential_m1: Expm1 expm1
chainer.functions.math.fft: FFT fft ifft
chainer.functions.math.fix: fix
chainer.functions.math.floor: floor
chainer.functions.math.fmod: Fmod fmod
chainer.functions.math.hyperbolic: Cosh cosh Sinh sinh
chainer.functions.math.identity: Identity identity
chainer.functions.math.inv: Inv BatchInv inv batch_inv
chainer.functions.math.lgamma: LGamma lgamma
chainer.functions.math.linear_interpolate: LinearInterpolate linear_interpolate
chainer.functions.math.log_ndtr: LogNdtr log_ndtr
chainer.functions.math.logarithm_1p: Log1p log1p
chainer.functions.math.logsumexp: LogSumExp logsumexp
chainer.functions.math.matmul: MatMul matmul BatchMatMul batch_matmul
chainer.functions.math.maximum: Maximum maximum
chainer.functions.math.minimum: Minimum minimum
chainer.functions.math.minmax: Max Min ArgMin ArgMax max min argmax argmin
chainer.functions.math.ndtr: Ndtr ndtr
chainer.functions.math.ndtri: Ndtri ndtri
chainer.functions.math.polygamma: PolyGamma polygamma
chainer.functions.math.prod: Prod prod
chainer.functions.math.scale: scale
chainer.functions.math.sign: sign
chainer.functions.math.sparse_matmul: CooMatMul sparse_matmul
chainer.functions.math.sqrt: Sqrt sqrt rsqrt
chainer.functions.math.square: Square square
chainer.functions.math.sum: Sum sum SumTo sum_to
chainer.functions.math.tensordot: tensordot
chainer.functions.math.trigonometric: Sin sin Cos cos Tan tan Arcsin arcsin Arccos arccos Arctan arctan Arctan2 arctan2
chainer.functions.math.zeta: Zeta zeta
chainer.functions.noise.dropout: Dropout dropout
chainer.functions.noise.gaussian: Gaussian gaussian
chainer.functions.noise.gumbel_softmax: gumbel_softmax
chainer.functions.noise.simplified_dropconnect: SimplifiedDropconnect simplified_dropconnect
chainer.functions.noise.zoneout: Zoneout zoneout
chainer.functions.normalization.batch_normalization: BatchNormalization FixedBatchNormalization batch_normalization fixed_batch_normalization
chainer.functions.normalization.batch_renormalization: batch_renormalization fixed_batch_renormalization
chainer.functions.normalization.decorrelated_batch_normalization: FixedDecorrelatedBatchNormalization decorrelated_batch_normalization fixed_decorrelated_batch_normalization
chainer.functions.normalization.group_normalization: GroupNormalization group_normalization
chainer.functions.normalization.l2_normalization: NormalizeL2 normalize
chainer.functions.normalization.layer_normalization: LayerNormalization layer_normalization
chainer.functions.normalization.local_response_normalization: LocalResponseNormalization local_response_normalization
chainer.functions.pooling.average_pooling_2d: AveragePooling2D average_pooling_2d
chainer.functions.pooling.average_pooling_nd: AveragePoolingND average_pooling_nd average_pooling_1d average_pooling_3d
chainer.functions.pooling.max_pooling_nd: MaxPoolingND max_pooling_nd max_pooling_1d max_pooling_3d
chainer.functions.pooling.roi_average_align_2d: ROIAverageAlign2D roi_average_align_2d
chainer.functions.pooling.roi_average_pooling_2d: ROIAveragePooling2D roi_average_pooling_2d
chainer.functions.pooling.roi_max_align_2d: ROIMaxAlign2D roi_max_align_2d
chainer.functions.pooling.roi_max_pooling_2d: ROIMaxPooling2D roi_max_pooling_2d
chainer.functions.pooling.roi_pooling_2d: ROIPooling2D roi_pooling_2d
chainer.functions.pooling.spatial_pyramid_pooling_2d: spatial_pyramid_pooling_2d
chainer.functions.pooling.unpooling_2d: Unpooling2D unpooling_2d
chainer.functions.pooling.unpooling_nd: UnpoolingND unpooling_nd unpooling_1d unpooling_3d
chainer.functions.pooling.upsampling_2d: Upsampling2D upsampling_2d
chainer.functions.rnn.lstm: LSTM lstm
chainer.functions.rnn.n_step_gru: n_step_gru n_step_bigru
chainer.functions.rnn.n_step_lstm: n_step_lstm n_step_bilstm
chainer.functions.rnn.n_step_rnn: n_step_rnn n_step_birnn
chainer.functions.rnn.slstm: SLSTM slstm
chainer.functions.rnn.tree_lstm: TreeLSTM tree_lstm
chainer.functions.util.forget: forget
chainer.gradient_check: NondifferentiableError numerical_grad assert_allclose check_backward check_double_backward
chainer.graph_optimizations.static_graph: static_graph
chainer.graph_optimizations.static_graph_utilities: static_code
chainer.initializer: Initializer get_fans
chainer.initializers: generate_array
chainer.initializers.constant: Identity Constant Zero One NaN
chainer.initializers.normal: Normal LeCunNormal GlorotNormal HeNormal
chainer.initializers.orthogonal: Orthogonal
chainer.initializers.sampling: UpsamplingDeconvFilter DownsamplingConvFilter
chainer.initializers.uniform: Uniform LeCunUniform GlorotUniform HeUniform
chainer.iterators.dali_iterator: DaliIterator
chainer.iterators.multiprocess_iterator: MultiprocessIterator
chainer.iterators.multithread_iterator: MultithreadIterator
chainer.iterators.order_samplers: OrderSampler ShuffleOrderSampler
chainer.iterators.serial_iterator: SerialIterator
chainer.link: Link Chain ChainList
chainer.link_hook: LinkHook
chainer.link_hooks.spectral_normalization: l2normalize update_approximate_vectors calculate_max_singular_value SpectralNormalization
chainer.link_hooks.timer: TimerHook
chainer.link_hooks.weight_standardization: WeightStandardization
chainer.links.activation.maxout: Maxout
chainer.links.activation.prelu: PReLU
chainer.links.activation.simplified_dropconnect: SimplifiedDropconnect
chainer.links.activation.swish: Swish
chainer.links.connection.bias: Bias
chainer.links.connection.bilinear: Bilinear
chainer.links.connection.convolution_2d: Convolution2D
chainer.links.connection.convolution_nd: ConvolutionND Convolution1D Convolution3D
chainer.links.connection.deconvolution_2d: Deconvolution2D
chainer.links.connection.deconvolution_nd: DeconvolutionND Deconvolution1D Deconvolution3D
chainer.links.connection.deformable_convolution_2d: DeformableConvolution2D
chainer.links.connection.depthwise_convolution_2d: DepthwiseConvolution2D
chainer.links.connection.dilated_convolution_2d: DilatedConvolution2D
chainer.links.connection.embed_id: EmbedID
chainer.links.connection.highway: Highway
chainer.links.connection.inception: Inception
chainer.links.connection.inceptionbn: InceptionBN
chainer.links.connection.linear: Linear
chainer.links.connection.local_convolution_2d: LocalConvolution2D
chainer.links.connection.mlp_convolution_2d: MLPConvolution2D
chainer.links.connection.parameter: Parameter
chainer.links.connection.scale: Scale
chainer.links.loss.black_out: BlackOut
chainer.links.loss.crf1d: CRF1d
chainer.links.loss.hierarchical_softmax: TreeParser BinaryHierarchicalSoftmax
chainer.links.loss.negative_sampling: NegativeSampling
chainer.links.model.classifier: Classifier
chainer.links.model.vision.googlenet: available concat_examples GoogLeNet prepare
chainer.links.model.vision.resnet: available concat_examples ResNetLayers ResNet50Layers ResNet101Layers ResNet152Layers prepare BuildingBlock BottleneckA BottleneckB
chainer.links.model.vision.vgg: available concat_examples VGGLayers VGG16Layers VGG19Layers prepare
chainer.links.normalization.batch_normalization: BatchNormalization
chainer.links.normalization.batch_renormalization: BatchRenormalization
chainer.links.normalization.decorrelated_batch_normalization: DecorrelatedBatchNormalization
chainer.links.normalization.group_normalization: GroupNormalization
chainer.links.normalization.layer_normalization: LayerNormalization
chainer.links.rnn.gru: GRUBase StatelessGRU StatefulGRU GRU
chainer.links.rnn.lstm: LSTMBase StatelessLSTM LSTM
chainer.links.rnn.mgu: MGUBase StatelessMGU StatefulMGU
chainer.links.rnn.n_step_gru: NStepGRUBase NStepGRU NStepBiGRU
chainer.links.rnn.n_step_lstm: NStepLSTMBase NStepLSTM NStepBiLSTM
chainer.links.rnn.n_step_rnn: argsort_list_descent permutate_list NStepRNNBase NStepRNNTanh NStepRNNReLU NStepBiRNNTanh NStepBiRNNReLU
chainer.links.rnn.peephole: StatefulPeepholeLSTM
chainer.links.rnn.tree_lstm: ChildSumTreeLSTM NaryTreeLSTM
chainer.links.rnn.zoneoutlstm: StatefulZoneoutLSTM
chainer.memory_layouts: CUDNN_CHANNEL_FIRST_X CUDNN_CHANNEL_LAST_X CUDNN_CHANNEL_FIRST_W CUDNN_CHANNEL_LAST_W get_raw_shape get_semantic_shape
chainer.optimizer: Hyperparameter UpdateRule Optimizer GradientMethod HyperparameterProxy WeightDecay Lasso GradientClipping GradientNoise GradientHardClipping
chainer.optimizer_hooks.gradient_clipping: GradientClipping
chainer.optimizer_hooks.gradient_hard_clipping: GradientHardClipping
chainer.optimizer_hooks.gradient_lars: GradientLARS
chainer.optimizer_hooks.gradient_noise: exponential_decay_noise GradientNoise
chainer.optimizer_hooks.lasso: Lasso
chainer.optimizer_hooks.weight_decay: WeightDecay
chainer.optimizers.ada_delta: AdaDeltaRule AdaDelta
chainer.optimizers.ada_grad: AdaGradRule AdaGrad
chainer.optimizers.adam: AdamRule Adam AdamW AMSGrad AdaBound AMSBound
chainer.optimizers.corrected_momentum_sgd: CorrectedMomentumSGDRule CorrectedMomentumSGD
chainer.optimizers.momentum_sgd: MomentumSGDRule MomentumSGD
chainer.optimizers.msvag: MSVAGRule MSVAG
chainer.optimizers.nesterov_ag: NesterovAGRule NesterovAG
chainer.optimizers.rmsprop: RMSpropRule RMSprop
chainer.optimizers.rmsprop_graves: RMSpropGravesRule RMSpropGraves
chainer.optimizers.sgd: SGDRule SGD
chainer.optimizers.smorms3: SMORMS3Rule SMORMS3
chainer.reporter: Reporter get_current_reporter report report_scope Summary DictSummary
chainer.sequential: Sequential
chainer.serializer: AbstractSerializer Serializer Deserializer
chainer.serializers.hdf5: HDF5Serializer save_hdf5 HDF5Deserializer load_hdf5
chainer.serializers.npz: DictionarySerializer serialize save_npz NpzDeserializer load_npz
chainer.testing: run_module
chainer.testing.array: assert_allclose
chainer.testing.attr: is_available check_available get_error chainerx cudnn ideep slow multi_gpu gpu
chainer.testing.backend: BackendConfig inject_backend_tests
chainer.testing.condition: QuietTestRunner repeat_with_success_at_least repeat retry
chainer.testing.distribution_test: distribution_unittest
chainer.testing.function_link: FunctionTestError LinkTestError InitializerArgument FunctionTestCase LinkTestCase LinkInitializersTestCase
chainer.testing.helper: with_requires without_requires assert_warns patch
chainer.testing.matrix: generate_matrix
chainer.testing.parameterized: parameterize from_pytest_parameterize parameterize_pytest product product_dict
chainer.testing.random: generate_seed fix_random
chainer.testing.serializer: save_and_load save_and_load_npz save_and_load_hdf5
chainer.testing.training: is_available check_available get_error get_trainer_with_mock_updater
chainer.testing.unary_math_function_test: is_available check_available unary_math_function_unittest
chainer.training: PRIORITY_EDITOR PRIORITY_READER PRIORITY_WRITER
chainer.training.extension: PRIORITY_WRITER PRIORITY_EDITOR PRIORITY_READER Extension make_extension
chainer.training.extensions._snapshot: snapshot_object snapshot
chainer.training.extensions.computational_graph: is_return_code_zero is_graphviz_available DumpGraph
chainer.training.extensions.evaluator: Evaluator
chainer.training.extensions.exponential_shift: ExponentialShift
chainer.training.extensions.fail_on_nonnumber: FailOnNonNumber
chainer.training.extensions.inverse_shift: InverseShift
chainer.training.extensions.linear_shift: LinearShift
chainer.training.extensions.log_report: LogReport
chainer.training.extensions.micro_average: MicroAverage
chainer.training.extensions.multistep_shift: MultistepShift
chainer.training.extensions.parameter_statistics: ParameterStatistics
chainer.training.extensions.plot_report: PlotReport
chainer.training.extensions.polynomial_shift: PolynomialShift
chainer.training.extensions.print_report: PrintReport
chainer.training.extensions.progress_bar: ProgressBar
chainer.training.extensions.snapshot_writers: Writer SimpleWriter StandardWriter ThreadWriter ProcessWriter QueueWriter ThreadQueueWriter ProcessQueueWriter
chainer.training.extensions.step_shift: StepShift
chainer.training.extensions.util: ProgressBar
chainer.training.extensions.value_observation: observe_value observe_lr
chainer.training.extensions.variable_statistics_plot: Reservoir Statistician VariableStatisticsPlot
chainer.training.extensions.variable_unchain: unchain_variables
chainer.training.extensions.warmup_shift: WarmupShift
chainer.training.trainer: Trainer
chainer.training.triggers.early_stopping_trigger: EarlyStoppingTrigger
chainer.training.triggers.interval_trigger: IntervalTrigger
chainer.training.triggers.manual_schedule_trigger: ManualScheduleTrigger
chainer.training.triggers.minmax_value_trigger: BestValueTrigger MaxValueTrigger MinValueTrigger
chainer.training.triggers.once_trigger: OnceTrigger
chainer.training.triggers.time_trigger: TimeTrigger
chainer.training.updaters.multiprocess_parallel_updater: MultiprocessParallelUpdater size_num_grads gather_grads gather_params scatter_grads scatter_params
chainer.training.updaters.parallel_updater: ParallelUpdater
chainer.training.updaters.standard_updater: StandardUpdater
chainer.training.util: get_trigger
chainer.types: Shape ShapeSpec DTypeSpec NdArray Xp AbstractInitializer ScalarValue InitializerSpec DeviceSpec CudaDeviceSpec
chainer.utils: force_array force_type tempdir
chainer.utils.argument: check_unexpected_kwargs parse_kwargs assert_kwargs_empty
chainer.utils.array: as_vec as_mat empty_like size_of_shape sum_to
chainer.utils.cache: cached_property
chainer.utils.conv: get_conv_outsize get_deconv_outsize im2col_cpu im2col_gpu im2col col2im_cpu col2im_gpu col2im
chainer.utils.conv_nd: as_tuple im2col_nd_cpu im2col_nd_gpu im2col_nd col2im_nd_cpu col2im_nd_gpu col2im_nd
chainer.utils.experimental: experimental
chainer.utils.imgproc: oversample
chainer.utils.meta: final enable_final
chainer.utils.nondeterministic: nondeterministic
chainer.utils.sparse: CooMatrix to_coo get_order
chainer.utils.type_check: get_function_check_context TypeInfo TypeInfoTuple LightTypeInfoTuple get_types get_light_types Expr Atom Constant Variable GetAttr GetItem Call UnaryOperator BinaryOperator Testable BoolBinaryOperator InvalidType expect same_types eval make_variable LightMode light_mode in_light_mode prod expect_broadcast_shapes
chainer.utils.walker_alias: WalkerAlias
chainer.variable: variable_repr variable_str VariableNode Variable Parameter as_variable as_array
chainer.warnings: PerformanceWarning
chainermn.communicators: create_communicator
chainermn.communicators.communicator_base: CommunicatorBase
chainermn.datasets.empty_dataset: create_empty_dataset
chainermn.datasets.scatter: DataSizeError scatter_dataset scatter_index get_n_iterations_for_one_epoch get_epoch_trigger
chainermn.extensions.allreduce_persistent: AllreducePersistent
chainermn.extensions.checkpoint: create_multi_node_checkpointer
chainermn.extensions.multi_node_early_stopping_trigger: MultiNodeEarlyStoppingTrigger
chainermn.extensions.multi_node_evaluator: GenericMultiNodeEvaluator create_multi_node_evaluator
chainermn.extensions.observation_aggregator: ObservationAggregator
chainermn.functions.collective_communication: AllGather AllToAll Gather Scatter allgather alltoall bcast gather scatter
chainermn.functions.point_to_point_communication: Send Recv send recv
chainermn.functions.pseudo_connect: PseudoConnect pseudo_connect
chainermn.global_except_hook: add_hook
chainermn.iterators.multi_node_iterator: create_multi_node_iterator
chainermn.iterators.synchronized_iterator: create_synchronized_iterator
chainermn.links.batch_normalization: MultiNodeBatchNormalization
chainermn.links.create_mnbn_model: create_mnbn_model
chainermn.links.multi_node_chain_list: MultiNodeChainList
chainermn.links.n_step_rnn: create_multi_node_n_step_rnn
chainermn.optimizers: create_multi_node_optimizer
chainermn.testing.device: get_device
"""


def kinds(line):
    """class, function or value, for each name of a module."""
    module, _, names = line.partition(": ")
    found = {}
    for name in names.split():
        value = getattr(importlib.import_module(module), name)
        kind = "class" if inspect.isclass(value) else "function"
        found[name] = kind if callable(value) else "value"
    return found


GENERATED = {
    line.partition(":")[0]: lambda line=line: kinds(line)
    for line in NAMES.strip().split("\n")
}
