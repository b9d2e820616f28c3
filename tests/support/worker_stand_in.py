"""What execnet starts in the place of a worker: hands its pipes to the template, and ends when the worker does.

`python worker_stand_in.py <address> … <code>`, where the code is what execnet has the worker run.
"""

import contextlib
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the worker
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(f"\0{sys.argv[1]}")
    socket.send_fds(connection, [sys.argv[-1].encode()], [0, 1, 2])
    with contextlib.suppress(ConnectionError):  # of a template that ended before it forked
        connection.recv(1)
