// The live page: the form starts a worker that reads a stream, and what comes is shown a frame at a
// time, so that a thousand tokens a second cost no more than thirty.

import { followLedger } from './ledger.js';
import { expectedOf, recallInto, rememberIn, showWhatApplies, urlOf } from './request.js';
import { Series } from './series.js';
import { Timeline } from './timeline.js';
import * as view from './view.js';

const FIGURES_MS = 200;
const FRAME_MS = 30; // what draws takes processor time from what reads

const at = (id) => document.getElementById(id);
const form = at('controls');
const canvas = at('timeline');
const timeline = new Timeline(canvas);
const reader = new Worker('/web/reader.js', { type: 'module' });
const isNarrow = matchMedia('(max-width: 760px)');
const isStill = matchMedia('(prefers-reduced-motion: reduce)');

let run = 0; // number of the request; what is said of an older one is not heard
let isRunning = false;
let begun = 0; // when the request was sent
let series = new Series();
let expected;
let request = {}; // { url, id, lastEventId }
let faults; // of all pieces of the stream: { garbled, garbledCount, duplicates }
let ledger = new AbortController();
let frame = 0; // 0: none is asked for
let drawnAt = 0;

// --- a request ---

function start() {
  let url;
  try {
    url = urlOf(form);
  } catch (error) {
    view.markInvalid(form, 'path');
    view.showStatus('error', 'Not sent', `${error.message}.`);
    return;
  }
  rememberIn(form);
  series = new Series();
  expected = expectedOf(form);
  faults = { garbled: [], garbledCount: 0, duplicates: 0 };
  request = { url: url.href, lastEventId: '' };
  view.clearText();
  timeline.show(series, expected);
  send('The request is sent, and no reply has begun.');
  if (isNarrow.matches) at('status').scrollIntoView();
}

// Also goes on with a stream: after lastEventId, if there is one.
function send(sentence) {
  ledger.abort();
  run += 1;
  // Not crypto.randomUUID: without https there is none.
  request.id = `page-${Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(16)).join('')}`;
  const headers = { Accept: 'text/event-stream', 'X-Request-Id': request.id };
  if (request.lastEventId !== '') headers['Last-Event-ID'] = request.lastEventId;
  series.begin();
  begun = performance.now();
  reader.postMessage({ run, url: request.url, headers, from: series.next });
  view.markInvalid(form);
  view.showStatus('waiting', 'Waiting', sentence);
  view.hideLedger('Shown when the stream has ended or was stopped.');
  setRunning(true);
}

reader.addEventListener('message', ({ data }) => {
  if (data.run !== run) return;
  if (data.kind === 'head') {
    request.id = data.id ?? request.id; // a proxy may have changed it
    view.showStatus('waiting', 'Waiting', 'The reply has begun, and no token has come.');
  } else if (data.kind === 'tokens') {
    if (series.pieces.at(-1).tokens === 0) view.showStatus('streaming', 'Streaming', '');
    series.add(data);
    view.addText(data.text);
    drawSoon();
  } else {
    end(data);
  }
});

reader.addEventListener('error', () => view.showStatus('error', 'Broken', 'A script of the page could not be loaded.'));

function end(how) {
  faults.garbled.push(...how.garbled ?? []);
  faults.garbledCount += how.garbledCount ?? 0;
  faults.duplicates += how.duplicates ?? 0;
  request.lastEventId = how.lastEventId || request.lastEventId;
  setRunning(false);
  setEnabled(at('resume'), !['done', 'nothing'].includes(how.how) && request.lastEventId !== '');
  view.showEnd(how, series, expected, faults);
  view.markInvalid(form, how.param);
  if (!['done', 'cut', 'error', 'stopped'].includes(how.how)) {
    view.hideLedger('Not asked: no stream began.');
    return;
  }
  ledger = new AbortController();
  const received = series.pieces.at(-1).tokens;
  followLedger(request.id, ledger.signal, (account) => view.showLedger(account, received), view.hideLedger);
}

function setRunning(yes) {
  isRunning = yes;
  setEnabled(at('start'), !yes);
  setEnabled(at('stop'), yes);
  setEnabled(at('resume'), false);
  showFigures();
  drawNow();
}

// Not `disabled`, which takes the keyboard's focus away from a button that was just pressed.
function setEnabled(button, yes) {
  button.setAttribute('aria-disabled', String(!yes));
}

function whenEnabled(button, action) {
  if (button.getAttribute('aria-disabled') !== 'true') action();
}

// --- drawing ---

function drawSoon() {
  if (frame === 0) frame = requestAnimationFrame(drawInTime);
}

function drawInTime(now) {
  frame = 0;
  if (now - drawnAt < FRAME_MS) drawSoon();
  else drawNow();
}

function drawNow() {
  drawnAt = performance.now();
  const moves = isRunning && !isStill.matches;
  view.flushText();
  timeline.now = moves ? series.pieces.at(-1).t + drawnAt - begun : NaN;
  timeline.draw();
  if (moves) drawSoon();
}

// A few times a second, and less often where sorting the gaps takes long.
function showFigures() {
  const before = performance.now();
  view.showFigures(series, expected);
  const next = Math.max(FIGURES_MS, 20 * (performance.now() - before));
  if (isRunning) setTimeout((of) => of === run && isRunning && showFigures(), next, run);
}

// --- hands ---

function formChanged() {
  showWhatApplies(form);
  try {
    at('curl').textContent = `curl -N '${String(urlOf(form)).replace(/%40/g, '@').replace(/%3A/g, ':')}'`;
  } catch (error) {
    at('curl').textContent = error.message;
  }
}

function select(row) {
  timeline.selected = row;
  view.showReadout(series, row);
  drawSoon();
}

form.addEventListener('input', formChanged);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  whenEnabled(at('start'), start);
});
at('stop').addEventListener('click', () => whenEnabled(at('stop'), () => reader.postMessage({ stop: true })));
at('resume').addEventListener('click', () => whenEnabled(at('resume'), () => send(`Asked for what comes after event ${request.lastEventId}.`)));
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') at('stop').click();
  if (event.key === 'Enter' && event.target === document.body) at('start').click();
});
canvas.addEventListener('pointermove', (event) => select(timeline.rowAt(event.offsetY)));
canvas.addEventListener('pointerleave', () => select(-1));
canvas.addEventListener('blur', () => select(-1));
canvas.addEventListener('keydown', (event) => {
  const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
  if (step === undefined || series.rows === 0) return;
  event.preventDefault();
  select(Math.max(0, Math.min(series.rows - 1, timeline.selected + step)));
});
const fold = () => { at('more').open = !isNarrow.matches; };
isNarrow.addEventListener('change', fold);
fold();
recallInto(form);
formChanged();
view.showClock();
view.showReadout(series, -1);
timeline.show(series, expectedOf(form));
