"""Links between pages, and the files and folders that pages name, exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")])
FOLDERS = "csrc|python|communicators|links|extensions|examples|tests|docs|cmake"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub and MyST write them in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {
        re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page(page):
    text = page.read_text(encoding="utf-8")
    for path, anchor in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)", text):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(rf"[`\s]((?:{FOLDERS})/[\w/.\-*]+)", text)
    missing = [name for name in named if not any(ROOT.glob(name.rstrip("./")))]
    assert not missing
