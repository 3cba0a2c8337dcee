"""Prints docs/operations.md from the core's own lists."""

from renga import _core


def reference() -> str:
    """The page as Markdown."""
    lines = [
        "# Operations of the core",
        "",
        "`renga._core.ops`, from the entries that also make the binding and the tests.",
        "`renga.functions` has these and more, with Chainer's signatures.",
        "",
        "The locality says from which elements of the operands (parameters aside) an",
        "element of the results is computed: those at its position (pointwise), of its",
        "sample and channel (planewise), its channel (channelwise), its sample",
        "(batchwise), or at its position along all axes but `axis` (along axis).",
        "",
        "| operation | shapes | locality | what it computes |",
        "|---|---|---|---|",
    ]
    for op in _core.ops.entries:
        text = op.summary.replace("|", "\\|")
        call = f"{op.name}({', '.join(op.arguments)})"
        locality = op.locality.name.replace("none", "").replace("_", " ")
        lines.append(f"| `{call}` | `{op.shapes}` | {locality} | {text} |")
    lines += [
        "",
        "## Update rules",
        "",
        "`renga._core.optimizers`, which the classes of `renga.optimizers` call with a",
        "parameter `x` and its gradient. They change the parameter and the states.",
        "Options have the defaults that optimizers give them; those without one are",
        "computed.",
        "",
        "| rule | states | options | formula |",
        "|---|---|---|---|",
    ]
    for name, rule in _core.optimizers.entries.items():
        states = ", ".join(f"`{state}`" for state in rule.states)
        options = ", ".join(
            f"`{option} = {rule.defaults[option]:g}`"
            if option in rule.defaults
            else f"`{option}`"
            for option in rule.options
        )
        lines.append(f"| `{name}` | {states} | {options} | {rule.formula} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
