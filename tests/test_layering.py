"""Every #include and import line keeps to the layering of the project."""

from __future__ import annotations

import ast
import collections
import functools
import glob
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The folders of the core, and what each may include besides itself.
INCLUDES = {
    "settings": set(),
    "devices": set(),
    "tensor": {"devices"},
    "simd": {"tensor"},
    "lazy": {"tensor", "devices"},
    "autograd": {"settings", "lazy", "tensor", "devices"},
    "ops": {"settings", "lazy", "autograd", "simd", "tensor", "devices"},
    "optimizers": {"simd", "tensor", "devices"},
    "compression": {"ops", "tensor", "devices"},
    "planning": {"tensor"},
    "nn": {"ops", "optimizers", "autograd", "lazy", "tensor"},
    # C++ programs include these headers.
    "renga": {"nn", "ops", "autograd", "settings", "tensor", "devices"}
    | {"channel", "data_parallel", "spatial", "world.h"},
    "python": {"settings", "planning", "compression"}
    | {"optimizers", "ops", "autograd", "lazy", "tensor", "devices"},
}

# Families of operations, from the lowest level up. A family includes only lower ones.
# Gradients of the first three are made of each other's operations: there, sources (not
# headers or kernels) may include the whole level.
FAMILIES = [
    {"elementwise", "shape", "reduction"},
    {"matmul", "random", "indexing"},
    {"attention", "convolution", "linalg", "normalization", "pooling", "recurrent"}
    | {"loss", "sampling"},
]

# Third-party libraries, and the files that may include them.
FOREIGN = {
    r"pybind11/|Python\.h": r"csrc/python/|communicators/(\w+/)*module\.(cpp|h)$",
    r"mpi\.h": r"communicators/transport/mpi/",
    r"dnnl": r"csrc/devices/cpu/|csrc/simd/cpu_features\.cpp|csrc/ops/\w+/cpu/",
    r"xsimd/": r"csrc/simd/elementary\.h",
    r"xtensor/": r"csrc/renga/xtensor\.h|tests/",
    r"cuda|cublas|cudnn": r"csrc/devices/cuda/|communicators/nccl/|\.cu(\.h)?$",
    r"nccl\.h": r"communicators/nccl/",
}

# The folders of communicators' C++, and what each may include besides itself; "" is its
# top folder. The bindings, module.cpp, may include everything.
COMMUNICATORS = {
    "transport": set(),
    "context": {"transport"},
    "shared_memory": {"context", "transport"},
    "collectives": {"shared_memory", "context", "transport"},
    "": {"collectives", "shared_memory", "context", "transport"},
    "data_parallel": {"", "collectives", "shared_memory", "optimizers"}
    | {"autograd", "nn"},
    "channel": {"", "collectives", "autograd", "ops", "nn"},
    "spatial": {"", "autograd"},
    "nccl": {"", "collectives", "transport"},
    "simulated": set(),
}

# The packages, and what each may import besides itself. Where values are on the ranks
# is below the links, all other parallelism above them.
PLACES = {f"parallel.{name}" for name in ("functions", "placement", "redistribute")}
LOWER = {"core", "communicators", *PLACES}
LINKS = {*LOWER, "links"}
MODELS_OF_RANKS = {
    f"parallel.{name}" for name in ("channel", "samples", "sequence", "spatial")
}
IMPORTS = {
    "core": set(),
    "communicators": {"core"},
    "extensions": {"core", "communicators"},
    "parallel.placement": {"core", "communicators"},
    "parallel.redistribute": {"core", "communicators", "parallel.placement"},
    "parallel.functions": {"core", "communicators"},
    "links": LOWER,
    "parallel.groups": {"communicators"},
    "parallel.conversion": LINKS,
    "parallel.channel": {*LINKS, "parallel.conversion"},
    "parallel.sequence": {*LINKS, "parallel.conversion"},
    "parallel.spatial": {*LINKS, "parallel.conversion"},
    "parallel.samples": {*LINKS, "parallel.conversion", "parallel.groups"},
    "parallel.parallelize": {*LINKS, *MODELS_OF_RANKS, "parallel.conversion"},
    "parallel.compression": {"core", "communicators"},
    "parallel.data": {*LINKS, "extensions", "parallel.compression"},
    "parallel.asynchronous": {"core", "communicators", "extensions", "parallel.data"},
    "parallel.elastic": {"core", "communicators", "extensions", "parallel.data"},
    "parallel.optuna": {"core", "communicators"},
    "parallel.pipeline": LINKS,
}
IMPORTS["parallel.plan"] = set(IMPORTS) - {"extensions"}
# Public names of the packages above, which none of these imports.
NAMES = ("distributed", "pipeline", "planning")
IMPORTS |= dict.fromkeys(NAMES, {*IMPORTS, *NAMES})
# Modules that re-export other packages, and programs.
ENTRY_POINTS = {"renga", "renga.training.extensions"}

