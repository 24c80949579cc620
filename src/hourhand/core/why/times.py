"""The verdict about a nominal time for which there is no run: to come, missed, never a time of the job, or lost. Pure.

What a job's versions promise is `core.plan.expected_times`; here is only why a time is among that or not.
"""

from collections.abc import Sequence

import msgspec

from hourhand.core.dag import Missing, goes_down
from hourhand.core.identity import format_job_id
from hourhand.core.instant import DAY_US, format_instant
from hourhand.core.model import FOREVER, AfterTiming, OnceTiming, Version
from hourhand.core.plan import expected_times, first_since
from hourhand.core.schedule import Cron, preview
from hourhand.core.why.facts import Cause, Evidence, ParentFact, RunFacts, Verdict, Word
from hourhand.core.why.known import REPORT_IT, is_forgotten, lost_with_job
from hourhand.core.why.phrases import length, listed, local, zone_name
from hourhand.core.why.serving import Serving, obstacle

_NEAR_DST_US = DAY_US  # how far from a time that was asked for what DST did is of interest


def judge_time(facts: RunFacts, serving: Serving) -> Verdict:
    """Why there is no run for a time, and whether there will be one."""
    verdict = _judge(facts, serving)
    before_at, after_at = nearest_times(facts.versions, facts.at)
    return msgspec.structs.replace(verdict, before_at=before_at, after_at=after_at)


def promised_by(versions: Sequence[Version], at: int) -> Version | None:
    """The version that has a nominal time; None where none has."""
    for version in versions:
        if expected_times([version], at - 1, at, 1):
            return version
    return None


def in_force(versions: Sequence[Version], at: int) -> Version | None:
    """The version that speaks for a time; None before the first."""
    return next((one for one in reversed(versions) if one.from_at < at), None)


def nearest_times(versions: Sequence[Version], at: int) -> tuple[int | None, int | None]:
    """The nominal times directly before and after an instant, by the versions in force."""
    before = [found for one in versions if (found := _newest(one, at - 1)) is not None]
    after = [found for one in versions if (found := _next(one, at)) is not None]
    return max(before, default=None), min(after, default=None)


def _judge(facts: RunFacts, serving: Serving) -> Verdict:
    version = promised_by(facts.versions, facts.at)
    if version is not None:
        return _promised(facts, version, serving)
    version = in_force(facts.versions, facts.at)
    if version is None:
        return _before_creation(facts)
    if version.deleted:
        return _deleted(facts, version)
    if isinstance(version.spec.timing, AfterTiming):
        return _follower(facts, version)
    return _not_promised(facts, version)


def _promised(facts: RunFacts, version: Version, serving: Serving) -> Verdict:
    if facts.gap is not None:
        return _missed(facts, version)
    present = facts.versions[-1]
    if present.paused and not present.deleted and present.spec.timing == OnceTiming(at=facts.at):
        return _paused(facts, present)
    if _is_unplanned(facts):
        return _to_come(facts, version, serving)
    if _forgotten(facts, version):
        return _unknown(facts, version)
    return _lost(facts, version)


def _is_unplanned(facts: RunFacts) -> bool:
    """Whether the job's clock is yet to come to a time: one that an edit of other fields does not take from it."""
    if facts.job is None or facts.unplanned_from is None:
        return False
    return facts.at >= facts.unplanned_from and facts.at > facts.job.since


def _to_come(facts: RunFacts, version: Version, serving: Serving) -> Verdict:
    zone = zone_name(version.spec.timing)
    if facts.at > facts.now_at:
        plan_at = max(facts.now_at, facts.at - serving.horizon_us)
        evidence = [Evidence(text="it will be written into the plan", at=plan_at)]
        summary = f"to come, in {length(facts.at - facts.now_at)}, at {local(facts.at, zone)}"
        cause, change = Cause.NOT_DUE, ["its time coming"]
    else:
        assert facts.unplanned_from is not None
        evidence = [Evidence(text="from here on no scheduler has planned", at=facts.unplanned_from)]
        summary = f"due for {length(facts.now_at - facts.at)}, and no scheduler has planned it"
        summary += f"; then the misfire policy {version.spec.misfire.policy} decides"
        cause, change = Cause.NOT_PLANNED, ["a scheduler that lives: hourhand scheduler, or hourhand up"]
        if serving.schedulers:
            evidence.append(Evidence(text=f"live schedulers: {listed(serving.schedulers)}"))
            change = ["the schedulers catching up"]
    if facts.skip is not None:
        evidence.append(Evidence(text="somebody asked for it to be skipped", at=facts.skip.made_at))
    missing = obstacle(serving, version.spec)
    if missing is not None:
        evidence.append(Evidence(text=missing.text))
        summary += f"; but {missing.text}"
        change.append(missing.change)
    dst = _dst_note(version, facts.at)
    return Verdict(
        word=Word.WAITING,
        cause=cause,
        summary=summary,
        evidence=(*_nominal(facts), *evidence, *dst),
        change=tuple(change),
        version=version.version,
    )


