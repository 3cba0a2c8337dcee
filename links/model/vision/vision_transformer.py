"""Vision transformers with torchvision's layers."""

from __future__ import annotations

import numpy

from renga.core.link import Chain, ChainList
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import broadcast_to, concat, dropout, reshape, transpose
from renga.initializers import Normal
from renga.links.attention.transformer_block import TransformerBlock
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.model.torch_names import State, renamed
from renga.links.normalization.layer_normalization import LayerNormalization
from renga.utils.type_check import InvalidType

# torchvision's names, and those of the parts here.
_NAMES = {
    r"^conv_proj\.": "patches.",
    r"^encoder\.pos_embedding$": "positions",
    r"^encoder\.layers\.encoder_layer_": "blocks.",
    r"^encoder\.ln\.": "norm.",
    r"^heads\.head\.": "head.",
    r"\.ln_([12])\.": r".norm\1.",
    r"\.self_attention\.": ".attention.",
    r"\.mlp\.(0|linear_1)\.": ".up.",
    r"\.mlp\.(3|linear_2)\.": ".down.",
}


class VisionTransformer(Chain):
    """Blocks of attention over the patches of an image and a token for its class.

    ``load_torch_state_dict`` loads torchvision's weights.

    Args:
        image_size: the extent of images, which are squares.
        patch_size: that of patches, which divides it.
        num_layers: the number of blocks.
        num_heads: the number of heads of each.
        hidden_dim: the size of a token.
        mlp_dim: the size between the two layers of a block.
        num_classes: the number of classes.
        dropout: the probability with which results of parts are dropped in training.

    Shapes:
        x: (N, 3, image_size, image_size)
        y: (N, num_classes), before softmax

    Raises:
        ValueError: patches do not divide the image.

    Source: Dosovitskiy et al., An image is worth 16 × 16 words, 2020.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        num_classes: int = 1000,
        dropout: float = 0.0,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                "VisionTransformer: expected patches that divide the image, got "
                f"{patch_size} and {image_size}"
            )
        self.image_size = image_size
        self.dropout = dropout
        tokens = (image_size // patch_size) ** 2 + 1
        with self.init_scope():
            self.class_token = Parameter(0, (1, 1, hidden_dim))
            self.patches = Convolution2D(
                in_channels, hidden_dim, patch_size, patch_size
            )
            self.positions = Parameter(Normal(0.02), (1, tokens, hidden_dim))
            self.blocks = ChainList(
                *(
                    TransformerBlock(
                        hidden_dim, num_heads, mlp_dim, dropout=dropout, eps=1e-6
                    )
                    for _ in range(num_layers)
                )
            )
            self.norm = LayerNormalization(hidden_dim, 1e-6)
            self.head = Linear(hidden_dim, num_classes)

    def forward(self, x: ArrayLike) -> Variable:
        """The scores of the classes."""
        if x.shape[2:] != (self.image_size, self.image_size):
            raise InvalidType(
                f"VisionTransformer: expected images of {self.image_size} × "
                f"{self.image_size}, got {x.shape}"
            )
        h = self.patches(x)
        n, size, *extents = h.shape
        tokens = transpose(reshape(h, (n, size, int(numpy.prod(extents)))), (0, 2, 1))
        first = broadcast_to(self.class_token, (n, 1, size))
        h = concat((first, tokens), 1) + self.positions
        h = dropout(h, self.dropout)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h[:, 0]))

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The arrays of torchvision's state with the names of the parts here."""
        return renamed(state, _NAMES)


class ViTB16(VisionTransformer):
    """``VisionTransformer`` of 12 blocks: images of 224 × 224, patches of 16 × 16."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.0) -> None:
        super().__init__(224, 16, 12, 12, 768, 3072, num_classes, dropout)