# The packages directly below python/renga and, without the names of their packages, the
# modules of core and _runtime, lowest layer first. Each layer imports only the layers
# above its own line in this list, and itself.
GROUPS = ("core", "_runtime")
LAYERS = [
    "before_core suggestions types warnings",
    "operations computational_graph",
    "configuration",
    "initializer serializer function_hook link_hook backends backend",
    "nan_check dtypes memory device_resident utils seed",
    "around_call",
    "variable gradients",
    "function_node function function_hooks",
    "initializers parameter derivatives kept_gradients",
    "functions",
    "numpy_functions",
    "link sequential link_hooks distribution distributions",
    "serializers",
    "kernels runtime_info profiling program",
    "optimizer_hooks optimizer optimizers",
    "statistics reporter",
    "graph_optimizations",
    "dataset datasets iterators transforms",
    "training",
    "exporters gradient_check testing",
]
# Entry points and programs: they import any layer, and no layer imports them.
PROGRAMS = {"chainer", "launch", "cli", "__main__"}
ABOVE_ALL_LAYERS = {*PROGRAMS, *NAMES, "parallel"}
# Only packing.py imports these: communicators transfer arrays and know no model.
MODELS = ("renga.core.link", "renga.core.optimizer", "renga.links", "renga.training")


def cpp_files() -> list[Path]:
    roots = (ROOT / "csrc", ROOT / "communicators")
    return [p for r in roots for p in r.rglob("*") if p.suffix in (".h", ".cpp", ".cu")]


def includes(path: Path) -> list[tuple[str, str]]:
    """(quote, header) of every #include."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)', path.read_text(), re.M)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text())


@functools.cache
def python_files() -> dict[str, Path]:
    """The package's modules by name, those behind symbolic links too."""
    root = ROOT / "python"
    paths = map(Path, glob.glob(f"{root}/renga/**/*.py", recursive=True))
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in paths
    }


@functools.cache
def imports(
    module: str, path: Path, deferred: bool = True, types: bool = False
) -> tuple[str, ...]:
    """The modules that a module imports.

    Inside functions too if ``deferred``, for type checkers too if ``types``.
    """
    return tuple(read_imports(module, path, deferred, types))


