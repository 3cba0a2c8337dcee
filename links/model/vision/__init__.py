"""Image classifiers, and their published weights."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names

if TYPE_CHECKING:
    from renga.links.model.vision import (
        densenet as densenet,
        efficientnet as efficientnet,
        googlenet as googlenet,
        mobilenet as mobilenet,
        residual_network as residual_network,
        resnet as resnet,
        unet as unet,
        vgg as vgg,
        vgg_bn as vgg_bn,
        vision_transformer as vision_transformer,
    )

_suggest_names(
    __name__,
    at_first_use={
        "renga.links.model.vision": (
            "densenet efficientnet googlenet mobilenet residual_network resnet unet "
            "vgg vgg_bn vision_transformer"
        )
    },
)
