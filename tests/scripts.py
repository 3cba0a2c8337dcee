"""Runs scripts as processes of their own, which need not import renga anew."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path


@functools.cache
def _server() -> subprocess.Popen[str]:
    """One for each process of pytest; it ends with that one."""
    path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    variables = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, Path(__file__).with_name("script_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        start_new_session=True,
    )


def run_script(
    script: Path,
    *options: object,
    cwd: Path,
    env: Mapping[str, str] = os.environ,
    chainer: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What a script prints and how it ends, on one thread.

    Args:
        options: of the script.
        cwd: the current folder.
        env: the environment.
        chainer: whether it runs as by ``python -m renga.chainer``.
    """
    command = [str(script), *map(str, options)]
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        streams = [os.path.join(folder, name) for name in ("stdout", "stderr")]
        request = {"command": command, "cwd": str(cwd), "env": dict(env)}
        request |= {"chainer": chainer, "streams": streams}
        try:
            print(json.dumps(request), file=server.stdin, flush=True)
            status = int(server.stdout.readline())
        except BaseException:  # the test is out of time
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise
        texts = [Path(name).read_text("utf-8") for name in streams]
    return subprocess.CompletedProcess(command, status, *texts)


def run_program(
    code: str, *options: object, env: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """The same for a text, which may be indented."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(textwrap.dedent(code), "utf-8")
        return run_script(script, *options, cwd=Path.cwd(), env=env)
