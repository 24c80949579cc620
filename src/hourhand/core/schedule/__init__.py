"""When jobs recur: cron and interval rules, zones, DST policies, previews and the checker of vectors.

Rules are frozen, equal when they fire alike as written, and identified by `key`. One-time jobs, start and
end bounds and misfire policies are not decided here.
"""

from hourhand.core.schedule.cron import Cron
from hourhand.core.schedule.errors import NeverMatchesError, ScheduleError
from hourhand.core.schedule.every import Every
from hourhand.core.schedule.expression import parse_cron
from hourhand.core.schedule.preview import Occurrence, preview
from hourhand.core.schedule.rule import Rule, parse_key
from hourhand.core.schedule.vectors import VectorReport, check_vectors
from hourhand.core.schedule.windows import Fold, Gap
from hourhand.core.schedule.zone import ZoneChange, next_zone_change, tzdata_version, zone_info, zone_name

__all__ = [
    "Cron",
    "Every",
    "Fold",
    "Gap",
    "NeverMatchesError",
    "Occurrence",
    "Rule",
    "ScheduleError",
    "VectorReport",
    "ZoneChange",
    "check_vectors",
    "next_zone_change",
    "parse_cron",
    "parse_key",
    "preview",
    "tzdata_version",
    "zone_info",
    "zone_name",
]
