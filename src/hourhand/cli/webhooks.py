"""`webhooks`: endpoints that are told of events; make, look at, test, change and delete them, and their deliveries."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.failures import NOT_SUCCEEDED
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.times import duration_s, in_zone
from hourhand.cli.waiting import Timeout

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Its id, such as W-….")]
EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id, from `webhooks deliveries`.")]
_TEST_S = 30.0  # a test is sent within a second, and an endpoint has 15


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "create", changes=True)(create)
    command(app, "list")(list_webhooks)
    command(app, "show")(show)
    command(app, "edit", changes=True)(edit)
    command(app, "test", changes=True)(try_out)
    command(app, "deliveries")(deliveries)
    command(app, "redeliver", changes=True)(redeliver)
    command(app, "enable", changes=True)(enable)
    command(app, "disable", changes=True)(disable)
    command(app, "rotate", changes=True)(rotate)
    command(app, "delete", changes=True)(delete)


Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="run.failed", help="An event, or run.* or job.*; all unless given."),
]
Jobs = Annotated[list[str] | None, typer.Option("--job", metavar="JOB", help="Only of this job.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only of jobs with this tag.")]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")]


def create(
    call: Call,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where events go, by POST.")],
    types: Types = None,
    jobs: Jobs = None,
    tags: Tags = None,
    description: Description = None,
) -> None:
    """Have an endpoint told of events. Prints its secret, once."""
    document = {"url": url, **_fields(call, types, jobs, tags, description)}
    made = call.client.webhooks.create(document, dry_run=call.dry_run)

    def tell() -> None:
        if call.dry_run:
            call.out.note(f"would tell {made['url']} of {', '.join(made['types'])}")
            return
        call.out.note("The secret is shown only now. Receivers check calls with it: hourhand.verify.")
        call.out.facts([("webhook", made["webhook_id"]), ("secret", made["secret"])])

    call.out.document(made, made["webhook_id"], tell)


def list_webhooks(call: Call) -> None:
    """List webhooks, oldest first."""
    zone = call.tz or "UTC"
    columns = (
        Column(head="WEBHOOK", cell=lambda one: one["webhook_id"]),
        Column(head="URL", cell=lambda one: one["url"], width=60),
        Column(head="TYPES", cell=lambda one: " ".join(one["types"]), width=40),
        Column(head="STATE", cell=_state),
        Column(head="WAITING", cell=lambda one: one["waiting"] or None),
        Column(head="LAST SUCCESS", cell=lambda one: in_zone(one["last_success_at"], zone)),
        Column(head="DESCRIPTION", cell=lambda one: one["description"], width=40),
    )
    call.out.page(call.client.webhooks.page(), ident="webhook_id", columns=columns, empty="no webhooks")


def show(call: Call, webhook: WebhookId) -> None:
    """Show a webhook, and how its endpoint has answered."""
    found = call.client.webhooks.get(webhook)
    call.out.document(found, found["webhook_id"], lambda: _show(call, found))


def edit(
    call: Call,
    webhook: WebhookId,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where events go.")] = None,
    types: Types = None,
    jobs: Jobs = None,
    tags: Tags = None,
    description: Description = None,
) -> None:
    """Change what is named, and nothing else."""
    given = {} if url is None else {"url": url}
    _change(call, webhook, {**given, **_fields(call, types, jobs, tags, description)}, "changed")


def try_out(call: Call, webhook: WebhookId, timeout: Timeout = None) -> int | None:
    """Send a test and wait for what comes of it; exit 7 if the endpoint does not take it."""
    timeout_s = duration_s(timeout, "--timeout")
    made = call.client.webhooks.test(webhook, dry_run=call.dry_run)
    if call.dry_run:
        call.out.document(made, None, lambda: call.out.note(f"would send a test to {webhook}"))
        return None
    *_, last = call.client.webhooks.watch(webhook, made, timeout_s=timeout_s or _TEST_S)

    def tell() -> None:
        took = f"in {last['took_ms']} ms"
        if last["state"] == "delivered":
            call.out.line(f"taken: it answered {last['status']} {took}")
        else:
            call.out.line(f"not taken: {last['error']} ({took}); it is tried again")

    call.out.document(last, last["event_id"], tell)
    return None if last["state"] == "delivered" else NOT_SUCCEEDED


def deliveries(
    call: Call,
    webhook: WebhookId,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only pending, delivered or failed ones.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List what a webhook was told, newest first."""
    page = call.client.webhooks.deliveries_page(webhook, limit=limit, cursor=cursor, state=state)
    zone = call.tz or "UTC"
    columns = (
        Column(head="EVENT", cell=lambda one: one["event_id"]),
        Column(head="TYPE", cell=lambda one: one["type"]),
        Column(head="STATE", cell=lambda one: one["state"]),
        Column(head="TRIES", cell=lambda one: one["tries"]),
        Column(head="MADE", cell=lambda one: in_zone(one["created_at"], zone)),
        Column(head="NEXT TRY", cell=lambda one: in_zone(one["next_try_at"], zone)),
        Column(head="ERROR", cell=lambda one: one["error"] or "", width=60),
    )
    call.out.page(page, ident="event_id", columns=columns, empty="nothing was told yet")


