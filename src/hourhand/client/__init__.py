"""The client of the REST API: `Client` waits, `AsyncClient` is awaited; same names, one implementation.

Every request is written once, as a generator of steps (`flow`), and driven by either client. Documents
are plain dicts; errors are those of `hourhand.errors`, by their `code`.
"""

from hourhand.client.clients import AsyncClient, Client
from hourhand.client.problems import Unreachable

__all__ = ["AsyncClient", "Client", "Unreachable"]
