"""Examples of the statements about jobs and what makes runs of them: clocks, graphs, backfills, skips."""

from hourhand.core.instant import HOUR_US, SECOND_US
from tests.stores import postgres_at_size as size
from tests.stores.postgres_at_size import BIG, HEAVY_JOB, NOW_AT, SMALL, WIDE_JOB
from tests.stores.postgres_examples.shape import (
    A_CLASS,
    FOREVER,
    HELD,
    JOB,
    JOB_IDS,
    LANES,
    PAGE,
    PLACES,
    Example,
)

CLOCKS = {
    "due_clocks": Example((NOW_AT + 60 * SECOND_US, list(range(64)), 100), 6_400, A_CLASS),
    "next_clock": Example((list(range(64)),)),
    "misfires_of": Example(
        {"before": NOW_AT, "clock_id": size.HERD_CLOCK, "next_at": 0},
        2_000,
        "the members of one clock, about to be planned",
    ),
    "lock_steps": Example(
        {
            "clock_ids": list(range(1, 101)),
            "expected": [NOW_AT + (n - 2000) * SECOND_US for n in range(1, 101)],
            "fences": [1] * 100,
        }
    ),
    "plan_members": Example(
        {
            "clock_ids": [size.HERD_CLOCK, 2],
            "ats": [NOW_AT + HOUR_US] * 2,
            "after_ats": [None, NOW_AT + HOUR_US - SECOND_US],
            "rooms": [0, 0],
            "backgrounds": [0, 0],
            "policies": [None, None],
            **{
                name: [None, None]
                for name in ("graces", "catch_ups", "untils", "since_froms", "since_belows", "late_tos")
            },
        },
        2_000,
        "the members of the clocks",
    ),
    "move_clocks": Example({"clock_ids": list(range(1, 101)), "next_ats": [NOW_AT] * 100}),
    "gaps_of": Example(("every 70", 70 % 64, 100)),
    "gaps_at": Example(("every 70", 70 % 64, NOW_AT, 100)),
    "add_gap": Example(([1], [5], [6], ["skip"], [0], [0], [1], [0], [NOW_AT])),
}

