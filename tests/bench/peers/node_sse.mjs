// A plain Node.js server of token streams, as one writes it without a framework: one timer a token,
// by absolute deadline, and none without a pace. For comparison.
//
//     node node_sse.mjs SOCKET        query: prompt, max_tokens (128), ttft_ms (200), itl_ms (25)
import { chmodSync } from 'node:fs';
import { createServer } from 'node:http';

const EVENT = 'data: {"token":"w"}\n\n';

function number(query, name, otherwise) {
  const text = query.get(name);
  return text === null ? otherwise : Number(text);
}

const server = createServer((request, response) => {
  const { searchParams: query } = new URL(request.url, 'http://localhost');
  const tokens = number(query, 'max_tokens', 128);
  const gap = number(query, 'itl_ms', 25);
  let due = performance.now() + number(query, 'ttft_ms', 200);
  let sent = 0;
  let timer;
  let immediate;

  response.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
  });
  response.flushHeaders();
  const tick = () => {
    response.write(EVENT);
    sent += 1;
    if (sent === tokens) {
      response.end('data: [DONE]\n\n');
      return;
    }
    due += gap;
    next();
  };
  // A timer waits a millisecond at least: without a pace the next token is written as soon as there is room.
  const next = () => {
    if (gap > 0 || sent === 0) timer = setTimeout(tick, due - performance.now());
    else if (response.writableNeedDrain) response.once('drain', tick);
    else immediate = setImmediate(tick);
  };
  next();
  response.on('close', () => {
    clearTimeout(timer);
    clearImmediate(immediate);
    response.off('drain', tick);
  });
});

server.keepAliveTimeout = 0;
server.listen({ path: process.argv[2], backlog: 4096 }, () => chmodSync(process.argv[2], 0o666));
