"""What a worker can run, as it tells others: its pools, whether it runs commands, the functions that it has. Pure."""

import msgspec

from hourhand.core.model import JobSpec, PythonTarget, ShellTarget

MAX_FUNCTIONS = 1_000  # names that a worker tells; of more it says nothing


class Serves(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker can run."""

    pools: tuple[str, ...]
    shell: bool = False
    functions: tuple[str, ...] | None = None  # None: it does not say

    def takes(self, spec: JobSpec) -> bool:
        """Whether it takes runs of such a job at all."""
        return spec.pool in self.pools

    def runs(self, spec: JobSpec) -> bool:
        """Whether it can also carry them out, as far as it says."""
        match spec.target:
            case ShellTarget():
                return self.shell
            case PythonTarget(function=function):
                return self.functions is None or function in self.functions
            case _:
                return True
