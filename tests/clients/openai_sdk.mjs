// The official client of npm, `openai`; see drive.mjs. Ways to leave: break, abort (AbortController),
// stream (its own controller), forget (stop asking), before (abort after so many milliseconds).

import OpenAI from 'openai';
import { baseURL, drive, key, signal } from './drive.mjs';

function body(wanted) {
  const about = wanted.api === 'chat'
    ? { messages: [{ role: 'user', content: wanted.prompt }] } : { prompt: wanted.prompt };
  return {
    model: 'runnel', max_tokens: wanted.max_tokens, stream: wanted.stream, runnel: wanted.runnel,
    ...about, ...(wanted.usage ? { stream_options: { include_usage: true } } : {}), ...wanted.body,
  };
}

await drive(async (wanted, seen) => {
  const client = new OpenAI({ baseURL, apiKey: key(wanted), maxRetries: wanted.retries });
  const leaving = signal(wanted);
  const resource = wanted.api === 'chat' ? client.chat.completions : client.completions;
  const reply = await resource.create(body(wanted), {
    headers: { 'X-Request-Id': wanted.name },
    signal: leaving.signal,
    ...(wanted.timeout_ms ? { timeout: wanted.timeout_ms } : {}),
  });
  const take = (piece) => {
    const choice = piece.choices[0];
    const text = choice?.delta?.content ?? choice?.message?.content ?? choice?.text ?? '';
    seen.text += text;
    if (text !== '') seen.pieces += 1;
    seen.finish = choice?.finish_reason ?? seen.finish;
    seen.usage = piece.usage ?? seen.usage;
  };
  if (!wanted.stream) {
    take(reply);
    return reply;
  }
  if (wanted.leave === 'forget') {
    const iterator = reply[Symbol.asyncIterator]();
    while (seen.pieces < wanted.after) take((await iterator.next()).value);
    return iterator;
  }
  for await (const piece of reply) {
    take(piece);
    if (seen.pieces !== wanted.after) continue;
    if (wanted.leave === 'break') break;
    if (wanted.leave === 'abort') leaving.abort();
    if (wanted.leave === 'stream') reply.controller.abort();
  }
  return reply;
});
