"""Availability of ``chainer.testing.training`` and other testing modules: always."""


def is_available() -> bool:
    """True: nothing else has to be installed."""
    return True


def check_available() -> None:
    """Does nothing: nothing else has to be installed."""


def get_error() -> None:
    """None: there was no error."""
