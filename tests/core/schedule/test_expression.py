"""The grammar: what expressions mean, what they are normalised to, and how wrong ones are refused."""

import pytest

from hourhand.core.schedule import NeverMatchesError, ScheduleError, parse_cron, parse_key


@pytest.mark.parametrize(
    ("expression", "key"),
    [
        ("0 9 * * mon-fri", "cron 0 0 9 * * 1-5 and"),
        ("  0\t9 * *  MON,Tue,wed-FRI ", "cron 0 0 9 * * 1-5 and"),
        ("0 0 9 ? * 1-5", "cron 0 0 9 * * 1-5 and"),
        ("*/15 * * * *", "cron 0 */15 * * * * and"),
        ("0,15,30,45 0-23 1-31 JAN-dec 0-6", "cron 0 */15 * * * * and"),
        ("5/20 * * * * *", "cron 5,25,45 * * * * * and"),
        ("0 0 * * 7", "cron 0 0 0 * * 0 and"),
        ("0 0 * * 5-7", "cron 0 0 0 * * 0,5,6 and"),
        ("0 0 * * mon/2", "cron 0 0 0 * * 0,1,3,5 and"),
        ("1-1/2 * * * *", "cron 0 1 * * * * and"),
        ("0-59/59 10 * * *", "cron 0 0,59 10 * * * and"),
        ("0 0 1,15 * wed", "cron 0 0 0 1,15 * 3 or"),
        ("0 0 */100,1-7 * mon", "cron 0 0 0 1-7 * 1 and"),
        ("0 0 1-7 * */7", "cron 0 0 0 1-7 * 0 and"),
        ("0 0 13 * 0-6", "cron 0 0 0 * * * and"),
        ("0 0 l,15,lw * *", "cron 0 0 0 15,L,LW * * and"),
        ("0 0 * * 5L,1", "cron 0 0 0 * * 1,5L and"),
        ("0 0 * * 5l,5", "cron 0 0 0 * * 5 and"),
        ("0 0 * * thu#3,THU#1", "cron 0 0 0 * * 4#1,4#3 and"),
        ("? ? ? ? ?", "cron 0 * * * * * and"),
        ("@yearly", "cron 0 0 0 1 1 * and"),
        ("@Annually", "cron 0 0 0 1 1 * and"),
        ("@monthly", "cron 0 0 0 1 * * and"),
        ("@weekly", "cron 0 0 0 * * 0 and"),
        ("@daily", "cron 0 0 0 * * * and"),
        ("@midnight", "cron 0 0 0 * * * and"),
        ("@hourly", "cron 0 0 * * * * and"),
    ],
)
def test_canonical_form(expression: str, key: str) -> None:
    rule = parse_cron(expression)
    assert rule.key == f"{key} UTC skip both"
    assert parse_key(rule.key) == rule


