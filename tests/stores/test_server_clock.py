"""The server's time by round trips: never ahead of it, close behind it, and not moved by answers that were slow."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.stores.postgres.server_clock import ServerClock

SERVER_AT = 1_794_819_600_000_000
MS = 1_000


class World:
    """A machine's monotonic time, and a server whose clock may go at another pace and be set."""

    def __init__(self, *, wall_at: int = SERVER_AT, pace: float = 1.0) -> None:
        self.passed_us = 0
        self._server_at = float(SERVER_AT)
        self.pace = pace
        self.clock = ServerClock(monotonic_us=lambda: 5_000 + self.passed_us, wall_us=lambda: wall_at)

    @property
    def server_at(self) -> int:
        return int(self._server_at)

    def set_server(self, by_us: int) -> None:
        self._server_at += by_us

    def wait(self, us: int) -> None:
        self.passed_us += us
        self._server_at += us * self.pace

    def ask(self, there_us: int = 100, back_us: int = 100) -> None:
        asked_us = self.clock.monotonic_us()
        self.wait(there_us)
        answer = self.server_at
        self.wait(back_us)
        self.clock.seen(answer, asked_us)

    @property
    def ahead_us(self) -> int:
        return self.clock.now() - self.server_at


def test_before_the_first_answer_it_is_the_machine_s_own_time() -> None:
    world = World(wall_at=SERVER_AT - HOUR_US)
    assert world.clock.now() == SERVER_AT - HOUR_US


def test_a_wrong_wall_clock_does_not_matter_once_the_server_has_answered() -> None:
    for wrong_us in (-HOUR_US, HOUR_US):
        world = World(wall_at=SERVER_AT + wrong_us)
        world.clock.now()
        world.ask(there_us=300, back_us=200)
        assert world.ahead_us == -200  # by the way back
        world.wait(10 * SECOND_US)
        assert world.ahead_us == -200


@given(st.lists(st.tuples(st.integers(0, SECOND_US), st.integers(0, 5_000_000), st.integers(0, 5_000_000))))
def test_it_is_never_ahead_and_hardly_later_than_its_best_answer(steps: list[tuple[int, int, int]]) -> None:
    world = World()
    world.ask(there_us=0, back_us=100)
    seen = []
    for wait_us, there_us, back_us in steps:
        world.wait(wait_us)
        world.ask(there_us, back_us)
        seen.append(world.clock.now())
        windows = world.passed_us // (30 * SECOND_US)
        assert -100 - windows * 15 * MS <= world.ahead_us <= 0
    assert all(before <= after for before, after in pairwise(seen))


def test_an_hour_of_slow_answers_only_costs_what_clocks_can_drift_in_it() -> None:
    world = World()
    world.ask()
    for _ in range(360):
        world.wait(10 * SECOND_US)
        world.ask(there_us=SECOND_US, back_us=SECOND_US)
    assert -SECOND_US - MS <= world.ahead_us <= -100
    world.ask()
    assert world.ahead_us == -100


def test_a_slow_answer_does_not_set_it_back() -> None:
    world = World()
    world.ask()
    for slow in ((10, 5 * SECOND_US), (5 * SECOND_US, 10), (3 * SECOND_US, 3 * SECOND_US)):
        world.ask(*slow)
        assert world.ahead_us == -100 or world.ahead_us == -10


def test_a_quicker_answer_brings_it_closer() -> None:
    world = World()
    world.ask(back_us=40 * MS)
    assert world.ahead_us == -40 * MS
    world.ask(back_us=MS)
    assert world.ahead_us == -MS


@given(st.sampled_from([0.999, 0.9999, 1.0001, 1.001]))
def test_it_follows_clocks_that_drift_apart(pace: float) -> None:
    world = World(pace=pace)
    for _ in range(200):
        world.ask(there_us=200, back_us=200)
        assert -2 * MS < world.ahead_us <= 1 + 200 + SECOND_US * abs(1 - pace)
        world.wait(SECOND_US)
    world.ask()
    assert -2 * MS < world.ahead_us <= 200


def test_a_server_clock_that_is_set_back_is_followed_with_the_next_answer() -> None:
    world = World()
    world.ask()
    world.clock.now()
    world.set_server(-HOUR_US)
    world.ask()
    assert world.ahead_us == -100
    world.set_server(2 * HOUR_US)
    world.ask()
    assert world.ahead_us == -100


def test_a_small_step_back_is_made_up_for_by_waiting() -> None:
    world = World()
    world.ask()
    before = world.clock.now()
    world.set_server(-300 * MS)
    world.ask()
    assert world.clock.now() == before
    world.wait(400 * MS)
    assert world.clock.now() > before
    assert world.ahead_us == -100
