// Read one stream with eventsource-parser over fetch, and print what it saw as one JSON object.
//
//     node read_parser.mjs URL [LAST-EVENT-ID]
//
// The object is the same for each reader: {status, tokens: [..], ids: [..], done, error, garbled,
// pings}. A reader judges nothing; the test does.

import { createParser } from 'eventsource-parser';

const [url, lastEventId] = process.argv.slice(2);
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

const headers = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
const response = await fetch(url, { headers });
seen.status = response.status;
if (response.status === 200) {
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
  }
}
console.log(JSON.stringify(seen));
