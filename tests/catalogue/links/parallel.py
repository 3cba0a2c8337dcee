"""Links of several ranks, which are tested against the serial ones on all of them."""

from .row import link

for names, tests in (
    (
        """ParallelBatchNormalization ParallelConvolution2D ParallelDeconvolution2D
        ParallelEmbedID ParallelLinear""",
        "links/parallel/channel/test_layers.py",
    ),
    (
        "ParallelMultiHeadAttention ParallelVocabEmbedID",
        "parallel/channel/test_transformers.py",
    ),
    (
        """SequenceEmbedID SequenceLayerNormalization SequenceLinear
        SequenceMultiHeadAttention SequenceRMSNormalization""",
        "parallel/sequence/test_models.py",
    ),
    (
        """SpatialAveragePooling2D SpatialBatchNormalization SpatialConvolution2D
        SpatialConvolutionND SpatialDeconvolution2D SpatialDeconvolutionND
        SpatialMaxPooling2D""",
        "links/parallel/spatial/test_layers.py",
    ),
    ("SpatialLinear", "parallel/spatial/test_training.py"),
):
    for name in names.split():
        link(name, elsewhere=tests)
