"""The payments API of ../../conformance.md, in FastAPI."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel

from hapax_once.database import AsyncDatabase
from hapax_once.fastapi import once_route, transaction
from hapax_once.http import Protection

Write = Callable[[Any, str], Awaitable[None]]
running = set[asyncio.Task[None]]()


class Payment(BaseModel):
    order: str
    cents: int
    sent_at: str = ""


class Receipt(BaseModel):
    paid: str
    cents: int


def tenant(request: Request) -> str | None:
    return request.headers.get("tenant")


def application(database: AsyncDatabase[Any], write: Write) -> FastAPI:
    protection = Protection(ignored=["/sent_at"])
    router = APIRouter(route_class=once_route(database, tenant=tenant, protection=protection))

    @router.post("/payments", status_code=201)
    async def pay(
        payment: Payment, db: Annotated[Any, Depends(transaction)], response: Response
    ) -> Receipt:
        await write(db, payment.order)
        if payment.cents == 0:
            raise HTTPException(402, "no money")
        response.set_cookie("session", "secret")
        response.headers["x-paid"] = "yes"
        return Receipt(paid=payment.order, cents=payment.cents)

    app = FastAPI()
    app.include_router(router)
    return app


def serve(database: AsyncDatabase[Any], write: Write) -> int:
    """Serves it on a free port, which it returns, as long as the process lives."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    config = uvicorn.Config(application(database, write), log_level="warning", ws="none")
    server = uvicorn.Server(config)
    running.add(asyncio.create_task(server.serve(sockets=[listener])))
    port: int = listener.getsockname()[1]
    return port
