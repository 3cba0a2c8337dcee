"""Concept pages have short sentences, and their first screen answers a newcomer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCREEN = 50  # lines

# Each page has three questions, and the words of the first screen that answer them.
QUESTIONS = {
    "core.md": {
        "Is an ndarray copied?": "an ndarray is used in place",
        "Can gradients be differentiated?": "Gradients are operations too",
        "Where is the code of the core?": "It is C++20, in `csrc/`",
    },
    "devices.md": {
        "How do I train on a GPU?": "model.to_device(device)",
        "Are the results the same there?": "the same training on every device",
        "What can I run without a GPU?": "runs the sources of the CUDA kernels",
    },
    "parallel/communicators.md": {
        "How do I start ranks?": "renga run -n 2 sum.py",
        "Do all ranks get the same bits?": "on every rank, the same bits",
        "Do I need MPI to try it?": "ranks may be threads",
    },
    "parallel/distributed_training.md": {
        "What do I change in my script?": "create_communicator() # new",
        "How do I start it?": "renga run -n 2 first.py",
        "Is it the training of one process?": "compute what one process computes",
    },
    "parallel/pipeline.md": {
        "When do I use it?": "for models that do not fit on one rank",
        "Do I change my model?": "The model is written for a single process",
        "Is the result the same?": "The result is that of one process",
    },
    "parallel/model_parallel.md": {
        "Which strategy do I need?": "channel parallelism) and for images",
        "Do I change my model?": "copies an existing model and replaces the links",
        "Can one process load the file?": "they load on any number of ranks",
    },
    "parallel/planning.md": {
        "Do I change my model?": "The model stays as it is",
        "Can I trust a prediction?": "are then timed on the real ranks",
        "When is it worth it?": "layers with many weights gain most",
    },
    "parallel/asynchronous.md": {
        "When do I need it?": "where one rank is slow at times",
        "What do I change?": "takes the place of `create_multi_node_optimizer`",
        "Which method?": "| the network is slow | local SGD, DiLoCo |",
    },
    "parallel/compression.md": {
        "When does it help?": "joined by a slow network",
        "Which compressor do I take?": "| `Auto()` | the fastest of no compression",
        "Do the ranks stay equal?": "All ranks have the same bits",
    },
    "parallel/elastic.md": {
        "What is left after a failure?": "go on from the last checkpoint",
        "How do I start such a job?": "renga run -n 1:2 train.py",
        "Which data does it continue with?": "each epoch has every example once",
    },
    "parallel/transformers.md": {
        "What is divided?": "it divides weights and optimizer states",
        "Do I change my model?": 'model = parallelize(gpt, comm, "channel", texts)',
        "What is sent?": "an all-reduce of (N, L, E)",
    },
}

# Pages that are generated, tables and notes of measurements. Pages that are rewritten
# leave this list.
OTHERS = (
    *("operations", "cpp/concepts", "parallel/scale"),
    *("measurements/", "reference/", "_build/"),
)
PAGES = [str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md"))]
PAGES = [name for name in PAGES if not name.startswith(OTHERS)]

_FRAGMENT = re.compile(r"(?:Of|With which|What|The same)\b[^?]*$", re.S)


def plain(text: str) -> str:
    """The words that a reader sees: code counts as one word, a link as its text."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def parts(page: str) -> tuple[list[str], list[str]]:
    """The paragraphs of a page, items of lists too, and the cells of its tables."""
    page = re.sub(r"^ *```.*?^ *```$", "\n", page, flags=re.M | re.S)
    cells = []
    for row in re.findall(r"^\|.*$", page, re.M):
        if not re.fullmatch(r"[|:\- ]+", row):
            # A bar within code belongs to the code.
            cells += plain(row).strip("| ").split("|")
    text = re.sub(r"^(?:\||#| {4}).*$", "\n", page, flags=re.M)
    text = re.sub(r"^(?:[-*]|\d+\.) ", "\n\n", text, flags=re.M)
    paragraphs = [" ".join(plain(p).split()) for p in re.split(r"\n\s*\n", text)]
    return [p for p in paragraphs if p], [cell.strip() for cell in cells]


def sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?:]) +(?=[A-Z])", paragraph)


def fragments(paragraph: str) -> list[str]:
    return [s for s in sentences(paragraph) if _FRAGMENT.match(s)]


def faults(page: str) -> list[str]:
    """What is too long on a page, and what is no sentence."""
    paragraphs, cells = parts(page)
    every = [s for p in paragraphs for s in sentences(p)]
    words = sum(len(s.split()) for s in every)
    found = [
        f"a paragraph of more than 120 words: {p}"
        for p in paragraphs
        if len(p.split()) > 120
    ]
    found += [
        f"a cell of more than 25 words: {c}" for c in cells if len(c.split()) > 25
    ]
    found += [f"no sentence: {s}" for p in paragraphs for s in fragments(p)]
    if words > 16 * len(every):
        found.append(f"sentences of {words / len(every):.1f} words on average, not 16")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_sentences_paragraphs_and_cells_are_short(name):
    assert not faults((DOCS / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_first_screen_answers_three_questions(name):
    lines = (DOCS / name).read_text(encoding="utf-8").splitlines()[:SCREEN]
    screen = " ".join(" ".join(lines).split())
    assert len(QUESTIONS[name]) == 3
    for question, answer in QUESTIONS[name].items():
        assert answer in screen, question


def test_decisions_are_few_and_short():
    _, *records = (DOCS / "decisions.md").read_text(encoding="utf-8").split("\n## ")
    assert 0 < len(records) <= 25
    assert max(record.strip().count("\n") for record in records) <= 10


def test_faults_are_found():
    table = "| a | b |\n|---|---|\n| c | d |\n"
    assert (
        faults(f"# A page\n\nRanks wait. `f(x)` calls [them](a.md).\n\n{table}") == []
    )
    assert "no sentence" in faults("Of the ranks, one waits.")[0]
    assert "no sentence" in faults("It runs.\n\n- What is sent.")[0]
    assert faults("## Why?\n\nWhat is sent? Numbers.") == []
    assert "on average" in faults("word " * 17 + ".")[0]
    assert "paragraph" in faults("A word. " * 61)[0]
    assert "cell" in faults(f"| a |\n|---|\n| {'word ' * 26} |\n\nEnd.")[0]
