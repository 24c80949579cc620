"""Hourhand, a distributed job scheduler. This file owns the version and names what users import from here.

Names are resolved when first used, so that a command that needs none of them does not load their modules.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from hourhand.client import AsyncClient, Client
    from hourhand.client.reporting import report, report_async
    from hourhand.functions import GiveUp, Hourhand, Retry, RetryLater, Run, Skip
    from hourhand.receiver import (
        EFFECTS_DDL,
        InvalidSignature,
        OldAttempt,
        exactly_once,
        forget_effects,
        forget_effects_async,
        verify,
    )

__all__ = [
    "EFFECTS_DDL",
    "AsyncClient",
    "Client",
    "GiveUp",
    "Hourhand",
    "InvalidSignature",
    "OldAttempt",
    "Retry",
    "RetryLater",
    "Run",
    "Skip",
    "__version__",
    "exactly_once",
    "forget_effects",
    "forget_effects_async",
    "report",
    "report_async",
    "verify",
]

_HOMES = {
    "AsyncClient": "hourhand.client",
    "Client": "hourhand.client",
    "EFFECTS_DDL": "hourhand.receiver",
    "GiveUp": "hourhand.functions",
    "Hourhand": "hourhand.functions",
    "InvalidSignature": "hourhand.receiver",
    "OldAttempt": "hourhand.receiver",
    "Retry": "hourhand.functions",
    "RetryLater": "hourhand.functions",
    "Run": "hourhand.functions",
    "Skip": "hourhand.functions",
    "exactly_once": "hourhand.receiver",
    "forget_effects": "hourhand.receiver",
    "forget_effects_async": "hourhand.receiver",
    "report": "hourhand.client.reporting",
    "report_async": "hourhand.client.reporting",
    "verify": "hourhand.receiver",
}


if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'hourhand' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(home), name)
