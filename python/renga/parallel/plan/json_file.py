"""Files of plans and of costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from renga.core.types import Path
from renga.serializers.atomic import atomic_write


def write_json(path: Path, fields: Mapping[str, object]) -> None:
    """Writes an object as JSON, atomically."""
    with atomic_write(path, "w") as file:
        json.dump(fields, file, indent=1, sort_keys=True)


def read_json(name: str, path: Path) -> dict[str, Any]:
    """The object in a JSON file; ``name`` is for errors.

    Raises:
        ValueError: the file holds none.
    """
    with open(path, encoding="utf-8") as file:
        try:
            fields = json.load(file)
        except ValueError as error:
            raise ValueError(f"{name}: expected JSON in {path}, got {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{name}: expected an object in {path}")
    return fields
