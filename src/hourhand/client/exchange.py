"""One request until it is answered: what is tried again, when, and what the answer means.

Tried again: what never reached the server, and what the server turned away with 429; and, where a repeat
does no harm (an Idempotency-Key sees to that), what may have reached it, 503, and what is still being carried out. `Retry-After` is honoured; where it asks for more patience
than ours, the error says how long, and its receiver decides.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from hourhand.client.flow import Answer, Flow, Pause, Request, Trouble
from hourhand.client.problems import Unreachable, error_of, is_in_flight, retry_after_s

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a request is tried again. `salt` spreads the pauses of many clients."""

    retries: int = 3
    salt: int = 0

    def pause_s(self, tries: int, asked_s: float | None) -> float:
        """Before trying again after `tries` failures: doubling, less up to a quarter, or as asked."""
        if asked_s is not None:
            return asked_s
        spread = (self.salt >> 8 * (tries % 6) & 0xFF) / 0xFF / 4
        return min(FIRST_PAUSE_S * 2.0 ** (tries - 1), LONGEST_PAUSE_S) * (1 - spread)


def exchange(request: Request, patience: Patience, server: str) -> Flow[Answer]:
    """The answer to a request; raises the error that it means where it is none of 2xx."""
    tries = 0
    while True:
        answer: Answer | Trouble = yield request
        tries += 1
        if isinstance(answer, Trouble):
            if tries > patience.retries or (answer.sent and not request.repeatable):
                raise _unreachable(answer, server)
            yield Pause(seconds=patience.pause_s(tries, None))
            continue
        if 200 <= answer.status < 300:
            return answer
        turned_away = answer.status == 429 or (request.repeatable and _may_pass(answer))
        asked_s = retry_after_s(answer)
        if not turned_away or tries > patience.retries or (asked_s or 0) > LONGEST_PAUSE_S:
            raise error_of(answer)
        yield Pause(seconds=patience.pause_s(tries, asked_s))


def _may_pass(answer: Answer) -> bool:
    """Whether the same request may be answered otherwise soon: the server is busy, or busy with this very one."""
    return answer.status in (502, 503, 504) or (answer.status == 409 and is_in_flight(answer))


def document_in(answer: Answer, server: str) -> Any:
    """The JSON of an answer; Unreachable where something else than hourhand answers."""
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        raise Unreachable(f"what answers at {server} is not hourhand: its answer is not JSON") from None


def _unreachable(trouble: Trouble, server: str) -> Unreachable:
    if trouble.sent:
        return Unreachable(f"{server} did not answer: {trouble.words}; the request may have been carried out")
    return Unreachable(f"no hourhand answers at {server}; start one with `hourhand up`")
