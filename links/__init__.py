"""Links: layers with parameters."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.links.activation.learnt import PReLU as PReLU
from renga.links.activation.learnt import Swish as Swish
from renga.links.activation.maxout import Maxout as Maxout
from renga.links.activation.simplified_dropconnect import (
    SimplifiedDropconnect as SimplifiedDropconnect,
)
from renga.links.attention.key_value_cache import KeyValueCache as KeyValueCache
from renga.links.attention.multi_head_attention import (
    MultiHeadAttention as MultiHeadAttention,
)
from renga.links.attention.transformer_block import (
    TransformerBlock as TransformerBlock,
)
from renga.links.connection.bilinear import Bilinear as Bilinear
from renga.links.connection.embed_id import EmbedID as EmbedID
from renga.links.connection.highway import Highway as Highway
from renga.links.connection.inception import Inception as Inception
from renga.links.connection.inception import InceptionBN as InceptionBN
from renga.links.connection.linear import Linear as Linear
from renga.links.connection.mlp_convolution_2d import (
    MLPConvolution2D as MLPConvolution2D,
)
from renga.links.connection.parameter import Parameter as Parameter
from renga.links.connection.scale import Bias as Bias
from renga.links.connection.scale import Scale as Scale
from renga.links.convolution.convolution_2d import Convolution2D as Convolution2D
from renga.links.convolution.convolution_nd import Convolution1D as Convolution1D
from renga.links.convolution.convolution_nd import Convolution3D as Convolution3D
from renga.links.convolution.convolution_nd import ConvolutionND as ConvolutionND
from renga.links.convolution.deconvolution_2d import Deconvolution2D as Deconvolution2D
from renga.links.convolution.deconvolution_nd import Deconvolution1D as Deconvolution1D
from renga.links.convolution.deconvolution_nd import Deconvolution3D as Deconvolution3D
from renga.links.convolution.deconvolution_nd import DeconvolutionND as DeconvolutionND
from renga.links.convolution.deformable_convolution_2d import (
    DeformableConvolution2D as DeformableConvolution2D,
)
from renga.links.convolution.depthwise_convolution_2d import (
    DepthwiseConvolution2D as DepthwiseConvolution2D,
)
from renga.links.convolution.dilated_convolution_2d import (
    DilatedConvolution2D as DilatedConvolution2D,
)
from renga.links.convolution.local_convolution_2d import (
    LocalConvolution2D as LocalConvolution2D,
)
from renga.links.loss.black_out import BlackOut as BlackOut
from renga.links.loss.crf1d import CRF1d as CRF1d
from renga.links.loss.hierarchical_softmax import (
    BinaryHierarchicalSoftmax as BinaryHierarchicalSoftmax,
)
from renga.links.loss.negative_sampling import NegativeSampling as NegativeSampling
from renga.links.model.classifier import Classifier as Classifier
from renga.links.normalization.batch_normalization import (
    BatchNormalization as BatchNormalization,
)
from renga.links.normalization.batch_renormalization import (
    BatchRenormalization as BatchRenormalization,
)
from renga.links.normalization.decorrelated_batch_normalization import (
    DecorrelatedBatchNormalization as DecorrelatedBatchNormalization,
)
from renga.links.normalization.layer_normalization import (
    GroupNormalization as GroupNormalization,
)
from renga.links.normalization.layer_normalization import (
    LayerNormalization as LayerNormalization,
)
from renga.links.normalization.layer_normalization import (
    RMSNormalization as RMSNormalization,
)
from renga.links.rnn.gru import GRU as GRU
from renga.links.rnn.gru import StatefulGRU as StatefulGRU
from renga.links.rnn.gru import StatelessGRU as StatelessGRU
from renga.links.rnn.lstm import LSTM as LSTM
from renga.links.rnn.lstm import StatelessLSTM as StatelessLSTM
from renga.links.rnn.mgu import StatefulMGU as StatefulMGU
from renga.links.rnn.mgu import StatelessMGU as StatelessMGU
from renga.links.rnn.n_step_rnn import NStepBiGRU as NStepBiGRU
from renga.links.rnn.n_step_rnn import NStepBiLSTM as NStepBiLSTM
from renga.links.rnn.n_step_rnn import NStepBiRNNReLU as NStepBiRNNReLU
from renga.links.rnn.n_step_rnn import NStepBiRNNTanh as NStepBiRNNTanh
from renga.links.rnn.n_step_rnn import NStepGRU as NStepGRU
from renga.links.rnn.n_step_rnn import NStepLSTM as NStepLSTM
from renga.links.rnn.n_step_rnn import NStepRNNReLU as NStepRNNReLU
from renga.links.rnn.n_step_rnn import NStepRNNTanh as NStepRNNTanh
from renga.links.rnn.peephole import StatefulPeepholeLSTM as StatefulPeepholeLSTM
from renga.links.rnn.tree_lstm import ChildSumTreeLSTM as ChildSumTreeLSTM
from renga.links.rnn.tree_lstm import NaryTreeLSTM as NaryTreeLSTM
from renga.links.rnn.zoneoutlstm import StatefulZoneoutLSTM as StatefulZoneoutLSTM

if TYPE_CHECKING:
    from renga.links import parallel as parallel
    from renga.links.model.language.bert import BERT as BERT
    from renga.links.model.language.gpt2 import GPT2 as GPT2
    from renga.links.model.language.llama import Llama as Llama
    from renga.links.model.vision.densenet import DenseNet as DenseNet
    from renga.links.model.vision.densenet import DenseNet121 as DenseNet121
    from renga.links.model.vision.efficientnet import EfficientNet as EfficientNet
    from renga.links.model.vision.efficientnet import EfficientNetB0 as EfficientNetB0
    from renga.links.model.vision.googlenet import GoogLeNet as GoogLeNet
    from renga.links.model.vision.mobilenet import MobileNetV2 as MobileNetV2
    from renga.links.model.vision.mobilenet import MobileNetV3 as MobileNetV3
    from renga.links.model.vision.mobilenet import MobileNetV3Large as MobileNetV3Large
    from renga.links.model.vision.mobilenet import MobileNetV3Small as MobileNetV3Small
    from renga.links.model.vision.residual_network import (
        ResidualNetwork as ResidualNetwork,
    )
    from renga.links.model.vision.residual_network import ResNet18 as ResNet18
    from renga.links.model.vision.residual_network import ResNet34 as ResNet34
    from renga.links.model.vision.residual_network import ResNet50 as ResNet50
    from renga.links.model.vision.residual_network import ResNet101 as ResNet101
    from renga.links.model.vision.resnet import ResNet50Layers as ResNet50Layers
    from renga.links.model.vision.resnet import ResNet101Layers as ResNet101Layers
    from renga.links.model.vision.resnet import ResNet152Layers as ResNet152Layers
    from renga.links.model.vision.unet import UNet as UNet
    from renga.links.model.vision.vgg import VGG16Layers as VGG16Layers
    from renga.links.model.vision.vgg import VGG19Layers as VGG19Layers
    from renga.links.model.vision.vgg_bn import VGG11BN as VGG11BN
    from renga.links.model.vision.vgg_bn import VGG13BN as VGG13BN
    from renga.links.model.vision.vgg_bn import VGG16BN as VGG16BN
    from renga.links.model.vision.vgg_bn import VGG19BN as VGG19BN
    from renga.links.model.vision.vision_transformer import (
        VisionTransformer as VisionTransformer,
    )
    from renga.links.model.vision.vision_transformer import ViTB16 as ViTB16
    from renga.links.parallel.channel import (
        ParallelBatchNormalization as ParallelBatchNormalization,
    )
    from renga.links.parallel.channel import (
        ParallelConvolution2D as ParallelConvolution2D,
    )
    from renga.links.parallel.channel import (
        ParallelDeconvolution2D as ParallelDeconvolution2D,
    )
    from renga.links.parallel.channel import (
        ParallelEmbedID as ParallelEmbedID,
    )
    from renga.links.parallel.channel import (
        ParallelLinear as ParallelLinear,
    )
    from renga.links.parallel.channel import (
        ParallelMultiHeadAttention as ParallelMultiHeadAttention,
    )
    from renga.links.parallel.channel import (
        ParallelVocabEmbedID as ParallelVocabEmbedID,
    )
    from renga.links.parallel.sequence import (
        SequenceEmbedID as SequenceEmbedID,
    )
    from renga.links.parallel.sequence import (
        SequenceLayerNormalization as SequenceLayerNormalization,
    )
    from renga.links.parallel.sequence import (
        SequenceLinear as SequenceLinear,
    )
    from renga.links.parallel.sequence import (
        SequenceMultiHeadAttention as SequenceMultiHeadAttention,
    )
    from renga.links.parallel.sequence import (
        SequenceRMSNormalization as SequenceRMSNormalization,
    )
    from renga.links.parallel.spatial import (
        SpatialAveragePooling2D as SpatialAveragePooling2D,
    )
    from renga.links.parallel.spatial import (
        SpatialBatchNormalization as SpatialBatchNormalization,
    )
    from renga.links.parallel.spatial import (
        SpatialConvolution2D as SpatialConvolution2D,
    )
    from renga.links.parallel.spatial import (
        SpatialConvolutionND as SpatialConvolutionND,
    )
    from renga.links.parallel.spatial import (
        SpatialDeconvolution2D as SpatialDeconvolution2D,
    )
    from renga.links.parallel.spatial import (
        SpatialDeconvolutionND as SpatialDeconvolutionND,
    )
    from renga.links.parallel.spatial import (
        SpatialLinear as SpatialLinear,
    )
    from renga.links.parallel.spatial import (
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
