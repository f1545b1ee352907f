// The page's modules that need no browser, by themselves: `node modules.mjs`, TAP-less, exit 1 at the
// first thing that is wrong.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

// Browsers take these files for modules because the page says so; Node would go by their names.
async function load(name) {
  const source = await readFile(new URL(`../../fcgi-app/web/${name}`, import.meta.url), 'utf8');
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
}

const { SseParser } = await load('sse.js');
const { Series } = await load('series.js');

const message = (data, id) => ({ type: 'message', data, id });
const STREAMS = [
  // [bytes, events, last event id, whether it ends within an event]
  ['data: a\n\ndata: b\n\n', [message('a'), message('b')], '', false],
  ['data: a\r\n\r\ndata: b\r\n\r\n', [message('a'), message('b')], '', false],
  ['data: a\r\rdata: b\r\r', [message('a'), message('b')], '', false],
  ['data: a\r\n\rdata: b\n\r\n', [message('a'), message('b')], '', false],
  ['data:a\n\ndata:  b\n\n', [message('a'), message(' b')], '', false],
  ['data: a\ndata: b\ndata\n\n', [message('a\nb\n')], '', false],
  ['\ufeffdata: a\n\n', [message('a')], '', false],
  ['data: a\n\n\ufeffdata: b\n\n', [message('a')], '', false], // a mark is one only at the start
  [': c\n:\ndata: a\n:data: no\n\n', [message('a')], '', false],
  ['id: 1\ndata: a\n\nid: 2\ndata: b\n\n', [message('a', '1'), message('b', '2')], '2', false],
  ['id: 1\ndata: a\n\nid\ndata: b\n\n', [message('a', '1'), message('b', '')], '', false],
  ['id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n', [message('a', '7'), message('b')], '7', false],
  ['id: 7\ndata: a\n\nid: 8\n\n', [message('a', '7')], '8', false], // an event without data sets it too
  ['id: 7\ndata: a\n\nid: 8\ndata: b\n', [message('a', '7')], '7', true],
  ['data: a\n\ndata: b', [message('a')], '', true],
  ['event: error\ndata: {}\n\ndata: a\n\n', [{ type: 'error', data: '{}', id: undefined }, message('a')], '', false],
  ['event: error\n\ndata: a\n\n', [message('a')], '', false],
  ['data\n\nnonsense: 1\nretry: 5\n\ndata: a: b\n\n', [message(''), message('a: b')], '', false],
  ['data: \u2028\u0085\u{1f600}é\n\n', [message('\u2028\u0085\u{1f600}é')], '', false],
  ['', [], '', false],
];

function parse(pieces) {
  const events = [];
  const parser = new SseParser((event) => events.push(event), '');
  for (const piece of pieces) parser.feed(piece);
  return [events, parser.lastEventId, parser.isInsideEvent];
}

for (const [text, ...want] of STREAMS) {
  const bytes = new TextEncoder().encode(text);
  const where = JSON.stringify(text);
  assert.deepEqual(parse([bytes]), want, where);
  assert.deepEqual(parse(Array.from(bytes, (byte) => Uint8Array.of(byte))), want, `${where}, byte by byte`);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const halves = [bytes.subarray(0, cut), new Uint8Array(0), bytes.subarray(cut)];
    assert.deepEqual(parse(halves), want, `${where}, cut at ${cut}`);
  }
}

// A CR shows its event at once, and not when the next byte has come.
assert.equal(parse([new TextEncoder().encode('data: a\r\r')])[0].length, 1);
// What was there before a resumed stream says an id.
assert.equal(new SseParser(() => {}, '12').lastEventId, '12');
// No stream fills the memory: not by one line, not by many lines of one event.
const flood = new TextEncoder().encode(`data: ${'x'.repeat(65536)}`);
assert.throws(() => parse(Array(20).fill(flood)), /1 MiB/);
assert.throws(() => parse(Array(20).fill(new TextEncoder().encode(`data: ${'x'.repeat(65536)}\n`))), /1 MiB/);

// --- the figures ---

// A batch of events: [t, due, sent, n, coalesced] each, in ms.
function batch(first, rows) {
  const column = (k) => rows.map((row) => row[k]);
  let i = first;
  return { t: column(0), due: column(1), sent: column(2), n: column(3), coalesced: column(4),
    i: rows.map((row) => { const at = i; i += row[3]; return at; }) };
}

// Percentiles by the definition itself: the smallest value that p percent are not above.
function percentile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.find((value) => sorted.filter((other) => other <= value).length >= p * sorted.length / 100);
}

for (const n of [1, 2, 3, 99, 100, 101, 102, 1500]) {
  const times = Array.from({ length: n }, (_, k) => 200 + 25 * k + (k * 7919 % 13));
  const gaps = times.slice(1).map((t, k) => t - times[k]);
  const series = new Series();
  series.begin();
  series.add(batch(0, times.map((t) => [t, NaN, NaN, 1, false])));
  const figures = series.figures();
  assert.equal(figures.gaps, n - 1);
  assert.equal(figures.gapP50, n === 1 ? NaN : percentile(gaps, 50), `p50 of ${n}`);
  assert.equal(figures.gapP99, n === 1 ? NaN : percentile(gaps, 99), `p99 of ${n}`);
  assert.equal(figures.lateMax, NaN);
  assert.equal(series.ttft, 200);
  assert.equal(figures.rate, n / times.at(-1) * 1000);
}

{ // Tokens of one event have gaps of 0 among them.
  const series = new Series();
  series.begin();
  series.add(batch(0, [[100, NaN, NaN, 4, false], [200, NaN, NaN, 4, false], [300, NaN, NaN, 2, true]]));
  assert.deepEqual([series.tokens, series.events, series.coalesced, series.next], [10, 3, 1, 10]);
  const { gaps, gapP50, gapP99 } = series.figures();
  assert.deepEqual([gaps, gapP50, gapP99], [9, 0, 100]);
}

{ // Lateness is against the event that was quickest on its way, whatever the server's clock says.
  const series = new Series();
  series.begin();
  const clock = 1.8e12;
  series.add(batch(0, [[210, clock + 200, clock + 201, 1, false], [233, clock + 225, clock + 225, 1, false],
    [259, clock + 250, clock + 251, 1, false]]));
  const { lateP50, lateMax } = series.figures(); // 8 ms is the difference of the clocks
  assert.deepEqual([lateP50, lateMax], [1, 2]);
  assert.equal(series.dueOf(0), 208);
}

{ // The pause before a resumed piece is no gap and takes no time; each piece has its own clock.
  const series = new Series();
  series.begin();
  series.add(batch(0, [[100, 1000, 1000, 1, false], [120, 1020, 1020, 1, false]]));
  series.begin();
  series.add(batch(2, [[50, 9000, 9000, 1, false], [75, 9020, 9020, 1, false]]));
  const { gaps, gapP99, lateMax, rate } = series.figures();
  assert.deepEqual([gaps, gapP99, lateMax], [2, 25, 5]);
  assert.equal(series.last, 195);
  assert.equal(rate, 4 / 195 * 1000);
  assert.deepEqual(series.pieces.map(({ t, tokens }) => [t, tokens]), [[0, 2], [120, 2]]);
}

{ // Memory has a ceiling; counts have none.
  const series = new Series();
  series.begin();
  const many = batch(0, Array.from({ length: 50000 }, (_, k) => [k, NaN, NaN, 1, false]));
  for (let k = 0; k < 6; k++) series.add(many);
  assert.equal(series.events, 300000);
  assert.equal(series.rows, 250000);
  assert.equal(series.t.length, 250000);
}
