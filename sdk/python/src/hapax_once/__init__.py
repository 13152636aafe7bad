"""One effect per key, in your own PostgreSQL transaction.

`hapax_once.psycopg`, `.asyncpg`, `.sqlalchemy` and `.django` have a `Database` each, whose `once`
runs work in a transaction and answers every later call with what the first one said.
"""

from .answer import Answer, Refused
from .deliveries import Failed, Message, Outcome
from .errors import HapaxError
from .operation import Isolation, Operation, Options, Request

__all__ = [
    "Answer",
    "Failed",
    "HapaxError",
    "Isolation",
    "Message",
    "Operation",
    "Options",
    "Outcome",
    "Refused",
    "Request",
]
