"""What the peer of a TCP connection has taken, by the acknowledgements that the kernel has counted.

The write buffer of a transport says it only roughly: the kernel takes more once a third of its own buffer is free, and
the buffer below a TLS transport is not seen at all. A slow reader then seems to read nothing for a long time.
"""

from __future__ import annotations

import socket
import struct
from asyncio.trsock import TransportSocket

_BYTES_ACKED = struct.Struct("=120xQ")
"""`tcpi_bytes_acked` within `struct tcp_info` (linux/tcp.h), since Linux 4.1."""


def acknowledged_bytes(connected: TransportSocket) -> int:
    """Of all that was sent on the connection of a transport's socket; 0 once it is closed."""
    if connected.fileno() < 0:
        return 0
    info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size)
    [count] = _BYTES_ACKED.unpack(info)
    return int(count)
