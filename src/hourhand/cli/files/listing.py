"""All jobs that a filter chooses, page by page; never a part of them as if it were all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hourhand.errors import Unavailable

if TYPE_CHECKING:
    from hourhand.client import Client

PAGE = 1_000


def all_jobs(client: "Client", **filters: str | None) -> Iterator[dict[str, Any]]:
    """Each job; Unavailable where a database does not answer, since its jobs would be missing unseen."""
    cursor = None
    while True:
        page = client.jobs.page(limit=PAGE, cursor=cursor, **filters)
        if page.get("partial"):
            raise Unavailable(
                f"{', '.join(page['partial'])} did not answer, so not all jobs are known; try again"
            )
        yield from page["data"]
        cursor = page.get("next_cursor")
        if cursor is None:
            return
