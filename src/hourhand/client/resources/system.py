"""The whole, in one look."""

from collections.abc import Callable
from urllib.parse import quote

from hourhand.client.events import follow
from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints


class System(Endpoints[D]):
    """The whole, in one look."""

    @endpoint
    def overview(self) -> Flow[Document]:
        """Sizes, live processes, the last hour by the minute, and what changed of jobs."""
        return self._ask("GET", "/overview")

    @endpoint
    def whoami(self) -> Flow[Document]:
        """Whom the token proves, and what they may do."""
        return self._ask("GET", "/whoami")

    @endpoint
    def nodes(self) -> Flow[Document]:
        """The processes of the cluster: `{data}`. For those who run the system."""
        return self._ask("GET", "/nodes")

    @endpoint
    def segments(self) -> Flow[Document]:
        """Which scheduler plans which part of all clocks: `{data}`. For those who run the system."""
        return self._ask("GET", "/segments")

    @listing
    def events(
        self,
        *,
        types: str | None = None,
        job_id: str | None = None,
        after: str | None = None,
        broken: Callable[[str], None] = lambda words: None,
    ) -> Flow[None]:
        """What happens, as it happens, for ever; after the event `after`, where the server still knows it.

        Comes back by itself when the connection breaks, and goes on where it was; `broken` is told.
        """
        named = {"types": types, "job_id": job_id}
        return follow(
            {name: value for name, value in named.items() if value is not None},
            after,
            server=self._session.server,
            patience=self._session.patience,
            broken=broken,
        )

    @endpoint
    def quota(self) -> Flow[Document]:
        """What the tenant may have, and what it has."""
        return self._ask("GET", "/quota")

    @endpoint
    def set_quota(self, tenant: str, /, *, dry_run: bool = False, **limits: int | None) -> Flow[Document]:
        """Set what a tenant may have: jobs, runs_per_minute, payload_bytes, document_bytes, history_days.

        0: no limit; what is left out is as the settings say. For those who run the system.
        """
        path = f"/tenants/{quote(tenant, safe='')}/quota"
        return self._ask("PUT", path, body=limits, query={"dry_run": dry_run})

    @listing
    def tenants(self, *, limit: int = 200, cursor: str | None = None) -> Flow[None]:
        """Tenants by name, with what they may have and have. For those who run the system."""
        return self._pages("/tenants", {"limit": limit, "cursor": cursor})

    @endpoint
    def tenants_page(self, *, limit: int = 50, cursor: str | None = None) -> Flow[Document]:
        """One page of tenants as it is."""
        return self._ask("GET", "/tenants", query={"limit": limit, "cursor": cursor})
