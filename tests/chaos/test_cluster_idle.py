"""What an idle cluster asks of its database: 3 APIs, 3 schedulers and 3 workers cost few statements."""

from pathlib import Path

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster
from tests.chaos.process import wait_for
from tests.servers.postgres import require_postgres

MOST_PER_SECOND = 50.0
FOR_US = 20 * SECOND_US
_COUNTS = (
    "SELECT query, sum(calls)::bigint FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid "
)
_OURS = "WHERE d.datname = 'hourhand' AND query NOT LIKE '%pg_stat_statements%' GROUP BY 1"


def counted(cluster: Cluster) -> dict[str, int]:
    """How often each statement was executed, BEGIN and COMMIT among them."""
    return dict(cluster.read(_COUNTS + _OURS))


def test_an_idle_cluster_asks_little(tmp_path: Path) -> None:
    require_postgres()
    preload = {"shared_preload_libraries": "pg_stat_statements"}
    with Cluster(tmp_path, apis=3, durable=False, server_settings=preload) as cluster:
        cluster.servers[0].execute("CREATE EXTENSION pg_stat_statements", database="hourhand")
        settled_at = now() + 5 * SECOND_US  # shares are even by then
        wait_for("rest", lambda: now() > settled_at)
        before, from_at = counted(cluster), now()
        wait_for("some idle seconds", lambda: now() > from_at + FOR_US, within_s=60)
        after, to_at = counted(cluster), now()
    seconds = (to_at - from_at) / SECOND_US
    rates = {query: (count - before.get(query, 0)) / seconds for query, count in after.items()}
    costly = sorted(rates.items(), key=lambda item: -item[1])
    print(f"{sum(rates.values()):.1f} statements/s")
    for query, rate in costly[:12]:
        print(f"{rate:6.2f}/s {' '.join(query.split())[:90]}")
    assert 0 < sum(rates.values()) < MOST_PER_SECOND, costly[:8]