JOBS = {
    "pool_id": Example(("default",)),
    "add_pool": Example(("a third",)),
    "taken_ids": Example((JOB_IDS,)),
    "taken_keys": Example((BIG, [f"key-{n}" for n in JOB_IDS])),
    "add_job": Example(
        (
            [900_001],
            [BIG],
            [None],
            ["name"],
            [1],
            [0],
            [0],
            [None],
            [None],
            [None],
            [0],
            [0],
            [None],
            [None],
            [0],
            [0],
            [128],
            [1],
            [0],
            [0],
            [0],
            ["x"],
            [0],
        )
    ),
    "replace_job": Example(
        dict.fromkeys(
            ("key", "note", "paused_until", "clock_id", "once_at", "attend_at", "concurrency"),
        )
        | dict.fromkeys(
            ("version", "version_from", "paused", "since", "until", "updated_at", "lane", "at_most_once"), 1
        )
        | {"grace_us": 1, "timeout_us": 1, "name": "name", "spec": "x", "id": JOB, "rate": 0}
    ),
    "drop_job": Example((JOB,)),
    "get_job": Example((JOB,)),
    "get_jobs": Example((JOB_IDS,)),
    "lock_job": Example((JOB,)),
    "job_by_key": Example((BIG, "key-2")),
    "jobs_by_name": Example((BIG, "job-7", PAGE)),
    "jobs_page": Example((150_000, BIG, PAGE)),
    "jobs_with_text": Example((150_000, BIG, '"x"', 10_000, PAGE), 10_000, "as many are looked at"),
    "look_end": Example((150_000, BIG, 10_000), 10_000, "as many are looked at"),
    "paused_page": Example((150_000, BIG, PAGE)),
    "set_page": Example((150_000, BIG, "set-3", PAGE)),
    "count_of_tenant": Example((BIG, 100_000), 100_000, "as many are counted"),
    "count_paused": Example((BIG, 100_000), 100_000, "as many are counted"),
    "count_named": Example((BIG, "job-1", "job-2", 100_000), 100_000, "as many are counted"),
    "count_in_set": Example((BIG, "set-3", 100_000), 100_000, "as many are counted"),
    "add_to_set": Example(([BIG], ["set-3"], [JOB])),
    "drop_from_set": Example((BIG, "set-3", 3)),
    "named_page": Example(
        {"tenant": BIG, "low": "job-17", "high": "job-18", "before": 150_000, "limit": PAGE},
        20_000,
        "as many of a name are put in order",
    ),
    "failing_page": Example((150_000, BIG, PAGE)),
    "over_versions": Example((4,)),
    "version_tenant": Example((4,)),
    "add_version": Example(([JOB], [9], [BIG], [0], [0], [0], [0], [None], ["x"])),
    "find_clocks": Example(('[["every 70", 6], ["every 71", 7]]',)),
    "lock_clocks": Example(('[["every 70", 6], ["every 71", 7]]',)),
    "add_clock": Example(([1, 1], ["every 65", "new"], [NOW_AT, NOW_AT])),
    "clock_next": Example((70,)),
    "wake_clock": Example((NOW_AT, 70)),
    "add_member": Example(([2], [900_001], [128], [0], [0], [0], ["skip"], [0], [0])),
    "drop_member": Example((3, 2)),
    "add_planned": Example(([NOW_AT], [900_001], [128], [NOW_AT], [0], [0], [0])),
    "add_scheduled": Example(([NOW_AT], [900_001], [128], [NOW_AT], [0], [0], [0], [NOW_AT - SECOND_US])),
    "lock_planned": Example((30_001, [NOW_AT + n * SECOND_US for n in range(-30, 30)])),
    "drop_planned": Example((30_001, [NOW_AT + n * SECOND_US for n in range(-30, 30)])),
    "move_planned": Example({"job_id": 30_001, "moves": f"[[{NOW_AT}, 128, {NOW_AT}]]"}),
    "planned_beside": Example((30_000,)),
    "move_running": Example({"job_id": WIDE_JOB, "lane": 128, "background": 224}),
    "move_blocked": Example({"job_id": 303, "lane": 128, "background": 224}),
    "newest_run": Example({"job_id": 3_000}),
    "run_exists": Example({"job_id": 303, "scheduled_at": NOW_AT}),
    "run_is_live": Example({"job_id": 303, "scheduled_at": NOW_AT}),
    "jobs_to_tend": Example((NOW_AT + 9 * HOUR_US, 100)),
    "next_attend": Example(()),
    "attend_later": Example((NOW_AT, JOB)),
    "forget_clock": Example((JOB,)),
    "waiting_beside": Example({"job_id": 303}),
    "request_key": Example((77, "request")),
    "add_request_key": Example(([900_001], ["k"], [NOW_AT], [NOW_AT])),
    "cancel_running_of": Example((WIDE_JOB,)),
    "drop_blocked_of": Example((303,)),
    "drop_idle_of": Example((WIDE_JOB,)),
    "drop_reported_of": Example((WIDE_JOB,)),
    "drop_dead_of": Example((303,)),
    "add_ending": Example(
        ([JOB], [NOW_AT], [9], [5], [0], [0], [NOW_AT], [None], [NOW_AT], [1], [None], ["{}"])
    ),
}

_LOOKED = "as many are looked at one by one"
_OWN = {"tenant": SMALL, "bound": 10_000}

SIZES = {
    "count_own": Example({"tenant": BIG, "bound": 100_000}, 100_000, "as many are counted one by one"),
    "own_planned": Example({**_OWN, "lanes": LANES}, 10_000, _LOOKED),
    "own_running": Example(_OWN, 10_000, _LOOKED),
    "own_blocked": Example(_OWN, 10_000, _LOOKED),
    "own_waiting": Example(_OWN, 10_000, _LOOKED),
}

_PAIRS = f"[[7, {NOW_AT}], [8, {NOW_AT}], [1007, {NOW_AT}]]"

