"""What a Django receiver does, in a process of its own, since a process has Django's settings once."""

import json
import sys
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connection, connections, transaction

from hourhand import EFFECTS_DDL, exactly_once, forget_effects
from hourhand.errors import Invalid


def database(url: str) -> dict[str, Any]:
    if not url.startswith("postgres"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url}
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password,
    }


def execute(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def scenes() -> dict[str, object]:
    found: dict[str, object] = {}
    try:
        with exactly_once(connection, "k"):
            found["outside of atomic"] = "taken"
    except Invalid as error:
        found["outside of atomic"] = "transaction.atomic()" in error.message
    with transaction.atomic():
        try:
            with exactly_once(connection, "k"):
                execute("INSERT INTO ledger VALUES ('effect')")
                raise ValueError
        except ValueError:
            found["undone"] = execute("SELECT * FROM ledger") + execute("SELECT * FROM hourhand_effects")
        execute("INSERT INTO ledger VALUES ('note')")
    for _ in range(2):
        with transaction.atomic(), exactly_once(connections["default"], "k", attempt=2) as first:
            if first:
                execute("INSERT INTO ledger VALUES ('effect')")
    found["ledger"] = sorted(row[0] for row in execute("SELECT what FROM ledger"))
    found["forgotten"] = forget_effects(connection)
    return found


if __name__ == "__main__":
    settings.configure(DATABASES={"default": database(sys.argv[1])}, USE_TZ=True)
    django.setup()
    for statement in (*EFFECTS_DDL, "CREATE TABLE ledger (what VARCHAR(20))"):
        execute(statement)
    print(json.dumps(scenes()))