def _missed(facts: RunFacts, version: Version) -> Verdict:
    assert facts.gap is not None
    gap, zone = facts.gap.gap, zone_name(version.spec.timing)
    outage = f"from {local(gap.from_at, zone)} to {local(facts.gap.decided_at, zone)}"
    return Verdict(
        word=Word.SKIPPED,
        cause=Cause.MISFIRE,
        summary=f"skipped by the misfire policy {gap.policy}: nobody planned {outage}",
        evidence=(
            *_nominal(facts),
            Evidence(text=f"of {gap.missed} missed times {gap.ran} ran", at=gap.from_at),
            Evidence(text="somebody planned again and applied the policy", at=facts.gap.decided_at),
        ),
        change=(
            "a scheduler that lives at its time",
            f"a longer grace (--misfire-grace, now {length(gap.grace_us)}), or the policy catch_up "
            "with a --misfire-limit that reaches so far back",
            _made_up(facts),
        ),
        version=version.version,
        decided_at=facts.gap.decided_at,
    )


def _paused(facts: RunFacts, version: Version) -> Verdict:
    """A time that would be one of the job's if it were not paused now."""
    note = _noted(version)
    until = None if facts.job is None else facts.job.paused_until
    job = format_job_id(facts.job_id)
    maker = facts.makers.get(version.version)
    evidence = [
        *_nominal(facts),
        Evidence(
            text=f"paused by version {version.version}, made by {maker or 'somebody'}{note}",
            at=version.from_at,
        ),
    ]
    if until is not None:
        evidence.append(Evidence(text="the pause ends by itself", at=until))
    comes = until is not None and until <= facts.at
    coming = facts.at > facts.now_at
    summary = f"the job is paused{note}"
    if comes:
        summary += "; the pause ends before this time, which will then run"
    elif coming:
        summary += "; unless it is resumed before, nothing happens at this time"
    else:
        summary += "; its time has passed, and it will be recorded as skipped"
    return Verdict(
        word=Word.WAITING,
        cause=Cause.PAUSED,
        summary=summary,
        evidence=tuple(evidence),
        change=(f"resuming it: hourhand jobs resume {job}",),
        version=version.version,
        decided_at=version.from_at,
        decided_by=maker,
    )


def _not_promised(facts: RunFacts, version: Version) -> Verdict:
    """Why a version that was in force has no such time."""
    rule = version.spec.rule
    is_a_time = rule is not None and rule.newest_in(facts.at - 1, facts.at) is not None
    if not is_a_time:
        return _no_such_time(facts, version)
    since, zone = first_since(version.spec, version.from_at), zone_name(version.spec.timing)
    if facts.at <= since:
        cause, word = Cause.BEFORE_START, "starts_at"
        summary = f"the job's first time lies after {local(since, zone)}, by its starts_at"
    elif version.paused:
        if version.to_at is None and facts.at > facts.now_at:
            return _paused(facts, version)
        return _was_paused(facts, version)
    else:
        cause, word = Cause.AFTER_END, "ends_at or max_runs"
        bound = "ends_at" if version.spec.ends_at == version.until else "max_runs"
        summary = f"the job had its last time at {local(version.until, zone)}, by its {bound}"
    return _not_expected(facts, version, cause, summary, f"another {word} of the job before that time")


def _was_paused(facts: RunFacts, version: Version) -> Verdict:
    zone = zone_name(version.spec.timing)
    note = _noted(version)
    until = "" if version.to_at is None else f" to {local(version.to_at, zone)}"
    summary = f"the job was paused from {local(version.from_at, zone)}{until}{note}"
    change = "nothing now: what passes while a job is paused is not made up for; run it: hourhand jobs run "
    return _not_expected(facts, version, Cause.PAUSED, summary, change + format_job_id(facts.job_id))