def read_imports(module: str, path: Path, deferred: bool, types: bool) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(tree_of(path), deferred, types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            # `from renga import links` names a module too.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def statements(node: ast.AST, deferred: bool, types: bool) -> Iterator[ast.AST]:
    """The statements outside of functions and of blocks for type checkers, or all."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for child in ast.iter_child_nodes(node):
        is_block = isinstance(child, ast.If)
        if is_block and not types and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        if deferred or not isinstance(child, functions):
            yield from statements(child, deferred, types)


def import_graph(deferred: bool, types: bool = False) -> dict[str, set[str]]:
    """For each module, the modules of this project that it imports.

    Compiled modules (``renga._core``) are left out: they import no Python module.
    """
    files = python_files()
    graph: dict[str, set[str]] = {module: set() for module in files}
    for module, path in files.items():
        for target in imports(module, path, deferred, types):
            package, _, name = target.rpartition(".")
            if target in files:
                graph[module].add(target)
            elif package in files and not name.startswith("_c"):
                graph[module].add(package)
        graph[module].discard(module)
    return graph


def import_cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of two or more modules each of which imports all others of its set."""
    reached = {}
    for start in graph:
        seen, pending = set(), [start]
        while pending:
            for target in graph[pending.pop()] - seen:
                seen.add(target)
                pending.append(target)
        reached[start] = seen
    cycles: list[set[str]] = []
    for module, targets in reached.items():
        if module in targets and not any(module in cycle for cycle in cycles):
            cycles.append({t for t in targets if module in reached[t]})
    return cycles


def package_of(module: str) -> str:
    """The package of a module in IMPORTS; "core" for python/renga itself."""
    name = ".".join(module.split(".")[1:3])
    if not name.startswith("parallel."):
        name = name.partition(".")[0]
    outer = name in ("chainer", "cli", "launch", "parallel", "__main__")
    return name if name in IMPORTS or outer else "core"


def layer_name(module: str) -> str:
    """The name in LAYERS of a module of python/renga."""
    names = module.split(".")[1:]
    return names[1] if names[0] in GROUPS and names[1:] else names[0]


def layer_of(module: str) -> int:
    """The index in LAYERS of a module of python/renga."""
    name = layer_name(module)
    return next(i for i, names in enumerate(LAYERS) if name in names.split())


def test_the_rules_cover_every_folder():
    csrc = ROOT / "csrc"
    assert {p.relative_to(csrc).parts[0] for p in csrc.rglob("*.h")} == set(INCLUDES)
    assert {package_of(m) for m in python_files()} >= set(IMPORTS)


@pytest.mark.parametrize("folder", INCLUDES)
def test_core_includes(folder):
    wrong = [
        f"{path.relative_to(ROOT)} includes {header}"
        for path in (ROOT / "csrc" / folder).rglob("*")
        if path.suffix in (".h", ".cpp", ".cu")
        for quote, header in includes(path)
        if quote == '"' and header.split("/")[0] not in INCLUDES[folder] | {folder}
    ]
    assert not wrong


def families_included(path: Path) -> set[str]:
    parts = [header.split("/") for quote, header in includes(path) if quote == '"']
    return {p[1] for p in parts if p[0] == "ops" and len(p) > 2}


@pytest.mark.parametrize("family", sorted(set().union(*FAMILIES)))
def test_families_include_nothing_above_them(family):
    level = next(i for i, families in enumerate(FAMILIES) if family in families)
    lower = set().union(*FAMILIES[:level])
    wrong = []
    for path in (ROOT / "csrc" / "ops" / family).rglob("*.*"):
        base = level == 0 and path.suffix == ".cpp" and path.parent.name == family
        allowed = lower | {family} | (FAMILIES[0] if base else set())
        wrong += [(path.name, f) for f in families_included(path) - allowed]
    assert not wrong


def test_every_family_has_a_level():
    ops = ROOT / "csrc" / "ops"
    assert {p.name for p in ops.iterdir() if p.is_dir()} == set().union(*FAMILIES)
    # What stands beside the families is the list of operations alone.
    found = {p.name for p in ops.iterdir() if p.is_file()}
    assert found == {"list.h", "ops.h", "traits.h"}


@pytest.mark.parametrize("library", FOREIGN)
def test_foreign_headers(library):
    wrong = [
        f"{path.relative_to(ROOT)} includes {header}"
        for path in cpp_files()
        for _, header in includes(path)
        if re.match(library, header)
        and not re.search(FOREIGN[library], str(path.relative_to(ROOT)))
    ]
    assert not wrong


@pytest.mark.parametrize("folder", COMMUNICATORS)
def test_communicator_includes(folder):
    root = ROOT / "communicators"
    allowed = COMMUNICATORS[folder] | {folder, "tensor", "devices"}
    wrong = [
        f"{path.relative_to(ROOT)} includes {header}"
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cpp") and path.stem != "module"
        if folder or path.parent == root
        for quote, header in includes(path)
        if quote == '"' and header.rpartition("/")[0].split("/")[0] not in allowed
    ]
    assert not wrong


def test_every_folder_of_communicators_has_a_rule():
    root = ROOT / "communicators"
    paths = [p.relative_to(root) for p in root.rglob("*") if p.suffix == ".cpp"]
    assert {str(p.parent).split("/")[0].strip(".") for p in paths} == set(COMMUNICATORS)


def test_only_the_binding_of_communicators_knows_python():
    wrong = [
        f"{path.relative_to(ROOT)} includes {header}"
        for path in (ROOT / "communicators").rglob("*")
        if path.suffix in (".h", ".cpp") and path.stem != "module"
        for _, header in includes(path)
        if header.startswith(("python/", "pybind11/"))
    ]
    assert not wrong


def test_no_device_is_named_outside_its_own_files():
    own = r"csrc/devices/|csrc/python/cuda|/cpu/|\.cpu\.|\.cu"
    wrong = [
        str(path.relative_to(ROOT))
        for path in cpp_files()
        if not re.search(own, str(path))
        and re.search(r'"(cpu|cuda)[":]', path.read_text())
    ]
    assert not wrong


def test_variables_of_threads_are_those_of_the_table():
    declared = set()
    for path in cpp_files():
        for line in path.read_text().splitlines():
            code = line.partition("//")[0]
            if re.search(r"\bthread_local\b", code):
                name = re.search(
                    r"(\w+)(?= *[;=(]|$)", code.partition("thread_local")[2]
                )
                declared.add(name[1])
    table = (ROOT / "docs/core.md").read_text().partition("| `thread_local` |")[2]
    rows = re.findall(r"^\| (`.*?) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert declared == set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert len(declared) <= 8


@pytest.mark.parametrize("package", IMPORTS)
def test_package_imports(package):
    allowed = IMPORTS[package] | {package}
    wrong = [
        f"{module} imports {target}"
        for module, path in python_files().items()
        if package_of(module) == package and module not in ENTRY_POINTS
        for target in imports(module, path)
        if target.split(".")[0] == "renga" and package_of(target) not in allowed
    ]
    assert not wrong


def test_communicators_know_no_model_outside_packing():
    wrong = [
        f"{module} imports {target}"
        for module, path in python_files().items()
        if package_of(module) == "communicators" and path.name != "packing.py"
        for target in imports(module, path)
        if any(target == m or target.startswith(m + ".") for m in MODELS)
    ]
    assert not wrong


def test_reducers_know_neither_links_nor_optimizers_nor_data_sets():
    data = "renga.parallel.data"
    users = [
        f"{data}.{n}" for n in ("datasets", "extensions", "iterators", "optimizers")
    ]
    wrong = [
        f"{module} imports {target}"
        for module, targets in import_graph(deferred=True).items()
        if module.startswith(data) and not module.startswith(tuple(users))
        for target in targets
        if target.startswith(("renga.links", *users))
    ]
    assert not wrong


def test_public_names_of_parallelism_are_names_only():
    for name in NAMES:
        for path in (ROOT / "python/renga" / name).rglob("*.py"):
            for node in tree_of(path).body:
                text = ast.unparse(node)
                is_name = isinstance(node, ast.ImportFrom) or text.startswith("__all__")
                assert is_name or isinstance(node, ast.Expr), f"{path}: {text}"


def test_every_module_has_a_layer():
    folders = {"links", "extensions", "communicators"}
    core = {layer_name(m) for m in python_files() if "." in m} - {*folders, *GROUPS}
    listed = [name for names in LAYERS for name in names.split()]
    assert sorted([*listed, *ABOVE_ALL_LAYERS]) == sorted(core)


def test_layers_of_the_core_package():
    files = python_files()
    core = {
        module
        for module in files
        if module not in ENTRY_POINTS
        and package_of(module) == "core"
        and module.split(".")[1] not in ABOVE_ALL_LAYERS
    }
    wrong = [
        f"{module} imports {target}"
        for module, targets in import_graph(deferred=False).items()
        if module in core
        for target in targets
        if target not in core or layer_of(target) > layer_of(module)
    ]
    assert not wrong


def test_no_module_imports_itself_through_others():
    # Imports inside functions and for type checkers count.
    assert not import_cycles(import_graph(deferred=True, types=True))


# Functions may import these: packages that need not be installed, modules that need not
# be built, and what takes too long to import for those who do not use it.
OPTIONAL = {"IPython", "PIL", "cloudpickle", "h5py", "matplotlib", "mpi4py", "onnx"}
OPTIONAL |= {
    "onnxruntime",
    "optuna",
    "plotly",
    "pytest",
    "safetensors",
    "scipy",
    "sklearn",
    "tqdm",
}
SLOW = {"http.client", "importlib.metadata", "urllib.request"} | {
    f"renga.{name}"
    for name in (
        "_communicators_mpi",
        "backends.cuda_arrays",
        "backends.cuda_device",
        "backends.cupy_arrays",
        "iterators.reading_processes",
        "links.caffe.network",
    )
}


def test_functions_import_optional_and_slow_modules_alone():
    wrong = [
        f"{module} imports {target}"
        for module, path in python_files().items()
        for target in {*imports(module, path)}
        - {*imports(module, path, deferred=False)}
        if target.split(".")[0] not in OPTIONAL
        if not {target, target.rpartition(".")[0]} & SLOW
    ]
    assert not wrong


# What `typing` has since Python 3.10 or later; the package runs on 3.9.
NEWER_TYPING = {"Concatenate", "LiteralString", "Never", "NotRequired", "ParamSpec"}
NEWER_TYPING |= {"Required", "Self", "TypeAlias", "TypeGuard", "TypeVarTuple", "Unpack"}
NEWER_TYPING |= {"assert_never", "assert_type", "dataclass_transform", "override"}


def test_names_of_typing_are_those_of_the_oldest_python():
    wrong = [
        f"{module} imports {alias.name}"
        for module, path in python_files().items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for alias in node.names
        if alias.name in NEWER_TYPING
    ]
    assert not wrong


# A module uses these members of other objects although they begin with an underscore;
# the comments say why.
UNDERSCORE_MEMBERS = {
    # Members of the standard library and of NumPy that have no other name.
    "*": {"_addressof", "_asdict", "_exit", "_fields", "_getframe", "_replace"},
    "renga.communicators.simulated.virtual.random_states": {"_legacy_seeding"},
    "renga.serializers.npz": {"_compressor"},
    "renga.utils.pickling": {"_slotnames"},
    # Names of Chainer's, by which clients know these functions and classes.
    "renga.chainer.names.private": {"_begins", "_concat", "_entries", "_nodes"}
    | {"_sides", "_stack_padded"},
    "renga.core.link.hooked": {"_ForwardPostprocessCallbackArgs"}
    | {"_ForwardPreprocessCallbackArgs"},
    "renga.extensions.snapshots.snapshot": {"_add_cleanup_hook"},
    "renga.transforms.compose": {"_call_converter"},
    # New objects of the module's own class, whose base class has the members.
    "renga.communicators.communicator": {"_configs", "_origin"},
    "renga.parallel.pipeline.pipeline": {"_params", "_persistent"},
    # Names of attributes that subclasses of Link must not find taken.
    "renga.core.link.own_values": {"_params", "_persistent"},
    # Data sets of exactly renga's classes are taken apart.
    "renga.parallel.data.datasets.narrow": {"_dataset", "_datasets", "_finish"}
    | {"_order", "_start", "_transform"},
}


def defined_names(tree: ast.AST) -> set[str]:
    """Names of functions, classes, variables and own attributes of a module."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) in ("self", "cls"):
                names.add(node.attr)
    return names


def underscore_members_of_others(path: Path) -> set[str]:
    """Underscore members that a module reads and does not define itself."""
    tree = tree_of(path)
    own = defined_names(tree)
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if not re.match(r"(self|cls|super\(.*\))$", ast.unparse(node.value))
        if node.attr not in own
    }


def test_underscore_members_of_others_are_not_used():
    everywhere = UNDERSCORE_MEMBERS["*"]
    used = {
        module: members
        for module, path in python_files().items()
        if (members := underscore_members_of_others(path) - everywhere)
    }
    assert used == {m: names for m, names in UNDERSCORE_MEMBERS.items() if m != "*"}


# Two classes have each of these names: Chainer or NumPy names them so, or they are
# public names of two packages.
SHARED_CLASS_NAMES = {"BatchNormalization", "Call", "Constant", "Device", "Graph"}
SHARED_CLASS_NAMES |= {"Normal", "Parameter", "SimplifiedDropconnect", "TimerHook"}
SHARED_CLASS_NAMES |= {"ProgressBar", "Uniform", "ndarray"}


def test_classes_have_names_of_their_own():
    names = collections.Counter(
        node.name
        for path in python_files().values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, n in names.items() if n > 1} == SHARED_CLASS_NAMES


# Annotations of public functions and methods that say Any. Fewer are better: a smaller
# number takes the place of this one.
MOST_ANYS = 237


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The public functions and methods, constructors and calls of a module."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef):
            if not re.match("_(?!_(init|call)__)", node.name):
                yield node


def test_signatures_have_types():
    found = 0
    for path in python_files().values():
        for function in public_functions(tree_of(path).body):
            given = function.args
            args = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            args += [x for x in (given.vararg, given.kwarg) if x is not None]
            types = [*(x.annotation for x in args), function.returns]
            found += sum("Any" in ast.unparse(t) for t in types if t is not None)
    assert found <= MOST_ANYS
