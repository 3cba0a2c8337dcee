"""What a caller may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

# The keys are names in PyTorch, Keras, NumPy or Lightning, the values are names here.
_SYNONYMS = {
    "AdaptiveAvgPool2d": "F.average(x, axis=(2, 3))",
    "AvgPool2d": "F.average_pooling_2d",
    "BCEWithLogitsLoss": "F.sigmoid_cross_entropy",
    "BatchNorm1d": "BatchNormalization",
    "BatchNorm2d": "BatchNormalization",
    "Conv1d": "Convolution1D",
    "Conv2D": "Convolution2D",
    "Conv2d": "Convolution2D",
    "Conv3d": "Convolution3D",
    "ConvTranspose2d": "Deconvolution2D",
    "CrossEntropyLoss": "F.softmax_cross_entropy",
    "DataLoader": "iterators.MultiprocessIterator",
    "Dropout": "F.dropout",
    "EarlyStopping": "training.triggers.EarlyStoppingTrigger",
    "Embedding": "EmbedID",
    "GELU": "F.gelu",
    "GroupNorm": "GroupNormalization",
    "LayerNorm": "LayerNormalization",
    "MSELoss": "F.mean_squared_error",
    "MaxPool2d": "F.max_pooling_2d",
    "MultiheadAttention": "MultiHeadAttention",
    "RMSNorm": "RMSNormalization",
    "ReLU": "F.relu",
    "SiLU": "F.silu",
    "betas": "beta1 and beta2",
    "bias": "nobias",
    "dilation": "dilate",
    "dim": "axis",
    "kernel_size": "ksize",
    "learning_rate": ("lr", "alpha"),
    "lr": ("alpha",),
    "p": "ratio",
    "padding": "pad",
    "weight_decay": "optimizer.add_hook(optimizer_hooks.WeightDecay(…))",
}


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"``, or nothing if no name is near.

    Names with dots are those of another module; others count only if they are known.
    """
    known = list(known)
    meant = _SYNONYMS.get(name, ())
    for other in (meant,) if isinstance(meant, str) else meant:
        if other in known or not other.isidentifier():
            return f"; did you mean {other!r}?"
    spelled = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), spelled, 1, cutoff=0.75)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""


def suggest_names(module: str, at_first_use: Mapping[str, str] | None = None) -> None:
    """Makes the error for an unknown name of a module suggest a known one.

    Sets the module's ``__getattr__``. A definition in the module's source would make
    type checkers believe that every name exists. It is not for ``renga.functions``,
    whose names are looked up in every step: CPython caches the attributes only of
    modules without ``__getattr__``.

    Args:
        module: the module's name.
        at_first_use: names, separated by spaces, that the module imports when they are
            first used, each with the module that it comes from; those of the module
            itself are its submodules. A block for type checkers imports the same names.
    """
    at_first_use = at_first_use or {}
    sources = {
        n: source for source in at_first_use for n in at_first_use[source].split()
    }
    names = vars(sys.modules[module])

    def find(name: str) -> Any:
        source = sources.get(name)
        if source is None:
            hint = "" if name.startswith("_") else suggestion(name, public_names())
            raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
        if source == module:
            return importlib.import_module(f"{module}.{name}")
        return names.setdefault(name, getattr(importlib.import_module(source), name))

    def public_names() -> list[str]:
        return [name for name in {**names, **sources} if name[0] != "_"]

    names["__getattr__"] = find
    if sources:
        names["__dir__"] = lambda: sorted({*names, *sources})
        names.setdefault("__all__", public_names())
