"""Unsupported CPUs are refused before the core is loaded."""

import subprocess
import sys

import pytest

from renga._runtime.before_core import NEEDED, check

V3 = (
    "processor\t: 0\nflags\t\t: fpu sse2 avx " + " ".join(NEEDED) + "\nbugs\t\t: none\n"
)


def test_x86_64_v3_is_enough() -> None:
    check(V3)


def test_missing_instruction_sets_are_named() -> None:
    with pytest.raises(ImportError, match="x86-64-v3, got one without avx2, fma$"):
        check(V3.replace(" avx2", "").replace(" fma", ""))


@pytest.mark.parametrize("text", ["", "processor\t: 0\nFeatures\t: fp asimd\n"])
def test_an_unknown_cpu_is_accepted(text: str) -> None:
    check(text)


def test_an_import_that_fails_later_ends_without_a_crash() -> None:
    # It leaves a thread that compiles oneDNN's kernels, for which exit must wait.
    program = "import sys; sys.modules['renga.core.backend'] = None; import renga"
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE)
    assert (done.returncode, b"renga.core.backend" in done.stderr) == (1, True)
