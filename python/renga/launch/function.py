"""Starts ranks from a program that is not one itself, such as a notebook."""

from __future__ import annotations

import codecs
import importlib.util
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
from typing import IO, Any, Callable

from renga.launch.child import child_command
from renga.launch.mpiexec import mpiexec_command, mpiexec_environment
from renga.launch.slurm import is_rank
from renga.utils import pickling
from renga.utils.argument import check_count
from renga.utils.exceptions import pack, with_prefix


def launch(
    function: Callable[..., object],
    *args: object,
    ranks: int = 2,
    gather: bool = False,
    **kwargs: object,
) -> Any:
    """Calls ``function(*args, **kwargs)`` in ``ranks`` processes under mpiexec.

    Rank 0's output is streamed, and it reads the standard input of this program. The
    function is pickled by value, so it may come from a notebook; it creates its
    communicator itself. The ranks end with this program.

    Returns:
        Rank 0's result; with ``gather``, the list of all ranks' results.

    Raises:
        Exception: that of the first rank that raised, with its number; the cause
            is its traceback.
        RuntimeError: a rank ended in another way, or this process is itself a rank.
        ImportError: mpiexec or cloudpickle is missing.
    """
    if is_rank():
        raise RuntimeError("launch: this process is a rank of an MPI job already")
    if importlib.util.find_spec("cloudpickle") is None:
        text = "launch: there is no cloudpickle here; `pip install 'renga[mpi]'`"
        raise ImportError(text)
    if not callable(function):
        raise TypeError(f"launch: expected a function, got {function!r}")
    check_count("launch: ranks", ranks)
    with tempfile.TemporaryDirectory(prefix="renga-launch-") as name:
        folder = pathlib.Path(name)
        _write(folder / "call", (function, args, kwargs))
        code = _run(folder, ranks)
        if code != 0:
            _raise_failure(folder, ranks, code)
        results = [_result(folder / f"result.{rank}") for rank in range(ranks)]
    return results if gather else results[0]


def _result(path: pathlib.Path) -> Any:
    # A rank that calls sys.exit() returns nothing.
    return _read(path) if path.exists() else None


def _run(folder: pathlib.Path, ranks: int) -> int:
    # The ranks import the same modules as this program.
    environment = mpiexec_environment(ranks)
    environment["PYTHONPATH"] = os.pathsep.join(p or os.getcwd() for p in sys.path)
    environment["PYTHONUNBUFFERED"] = "1"
    program = "from renga.launch.function import run_rank; run_rank()"
    run_rank = [sys.executable, "-c", program, str(folder)]
    command = [*mpiexec_command(ranks), *child_command(signal.SIGKILL, run_rank)]
    with (
        open(folder / "mpiexec", "wb") as notes,
        subprocess.Popen(
            child_command(signal.SIGTERM, command),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=notes,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            _echo(process.stdout)
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def _echo(stream: IO[bytes]) -> None:
    # In small pieces, so that a progress bar moves.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while piece := os.read(stream.fileno(), 1 << 16):
        sys.stdout.write(decoder.decode(piece).replace("\0", ""))
        sys.stdout.flush()


def _raise_failure(folder: pathlib.Path, ranks: int, code: int) -> None:
    # The other ranks fail because of the first.
    failures = sorted(folder.glob("error.*"), key=lambda path: path.stat().st_mtime_ns)
    if failures:
        rank = int(failures[0].suffix[1:])
        error = _read(failures[0]).unpack()
        raise with_prefix(error, f"rank {rank}") from error.__cause__
    notes = [(folder / "mpiexec").read_text(errors="replace")]
    for rank in range(1, ranks):
        output = folder / f"output.{rank}"
        if output.exists() and output.stat().st_size > 0:
            notes.append(f"rank {rank}:\n{output.read_text(errors='replace')}")
    raise RuntimeError(f"launch: mpiexec ended with code {code}\n" + "\n".join(notes))


def run_rank() -> None:
    """Runs one rank of ``launch``; the folder is the only argument of the process."""
    folder = pathlib.Path(sys.argv[1])
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    # Rank 0 writes where mpiexec writes: that sends on whole lines only, and the user
    # would see no prompt of input().
    shown = f"/proc/{os.getppid()}/fd/1"
    kept = folder / f"output.{rank}"
    output = os.open(kept if rank > 0 else shown, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup(stream)  # if mpiexec's were closed, it would close the input, too
        os.dup2(output, stream)
    try:
        function, args, kwargs = _read(folder / "call")
        _write(folder / f"result.{rank}", function(*args, **kwargs))
    except SystemExit:
        raise
    except BaseException as error:
        _write(folder / f"error.{rank}", pack(error))
        # The other ranks do not know of the failure yet, and would wait.
        os._exit(1)


def _write(path: pathlib.Path, value: Any) -> None:
    unfinished = path.with_name(f"unfinished-{path.name}")
    unfinished.write_bytes(pickling.dumps(value))
    unfinished.rename(path)


def _read(path: pathlib.Path) -> Any:
    return pickle.loads(path.read_bytes())
