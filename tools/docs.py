"""Writes those parts of the documents that the code knows best: settings, routes, metrics, limits, states.

A document has them between `<!-- generated: NAME -->` and `<!-- end -->`. `make docs` writes them again, and
a test fails where one is not what the code says.
"""

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from fastapi.routing import APIRoute

from hourhand.config.settings import keys
from hourhand.core.instant import format_duration
from hourhand.core.lifecycle import as_markdown
from hourhand.ports.store import Backlog
from hourhand.telemetry import Telemetry
from hourhand.web.observing import HttpMetrics
from hourhand.web.routes import API, PREFIX, PROCESS

ROOT = Path(__file__).resolve().parents[1]
STATES = ROOT / "docs" / "states.md"

_BLOCK = re.compile(r"(<!-- generated: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Limit(NamedTuple):
    """A bound in the code: what it bounds, and where its number stands."""

    words: str
    module: str  # below hourhand
    constant: str
    unit: str = ""


LIMITS = (
    Limit("times of one backfill", "core.backfill", "MAX_TIMES"),
    Limit("runs of a backfill that are open at once", "core.backfill", "MAX_OPEN"),
    Limit("backfills of a tenant that are not over", "core.backfill", "MAX_UNFINISHED"),
    Limit("runs that a backfill makes in a second, where it has a rate", "core.backfill", "MAX_RATE"),
    Limit("operations of a tenant that are not over", "core.operation", "MAX_UNFINISHED"),
    Limit("jobs or dead letters of one step of an operation", "core.operation", "PAGE"),
    Limit("failures of an operation that are told", "core.operation", "MAX_TOLD"),
    Limit("`expected_count` of an operation", "core.operation", "MAX_EXPECTED"),
    Limit("counted before an operation that expects no number", "core.operation", "FIRST_COUNT"),
    Limit("changes of an operation under way at once", "services.operator", "AT_ONCE"),
    Limit("webhooks of a tenant", "core.webhooks", "MAX_WEBHOOKS"),
    Limit("jobs that a webhook names", "core.webhooks", "MAX_JOBS"),
    Limit("tags that a webhook names", "core.webhooks", "MAX_TAGS"),
    Limit("characters of a webhook's description", "core.webhooks", "MAX_DESCRIPTION"),
    Limit("deliveries of a webhook that wait", "core.webhooks", "MAX_BACKLOG"),
    Limit("deliveries of a webhook that are over and kept", "core.webhooks", "KEPT_DELIVERIES"),
    Limit("age of a webhook's deliveries", "core.webhooks", "KEEP_US", "us"),
    Limit("time of one call to a webhook", "core.webhooks", "TIMEOUT_US", "us"),
    Limit("`Retry-After` of a webhook that is honoured", "core.webhooks", "LONGEST_RETRY_AFTER_US", "us"),
    Limit("time a webhook may fail before it is disabled", "core.webhooks", "FAILING_US", "us"),
    Limit("time a failing webhook is left alone", "core.webhooks", "LONGEST_REST_US", "us"),
    Limit("time for which the secret before signs too", "core.webhooks", "SECRET_OVERLAP_US", "us"),
    Limit("events of one step that become deliveries", "services.webhook_sender", "EVENTS"),
    Limit("webhooks that are called at once", "services.webhook_sender", "ENDPOINTS"),
    Limit("calls to one webhook at once", "services.webhook_sender", "CALLS"),
    Limit("deliveries of a webhook that are taken together", "services.webhook_sender", "BATCH"),
    Limit("time for which they are in one hand", "services.webhook_sender", "LEASE_US", "us"),
    Limit("backfills that one step feeds", "services.backfiller", "PAGE"),
    Limit("coming times of a job that are skipped", "core.skipping", "MAX_SKIPS"),
    Limit("fires of a job, before and after, that a plan compares one by one", "core.moves", "MOST_WALKED"),
    Limit("fires of each kind that it lists of a job", "core.moves", "MOST_LISTED"),
    Limit("fires that one request walks for it", "web.routes.applying", "MOST_WALKED_AT_ONCE"),
    Limit("jobs looked at for what else fires in a second", "web.beside", "MOST_LOOKED_AT"),
    Limit("a pickle of another scheduler", "cli.files.foreign.pickles", "MAX_BYTES", "B"),
    Limit("rows of one of its tables", "cli.files.foreign.databases", "MAX_ROWS"),
    Limit("time that completion waits for the server", "cli.completion.lookups", "PATIENCE_S", "s"),
    Limit("names that it asks for", "cli.completion.lookups", "MOST"),
    Limit("silence after which `hourhand tail` connects anew", "client.events", "SILENCE_S", "s"),
    Limit("characters of a cron expression", "core.schedule.expression", "MAX_LENGTH"),
    Limit("a DST gap that is made up for, at most", "core.schedule.windows", "LONGEST_GAP_S", "s"),
    Limit("how far a next time is searched", "core.schedule.cron", "CYCLE_S", "s"),
    Limit("nominal times of a clock that one step plans", "core.plan", "MAX_TIMES_PER_STEP"),
    Limit("late times within the grace that are all run", "core.plan", "MAX_GRACE_TIMES"),
    Limit("runs that `catch_up` may make up for", "core.specification", "MAX_CATCH_UP"),
    Limit("misfire grace", "core.specification", "MAX_GRACE_US", "us"),
    Limit("jitter", "core.specification", "MAX_JITTER_US", "us"),
    Limit("timeout of an attempt, and a retry's pause", "core.specification", "MAX_TIMEOUT_US", "us"),
    Limit("retries", "core.specification", "MAX_RETRIES"),
    Limit("`max_runs`", "core.specification", "MAX_RUNS"),
    Limit("characters of a name, pool or tag", "core.specification", "MAX_NAME"),
    Limit("characters of a key", "core.specification", "MAX_KEY"),
    Limit("tags of a job", "core.specification", "MAX_TAGS"),
    Limit("concurrency of a job, where it has a limit", "core.model", "MAX_CONCURRENCY"),
    Limit("runs of a job that wait for its slots, of each kind", "core.model", "MAX_QUEUED"),
    Limit("payload, unless `limits.payload` says otherwise", "core.model", "MAX_PAYLOAD_BYTES", "B"),
    Limit("headers of a job", "core.headers", "MAX_HEADERS"),
    Limit("bytes of all its headers", "core.headers", "MAX_HEADER_BYTES", "B"),
    Limit("characters of a target's URL", "core.url", "MAX_URL"),
    Limit("arguments of a command", "core.shell", "MAX_ARGUMENTS"),
    Limit("variables of its environment", "core.shell", "MAX_VARIABLES"),
    Limit("bytes of both together", "core.shell", "MAX_COMMAND_BYTES", "B"),
    Limit("a request's line and headers", "wiring.request_heads", "HEAD_BYTES", "B"),
    Limit("headers of a request", "wiring.request_heads", "HEADERS"),
    Limit("requests of a connection that wait for those before them", "wiring.request_heads", "PIPELINED"),
    Limit("time until a request's headers are complete", "wiring.request_heads", "HEAD_WAIT_S", "s"),
    Limit("levels of nesting in JSON", "web.json_text", "MAX_DEPTH"),
    Limit("body beside the payload", "web.guards", "DOCUMENT_SLACK_BYTES", "B"),
    Limit("body of a bulk import as a list", "web.guards", "LIST_BYTES", "B"),
    Limit("body of a bulk import as lines", "web.guards", "BULK_BYTES", "B"),
    Limit("body of a request with an Idempotency-Key", "web.keeping", "KEYED_BYTES", "B"),
    Limit("time for the next part of a body", "web.guards", "BODY_WAIT_S", "s"),
    Limit("bytes a second that a body has at least, after that time", "web.guards", "LEAST_BODY_RATE", "B"),
    Limit("characters of an Idempotency-Key", "core.repeating", "MAX_KEY"),
    Limit("time that an answer is kept under one", "core.repeating", "KEPT_US", "us"),
    Limit("body of an answer that is kept", "core.repeating", "MAX_ANSWER_BYTES", "B"),
    Limit("time of a request before a repeat takes over", "core.repeating", "LEASE_US", "us"),
    Limit("answers that are packed, from", "web.compressing", "SMALLEST_BYTES", "B"),
    Limit("jobs that an answer in lines holds at once", "web.lines", "PAGE"),
    Limit("documents of a bulk import as a list, and per commit", "services.jobs", "MAX_BULK"),
    Limit("lines of a bulk import", "web.routes.bulk", "MAX_LINES"),
    Limit("refused documents of a request that are told why", "web.many_problems", "MOST_TOLD"),
    Limit("faults told of each of them", "web.many_problems", "MOST_FAULTS"),
    Limit("jobs that one `hourhand apply` takes", "cli.files.documents", "MAX_JOBS"),
    Limit("a file of jobs", "cli.files.sources", "MAX_FILE_BYTES", "B"),
    Limit("dead letters that one request changes", "services.runs", "MAX_AT_ONCE"),
    Limit("rows that one page of a list looks at", "stores.relational.reading", "_SCAN"),
    Limit("of a list by tag, or by a name that many begin with", "stores.relational.reading", "_LOOK"),
    Limit("jobs that `count=estimate` counts", "stores.relational.reading", "MOST_COUNTED"),
    Limit("ended runs of a job around a time that `why` looks at", "stores.relational.facts", "_AROUND"),
    Limit("live ones", "stores.relational.facts", "_MOST_LIVE"),
    Limit("jobs up a graph that it asks for a parent's prospects", "stores.relational.facts", "_MOST_LOOKS"),
    Limit("functions that a worker names; with more it names none", "core.serving", "MAX_FUNCTIONS"),
    Limit("rows counted for a size in `/metrics`", "stores.relational.sizes", "_COUNT_BOUND"),
    Limit("planned times of one job that an edit computes", "stores.relational.membership", "MAX_COMPUTED"),
    Limit("operations that share one commit", "stores.sqlite.engine", "MAX_GROUP"),
    Limit("operations that wait for the writer", "stores.sqlite.engine", "_MAX_WAITING"),
    Limit("reading threads", "stores.sqlite.engine", "_READERS"),
    Limit("page cache of the writer", "stores.sqlite.engine", "WRITER_CACHE_KIB", "KiB"),
    Limit("pages of log before they move to the file", "stores.sqlite.engine", "_CHECKPOINT_PAGES"),
    Limit("jobs of separate requests that share a transaction", "stores.relational.jobs", "MAX_TOGETHER"),
    Limit("databases of a cluster", "core.identity", "MAX_SHARDS"),
    Limit("buckets that are spread over them", "core.buckets", "BUCKETS"),
    Limit(
        "connections of a process to one database, and one to listen", "stores.postgres.engine", "POOL_SIZE"
    ),
    Limit("time after which an unused connection is closed", "stores.postgres.engine", "_IDLE_S", "s"),
    Limit("prepared statements of a connection", "stores.postgres.engine", "_CACHED_STATEMENTS"),
    Limit("time to connect to PostgreSQL", "stores.postgres.engine", "_CONNECT_S", "s"),
    Limit("time of a verb that reads", "stores.postgres.engine", "READ_S", "s"),
    Limit(
        "time of a verb that writes, unless it renews a shorter lease",
        "stores.postgres.engine",
        "WRITE_S",
        "s",
    ),
    Limit("time of planning, of making and dropping partitions", "stores.postgres.engine", "LONG_S", "s"),
    Limit("tries of a verb that loses races", "stores.postgres.engine", "_TRIES"),
    Limit("time between two messages to other processes", "stores.postgres.channel", "_MERGE_S", "s"),
    Limit("bytes of one of them", "stores.postgres.channel", "MAX_PAYLOAD_BYTES"),
    Limit("messages of events that wait for their turn", "stores.postgres.channel", "_MOST_WAITING"),
    Limit("time after which a silent listener is asked", "stores.postgres.channel", "_CHECK_S", "s"),
    Limit("days of history that have their table ahead", "stores.postgres.partitions", "_AHEAD"),
    Limit("dead rows of a hot table that are worth cleaning up", "stores.postgres.upkeep", "_WORTH_IT"),
    Limit("time between looks for them", "services.node", "_TIDY_PERIOD_US", "us"),
    Limit("time of one step of the schema", "stores.postgres.schema", "_STEP_S", "s"),
    Limit("tries of a step that finds its tables held", "stores.postgres.schema", "_LOCK_TRIES"),
    Limit(
        "clocks of the first planning step; then as few or many as take a moment",
        "services.planner",
        "_FIRST_CLOCKS",
    ),
    Limit("clocks of one planning step, at most", "services.planner", "_MOST_CLOCKS"),
    Limit("runs of one claim", "services.worker", "_MOST_PER_CLAIM"),
    Limit("how far ahead runs are claimed by a worker that is behind", "core.lanes", "BRIEF_LEAD_US", "us"),
    Limit("due runs that a worker starts before the loop has its turn", "services.worker", "_MOST_PER_START"),
    Limit(
        "time until what no worker could run is offered again, at first", "core.retry", "LEAST_WAIT_US", "us"
    ),
    Limit("and at most", "core.retry", "MOST_WAIT_US", "us"),
    Limit("outcomes of one commit", "services.worker", "_MOST_PER_SETTLE"),
    Limit("time between heartbeats", "services.worker", "HEARTBEAT_US", "us"),
    Limit("lease of a worker", "leases.native", "LEASE_US", "us"),
    Limit(
        "lease of a scheduler in the store, with a lease server", "leases.allotted", "STORE_LEASE_US", "us"
    ),
    Limit("time between looks for a lease server that is away", "leases.allotted", "RETURN_US", "us"),
    Limit("keys whose requests one process counts", "limits.local", "MOST_KEYS"),
    Limit("keys of which one process has tokens of the store in hand", "limits.shared", "MOST_KEYS"),
    Limit("a process takes the burst divided by this at once", "limits.shared", "PORTION_SHARE"),
    Limit("time that a request waits for who counts it", "limits.shared", "PATIENCE_S", "s"),
    Limit(
        "time that a counter is not asked again which did not answer", "web.request_limit", "AWAY_US", "us"
    ),
    Limit("time after which to try again, where a quota is used up", "core.quota", "RETRY_AFTER_S", "s"),
    Limit("the most that can be set as a quota", "core.quota", "MOST"),
    Limit("and of runs a minute", "core.quota", "MOST_RUNS"),
    Limit("and of days of history", "core.quota", "MOST_DAYS"),
    Limit(
        "time after which history beyond a quota, shown no longer, is dropped",
        "stores.relational.shortening",
        "SPARE_US",
        "us",
    ),
    Limit(
        "jobs whose history is looked through at once for that",
        "stores.relational.shortening",
        "JOBS_AT_ONCE",
    ),
    Limit(
        "in a lane that is behind, one that is due next and one that was due last for so many",
        "core.lanes",
        "NEWEST_SHARE",
    ),
    Limit("characters of a bearer token", "core.access", "MAX_TOKEN"),
    Limit("characters of the name of a JWT's key (kid)", "core.jose", "MAX_KID"),
    Limit("how far the clock of who issues JWTs may differ", "core.claims", "LEEWAY_US", "us"),
    Limit("bytes of a secret for JWTs, at least", "core.secrecy", "MIN_KEY_BYTES", "B"),
    Limit("bits of an RSA key for JWTs, at least", "identity.keys", "LEAST_RSA_BITS"),
    Limit("and at most", "identity.keys", "MOST_RSA_BITS"),
    Limit("published keys of JWTs that are taken", "identity.keys", "MAX_KEYS"),
    Limit("a document of published keys", "identity.jwks", "MAX_BYTES", "B"),
    Limit("time of fetching it", "identity.jwks", "TIMEOUT_S", "s"),
    Limit("age at which it is fetched anew", "identity.jwks", "LIFETIME_US", "us"),
    Limit(
        "time between two fetches, however many unknown keys are named", "identity.jwks", "REFETCH_US", "us"
    ),
    Limit("age at which keys that cannot be fetched count no longer", "identity.jwks", "KEPT_US", "us"),
    Limit("time that a JWT which was checked is remembered", "identity.jwt", "REMEMBERED_US", "us"),
    Limit("JWTs that are remembered", "identity.jwt", "MOST_REMEMBERED"),
    Limit("tokens of a tenant that are in force, in one database", "core.api_token", "MAX_TOKENS"),
    Limit("characters of a token's name", "core.api_token", "MAX_TOKEN_NAME"),
    Limit(
        "time until every process heeds that a token was revoked",
        "services.tokens",
        "REVOKED_WITHIN_US",
        "us",
    ),
    Limit("time between two notes of a token's use", "services.tokens", "USE_EVERY_US", "us"),
    Limit("tokens that a process remembers", "services.tokens", "MAX_KNOWN"),
    Limit("ids that it remembers to be nobody's token", "services.tokens", "MAX_UNKNOWN"),
    Limit("lookups a second of tokens that a process has not seen", "services.tokens", "MAX_GUESSES"),
    Limit("body of the form to log in", "web.routes.login", "MAX_FORM_BYTES", "B"),
    Limit("characters of a token that can log in to the page", "web.routes.login", "MAX_COOKIE"),
    Limit(
        "lease of a scheduler, unless `scheduler.lease` says otherwise",
        "config.settings",
        "SchedulerSettings.lease_us",
        "us",
    ),
    Limit("renewals of a scheduler in that time", "services.tenure", "_RENEWALS_PER_LEASE"),
    Limit("patience with an attempt that ignores its cancellation", "services.worker", "ABANDON_US", "us"),
    Limit("rows of one repair of each kind", "services.sweeper", "PAGE"),
    Limit(
        "how long past its deadline a live worker's run is left alone", "services.sweeper", "SLACK_US", "us"
    ),
    Limit("time between looks where others' commits are told", "services.node", "RARE_POLL_US", "us"),
    Limit("time between sweeps of a file", "services.sweeper", "PERIOD_US", "us"),
    Limit("time between sweeps of a shared store", "services.sweeper", "SHARED_PERIOD_US", "us"),
    Limit("longest sleep of a duty", "services.loop", "MAX_SLEEP_US", "us"),
    Limit("threads for functions that are not async", "wiring.parts", "_THREADS"),
    Limit("calls under way to HTTP targets", "targets.http", "HttpSettings.connections"),
    Limit("of them to one host and port", "targets.http", "HttpSettings.connections_per_origin"),
    Limit("name lookups at once", "targets.http", "_LOOKUPS"),
    Limit("of them, one in so many for the names of one domain", "targets.lookups", "DOMAIN_SHARE"),
    Limit("time that a call waits for a lookup", "targets.lookups", "PATIENCE_S", "s"),
    Limit("time that an address is used again", "targets.lookups", "FOUND_US", "us"),
    Limit("time that a failed lookup is not tried again", "targets.lookups", "FAILED_US", "us"),
    Limit("names that are remembered", "targets.lookups", "MOST_KNOWN"),
    Limit("time to connect to an HTTP target, at most", "targets.http_answer", "_CONNECT_MAX_US", "us"),
    Limit("kept of an HTTP answer", "targets.http_answer", "KEPT_BYTES", "B"),
    Limit("kept of a function's value", "targets.python_outcome", "KEPT_BYTES", "B"),
    Limit("kept of a reported result", "core.report", "KEPT_BYTES", "B"),
    Limit("characters of a reported error", "core.report", "MAX_ERROR"),
    Limit("characters beside a progress", "core.report", "MAX_MESSAGE"),
    Limit("body of a report", "web.guards", "REPORT_BYTES", "B"),
    Limit("attempts whose progress waits to be kept", "services.progress", "MAX_ATTEMPTS"),
    Limit("commands at once in one process", "targets.shell", "MAX_COMMANDS"),
    Limit("time between SIGTERM and SIGKILL", "targets.shell", "GRACE_S", "s"),
    Limit("payload that is in a command's environment too", "targets.shell", "PAYLOAD_VARIABLE_BYTES", "B"),
    Limit("kept of what an attempt says, from its beginning", "core.log", "HEAD_BYTES", "B"),
    Limit("and from its end", "core.log", "TAIL_BYTES", "B"),
    Limit("one piece of a log", "core.log", "CHUNK_BYTES", "B"),
    Limit("time between two batches of logs", "services.log_writer", "PERIOD_US", "us"),
    Limit("one batch of logs", "services.log_writer", "BATCH_BYTES", "B"),
    Limit("logs that wait for the store", "services.log_writer", "PENDING_BYTES", "B"),
    Limit("clients that wait for more of a log", "services.run_logs", "MAX_WAITING"),
    Limit("time that one of them waits", "services.run_logs", "MAX_WAIT_S", "s"),
    Limit("bytes of a signing secret, at least", "core.signature", "MIN_SECRET_BYTES", "B"),
    Limit("age of a signature that a receiver takes", "core.signature", "TOLERANCE_US", "us"),
    Limit("characters of the key of an effect", "receiver.effects", "MAX_EFFECT_KEY"),
    Limit("effects that are forgotten at once, unless told otherwise", "receiver.once", "FORGET_AT_ONCE"),
    Limit("how long effects are kept, at least", "receiver.once", "MIN_KEPT_US", "us"),
    Limit("pause that the client makes by itself or where asked", "client.exchange", "LONGEST_PAUSE_S", "s"),
    Limit("the window of an audit", "services.audit", "MAX_WINDOW_US", "us"),
    Limit("findings of an audit that are listed", "core.audit", "MAX_FINDINGS"),
    Limit(
        "how long after its grace a time that is nowhere counts as lost", "core.audit", "LAG_BUDGET_US", "us"
    ),
    Limit("versions that a page of an audit reads", "stores.relational.audits", "MAX_VERSIONS"),
    Limit(
        "time of one request for an audit, then it goes on in another", "web.routes.audits", "WITHIN_US", "us"
    ),
    Limit("time between audits that are made by themselves", "services.auditor", "PERIOD_US", "us"),
    Limit("time of a ping", "targets.pinging", "TIMEOUT_S", "s"),
    Limit("lines a second that `up` prints", "cli.feed", "LINES_PER_SECOND"),
    Limit("times that `hourhand next` prints", "cli.schedules", "MOST_TIMES"),
    Limit("times that a preview shows", "web.routes.schedules", "MAX_TIMES"),
    Limit("events that can be resumed, by age", "services.event_ring", "KEPT_US", "us"),
    Limit("events that can be resumed, by number", "services.event_ring", "MAX_KEPT"),
    Limit("jobs whose last runs one request reads", "web.routes.jobs", "MAX_STRIPS"),
    Limit("runs of each of them", "web.routes.jobs", "MAX_MARKS"),
    Limit(
        "a tenant's jobs or dead letters that its overview counts", "stores.relational.sizes", "MOST_COUNTED"
    ),
    Limit(
        "rows of a hot table that are asked whether they are the tenant's",
        "stores.relational.sizes",
        "MOST_LOOKED_AT",
    ),
    Limit("tenants whose sizes a process remembers", "services.overview", "MAX_KEPT"),
    Limit(
        "deeds that one page looks at before it answers with less",
        "stores.relational.deeds",
        "MOST_LOOKED_AT",
    ),
    Limit("characters of a note beside a deed", "core.deeds", "MAX_NOTE"),
    Limit("minutes that the overview knows", "services.recent", "MINUTES"),
    Limit("changes of jobs that it knows, per tenant", "services.recent", "MAX_CHANGES"),
    Limit("tenants that it knows", "services.recent", "MAX_TENANTS"),
    Limit("clients that follow events", "services.event_log", "MAX_CLIENTS"),
    Limit("of them, of one tenant", "services.event_log", "MAX_CLIENTS_OF_TENANT"),
    Limit("of them, of one user", "services.event_log", "MAX_CLIENTS_OF_USER"),
    Limit("events a second to one client", "services.event_log", "EVENTS_PER_SECOND"),
    Limit("events that wait for a client that reads slowly", "services.event_log", "MAX_QUEUED"),
    Limit("batches of events a second from one process", "services.publisher", "BATCHES_PER_SECOND"),
    Limit("events of one batch", "ports.events", "MAX_EVENTS"),
    Limit("bytes of one batch of events", "ports.events", "MAX_BATCH_BYTES"),
    Limit("characters of an error in an event", "ports.events", "MAX_TEXT"),
)


def settings() -> str:
    """Every setting, as `hourhand check` knows it."""
    rows = [
        (
            f"`{key.path}`",
            f"`{key.kind.show(key.default)}`" if key.kind.show(key.default) else "empty",
            key.kind.allowed,
            key.help,
        )
        for key in keys()
    ]
    return _table(("key", "default", "allowed", "what it is"), rows)


def routes() -> str:
    """Every route of the API that its description has."""
    rows = []
    for prefix, router in ((PREFIX, API), ("", PROCESS)):
        for route in router.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                path = route.path.replace(":path", "")
                rows += [(f"`{method} {prefix}{path}`", route.summary or "") for method in route.methods]
    return _table(("route", "what it does"), rows)


def metrics() -> str:
    """The families of our own in `/metrics`."""
    telemetry = Telemetry()
    telemetry.backlog(Backlog(jobs=0, planned=0, running=0, blocked=0, dead=0, oldest_due_at=None))
    telemetry.audited("0", expected=0, lost=0, kinds={"lost": 0}, at=0, took_us=0)
    HttpMetrics(telemetry.registry)
    rows = []
    for family in telemetry.registry.collect():
        if family.name.startswith("hourhand_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            rows.append((f"`{name}`", family.type, family.documentation))
    return _table(("metric", "type", "what it tells"), rows)


def limits() -> str:
    """Every bound with its number as it is now."""
    rows = []
    for limit in LIMITS:
        file = limit.module.replace(".", "/") + ".py"
        rows.append((limit.words, _amount(_value(limit), limit.unit), f"`{limit.constant}`", f"`{file}`"))
    return _table(("what", "bound", "constant", "file"), rows)


def mutants() -> str:
    """Every safeguard that `make mutants` switches off, and who noticed when that was recorded last."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    seen = import_module("tests.mutants.seen").read_seen()
    rows = []
    for mutant in import_module("tests.mutants.table").MUTANTS:
        by = _test(mutant.caught_by)
        if mutant.is_simulated:
            by = f"{mutant.caught_by}, seed {seen[mutant.name].seed}"
        rows.append((mutant.name, mutant.safeguard, f"`{mutant.file}`", by, mutant.invariant))
    return _table(("mutant", "what is switched off", "where", "noticed by", "breaks"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "routes": routes,
    "metrics": metrics,
    "limits": limits,
    "mutants": mutants,
}


def documents() -> list[Path]:
    """Every document of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def filled(text: str) -> str:
    """A document with its generated parts as the code has them now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}{found[3]}", text)


def main() -> None:
    """Write everything again."""
    STATES.write_text(as_markdown(), "utf-8")
    for document in documents():
        text = document.read_text("utf-8")
        if filled(text) != text:
            document.write_text(filled(text), "utf-8")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _test(node: str) -> str:
    """A test by its file, its name in words, and its case or seed."""
    file, _, name = node.partition("::")
    name, _, case = name.partition("[")
    words = name.removeprefix("test_").replace("_", " ")
    if file.startswith("tests/interleavings"):
        return f"`{case[:-1].replace('_', ' ')}`: {words}"
    return f"`{file}`: {words}" + (f", `{case[:-1]}`" if case else "")


def _value(limit: Limit) -> float:
    """A constant of a module, or the default of a record's field."""
    home: object = import_module(f"hourhand.{limit.module}")
    record, dot, name = limit.constant.rpartition(".")
    value = getattr(getattr(home, record)() if dot else home, name)
    assert isinstance(value, int | float)
    return value


def _amount(value: float, unit: str) -> str:
    match unit:
        case "us":
            return format_duration(int(value))
        case "s" if value > 366 * 86_400:
            return f"{round(value / 31_556_952):,} years"
        case "s":
            return format_duration(round(value * 1_000_000))
        case "B":
            return next(
                f"{value // size:,} {name}"
                for name, size in (("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))
                if value % size == 0
            )
        case "KiB":
            return _amount(value * 1024, "B")
        case _:
            return f"{value:,}"


if __name__ == "__main__":
    main()
