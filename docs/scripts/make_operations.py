"""Prints docs/operations.md from the core's own list of operations."""

from renga import _core


def reference() -> str:
    """The page as Markdown."""
    lines = [
        "# Operations of the core",
        "",
        "`renga._core.ops`, from the entries that also make the binding and the tests.",
        "`renga.functions` has these and more, with Chainer's signatures.",
        "",
        "| operation | shapes | what it computes |",
        "|---|---|---|",
    ]
    for name, shapes, summary, arguments in _core.ops.entries:
        text = summary.replace("|", "\\|")
        lines.append(f"| `{name}({', '.join(arguments)})` | `{shapes}` | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
