"""What a schedule means, before a job has it."""

from typing import Any

import httpx2
import pytest

from hourhand.web.shapes.schedules import Preview


async def preview(client: httpx2.AsyncClient, **asked: Any) -> Preview:
    answer = await client.post("/v1/schedules/preview", json=asked)
    assert answer.status_code == 200, answer.text
    return Preview.model_validate(answer.json())


async def test_words_times_and_the_next_change(client: httpx2.AsyncClient) -> None:
    found = await preview(
        client, cron="30 2 * * *", tz="Europe/Berlin", n=2, after="2027-03-27T12:00:00Z", dst={"gap": "skip"}
    )
    assert (found.schedule_in_words, found.tz) == ("at 02:30 every day, Europe/Berlin", "Europe/Berlin")
    assert [(one.local, one.fires) for one in found.data] == [
        ("2027-03-28T03:00:00+02:00", False),
        ("2027-03-29T02:30:00+02:00", True),
        ("2027-03-30T02:30:00+02:00", True),
    ]
    assert "does not exist" in str(found.data[0].note)
    assert found.next_change is not None
    assert (found.next_change.at, found.next_change.new_offset_s) == ("2027-03-28T01:00:00Z", 7200)


async def test_intervals(client: httpx2.AsyncClient) -> None:
    found = await preview(client, every="15m", phase="2027-01-15T08:05:00Z")
    assert len(found.data) == 10
    assert (found.data[0].at, found.tz, found.next_change) == ("2027-01-15T08:05:00Z", "UTC", None)
    assert (await preview(client, every="15m", n=1)).data[0].at == "2027-01-15T08:15:00Z"


async def test_a_zone_inside_the_expression(client: httpx2.AsyncClient) -> None:
    assert (await preview(client, cron="CRON_TZ=Asia/Tokyo 0 9 * * *", n=1)).tz == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({}, ""),
        ({"cron": "@daily", "every": "5m"}, ""),
        ({"cron": "0 25 * * *"}, "/cron"),
        ({"cron": "@daily", "tz": "Mars"}, "/tz"),
        ({"every": "0s"}, "/every"),
        ({"cron": "@daily", "n": 0}, "/n"),
        ({"cron": "@daily", "n": 1_001}, "/n"),
        ({"cron": "@daily", "count": 5}, "/count"),
        ({"cron": "@daily", "dst": {"gap": "x"}}, "/dst/gap"),
    ],
)
async def test_schedules_that_are_refused(
    client: httpx2.AsyncClient, asked: dict[str, Any], pointer: str
) -> None:
    answer = await client.post("/v1/schedules/preview", json=asked)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
