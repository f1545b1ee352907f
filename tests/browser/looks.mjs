// Hands, eyes and screens; the page's policy; a buffering path.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { generate, visit } from './page.mjs';

const QUICK = { max_tokens: '40', ttft_ms: '20', itl_ms: '5' };

export const keyboard = () => visit(async (open) => {
  const live = await open({ hash: 'max_tokens=2000&stamps=1&ids=1' }); // nothing ends by itself here
  const { keyboard: keys } = live.page;
  await live.page.evaluate(() => document.activeElement.blur());
  await keys.press('Enter'); // wherever the focus is not
  await live.received(5);
  await keys.press('Escape');
  assert.equal(await live.ended(), 'stopped');

  await live.page.focus('[name="prompt"]');
  await keys.press('Control+A');
  await keys.type('hello');
  await keys.press('Enter');
  await live.received(1);
  await keys.press('Escape');
  assert.equal(await live.ended(), 'stopped');

  // Each control is reached by Tab, in the order of the page, and is seen to have the focus.
  await live.page.reload();
  const seen = [];
  for (;;) {
    await keys.press('Tab');
    const focused = await live.page.evaluate(() => {
      const element = document.activeElement;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      return { name: element.name || element.id || element.className || element.tagName, isBody: element === document.body,
        isSeen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 || boxShadow !== 'none' };
    });
    if (focused.isBody || seen.includes(focused.name)) break;
    assert.ok(focused.isSeen, `${focused.name} does not show the focus`);
    seen.push(focused.name);
  }
  assert.deepEqual(seen, ['prompt', 'max_tokens', 'vocab', 'path', 'ttft_ms', 'itl_ms', 'jitter', 'chunk', 'fault', 'wire',
    'ping_ms', 'stamps', 'ids', 'start', 'stop', 'resume', 'timeline', 'scroll', 'curl']);

  // A button that was pressed keeps the focus, though it can do nothing more.
  await live.page.focus('#start');
  await keys.press('Enter');
  await live.received(2);
  assert.equal(await live.page.evaluate(() => document.activeElement.id), 'start');
  await keys.press('Escape');
  await live.ended();
  await live.page.focus('#timeline');
  for (const [key, says] of [['ArrowUp', /^Token 0 came at /], ['ArrowRight', /^Token 1 came at .* after it was due/], ['ArrowDown', /^Token 0 /]]) {
    await keys.press(key);
    assert.match(await live.page.textContent('#readout'), says);
  }
  await keys.press('End');
  const last = Number((await live.page.textContent('#readout')).match(/\d+/)[0]);
  assert.equal(last + 1, await live.figure('tokens'));
});

export const pointer = () => visit(async (open) => {
  const live = await open();
  await live.run(QUICK);
  const box = await live.page.locator('#timeline').boundingBox();
  const tokens = new Set();
  for (let y = 0; y < box.height; y += 4) {
    await live.page.mouse.move(box.x + box.width / 2, box.y + y);
    tokens.add(Number((await live.page.textContent('#readout')).match(/^Token (\d+) /)[1]));
  }
  assert.deepEqual([...tokens], Array.from({ length: 40 }, (_, k) => 39 - k));
  await live.page.mouse.move(0, 0);
  assert.match(await live.page.textContent('#readout'), /^Time to the right/);
});

