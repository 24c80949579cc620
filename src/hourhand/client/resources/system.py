"""The whole, in one look."""

from hourhand.client.flow import D, Document, Flow, endpoint
from hourhand.client.resources.endpoints import Endpoints


class System(Endpoints[D]):
    """The whole, in one look."""

    @endpoint
    def overview(self) -> Flow[Document]:
        """Sizes, live processes, the last hour by the minute, and what changed of jobs."""
        return self._ask("GET", "/overview")

    @endpoint
    def nodes(self) -> Flow[Document]:
        """The processes of the cluster: `{data}`."""
        return self._ask("GET", "/nodes")
