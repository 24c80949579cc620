"""Python functions as jobs: the decorator people write, the context they get, and how workers find them.

Declares only. Calling a function for a run is `targets.python`; sending schedules to a server is `apply`.
"""

from hourhand.functions.context import Run
from hourhand.functions.decorator import Hourhand, JobFunction, Retry
from hourhand.functions.modules import load_modules
from hourhand.functions.registry import REGISTRY, RegisteredFunction, Registry
from hourhand.functions.signals import GiveUp, RetryLater, Skip

__all__ = [
    "REGISTRY",
    "GiveUp",
    "Hourhand",
    "JobFunction",
    "RegisteredFunction",
    "Registry",
    "Retry",
    "RetryLater",
    "Run",
    "Skip",
    "load_modules",
]
