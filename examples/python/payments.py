"""A payments API that charges once, however often it is asked.

The charge, the payment, its event and the answer are committed together, or not at all.

DATABASE_URL=postgres://... uvicorn payments:app --port 3000
"""

import json
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from psycopg.errors import CheckViolation, ForeignKeyViolation
from psycopg_pool import AsyncConnectionPool

import hapax

pool = AsyncConnectionPool(os.environ["DATABASE_URL"], min_size=2, max_size=10, open=False)


@asynccontextmanager
async def lifespan(_app):
    async with pool:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/payments")
async def pay(request: Request) -> Response:
    # One shop calls this API. With several, the tenant is who the caller has proved to be.
    return await hapax.once(pool, request, tenant="shop", work=charge)


async def charge(db, body: bytes) -> hapax.Answer:
    """What happens once. A Refused takes its writes back and is the answer from then on."""
    order, account, cents = parse(body)
    try:
        inserted = await db.execute(
            "INSERT INTO payments (order_id, account, cents) VALUES (%s, %s, %s) RETURNING id",
            (order, account, cents),
        )
        await db.execute("UPDATE accounts SET cents = cents - %s WHERE name = %s", (cents, account))
    except ForeignKeyViolation:
        raise hapax.Refused(404, {"error": "there is no such account"}) from None
    except CheckViolation:
        raise hapax.Refused(402, {"error": "there is not enough money"}) from None
    (payment,) = await inserted.fetchone()
    receipt = {"payment": payment, "order": order, "cents": cents}
    event = json.dumps(receipt).encode()
    await db.execute("SELECT hapax.emit('payment.completed', %s, %s)", (order, event))
    return hapax.Answer(201, receipt)


def parse(body: bytes) -> tuple[str, str, int]:
    try:
        order, account, cents = (json.loads(body)[name] for name in ("order", "account", "cents"))
    except (ValueError, KeyError, TypeError):
        raise hapax.Refused(400, {"error": "send an order, an account and cents"}) from None
    if not (isinstance(order, str) and isinstance(account, str) and type(cents) is int):
        raise hapax.Refused(400, {"error": "send two texts and a whole number"})
    if not 0 < cents <= 10**12 or not 0 < len(order.encode()) <= 255 or "\0" in order + account:
        raise hapax.Refused(400, {"error": "send a name for the order, and a sum above zero"})
    return order, account, cents