GRAPHS = {
    "lock_graph": Example((BIG,)),
    "graph_jobs": Example((BIG, JOB_IDS)),
    "newest_runs": Example({"job_ids": HELD[:20], "now": NOW_AT}),
    "runs_at": Example({"job_ids": HELD[:20], "scheduled_at": NOW_AT, "now": NOW_AT}),
    "children_now": Example((JOB_IDS, 10_001)),
    "parents_among": Example((HELD,)),
    "add_edge": Example(([900_001], [900_002], [0], [NOW_AT])),
    "ended_ahead": Example(([HEAVY_JOB, 2], NOW_AT - 60 * SECOND_US), 1_000, "what one job did in a minute"),
    "end_edges": Example({"until": NOW_AT, "child_id": 1_007, "parent_ids": [7, 8]}),
    "purge_edges": Example((NOW_AT, 100)),
    "add_descent": Example(([7], [NOW_AT], [3], [0])),
    "take_descents": Example((100,)),
    "is_descending": Example((7, NOW_AT)),
    "children_of": Example((_PAIRS,)),
    "parents_at": Example((_PAIRS,)),
    "edges_at": Example((2_003, NOW_AT)),
    "share_jobs": Example((JOB_IDS,)),
    "add_waiting": Example(([900_001], [NOW_AT], [0], [0], [0], [0], [6], ["[1]"])),
    "hold_waiting": Example((_PAIRS,)),
    "runs_elsewhere": Example((_PAIRS,)),
    "drop_waiting": Example((_PAIRS,)),
    "waiting_of": Example((9, 1_000)),
    "waiting_at": Example((9, NOW_AT)),
    "add_signal": Example(([900_001], [NOW_AT], [1], [3])),
    "signals_of": Example((_PAIRS,)),
    "drop_signals": Example((_PAIRS,)),
    "forget_signals": Example((9, NOW_AT, [1, 2])),
    "waits_to_look_at": Example((NOW_AT + 300 * SECOND_US, 100)),
    "look_later": Example((f"[[7, {NOW_AT}, {NOW_AT}], [8, {NOW_AT}, {NOW_AT}]]",)),
    "ended_as": Example({"job_id": HEAVY_JOB, "scheduled_at": NOW_AT}),
    "drop_waiting_of": Example((9,)),
    "drop_signals_of": Example((9,)),
    "drop_waiting_after": Example((11, NOW_AT - 1)),
    "drop_signals_after": Example((11, NOW_AT - 1)),
}

_BACKFILL = {
    "state": 0,
    "present_rule": "every 70",
    "while_paused": 0,
    "mark": NOW_AT,
    "next_at": NOW_AT,
    **dict.fromkeys(("fed", "already", "succeeded", "failed", "skipped", "cancelled"), 1),
    "reason": None,
    "updated_at": NOW_AT,
    "finished_at": None,
}

_PASSED = [NOW_AT - n * SECOND_US for n in range(100)]
_EARLIER = [NOW_AT - (n + 1) * 1000 for n in range(100)]

BACKFILLS = {
    "add_backfill": Example(
        {
            **_BACKFILL,
            "id": 900_001,
            "job_id": 900_001,
            "tenant": BIG,
            "from_at": 0,
            "to_at": 1,
            "newest_first": 0,
            "pace_us": None,
            "max_open": 100,
            "note": None,
            "rule": "every 70",
            "total": 10,
            "created_at": NOW_AT,
        }
    ),
    "put_backfill": Example({**_BACKFILL, "id": 200}),
    "get_backfill": Example((200,)),
    "lock_backfill": Example((200,)),
    "backfills_page": Example((BIG, 15_000, PAGE)),
    "backfills_page_of": Example((BIG, 201, FOREVER, PAGE)),
    "unfinished_backfills": Example((0, 100)),
    "open_backfill_of": Example((SMALL, 400)),
    "count_unfinished": Example((SMALL, 100)),
    "feed_runs": Example({"job_id": HEAVY_JOB, "lane": 224, "due_at": NOW_AT, "times": _PASSED}),
    "add_backfill_run": Example(([200] * 100, PLACES)),
    "backfill_runs_of": Example((200, 2_000)),
    "drop_backfill_runs": Example((200, [NOW_AT - (n * 100 + 1) * SECOND_US for n in range(100)])),
    "last_states": Example((HEAVY_JOB, _PASSED)),
    "take_fed": Example((HEAVY_JOB, _PASSED)),
    "take_idle_fed": Example((WIDE_JOB, _EARLIER)),
    "take_waiting": Example((HEAVY_JOB, [at - 100 * SECOND_US for at in _PASSED])),
    "end_backfills_of": Example({"reason": "job deleted", "now": NOW_AT, "tenant": SMALL, "job_id": 400}),
    "forget_backfill_runs": Example(([200, 400],)),
    "purge_backfills": Example((NOW_AT, 100)),
}

SEGMENTS = {"all_segments": Example()}

SKIPS = {
    "add_skip": Example({"job_id": 77, "scheduled_at": NOW_AT, "made_at": NOW_AT, "note": None}),
    "skips_of": Example((77, NOW_AT)),
    "drop_skips": Example((77, [NOW_AT + 27 * SECOND_US])),
    "drop_skips_of": Example((77,)),
    "drop_markers": Example((77, [NOW_AT + (3_677 + n) * SECOND_US for n in range(50)])),
    "due_skips": Example((NOW_AT, 100)),
    "take_markers": Example((f"[[{NOW_AT + 3_677 * SECOND_US}, 77], [{NOW_AT}, 78]]",)),
    "add_rerun": Example({"job_id": 900_001, "scheduled_at": 1, "of_at": 0, "made_at": NOW_AT}),
    "reruns_among": Example((77, [NOW_AT + 77, NOW_AT - 5_077])),
    "purge_reruns": Example((NOW_AT, 100)),
}
