"""Writes torch_models.json: shapes of states and outputs of PyTorch's networks.

``python record_torch.py`` where torch and torchvision are installed.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as functional
import torchvision.models as models
from torch_weights import image, state_of, text


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
    "GPT2": (lambda: GPT2(50, 16, 24, 2, 3), text(50)),
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
