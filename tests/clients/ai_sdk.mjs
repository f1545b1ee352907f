// The AI SDK, `ai` with `@ai-sdk/openai-compatible`; see drive.mjs. Ways to leave: break, abort
// (abortSignal), before (abort after so many milliseconds). Errors of a stream come to onError, and
// not out of the stream.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { baseURL, drive, key, signal } from './drive.mjs';

await drive(async (wanted, seen) => {
  const provider = createOpenAICompatible({
    name: 'runnel', baseURL, apiKey: key(wanted), includeUsage: Boolean(wanted.usage),
    // Controls go into the body here: the SDK has no member for what the provider does not know.
    transformRequestBody: (body) => ({ ...body, runnel: wanted.runnel, ...wanted.body }),
  });
  const leaving = signal(wanted);
  const request = {
    model: wanted.api === 'chat' ? provider.chatModel('runnel') : provider.completionModel('runnel'),
    prompt: wanted.prompt, maxOutputTokens: wanted.max_tokens, maxRetries: wanted.retries,
    abortSignal: leaving.signal, headers: { 'X-Request-Id': wanted.name },
  };
  if (!wanted.stream) {
    const reply = await generateText(request);
    Object.assign(seen, { text: reply.text, pieces: 1, finish: reply.finishReason, usage: reply.usage });
    return reply;
  }
  let failure = null;
  const reply = streamText({ ...request, onError: ({ error }) => { failure ??= error; } });
  for await (const text of reply.textStream) {
    seen.text += text;
    seen.pieces += 1;
    if (seen.pieces !== wanted.after) continue;
    if (wanted.leave === 'break') return reply;
    if (wanted.leave === 'abort') leaving.abort();
  }
  if (failure !== null) throw failure;
  if (wanted.leave === undefined) {
    seen.finish = await reply.finishReason;
    seen.usage = await reply.usage;
  }
  return reply;
});
