"""What execnet starts in the place of a worker: hands its pipes to the template, and ends when the worker does.

`python worker_stand_in.py <address> … <code>`, where the code is what execnet has the worker run. Where the template
has ended without a worker for it, it becomes the worker that execnet would have started: the run goes on.
"""

import contextlib
import os
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the worker
has_begun = False
with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(ConnectionError):
    connection.connect(f"\0{sys.argv[1]}")
    socket.send_fds(connection, [sys.argv[-1].encode()], [0, 1, 2])
    has_begun = bool(connection.recv(1))
    while connection.recv(1):
        pass
if not has_begun:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
