"""How PostgreSQL notices that a client is gone.

PostgreSQL ends a session whose client is gone without a word after about 11 s, and with it its locks and its place
among `max_connections`.

asyncpg has no documented way to set options of the client's socket. On that side every statement is bounded by
`command_timeout`: then its connection is given two seconds to close, and thrown away. So no wait on a connection that
died lasts for longer than those two together.
"""

KEEPALIVE = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Settings of a session, for `server_settings` of each connection."""
