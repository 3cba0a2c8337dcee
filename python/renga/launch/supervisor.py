"""Goes on with the ranks that are left when some fail, and with more when there are."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from renga.launch.job import LaunchJob
from renga.launch.plan import LaunchPlan
from renga.launch.switchboard import Switchboard

_TICK_SECONDS = 0.05
# Ranks that cannot be started now may be in so many seconds.
_RETRY_SECONDS = 60.0
_START_SECONDS = 300.0  # until all ranks of a job have called
_END_SECONDS = 15.0


def supervise(plan: LaunchPlan, restarts: int) -> int:
    """Runs a job to its end, or until it has failed more than ``restarts`` times.

    Returns:
        The status: 0, or that of the last job.
    """
    previous = signal.signal(signal.SIGTERM, _raise_exit)
    try:
        with Switchboard(not (plan.hosts or plan.by_srun)) as switchboard:
            return Supervisor(plan, restarts, switchboard).run()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGTERM, previous)


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class Supervisor:
    """One job trains; another one, of the size of what comes next, stands by.

    What comes next is the largest size if fewer ranks than that train, otherwise one
    rank less. A job that stands by has started its processes, imported renga, and run
    the program up to ``elastic.run``: it goes on at once when a rank of the other has
    failed. If it is larger than the other one, that is asked to end after its next
    checkpoint.

    Args:
        plan: the program and its ranks.
        restarts: how many failures are survived.
        switchboard: where the ranks call.
    """

    def __init__(
        self, plan: LaunchPlan, restarts: int, switchboard: Switchboard
    ) -> None:
        self._plan = plan
        self._restarts = restarts
        self._switchboard = switchboard
        self._failures = 0
        self._numbers = 0
        self._is_elastic = False
        self._is_leaving = False
        self._down: set[str] = set()
        self._retiring: list[LaunchJob] = []
        self._active = self._start(plan.count.most)
        self._standby: LaunchJob | None = None
        self._failed_standbys = 0  # since one was ready
        self._no_standby_before = 0.0
        self._no_growth_before = 0.0
        self._say(plan.describe(self._active.size, plan.ranks_by_host(plan.count.most)))

    def run(self) -> int:
        """Returns the status of the program."""
        try:
            while True:
                self._switchboard.serve(_TICK_SECONDS)
                status = self._step()
                if status is not None:
                    return status
        finally:
            self._end_all()

    def _step(self) -> int | None:
        """Reacts to what has happened; the status at the end."""
        active = self._active
        self._retiring = [job for job in self._retiring if not self._is_over(job)]
        # Two jobs never train at the same time, nor write checkpoints.
        if not any(job.living for job in self._retiring):
            active.go()
        if active.has_left:
            self._succeed()
        elif active.has_failed or active.is_stuck(_START_SECONDS):
            if self._failures == self._restarts:
                return self._status_of_failure()
            self._failures += 1
            if self._plan.hosts:
                self._switchboard.serve(_TICK_SECONDS)  # ranks that died together
                self._note_hosts_that_are_down()
            ranks = ", ".join(map(str, active.failed_ranks)) or "none of the ranks"
            active.kill()
            self._succeed()
            self._say(
                f"rank {ranks} of {active.size} failed; going on with "
                f"{self._active.size} (restart {self._failures} of {self._restarts})"
            )
        elif active.status == 0:
            return 0
        else:
            self._care_for_standby()
        return None

    def _succeed(self) -> None:
        """The job that stands by becomes the one that trains."""
        old, new = self._active, self._standby
        if new is None or new.has_failed:
            if new is not None:
                self._retire(new)
            new = self._start(self._next_size(grows=False))
        self._standby, self._is_leaving = None, False
        self._active = new
        self._retiring.append(old)

    def _care_for_standby(self) -> None:
        active, standby, now = self._active, self._standby, time.monotonic()
        started = [m.state != "joined" for m in active.members.values()]
        if started != [True] * active.size:
            return
        self._is_elastic = self._is_elastic or any(
            member.state == "waiting" for member in active.members.values()
        )
        if standby is None:
            grows = self._can_grow(now)
            needed = self._failures < self._restarts or grows
            if needed and now >= self._no_standby_before:
                self._standby = self._start(self._next_size(grows))
            return
        if self._is_elastic:
            standby.prepare()
        is_late = standby.is_stuck(_START_SECONDS)
        is_small = standby.size < active.size and self._can_grow(now)
        if standby.has_failed or is_late:
            self._failed_standbys += 1
            if standby.size > active.size:
                self._no_growth_before = now + _RETRY_SECONDS
            elif self._failed_standbys > 1:
                self._no_standby_before = now + _RETRY_SECONDS
        if standby.has_failed or is_late or is_small:
            self._standby = None
            self._retire(standby)
        elif standby.is_ready:
            self._failed_standbys = 0
            if standby.size > active.size and self._is_elastic and not self._is_leaving:
                self._is_leaving = True
                active.send("leave")

    def _can_grow(self, now: float) -> bool:
        is_full = self._active.size == self._plan.count.most
        return not is_full and now >= self._no_growth_before

    def _next_size(self, grows: bool) -> int:
        count = self._plan.count
        size = max(count.least, self._active.size - 1)
        hosts = self._plan.hosts
        slots = sum(n for host, n in hosts.items() if host not in self._down)
        if hosts and slots < count.least:
            self._down.clear()
        elif hosts:
            size = min(size, slots)
        return count.most if grows else size

    def _note_hosts_that_are_down(self) -> None:
        """Hosts of which no rank lives any more, or has called, of either job."""
        jobs = [self._active, *[self._standby] * bool(self._standby)]
        known = [job for job in jobs if job is not None and job.members]
        hosts = {host for job in known for host in job.host_of}
        alive = {job.host_of[m.rank] for job in known for m in job.living}
        if alive:
            self._down |= hosts - alive

    def _start(self, size: int) -> LaunchJob:
        plan = self._plan
        self._numbers += 1
        # Growing means to try all of them.
        without = [] if size == plan.count.most else sorted(self._down)
        hosts = plan.ranks_by_host(size, without)
        program = ["-m", "renga.launch.member", *plan.program]
        environment = plan.environment() | self._switchboard.variable(self._numbers)
        command = plan.command(size, program, hosts, environment)
        job = LaunchJob(self._numbers, size, hosts, command, environment)
        self._switchboard.add(job)
        return job

    def _retire(self, job: LaunchJob) -> None:
        job.kill()
        self._retiring.append(job)

    def _is_over(self, job: LaunchJob) -> bool:
        return job.has_ended() and not self._switchboard.is_heard(job)

    def _status_of_failure(self) -> int:
        """Lets mpiexec end the other ranks, and tells its status."""
        self._wait_for([self._active])
        self._active.show_kept()
        return self._active.status or 1

    def _end_all(self) -> None:
        jobs = [*self._retiring, self._active, *[self._standby] * bool(self._standby)]
        for job in jobs:
            if job is not None:
                job.kill()
        self._wait_for([job for job in jobs if job is not None])

    def _wait_for(self, jobs: list[LaunchJob]) -> None:
        limit = time.monotonic() + _END_SECONDS
        while not all(self._is_over(job) for job in jobs):
            self._switchboard.serve(_TICK_SECONDS)
            if time.monotonic() > limit:
                for job in jobs:
                    job.kill()
                    job.process.kill()
                return

    def _say(self, text: str) -> None:
        print(f"renga run: {text}", file=sys.stderr, flush=True)
