"""Writes the pages of the reference: one for each public module, and of settings.

``python docs/scripts/make_reference.py FOLDER`` needs an installed renga.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import sys

import renga
from renga.configuration import declared_settings

MODULES = {
    "renga": "Variables, links, configuration",
    "renga.functions": "Functions",
    "renga.links": "Links",
    "renga.link_hooks": "Link hooks",
    "renga.function_hooks": "Function hooks",
    "renga.initializers": "Initializers",
    "renga.optimizers": "Optimizers",
    "renga.optimizer_hooks": "Optimizer hooks",
    "renga.distributions": "Distributions",
    "renga.dataset": "Data set tools",
    "renga.datasets": "Data sets",
    "renga.iterators": "Iterators",
    "renga.transforms": "Transforms",
    "renga.serializers": "Serializers",
    "renga.exporters.onnx": "Exporters",
    "renga.program": "Programs",
    "renga.training": "Training",
    "renga.training.updaters": "Updaters",
    "renga.training.triggers": "Triggers",
    "renga.training.extensions": "Extensions",
    "renga.communicators": "Communicators",
    "renga.communicators.simulated": "Simulated ranks",
    "renga.distributed": "Distributed training",
    "renga.distributed.functions": "Distributed functions",
    "renga.distributed.links": "Distributed links",
    "renga.backend": "Devices",
    "renga.gradient_check": "Gradient checks",
    "renga.testing": "Testing",
    "renga.chainer": "Running Chainer's scripts",
}


def page(name: str, title: str, seen: set[int]) -> str:
    """The page of a module: its docstring, then every public class and function.

    What was ``seen`` on an earlier page is shown but not indexed again.
    """
    module = importlib.import_module(name)
    lines = [title, "=" * len(title), "", f".. currentmodule:: {name}", ""]
    if module.__doc__:
        lines += [inspect.cleandoc(module.__doc__).split("\n\n")[0], ""]
    for member in public(module):
        obj = getattr(module, member)
        kind = "autoclass" if inspect.isclass(obj) else "autofunction"
        lines += [f".. {kind}:: {member}"]
        if inspect.isclass(obj):
            lines += ["   :members:", "   :exclude-members: __init__"]
        if id(obj) in seen:
            lines.append("   :no-index:")
        seen.add(id(obj))
        lines.append("")
    return "\n".join(lines)


def settings() -> str:
    """The page of settings: what each does, its default and its values."""
    lines = [
        "Settings",
        "========",
        "",
        "Of ``renga.config`` and ``global_config``.",
        "",
    ]
    for name, setting in declared_settings(renga.global_config).items():
        values = ", ".join(map(repr, setting.values)) or "any value"
        lines += [f"``{name}``: {setting.default!r} by default ({values})"]
        lines += ["   " + setting.text.replace("`", "``"), ""]
    return "\n".join(lines)


def public(module: object) -> list[str]:
    """The names of classes and functions that a module shows."""
    names = getattr(module, "__all__", None) or vars(module)
    return sorted(
        name
        for name in names
        if not name.startswith("_")
        and (inspect.isclass(getattr(module, name)) or callable(getattr(module, name)))
        and str(getattr(getattr(module, name), "__module__", "")).startswith("renga")
    )


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[int] = set()
    for name, title in MODULES.items():
        (folder / f"{name}.rst").write_text(page(name, title, seen), encoding="utf-8")
    (folder / "settings.rst").write_text(settings(), encoding="utf-8")
    titles = "\n   ".join([*MODULES, "settings"])
    index = f"Reference\n=========\n\n.. toctree::\n   :maxdepth: 1\n\n   {titles}\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")


if __name__ == "__main__":
    main()
