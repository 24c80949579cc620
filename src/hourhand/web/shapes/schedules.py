"""Coming times in answers, and what a schedule means."""

from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, always, sometimes


class TimeAnswer(Shape):
    """A time that fires, or one that DST keeps from firing."""

    at: str = always("In UTC.", A_TIME)
    local: str = always("In the schedule's zone, with its offset.", "2026-11-16T09:00:00+01:00")
    fires: bool = always("False for a time that DST drops, or that somebody wants skipped.", True)
    note: str | None = always("What DST does to it, or why it is skipped.", None)
    skipped: bool | None = sometimes("True where somebody wants it skipped.", True)


class NamedJob(Shape):
    """A job, and how people know it."""

    job_id: str = always("The job.", A_JOB)
    name: str | None = always("Its name or key.", "daily-report")


class BesideAnswer(Shape):
    """What else fires in the same second."""

    at: str = always("The job's next time.", A_TIME)
    count: int = always("How many other jobs.", 2)
    is_exact: bool = always("False where not all jobs were looked at: then there may be more.", True)
    jobs: list[NamedJob] = always("The first of them.", [])


class NextTimes(Shape):
    """The coming times of a job."""

    job_id: str = always("The job.", A_JOB)
    schedule_in_words: str = always("The schedule in words.", "at 09:00 every day, Europe/Berlin")
    data: list[TimeAnswer] = always("The times.", [])
    beside: BesideAnswer | None = sometimes(
        "With `others`: what else fires in the second of the next; null where there is none.", None
    )
    fires: int | None = sometimes(
        "With `days`: how many there are in that time; null where it follows others.", 7
    )


class ZoneChangeAnswer(Shape):
    """A change of a zone's offset."""

    at: str = always("When.", "2027-03-28T01:00:00Z")
    old_offset_s: int = always("Seconds east of UTC before.", 3600)
    new_offset_s: int = always("And after.", 7200)


class Preview(Shape):
    """What a schedule means."""

    schedule_in_words: str = always("In words.", "at 09:00 on Monday to Friday, Europe/Berlin")
    tz: str = always("The zone that it is read in.", "Europe/Berlin")
    data: list[TimeAnswer] = always("The coming times.", [])
    next_change: ZoneChangeAnswer | None = always("The zone's next change; null where it has none.", None)
