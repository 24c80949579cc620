"""For those who receive calls from hourhand: is this one genuine, of which run is it, and has it had its effect?

`verifying` checks signatures, `once` makes an effect happen once, in the receiver's own transaction. Reporting
on accepted calls is the client's, `hourhand.report`.
"""

from hourhand.receiver.effects import EFFECTS_DDL
from hourhand.receiver.once import ExactlyOnce, OldAttempt, exactly_once, forget_effects, forget_effects_async
from hourhand.receiver.verifying import InvalidSignature, verify

__all__ = [
    "EFFECTS_DDL",
    "ExactlyOnce",
    "InvalidSignature",
    "OldAttempt",
    "exactly_once",
    "forget_effects",
    "forget_effects_async",
    "verify",
]