def _no_such_time(facts: RunFacts, version: Version) -> Verdict:
    timing, zone = version.spec.timing, zone_name(version.spec.timing)
    asked = local(facts.at, zone)
    if isinstance(timing, OnceTiming):
        summary = f"the job runs once, at {local(timing.at, zone)}"
        return _not_expected(facts, version, Cause.NO_SUCH_TIME, summary, "another time of the job (--at)")
    rule = version.spec.rule
    dst = _dst_near(version, facts.at)
    words = "its schedule" if rule is None else f"its schedule, {rule.describe()},"
    summary = f"{words} has no time at {asked} {zone}"
    cause = Cause.NO_SUCH_TIME
    if dst:
        cause, summary = Cause.DST, f"{summary}; {dst[0].text}"
    verdict = _not_expected(facts, version, cause, summary, "another schedule of the job before that time")
    return msgspec.structs.replace(verdict, evidence=(*verdict.evidence, *dst))


def _before_creation(facts: RunFacts) -> Verdict:
    first = facts.versions[0]
    summary = (
        f"the job did not exist then; it holds from {local(first.from_at, zone_name(first.spec.timing))} on"
    )
    return _not_expected(
        facts, first, Cause.BEFORE_CREATION, summary, "nothing: times before a job's creation are not its own"
    )


def _deleted(facts: RunFacts, version: Version) -> Verdict:
    zone = zone_name(version.spec.timing)
    summary = f"the job was deleted; it has no times after {local(version.from_at, zone)}"
    return _not_expected(facts, version, Cause.DELETED, summary, "creating it anew")


def _follower(facts: RunFacts, version: Version) -> Verdict:
    """A job that follows others has a run for a time as soon as one of them has ended for it."""
    waits = [fact for fact in facts.parents if fact.outcome is None or fact.telling]
    labels = [fact.label for fact in waits]
    if not waits and _was_not_told(facts):
        return _lost(facts, version)
    if waits:
        return Verdict(
            word=Word.WAITING,
            cause=Cause.PARENT,
            summary=f"waits for {listed(labels)}, which it follows",
            evidence=tuple(_parent_words(fact) for fact in facts.parents),
            change=(f"their end; what keeps them: hourhand why {facts.parent_run(waits[0].job_id)}",),
            version=version.version,
            blocked_by=tuple(format_job_id(fact.job_id) for fact in waits),
        )
    if _forgotten(facts, version):
        return _unknown(facts, version)
    if not facts.parents:
        summary = "the job followed nobody at that time"
    else:
        summary = (
            f"{listed([fact.label for fact in facts.parents])}, which it follows, brought about no run for it"
        )
    verdict = _not_expected(facts, version, Cause.NO_SUCH_TIME, summary, "a run of its parents for that time")
    parents = tuple(_parent_words(fact) for fact in facts.parents)
    return msgspec.structs.replace(verdict, evidence=(*verdict.evidence, *parents))


def _not_expected(facts: RunFacts, version: Version, cause: Cause, summary: str, change: str) -> Verdict:
    paused = f", paused{_noted(version)}" if version.paused else ""
    evidence = [
        Evidence(text="what was asked about", at=facts.at),
        Evidence(text=f"version {version.version} in force{paused}", at=version.from_at),
    ]
    if facts.at < facts.now_at - facts.keep_us:
        kept = f"history is kept for {length(facts.keep_us)}: a run beside the schedule would be forgotten"
        evidence.append(Evidence(text=kept))
    return Verdict(
        word=Word.NOT_EXPECTED,
        cause=cause,
        summary=summary,
        evidence=tuple(evidence),
        change=(change,),
        version=version.version,
        decided_at=version.from_at,
    )


def _unknown(facts: RunFacts, version: Version) -> Verdict:
    return Verdict(
        word=Word.UNKNOWN,
        cause=Cause.RETENTION,
        summary=f"it was a time of the job, but history is kept for {length(facts.keep_us)} only",
        evidence=(
            *_nominal(facts),
            Evidence(text="what ended before has been dropped", at=facts.now_at - facts.keep_us),
        ),
        change=("a longer history.keep, for what is yet to come",),
        version=version.version,
    )


