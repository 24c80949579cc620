"""A Django receiver in one file: every call is verified and has its effect once; what takes longer is reported.

pip install hourhand django
SIGNING_SECRETS=whsec_… python django_receiver.py runserver --noreload 9000
"""

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import connection, models, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hourhand import EFFECTS_DDL, InvalidSignature, OldAttempt, exactly_once, report, verify
from hourhand.errors import Conflict

SECRETS = os.environ["SIGNING_SECRETS"].split(",")  # several while one is being replaced
DATABASE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": os.environ.get("DATABASE", "receiver.db"),
    "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},  # so that one waits for another
}

settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], DATABASES={"default": DATABASE}, USE_TZ=True
)
django.setup()
threads = ThreadPoolExecutor(4)


class Charge(models.Model):
    """What was charged for which run."""

    run_id = models.TextField()
    account = models.IntegerField()
    cents = models.IntegerField()

    class Meta:
        app_label = "receiver"


@csrf_exempt
@require_POST
def charge(request: HttpRequest) -> HttpResponse:
    """Done before the answer: 2xx says that it is committed."""
    try:
        run_id = verify(request.headers, request.body, SECRETS)
        have_effect(request.headers, run_id, json.loads(request.body))
    except (InvalidSignature, OldAttempt) as error:
        return HttpResponse(error.message, status=error.status)  # 401, 409
    return HttpResponse(status=204)


@csrf_exempt
@require_POST
def charge_later(request: HttpRequest) -> HttpResponse:
    """Taken with 202, done on a thread, and reported."""
    try:
        run_id = verify(request.headers, request.body, SECRETS)
    except InvalidSignature as error:
        return HttpResponse(error.message, status=error.status)
    threads.submit(work, dict(request.headers), run_id, json.loads(request.body))
    return HttpResponse(status=202)


def have_effect(headers: Mapping[str, str], run_id: str, order: dict[str, Any]) -> bool:
    """Charge, unless that was done already; the row that says so is committed with the charge."""
    with transaction.atomic():
        with exactly_once(connection, headers) as first:
            if first:
                Charge.objects.create(run_id=run_id, **order)
        return first


def work(headers: dict[str, str], run_id: str, order: dict[str, Any]) -> None:
    """What takes longer than a connection should stay open; this attempt's headers say where to report."""
    try:
        report(headers, "progress", progress=0.5, message="charging")
        first = have_effect(headers, run_id, order)
        report(headers, "succeeded", result={"charged": order["cents"], "first": first})
    except Conflict:  # cancelled, too late, or overtaken by a later attempt: nobody waits for this one
        return
    except Exception as error:
        report(headers, "failed", error=str(error))
    finally:
        connection.close()


def make_tables() -> None:
    """Stands in for your migrations, where it is `migrations.RunSQL([*EFFECTS_DDL])`."""
    with connection.schema_editor() as editor:
        if Charge._meta.db_table not in connection.introspection.table_names():
            editor.create_model(Charge)
        for statement in EFFECTS_DDL:
            editor.execute(statement)


urlpatterns = [path("charge", charge), path("charge-later", charge_later)]

if __name__ == "__main__":
    make_tables()
    execute_from_command_line(sys.argv)
