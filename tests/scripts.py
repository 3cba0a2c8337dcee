"""Runs scripts in forks of a process that has imported renga, which takes longest.

    python scripts.py chainer|python MODULE...

reads requests, a line of JSON each, and runs each in a process of its own, as
``python -m renga.chainer SCRIPT`` or ``python SCRIPT`` would.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


@functools.cache
def _server(*arguments: str) -> subprocess.Popen[str]:
    """One for each process of pytest; it ends with that one."""
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        start_new_session=True,
    )


def run_script(
    script: Path,
    *options: object,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    runner: str = "python",
    imports: tuple[str, ...] = ("renga",),
) -> subprocess.CompletedProcess[str]:
    """What a script prints and how it ends.

    Args:
        options: of the script.
        cwd: the current folder.
        env: variables of the environment beside those of this process.
        runner: ``python``, or ``chainer`` for scripts that import chainer.
        imports: modules that are imported before. They have no threads.
    """
    command = [str(script), *map(str, options)]
    server = _server(runner, *imports)
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        streams = [os.path.join(folder, name) for name in ("stdout", "stderr")]
        request = dict(command=command, cwd=str(cwd), env=dict(env or {}))
        print(
            json.dumps({**request, "streams": streams}), file=server.stdin, flush=True
        )
        try:
            status = int(server.stdout.readline())
        except BaseException:  # the test is out of time
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise
        texts = [Path(name).read_text("utf-8") for name in streams]
    return subprocess.CompletedProcess(command, status, *texts)


def _next_request() -> dict[str, Any]:
    """The request of this process, which is a fork for it alone."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)
    sys.exit()


def main(runner: str, modules: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    request = _next_request()
    sys.stdin = open(os.devnull)
    os.dup2(sys.stdin.fileno(), 0)
    for stream, name in enumerate(request["streams"], start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    script, *options = request["command"]
    if runner == "chainer":
        sys.argv = ["renga.chainer", script, *options]
        importlib.import_module("renga.chainer.__main__").main()
    else:
        sys.argv[:], sys.path[0] = [script, *options], os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
