"""Writes torch_models.json: shapes of states and outputs of PyTorch's networks.

``python -m tests.links.cases.record_torch`` where torch, torchvision and transformers
are installed.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as functional
import torchvision.models as models
import transformers

from tests.links.cases.torch_weights import image, state_of, text


class GPT2(torch.nn.Module):
    """GPT-2 with the published names and shapes."""

    def __init__(self, vocabulary, context, size, layers, heads):
        super().__init__()
        self.heads, self.layers = heads, layers
        shapes = {"wte.weight": (vocabulary, size), "wpe.weight": (context, size)}
        for i in range(layers):
            for name, shape in {
                "ln_1.weight": (size,), "ln_1.bias": (size,),
                "attn.c_attn.weight": (size, 3 * size), "attn.c_attn.bias": (3 * size,),
                "attn.c_proj.weight": (size, size), "attn.c_proj.bias": (size,),
                "ln_2.weight": (size,), "ln_2.bias": (size,),
                "mlp.c_fc.weight": (size, 4 * size), "mlp.c_fc.bias": (4 * size,),
                "mlp.c_proj.weight": (4 * size, size), "mlp.c_proj.bias": (size,),
            }.items():  # fmt: skip
                shapes[f"h.{i}.{name}"] = shape
        shapes |= {"ln_f.weight": (size,), "ln_f.bias": (size,)}
        self.shapes = shapes

    def state_dict(self):
        return {name: torch.empty(shape) for name, shape in self.shapes.items()}

    def load_state_dict(self, state):
        self.state = state

    def forward(self, ids):
        s = self.state
        h = s["wte.weight"][ids] + s["wpe.weight"][: ids.shape[1]]

        def norm(h, name):
            return functional.layer_norm(
                h, h.shape[-1:], s[name + ".weight"], s[name + ".bias"], 1e-5
            )

        def layer(h, name):
            return h @ s[name + ".weight"] + s[name + ".bias"]

        for i in range(self.layers):
            q, k, v = (
                x.unflatten(2, (self.heads, -1)).transpose(1, 2)
                for x in layer(norm(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, 2)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + layer(y.transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
            inner = layer(norm(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
            inner = functional.gelu(inner, approximate="tanh")
            h = h + layer(inner, f"h.{i}.mlp.c_proj")
        return norm(h, "ln_f") @ s["wte.weight"].T


class Twice(torch.nn.Module):
    """Two convolutions of Pytorch-UNet."""

    def __init__(self, inputs, outputs):
        super().__init__()
        layers = []
        for channels in (inputs, outputs):
            layers.append(torch.nn.Conv2d(channels, outputs, 3, 1, 1, bias=False))
            layers += [torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
        self.double_conv = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class UNet(torch.nn.Module):
    """Pytorch-UNet with its published names, for other numbers of channels."""

    def __init__(self, classes, widths):
        super().__init__()
        self.inc = Twice(3, widths[0])
        self.depth = len(widths) - 1
        for k, (inputs, outputs) in enumerate(zip(widths, widths[1:]), 1):
            down, up = torch.nn.Module(), torch.nn.Module()
            down.maxpool_conv = torch.nn.Sequential(
                torch.nn.MaxPool2d(2), Twice(inputs, outputs)
            )
            up.up = torch.nn.ConvTranspose2d(outputs, inputs, 2, 2)
            up.conv = Twice(outputs, inputs)
            setattr(self, f"down{k}", down)
            setattr(self, f"up{len(widths) - k}", up)
        self.outc = torch.nn.Module()
        self.outc.conv = torch.nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        levels = [self.inc(x)]
        for k in range(1, self.depth + 1):
            levels.append(getattr(self, f"down{k}").maxpool_conv(levels[-1]))
        h = levels.pop()
        for k in range(1, self.depth + 1):
            up = getattr(self, f"up{k}")
            h = up.conv(torch.cat([levels.pop(), up.up(h)], 1))
        return self.outc.conv(h)


class Logits(torch.nn.Module):
    """The logits of a network of transformers."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def state_dict(self):
        """One name of each tensor."""
        found = {}
        for name, x in self.network.state_dict().items():
            found.setdefault(x.data_ptr(), (name, x))
        return dict(found.values())

    def load_state_dict(self, state):
        missing = self.network.load_state_dict(state, strict=False).missing_keys
        assert set(missing) <= self.network.state_dict().keys() - state.keys()

    def forward(self, *args, **options):
        return self.network(*args, **options).logits


def bert():
    return Logits(
        transformers.BertForMaskedLM(
            transformers.BertConfig(
                vocab_size=50, max_position_embeddings=16, hidden_size=24,
                num_hidden_layers=2, num_attention_heads=3, intermediate_size=96,
            )
        )
    )  # fmt: skip


def llama():
    return Logits(
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=50, hidden_size=24, num_hidden_layers=2,
                num_attention_heads=6, num_key_value_heads=2, intermediate_size=40,
                rope_theta=50.0, rms_norm_eps=1e-5,
            )
        )
    )  # fmt: skip


def small_vgg():
    """The convolutions, and few units in the layers on top."""
    model = models.vgg11_bn(num_classes=10)
    for i, sizes in ((0, (25088, 8)), (3, (8, 8)), (6, (8, 10))):
        model.classifier[i] = torch.nn.Linear(*sizes)
    return model


MODELS = {
    "ResNet18": (models.resnet18, image(64)),
    "ResNet34": (models.resnet34, None),
    "ResNet50": (models.resnet50, image(64)),
    "ResNet101": (models.resnet101, None),
    "VGG11BN": (small_vgg, image(32)),
    "VisionTransformer": (
        lambda: models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10),
        image(32),
    ),
    "MobileNetV2": (models.mobilenet_v2, image(64)),
    "MobileNetV3Large": (models.mobilenet_v3_large, image(64)),
    "MobileNetV3Small": (models.mobilenet_v3_small, image(64)),
    "EfficientNetB0": (models.efficientnet_b0, image(64)),
    "DenseNet": (
        lambda: models.DenseNet(8, (2, 3, 2), 16, num_classes=10),
        image(64),
    ),
    "UNet": (lambda: UNet(3, (4, 8, 16)), image(16)),
    "GPT2": (lambda: GPT2(50, 16, 24, 2, 3), text(50)),
    "BERT": (bert, text(50)),
    "Llama": (llama, text(50)),
}


def record(make, x):
    model = make().eval()
    shapes = {name: list(v.shape) for name, v in model.state_dict().items()}
    found = {"shapes": shapes}
    if x is not None:
        state = state_of(shapes)
        model.load_state_dict({n: torch.from_numpy(v) for n, v in state.items()})
        with torch.no_grad():
            y = model(torch.from_numpy(x)).double().flatten()
        # Every so many of them.
        found |= {"outputs": y[:: max(1, len(y) // 100)].tolist()}
    return found


if __name__ == "__main__":
    file = Path(__file__).with_name("torch_models.json")
    records = {name: record(*model) for name, model in MODELS.items()}
    lines = (f"{json.dumps(n)}: {json.dumps(r)}" for n, r in records.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
