"""Executes attempts as commands: argv, never a text for a shell; a clean environment; the payload on stdin.

Each command is a process group of its own (`shell_command`), ended as a whole: when it must end it is asked
(TERM), then killed (KILL); when the worker is killed, a watcher kills it (`shell_guard`). What it says goes to the
attempt's log. A worker whose operator did not allow commands has `NoShell` instead.
"""

import asyncio
import os
import signal
from collections.abc import Mapping

from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_instant
from hourhand.core.model import ShellTarget
from hourhand.core.run import ClaimedRun
from hourhand.ports.log import RunLog
from hourhand.ports.target import Result
from hourhand.targets.shell_command import Command, Floods
from hourhand.targets.shell_guard import Guard
from hourhand.targets.shell_outcome import exited, not_allowed, not_started

GRACE_S = 5.0  # between TERM and KILL
MAX_COMMANDS = 256  # at once; the others wait for a place
PAYLOAD_VARIABLE_BYTES = 32 * 1024  # up to here the payload is in the environment too
PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOG_S = 0.75  # for the store to take what was said last
_NO_PAYLOAD = b"null"


class NoShell:
    """Where commands are not allowed."""

    async def execute(self, run: ClaimedRun) -> Result:
        """The run waits for another worker."""
        return not_allowed()

    async def close(self) -> None:
        """Nothing to let go of."""


class ShellExecutor:
    """The shell target."""

    def __init__(
        self, log: RunLog, *, environment: Mapping[str, str] = os.environ, grace_s: float = GRACE_S
    ) -> None:
        self._log = log
        self._grace_s = grace_s
        passed_on = {name: environment[name] for name in PASSED_ON if name in environment}
        self._environment = {"PATH": DEFAULT_PATH, **passed_on}
        self._places = asyncio.Semaphore(MAX_COMMANDS)
        self._turn = asyncio.Lock()
        self._guard = Guard()
        self._floods = Floods()
        self._commands: set[Command] = set()

    async def execute(self, run: ClaimedRun) -> Result:
        """One command and what came of it; see `ports.target`."""
        target = run.spec.target
        assert isinstance(target, ShellTarget)
        async with self._places:
            log = self._log.open(run)
            async with self._turn:  # starting one holds everybody up for a millisecond: let others in between
                await asyncio.sleep(0)
                try:
                    command = Command.start(
                        target, self._variables(run, target), _stdin(run), log, self._floods
                    )
                except (OSError, ValueError) as error:
                    return not_started(error, target)
                self._guard.begin(command.group)
                self._commands.add(command)
            try:
                code = await self._until_end(command)
            finally:
                self._commands.discard(command)
                self._guard.end(command.group)
                await log.close(_LOG_S)
        return exited(code, target)

    async def close(self) -> None:
        """Kill what still runs."""
        for command in self._commands:
            command.signal(signal.SIGKILL)
        self._guard.close()

    async def _until_end(self, command: Command) -> int:
        try:
            await command.ended()
        except asyncio.CancelledError:
            try:
                await command.terminate(self._grace_s)
            finally:
                await command.finish()
            raise
        return await command.finish()

    def _variables(self, run: ClaimedRun, target: ShellTarget) -> dict[str, str]:
        payload = bytes(run.spec.payload)
        small = payload != _NO_PAYLOAD and len(payload) <= PAYLOAD_VARIABLE_BYTES
        return {
            **self._environment,
            **target.env,
            "HOURHAND_RUN_ID": run.run_id,
            "HOURHAND_IDEMPOTENCY_KEY": run.run_id,
            "HOURHAND_JOB": format_job_id(run.job_id),
            "HOURHAND_SCHEDULED_AT": format_instant(run.scheduled_at),
            "HOURHAND_ATTEMPT": str(run.fence),
            "HOURHAND_DEADLINE": format_instant(run.deadline_at),
            **({"HOURHAND_PAYLOAD": payload.decode()} if small else {}),
        }


def _stdin(run: ClaimedRun) -> bytes:
    payload = bytes(run.spec.payload)
    return b"" if payload == _NO_PAYLOAD else payload