def redeliver(call: Call, webhook: WebhookId, event: EventId) -> None:
    """Send an event once more, under the same id."""
    made = call.client.webhooks.redeliver(webhook, event, dry_run=call.dry_run)
    words = "would be" if call.dry_run else "is"
    call.out.document(made, made["event_id"], lambda: call.out.note(f"{made['event_id']} {words} sent again"))


def enable(call: Call, webhook: WebhookId) -> None:
    """Send what waits, and note what happens from now on."""
    _change(call, webhook, {"enabled": True}, "enabled")


def disable(call: Call, webhook: WebhookId) -> None:
    """Send nothing; what happens meanwhile is not noted for it."""
    _change(call, webhook, {"enabled": False}, "disabled")


def rotate(call: Call, webhook: WebhookId) -> None:
    """Make a new secret and print it, once; for a day both sign."""
    made = call.client.webhooks.rotate(webhook, dry_run=call.dry_run)

    def tell() -> None:
        if call.dry_run:
            call.out.note(f"{made['webhook_id']} would get a new secret")
            return
        call.out.note(
            f"The secret is shown only now. The one before signs until {made['previous_secret_until']}."
        )
        call.out.facts([("webhook", made["webhook_id"]), ("secret", made["secret"])])

    call.out.document(made, made["webhook_id"], tell)


def delete(call: Call, webhook: WebhookId) -> None:
    """Forget a webhook and what waits for it."""
    found = call.client.webhooks.get(webhook)
    if not call.dry_run:
        call.confirm(
            f"Delete {found['webhook_id']} ({found['url']}), {found['waiting']:,} deliveries waiting?"
        )
    answer = call.client.webhooks.delete(webhook, dry_run=call.dry_run)
    words = "would be" if call.dry_run else "is"
    call.out.document(
        answer, found["webhook_id"], lambda: call.out.note(f"{found['webhook_id']} {words} deleted")
    )


def _fields(
    call: Call,
    types: list[str] | None,
    jobs: list[str] | None,
    tags: list[str] | None,
    description: str | None,
) -> dict[str, Any]:
    ids = [call.client.jobs.resolve(job)["job_id"] for job in jobs] if jobs else None
    given = {"types": types or None, "jobs": ids, "tags": tags or None, "description": description}
    return {name: value for name, value in given.items() if value is not None}


def _change(call: Call, webhook: str, changes: Mapping[str, Any], verb: str) -> None:
    changed = call.client.webhooks.update(webhook, changes, dry_run=call.dry_run)

    def tell() -> None:
        call.out.note(f"{changed['webhook_id']} {'would be' if call.dry_run else 'is'} {verb}")
        _show(call, changed)

    call.out.document(changed, changed["webhook_id"], tell)


def _state(webhook: Mapping[str, Any]) -> str:
    if not webhook["enabled"]:
        return "disabled"
    return "failing" if webhook["failing_since"] else "enabled"


def _show(call: Call, webhook: Mapping[str, Any]) -> None:
    zone = call.tz or "UTC"
    call.out.facts(
        [
            ("webhook", webhook["webhook_id"]),
            ("url", webhook["url"]),
            ("types", " ".join(webhook["types"])),
            ("jobs", " ".join(webhook["jobs"]) or None),
            ("tags", " ".join(webhook["tags"]) or None),
            ("description", webhook["description"] or None),
            ("state", _state(webhook)),
            ("reason", webhook["disabled_reason"]),
            ("failing since", in_zone(webhook["failing_since"], zone)),
            ("last success", in_zone(webhook["last_success_at"], zone)),
            ("last failure", in_zone(webhook["last_failure_at"], zone)),
            ("last error", webhook["last_error"]),
            ("waiting", webhook["waiting"] or None),
            ("dropped", webhook["dropped"] or None),
            ("both secrets", in_zone(webhook["previous_secret_until"], zone)),
        ]
    )
