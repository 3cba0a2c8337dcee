"""The reference can be built without a warning, and its examples are true."""

import doctest
import importlib
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import renga
from tests.docs.test_prose import fragments, parts

DOCS = pathlib.Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "scripts"))
make_reference = importlib.import_module("make_reference")
sys.path.remove(str(DOCS / "scripts"))


def test_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    source = tmp_path / "docs"
    shutil.copytree(DOCS, source)
    shutil.copy(DOCS.parent / "README.md", tmp_path)
    programs = "examples/cpp"  # which a page includes
    shutil.copytree(DOCS.parent / programs, tmp_path / programs)
    plain = ["-D", "html_theme=basic", "-D", "smartquotes=0"]
    commands = [
        ["docs/scripts/make_reference.py", "docs/reference"],
        # All pages are read and written, by a theme that takes half of the time and
        # without curved quotation marks.
        ["-m", "sphinx", "-q", "-W", "--keep-going", *plain, "docs", "html"],
    ]
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    links = (tmp_path / "html/reference/renga.links.html").read_text()
    assert "Convolution2D" in links and "in_channels" in links


def docstrings():
    """Every docstring of the reference, as doctest finds it."""
    finder, seen = doctest.DocTestFinder(exclude_empty=False), set()
    for name in make_reference.MODULES:
        module = importlib.import_module(name)
        for member in make_reference.public(module):
            obj = getattr(module, member)
            if id(obj) in seen or not (inspect.isclass(obj) or inspect.isfunction(obj)):
                continue
            seen.add(id(obj))
            yield from finder.find(obj, member, module=sys.modules[obj.__module__])


DOCSTRINGS = list(docstrings())
EXAMPLES = [each for each in DOCSTRINGS if each.examples]
PAGES = [page for page in DOCS.rglob("*.md") if ">>> " in page.read_text("utf-8")]


def test_there_are_examples():
    assert {"Chain", "Sequential", "grad", "export"} <= {each.name for each in EXAMPLES}


def test_docstrings_have_no_fragments():
    found = {
        f"{each.name}: {sentence}"
        for each in DOCSTRINGS
        if "._" not in each.name
        for paragraph in parts(each.docstring or "")[0]
        for sentence in fragments(paragraph)
    }
    assert len(DOCSTRINGS) > 1000 and not found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_example(example):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    text = []
    runner.run(example, out=text.append)
    assert runner.failures == 0, "".join(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_pages(page):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    examples = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert examples.attempted and not examples.failed


def test_the_names_put_beside_pytorchs_exist():
    scope = {
        "renga": renga,
        "F": renga.functions,
        "L": renga.links,
        "iterators": renga.iterators,
    }
    text = (DOCS / "coming_from_pytorch.md").read_text(encoding="utf-8")
    ours = [line.split("|")[2] for line in text.splitlines() if line.startswith("| `")]
    names = re.findall(r"\b(?:renga|F|L|iterators)(?:\.\w+)+", " ".join(ours))
    assert len(names) > 40
    for name in names:
        first, *rest = name.split(".")
        obj = scope[first]
        for part in rest:
            assert hasattr(obj, part), name
            obj = getattr(obj, part)
