"""A FastAPI receiver on SQLAlchemy: every call is verified and has its effect once; what takes longer is reported.

pip install hourhand fastapi uvicorn 'sqlalchemy[asyncio]' aiosqlite
SIGNING_SECRETS=whsec_… uvicorn fastapi_receiver:app --port 9000
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import BackgroundTasks, FastAPI, HTTPException, Request, Response
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from hourhand import EFFECTS_DDL, InvalidSignature, OldAttempt, exactly_once, report_async, verify
from hourhand.errors import Conflict

SECRETS = os.environ["SIGNING_SECRETS"].split(",")  # several while one is being replaced
ENGINE = create_async_engine(os.environ.get("DATABASE_URL", "sqlite+aiosqlite:///receiver.db"))
CHARGE = text("INSERT INTO charges (run_id, account, cents) VALUES (:run_id, :account, :cents)")


@asynccontextmanager
async def tables(app: FastAPI) -> AsyncIterator[None]:
    """Stands in for your migrations."""
    async with ENGINE.begin() as connection:
        for statement in (
            *EFFECTS_DDL,
            "CREATE TABLE IF NOT EXISTS charges (run_id TEXT, account INT, cents INT)",
        ):
            await connection.execute(text(statement))
    yield
    await ENGINE.dispose()


app = FastAPI(lifespan=tables)


@app.post("/charge", status_code=204)
async def charge(request: Request) -> None:
    """Done before the answer: 2xx says that it is committed."""
    run_id = await genuine(request)
    try:
        await have_effect(request.headers, run_id, await request.json())
    except OldAttempt as error:
        raise HTTPException(409, error.message) from None


@app.post("/charge-later")
async def charge_later(request: Request, tasks: BackgroundTasks) -> Response:
    """Taken with 202, done after the answer, and reported."""
    run_id = await genuine(request)
    tasks.add_task(work, dict(request.headers), run_id, await request.json())
    return Response(status_code=202)


async def genuine(request: Request) -> str:
    """The run's id; 401 where the call is not from hourhand."""
    try:
        return verify(request.headers, await request.body(), SECRETS)
    except InvalidSignature as error:
        raise HTTPException(401, error.message) from None


async def have_effect(headers: Mapping[str, str], run_id: str, order: dict[str, Any]) -> bool:
    """Charge, unless that was done already; the row that says so is committed with the charge."""
    async with AsyncSession(ENGINE) as session, session.begin():
        async with exactly_once(session, headers) as first:
            if first:
                await session.execute(CHARGE, {"run_id": run_id, **order})
        return first


async def work(headers: dict[str, str], run_id: str, order: dict[str, Any]) -> None:
    """What takes longer than a connection should stay open; this attempt's headers say where to report."""
    try:
        await report_async(headers, "progress", progress=0.5, message="charging")
        first = await have_effect(headers, run_id, order)
        await report_async(headers, "succeeded", result={"charged": order["cents"], "first": first})
    except Conflict:  # cancelled, too late, or overtaken by a later attempt: nobody waits for this one
        return
    except Exception as error:
        await report_async(headers, "failed", error=str(error))
