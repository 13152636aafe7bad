"""A server of WebSockets, and a client of it: `rooms.py serve PORT`, `rooms.py visit URL`."""

import asyncio
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve


async def room(socket):
    if socket.request.path == "/closing":
        await socket.close(4001, "closed here")
        return
    await socket.send(f"welcome to {socket.request.path}")
    async for message in socket:
        await socket.send(message)


async def serve_rooms(port):
    async with serve(room, "127.0.0.1", port, max_size=None) as server:
        await server.serve_forever()


async def visit(url):
    async with connect(url, max_size=None, proxy=None) as socket:
        print(await socket.recv())
        for message in ["ten", b"\x00\xff" * (1 << 19)]:
            await socket.send(message)
            print("echoed", await socket.recv() == message)
        await (await socket.ping())
        print("pong")
        await socket.close(4000, "done")
    print("closed", socket.close_code, socket.close_reason)


if sys.argv[1] == "serve":
    asyncio.run(serve_rooms(int(sys.argv[2])))
else:
    asyncio.run(visit(sys.argv[2]))
