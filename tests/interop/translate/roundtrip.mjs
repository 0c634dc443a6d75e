// Random AG-UI streams, to AEP and back: what of a conversation has to come back, and what cannot.
//
// Compared are the texts (id, role, words), the tool calls (id, name, arguments), their results, and the state.
//
// Left out of the comparison, because AEP has no way to say it:
// - the order of messages: AEP tells a thing once it is whole, AG-UI when it begins, and these streams have much at once;
// - what was not whole when the run broke, the recording ended, or a MESSAGES_SNAPSHOT set the history anew;
// - a name that stands for two things: begun again, or given to another message by a history; the second has one of ours;
// - texts without a word, which nobody said;
// - the spelling of arguments: what is JSON comes back as the same JSON, none at all as {};
// - ids and owners of results: a second result of the same call, or one of a call that nobody made, is one of our own;
// - the call that such a result needs, which is told in the report as begun without being told;
// - cards, whose patches are only said where they fit, and our own cards for what waits.

import { isDeepStrictEqual } from 'node:util';

import { valid } from '../agui/random.mjs';

/** A random stream on a thread of its own, each of its runs with a name of its own; `input` is what the client had before. */
export function stream(n) {
  const { events, input } = valid(n + 1);
  let run = 0;
  const named = (thing) => ({ ...thing, threadId: `thread-${n}`, runId: `run-${n}-${run}` });
  const renamed = events.map((event) => {
    if (event.type === 'RUN_STARTED') run += 1;
    if (event.threadId === undefined) return event;
    return { ...named(event), ...(event.input && { input: named(event.input) }) };
  });
  return { input, events: renamed };
}

const HISTORY = new Set(['RUN_STARTED', 'MESSAGES_SNAPSHOT']);
const BREAKS = new Set(['RUN_ERROR', 'MESSAGES_SNAPSHOT']);
const historyOf = (event) => event.messages ?? event.input?.messages ?? [];

/** All ids of a stream, and those that cannot be compared. */
function ids(events) {
  const begun = new Set();
  const out = new Set();
  const told = new Map();
  let open = new Set();
  const begin = (id) => {
    if (begun.has(id)) out.add(id);
    begun.add(id);
  };
  for (const event of events) {
    const id = event.toolCallId ?? event.messageId;
    if (HISTORY.has(event.type)) {
      for (const message of historyOf(event)) {
        const calls = (message.toolCalls ?? []).map((call) => call.id);
        if (isDeepStrictEqual(told.get(message.id), message)) continue;
        for (const name of [message.id, ...calls]) begin(name);
        if (out.has(message.id)) for (const name of calls) out.add(name);
        told.set(message.id, message);
      }
    } else if (event.type === 'TOOL_CALL_RESULT' || event.type === 'ACTIVITY_SNAPSHOT') {
      begin(event.messageId);
    } else if (event.type.endsWith('_START') && event.type !== 'REASONING_START') {
      begin(id);
      open.add(id);
    } else if (event.type.endsWith('_CHUNK')) {
      if (id !== undefined && !open.has(id)) begin(id);
      if (id !== undefined) open.add(id);
    } else if (event.type.endsWith('_END') && event.type !== 'REASONING_END') {
      open.delete(id);
    }
    if (BREAKS.has(event.type)) {
      for (const name of open) out.add(name);
      open = new Set();
    }
    if (event.type === 'RUN_FINISHED') open = new Set();
  }
  for (const name of open) out.add(name);
  // The calls of a message that another one took the place of went with it.
  for (const [id, { toolCalls = [] }] of told) if (out.has(id)) for (const call of toolCalls) out.add(call.id);
  return { begun, out };
}

function loosely(text) {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What is compared: a name for each thing, and what it says. */
export function carried(events, messages) {
  const { begun, out } = ids(events);
  const comparable = (id) => begun.has(id) && !out.has(id);
  const things = new Map();
  for (const { id, role, content, toolCalls = [], toolCallId } of messages) {
    if (role === 'tool') {
      if (!comparable(toolCallId)) continue;
      const name = `result of ${toolCallId}`;
      things.set(name, [...(things.get(name) ?? []), content]);
    } else if (role !== 'activity' && comparable(id) && content !== undefined && content.length > 0) {
      things.set(`words ${id}`, [role, content]);
    }
    for (const call of toolCalls) {
      if (!comparable(call.id)) continue;
      things.set(`call ${call.id}`, [call.function.name, loosely(call.function.arguments)]);
    }
  }
  return things;
}
