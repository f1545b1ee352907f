// The page in a real Chromium: how a case opens it, fills its form and reads what it says.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const requireClient = createRequire(new URL('../clients/package.json', import.meta.url));
const { chromium } = requireClient('playwright-core');
const axe = readFileSync(requireClient.resolve('axe-core/axe.min.js'), 'utf8');

export const URL_OF = { tuned: process.env.URL, front: process.env.FRONT_URL, far: process.env.FAR_URL };
const SLOW = Number(process.env.SLOW ?? 1);
const WAIT_MS = 60000 * SLOW; // a bound for what never comes, and no measurement

// As an ordinary user Chromium keeps its sandbox, where the machine lets it; root has none.
async function launch() {
  const options = { executablePath: process.env.CHROMIUM, args: ['--disable-dev-shm-usage'] };
  if (process.getuid() === 0) return chromium.launch({ ...options, chromiumSandbox: false });
  try {
    return await chromium.launch({ ...options, chromiumSandbox: true });
  } catch (error) {
    console.log(`without its sandbox: ${String(error.message).split('\n')[0]}`);
    return chromium.launch({ ...options, chromiumSandbox: false });
  }
}

// Runs one case in a browser of its own. The page may never complain, nor ask another origin.
export async function visit(action) {
  const browser = await launch();
  try {
    await action((options) => Live.open(browser, options));
    for (const context of browser.contexts()) {
      for (const page of context.pages()) page.live.assertInnocent();
    }
  } finally {
    await browser.close();
  }
}

export function generate(tokens, ...options) {
  return execFileSync(process.env.GEN, ['--prompt', 'hello', '--tokens', String(tokens), '--format', 'text', ...options],
    { encoding: 'utf8', maxBuffer: 1 << 24 });
}

export class Live {
  complaints = [];
  foreign = []; // requests to another origin
  expectsComplaints = false;

  // { at: 'tuned', hash: '', width, height, dark, still, headers }
  static async open(browser, { at = 'tuned', hash = '', width = 1280, height = 900, dark = false, still = false, headers = {}, before = () => {} } = {}) {
    const live = new Live();
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light',
      reducedMotion: still ? 'reduce' : 'no-preference', extraHTTPHeaders: headers });
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    page.live = live;
    live.page = page;
    page.on('console', (line) => ['error', 'warning'].includes(line.type()) && live.complaints.push(line.text()));
    page.on('pageerror', (error) => live.complaints.push(error.stack));
    await page.exposeBinding('tellViolation', (_, what) => live.complaints.push(what));
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => window.tellViolation(`${event.violatedDirective}: ${event.blockedURI}`));
    });
    await page.addInitScript(before);
    const { origin } = new URL(URL_OF[at]);
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol !== 'data:' && url.origin !== origin) live.foreign.push(request.url());
    });
    await page.goto(`${URL_OF[at]}/${hash && `#${hash}`}`);
    return live;
  }

  assertInnocent() {
    assert.deepEqual(this.foreign, []);
    if (!this.expectsComplaints) assert.deepEqual(this.complaints, []);
  }

  // { name: value }: a text, a choice, or for a check box true or false.
  async fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const control = this.page.locator(`[name="${name}"]`);
      if (typeof value === 'boolean') await control.setChecked(value);
      else if (await control.evaluate((element) => element.tagName === 'SELECT')) await control.selectOption(value);
      else await control.fill(value);
    }
  }

  async start(values = {}) {
    await this.fill(values);
    await this.page.click('#start');
  }

  // Starts, and waits until it is over.
  async run(values) {
    await this.start(values);
    return this.ended();
  }

  async waitFor(predicate, argument) {
    await this.page.waitForFunction(predicate, argument, { polling: 50 });
  }

  state() {
    return this.page.getAttribute('#status', 'data-state');
  }

  status() {
    return this.page.innerText('#status').then((text) => text.replace(/\s+/g, ' '));
  }

  async ended() {
    await this.waitFor(() => !['idle', 'waiting', 'streaming'].includes(document.querySelector('#status').dataset.state));
    return this.state();
  }

  async received(least) {
    await this.waitFor((wanted) => parseInt(document.querySelector('#tokens').textContent.replace(/,/g, ''), 10) >= wanted, least);
  }

  text() {
    return this.page.textContent('#text');
  }

  async figure(id) {
    return parseFloat((await this.page.textContent(`#${id}`)).replace(/,/g, ''));
  }

  // [events, reads]
  async reads() {
    const notes = await this.page.$$eval('#coalesced-note, #tokens-note', (all) => all.map((element) => element.textContent));
    const [reads, events] = notes.map((note) => Number(note.replace(/\D/g, '')));
    return [events, reads];
  }

  // What the page shows of the ledger, once that is final.
  async account() {
    await this.waitFor(() => !document.querySelector('#account').hidden
      && document.querySelector('[data-name="outcome"]').textContent !== 'live');
    return this.accountNow();
  }

  accountNow() {
    return this.page.$$eval('#account [data-name]', (all) => Object.fromEntries(all.map((element) => {
      const text = element.textContent;
      return [element.dataset.name, /^[\d,]+$/.test(text) ? Number(text.replace(/,/g, '')) : text];
    })));
  }

  ledger(id) {
    return this.page.evaluate((of) => fetch(`/_debug/generated?id=${of}`).then((reply) => reply.json()), id);
  }

  // What axe finds wrong for people who see, hear or use their hands differently.
  async axe() {
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() => window.axe.run());
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`));
  }

  async picture(name, { fullPage = true } = {}) {
    mkdirSync(process.env.SHOTS, { recursive: true });
    await this.page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage });
  }
}