// What is told aloud: the state when it changes, and not each token.
export const aloud = () => visit(async (open) => {
  const live = await open({ before: () => {
    window.told = [];
    addEventListener('DOMContentLoaded', () => {
      const lives = document.querySelectorAll('[role="status"], [aria-live], output');
      for (const element of lives) {
        new MutationObserver(() => window.told.push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
      }
    });
  } });
  await live.run({ ...QUICK, max_tokens: '200' });
  const told = await live.page.evaluate(() => window.told);
  assert.ok(told.length >= 2 && told.length <= 8, JSON.stringify(told));
  assert.match(told.at(-1), /Complete/);
});

export const axe = () => visit(async (open) => {
  for (const [dark, width] of [[false, 1280], [true, 320]]) {
    const live = await open({ dark, width });
    if (width === 320) await live.page.click('summary');
    assert.deepEqual(await live.axe(), [], 'idle');
    await live.run(QUICK);
    await live.account();
    assert.deepEqual(await live.axe(), [], 'complete');
    await live.run({ ...QUICK, max_tokens: '0' });
    assert.deepEqual(await live.axe(), [], 'refused');
    await live.run({ ...QUICK, fault: 'error', at: '5' });
    assert.deepEqual(await live.axe(), [], 'error');
  }
});

export const narrow = () => visit(async (open) => {
  for (const dark of [false, true]) {
    const live = await open({ width: 320, height: 640, dark });
    const overflow = () => live.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(await overflow(), 0, 'idle');
    await live.page.click('summary');
    for (const fault of ['stall', 'status', 'none']) {
      await live.fill({ fault, jitter: 'lognormal' });
      assert.equal(await overflow(), 0, fault);
    }
    await live.picture(`phone-controls${dark ? '-dark' : ''}`);
    await live.start({ max_tokens: '2000', vocab: 'torture', itl_ms: '10', prompt: 'hello'.repeat(40) });
    await live.received(20);
    // Stop is at hand without scrolling.
    const stop = await live.page.locator('#stop').boundingBox();
    assert.ok(stop.y >= 0 && stop.y + stop.height <= 640 && stop.height >= 44);
    await live.picture(`phone-streaming${dark ? '-dark' : ''}`, { fullPage: false });
    await live.page.click('#stop');
    await live.ended();
    await live.account();
    assert.equal(await overflow(), 0, 'stopped');
    await live.picture(`phone${dark ? '-dark' : ''}`);
  }
});

export const schemes = () => visit(async (open) => {
  const brightness = async (dark) => {
    const live = await open({ dark });
    await live.run(QUICK);
    await live.picture(dark ? 'dark' : 'light');
    return live.page.evaluate(() => {
      const sum = (colour) => colour.match(/[\d.]+/g).slice(0, 3).reduce((all, part) => all + Number(part), 0) / 765;
      const canvas = document.querySelector('canvas');
      // The brightness of what is drawn, weighed by how much it covers.
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let ink = 0;
      let cover = 0;
      for (let k = 0; k < data.length; k += 4) {
        ink += (data[k] + data[k + 1] + data[k + 2]) / 765 * data[k + 3];
        cover += data[k + 3];
      }
      return { paper: sum(getComputedStyle(document.documentElement).backgroundColor), ink: sum(getComputedStyle(document.body).color), drawn: ink / cover };
    });
  };
  const light = await brightness(false);
  const dark = await brightness(true);
  assert.ok(light.paper > 0.9 && light.ink < 0.2, JSON.stringify(light));
  assert.ok(dark.paper < 0.15 && dark.ink > 0.8, JSON.stringify(dark));
  assert.notEqual(light.drawn.toFixed(2), dark.drawn.toFixed(2));

  // A scheme that changes while the page is open changes the picture too.
  const live = await open();
  await live.run(QUICK);
  const before = await live.page.evaluate(() => document.querySelector('canvas').toDataURL());
  await live.page.emulateMedia({ colorScheme: 'dark' });
  await live.waitFor((old) => document.querySelector('canvas').toDataURL() !== old, before);
});

export const motion = () => visit(async (open) => {
  for (const still of [false, true]) {
    const live = await open({ still });
    await live.start({ max_tokens: '2000', ttft_ms: '20', itl_ms: '20' });
    await live.received(5);
    const moving = await live.page.evaluate(() => document.getAnimations().length);
    assert.equal(moving === 0, still, `${moving} animations`);
    await live.page.click('#stop');
  }
});

// A set-up can be kept: the address has it, and opening that fills the form in.
export const bookmark = () => visit(async (open) => {
  const live = await open();
  const values = { prompt: 'a b&c=d#é', max_tokens: '33', itl_ms: '0.5', fault: 'stall', at: '7', jitter: 'normal', wire: 'cr', stamps: false };
  await live.run(values);
  const { hash } = new URL(live.page.url());
  const again = await open({ hash: hash.slice(1) });
  for (const [name, value] of Object.entries(values)) {
    const control = again.page.locator(`[name="${name}"]`);
    assert.equal(typeof value === 'boolean' ? await control.isChecked() : await control.inputValue(), value, name);
  }
  assert.equal(await again.page.textContent('#curl'), await live.page.textContent('#curl'));
  assert.ok(await again.page.locator('[name="stall_ms"]').isVisible());
  assert.ok(await again.page.locator('[name="code"]').isHidden());
});

// Neither the page nor its worker could talk to anybody else, or run what is not its own.
export const policy = () => visit(async (open) => {
  let visits = 0;
  const other = createServer((_, reply) => { visits += 1; reply.setHeader('Access-Control-Allow-Origin', '*').end('here'); });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const elsewhere = `http://127.0.0.1:${other.address().port}/`;
  assert.equal(await (await fetch(elsewhere)).text(), 'here');
  const live = await open();
  live.expectsComplaints = true;
  const attempt = (url) => fetch(url).then(() => 'reached', () => 'blocked');
  assert.equal(await live.page.evaluate(attempt, elsewhere), 'blocked');
  assert.equal(await live.page.workers()[0].evaluate(attempt, elsewhere), 'blocked');
  for (const bad of ['<img src="ELSEWHERE">', '<link rel="stylesheet" href="ELSEWHERE">', '<iframe src="ELSEWHERE"></iframe>',
    '<form action="ELSEWHERE"><button id="send"></button></form>', '<b style="color: red" id="styled"></b>']) {
    await live.page.evaluate((html) => document.body.insertAdjacentHTML('beforeend', html), bad.replace('ELSEWHERE', elsewhere));
  }
  await live.page.evaluate(() => document.querySelector('#send').click());
  await live.page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.ran = true';
    document.body.append(script);
  });
  assert.equal(await live.page.evaluate(() => window.ran), undefined);
  assert.notEqual(await live.page.evaluate(() => getComputedStyle(document.querySelector('#styled')).color), 'rgb(255, 0, 0)');
  const violated = ['connect-src', 'img-src', 'style-src', 'frame-src', 'form-action', 'script-src'];
  for (const name of violated) {
    assert.ok(live.complaints.some((line) => line.includes(name)), `${name} was not violated: ${live.complaints.join('\n')}`);
  }
  assert.equal(visits, 1, 'only our own visit');
  live.foreign = []; // attempts, which ended here
  other.close();
  assert.ok(await live.page.evaluate(() => window.crossOriginIsolated), 'the finer clock');
});

