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
    # As if libxsimd-dev was not installed.
    command += ["-DXSIMD_INCLUDE_DIR=XSIMD_INCLUDE_DIR-NOTFOUND"]
    command += ["-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert "renga: expected xsimd's headers, got none" in text
    assert "`apt-get install libxsimd-dev`" in text
