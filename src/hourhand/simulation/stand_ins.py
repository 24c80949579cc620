"""Targets for tests: functions are called, on the test's own thread; HTTP targets and commands answer as they were told.

Nothing leaves the process. What nobody scripted is no failure of the job but of the test, and ends it with words.
"""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from hourhand.core.model import HttpTarget, PythonTarget, ShellTarget
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun
from hourhand.functions.arguments import WrongArguments
from hourhand.functions.context import Run
from hourhand.functions.registry import RegisteredFunction
from hourhand.ports.target import Result
from hourhand.targets.http_answer import Answer, judge
from hourhand.targets.python_outcome import no_such_function, raised, returned, wrong_arguments
from hourhand.targets.shell_outcome import exited

_MOST_CALLS = 10_000  # that are remembered


class Unscripted(AssertionError):
    """A job called something that the test said nothing about."""


class NoWait(threading.Event):
    """Stands for the cancellation of a function on a thread: nobody really sleeps here."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was cancelled, at once."""
        return self.is_set()


class Answers:
    """How a URL or a command answers: each call takes the next answer, the last one stays."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Any] = []  # the payloads it was called with
        self._codes: list[int] = []

    def answers(self, *statuses: int) -> "Answers":
        """The HTTP statuses of the coming calls."""
        for status in statuses:
            if status == 202 or not 200 <= status <= 599:
                raise ValueError(
                    f"expected a final HTTP status from 200 to 599, got {status}"
                    + ("; nobody reports in a test, so say how it ends" if status == 202 else "")
                )
        return self._take(statuses)

    def exits(self, *codes: int) -> "Answers":
        """The exit codes of the coming calls."""
        return self._take(codes)

    def next(self, payload: Any) -> int:
        """The answer to a call."""
        if len(self.calls) < _MOST_CALLS:
            self.calls.append(payload)
        return self._codes.pop(0) if len(self._codes) > 1 else self._codes[0]

    @property
    def is_told(self) -> bool:
        """Whether it knows any answer."""
        return bool(self._codes)

    def _take(self, codes: tuple[int, ...]) -> "Answers":
        if not codes:
            raise ValueError("say at least one answer, such as answers(200)")
        self._codes = list(codes)
        return self


class StandIns:
    """All targets in one: they share who shall fail, what was begun, and what went wrong with the test itself."""

    def __init__(
        self,
        functions: Mapping[str, RegisteredFunction],
        now: Callable[[], int],
        name_of: Callable[[int], str],
    ) -> None:
        self._functions = functions
        self._now = now
        self._name_of = name_of
        self.urls: dict[str, Answers] = {}
        self.commands: dict[str, Answers] = {}
        self.failures: Counter[int] = Counter()  # how many coming attempts of a job fail
        self.begun: dict[int, list[int]] = {}  # nominal times of a job, in the order of their first attempts
        self.active = 0
        self.fault: BaseException | None = None

    async def execute(self, run: ClaimedRun) -> Result:
        """One attempt."""
        if run.scheduled_at not in (begun := self.begun.setdefault(run.job_id, [])):
            begun.append(run.scheduled_at)
        if self.failures[run.job_id] > 0:
            self.failures[run.job_id] -= 1
            return Result(outcome=Outcome.FAILED, detail={"error": "failed because the test said so"})
        self.active += 1
        try:
            match run.spec.target:
                case PythonTarget(function=name):
                    return await self._call(name, run)
                case HttpTarget(url=url):
                    answers = self._answers(self.urls, url, run, f'hourhand.http("{url}").answers(200)')
                    return judge(Answer(status=answers.next(_payload(run))), self._now())
                case ShellTarget(argv=argv) as target:
                    hint = f'hourhand.command("{argv[0]}").exits(0)'
                    return exited(
                        self._answers(self.commands, argv[0], run, hint).next(_payload(run)), target
                    )
        except Unscripted as error:
            self.fault = self.fault or error
            return Result(outcome=Outcome.FAILED, detail={"error": str(error)})
        finally:
            self.active -= 1

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _call(self, name: str, run: ClaimedRun) -> Result:
        registered = self._functions.get(name)
        if registered is None:
            return no_such_function(name)
        try:
            given = registered.arguments.bind(run.spec.payload)
        except WrongArguments as error:
            return wrong_arguments(error)
        context = (Run(run, stop=NoWait()),) if registered.arguments.takes_context else ()
        try:
            value = registered.function(*context, **given)
            return returned(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            return raised(error)

    def _answers(self, known: Mapping[str, Answers], name: str, run: ClaimedRun, hint: str) -> Answers:
        found = known.get(name) or next(
            (answers for pattern, answers in known.items() if fnmatchcase(name, pattern)), None
        )
        if found is None or not found.is_told:
            raise Unscripted(
                f"{self._name_of(run.job_id)} calls {name}, and nobody said how that ends; say {hint}"
            )
        return found


def _payload(run: ClaimedRun) -> Any:
    return msgspec.json.decode(run.spec.payload)
