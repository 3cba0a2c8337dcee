"""Scripts of the course, run as a reader would who has no network."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

import pytest

from tests.scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run_offline(tmp_path: Path) -> Callable[..., SimpleNamespace]:
    """Runs a script with its files in tmp_path; the lines it prints and its log."""

    def run(script: str, *options: object) -> SimpleNamespace:
        pytest.importorskip("sklearn")
        options = "--out", tmp_path, *options
        # No server listens at this port, so no download begins.
        nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
        env = {**os.environ, **nowhere, "CHAINER_DATASET_ROOT": str(tmp_path)}
        done = run_script(EXAMPLES / script, *options, cwd=Path.cwd(), env=env)
        assert done.returncode == 0, done.stderr
        log = tmp_path / "log"
        return SimpleNamespace(
            lines=done.stdout.splitlines(),
            log=json.loads(log.read_text()) if log.exists() else [],
        )

    return run
