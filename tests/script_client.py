"""Asks the server of scripts to run one, and waits for its end.

``python script_client.py ADDRESS REQUEST`` is what mpiexec starts for a rank. It
imports little, to begin at once.
"""

import json
import os
import socket
import sys


def ask(address, request, streams):
    """The status of the script of a request, negative if a signal ended it.

    Args:
        address: the name of the server's socket.
        streams: the descriptors of its input, its output and its errors.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + address)
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], streams)
        with connection.makefile() as answers:
            return int(answers.readline())


def main():
    address, request = sys.argv[1:]
    whole = {**json.loads(request), "env": dict(os.environ)}
    status = ask(address, whole, (0, 1, 2))
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
