// Streams, stops, resumes: what arrives, and what the page says of it.

import assert from 'node:assert/strict';
import { generate, visit } from './page.mjs';

const QUICK = { ttft_ms: '20', itl_ms: '4' };

export const stream = () => visit(async (open) => {
  // Counts the dots that are drawn: circles of the arrivals' size since the picture was wiped.
  const live = await open({ before: () => {
    const { arc } = Path2D.prototype;
    Path2D.prototype.arc = function count(...all) {
      if (all[2] === 2.5) window.dots += 1;
      return arc.apply(this, all);
    };
    const { clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function wipe(...all) {
      window.dots = 0;
      return clearRect.apply(this, all);
    };
  } });
  assert.equal(await live.state(), 'idle');
  assert.equal(await live.run({ max_tokens: '120', ttft_ms: '300', itl_ms: '20' }), 'complete');
  assert.equal(await live.text(), generate(120));
  assert.equal(await live.status(), 'Complete [DONE] came after 120 of 120 tokens.');
  assert.equal(await live.page.evaluate(() => window.dots), 120);

  const [events, reads] = await live.reads();
  assert.equal(events, 120);
  assert.equal(Math.round(await live.figure('coalesced') * 1.2), events - reads);
  assert.equal(await live.page.textContent('#p50-note'), 'of 119 gaps');
  assert.equal(await live.page.textContent('#p99-note'), 'of 119 gaps');
  // Nothing comes before it is due; how much later it comes is this machine's affair.
  assert.ok(await live.figure('ttft') >= 300);
  assert.ok(await live.figure('p50') <= await live.figure('p99'));
  const rate = await live.figure('rate');
  assert.ok(rate > 0 && rate <= 120 / (0.3 + 119 * 0.02), `${rate} tokens a second`);

  const account = await live.account();
  assert.deepEqual([account.requested, account.generated, account.received, account.outcome], [120, 120, 120, 'done']);
  await live.picture('complete');

  // Below 100 gaps there is no p99.
  assert.equal(await live.run({ max_tokens: '100', ...QUICK }), 'complete');
  assert.equal(await live.page.textContent('#p99'), '–');
  assert.equal(await live.run({ max_tokens: '101', ...QUICK }), 'complete');
  assert.ok(await live.figure('p99') >= 0);
});

export const stop = () => visit(async (open) => {
  const live = await open();
  await live.start({ max_tokens: '1000', ttft_ms: '50', itl_ms: '20' });
  await live.received(20);
  await live.page.click('#stop');
  assert.equal(await live.ended(), 'stopped');
  const account = await live.account();
  const real = await live.ledger(account.id);
  assert.equal(real.outcome, 'cancelled');
  for (const name of ['id', 'requested', 'generated', 'outcome', 'phase', 'detected_by']) {
    assert.equal(account[name], real[name], name);
  }
  assert.ok(real.generated >= account.received, 'nothing is received that was not generated');
  assert.ok(real.generated <= account.received + 100, `${real.generated} generated, ${account.received} received`);
  assert.equal(await live.text(), generate(account.received));
  assert.match(await live.page.textContent('#ledger-note'), new RegExp(`^${1000 - real.generated} tokens never generated; `));
  await live.picture('stopped');
});

// Behind --ignore-cancel the page shows the damage.
export const damage = () => visit(async (open) => {
  const live = await open();
  await live.start({ max_tokens: '500', ttft_ms: '50', itl_ms: '20' });
  await live.received(20);
  await live.page.click('#stop');
  await live.waitFor(() => /^Still generating; \d+ tokens/.test(document.querySelector('#ledger-note').textContent));
  const before = await live.accountNow();
  assert.equal(before.outcome, 'live');
  await live.picture('damage');
  const after = await live.account();
  assert.equal(after.generated, 500);
  assert.ok(after.received < 500 && after.generated > before.generated);
});

export const resume = () => visit(async (open) => {
  const live = await open();
  const whole = { max_tokens: '600', vocab: 'torture', ttft_ms: '20', itl_ms: '10' };
  await live.start(whole);
  await live.received(30);
  await live.page.keyboard.press('Escape');
  await live.ended();
  const first = await live.account();
  await live.page.click('#resume');
  await live.received(120);
  await live.page.click('#stop'); // and once more
  await live.ended();
  await live.account();
  await live.page.click('#resume');
  assert.equal(await live.ended(), 'complete');
  assert.equal(await live.text(), generate(600, '--vocab', 'torture'));
  assert.equal(await live.figure('tokens'), 600);
  assert.match(await live.status(), /after 600 of 600 tokens, in 3 pieces\.$/);
  assert.equal(await live.page.textContent('#p50-note'), 'of 597 gaps');
  const last = await live.account();
  assert.ok(last.received + first.received < 600 && last.generated === last.received);
  await live.picture('resumed');

  const short = { ...whole, max_tokens: '120', itl_ms: '2' };
  for (const fault of ['eof', 'reset', 'error']) {
    assert.equal(await live.run({ ...short, fault, at: '50' }), fault === 'error' ? 'error' : 'cut');
    await live.page.click('#resume');
    assert.equal(await live.ended(), 'complete', fault);
    assert.equal(await live.text(), generate(120, '--vocab', 'torture'), fault);
  }

  // Without ids there is nothing to go on from.
  assert.equal(await live.run({ ...short, ids: false, fault: 'eof', at: '5' }), 'cut');
  assert.equal(await live.page.getAttribute('#resume', 'aria-disabled'), 'true');
  await live.page.click('#resume', { force: true });
  assert.equal(await live.state(), 'cut');
});

export const wires = () => visit(async (open) => {
  const live = await open();
  for (const vocab of ['words', 'torture']) {
    const want = generate(60, '--vocab', vocab);
    for (const wire of ['lf', 'crlf', 'cr', 'nospace', 'comments', 'multiline', 'bom', 'drip']) {
      const state = await live.run({ max_tokens: '60', ttft_ms: '60', itl_ms: '1', ping_ms: '10', chunk: '7', vocab, wire });
      assert.equal(state, 'complete', `${vocab}, ${wire}`);
      assert.equal(await live.text(), want, `${vocab}, ${wire}`);
      assert.equal(await live.figure('tokens'), 60);
      assert.equal((await live.reads())[0], 9);
    }
  }
  await live.picture('torture');
});

export const jitter = () => visit(async (open) => {
  const live = await open();
  for (const kind of ['uniform', 'normal', 'lognormal']) {
    assert.equal(await live.run({ max_tokens: '60', ...QUICK, jitter: kind, percent: '80' }), 'complete');
    assert.match(await live.page.textContent('#curl'), new RegExp(`jitter=${kind}:80`));
    assert.equal(await live.text(), generate(60));
  }
});

// A thousand tokens a second, and a stream that is longer than the page keeps.
export const many = () => visit(async (open) => {
  const live = await open({ before: () => {
    window.appends = 0;
    addEventListener('DOMContentLoaded', () => {
      new MutationObserver((changes) => { window.appends += changes.length; })
        .observe(document.querySelector('#text'), { childList: true, subtree: true });
    });
  } });
  assert.equal(await live.run({ max_tokens: '20000', itl_ms: '1' }), 'complete');
  assert.equal(await live.text(), generate(20000));
  assert.equal((await live.reads())[0], 20000);
  const appends = await live.page.evaluate(() => window.appends);
  assert.ok(appends < 20000 / 10, `the text changed ${appends} times`);
  await live.picture('many');

  assert.equal(await live.run({ max_tokens: '60000', ttft_ms: '0', itl_ms: '0' }), 'complete');
  const shown = await live.text();
  const whole = generate(60000);
  const cut = Number((await live.page.textContent('#trimmed')).replace(/,/g, '').match(/\d+/)[0]);
  assert.ok(shown.length <= 200000 && shown.length > 190000, `${shown.length} characters`);
  assert.equal(cut + shown.length, whole.length);
  assert.equal(shown, whole.slice(cut));
  const nodes = await live.page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(nodes < 1000, `${nodes} elements`);
});
