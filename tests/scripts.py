"""Runs scripts as processes of their own, which need not import renga anew."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from renga.launch import mpiexec_command, mpiexec_environment
from tests.script_client import ask

_FOLDER = Path(__file__).parent


@functools.cache
def _server() -> tuple[subprocess.Popen[bytes], str]:
    """One for each process of pytest, with which it ends, and its address."""
    path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    variables = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONPATH": path}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # Linux names it; there is no file
        listener.listen(64)
        number = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, _FOLDER / "script_server.py", str(number)],
            stdin=subprocess.PIPE,
            pass_fds=[number],
            env={**os.environ, **variables},
            start_new_session=True,
        )
        return process, listener.getsockname()[1:].decode()


def run_script(
    script: Path,
    *options: object,
    cwd: Path,
    env: Mapping[str, str] = os.environ,
    chainer: bool = False,
    ranks: int = 1,
) -> subprocess.CompletedProcess[str]:
    """What a script prints and how it ends, on one thread.

    Args:
        options: of the script.
        cwd: the current folder.
        env: the environment.
        chainer: whether it runs as by ``python -m renga.chainer``.
        ranks: as so many processes of mpiexec, or as one without it.
    """
    command = [str(script), *map(str, options)]
    request = {"command": command, "cwd": str(cwd), "chainer": chainer}
    server, address = _server()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            if ranks == 1:
                with open(os.devnull) as nothing:
                    streams = [each.fileno() for each in (nothing, output, errors)]
                    status = ask(address, {**request, "env": dict(env)}, streams)
            else:
                client = [sys.executable, "-I", "-S", _FOLDER / "script_client.py"]
                status = subprocess.run(
                    [*mpiexec_command(ranks), *client, address, json.dumps(request)],
                    env={**mpiexec_environment(ranks), **env},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                ).returncode
        except BaseException:  # the test is out of time
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(command, status, *texts)


def run_program(
    code: str, *options: object, env: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """The same for a text, which may be indented."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(textwrap.dedent(code), "utf-8")
        return run_script(script, *options, cwd=Path.cwd(), env=env)
