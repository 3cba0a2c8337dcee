"""launch: functions run on several ranks."""

import os
import pty
import subprocess
import sys

import pytest

from renga.launch import launch, mpiexec_environment

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.skipif(
    "OMPI_COMM_WORLD_RANK" in os.environ, reason="ranks do not launch ranks"
)


def test_open_mpis_settings_are_defaults(monkeypatch):
    monkeypatch.delenv("OMPI_MCA_btl", raising=False)
    assert mpiexec_environment(2)["OMPI_MCA_btl"] == "^ofi"
    monkeypatch.setenv("OMPI_MCA_btl", "self,sm")
    assert mpiexec_environment(2)["OMPI_MCA_btl"] == "self,sm"


def test_output_and_result_of_rank_0(capsys):
    offset = 10

    def train(scale, shift=0):
        from renga.communicators import create_communicator

        comm = create_communicator("mpi")
        print(f"rank {comm.rank} of {comm.size}")
        return comm.rank, offset + scale * comm.allreduce_obj(comm.rank) + shift

    assert launch(train, 2, shift=1, ranks=3) == (0, 17)
    assert capsys.readouterr().out == "rank 0 of 3\n"
    assert launch(train, 1, ranks=2, gather=True) == [(0, 11), (1, 11)]


def test_output_is_streamed(tmp_path):
    # The rank ends only after its first output was read.
    heard = tmp_path / "heard"
    program = f"""
import sys
from renga.launch import launch

def act():
    import os, time
    print("listen", end="", flush=True)
    for _ in range(200):
        if os.path.exists({str(heard)!r}):
            return
        time.sleep(0.05)
    raise TimeoutError("no reader")

launch(act, ranks=1)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.read(6) == "listen"
        heard.touch()
    assert process.returncode == 0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_rank_0_asks_and_reads_the_answer(is_terminal):
    program = """
from renga.launch import launch
print(launch(input, "name? ", ranks=1).upper())
"""
    command = [sys.executable, "-c", program]
    answers, stdin = os.pipe()[::-1]
    if is_terminal:
        answers, terminal = pty.openpty()
        # The first process of a session that opens a terminal controls it.
        command = ["sh", "-c", f'exec "$0" "$@" < {os.ttyname(terminal)}', *command]
    with subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.read(6) == b"name? "
        os.write(answers, b"a name\n")
        assert process.stdout.read() == b"A NAME\n"
    assert process.returncode == 0


def test_the_first_failure_is_raised_with_its_traceback():
    class NoData(LookupError):
        def __init__(self, name, *, step):
            super().__init__(f"{name} in step {step}")
            self.step = step

    def train():
        from renga.communicators import create_communicator

        comm = create_communicator("mpi")
        if comm.rank == 1:
            raise NoData("file", step=3)
        comm.barrier()

    with pytest.raises(NoData, match="rank 1: file in step 3") as raised:
        launch(train, ranks=2)
    assert raised.value.step == 3
    assert 'raise NoData("file", step=3)' in str(raised.value.__cause__)


def test_exceptions_that_cannot_be_pickled_are_reported():
    def act():
        class Odd(Exception):
            def __reduce__(self):
                raise TypeError("stays here")

        raise Odd("shape")

    with pytest.raises(RuntimeError, match="rank 0: Odd: shape"):
        launch(act, ranks=1)


def test_a_killed_rank_is_reported_with_its_output():
    def act():
        import os
        import signal

        from renga.communicators import create_communicator

        comm = create_communicator("mpi")
        if comm.rank == 1:
            print("last words")
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    with pytest.raises(RuntimeError, match=r"(?s)rank 1.*signal 9.*last words"):
        launch(act, ranks=2)


def test_ranks_do_not_launch_ranks(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    with pytest.raises(RuntimeError, match="a rank of an MPI job already"):
        launch(print)


def test_no_ranks_are_refused():
    with pytest.raises(ValueError, match="ranks: expected at least 1, got 0"):
        launch(print, ranks=0)


def test_a_missing_cloudpickle_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ImportError, match=r"no cloudpickle .* 'renga\[mpi\]'"):
        launch(print, ranks=2)


def test_a_missing_mpiexec_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r"pip install 'renga\[mpi\]'"):
        launch(print, ranks=1)
