// Read streams with an EventSource, and print what it saw of each; see read_parser.mjs.
//
//     node read_eventsource.mjs eventsource|undici <READINGS
//
// `eventsource` parses with eventsource-parser, `undici` with a parser of its own (the one in Node),
// which tells no status and takes no headers. An EventSource connects again when a stream ends: here
// the first end is the end.

import { createInterface } from 'node:readline';

const { EventSource } = await import(process.argv[2]);

function read(url, last) {
  const seen = { status: 0, tokens: [], ids: [], done: false, error: null, garbled: 0, pings: 0 };
  const source = new EventSource(url, {
    fetch: (input, init) => fetch(input, {
      ...init,
      headers: { ...init.headers, ...(last === null ? {} : { 'Last-Event-ID': last }) },
    }),
  });

  source.addEventListener('open', () => { seen.status = 200; });
  source.addEventListener('message', (event) => {
    if (event.data === '[DONE]') {
      seen.done = true;
      return;
    }
    seen.ids.push(event.lastEventId === '' ? null : event.lastEventId);
    try {
      seen.tokens.push(JSON.parse(event.data).token);
    } catch {
      seen.garbled += 1;
    }
  });
  return new Promise((resolve) => {
    // Both the server's `event: error` (it has data) and the client's own (it has not) come here.
    source.addEventListener('error', (event) => {
      if (event.data !== undefined) {
        seen.error = JSON.parse(event.data).error.code;
        return;
      }
      if (event.code !== undefined && seen.status === 0) seen.status = event.code;
      source.close();
      resolve(seen);
    });
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { url, last } = JSON.parse(line);
  console.log(JSON.stringify(await read(url, last)));
}
