"""The commands of the program renga that start no ranks of a script's."""

import pathlib
import re
import sys

import numpy
import pytest

import renga
from renga.cli import demo, main
from renga.cli.demo import draw_digits


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"renga {renga.__version__}\n"


def test_cmakedir_is_beside_the_libraries(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--cmakedir"])
    assert ended.value.code == 0
    found = pathlib.Path(capsys.readouterr().out.strip())
    assert found == pathlib.Path(renga._core.__file__).parent / "cmake"


def test_a_command_is_required(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "required: command" in capsys.readouterr().err


def test_info_describes_the_machine(capsys):
    assert main(["info"]) == 0
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["renga"] == renga.__version__
    assert "avx2" in lines["CPU"]  # nothing less is supported on x86-64
    assert "cpu" in lines["Devices"]
    assert re.search(r"\d+\.\d+|not available", lines["MPI"])


def test_doctor_says_what_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor"]) == 2
    assert "pip install 'renga[mpi]'" in capsys.readouterr().err


def test_doctor_ends_with_the_status_of_its_ranks(monkeypatch, tmp_path):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text("#!/bin/sh\nexit 3\n")
    mpiexec.chmod(0o755)
    assert main(["doctor"]) == 3


@pytest.mark.parametrize("options", [["--ranks", "0"], ["--write", "none/a.json"]])
def test_doctor_names_what_is_wrong(options, monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", *options]) == 2
    assert f"got {options[1]!r}".replace("'0'", "0") in capsys.readouterr().err


def test_demo_without_mpi(monkeypatch, capsys):
    def launch(*args, **kwargs):
        raise ImportError("launch: there is no mpiexec here")

    monkeypatch.setattr(renga, "launch", launch)
    monkeypatch.setattr(demo, "train", lambda ranks, epochs: (1.0, 0.95, {}))
    monkeypatch.setattr(demo, "_difference", lambda a, b: 0.0)
    assert main(["demo"]) == 0
    assert "left out: launch: there is no mpiexec" in capsys.readouterr().out


@pytest.mark.parametrize("epochs", ["-2", "0", "two"])
def test_demo_refuses_numbers_of_epochs(epochs, capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--epochs", epochs])
    assert f"expected a positive number, got {epochs}" in capsys.readouterr().err


def test_demo_learns():
    _, accuracy, parameters = demo.train(1, epochs=2)
    assert accuracy > 0.3  # by chance it would be 0.1
    assert set(parameters) >= {"/predictor/conv1/W", "/predictor/fc/b"}


def test_drawn_digits_look_like_their_labels():
    images, labels = draw_digits(500, seed=3)
    assert images.shape == (500, 1, 16, 16) and images.dtype == numpy.float32
    assert set(labels) == set(range(10))
    # An eight has more dots than a one.
    assert images[labels == 8].mean() > images[labels == 1].mean() + 0.05
    again, _ = draw_digits(500, seed=3)
    numpy.testing.assert_array_equal(images, again)
