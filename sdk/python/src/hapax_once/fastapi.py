"""FastAPI and Starlette: a class for routes, and a dependency that is the transaction.

Models, response models and the published description of the API stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from .asgi import PROTECTION, Middleware, Receive, Scope, Send
from .database import AsyncDatabase, Database
from .http import TRANSACTION, Protection

Tenant = str | Callable[[Request], "Awaitable[str | None] | str | None"]


def once_route(
    database: AsyncDatabase[Any] | Database[Any],
    *,
    tenant: Tenant,
    protection: Protection = PROTECTION,
) -> type[APIRoute]:
    """A class for the routes of an application or a router: `APIRouter(route_class=…)`.

    The tenant is a function of the request, or one name if all callers are one tenant.
    """

    def tenant_of(scope: Scope) -> str | Awaitable[str | None] | None:
        return tenant if isinstance(tenant, str) else tenant(Request(scope))

    class OnceRoute(APIRoute):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.once = Middleware(
                super().handle,
                database,
                tenant=tenant_of,
                protects=lambda scope: scope["method"] in (self.methods or ()),
                protection=protection,
            )

        async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
            await self.once(scope, receive, send)

    return OnceRoute


def transaction(request: Request) -> Any:
    """The transaction of the request: `db: Annotated[AsyncConnection, Depends(transaction)]`."""
    if TRANSACTION not in request.scope:
        raise RuntimeError("this route is not protected: give its router the class of once_route")
    return request.scope[TRANSACTION]
