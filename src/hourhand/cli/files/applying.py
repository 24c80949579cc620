"""How `apply` and `plan` go: read everything, ask the server about everything, tell, and only then change anything."""

from collections.abc import Sequence
from dataclasses import dataclass

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.files.changing import Plan, carry_out, make_plan
from hourhand.cli.files.documents import Wanted, read_sources
from hourhand.cli.files.faults import FileFaults
from hourhand.cli.files.plan_view import plan_document, show_plan, summary
from hourhand.cli.files.sources import files, modules, split
from hourhand.cli.options import Call
from hourhand.cli.output import Form
from hourhand.cli.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line asks for."""

    sources: Sequence[str] | None = None
    files: Sequence[str] | None = None
    set_name: str | None = None
    prune: bool = False
    take_over: bool = False


def run_apply(call: Call, wish: Wish, *, exit_code: bool, dry_run: bool) -> int:
    """Read, plan, and unless it is a dry run, do it; the exit code."""
    return apply_wanted(call, _wanted(wish), wish, exit_code=exit_code, dry_run=dry_run)


def apply_wanted(call: Call, wanted: Wanted, wish: Wish, *, exit_code: bool = False, dry_run: bool) -> int:
    """Plan what is wanted, and unless it is a dry run, do it; the exit code."""
    told = call.out.form is Form.PEOPLE
    plan = make_plan(call.client, wanted, prune=wish.prune, take_over=wish.take_over, told=told)
    if told:
        show_plan(call, plan)
    if not dry_run:
        if plan.surplus:
            call.confirm(f"Delete {plural(len(plan.surplus), 'job')} that the files no longer have?")
        faults = carry_out(call.client, plan, take_over=wish.take_over, told=told)
        if faults:
            raise FileFaults(faults, "the others were done; run it again")
    _tell(call, plan, dry_run=dry_run)
    return FINDINGS if exit_code and plan.changes else 0


def _wanted(wish: Wish) -> Wanted:
    named_files, named_modules = split(wish.sources or ())
    named_files += wish.files or ()
    if not named_files and not named_modules:
        raise Usage("say what to apply: a file, a folder, - for stdin, or a module")
    if named_files.count("-") > 1:
        raise Usage("stdin can be read only once")
    wanted = read_sources([*files(named_files), *modules(named_modules)], wish.set_name)
    if wish.prune and not wanted.sets:
        raise Usage("--prune needs a set: write `set: NAME` into the file, or give --set NAME")
    return wanted


def _tell(call: Call, plan: Plan, *, dry_run: bool) -> None:
    document = plan_document(plan, dry_run=dry_run)
    match call.out.form:
        case Form.LINES:
            for job in document["jobs"]:
                call.out.document(job, None, lambda: None)
        case Form.IDS:
            for job in document["jobs"]:
                if job.get("job_id"):
                    call.out.line(job["job_id"])
        case _:
            call.out.document(document, None, lambda: call.out.line(summary(plan, dry_run=dry_run)))
