// What the page says, in words and figures. It decides nothing.

const TEXT_LIMIT = 200000; // characters that stay on the page
const BLOCK = 3000; // characters of text that are laid out at once
const P99_GAPS = 100;
const MERGING_MS = 5; // below such gaps the browser merges reads by itself

const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat('en');
const count = (n, noun) => `${whole.format(n)} ${noun}${n === 1 ? '' : 's'}`;

function ms(value) {
  const digits = value < 10 ? 2 : value < 1000 ? 1 : 0;
  return Number.isNaN(value) ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// --- status ---

export function showStatus(state, title, sentence) {
  const status = at('status');
  status.dataset.state = state;
  status.querySelector('b').textContent = title;
  status.querySelector('span').textContent = sentence;
}

export function showEnd(end, series, { asked }, faults) {
  const tokens = Number.isNaN(asked) ? count(series.tokens, 'token') : `${whole.format(series.tokens)} of ${count(asked, 'token')}`;
  const odd = oddities(series, asked, faults);
  const retry = end.retryAfter ? ` Retry after ${end.retryAfter}${/^\d+$/.test(end.retryAfter) ? ' s' : ''}.` : '';
  const pieces = series.pieces.length > 1 ? `, in ${series.pieces.length} pieces` : '';
  const within = end.isInsideEvent ? ', within an event' : '';
  const reason = end.message ? ` (${end.message})` : '';
  const [state, title, sentence] = {
    done: [odd ? 'odd' : 'complete', odd ? 'Complete, but' : 'Complete', `[DONE] came after ${tokens}${pieces}.${odd}`],
    cut: ['cut', 'Cut', `No [DONE]: the stream ended after ${tokens}${within}${reason}.${odd}`],
    stopped: ['stopped', 'Stopped', `By you, after ${tokens}.${odd}`],
    error: ['error', 'Error event', `After ${tokens}: ${end.message}.${odd}`],
    http: ['error', `HTTP ${end.status}`, `${end.message}.${retry}`],
    nothing: ['stopped', 'Nothing left', 'HTTP 204: all of this stream has been received.'],
    type: ['error', 'No event stream', `The reply's Content-Type is ${end.message}.`],
    failed: ['error', 'No reply', `Nothing answered${reason}.`],
  }[end.how];
  showStatus(state, title, sentence);
  at('timeline').setAttribute('aria-label', `Timeline: ${tokens} in ${ms(series.last)} ms`);
}

function oddities(series, asked, { garbled, garbledCount, duplicates }) {
  return (garbledCount > 0 ? ` ${count(garbledCount, 'event')} could not be read, at token ${garbled.join(', ')}.` : '')
    + (duplicates > 0 ? ` ${count(duplicates, 'event')} came twice; by its id, the second was dropped.` : '')
    + (series.tokens > asked ? ' That is more than was asked for.' : '');
}

// The control that an error names, or none.
export function markInvalid(form, name) {
  for (const element of form.elements) {
    if (element.name === name) element.setAttribute('aria-invalid', 'true');
    else element.removeAttribute('aria-invalid');
  }
}

// --- figures ---

function showFigure(id, value, unit, note) {
  const small = document.createElement('small');
  small.textContent = value === '–' ? '' : unit;
  at(id).replaceChildren(value, small);
  at(`${id}-note`).textContent = note;
}

export function showFigures(series, { asked, ttft, gap }) {
  const { gaps, gapP50, gapP99, lateP50, lateMax, rate } = series.figures();
  const { events, coalesced } = series;
  const reads = events - coalesced;
  const percent = 100 * coalesced / events;
  const hasP99 = gaps >= P99_GAPS;
  showFigure('tokens', whole.format(series.tokens), asked >= 0 ? `/ ${whole.format(asked)}` : '', `in ${count(reads, 'read')}`);
  showFigure('ttft', ms(series.ttft), 'ms', `asked for ${whole.format(ttft)} ms`);
  showFigure('p50', ms(gapP50), 'ms', `of ${count(gaps, 'gap')}`);
  showFigure('p99', hasP99 ? ms(gapP99) : '–', 'ms', hasP99 ? `of ${count(gaps, 'gap')}` : `needs ${P99_GAPS} gaps`);
  showFigure('rate', Number.isNaN(rate) ? '–' : rate.toFixed(1), '/s', 'tokens a second');
  showFigure('coalesced', Number.isNaN(percent) ? '–' : percent.toFixed(percent > 0 && percent < 10 ? 1 : 0), '%', `of ${count(events, 'event')}`);

  const lumps = `${count(events, 'event')} came in ${count(reads, 'read')}.`;
  const verdict = coalesced === 0 ? 'Each event came in a read of its own.'
    : gap < MERGING_MS ? `${lumps} At gaps below ${MERGING_MS} ms a browser merges reads itself: scripts/itl measures the path.`
      : percent >= 50 ? `Buffered: ${lumps} Something between the server and this page holds tokens back.`
        : `${percent < 5 ? 'Nearly all in reads of their own' : 'Partly coalesced'}: ${lumps}`;
  const lateness = Number.isNaN(lateMax) ? ''
    : ` Half of them came within ${ms(lateP50)} ms of their due time, the latest ${ms(lateMax)} ms after it.`;
  at('verdict').textContent = events < 10 ? '' : verdict + lateness;
}

export function showReadout(series, row) {
  const readout = at('readout');
  if (row < 0) {
    readout.value = readout.dataset.hint;
    return;
  }
  const due = series.dueOf(row);
  readout.value = `Token ${series.i[row]} came at ${ms(series.t[row])} ms${
    Number.isNaN(due) ? '' : `, ${ms(series.t[row] - due)} ms after it was due`}.`;
}

// --- text ---

let pending = '';
let shown = 0; // characters
let trimmed = 0;

export function clearText() {
  pending = '';
  shown = 0;
  trimmed = 0;
  at('text').replaceChildren();
  at('trimmed').textContent = '';
}

export function addText(text) {
  pending += text;
}

// In blocks: the browser need not lay out what stands above the last.
export function flushText() {
  const text = at('text');
  shown += pending.length;
  while (pending !== '') {
    let block = text.lastElementChild;
    if (block === null || block.textContent.length >= BLOCK) block = text.appendChild(document.createElement('div'));
    const end = sentenceEnd(pending, BLOCK - block.textContent.length);
    block.append(pending.slice(0, end));
    pending = pending.slice(end);
  }
  while (shown > TEXT_LIMIT) {
    const { length } = text.firstChild.textContent;
    text.firstChild.remove();
    shown -= length;
    trimmed += length;
    at('trimmed').textContent = `(${count(trimmed, 'character')} before this are no longer shown)`;
  }
}

// Where the first sentence ends at or behind `from`; if none does in reach, between two characters.
function sentenceEnd(text, from) {
  if (text.length <= from) return text.length;
  const end = text.indexOf('. ', from) + 2;
  if (end >= 2 && end < from + BLOCK) return end;
  return (text.charCodeAt(from) & 0xfc00) === 0xdc00 ? from + 1 : from;
}

// --- the ledger ---

export function hideLedger(sentence) {
  at('account').hidden = true;
  at('ledger-note').textContent = sentence;
}

export function showLedger(account, received) {
  const { requested, generated, outcome, detected_by: detector, duration_ms: duration } = account;
  const unseen = Math.max(0, generated - received);
  const values = { ...account, received, detected_by: detector ?? '–', duration_ms: duration === null ? '–' : `${ms(duration)} ms` };
  for (const element of at('account').querySelectorAll('[data-name]')) {
    const value = values[element.dataset.name];
    element.textContent = Number.isInteger(value) ? whole.format(value) : value;
  }
  at('received').style.width = `${100 * (generated - unseen) / requested}%`;
  at('unseen').style.width = `${100 * unseen / requested}%`;
  at('ledger-note').textContent = outcome === 'live' ? `Still generating; ${count(unseen, 'token')} not seen here.`
    : generated < requested ? `${count(requested - generated, 'token')} never generated; ${whole.format(unseen)} generated and not seen here.`
      : 'All that was asked for was generated.';
  at('account').hidden = false;
}

// --- the clock ---

// Browsers round performance.now(), so that no page can time what is not its own.
export function showClock() {
  const begun = performance.now();
  let step = Infinity;
  for (let before = begun, now; (now = performance.now()) - begun < 20; before = now) {
    if (now > before) step = Math.min(step, now - before);
  }
  const shownStep = step === Infinity ? 'more than 20 ms' : step < 0.95 ? `${Math.round(step * 1000)} µs` : `${Math.round(step)} ms`;
  at('clock-step').textContent = shownStep;
}