@pytest.mark.parametrize(
    ("expression", "options", "policies"),
    [
        ("0 2 * * *", {}, "Europe/Berlin after first"),
        ("0 2 * * *", {"tz": "europe/berlin"}, "Europe/Berlin after first"),
        ("0 2 * * *", {"gap": "shift", "fold": "second"}, "Europe/Berlin shift second"),
        ("0 * * * *", {}, "Europe/Berlin skip both"),
        ("0 * * * *", {"gap": "shift"}, "Europe/Berlin skip both"),
        ("0 * * * *", {"fold": "first"}, "Europe/Berlin skip first"),
        ("0 0-23 * * *", {}, "Europe/Berlin after first"),
        ("*/60 2 * * *", {}, "Europe/Berlin skip both"),
        ("0 2 * * *", {"tz": "Etc/UTC", "gap": "shift", "fold": "second"}, "UTC skip both"),
        ("0 2 * * *", {"tz": "Etc/GMT+8", "fold": "second"}, "Etc/GMT+8 skip both"),
        ("CRON_TZ=Asia/Tokyo 0 2 * * *", {"tz": "UTC"}, "Asia/Tokyo after first"),
        ("TZ=Asia/Tokyo 0 2 * * *", {"tz": "Asia/Tokyo"}, "Asia/Tokyo after first"),
        ("CRON_TZ=America/New_York @daily", {"tz": "UTC"}, "America/New_York after first"),
    ],
)
def test_zone_and_policies_have_one_form(expression: str, options: dict[str, str], policies: str) -> None:
    assert parse_cron(expression, **{"tz": "Europe/Berlin", **options}).key.endswith(f" and {policies}")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("60 * * * *", "minute: got '60', expected 0 to 59"),
        ("60 * * * * *", "second: got '60', expected 0 to 59"),
        ("* 24 * * *", "hour: got '24', expected 0 to 23"),
        ("* * 0 * *", "day of month: got '0', expected 1 to 31, L"),
        ("* * * 13 *", "month: got '13', expected 1 to 12, jan to dec"),
        ("* * * * 8", "day of week: got '8', expected 0 to 7, sun to sat"),
        ("* * * * mno", "did you mean mon?"),
        ("* * * sept *", "did you mean sep?"),
        ("* * * * sunday", "did you mean sun?"),
        ("0 22-5 * * *", "write 22-23,0-5"),
        ("0 0 * * fri-sun", "5-7"),
        ("0 0 * * fri-mon", "write 5-6,0-1"),
        ("*/0 * * * *", "minute: got '*/0', expected a step of 1 or more"),
        ("*/x * * * *", "a step of 1 or more"),
        ("0/60 * * * *", "a step of 1 to 59"),
        ("5-10/ * * * *", "a step of 1 or more"),
        (", * * * *", "minute: got ''"),
        ("1,,2 * * * *", "minute: got ''"),
        ("1-2-3 * * * *", "minute: got '1-2-3'"),
        ("*-5 * * * *", "minute: got '*-5'"),
        ("¹ * * * *", "minute: got '¹'"),
        ("1_0 * * * *", "minute: got '1_0'"),
        ("+5 * * * *", "minute: got '+5'"),
        ("L * * * *", "minute: got 'l'"),
        ("* * * L *", "month: got 'l'"),
        ("* * * * L", "day of week: got 'l'"),
        ("* * * * monL", "day of week: got 'monl'"),
        ("* * 15W * *", "day of month: got '15w'"),
        ("* * L-3 * *", "day of month: got 'l-3'"),
        ("* * L/2 * *", "day of month: got 'l/2'"),
        ("* * * * 1#6", "# and 1 to 5"),
        ("* * * * 1#0", "# and 1 to 5"),
        ("* * * * 1#", "# and 1 to 5"),
        ("* * * * 2-4#2", "day of week: got '2-4#2'"),
        ("* * * * 0,6#4", "ambiguous"),
        ("* 3#1 * * *", "hour: got '3#1'"),
        ("? * * * *", "minute: got '?'"),
        ("* * ?,1 * *", "day of month: got '?'"),
        ("0 9 ? * 5L", "write * * 5L"),
        ("* * * *", "5 fields"),
        ("* * * * * * *", "years cannot be named"),
        ("", "not 0"),
        ("@dayly", "did you mean @daily"),
        ("@daily 5", "did you mean @daily alone"),
        ("@every 5m", "@hourly"),
        ("@reboot", "@hourly"),
        ("CRON_TZ=Europe/Berln * * * * *", "did you mean Europe/Berlin?"),
        ("CRON_TZ= * * * * *", "zone: got ''"),
        ("CRON_TZ=../zones * * * * *", "zone: got '../zones'"),
        ("0" * 257, "at most 256 characters"),
    ],
)
def test_refusals_say_where_what_and_how(expression: str, words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron(expression)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tz": "Mars/Olympus"}, "zone: got 'Mars/Olympus'"),
        ({"tz": "Europe/berlyn"}, "did you mean Europe/Berlin?"),
        ({"gap": "before"}, "dst gap: got 'before', expected after, skip, shift"),
        ({"fold": "frist"}, "did you mean first?"),
    ],
)
def test_zone_and_policies_are_checked(options: dict[str, str], words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron("0 0 * * *", **options)
    assert words in str(caught.value)


def test_a_zone_is_named_once() -> None:
    with pytest.raises(ScheduleError, match="also given as Asia/Tokyo"):
        parse_cron("CRON_TZ=Europe/Berlin 0 0 * * *", tz="Asia/Tokyo")


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 31 2 ?",
        "1 1 */100 * mon#4",
        "0 0 */31 2 0#2",
    ],
)
def test_what_never_matches_is_refused(expression: str) -> None:
    with pytest.raises(NeverMatchesError, match="would never fire"):
        parse_cron(expression)


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 30 2 0", "0 0 * 2 fri#5", "0 0 29 2 */7", "0 0 */30 1,2 0#5"]
)
def test_what_matches_rarely_is_accepted(expression: str) -> None:
    assert parse_cron(expression).next(0) is not None


def test_an_error_carries_its_parts() -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron("0 0 * * mno")
    error = caught.value
    assert (error.field, error.value, error.hint) == ("day of week", "mno", "did you mean mon?")
    assert error.allowed.startswith("0 to 7, sun to sat")


@pytest.mark.parametrize(
    "key", ["", "cron", "cron 0 0 9 * * 1-5 xor UTC skip both", "every x 0", "hourly 1 2", "every 0 0"]
)
def test_keys_of_nothing_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_key(key)
