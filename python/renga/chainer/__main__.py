"""``python -m renga.chainer script.py ARGS``: a Chainer script, on renga."""

from __future__ import annotations

import io
import os
import sys
from importlib import util
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import cast

from renga.chainer import install

USAGE = "usage: python -m renga.chainer (script.py | -m MODULE) [ARGUMENTS]"


def main() -> None:
    """Runs the script, or the module after ``-m``, as the main program."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help") or sys.argv[1:] == ["-m"]:
        print(USAGE, file=sys.stderr)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    install()
    del sys.argv[0]
    module = ModuleType("__main__")
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = os.getcwd()
        code = prepare_module(module, sys.argv[0])
        sys.argv[0] = cast(str, module.__file__)
    else:
        code = prepare_script(module, sys.argv[0])
    # Unpickling and child processes look the script up as the main module, which is
    # __mp_main__ in objects that a spawned process sends.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    exec(code, module.__dict__)


def prepare_script(module: ModuleType, script: str) -> CodeType:
    """The code of a file, which ``module`` is to run."""
    path = os.path.abspath(script)
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        sys.exit(f"renga.chainer: expected a script, got {script}: {error.strerror}")
    sys.path[0] = os.path.dirname(path)
    module.__file__ = path  # as Python's: a script may change the working directory
    return code


def prepare_module(module: ModuleType, name: str) -> CodeType:
    """The code of a module, or of a package's ``__main__``, for ``module`` to run.

    By its spec, relative imports and spawned processes find the program.
    """
    spec = found(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = found(name + ".__main__")
    code = getattr(spec and spec.loader, "get_code", lambda _: None)(spec and spec.name)
    if spec is None or code is None:
        sys.exit(f"renga.chainer: expected a module after -m, got {name}")
    module.__spec__, module.__loader__ = spec, spec.loader
    module.__package__, module.__file__ = spec.parent, spec.origin
    return code


def found(name: str) -> ModuleSpec | None:
    """The spec of a module, whose packages are imported; None if there is none."""
    try:
        return util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


if __name__ == "__main__":
    main()
