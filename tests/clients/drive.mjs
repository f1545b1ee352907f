// What the drivers for Node.js share. A driver reads cases, one JSON object a line, has its client
// do one after the other, and prints what each saw, one JSON object a line. It judges nothing; the
// test does.
//
// A case: {name, api: "chat"|"completions", stream, max_tokens, prompt, runnel: {controls}, body:
// {members of the request}, usage, leave: how to go away (or none), after: pieces before that,
// timeout_ms, retries, key}. Its name is the request's X-Request-Id.
//
// What is seen: {name, text, pieces, finish, usage, error: {type, bases, status, param, code,
// message}, accepted: requests that the server counted, row: the ledger's, once it has ended or made
// far more than was read}.

import { createInterface } from 'node:readline';

const origin = process.env.URL;

export const baseURL = `${origin}/v1`;
export const key = (wanted) => wanted.key ?? process.env.KEY;

async function ledger(id) {
  const query = id === undefined ? '' : `?id=${id}`;
  const response = await fetch(`${origin}/_debug/generated${query}`);
  return response.json();
}

// A client that really left has the server stop within a few tokens; one that only stopped reading
// is told by how far the server went on.
const FAR = 30;

async function settled(name, read) {
  for (;;) {
    const row = await ledger(name);
    if (row.error !== undefined || row.outcome !== 'live' || row.generated > read + FAR) return row;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

function describe(error) {
  const bases = [];
  for (let at = Object.getPrototypeOf(error); at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at)) bases.push(at.constructor.name);
  const told = error.data?.error ?? error; // the AI SDK has the server's words in `data`
  return {
    type: bases[0] ?? null, bases, status: error.status ?? error.statusCode ?? null,
    param: told.param ?? null, code: told.code ?? null, message: String(error.message),
  };
}

// act(wanted, seen): has the client do the case and fills `seen`; may throw what the client throws.
// What it returns is kept until all cases are over: nothing is cleaned up by chance.
export async function drive(act) {
  const kept = [];
  for await (const line of createInterface({ input: process.stdin })) {
    const wanted = { api: 'chat', stream: true, max_tokens: 10, prompt: 'hello', runnel: {}, body: {},
      retries: 0, ...JSON.parse(line) };
    const seen = { name: wanted.name, text: '', pieces: 0, finish: null, usage: null, error: null };
    const before = await ledger();
    try {
      kept.push(await act(wanted, seen));
    } catch (error) {
      seen.error = describe(error);
    }
    seen.row = await settled(wanted.name, seen.pieces);
    seen.accepted = (await ledger()).ledger.accepted - (before.ledger?.accepted ?? 0);
    console.log(JSON.stringify(seen));
  }
  process.exit(0); // streams that a client forgot would keep the process
}

// The controller of a case; for `before` it aborts by itself.
export function signal(wanted) {
  const controller = new AbortController();
  if (wanted.leave === 'before') setTimeout(() => controller.abort(), wanted.after);
  return controller;
}
