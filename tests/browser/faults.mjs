// What goes wrong, and how the page tells it.

import assert from 'node:assert/strict';
import { generate, visit } from './page.mjs';

const PACE = { max_tokens: '60', ttft_ms: '20', itl_ms: '2' };

// [fault, what it takes, state, what the status says, tokens on the page, what the ledger says]
const ROWS = [
  ['error', { at: '40' }, 'error', /^Error event After 40 of 60 tokens: .*fault=error@40/, 40, 'failed'],
  ['reset', { at: '40' }, 'cut', /^Cut No \[DONE\]: the stream ended after 40 of 60 tokens/, 40, 'failed'],
  ['eof', { at: '40' }, 'cut', /^Cut No \[DONE\]: the stream ended after 40 of 60 tokens/, 40, 'failed'],
  ['eof', { at: '0' }, 'cut', /^Cut No \[DONE\]: the stream ended after 0 of 60 tokens/, 0, 'failed'],
  ['nodone', {}, 'cut', /^Cut No \[DONE\]: the stream ended after 60 of 60 tokens/, 60, 'done'],
  ['stall', { at: '40', stall_ms: '300' }, 'complete', /^Complete \[DONE\] came after 60 of 60 tokens/, 60, 'done'],
  ['dup', { at: '40' }, 'odd', /^Complete, but .* 1 event came twice; by its id/, 60, 'done'],
];

export const each = () => visit(async (open) => {
  const live = await open();
  for (const [fault, values, state, says, tokens, outcome] of ROWS) {
    assert.equal(await live.run({ ...PACE, fault, ...values }), state, fault);
    assert.match(await live.status(), says);
    assert.equal(await live.text(), tokens === 0 ? '' : generate(tokens), fault);
    assert.equal((await live.account()).outcome, outcome, fault);
    assert.equal(await live.page.getAttribute('#resume', 'aria-disabled'), String(state !== 'cut' && state !== 'error' || tokens === 0), fault);
    assert.equal(await live.page.locator('[aria-invalid]').count(), 0, 'what was asked for is no mistake');
    await live.picture(`fault-${fault}`);
  }
});

export const garble = () => visit(async (open) => {
  const live = await open();
  assert.equal(await live.run({ ...PACE, fault: 'garble', at: '40' }), 'odd');
  assert.match(await live.status(), /^Complete, but .*after 59 of 60 tokens. 1 event could not be read, at token 40\.$/);
  // The tokens before it, and those after it.
  assert.equal(await live.text(), generate(40) + generate(60).slice(generate(41).length));
  await live.picture('fault-garble');
});

// Without ids a second event cannot be known for one; with stamps its number is seen.
export const dupWithoutIds = () => visit(async (open) => {
  const live = await open();
  assert.equal(await live.run({ ...PACE, ids: false, fault: 'dup', at: '40' }), 'odd');
  assert.match(await live.status(), /after 61 of 60 tokens. That is more than was asked for\.$/);
});

export const status = () => visit(async (open) => {
  const live = await open();
  for (const code of ['400', '429', '500', '503']) {
    assert.equal(await live.run({ ...PACE, fault: 'status', code }), 'error');
    assert.match(await live.status(), new RegExp(`^HTTP ${code} .*fault=status:${code}`));
    assert.equal(/Retry after \d+ s/.test(await live.status()), ['429', '503'].includes(code));
    assert.equal(await live.text(), '');
  }
  await live.picture('fault-status');
});

// The API's own words, and the control that they are about.
export const refused = () => visit(async (open) => {
  const live = await open();
  for (const [name, value] of [['max_tokens', '20abc'], ['itl_ms', '-1'], ['chunk', '99'], ['ping_ms', '0.5'], ['ttft_ms', '9e9']]) {
    const before = await live.page.inputValue(`[name="${name}"]`);
    assert.equal(await live.run({ [name]: value }), 'error', name);
    const [url] = (await live.page.textContent('#curl')).match(/http:[^']*/);
    const { error } = await (await fetch(url)).json();
    assert.equal(await live.status(), `HTTP 400 ${error.message.replace(/\s+/g, ' ')}.`);
    assert.deepEqual(await live.page.$$eval('[aria-invalid="true"]', (all) => all.map((element) => element.name)), [name]);
    await live.fill({ [name]: before });
  }
  assert.equal(await live.run({ prompt: '' }), 'error');
  assert.match(await live.status(), /^HTTP 400 prompt: /);
  await live.picture('refused');
  assert.equal(await live.run({ ...PACE, prompt: 'hello' }), 'complete');
  assert.equal(await live.page.locator('[aria-invalid]').count(), 0);
});

// Other paths of the server, and what is none.
export const paths = () => visit(async (open) => {
  const live = await open({ at: 'front' });
  for (const [path, says] of [
    ['/healthz', /^No event stream The reply's Content-Type is text\/plain/],
    ['/nothing', /^HTTP 404 .*no such path|^HTTP 404 /],
    ['/dead/', /^No reply Nothing answered/],
    ['/broken/', /^HTTP 502 /],
    ['//example.org/', /^Not sent The path must begin with one \/ and be on this server/],
    ['http://example.org/', /^Not sent /],
    ['stream', /^Not sent /],
  ]) {
    assert.equal(await live.run({ ...PACE, path }), 'error', path);
    assert.match(await live.status(), says);
  }
  await live.picture('not-sent');
  assert.equal(await live.run({ ...PACE, path: '/stream?seed=7' }), 'complete');
  assert.equal(await live.text(), generate(60, '--seed', '7'));
});

// The ledger is for this machine only: said kindly, and the rest of the page works.
export const far = () => visit(async (open) => {
  const live = await open({ at: 'far', headers: { 'X-Test-Address': '203.0.113.9' } });
  live.expectsComplaints = true; // the browser itself logs each 403
  assert.equal(await live.run(PACE), 'complete');
  await live.waitFor(() => /to browsers on its own machine only/.test(document.querySelector('#ledger-note').textContent));
  assert.ok(await live.page.isHidden('#account'));
  assert.deepEqual(live.complaints.filter((line) => !/403/.test(line)), []);
  await live.picture('far');
});
