"""Every #include and import line keeps to the house's layering."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[1]

# The rooms of the core, and what each may include beside itself.
INCLUDES = {
    "devices": set(),
    "tensor": {"devices"},
    "simd": {"tensor"},
    "autograd": {"tensor", "devices"},
    "lazy": set(),
    "ops": {"lazy", "autograd", "simd", "tensor", "devices"},
    "optimizers": {"tensor", "devices"},
    "python": {"optimizers", "ops", "autograd", "tensor", "devices"},
}

# Families of operations, from the lowest level up. A family includes only lower ones.
# Gradients of the first three are made of each other's operations: there, sources (not
# headers or kernels) may include the whole level.
FAMILIES = [
    {"elementwise", "shape", "reduction"},
    {"matmul", "random", "indexing"},
    {"convolution", "normalization", "pooling", "recurrent", "loss"},
]

# Other people's libraries, and the files that may know of them.
FOREIGN = {
    r"pybind11/|Python\.h": r"csrc/python/|communicators/(\w+/)?module\.cpp",
    r"mpi\.h": r"communicators/mpi/",
    r"dnnl": r"csrc/devices/cpu/|csrc/simd/cpu_features\.cpp|csrc/ops/\w+/cpu/",
    r"xsimd/|xtensor/": r"csrc/simd/|csrc/ops/\w+/cpu/",
    r"cuda|cublas|cudnn": r"csrc/devices/cuda/|communicators/nccl/|\.cu(\.h)?$",
    r"nccl\.h": r"communicators/nccl/",
}

# The rooms of the package, and what each may import beside itself.
IMPORTS = {
    "core": set(),
    "communicators": {"core"},
    "links": {"core", "communicators"},
    "extensions": {"core", "communicators"},
    "distributed": {"core", "communicators", "links", "extensions"},
}
# What a user imports from one place though it lives in another room.
FACES = {"renga", "renga.training.extensions", "renga.launch", "renga.doctor"}
# What communicators leave to packing.py: they carry arrays and know no model.
MODELS = ("renga.link", "renga.links", "renga.optimizer", "renga.training")


def cpp_files() -> list[Path]:
    roots = (HOUSE / "csrc", HOUSE / "communicators")
    return [p for r in roots for p in r.rglob("*") if p.suffix in (".h", ".cpp", ".cu")]


def includes(path: Path) -> list[tuple[str, str]]:
    """(quote, header) of every #include."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)', path.read_text(), re.M)


def python_files() -> dict[str, Path]:
    """The package's modules by name, as wheel.packages maps the rooms."""
    roots = {"renga": "python/renga"}
    roots |= {f"renga.{r}": r for r in ("links", "extensions", "communicators")}
    return {
        ".".join(
            [package, *path.relative_to(HOUSE / root).with_suffix("").parts]
        ).removesuffix(".__init__"): path
        for package, root in roots.items()
        for path in (HOUSE / root).rglob("*.py")
    }


def imports(module: str, path: Path) -> Iterator[str]:
    """The modules that a module imports, wherever in it that stands."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            # `from renga import links` names a module too.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    part = module.split(".")[1] if "." in module else ""
    outer = part in ("chainer", "planning", "pipeline")
    return part if part in IMPORTS or outer else "core"


def test_the_rules_see_the_whole_house():
    csrc = HOUSE / "csrc"
    assert {p.relative_to(csrc).parts[0] for p in csrc.rglob("*.h")} == set(INCLUDES)
    assert {room_of(m) for m in python_files()} >= set(IMPORTS)


@pytest.mark.parametrize("room", INCLUDES)
def test_core_includes(room):
    wrong = [
        f"{path.relative_to(HOUSE)} includes {header}"
        for path in (HOUSE / "csrc" / room).rglob("*")
        if path.suffix in (".h", ".cpp", ".cu")
        for quote, header in includes(path)
        if quote == '"' and header.split("/")[0] not in INCLUDES[room] | {room}
    ]
    assert not wrong


def families_included(path: Path) -> set[str]:
    parts = [header.split("/") for quote, header in includes(path) if quote == '"']
    return {p[1] for p in parts if p[0] == "ops" and len(p) > 2}


@pytest.mark.parametrize("family", set().union(*FAMILIES))
def test_families_include_nothing_above_them(family):
    level = next(i for i, families in enumerate(FAMILIES) if family in families)
    lower = set().union(*FAMILIES[:level])
    wrong = []
    for path in (HOUSE / "csrc" / "ops" / family).rglob("*.*"):
        base = level == 0 and path.suffix == ".cpp" and path.parent.name == family
        allowed = lower | {family} | (FAMILIES[0] if base else set())
        wrong += [(path.name, f) for f in families_included(path) - allowed]
    assert not wrong


def test_every_family_has_a_level():
    ops = HOUSE / "csrc" / "ops"
    assert {p.name for p in ops.iterdir() if p.is_dir()} == set().union(*FAMILIES)
    # What stands above the families is the list of operations alone.
    assert {p.name for p in ops.iterdir() if p.is_file()} == {"list.h", "ops.h"}


@pytest.mark.parametrize("library", FOREIGN)
def test_foreign_headers(library):
    wrong = [
        f"{path.relative_to(HOUSE)} includes {header}"
        for path in cpp_files()
        for _, header in includes(path)
        if re.match(library, header)
        and not re.search(FOREIGN[library], str(path.relative_to(HOUSE)))
    ]
    assert not wrong


def test_only_the_binding_of_communicators_knows_python():
    wrong = [
        f"{path.relative_to(HOUSE)} includes {header}"
        for path in (HOUSE / "communicators").rglob("*")
        if path.suffix in (".h", ".cpp") and path.name != "module.cpp"
        for _, header in includes(path)
        if header.startswith("python/")
    ]
    assert not wrong


def test_no_device_is_named_outside_its_own_files():
    wrong = [
        str(path.relative_to(HOUSE))
        for path in cpp_files()
        if not re.search(
            r"csrc/devices/|csrc/python/cuda/|/cpu/|\.cpu\.|\.cu", str(path)
        )
        and re.search(r'"(cpu|cuda)[":]', path.read_text())
    ]
    assert not wrong


@pytest.mark.parametrize("room", IMPORTS)
def test_package_imports(room):
    allowed = IMPORTS[room] | {room}
    wrong = [
        f"{module} imports {target}"
        for module, path in python_files().items()
        if room_of(module) == room and module not in FACES
        for target in imports(module, path)
        if target.split(".")[0] == "renga" and room_of(target) not in allowed
    ]
    assert not wrong


def test_communicators_know_no_model_outside_packing():
    wrong = [
        f"{module} imports {target}"
        for module, path in python_files().items()
        if room_of(module) == "communicators" and path.name != "packing.py"
        for target in imports(module, path)
        if any(target == m or target.startswith(m + ".") for m in MODELS)
    ]
    assert not wrong
