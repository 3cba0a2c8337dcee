"""``chainermn.global_except_hook``."""


def add_hook() -> None:
    """Does nothing: communicators of processes end the job after an exception."""
