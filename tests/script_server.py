"""Runs scripts in forks of this process, which has imported what takes longest.

``scripts.py`` starts it, and ``script_client.py`` sends a request for each script: a
line of JSON, with the script's streams.
"""

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys

import renga.chainer.__main__
import renga.distributed
import renga.testing  # noqa: F401
from tests.short_measurements import shorten

with contextlib.suppress(ImportError):
    importlib.import_module("matplotlib.pyplot")

shorten()


def next_request(listener):
    """The request of this process, which is a fork for it alone."""
    while True:
        ready, _, _ = select.select([sys.stdin, listener], [], [])
        if sys.stdin in ready:
            sys.exit()  # pytest has ended
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return answered(connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def answered(connection):
    """The request of a connection, in a fork whose status this process answers."""
    text, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    child = os.fork()
    for number, stream in enumerate(streams):
        if child == 0:
            os.dup2(stream, number)
        os.close(stream)
    if child == 0:
        connection.close()
        return json.loads(text)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([connection, ended], [], [])
    if ended not in ready:  # who has asked is gone
        os.kill(child, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(b"%d\n" % status)
    os._exit(0)


def main():
    request = next_request(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    script, *options = request["command"]
    if request["chainer"]:
        sys.argv = ["renga.chainer", script, *options]
        renga.chainer.__main__.main()
    else:
        sys.argv, sys.path[0] = [script, *options], os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
