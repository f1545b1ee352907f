// The server's own count of one request: GET /_debug/generated, asked until the request has ended.

const FIRST_WAIT_MS = 60;
const LAST_WAIT_MS = 1000;

// Asks, and calls show(account) or tell(sentence), until the outcome is final or `signal` aborts.
export async function followLedger(id, signal, show, tell) {
  for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 1.6, LAST_WAIT_MS)) {
    let response;
    let account;
    try {
      response = await fetch(`/_debug/generated?id=${encodeURIComponent(id)}`, { cache: 'no-store', signal });
      account = await response.json();
    } catch (error) {
      if (!signal.aborted) tell(`It could not be asked (${error.message}).`);
      return;
    }
    if (signal.aborted) return;
    if (response.status === 403) {
      tell('The server tells it to browsers on its own machine only, as nginx.conf has it. '
        + `Ask there for /_debug/generated?id=${id}`);
      return;
    }
    if (!response.ok) {
      tell(`It does not know request ${id}: ${account.error?.message ?? response.status}`);
      return;
    }
    show(account);
    if (account.outcome !== 'live') return;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
