"""The diagnostics of `renga doctor`."""

import subprocess
import sys

import pytest

from renga import planning
from renga.communicators import doctor, local
from renga.launch import mpiexec_environment


def test_doctor_reports_checks_and_speed(tmp_path):
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    path = str(tmp_path / "cluster.json")
    done = subprocess.run(
        [sys.executable, "-m", "renga", "doctor", "--ranks", "2", "--write", path],
        env=mpiexec_environment(2),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cluster = planning.Cluster.load(path)
    assert cluster.ranks == 2 and cluster.stragglers > 0
    assert min(cluster.device.flops, cluster.device.bandwidth) > 1e7
    lines = done.stdout.partition("\n\nwritten to ")[0].splitlines()
    verdicts = {line[:16].strip(): line[16:25].strip() for line in lines[:7]}
    assert verdicts.pop("tiles") in ("ok", "warning")
    assert verdicts.pop("large counts") == "skipped"
    assert verdicts == dict.fromkeys(
        ["threads", "topology", "shared memory", "point to point", "collectives"], "ok"
    )
    assert any(line.startswith("0 - 1 ") and line.endswith("GB/s") for line in lines)
    assert all(line.count("*") == 1 for line in lines[-4:])


@pytest.mark.parametrize("size", [1, 3])
def test_what_threads_can_do_is_ok(size):
    findings = local.run(lambda comm: list(doctor.examine(comm)), ranks=size)
    assert findings == findings[:1] * size
    verdicts = {found.name: found.verdict for found in findings[0]}
    assert verdicts.pop("threads") == verdicts.pop("large counts") == "skipped"
    assert verdicts.pop("shared memory") == ("skipped" if size == 1 else "ok")
    assert verdicts == dict.fromkeys(
        ["topology", "point to point", "collectives"], "ok"
    )


def test_failure_on_one_rank_is_reported_on_all(monkeypatch):
    def fails_on_rank_1(comm, large):
        if comm.rank == 1:
            raise OSError("no cable")
        return "fine"

    monkeypatch.setattr(doctor, "CHECKS", {"cable": fails_on_rank_1})
    findings = local.run(lambda comm: list(doctor.examine(comm)), ranks=3)
    for found in findings:
        assert found == [doctor.Finding("cable", "FAILED", "rank 1: no cable")]
