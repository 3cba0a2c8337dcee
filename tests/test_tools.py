"""Each tool says what it does, and pages name no target or tool that does not exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = sorted(path.name for path in (ROOT / "tools").iterdir() if path.is_file())
TARGETS = "demo test develop check bench docs wheel gpu".split()


@pytest.mark.parametrize("tool", TOOLS)
def test_help_says_how_a_tool_is_called(tool):
    command = [ROOT / "tools" / tool, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    first, blank, usage = done.stdout.splitlines()[:3]
    assert re.fullmatch(r"[A-Z].*[.:,]", first)
    assert not blank
    assert usage.startswith(f"    tools/{tool}")


def test_the_makefile_lists_its_targets():
    lines = (ROOT / "Makefile").read_text().split("\n\n")[0]
    assert re.findall(r"^#   make (\w+)", lines, re.MULTILINE) == TARGETS


def test_pages_name_targets_and_tools_that_exist():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*")]
    missing = []
    for page in pages:
        if page.name == "CHANGELOG.md" or page.is_dir() or "reference" in page.parts:
            continue
        text = page.read_text()
        named = re.findall(r'(?:[`"]| {4}|&& |run: )make ([a-z][a-z-]*)', text)
        missing += [
            f"{page.name}: make {name}" for name in named if name not in TARGETS
        ]
        named = re.findall(r"\btools/([a-z][a-z0-9-]*)", text)
        missing += [f"{page.name}: tools/{name}" for name in named if name not in TOOLS]
    assert not missing


def test_tests_that_sanitizers_leave_out_exist():
    text = (ROOT / "tests/sanitizers/run").read_text()
    files = dict(re.findall(r"^ +(\w+)=(tests/\S+\.py)$", text, re.MULTILINE))
    left_out = re.findall(r"(?:\$(\w+)|(tests/[\w/]+\.py))::(\w+)", text)
    missing = [
        test
        for name, path, test in left_out
        if f"def {test}(" not in (ROOT / (path or files[name])).read_text()
    ]
    assert left_out and not missing
