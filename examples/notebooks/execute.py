"""Runs the notebooks beside this file and keeps what they show in them.

python execute.py [NAME …]    # all unless named
"""

import sys
from pathlib import Path

import nbclient
import nbformat


def main():
    here = Path(__file__).resolve().parent
    for path in sorted(here.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(here)}}
        nbclient.NotebookClient(notebook, timeout=1800, resources=resources).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times, new in every run
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
