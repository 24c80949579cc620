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
    def whoami(self) -> Flow[Document]:
        """Whom the token proves, and what they may do."""
        return self._ask("GET", "/whoami")

    @endpoint
    def nodes(self) -> Flow[Document]:
        """The processes of the cluster: `{data}`."""
        return self._ask("GET", "/nodes")

    @endpoint
    def segments(self) -> Flow[Document]:
        """Which scheduler plans which part of all clocks: `{data}`."""
        return self._ask("GET", "/segments")
