"""Runs scripts in forks of this process, which has imported what takes longest.

``scripts.py`` starts it, and writes a request for each script: a line of JSON.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys

import renga.chainer.__main__
import renga.distributed
import renga.testing  # noqa: F401

with contextlib.suppress(ImportError):
    importlib.import_module("matplotlib.pyplot")


def next_request():
    """The request of this process, which is a fork for it alone."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)
    sys.exit()


def main():
    request = next_request()
    sys.stdin = open(os.devnull)
    os.dup2(sys.stdin.fileno(), 0)
    for stream, name in enumerate(request["streams"], start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    script, *options = request["command"]
    if request["chainer"]:
        sys.argv = ["renga.chainer", script, *options]
        renga.chainer.__main__.main()
    else:
        sys.argv, sys.path[0] = [script, *options], os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
