// Follows every run of a recording with @ag-ui/client, once per line on standard input.
//
// Usage: agui.mjs PACKAGES operators|runAgent RECORDING, with server-sent events. Prints the seconds each time took.
//   operators  the events, parsed before, through transformChunks, verifyEvents and defaultApplyEvents
//   runAgent   the bytes, through all of HttpAgent
// Each run has an agent of its own, without subscribers.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';

const [packages, part, recording] = process.argv.slice(2);
const require = createRequire(path.join(packages, 'here.js'));
const { HttpAgent, defaultApplyEvents, transformChunks, verifyEvents } = require('@ag-ui/client');
const { from } = createRequire(require.resolve('@ag-ui/client'))('rxjs');

const PIECE = 64 * 1024;
const runs = readFileSync(recording, 'utf8').split(/(?<=\n\n)(?=data: \{"type":"RUN_STARTED")/);

// What the client has to say about a recording without fault would be a mistake of ours.
console.warn = console.error = (...words) => {
  throw new Error(words.join(' '));
};
console.log = console.info = console.debug = () => {};

const parsed = (body) =>
  body
    .split('\n\n')
    .filter((frame) => frame)
    .map((frame) => JSON.parse(frame.slice('data: '.length)));

/** Gives the agent as the run left it. */
async function operators(events) {
  const { threadId, runId } = events[0];
  const agent = new HttpAgent({ url: 'http://agent.invalid', threadId });
  const input = { threadId, runId, state: {}, messages: [], tools: [], context: [], forwardedProps: {} };
  const verified = from(events).pipe(transformChunks(), verifyEvents());
  await defaultApplyEvents(input, verified, agent, []).forEach(({ messages, state }) => {
    if (messages !== undefined) agent.messages = messages;
    if (state !== undefined) agent.state = state;
  });
  return agent;
}

async function runAgent(bytes) {
  const body = new ReadableStream({
    start(stream) {
      for (let at = 0; at < bytes.length; at += PIECE) stream.enqueue(bytes.subarray(at, at + PIECE));
      stream.close();
    },
  });
  const headers = { 'content-type': 'text/event-stream' };
  const agent = new HttpAgent({ url: 'http://agent.invalid', fetch: async () => new Response(body, { headers }) });
  await agent.runAgent();
  return agent;
}

const [prepare, follow] = {
  operators: [parsed, operators],
  runAgent: [(body) => new TextEncoder().encode(body), runAgent],
}[part];

for await (const _ of readline.createInterface({ input: process.stdin })) {
  // Parsed anew each time, so that nothing kept from the last time helps or hurts.
  const prepared = runs.map(prepare);
  const began = performance.now();
  for (const run of prepared) {
    const { messages, state } = await follow(run);
    if (messages.length === 0 || state.berths === undefined) throw new Error('a run left nothing behind');
  }
  process.stdout.write(`${(performance.now() - began) / 1000}\n`);
}
