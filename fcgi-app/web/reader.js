// A worker that reads one stream at a time. It draws nothing, so what the page draws cannot delay a
// read: the time of a token is that of the read that brought the end of its event.
//
// In:  { run, url, headers, from } begins, after ending what was being read; { stop: true } ends.
//      `from` is the number of the first token, other than 0 in a resumed stream.
// Out: { run, kind: 'head', id }
//      { run, kind: 'tokens', text, t, i, n, due, sent, coalesced }, columns, each BATCH_MS
//      { run, kind: 'end', how, message, ... }, the last
// Times are milliseconds since the request.

import { SseParser } from './sse.js';

const BATCH_MS = 16;
const AFTER_DONE_MS = 1000; // a connection that stays open after [DONE] is not waited for
const ERROR_LIMIT = 1 << 16;

let current; // the AbortController of what is being read

self.addEventListener('message', ({ data }) => {
  current?.abort();
  if (data.stop) return;
  current = new AbortController();
  read(data, current.signal);
});

async function read({ run, url, headers, from }, signal) {
  const started = performance.now();
  const end = (how, more) => self.postMessage({ run, kind: 'end', how, ...more });
  let response;
  try {
    response = await fetch(url, { headers, signal, cache: 'no-store' });
  } catch (error) {
    end(signal.aborted ? 'stopped' : 'failed', { message: error.message });
    return;
  }
  const { status, body } = response;
  const type = response.headers.get('Content-Type') ?? 'none';
  self.postMessage({ run, kind: 'head', id: response.headers.get('X-Request-Id') });
  if (status === 204) {
    end('nothing');
  } else if (!response.ok) {
    end('http', { status, retryAfter: response.headers.get('Retry-After'), ...problem(await beginning(body)) });
  } else if (!/^text\/event-stream\s*(;|$)/i.test(type)) {
    await body.cancel();
    end('type', { message: type });
  } else {
    const stream = new Stream(run, from, started, headers['Last-Event-ID'] ?? '');
    await stream.read(body.getReader(), signal);
    end(stream.how, stream.account);
  }
}

// An error's body may be anything, and of any length.
async function beginning(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let read; text.length < ERROR_LIMIT && !(read = await reader.read()).done;) {
      text += decoder.decode(read.value, { stream: true });
    }
    reader.cancel();
  } catch {
    // What has come will do.
  }
  return text;
}

// What an error says of itself, if it is the API's; else its text. A fault that was asked for is no
// mistake in the control `fault`.
function problem(text) {
  try {
    const { message, param, code } = JSON.parse(text).error;
    return { message: String(message), param: code === 'fault' ? null : param };
  } catch {
    return { message: text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim().slice(0, 200) };
  }
}

class Stream {
  how = 'cut'; // until something else is known
  // `garbled` has the numbers of the first few tokens whose events could not be read.
  account = { garbled: [], garbledCount: 0, duplicates: 0 };
  #run;
  #started;
  #parser;
  #next; // number of the next token, if its event does not tell
  #now = 0;
  #hasToken = false; // the read that is being looked at
  #lastId;
  #batch = emptyBatch();
  #timer = 0;

  constructor(run, from, started, lastEventId) {
    this.#run = run;
    this.#next = from;
    this.#started = started;
    this.#parser = new SseParser((event) => this.#take(event), lastEventId);
  }

  async read(reader, signal) {
    let afterDone = 0;
    try {
      for (let read; !(read = await reader.read()).done;) {
        this.#now = performance.now() - this.#started;
        this.#hasToken = false;
        this.#parser.feed(read.value);
        if (this.how === 'done' && afterDone === 0) afterDone = setTimeout(() => reader.cancel(), AFTER_DONE_MS);
      }
    } catch (error) {
      if (this.how === 'cut') this.account.message = error.message;
      if (this.how === 'cut' && signal.aborted) this.how = 'stopped';
      reader.cancel().catch(() => {});
    }
    clearTimeout(afterDone);
    clearTimeout(this.#timer);
    this.#flush();
    this.account.lastEventId = this.#parser.lastEventId;
    this.account.isInsideEvent = this.#parser.isInsideEvent;
  }

  #take({ type, data, id }) {
    if (type === 'error') {
      this.how = 'error';
      Object.assign(this.account, problem(data));
    } else if (data === '[DONE]') {
      this.how = 'done';
    } else if (id !== undefined && id === this.#lastId) {
      this.account.duplicates += 1;
    } else {
      this.#lastId = id;
      this.#takeToken(data);
    }
  }

  #takeToken(data) {
    let json;
    try {
      json = JSON.parse(data);
      if (typeof json.token !== 'string') throw new TypeError('no token');
    } catch {
      this.account.garbledCount += 1;
      if (this.account.garbled.length < 5) this.account.garbled.push(this.#next);
      this.#next += 1; // so that the later ones keep their numbers
      return;
    }
    const batch = this.#batch;
    const n = json.n > 0 ? Math.round(json.n) : 1;
    const i = json.i >= 0 ? Math.round(json.i) : this.#next;
    this.#next = i + n;
    batch.text += json.token;
    batch.t.push(this.#now);
    batch.i.push(i);
    batch.n.push(n);
    batch.due.push(json.due_us / 1000); // NaN without stamps
    batch.sent.push(json.t_us / 1000);
    batch.coalesced.push(this.#hasToken);
    this.#hasToken = true;
    if (this.#timer === 0) this.#timer = setTimeout(() => this.#flush(), BATCH_MS);
  }

  #flush() {
    this.#timer = 0;
    if (this.#batch.t.length > 0) self.postMessage({ run: this.#run, kind: 'tokens', ...this.#batch });
    this.#batch = emptyBatch();
  }
}

function emptyBatch() {
  return { text: '', t: [], i: [], n: [], due: [], sent: [], coalesced: [] };
}
