"""Schedules before a job has them."""

from collections.abc import Mapping
from typing import Any

from hourhand.client.flow import D, Document, Flow, endpoint
from hourhand.client.resources.endpoints import Endpoints


class Schedules(Endpoints[D]):
    """What a schedule would mean."""

    @endpoint
    def preview(
        self, schedule: Mapping[str, Any], *, n: int | None = None, after: str | None = None
    ) -> Flow[Document]:
        """A schedule (cron, every or at, with tz and dst) in words, and its coming times. Changes nothing."""
        given = {"n": n, "after": after}
        body = {**schedule, **{name: value for name, value in given.items() if value is not None}}
        return self._ask("POST", "/schedules/preview", body=body, keyed=False, repeatable=True)
