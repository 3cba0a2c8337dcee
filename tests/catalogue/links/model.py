"""A classifier, and published networks by the outputs that PyTorch's have."""

from __future__ import annotations

import renga.links as L
from tests.links.cases.torch_weights import image, text

from .row import link

link(
    "Classifier",
    elsewhere="links/model/test_classifier.py",
    edges="run(L.Classifier(L.Linear(3, 4)), s(N, 3), i(4, N))",
    errors="L.Classifier(L.Linear(3, 4), label_key=None) -> TypeError",
    onnx="exported",
)


class SmallVGG(L.VGG11BN):
    """With few units in the layers on top."""

    hidden = 8


link("ResNet18", torch=(L.ResNet18, image(64)))
link("ResNet34", torch=(L.ResNet34, None))
link("ResNet50", torch=(L.ResNet50, image(64)))
link("ResNet101", torch=(L.ResNet101, None))
link("ResidualNetwork", elsewhere="ResNet50")
link("VGG11BN", torch=(lambda: SmallVGG(10), image(32)), count=132868840)
link("VGG13BN", count=133053736)
link("VGG16BN", count=138365992)
link("VGG19BN", count=143678248)
link(
    "VisionTransformer",
    torch=(lambda: L.VisionTransformer(32, 8, 2, 4, 32, 64, 10), image(32)),
)
link("ViTB16", count=86567656)
link("MobileNetV2", torch=(L.MobileNetV2, image(64)), count=3504872)
link("MobileNetV3", elsewhere="MobileNetV3Large")
link("MobileNetV3Large", torch=(L.MobileNetV3Large, image(64)), count=5483032)
link("MobileNetV3Small", torch=(L.MobileNetV3Small, image(64)), count=2542856)
link("EfficientNet", elsewhere="EfficientNetB0")
link("EfficientNetB0", torch=(L.EfficientNetB0, image(64)), count=5288548)
link("DenseNet", torch=(lambda: L.DenseNet(8, (2, 3, 2), 16, 10), image(64)))
link("DenseNet121", count=7978856)
link("UNet", torch=(lambda: L.UNet(3, (4, 8, 16)), image(16)))
link("GPT2", torch=(lambda: L.GPT2(50, 16, 24, 2, 3), text(50)))
link("BERT", torch=(lambda: L.BERT(50, 16, 24, 2, 3), text(50)))
link("Llama", torch=(lambda: L.Llama(50, 24, 2, 6, 40, 2, 50.0), text(50)))

# Chainer's outputs for photographs are recorded there.
for name in """GoogLeNet ResNet50Layers ResNet101Layers ResNet152Layers VGG16Layers
        VGG19Layers""".split():
    link(name, elsewhere="links/model/vision/test_image_models.py")
