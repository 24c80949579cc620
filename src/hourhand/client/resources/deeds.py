"""Who did what."""

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints, filtered


class Deeds(Endpoints[D]):
    """What people changed, each thing once; for admins."""

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Deeds, newest first; filters job_id, subject, action (`job.*` is all of a kind), from_, to, tenant."""
        return self._pages("/deeds", filtered(limit, cursor, filters))

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of deeds as it is."""
        return self._ask("GET", "/deeds", query=filtered(limit, cursor, filters))
