"""``python -m renga.launch`` is ``renga run``."""

import sys

from renga.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
