"""Rules in words."""

import pytest

from hourhand.core.schedule import parse_cron


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 9 * * mon-fri", "at 09:00 on Monday to Friday"),
        ("30 8 * * *", "at 08:30 every day"),
        ("0 9,12,15 * * *", "at 09:00, 12:00 and 15:00 every day"),
        ("15 30 2 * * *", "at 02:30:15 every day"),
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/10 * 9-17 * * *", "every 10 seconds from 09:00:00 to 17:59:50"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:45 on Monday to Friday"),
        ("*/5 8,10,12 * * *", "every 5 minutes of hour 8, 10 and 12"),
        ("@hourly", "every hour"),
        ("7 * * * *", "every hour at 7 past"),
        ("30 */2 * * *", "every 2 hours at 30 past"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("0 1,3,5,7,9,11,13 * * *", "at 01:00, 03:00, 05:00, 07:00, 09:00, 11:00 and 13:00"),
        ("*/7 * * * *", "at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("1,2 3 4-9 * * *", "at second 1 and 2 of minute 3 of hour 4 to 9"),
        ("5 * 4 * * *", "at second 5 of every minute of hour 4"),
        ("* 3 * * * *", "every second of minute 3 of every hour"),
        ("0 0 1 * *", "at 00:00 on day 1 of the month"),
        ("0 0 1,15 * *", "at 00:00 on day 1 and 15 of the month"),
        ("0 0 25 12 *", "at 00:00 on day 25 of December"),
        ("0 0 1 */3 *", "at 00:00 on day 1 of January, April, July and October"),
        ("0 0 * 6-8 *", "at 00:00 every day in June to August"),
        ("0 0 * 6-8 sat,sun", "at 00:00 on Saturday and Sunday in June to August"),
        ("0 0 * * 0-4", "at 00:00 on Sunday to Thursday"),
        ("0 0 * * fri,sat,sun", "at 00:00 on Friday to Sunday"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 0 15,LW * *", "at 00:00 on day 15 and the last weekday of the month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 * 5 sun#2", "at 00:00 on the second Sunday of May"),
        ("0 0 * * 1#1,1#3", "at 00:00 on the first Monday and the third Monday of the month"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 */100,13 * 5", "at 00:00 on day 1 and 13 of the month if that is a Friday"),
    ],
)
def test_words(expression: str, words: str) -> None:
    assert parse_cron(expression).describe() == f"{words}, UTC"


def test_the_zone_is_named() -> None:
    assert parse_cron("0 9 * * *", tz="Europe/Berlin").describe() == "at 09:00 every day, Europe/Berlin"
