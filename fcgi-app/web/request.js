// The form as a request: its URL, what to expect of it, and its place in the page's address.

const DEFAULTS = { vocab: 'words', jitter: 'none', chunk: '1', fault: 'none', wire: 'lf' };

// The URL. The values are the server's to judge, which says what is wrong with them. Throws when the
// path is not this server's.
export function urlOf(form) {
  const { path, percent, at, stall_ms: stallMs, code, ...query } = Object.fromEntries(new FormData(form));
  const url = new URL(path, location.origin);
  if (!path.startsWith('/') || url.origin !== location.origin) {
    throw new Error(`The path must begin with one / and be on this server, ${location.origin}`);
  }
  if (query.jitter !== 'none') query.jitter += `:${percent}`;
  if (query.fault === 'status') query.fault += `:${code}`;
  else if (query.fault === 'stall') query.fault += `@${at}:${stallMs}`;
  else if (!['none', 'nodone'].includes(query.fault)) query.fault += `@${at}`;
  for (const [name, value] of Object.entries(query)) {
    if (value !== '' && value !== DEFAULTS[name]) url.searchParams.set(name, value);
  }
  return url;
}

// How many tokens, and when the last is due; where the form leaves it to the server, its defaults,
// and `asked` is NaN.
export function expectedOf(form) {
  const { max_tokens: max, ttft_ms: first, itl_ms: between } = form.elements;
  const number = ({ value }, otherwise) => (value !== '' && Number(value) >= 0 ? Number(value) : otherwise);
  const asked = number(max, NaN);
  const tokens = Math.max(1, number(max, 128));
  const ttft = number(first, 200);
  const gap = number(between, 25);
  return { asked, tokens, ttft, gap, ms: 1.04 * (ttft + gap * (tokens - 1)) };
}

// Controls that only some choices need: data-for="fault error stall" needs one of these faults.
export function showWhatApplies(form) {
  for (const label of form.querySelectorAll('[data-for]')) {
    const [name, ...choices] = label.dataset.for.split(' ');
    label.hidden = !choices.includes(form.elements[name].value);
  }
}

// Behind the # of the page's address: a set-up can be kept as a bookmark, and no log has the prompt.
export function rememberIn(form) {
  history.replaceState(null, '', `#${new URLSearchParams(new FormData(form))}`);
}

export function recallInto(form) {
  const values = new URLSearchParams(location.hash.slice(1));
  for (const element of form.elements) {
    if (element.type === 'checkbox') element.checked = location.hash === '' || values.has(element.name);
    else if (values.has(element.name)) element.value = values.get(element.name);
  }
}
