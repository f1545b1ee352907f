"""A Starlette server of token streams under uvicorn, as its documentation writes it: an async
generator that sleeps to an absolute deadline before each token. For comparison.

    python starlette_sse.py SOCKET      query: prompt, max_tokens (128), ttft_ms (200), itl_ms (25)
"""

import asyncio
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route


async def tokens(count, ttft_ms, itl_ms):
    loop = asyncio.get_running_loop()
    due = loop.time() + ttft_ms / 1000
    for _ in range(count):
        await asyncio.sleep(due - loop.time())
        yield b'data: {"token":"w"}\n\n'
        due += itl_ms / 1000
    yield b"data: [DONE]\n\n"


async def stream(request):
    query = request.query_params
    return StreamingResponse(
        tokens(int(query.get("max_tokens", 128)), float(query.get("ttft_ms", 200)),
               float(query.get("itl_ms", 25))),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"})


if __name__ == "__main__":
    uvicorn.run(Starlette(routes=[Route("/stream", stream)]), uds=sys.argv[1], backlog=4096,
                log_level="warning", access_log=False)
