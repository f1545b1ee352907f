// Read streams with eventsource-parser over fetch, and print what it saw of each, one JSON object a
// line.
//
//     node read_parser.mjs <READINGS      each line: {"url": URL, "last": LAST-EVENT-ID or null}
//
// The object is the same for each reader: {status, tokens: [..], ids: [..], done, error, garbled,
// pings}. A reader judges nothing; the test does.

import { createInterface } from 'node:readline';
import { createParser } from 'eventsource-parser';

async function read(url, last) {
  const seen = { status: 0, tokens: [], ids: [], done: false, error: null, garbled: 0, pings: 0 };
  const parser = createParser({
    onEvent(event) {
      if (event.event === 'error') {
        seen.error = JSON.parse(event.data).error.code;
      } else if (event.data === '[DONE]') {
        seen.done = true;
      } else {
        seen.ids.push(event.id ?? null);
        try {
          seen.tokens.push(JSON.parse(event.data).token);
        } catch {
          seen.garbled += 1;
        }
      }
    },
    onComment(comment) {
      if (comment.trim() === 'ping') seen.pings += 1;
    },
  });
  const response = await fetch(url, { headers: last === null ? {} : { 'Last-Event-ID': last } });
  seen.status = response.status;
  if (response.status !== 200) {
    await response.body?.cancel();
    return seen;
  }
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
  }
  return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { url, last } = JSON.parse(line);
  console.log(JSON.stringify(await read(url, last)));
}
