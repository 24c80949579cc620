"""`cluster`: how a running server stands, its processes, and who plans what."""

from typing import Any

import pytest

from hourhand.cli.cluster import _by_owner

pytestmark = pytest.mark.usefixtures("server")


def test_status(hourhand: Any) -> None:
    done = hourhand("cluster", "status")
    assert done.code == 0
    assert "all ok" in done.out
    assert "1 up" in done.out
    told = hourhand("cluster", "status", "--json").json
    assert set(told["parts"].values()) == {"ok"}


def test_nodes(hourhand: Any) -> None:
    [node] = hourhand("cluster", "nodes", "--json").json["data"]
    assert (node["kind"], node["alive"]) == ("up", True)
    assert hourhand("cluster", "nodes", "-q").out == f"{node['node_id']}\n"
    lines = hourhand("cluster", "nodes").out.splitlines()
    assert lines[0].split() == ["NODE", "KIND", "NAME", "STATE", "STARTED", "LEASE"]
    assert lines[1].split()[3] == "alive"


def test_segments(hourhand: Any) -> None:
    done = hourhand("cluster", "segments")
    assert done.code == 0
    assert done.out.splitlines()[1].split()[:2] == ["0-63", "64"]
    data = hourhand("cluster", "segments", "--json").json["data"]
    assert [one["segment"] for one in data] == list(range(64))
    assert all(one["alive"] and one["fence"] >= 1 for one in data)


def test_owners_in_words() -> None:
    def one(segment: int, node_id: str | None, *, alive: bool = True, shard: int = 0) -> dict[str, Any]:
        name = node_id and f"host-{node_id}"
        return {"segment": segment, "shard": shard, "node_id": node_id, "name": name, "alive": alive}

    rows = _by_owner(
        [one(0, "a"), one(1, "a"), one(3, "a"), one(2, "b", alive=False), one(4, None, alive=False)]
    )
    assert [(row["segments"], row["count"], row["owner"], row["state"]) for row in rows] == [
        ("0-1, 3", 3, "host-a", "alive"),
        ("2", 1, "host-b", "gone"),
        ("4", 1, "nobody", "free"),
    ]
    rows = _by_owner([one(0, "a"), one(0, "a", shard=1)])
    assert [row["segments"] for row in rows] == ["shard 0: 0", "shard 1: 0"]
