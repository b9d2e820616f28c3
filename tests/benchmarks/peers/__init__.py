"""The balance read as it is usually built: FastAPI in front, FastStream behind, RabbitMQ between, in two processes.

It is meant to be good: uvloop, httptools, asyncpg's own pool, aiohttp's kept-alive connections to the provider, no
logging, replies on a queue of the process's own. It runs in an environment of its own and shares no code with ours.
"""
