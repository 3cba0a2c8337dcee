"""``python -m renga.chainer script.py ARGS``: a Chainer script, on renga."""

from __future__ import annotations

import io
import os
import sys
from types import ModuleType

from renga.chainer import install


def main() -> None:
    """Runs the script named by the arguments as the main program."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m renga.chainer script.py [ARGUMENTS]", file=sys.stderr)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    install()
    del sys.argv[0]
    script = sys.argv[0]
    path = os.path.abspath(script)
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        sys.exit(f"renga.chainer: expected a script, got {script}: {error.strerror}")
    sys.path[0] = os.path.dirname(path)
    module = ModuleType("__main__")
    module.__file__ = path  # as Python's: a script may change the working directory
    # Unpickling and child processes look the script up as the main module, which is
    # __mp_main__ in objects that a spawned process sends.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()