def _lost(facts: RunFacts, version: Version) -> Verdict:
    """Never, in a sound store: said so loudly that somebody looks."""
    evidence = [
        *_nominal(facts),
        Evidence(text=f"version {version.version}, in force, has this time", at=version.from_at),
        Evidence(text="there is no run for it: not planned, blocked, waiting, running or dead"),
        Evidence(text="no history of it, no outage of its clock, no skip, no pause", at=facts.now_at),
    ]
    evidence += [_parent_words(fact) for fact in facts.parents]
    return Verdict(
        word=Word.LOST,
        cause=Cause.MISSING,
        summary="LOST: this time was promised, and there is no trace of it. This must not happen",
        evidence=tuple(evidence),
        change=(
            _made_up(facts),
            REPORT_IT,
        ),
        version=version.version,
    )


def _made_up(facts: RunFacts) -> str:
    job, at = format_job_id(facts.job_id), format_instant(facts.at)
    return lost_with_job(facts) or f"making up for it: hourhand backfill create {job} --from {at} --to {at}"


def _forgotten(facts: RunFacts, version: Version) -> bool:
    """Whether the history of a time may have been dropped; a one-time run may have been cancelled long before."""
    once = isinstance(version.spec.timing, OnceTiming)
    return is_forgotten(facts, min(facts.at, facts.versions[0].from_at) if once else facts.at)


def _was_not_told(facts: RunFacts) -> bool:
    """Whether a parent's end should have made a run of the job, and did not."""
    timing = None if facts.job is None else facts.job.spec.timing
    return isinstance(timing, AfterTiming) and any(_should_have_told(fact) for fact in facts.parents)


def _should_have_told(fact: ParentFact) -> bool:
    """Whether a parent's end makes those wait for it that followed it then."""
    if fact.outcome is None or isinstance(fact.outcome, Missing) or fact.telling:
        return False
    followed = fact.ended_at is not None and fact.ended_at > fact.since_at
    return followed and fact.trigger is not None and goes_down(fact.trigger)


def _parent_words(fact: ParentFact) -> Evidence:
    if fact.telling:
        return Evidence(text=f"{fact.label} has ended, and tells those that follow it", at=fact.ended_at)
    if fact.outcome is None:
        return Evidence(text=f"{fact.label} has not ended for this time")
    if isinstance(fact.outcome, Missing):
        return Evidence(text=f"{fact.label} has no run for this time, and will have none")
    made = (
        ""
        if fact.trigger is None or goes_down(fact.trigger)
        else f" (a {fact.trigger} run, which stays alone)"
    )
    return Evidence(text=f"{fact.label} ended as {fact.outcome}{made}", at=fact.ended_at)


def _noted(version: Version) -> str:
    return f": {version.note}" if version.note else ""


def _nominal(facts: RunFacts) -> list[Evidence]:
    return [Evidence(text="its nominal time", at=facts.at)]


def _newest(version: Version, until_at: int) -> int | None:
    if version.deleted:
        return None
    end = min(until_at, _end(version))
    timing, rule = version.spec.timing, version.spec.rule
    if isinstance(timing, OnceTiming):
        return timing.at if timing.at <= end else None
    if rule is None or version.paused:
        return None
    return rule.newest_in(first_since(version.spec, version.from_at), min(end, version.until))


def _next(version: Version, after_at: int) -> int | None:
    if version.deleted:
        return None
    timing, rule = version.spec.timing, version.spec.rule
    if isinstance(timing, OnceTiming):
        return timing.at if after_at < timing.at <= _end(version) else None
    if rule is None or version.paused:
        return None
    found = rule.next(max(after_at, first_since(version.spec, version.from_at)))
    return found if found is not None and found <= min(_end(version), version.until) else None


def _end(version: Version) -> int:
    return FOREVER if version.to_at is None else version.to_at


def _dst_note(version: Version, at: int) -> list[Evidence]:
    """What DST does to a time of a rule."""
    rule = version.spec.rule
    if not isinstance(rule, Cron):
        return []
    return [
        Evidence(text=one.note, at=one.at) for one in preview(rule, at - 1, 1) if one.note and one.at == at
    ]


def _dst_near(version: Version, at: int) -> list[Evidence]:
    """What DST drops, moves or repeats next to a time that is none of a rule."""
    rule = version.spec.rule
    if not isinstance(rule, Cron):
        return []
    before = rule.newest_in(at - _NEAR_DST_US, at)
    start = at - _NEAR_DST_US if before is None else before - 1
    near = [one for one in preview(rule, start, 2) if one.note and abs(one.at - at) <= _NEAR_DST_US]
    return [Evidence(text=str(one.note), at=one.at) for one in near]
