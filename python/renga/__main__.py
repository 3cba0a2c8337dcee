"""``python -m renga``: the program ``renga`` where it is not on the PATH."""

import sys

from renga.cli import main

if __name__ == "__main__":
    sys.exit(main())
