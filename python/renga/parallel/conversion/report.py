"""What ``parallelize`` prints: which links are replaced, and what they communicate."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.link import Link
from renga.parallel.conversion.replacement import LinkReplacement


def report(
    model: Link, replacements: Sequence[LinkReplacement], strategy: str, size: int
) -> str:
    """A line for each link with parameters, and what a rank receives in all."""
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}
    lines = [f"parallelize: {strategy}, {size} ranks"]
    width = max([len(paths[id(r.link)]) for r in replacements], default=0)
    for link, new, reason, cost in replacements:
        path = paths[id(link)]
        if new is None:
            lines.append(f"  {path:{width}}  {type(link).__name__} kept: {reason}")
            continue
        algorithm = getattr(new, "algorithm", None) or "local"
        layouts = f"{getattr(new, 'input_layout', 'replicated')} -> "
        layouts += getattr(new, "output_layout", "replicated")
        expected = "communication is not known"
        if cost is not None:
            milliseconds = cost.communication * 1e3
            expected = f"{cost.bytes / 1e6:.2f} MB, {milliseconds:.2f} ms"
        what = f"{type(new).__name__}, {algorithm}, {layouts}"
        lines.append(f"  {path:{width}}  {what}, {expected}")
    return "\n".join([*lines, _total(replacements)])


def _total(replacements: Sequence[LinkReplacement]) -> str:
    """What a rank receives in all, as far as it is known from an example."""
    costs = [r.cost for r in replacements if r.cost is not None]
    unknown = sum(r.replacement is not None and r.cost is None for r in replacements)
    if unknown and not costs:
        return "  pass an example of the input to predict the communication"
    received = sum(cost.bytes for cost in costs) / 1e6
    milliseconds = sum(cost.communication for cost in costs) * 1e3
    total = f"  each rank receives {received:.1f} MB per step, about "
    total += f"{milliseconds:.1f} ms"
    if unknown:
        total += f", and what {unknown} links need that the example did not reach"
    return total
