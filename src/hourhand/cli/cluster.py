"""`cluster`: how everything stands, which processes there are, and which scheduler plans what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from hourhand.cli.failures import FINDINGS
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.text import plural
from hourhand.cli.times import from_now, in_zone, now


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "status")(status)
    command(app, "nodes")(nodes)
    command(app, "segments")(segments)


def status(call: Call) -> int:
    """Say how the whole stands: its parts, sizes, processes and the last hour; 8 where a part does not work."""
    overview = call.client.system.overview()
    call.out.document(overview, None, lambda: _show(call, overview))
    return FINDINGS if any(_is_wrong(words) for words in overview["parts"].values()) else 0


def nodes(call: Call) -> None:
    """List the processes of the cluster, for those who run the system; those that are gone are shown until they are forgotten."""
    page = call.client.system.nodes()
    zone, now_at = call.tz or "UTC", now()
    columns = (
        Column(head="NODE", cell=lambda node: node["node_id"]),
        Column(head="KIND", cell=lambda node: node["kind"]),
        Column(head="NAME", cell=lambda node: node["name"]),
        Column(head="STATE", cell=lambda node: "alive" if node["alive"] else "gone"),
        Column(head="STARTED", cell=lambda node: in_zone(node["started_at"], zone)),
        Column(head="LEASE", cell=lambda node: from_now(node["lease_until"], now_at)),
    )
    call.out.page(page, ident="node_id", columns=columns, empty="no processes")


def segments(call: Call) -> int:
    """List who plans which segment, the parts that all clocks are divided into, for those who run the system; 8 where one has no live owner."""
    page = call.client.system.segments()
    columns = (
        Column(head="SEGMENTS", cell=lambda row: row["segments"], width=60),
        Column(head="COUNT", cell=lambda row: row["count"]),
        Column(head="OWNER", cell=lambda row: row["owner"]),
        Column(head="STATE", cell=lambda row: row["state"]),
    )
    rows = _by_owner(page["data"])
    call.out.page(
        page,
        ident="segment",
        empty="no segments were shared out yet",
        show=lambda: call.out.table(columns, rows),
    )
    orphans = sum(not one["alive"] for one in page["data"])
    if orphans:
        call.out.note(
            f"{plural(orphans, 'segment')} without a live owner; taken over when a lease has run out"
        )
    return FINDINGS if orphans else 0


def _by_owner(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each owner in each database, with what it holds as ranges."""
    held: dict[tuple[int, str | None], list[Mapping[str, Any]]] = {}
    for one in found:
        held.setdefault((one["shard"], one["node_id"]), []).append(one)
    several = len({one["shard"] for one in found}) > 1
    return [
        {
            "segments": (f"shard {shard}: " if several else "") + _ranges([one["segment"] for one in ones]),
            "count": len(ones),
            "owner": ones[0]["name"] or node_id or "nobody",
            "state": "alive" if ones[0]["alive"] else "gone" if node_id else "free",
        }
        for (shard, node_id), ones in held.items()
    ]


def _ranges(numbers: Sequence[int]) -> str:
    """`0-15, 20`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _show(call: Call, overview: Mapping[str, Any]) -> None:
    sizes, hour = overview["sizes"], overview["hour"]
    zone = call.tz or "UTC"
    wrong = {name: words for name, words in overview["parts"].items() if _is_wrong(words)}
    kinds = Counter({one["kind"]: one["alive"] for one in overview["processes"]})
    call.out.facts(
        [
            ("parts", ", ".join(overview["parts"]) + ": all ok" if overview["parts"] and not wrong else None),
            *((name, words) for name, words in wrong.items()),
            ("processes", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"),
            ("jobs", f"{sizes['jobs']:,}"),
            ("planned", f"{sizes['planned']:,}"),
            ("running", f"{sizes['running']:,}"),
            ("blocked", f"{sizes['blocked']:,}" if sizes["blocked"] else None),
            ("dead", f"{sizes['dead']:,}" if sizes["dead"] else None),
            ("oldest due", in_zone(sizes["oldest_due_at"], zone)),
            (
                "last hour",
                ", ".join(f"{value:,} {name}" for name, value in _counts(hour)) or "nothing happened",
            ),
        ]
    )


def _counts(hour: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [
        (name.replace("_", " "), value)
        for name, value in hour.items()
        if isinstance(value, int) and value and not name.endswith(("_ms", "_us"))
    ]


def _is_wrong(words: str) -> bool:
    return words != "ok"
