"""What a build says when something that it needs is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = [shutil.which(name) for name in ("cmake", "ninja", "g++")]


@pytest.mark.skipif(None in TOOLS, reason="needs cmake, ninja and g++")
def test_missing_headers_are_named(tmp_path):
    pytest.importorskip("pybind11")
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", "-DRENGA_MPI=OFF"]
    # The options act as if libxsimd-dev was not installed.
    command += ["-DXSIMD_INCLUDE_DIR=XSIMD_INCLUDE_DIR-NOTFOUND"]
    command += ["-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert "renga: expected xsimd's headers, got none" in text
    assert "`apt-get install libxsimd-dev`" in text


@pytest.mark.skipif(None in TOOLS, reason="needs cmake, ninja and g++")
def test_a_build_with_tests_compiles_nothing_again(tmp_path):
    """`make test` and `make docs` compile what `make demo` has not compiled."""
    commands = []
    for tests in ("OFF", "ON"):
        configure = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja"]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", "-DSKBUILD_STATE=wheel"]
        configure += [f"-DRENGA_TESTS={tests}", f"-DRENGA_CUDA_STANDIN={tests}"]
        done = subprocess.run(list(map(str, configure)), capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("needs what a build with tests needs")
        listed = subprocess.run(
            ["ninja", "-C", tmp_path, "-t", "commands", "all"],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = listed.stdout.splitlines()
        commands.append({line for line in lines if " -c " in line})
    without, with_tests = commands
    assert without
    assert without <= with_tests
