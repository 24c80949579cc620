"""What tenants may have and have, in answers."""

from hourhand.web.shapes.parts import Shape, always, sometimes


class QuotaLimits(Shape):
    """The most of everything; null: no limit."""

    jobs: int | None = always("Jobs.", 10_000)
    runs_per_minute: int | None = always(
        "Runs a minute: what schedules come to on average; and, counted apart, what is asked for.", 600
    )
    payload_bytes: int | None = always("Bytes of one job's payload.", 262_144)
    document_bytes: int | None = always("Bytes of all job documents.", None)
    history_days: int | None = always("Days for which ended runs can be read.", 7)


class QuotaOwn(Shape):
    """What was set for the tenant alone; null: as the settings say, 0: no limit."""

    jobs: int | None = always("Jobs.", 10_000)
    runs_per_minute: int | None = always("Runs a minute.", None)
    payload_bytes: int | None = always("Bytes of one job's payload.", None)
    document_bytes: int | None = always("Bytes of all job documents.", None)
    history_days: int | None = always("Days for which ended runs can be read.", 7)


class QuotaUse(Shape):
    """What there is."""

    jobs: int = always("Jobs, paused and completed ones too.", 12)
    runs_per_minute: float = always("What the schedules of its jobs come to on average.", 1.5)
    document_bytes: int = always("Bytes of all job documents.", 5_120)


class QuotaAnswer(Shape):
    """What a tenant may have, and what it has."""

    tenant: str = always("The tenant.", "acme")
    limits: QuotaLimits = always("What it may have.", None)
    own: QuotaOwn = always("What of that was set for it alone.", None)
    use: QuotaUse = always("What it has.", None)
    dry_run: bool | None = sometimes("True where nothing was changed.", True)


class TenantList(Shape):
    """A page of tenants."""

    data: list[QuotaAnswer] = always("The tenants, by name.", [])
    next_cursor: str | None = always("For the next page; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
