"""API tokens: making, listing and revoking them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints

Token = str | Mapping[str, Any]


class Tokens(Endpoints[D]):
    """API tokens."""

    @endpoint
    def create(
        self,
        name: str,
        *,
        role: str | None = None,
        tenant: str | None = None,
        expires_in: str | float | None = None,
        expires_at: str | None = None,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Make a token; its text is the `token` of this answer, and nobody can see it again."""
        wish = {
            "name": name,
            "role": role,
            "tenant": tenant,
            "expires_in": expires_in,
            "expires_at": expires_at,
        }
        given = {name: value for name, value in wish.items() if value is not None}
        return self._ask("POST", "/tokens", body=given, query={"dry_run": dry_run})

    @listing
    def list(
        self, /, *, limit: int = 200, cursor: str | None = None, tenant: str | None = None
    ) -> Flow[None]:
        """Tokens, newest first; `tenant` is for those who run the system."""
        return self._pages("/tokens", {"limit": limit, "cursor": cursor, "tenant": tenant})

    @endpoint
    def page(
        self, /, *, limit: int = 50, cursor: str | None = None, tenant: str | None = None
    ) -> Flow[Document]:
        """One page of tokens as it is."""
        return self._ask("GET", "/tokens", query={"limit": limit, "cursor": cursor, "tenant": tenant})

    @endpoint
    def revoke(self, token: Token, *, dry_run: bool = False) -> Flow[Document]:
        """Let a token prove nothing from now on; by its id, never by its text."""
        name = token if isinstance(token, str) else str(token["token_id"])
        path = f"/tokens/{quote(name, safe='')}"
        return self._ask("DELETE", path, query={"dry_run": dry_run}, repeatable=True)
