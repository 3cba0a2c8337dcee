"""Sphinx: the pages of this folder and a reference made of the docstrings."""

import re

import renga

project = "renga"
author = "the renga authors"
project_copyright = "2026, the renga authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
html_theme = "furo"
version = renga.__version__
html_title = f"renga {version}"
exclude_patterns = ["_build"]

myst_heading_anchors = 3
# Pages link to files of the repository as readers of the repository see them.
suppress_warnings = ["myst.xref_missing"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_use_type_comments = False  # there are none, and to look for them takes long
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "params_style"), "Source"]

_LITERAL = re.compile(r"(``.*?``)", re.DOTALL)


def _escape(app, what, name, obj, options, lines):
    """Stars and bars outside of literals mean themselves in our docstrings."""
    parts = _LITERAL.split("\n".join(lines))
    parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")


def setup(app):
    # Before napoleon, which adds marks of its own.
    app.connect("autodoc-process-docstring", _escape, priority=0)
