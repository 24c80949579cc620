"""A Flask receiver on psycopg: every call is verified and has its effect once; what takes longer is reported.

pip install hourhand flask 'psycopg[binary]'
SIGNING_SECRETS=whsec_… DATABASE_URL=postgresql://… flask --app flask_receiver run --port 9000
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from flask import Flask, Response, abort, request

from hourhand import EFFECTS_DDL, InvalidSignature, OldAttempt, exactly_once, report, verify
from hourhand.errors import Conflict

SECRETS = os.environ["SIGNING_SECRETS"].split(",")  # several while one is being replaced
DATABASE = os.environ["DATABASE_URL"]
CHARGE = "INSERT INTO charges (run_id, account, cents) VALUES (%(run_id)s, %(account)s, %(cents)s)"

app = Flask(__name__)
threads = ThreadPoolExecutor(4)

with psycopg.connect(DATABASE) as connection:  # stands in for your migrations
    for statement in EFFECTS_DDL:
        connection.execute(statement)
    connection.execute("CREATE TABLE IF NOT EXISTS charges (run_id TEXT, account INT, cents INT)")


@app.post("/charge")
def charge() -> Response:
    """Done before the answer: 2xx says that it is committed."""
    run_id = genuine()
    try:
        have_effect(dict(request.headers), run_id, request.get_json())
    except OldAttempt as error:
        abort(409, error.message)
    return Response(status=204)


@app.post("/charge-later")
def charge_later() -> Response:
    """Taken with 202, done on a thread, and reported."""
    run_id = genuine()
    threads.submit(work, dict(request.headers), run_id, request.get_json())
    return Response(status=202)


def genuine() -> str:
    """The run's id; 401 where the call is not from hourhand."""
    try:
        return verify(request.headers, request.get_data(), SECRETS)
    except InvalidSignature as error:
        abort(401, error.message)


def have_effect(headers: Mapping[str, str], run_id: str, order: dict[str, Any]) -> bool:
    """Charge, unless that was done already; the row that says so is committed with the charge."""
    with psycopg.connect(DATABASE) as connection:  # commits at its end
        with exactly_once(connection, headers) as first:
            if first:
                connection.execute(CHARGE, {"run_id": run_id, **order})
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
