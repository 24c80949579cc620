"""One request until it is answered: what is tried again, when, and what the answer means.

Tried again: what never reached the server, and what the server turned away with 429; and, where a repeat
does no harm (an Idempotency-Key sees to that), what may have reached it, 503, and what is still being carried out: that for as
long as the server lets a request take whose process may have died. `Retry-After` is honoured; where it asks for more patience
than ours, the error says how long, and its receiver decides.
"""

from dataclasses import dataclass

import msgspec

from hourhand.client.flow import Answer, Document, Flow, Pause, Request, Stream, Trouble
from hourhand.client.problems import Unreachable, error_of, is_in_flight, retry_after_s
from hourhand.core.instant import SECOND_US
from hourhand.core.repeating import LEASE_US

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
IN_FLIGHT_S = (
    LEASE_US / SECOND_US + 5
)  # by then who had the key has answered, or died and lets a repeat take over
_KINDS = {
    dict: "an empty one",
    list: "an array",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}


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
        doublings = min(tries - 1, 60)  # streams come back for ever, and a power of so many has no number
        return min(FIRST_PAUSE_S * 2.0**doublings, LONGEST_PAUSE_S) * (1 - spread)


def exchange(asked: Request | Stream, patience: Patience, server: str) -> Flow[Answer]:
    """The answer to a request; raises the error that it means where it is none of 2xx."""
    tries, waited_s = 0, 0.0
    request = asked.request if isinstance(asked, Stream) else asked
    while True:
        answer: Answer | Trouble = yield asked
        tries += 1
        if isinstance(answer, Trouble):
            if tries > patience.retries or (answer.sent and not request.repeatable):
                raise _unreachable(request, answer, server)
            yield Pause(seconds=patience.pause_s(tries, None))
            continue
        if 200 <= answer.status < 300:
            return answer
        asked_s = retry_after_s(answer)
        if (asked_s or 0) > LONGEST_PAUSE_S:
            raise error_of(answer)
        if request.repeatable and answer.status == 409 and is_in_flight(answer):
            pause_s = max(asked_s or 0, FIRST_PAUSE_S)
            waited_s += pause_s
            if waited_s > IN_FLIGHT_S or not patience.retries:
                raise error_of(answer)
            tries -= 1  # it has arrived, and the time that is left to it is bounded
        else:
            turned_away = answer.status == 429 or (request.repeatable and answer.status in (502, 503, 504))
            if not turned_away or tries > patience.retries:
                raise error_of(answer)
            pause_s = patience.pause_s(tries, asked_s)
        yield Pause(seconds=pause_s)


def document_in(answer: Answer, server: str) -> Document:
    """The JSON object of an answer; Unreachable where something else than hourhand answers."""
    return document_in_line(answer.body, server)


def document_in_line(text: bytes | str, server: str) -> Document:
    """The same of one line of it."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise stranger(server, "its answer is not JSON") from None
    if not isinstance(found, dict) or not found:
        raise stranger(server, f"expected a JSON object with members, got {_KINDS[type(found)]}")
    return found


def stranger(server: str, why: str) -> Unreachable:
    """What answers is something else."""
    return Unreachable(f"what answers at {server} is not hourhand: {why}")


def _unreachable(request: Request, trouble: Trouble, server: str) -> Unreachable:
    if trouble.sent:
        done = "" if request.method == "GET" else "; the request may have been carried out"
        return Unreachable(f"{server} did not answer: {trouble.words}{done}")
    return Unreachable(f"no hourhand answers at {server}; start one with `hourhand up`")
