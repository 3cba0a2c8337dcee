"""Links: layers with parameters."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.links.activation.learnt import PReLU as PReLU, Swish as Swish
from renga.links.activation.maxout import Maxout as Maxout
from renga.links.activation.simplified_dropconnect import (
    SimplifiedDropconnect as SimplifiedDropconnect,
)
from renga.links.attention.multi_head_attention import (
    KeyValueCache as KeyValueCache,
    MultiHeadAttention as MultiHeadAttention,
)
from renga.links.attention.transformer_block import TransformerBlock as TransformerBlock
from renga.links.connection.bilinear import Bilinear as Bilinear
from renga.links.connection.embed_id import EmbedID as EmbedID
from renga.links.connection.highway import Highway as Highway
from renga.links.connection.inception import (
    Inception as Inception,
    InceptionBN as InceptionBN,
)
from renga.links.connection.linear import Linear as Linear
from renga.links.connection.mlp_convolution_2d import (
    MLPConvolution2D as MLPConvolution2D,
)
from renga.links.connection.parameter import Parameter as Parameter
from renga.links.connection.scale import Bias as Bias, Scale as Scale
from renga.links.convolution.convolution import (
    Convolution1D as Convolution1D,
    Convolution2D as Convolution2D,
    Convolution3D as Convolution3D,
    ConvolutionND as ConvolutionND,
    DilatedConvolution2D as DilatedConvolution2D,
)
from renga.links.convolution.deconvolution import (
    Deconvolution1D as Deconvolution1D,
    Deconvolution2D as Deconvolution2D,
    Deconvolution3D as Deconvolution3D,
    DeconvolutionND as DeconvolutionND,
)
from renga.links.convolution.deformable_convolution_2d import (
    DeformableConvolution2D as DeformableConvolution2D,
)
from renga.links.convolution.separate_filters import (
    DepthwiseConvolution2D as DepthwiseConvolution2D,
    LocalConvolution2D as LocalConvolution2D,
)
from renga.links.loss.crf1d import CRF1d as CRF1d
from renga.links.loss.hierarchical_softmax import (
    BinaryHierarchicalSoftmax as BinaryHierarchicalSoftmax,
)
from renga.links.loss.sampled_classes import (
    BlackOut as BlackOut,
    NegativeSampling as NegativeSampling,
)
from renga.links.model.classifier import Classifier as Classifier
from renga.links.normalization.batch_normalization import (
    BatchNormalization as BatchNormalization,
    BatchRenormalization as BatchRenormalization,
)
from renga.links.normalization.decorrelated_batch_normalization import (
    DecorrelatedBatchNormalization as DecorrelatedBatchNormalization,
)
from renga.links.normalization.layer_normalization import (
    GroupNormalization as GroupNormalization,
    LayerNormalization as LayerNormalization,
    RMSNormalization as RMSNormalization,
)
from renga.links.rnn.gru import (
    GRU as GRU,
    StatefulGRU as StatefulGRU,
    StatefulMGU as StatefulMGU,
    StatelessGRU as StatelessGRU,
    StatelessMGU as StatelessMGU,
)
from renga.links.rnn.lstm import (
    LSTM as LSTM,
    StatefulPeepholeLSTM as StatefulPeepholeLSTM,
    StatefulZoneoutLSTM as StatefulZoneoutLSTM,
    StatelessLSTM as StatelessLSTM,
)
from renga.links.rnn.n_step_rnn import (
    NStepBiGRU as NStepBiGRU,
    NStepBiLSTM as NStepBiLSTM,
    NStepBiRNNReLU as NStepBiRNNReLU,
    NStepBiRNNTanh as NStepBiRNNTanh,
    NStepGRU as NStepGRU,
    NStepLSTM as NStepLSTM,
    NStepRNNReLU as NStepRNNReLU,
    NStepRNNTanh as NStepRNNTanh,
)
from renga.links.rnn.tree_lstm import (
    ChildSumTreeLSTM as ChildSumTreeLSTM,
    NaryTreeLSTM as NaryTreeLSTM,
)

if TYPE_CHECKING:
    from renga.links import parallel as parallel
    from renga.links.model.language.bert import BERT as BERT
    from renga.links.model.language.gpt2 import GPT2 as GPT2
    from renga.links.model.language.llama import Llama as Llama
    from renga.links.model.vision.densenet import (
        DenseNet as DenseNet,
        DenseNet121 as DenseNet121,
    )
    from renga.links.model.vision.efficientnet import (
        EfficientNet as EfficientNet,
        EfficientNetB0 as EfficientNetB0,
    )
    from renga.links.model.vision.googlenet import GoogLeNet as GoogLeNet
    from renga.links.model.vision.mobilenet import (
        MobileNetV2 as MobileNetV2,
        MobileNetV3 as MobileNetV3,
        MobileNetV3Large as MobileNetV3Large,
        MobileNetV3Small as MobileNetV3Small,
    )
    from renga.links.model.vision.residual_network import (
        ResidualNetwork as ResidualNetwork,
        ResNet18 as ResNet18,
        ResNet34 as ResNet34,
        ResNet50 as ResNet50,
        ResNet101 as ResNet101,
    )
    from renga.links.model.vision.resnet import (
        ResNet50Layers as ResNet50Layers,
        ResNet101Layers as ResNet101Layers,
        ResNet152Layers as ResNet152Layers,
    )
    from renga.links.model.vision.unet import UNet as UNet
    from renga.links.model.vision.vgg import (
        VGG16Layers as VGG16Layers,
        VGG19Layers as VGG19Layers,
    )
    from renga.links.model.vision.vgg_bn import (
        VGG11BN as VGG11BN,
        VGG13BN as VGG13BN,
        VGG16BN as VGG16BN,
        VGG19BN as VGG19BN,
    )
    from renga.links.model.vision.vision_transformer import (
        VisionTransformer as VisionTransformer,
        ViTB16 as ViTB16,
    )
    from renga.links.parallel.channel import (
        ParallelBatchNormalization as ParallelBatchNormalization,
        ParallelConvolution2D as ParallelConvolution2D,
        ParallelDeconvolution2D as ParallelDeconvolution2D,
        ParallelEmbedID as ParallelEmbedID,
        ParallelLinear as ParallelLinear,
        ParallelMultiHeadAttention as ParallelMultiHeadAttention,
        ParallelVocabEmbedID as ParallelVocabEmbedID,
    )
    from renga.links.parallel.sequence import (
        SequenceEmbedID as SequenceEmbedID,
        SequenceLayerNormalization as SequenceLayerNormalization,
        SequenceLinear as SequenceLinear,
        SequenceMultiHeadAttention as SequenceMultiHeadAttention,
        SequenceRMSNormalization as SequenceRMSNormalization,
    )
    from renga.links.parallel.spatial import (
        SpatialAveragePooling2D as SpatialAveragePooling2D,
        SpatialBatchNormalization as SpatialBatchNormalization,
        SpatialConvolution2D as SpatialConvolution2D,
        SpatialConvolutionND as SpatialConvolutionND,
        SpatialDeconvolution2D as SpatialDeconvolution2D,
        SpatialDeconvolutionND as SpatialDeconvolutionND,
        SpatialLinear as SpatialLinear,
        SpatialMaxPooling2D as SpatialMaxPooling2D,
    )

_suggest_names(
    __name__,
    at_first_use={
        "renga.links": "parallel",
        "renga.links.model.language.bert": "BERT",
        "renga.links.model.language.gpt2": "GPT2",
        "renga.links.model.language.llama": "Llama",
        "renga.links.model.vision.densenet": "DenseNet DenseNet121",
        "renga.links.model.vision.efficientnet": "EfficientNet EfficientNetB0",
        "renga.links.model.vision.googlenet": "GoogLeNet",
        "renga.links.model.vision.mobilenet": (
            "MobileNetV2 MobileNetV3 MobileNetV3Large MobileNetV3Small"
        ),
        "renga.links.model.vision.residual_network": (
            "ResidualNetwork ResNet18 ResNet34 ResNet50 ResNet101"
        ),
        "renga.links.model.vision.resnet": (
            "ResNet50Layers ResNet101Layers ResNet152Layers"
        ),
        "renga.links.model.vision.unet": "UNet",
        "renga.links.model.vision.vgg": "VGG16Layers VGG19Layers",
        "renga.links.model.vision.vgg_bn": "VGG11BN VGG13BN VGG16BN VGG19BN",
        "renga.links.model.vision.vision_transformer": "VisionTransformer ViTB16",
        "renga.links.parallel.channel": (
            "ParallelMultiHeadAttention ParallelBatchNormalization "
            "ParallelConvolution2D ParallelDeconvolution2D ParallelEmbedID "
            "ParallelLinear ParallelVocabEmbedID"
        ),
        "renga.links.parallel.sequence": (
            "SequenceEmbedID SequenceLayerNormalization SequenceLinear "
            "SequenceMultiHeadAttention SequenceRMSNormalization"
        ),
        "renga.links.parallel.spatial": (
            "SpatialAveragePooling2D SpatialBatchNormalization SpatialConvolution2D "
            "SpatialConvolutionND SpatialDeconvolution2D SpatialDeconvolutionND "
            "SpatialLinear SpatialMaxPooling2D"
        ),
    },
)
