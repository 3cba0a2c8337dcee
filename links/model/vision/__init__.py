"""Image classifiers, and their published weights."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names

if TYPE_CHECKING:
    from renga.links.model.vision import densenet as densenet
    from renga.links.model.vision import efficientnet as efficientnet
    from renga.links.model.vision import googlenet as googlenet
    from renga.links.model.vision import mobilenet as mobilenet
    from renga.links.model.vision import residual_network as residual_network
    from renga.links.model.vision import resnet as resnet
    from renga.links.model.vision import unet as unet
    from renga.links.model.vision import vgg as vgg
    from renga.links.model.vision import vgg_bn as vgg_bn
    from renga.links.model.vision import vision_transformer as vision_transformer

_suggest_names(
    __name__,
    at_first_use={
        "renga.links.model.vision": (
            "densenet efficientnet googlenet mobilenet residual_network resnet unet "
            "vgg vgg_bn vision_transformer"
        )
    },
)