// One stream by a path that streams, one by a path that buffers, through the same second nginx.
export const buffering = () => visit(async (open) => {
  const live = await open({ at: 'front' });
  const run = { max_tokens: '400', ttft_ms: '200', itl_ms: '10' };
  assert.equal(await live.run({ ...run, path: '/stream' }), 'complete');
  const [, tunedReads] = await live.reads();
  const tuned = { coalesced: await live.figure('coalesced'), ttft: await live.figure('ttft') };
  await live.account();
  await live.picture('front-tuned');
  assert.equal(await live.run({ ...run, path: '/deaf/stream' }), 'complete');
  const [, buffered] = await live.reads();
  assert.equal(await live.text(), generate(400));
  const deaf = { coalesced: await live.figure('coalesced'), ttft: await live.figure('ttft') };
  await live.account();
  await live.picture('front-buffering');
  const said = JSON.stringify({ tuned, tunedReads, deaf, buffered });
  assert.ok(deaf.coalesced >= 90 && deaf.coalesced > tuned.coalesced, said);
  assert.ok(tunedReads >= 5 * buffered, said);
  assert.ok(deaf.ttft > tuned.ttft, said);
  assert.match(await live.page.textContent('#verdict'), /^Buffered: 400 events came in \d+ reads\. Something between/);
  assert.equal((await live.account()).outcome, 'done');
});

// The pictures of docs/page.md: small files, so without the text where it says nothing.
export const pictures = () => visit(async (open) => {
  const size = { width: 1180, height: 700 };
  const run = { max_tokens: '400', ttft_ms: '200', itl_ms: '10' };
  const tuned = await open({ at: 'front', ...size });
  await tuned.run(run);
  await tuned.account();
  await tuned.picture('page-tuned', { fullPage: false });
  assert.equal(await tuned.run({ ...run, path: '/deaf/stream' }), 'complete');
  await tuned.account();
  await tuned.picture('page-default-nginx', { fullPage: false });
  const abort = await open({ ...size, height: 1040 });
  await abort.start(run);
  await abort.received(40);
  await abort.page.keyboard.press('Escape');
  assert.equal((await abort.account()).outcome, 'cancelled');
  await abort.picture('page-abort', { fullPage: false });
});
