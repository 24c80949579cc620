"""An example of parameters for every named statement, and how many rows it may handle with them.

A statement that reads by key handles as many rows as it is given keys; a page, a bounded number. What may
handle more says why.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from hourhand.core.instant import HOUR_US, SECOND_US
from tests.stores import postgres_at_size as size
from tests.stores.postgres_at_size import BIG, DEADLY_JOB, HEAVY_JOB, NOW_AT, SMALL, TODAY, WIDE_JOB

FEW = 500  # by key, or a page; rows that earlier examples left behind are met too
PAGE = 50
_JOB = 100_002
_JOBS = list(range(_JOB, _JOB + 100))
_FOREVER = (1 << 63) - 1
_ZEROS = [0] * 100
_PLACES = list(range(100))
_HELD = [n * 3 for n in range(201, 301)]  # jobs with a run in slot 0, most of them executing
_HELD_AT = [NOW_AT - n * 1000 for n in range(201, 301)]
_LANES = list(range(128, 192))
_END = {"failed_at": _FOREVER, "job": _FOREVER, "scheduled_at": _FOREVER}
_LETTERS = {"tenant": BIG, "failed_from": 0, "failed_to": _FOREVER, "limit": PAGE}
_HISTORY_PLACE = {"finished_at": _FOREVER, "job_id": _FOREVER, "scheduled_at": _FOREVER}
_WINDOW = {"from_at": NOW_AT - 60 * SECOND_US, "to_at": NOW_AT, "first": TODAY - 1, "last": TODAY + 1}
_COARSE = "the index over finish times points at ranges of 32 pages, of each day"
_DAYS = "what a job did in the days around the window"


class Example(NamedTuple):
    """Parameters as the store gives them, and the most rows that any part of the plan may handle."""

    parameters: Sequence[Any] | dict[str, Any] = ()
    most: int = FEW
    why: str = ""  # it may handle more than a few


def _settled(**more: list[Any]) -> dict[str, Any]:
    return {
        "places": _PLACES,
        "job_ids": _HELD,
        "slots": _ZEROS,
        "scheduled_ats": _HELD_AT,
        "fences": [1] * 100,
        **more,
    }


_OUTCOME = {
    "versions": [1] * 100,
    "tries": _ZEROS,
    "started_ats": _HELD_AT,
    "finished_ats": [NOW_AT] * 100,
    "details": [None] * 100,
    "worker": "worker-1",
}
_A_CLASS = "a hundred of each of 64 lanes"
_UPCOMING = {
    "lanes": _LANES,
    "due_ats": [0] * 64,
    "scheduled_ats": [0] * 64,
    "job_ids": [0] * 64,
    "until": NOW_AT + 2 * SECOND_US,
    "most": 100,
}

CLAIMS = {
    "lease_of": Example((7,)),
    "waiting_lanes": Example({"first": 128, "last": 256}),
    "lanes": Example((["default", "other"],)),
    "later_moments": Example({"kinds": [0, 1], "lanes": [128, 129], "after": NOW_AT}),
    "take_planned": Example(
        {
            "lanes": _LANES,
            "due_ats": [0] * 64,
            "scheduled_ats": [0] * 64,
            "job_ids": [0] * 64,
            "uptos": [NOW_AT + 2 * SECOND_US] * 64,
            "limits": [100] * 64,
            "now": NOW_AT,
            "wanted": 1_000,
            "node_id": 7,
        },
        6_400,
        _A_CLASS,
    ),
    "take_newest": Example(
        {
            "lanes": _LANES,
            "until": NOW_AT + 2 * SECOND_US,
            "most": 100,
            "now": NOW_AT,
            "wanted": 100,
            "node_id": 99,
        },
        6_400,
        _A_CLASS,
    ),
    "take_given": Example(
        {
            "job_ids": [n for n in range(40_000, 40_100) if n % 2],
            "scheduled_ats": [NOW_AT + 10 * SECOND_US] * 50,
            "slots": [0] * 50,
            "now": NOW_AT,
            "node_id": 7,
        }
    ),
    "put_back": Example(
        {
            "job_ids": [*_HELD[:50], *range(900_001, 900_051)],
            "slots": _ZEROS,
            "scheduled_ats": _HELD_AT,
            "due_ats": _HELD_AT,
            "lanes": [128] * 100,
            "fences": _ZEROS,
            "triggers": _ZEROS,
            "tries": _ZEROS,
            "node_id": 7,
        }
    ),
    "take_ready": Example(
        {"lanes": _LANES, "until": NOW_AT, "most": 100, "wanted": 100, "now": NOW_AT, "node_id": 7},
        6_400,
        _A_CLASS,
    ),
    "take_named": Example(
        {
            "job_ids": [n for n in range(40_000, 40_100) if n % 2],
            "scheduled_ats": [NOW_AT + 10 * SECOND_US] * 50,
            "until": NOW_AT + 20 * SECOND_US,
            "pools": ["default", "other"],
            "now": NOW_AT,
            "wanted": 100,
            "node_id": 7,
        }
    ),
    "take_named_ready": Example(
        {
            "job_ids": [*_HELD, *_HELD],
            "scheduled_ats": [*_HELD_AT, *_HELD_AT],
            "lows": [*_ZEROS, *_HELD_AT],
            "highs": [*[999] * 100, *_HELD_AT],
            "until": NOW_AT,
            "pools": ["default", "other"],
            "now": NOW_AT,
            "wanted": 100,
            "node_id": 7,
        }
    ),
    "still_waiting": Example(
        {
            "places": json.dumps(
                [[n, NOW_AT + 10 * SECOND_US, 0, 999] for n in range(40_000, 40_100)]
                + [[job, at, 0, 999] for job, at in zip(_HELD, _HELD_AT, strict=True)]
            ),
            "pools": '["default", "other"]',
        }
    ),
    "pool_names": Example(),
    "all_lanes": Example(),
    "upcoming_planned": Example({**_UPCOMING, "routed": True}, 6_400, _A_CLASS),
    "upcoming_ready": Example({**_UPCOMING, "routed": True}, 6_400, _A_CLASS),
    "hold_slots": Example((_HELD,)),
    "holders_of": Example((_HELD,)),
    "try_jobs": Example((_HELD,)),
    "hold_free_slots": Example((_HELD,)),
    "slots_of": Example(([WIDE_JOB, *_HELD],)),
    "limits_of": Example((_HELD,)),
    "scheduled_waiting": Example((_HELD[:10],)),
    "caught_up_waiting": Example(([HEAVY_JOB, *_HELD[:9]],)),
    "take_blocked_rows": Example((f"[[306, {NOW_AT - 1}], [309, {NOW_AT - 2}]]",)),
    "add_blocked": Example(
        (_JOBS, _ZEROS, _ZEROS, [128] * 100, _ZEROS, _ZEROS, _ZEROS, _ZEROS),
    ),
    "take_blocked": Example((306, NOW_AT - 1)),
    "take_planned_row": Example((NOW_AT, 30_001)),
    "take_planned_rows": Example((f"[[{NOW_AT}, 30001], [{NOW_AT}, 30002]]",)),
    "take_idle_row": Example((600 * 3, NOW_AT)),
    "to_background": Example((f"[[{NOW_AT}, 30001], [{NOW_AT}, 30002]]",)),
    "ask_cancel": Example((WIDE_JOB,)),
}

CLOCKS = {
    "due_clocks": Example((NOW_AT + 60 * SECOND_US, list(range(64)), 100), 6_400, _A_CLASS),
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
    "taken_ids": Example((_JOBS,)),
    "taken_keys": Example((BIG, [f"key-{n}" for n in _JOBS])),
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
        | {"grace_us": 1, "timeout_us": 1, "name": "name", "spec": "x", "id": _JOB, "rate": 0}
    ),
    "drop_job": Example((_JOB,)),
    "get_job": Example((_JOB,)),
    "get_jobs": Example((_JOBS,)),
    "lock_job": Example((_JOB,)),
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
    "add_to_set": Example(([BIG], ["set-3"], [_JOB])),
    "drop_from_set": Example((BIG, "set-3", 3)),
    "named_page": Example(
        {"tenant": BIG, "low": "job-17", "high": "job-18", "before": 150_000, "limit": PAGE},
        20_000,
        "as many of a name are put in order",
    ),
    "failing_page": Example((150_000, BIG, PAGE)),
    "over_versions": Example((4,)),
    "version_tenant": Example((4,)),
    "add_version": Example(([_JOB], [9], [BIG], [0], [0], [0], [0], [None], ["x"])),
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
    "attend_later": Example((NOW_AT, _JOB)),
    "forget_clock": Example((_JOB,)),
    "waiting_beside": Example({"job_id": 303}),
    "request_key": Example((77, "request")),
    "add_request_key": Example(([900_001], ["k"], [NOW_AT], [NOW_AT])),
    "cancel_running_of": Example((WIDE_JOB,)),
    "drop_blocked_of": Example((303,)),
    "drop_idle_of": Example((WIDE_JOB,)),
    "drop_reported_of": Example((WIDE_JOB,)),
    "drop_dead_of": Example((303,)),
    "add_ending": Example(
        ([_JOB], [NOW_AT], [9], [5], [0], [0], [NOW_AT], [None], [NOW_AT], [1], [None], ["{}"])
    ),
}

LETTERS = {
    "dead_page": Example({**_LETTERS, **_END, "fingerprint": None}),
    "dead_page_of": Example({**_LETTERS, **_END, "fingerprint": None, "job_id": DEADLY_JOB}),
    "dead_by_error": Example((BIG, PAGE), 20_000, "the newest of a tenant are counted"),
    "dead_by_job": Example((BIG, PAGE), 20_000, "the newest of a tenant are counted"),
    "dead_at": Example((303, NOW_AT - 101 * SECOND_US)),
    "take_dead": Example((303, NOW_AT - 101 * SECOND_US, BIG)),
    "ask_cancel_run": Example((WIDE_JOB, NOW_AT - 1000)),
}

READING = {
    "planned_at": Example((30_001, [NOW_AT + n * SECOND_US for n in range(-30, 30)])),
    "running_of": Example((WIDE_JOB,)),
    "blocked_of": Example((303,)),
    "history_times": Example((HEAVY_JOB, NOW_AT, NOW_AT, PAGE)),
    "history_of": Example((HEAVY_JOB, [NOW_AT - n * SECOND_US for n in range(50)], NOW_AT)),
    "live_among": Example(([303, 404, 505],)),
    "is_live": Example({"scheduled_at": NOW_AT, "job_id": 303}),
    "jobs_among": Example((BIG, _JOBS)),
    "last_ends": Example(
        {"ids": [HEAVY_JOB, *_JOBS[:49]], "retrying": 2, "limit": 32, "now": NOW_AT},
        2_000,
        "as many ends of each of 50 jobs",
    ),
    "running_among": Example((_HELD,)),
    "dense_in": Example({**_WINDOW, "most": 5_000}, 6_000, _COARSE),
    "finished_in": Example(
        {**_WINDOW, **_HISTORY_PLACE, "states": [3, 4], "tenant": BIG, "limit": 5_000}, 6_000, _COARSE
    ),
    "dense_of": Example({**_WINDOW, "job": HEAVY_JOB, "most": 5_000}, 30_000, _DAYS),
    "finished_of": Example(
        {**_WINDOW, **_HISTORY_PLACE, "states": [3, 4], "job": HEAVY_JOB, "limit": 5_000}, 30_000, _DAYS
    ),
    "running_page": Example((BIG, PAGE), 100_000, "what runs at the moment, counted up to that"),
    "count_jobs": Example((), 10_000, "as many are counted one by one"),
    "count_hot": Example({"bound": 1_000_000}, 10_000, "as many are counted one by one"),
    "all_pools": Example(()),
}

REPAIR = {
    "is_read_only": Example(()),
    "now": Example(()),
    "renew_node": Example({"lease_until": NOW_AT, "id": 7, "now": 0}),
    "add_node": Example(([900], ["worker"], ["w"], [0], [0])),
    "end_node": Example({"now": NOW_AT, "id": 7}),
    "node_exists": Example((7,)),
    "add_segment": Example((64,)),
    "live_of_kind": Example(("worker", NOW_AT)),
    "segments_of": Example((10,)),
    "give_segments": Example({"node_id": 10, "from": 20}),
    "take_segments": Example({"node_id": 11, "now": NOW_AT, "limit": 5}),
    "give_allotted": Example({"node_id": 10, "segments": [20, 21]}),
    "take_allotted": Example(
        {"node_id": 11, "now": NOW_AT, "allotted": json.dumps([[n, 10] for n in range(64)])}
    ),
    "nodes": Example(()),
    "tell_served": Example({"serves": "{}", "id": 7}),
    "drop_idle_nodes": Example((NOW_AT,)),
    "strays": Example((NOW_AT, 100)),
    "overdue": Example({"overdue_at": NOW_AT + HOUR_US, "now": NOW_AT + 10 * SECOND_US, "limit": 100}),
    "held_by": Example((7,), 2_000, "what one node holds, which is as much as it has room for"),
    "cancel_of": Example((2,)),
    "late_in_lane": Example(
        {"now": NOW_AT, "lane": 128, "due_at": 0, "scheduled_at": 0, "job_id": 0, "limit": 100},
    ),
    "blocked_with_room": Example((100,), 2_001, "every job that has a run waiting, each by its key"),
    "purge_history": Example((100, NOW_AT)),
    "purge_dead": Example((NOW_AT, 100)),
    "purge_request_keys": Example((NOW_AT, 100)),
    "purge_gaps": Example((NOW_AT - 49_950 * SECOND_US,)),
}

_NOTES = [[job_id, 0, at, 1, 0.5, "half"] for job_id, at in zip(_HELD, _HELD_AT, strict=True)]
_TOLD = [[job_id, at, 1] for job_id, at in zip(_HELD, _HELD_AT, strict=True)]

REPORTS = {
    "open_attempt_at": Example((_HELD[0], _HELD_AT[0], 1)),
    "open_attempt": Example((_HELD[0], _HELD_AT[0], 1)),
    "extend_attempt": Example((_HELD[0], 0, _HELD_AT[0], 1, NOW_AT + HOUR_US)),
    "keep_progress": Example({"notes": json.dumps(_NOTES), "now": NOW_AT}),
    "progress_page": Example((0, 0, 100)),
    "drop_progress": Example((json.dumps(_TOLD),)),
}

_TURN = {"tenant": BIG, "key": "k77", "fence": 1, "since": 1, "lease_until": NOW_AT, "began_at": NOW_AT}
ANSWERS = {
    "add_answer": Example({**_TURN, "key": "new", "sum": b"sum"}),
    "lock_answer": Example((BIG, "k77")),
    "retake_answer": Example({**_TURN, "sum": b"sum"}),
    "finish_answer": Example((BIG, "k77", 1, 201, "{}", b"{}")),
    "abandon_answer": Example((BIG, "k77", 1, NOW_AT)),
    "mark_answer": Example(
        {"tenant": BIG, "key": "k77", "fence": 1, "since": 1, "applied": 1, "made_at": NOW_AT}
    ),
    "answer_applied": Example((BIG, "k77")),
    "add_answer_make": Example(([BIG], ["new"], [1], [0], [_JOB], [NOW_AT])),
    "answer_makes_of": Example((BIG, "k77", 1)),
    "purge_answers": Example((NOW_AT, 100)),
    "purge_answer_marks": Example((NOW_AT, 100)),
    "purge_answer_makes": Example((NOW_AT, 100)),
}

LOGS = {
    "add_log": Example(([_JOB], [NOW_AT], [1], [1], [NOW_AT], [0], ["said"])),
    "log_of": Example(
        {"job_id": HEAVY_JOB, "scheduled_at": NOW_AT, "attempt": 0, "seq": 0, "last": 9, "limit": PAGE}
    ),
    "purge_log": Example((100, NOW_AT)),
}

_DEEDS = {"tenant": BIG, "from_at": 0, "to_at": _FOREVER, "limit": PAGE}
_A_DEED = [
    [NOW_AT], [_JOB], [None], [1], [None], [BIG], ["ann"], ["token"], ["job.create"], [None], [None], [None],
]  # fmt: skip

DEEDS = {
    "add_deed": Example(_A_DEED),
    "add_creations": Example(
        {
            "at": NOW_AT,
            "job_ids": _JOBS,
            "version": 1,
            "tenant": BIG,
            "subject": "ann",
            "via": "token",
            "action": "job.create",
            "request_id": None,
        }
    ),
    "deeds_page": Example({**_DEEDS, "before_at": NOW_AT - HOUR_US, "before_id": 5}),
    "deeds_page_of": Example(
        {**_DEEDS, "tenant": SMALL, "job_id": HEAVY_JOB, "before_at": NOW_AT, "before_id": 5}
    ),
    "makers_of": Example((SMALL, HEAVY_JOB)),
}

_LOOKED = "as many are looked at one by one"
_OWN = {"tenant": SMALL, "bound": 10_000}

SIZES = {
    "count_own": Example({"tenant": BIG, "bound": 100_000}, 100_000, "as many are counted one by one"),
    "own_planned": Example({**_OWN, "lanes": _LANES}, 10_000, _LOOKED),
    "own_running": Example(_OWN, 10_000, _LOOKED),
    "own_blocked": Example(_OWN, 10_000, _LOOKED),
    "own_waiting": Example(_OWN, 10_000, _LOOKED),
}

SETTLING = {
    "finish": Example(_settled(events=[1] * 100, **_OUTCOME)),
    "retry": Example(_settled(due_ats=[NOW_AT] * 100, **_OUTCOME)),
    "release": Example(_settled(due_ats=[NOW_AT] * 100)),
    "report": Example(_settled()),
    "exhausted": Example((_HELD, _ZEROS, _HELD_AT, [1] * 100)),
    "add_dead": Example(
        ([_JOB], [NOW_AT], [BIG], [NOW_AT], [0], [1], [1], [128], ["it broke"], ["common"]),
    ),
    "waiting_jobs": Example((_HELD,), 1_100, "what waits of a hundred jobs, each for one slot"),
    "front_of_blocked": Example((_HELD[:10],)),
    "idle_cancelled": Example(()),
    "add_ready": Example(([900_001], [0], [NOW_AT], [128], [NOW_AT], [0], [1], [0], [0])),
}

_PAIRS = f"[[7, {NOW_AT}], [8, {NOW_AT}], [1007, {NOW_AT}]]"
GRAPHS = {
    "lock_graph": Example((BIG,)),
    "graph_jobs": Example((BIG, _JOBS)),
    "newest_runs": Example({"job_ids": _HELD[:20], "now": NOW_AT}),
    "runs_at": Example({"job_ids": _HELD[:20], "scheduled_at": NOW_AT, "now": NOW_AT}),
    "children_now": Example((_JOBS, 10_001)),
    "parents_among": Example((_HELD,)),
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
    "share_jobs": Example((_JOBS,)),
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
    "backfills_page_of": Example((BIG, 201, _FOREVER, PAGE)),
    "unfinished_backfills": Example((0, 100)),
    "open_backfill_of": Example((SMALL, 400)),
    "count_unfinished": Example((SMALL, 100)),
    "feed_runs": Example({"job_id": HEAVY_JOB, "lane": 224, "due_at": NOW_AT, "times": _PASSED}),
    "add_backfill_run": Example(([200] * 100, _PLACES)),
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

TOKENS = {
    "add_token": Example(
        {
            "id": 900_001,
            "tenant": BIG,
            "name": "ci",
            "role": "viewer",
            "digest": b"x" * 32,
            "created_at": NOW_AT,
            "created_by": "ann",
            "expires_at": None,
        }
    ),
    "count_live_tokens": Example((BIG, NOW_AT, 1_000), 1_000, "as many are counted"),
    "get_token": Example((1,)),
    "note_token_use": Example((_PLACES, NOW_AT)),
    "purge_expired_tokens": Example((NOW_AT, 100)),
    "purge_revoked_tokens": Example((NOW_AT, 100)),
    "revoke_token": Example((6, NOW_AT)),
    "tokens_page": Example((BIG, _FOREVER, PAGE)),
    "tokens_page_all": Example((_FOREVER, PAGE)),
}

_OLD = {
    "ids": [HEAVY_JOB, *_JOBS[:49]],
    "before_at": NOW_AT - 60 * SECOND_US,
    "last_day": TODAY,
    "limit": 100,
}
_SOME_OF_EACH = "as many of each of 50 jobs as of all"

QUOTAS = {
    "history_days_of": Example(("tenant-7",)),
    "tenant_to_shorten": Example((NOW_AT,)),
    "jobs_to_shorten": Example((BIG, _JOB, 500)),
    "old_history": Example(_OLD, 5_000, _SOME_OF_EACH),
    "drop_history": Example((TODAY, ["(1,1)", "(1,2)", "(2,1)"])),
    "old_log": Example(_OLD, 5_000, _SOME_OF_EACH),
    "drop_log": Example((TODAY, ["(1,1)", "(1,2)", "(2,1)"])),
    "shortened": Example((_JOB, NOW_AT, "tenant-7")),
    "add_bucket": Example(("new",)),
    "fill_bucket": Example((NOW_AT, "bucket-7")),
    "lock_bucket": Example(("bucket-7",)),
    "read_bucket": Example(("bucket-7",)),
    "purge_buckets": Example((NOW_AT, 100)),
    "add_tenant": Example(("new",)),
    "put_quota": Example(
        {
            "tenant": SMALL,
            "jobs": 1,
            "runs_per_minute": None,
            "payload_bytes": None,
            "document_bytes": None,
            "history_days": 7,
            "set_at": NOW_AT,
        }
    ),
    "rate_job": Example((60, _JOB)),
    "unrated_jobs": Example((100,)),
    "tenants_page": Example(("", PAGE)),
    "use_of": Example(([BIG, SMALL],)),
}

SEGMENTS = {"all_segments": Example()}

OPERATIONS = {
    "add_operation": Example((900_001, BIG, "{}")),
    "get_operation": Example((1, BIG)),
    "hold_operation": Example((1, BIG)),
    "operations_page": Example((BIG, _FOREVER, PAGE)),
    "count_unfinished_operations": Example((BIG, 20)),
    "unfinished_operations": Example((0, 20)),
    "move_operation": Example({"id": 1, "revision": 0, "finished_at": None, "body": "{}"}),
    "purge_operations": Example((NOW_AT, 100)),
}

_WEBHOOK = {
    "url": "https://example.com/",
    "types": '["*"]',
    "jobs": "[]",
    "tags": "[]",
    "description": "",
    "enabled": 1,
    "disabled_reason": None,
    "secrets": "[]",
    "rotated_at": 0,
    "succeeded_at": None,
    "failed_at": None,
    "failing_since": None,
    "failures": 0,
    "rest_until": 0,
    "error": None,
    "updated_at": NOW_AT,
    "kinds": 2047,
}
_ONE_WEBHOOK = "what is kept of one webhook"
_TRIMMED = {"id": 1, "before": NOW_AT - 5_000 * SECOND_US, "most": 1_000}
WEBHOOKS = {
    "tell_endings": Example((json.dumps([[4, NOW_AT, one, NOW_AT, 1, 1, NOW_AT, None] for one in _JOBS]),)),
    "tell_jobs": Example((json.dumps([[4, NOW_AT, one, 1, BIG, "job", None] for one in _JOBS]),)),
    "take_webhook_events": Example((500,)),
    "tags_of": Example((_JOBS,)),
    "add_webhook": Example({**_WEBHOOK, "id": 900_001, "tenant": "new", "created_at": NOW_AT}),
    "put_webhook": Example({**_WEBHOOK, "id": 30}),
    "get_webhook": Example((1,)),
    "lock_webhook": Example((1,)),
    "webhooks_of": Example((BIG,)),
    "webhooks_hearing": Example(([BIG, "team-7"],)),
    "webhook_backlogs": Example(([1, 2],), 5_000, _ONE_WEBHOOK),
    "drop_webhook": Example((50,)),
    "drop_deliveries_of": Example((51,)),
    "wake_webhooks": Example({"now": NOW_AT, "ids": list(range(60, 80))}),
    "add_delivery": Example(
        ([60] * 100, [f"new-{n}" for n in _PLACES], [3] * 100, [NOW_AT] * 100, [NOW_AT] * 100, ["{}"] * 100)
    ),
    "get_delivery": Example((1, "e8")),
    "deliveries_page": Example((1, NOW_AT, _FOREVER, PAGE)),
    "deliveries_page_in": Example((1, NOW_AT, _FOREVER, 0, PAGE)),
    "deliver_again": Example((NOW_AT, 1, "e8")),
    "take_webhooks": Example({"now": NOW_AT, "until": NOW_AT, "limit": 64}),
    "due_deliveries": Example({"ids": [1, 2, 3], "now": NOW_AT, "each": 16}),
    "webhook_work": Example(()),
    "put_deliveries": Example(
        (json.dumps([[n, 1, 1, NOW_AT, NOW_AT, 200, None, 5] for n in range(20_001, 20_017)]),)
    ),
    "let_go_webhook": Example((1,)),
    "webhook_ids": Example((100, 50)),
    "drop_waiting_deliveries": Example(_TRIMMED, 20_000, _ONE_WEBHOOK),
    "drop_ended_deliveries": Example(_TRIMMED, 20_000, _ONE_WEBHOOK),
    "count_dropped": Example((5, 1)),
}

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

_AUDITED = {"from_at": NOW_AT - HOUR_US, "to_at": NOW_AT + 1}
_IDS = {"after": 1_000, "last": _FOREVER, "limit": PAGE, "large": 4_096}
AUDITS = {
    "audit_jobs": Example(_IDS),
    "audit_jobs_of": Example({**_IDS, "tenant": SMALL}),
    "audit_gone": Example({**_IDS, "from_at": 0}),
    "audit_versions": Example({"ids": _JOBS, "from_at": 0, "limit": 1_000, "large": 4_096}),
    "audit_history": Example(
        {
            **_AUDITED,
            "ids": [HEAVY_JOB, *_JOBS],
            "mosts": [100] * 101,
            "first": TODAY,
            "last": TODAY,
            "limit": 10_100,
        }
    ),
    "audit_live": Example({**_AUDITED, "ids": [WIDE_JOB, *_HELD], "limit": 1_000}, 2_000, "of five tables"),
    "audit_untold": Example({**_AUDITED, "ids": [WIDE_JOB, *_JOBS], "limit": 1_000}),
    "audit_planned": Example((json.dumps([[30_001 + n, NOW_AT] for n in range(100)]),)),
    "audit_clocks": Example(
        {
            "places": json.dumps([[f"every {n}", n % 64] for n in range(1, 101)]),
            "from_at": 0,
            "to_at": 1,
            "limit": 1_000,
        }
    ),
}

EXAMPLES: dict[str, Example] = {
    **AUDITS,
    **BACKFILLS,
    **OPERATIONS,
    **TOKENS,
    **QUOTAS,
    **SEGMENTS,
    **WEBHOOKS,
    **SKIPS,
    **CLAIMS,
    **CLOCKS,
    **DEEDS,
    **GRAPHS,
    **JOBS,
    **LETTERS,
    **ANSWERS,
    **LOGS,
    **READING,
    **REPAIR,
    **REPORTS,
    **SETTLING,
    **SIZES,
}
