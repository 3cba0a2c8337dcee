"""Imports Chainer's modules: each is a module of renga under another name."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from inspect import isfunction
from types import ModuleType
from typing import Any

from renga.chainer import children
from renga.chainer.environment import read_environment
from renga.chainer.function_classes.creators import name_creators
from renga.chainer.imported_names import add_imported_names
from renga.chainer.missing_packages import explain_missing_packages
from renga.chainer.names import (
    add_all,
    chainermn,
    further_name,
    has_further_names,
    private,
    ranks,
)
from renga.chainer.names.pickles import convert_states
from renga.chainer.package import Package, find_distributions
from renga.chainer.private_modules import is_chainers, modules_of

# Chainer's and renga's name of a module and all below it; the longest match is used.
_NAMES = {
    "chainer": "renga",
    "chainer.backends._chainerx": "renga.backends.chainerx",
    "chainer.backends._cpu": "renga.backends.cpu",
    "chainer.cuda": "renga.backends.cuda",
    "chainer.training.extensions": "renga.extensions",
    "chainer.training.extensions._snapshot": "renga.extensions.snapshots.snapshot",
    "chainer.types": "renga.chainer.types",
    "chainermn": "renga.distributed",
    "chainermn.communicators": "renga.communicators",
    "chainermn.extensions._multi_node_snapshot": (
        "renga.parallel.data.extensions.multi_node_snapshot"
    ),
    **{
        f"chainermn.functions.{name}": f"renga.parallel.functions.{name}"
        for name in (
            "collective_communication",
            "point_to_point_communication",
            "pseudo_connect",
        )
    },
    "chainermn.links.create_mnbn_model": "renga.parallel.conversion.create_mnbn_model",
    "chainermn.links.multi_node_chain_list": (
        "renga.links.parallel.multi_node_chain_list"
    ),
    "chainermn.links.n_step_rnn": "renga.links.parallel.n_step_rnn",
    "chainerx": "renga.chainer.chainerx",
    "onnx_chainer": "renga.chainer.onnx_chainer",
}
_CHAINERS = {renga: chainer for chainer, renga in _NAMES.items()}


def install() -> None:
    """Makes ``chainer``, ``chainermn`` and ``chainerx`` names of renga.

    Modules and classes are renga's own, under both names. Processes that
    ``multiprocessing`` starts later have the names, too, for every start method.

    Raises:
        RuntimeError: another ``chainer`` was imported before.
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    packages = {name.partition(".")[0] for name in sys.modules}
    present = sorted(packages & {"chainer", "chainermn", "chainerx", "onnx_chainer"})
    if present:
        raise RuntimeError(
            f"install: expected to come before any import of Chainer, but {present} "
            "are imported already"
        )
    read_environment()
    sys.meta_path.insert(0, AliasFinder())
    sys.meta_path.append(ViewFinder())
    add_imported_names()
    add_all()
    for names in (private, ranks, chainermn):
        names.add_to_classes()
    name_creators()
    convert_states()
    explain_missing_packages()
    children.inherit_alias(install)


def _renamed(name: str, packages: dict[str, str]) -> str | None:
    """``name`` with its longest prefix in ``packages`` replaced; None without one."""
    package = name
    while package not in packages:
        package, dot, _ = package.rpartition(".")
        if not dot:
            return None
    return packages[package] + name[len(package) :]


class AliasFinder(MetaPathFinder):
    """Finds modules of renga by Chainer's names, and Chainer's version."""

    def find_distributions(
        self, context: DistributionFinder.Context
    ) -> Iterator[Distribution]:
        return find_distributions(context.name)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        name = _renamed(fullname, _NAMES)
        if name is None:
            return None
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            return None
        return ModuleSpec(fullname, AliasLoader(name))


