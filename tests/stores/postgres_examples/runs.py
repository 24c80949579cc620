"""Examples of the statements about runs: claimed, settled, read, repaired, audited."""

import json
from typing import Any

from hourhand.core.instant import HOUR_US, SECOND_US
from tests.stores.postgres_at_size import BIG, DEADLY_JOB, HEAVY_JOB, NOW_AT, SMALL, TODAY, WIDE_JOB
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

_ZEROS = [0] * 100
_HELD_AT = [NOW_AT - n * 1000 for n in range(201, 301)]
_END = {"failed_at": FOREVER, "job": FOREVER, "scheduled_at": FOREVER}
_LETTERS = {"tenant": BIG, "failed_from": 0, "failed_to": FOREVER, "limit": PAGE}
_HISTORY_PLACE = {"finished_at": FOREVER, "job_id": FOREVER, "scheduled_at": FOREVER}
_WINDOW = {"from_at": NOW_AT - 60 * SECOND_US, "to_at": NOW_AT, "first": TODAY - 1, "last": TODAY + 1}
_COARSE = "the index over finish times points at ranges of 32 pages, of each day"
_DAYS = "what a job did in the days around the window"


def _settled(**more: list[Any]) -> dict[str, Any]:
    return {
        "places": PLACES,
        "job_ids": HELD,
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

_UPCOMING = {
    "lanes": LANES,
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
            "lanes": LANES,
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
        A_CLASS,
    ),
    "take_newest": Example(
        {
            "lanes": LANES,
            "until": NOW_AT + 2 * SECOND_US,
            "most": 100,
            "now": NOW_AT,
            "wanted": 100,
            "node_id": 99,
        },
        6_400,
        A_CLASS,
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
            "job_ids": [*HELD[:50], *range(900_001, 900_051)],
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
        {"lanes": LANES, "until": NOW_AT, "most": 100, "wanted": 100, "now": NOW_AT, "node_id": 7},
        6_400,
        A_CLASS,
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
            "job_ids": [*HELD, *HELD],
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
                + [[job, at, 0, 999] for job, at in zip(HELD, _HELD_AT, strict=True)]
            ),
            "pools": '["default", "other"]',
        }
    ),
    "pool_names": Example(),
    "all_lanes": Example(),
    "upcoming_planned": Example({**_UPCOMING, "routed": True}, 6_400, A_CLASS),
    "upcoming_ready": Example({**_UPCOMING, "routed": True}, 6_400, A_CLASS),
    "hold_slots": Example((HELD,)),
    "holders_of": Example((HELD,)),
    "try_jobs": Example((HELD,)),
    "hold_free_slots": Example((HELD,)),
    "slots_of": Example(([WIDE_JOB, *HELD],)),
    "limits_of": Example((HELD,)),
    "scheduled_waiting": Example((HELD[:10],)),
    "caught_up_waiting": Example(([HEAVY_JOB, *HELD[:9]],)),
    "take_blocked_rows": Example((f"[[306, {NOW_AT - 1}], [309, {NOW_AT - 2}]]",)),
    "add_blocked": Example(
        (JOB_IDS, _ZEROS, _ZEROS, [128] * 100, _ZEROS, _ZEROS, _ZEROS, _ZEROS),
    ),
    "take_blocked": Example((306, NOW_AT - 1)),
    "take_planned_row": Example((NOW_AT, 30_001)),
    "take_planned_rows": Example((f"[[{NOW_AT}, 30001], [{NOW_AT}, 30002]]",)),
    "take_idle_row": Example((600 * 3, NOW_AT)),
    "to_background": Example((f"[[{NOW_AT}, 30001], [{NOW_AT}, 30002]]",)),
    "ask_cancel": Example((WIDE_JOB,)),
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
    "jobs_among": Example((BIG, JOB_IDS)),
    "last_ends": Example(
        {"ids": [HEAVY_JOB, *JOB_IDS[:49]], "retrying": 2, "limit": 32, "now": NOW_AT},
        2_000,
        "as many ends of each of 50 jobs",
    ),
    "running_among": Example((HELD,)),
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

_NOTES = [[job_id, 0, at, 1, 0.5, "half"] for job_id, at in zip(HELD, _HELD_AT, strict=True)]
_TOLD = [[job_id, at, 1] for job_id, at in zip(HELD, _HELD_AT, strict=True)]

REPORTS = {
    "open_attempt_at": Example((HELD[0], _HELD_AT[0], 1)),
    "open_attempt": Example((HELD[0], _HELD_AT[0], 1)),
    "extend_attempt": Example((HELD[0], 0, _HELD_AT[0], 1, NOW_AT + HOUR_US)),
    "keep_progress": Example({"notes": json.dumps(_NOTES), "now": NOW_AT}),
    "progress_page": Example((0, 0, 100)),
    "drop_progress": Example((json.dumps(_TOLD),)),
}

LOGS = {
    "add_log": Example(([JOB], [NOW_AT], [1], [1], [NOW_AT], [0], ["said"])),
    "log_of": Example(
        {"job_id": HEAVY_JOB, "scheduled_at": NOW_AT, "attempt": 0, "seq": 0, "last": 9, "limit": PAGE}
    ),
    "purge_log": Example((100, NOW_AT)),
}

SETTLING = {
    "finish": Example(_settled(events=[1] * 100, **_OUTCOME)),
    "retry": Example(_settled(due_ats=[NOW_AT] * 100, **_OUTCOME)),
    "release": Example(_settled(due_ats=[NOW_AT] * 100)),
    "report": Example(_settled()),
    "exhausted": Example((HELD, _ZEROS, _HELD_AT, [1] * 100)),
    "add_dead": Example(
        ([JOB], [NOW_AT], [BIG], [NOW_AT], [0], [1], [1], [128], ["it broke"], ["common"]),
    ),
    "waiting_jobs": Example((HELD,), 1_100, "what waits of a hundred jobs, each for one slot"),
    "front_of_blocked": Example((HELD[:10],)),
    "idle_cancelled": Example(()),
    "add_ready": Example(([900_001], [0], [NOW_AT], [128], [NOW_AT], [0], [1], [0], [0])),
}

_AUDITED = {"from_at": NOW_AT - HOUR_US, "to_at": NOW_AT + 1}
_IDS = {"after": 1_000, "last": FOREVER, "limit": PAGE, "large": 4_096}

AUDITS = {
    "audit_jobs": Example(_IDS),
    "audit_jobs_of": Example({**_IDS, "tenant": SMALL}),
    "audit_gone": Example({**_IDS, "from_at": 0}),
    "audit_versions": Example({"ids": JOB_IDS, "from_at": 0, "limit": 1_000, "large": 4_096}),
    "audit_history": Example(
        {
            **_AUDITED,
            "ids": [HEAVY_JOB, *JOB_IDS],
            "mosts": [100] * 101,
            "first": TODAY,
            "last": TODAY,
            "limit": 10_100,
        }
    ),
    "audit_live": Example({**_AUDITED, "ids": [WIDE_JOB, *HELD], "limit": 1_000}, 2_000, "of five tables"),
    "audit_untold": Example({**_AUDITED, "ids": [WIDE_JOB, *JOB_IDS], "limit": 1_000}),
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