class AliasLoader(Loader):
    """Loads a module of renga under another name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return Package(spec.name) if spec.name == "chainer" else None

    def exec_module(self, module: ModuleType) -> None:
        loaded = importlib.import_module(self.name)
        add_further_names(loaded, module.__name__)
        for name in modules_hidden_in(loaded):
            # An import would bind the name of the function to the module.
            inner = sys.modules[f"{loaded.__name__}.{name}"]
            sys.modules.setdefault(f"{module.__name__}.{name}", inner)
        if not isinstance(module, Package):
            # The import system reads the module from sys.modules after this.
            sys.modules[module.__name__] = loaded


def modules_in(package: str) -> list[ModuleType]:
    """The loaded modules of a package."""
    own = list(sys.modules.items())
    return [module for name, module in own if name.rpartition(".")[0] == package]


def modules_hidden_in(package: ModuleType) -> list[str]:
    """Loaded modules of a package that has functions of the same names."""
    own = [name.rpartition(".") for name in sys.modules]
    below = [leaf for parent, _, leaf in own if parent == package.__name__]
    return [name for name in below if isfunction(vars(package).get(name))]


class ViewFinder(MetaPathFinder):
    """Finds modules that only Chainer has, as views of their parent packages."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        name = _renamed(fullname, _CHAINERS)
        if name is None or not is_chainers(name):
            return None
        # A package of renga may keep the module in a subpackage, and import it.
        package, _, leaf = fullname.rpartition(".")
        inner = vars(sys.modules[package]).get(leaf)
        if isinstance(inner, ModuleType) and not isinstance(inner, View):
            add_further_names(inner, name)
            return ModuleSpec(fullname, AliasLoader(inner.__name__))
        return ModuleSpec(fullname, ViewLoader(), is_package=bool(modules_of(name)))


class ViewLoader(Loader):
    """Creates views."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return View(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class View(ModuleType):
    """A module with Chainer's further names and those of the parent packages.

    A name is looked for in the nearest package first, and then in what is defined by
    the modules of that package.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "Names of Chainer's that renga keeps in another module.")
        self.__dict__["__modules__"] = modules_of(str(_renamed(name, _CHAINERS)))

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["__modules__"]:
            return importlib.import_module(f"{self.__name__}.{name}")
        chainers = str(_renamed(self.__name__, _CHAINERS))
        with contextlib.suppress(AttributeError):
            return further_name(chainers, name)
        package = self.__name__.rpartition(".")[0]
        while package and not name.startswith("__"):
            value = vars(sys.modules[package]).get(name)
            if value is not None and not isinstance(value, ModuleType):
                return value
            for module in modules_in(package):
                value = vars(module).get(name)
                if getattr(value, "__module__", None) == module.__name__:
                    return value
            package = package.rpartition(".")[0]
        raise AttributeError(f"module {chainers!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__dict__["__modules__"]]


def add_further_names(module: ModuleType, chainers: str) -> None:
    """Makes a module of renga find what only Chainer's module has, when asked.

    Loaded modules below it, too.
    """
    below = modules_of(chainers)
    for name in below:
        inner = vars(module).get(name)
        if isinstance(inner, ModuleType) and not isinstance(inner, View):
            add_further_names(inner, f"{chainers}.{name}")
    own = vars(module).get("__getattr__")
    if getattr(own, "chainers", None) == chainers:
        return
    if not below and not has_further_names(chainers):
        return

    def __getattr__(name: str) -> Any:
        if name in below:
            # A module of renga's own is found as always.
            spec = importlib.util.find_spec(f"{module.__name__}.{name}")
            if spec is None or isinstance(spec.loader, ViewLoader):
                return importlib.import_module(f"{chainers}.{name}")
        try:
            return further_name(chainers, name)
        except AttributeError:
            if own is None:
                raise
            return own(name)

    own_names = vars(module).get("__dir__", vars(module).keys)

    def __dir__() -> list[str]:
        return sorted({*own_names(), *below})

    __getattr__.chainers = chainers  # type: ignore[attr-defined]
    vars(module).update(__getattr__=__getattr__, __dir__=__dir__)
