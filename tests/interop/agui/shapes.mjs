// What a single event may look like: every event with every field missing, null, of another kind; nested objects; the
// shapes that were retired.

import {
  activity, assistant, by, call, category, custom, messages, raw, run, runError, runFinished, runStarted, secret, span,
  state, step, sub, text, thought, tool, user, verbatim,
} from './events.mjs';

const { all, good, bad } = category('shape');
export default all;

/** Every event: what must be open before it, an example with every field, what closes it. `json` fields may be null. */
export const EVENTS = [
  {
    event: runStarted({
      protocolVersion: '1.0',
      parentRunId: 'p',
      input: { threadId: 't', runId: 'r', messages: [user('u')], tools: [], context: [] },
    }),
    before: [],
    required: { threadId: 'string', runId: 'string' },
    optional: { protocolVersion: 'string', parentRunId: 'string', input: 'object' },
    after: [runFinished()],
    alone: true,
  },
  {
    event: runFinished({ result: { ok: 1 }, outcome: { type: 'success' }, usage: [{ model: 'x', inputTokens: 3 }] }),
    required: { threadId: 'string', runId: 'string' },
    optional: { result: 'any', outcome: 'object', usage: 'array' },
    alone: true,
  },
  {
    event: runError({ code: 'E', usage: [] }),
    required: { message: 'string' },
    optional: { code: 'string', usage: 'array' },
    alone: true,
  },
  {
    event: step.started('s', by('a')),
    required: { stepName: 'string' },
    after: [step.finished('s', by('a'))],
    tagged: true,
  },
  {
    event: step.finished('s', by('a')),
    before: [step.started('s', by('a'))],
    required: { stepName: 'string' },
    tagged: true,
  },
  {
    event: text.start('m', by('a', { role: 'user', name: 'Ann' })),
    required: { messageId: 'string' },
    optional: { role: 'string', name: 'string' },
    after: [text.end('m')],
    tagged: true,
  },
  {
    event: text.content('m', 'words', by('a')),
    before: [text.start('m', by('a'))],
    required: { messageId: 'string', delta: 'string' },
    after: [text.end('m')],
    tagged: true,
  },
  {
    event: text.end('m', by('a')),
    before: [text.start('m', by('a'))],
    required: { messageId: 'string' },
    tagged: true,
  },
  {
    event: text.chunk({ messageId: 'm', role: 'user', delta: 'words', name: 'Ann', ...by('a') }),
    optional: { role: 'string', delta: 'string', name: 'string' },
    opener: { messageId: 'string' },
    tagged: true,
  },
  {
    event: tool.start('c', 'look', by('a', { parentMessageId: 'm' })),
    required: { toolCallId: 'string', toolCallName: 'string' },
    optional: { parentMessageId: 'string' },
    after: [tool.end('c')],
    tagged: true,
  },
  {
    event: tool.args('c', '{}', by('a')),
    before: [tool.start('c', 'look', by('a'))],
    required: { toolCallId: 'string', delta: 'string' },
    after: [tool.end('c')],
    tagged: true,
  },
  {
    event: tool.end('c', by('a')),
    before: [tool.start('c', 'look', by('a'))],
    required: { toolCallId: 'string' },
    tagged: true,
  },
  {
    event: tool.chunk({ toolCallId: 'c', toolCallName: 'look', parentMessageId: 'm', delta: '{}', ...by('a') }),
    optional: { parentMessageId: 'string', delta: 'string' },
    opener: { toolCallId: 'string', toolCallName: 'string' },
    tagged: true,
  },
  {
    event: tool.result('r', 'c', 'seen', by('a', { role: 'tool' })),
    required: { messageId: 'string', toolCallId: 'string', content: 'string' },
    optional: { role: 'string' },
    tagged: true,
  },
  { event: state.snapshot({ n: 1 }, by('a')), required: { snapshot: 'json' }, tagged: true },
  { event: state.delta([], by('a')), required: { delta: 'array' }, tagged: true },
  { event: messages([user('u')]), required: { messages: 'array' } },
  {
    event: activity.snapshot('m', { done: 1 }, by('a', { replace: true })),
    required: { messageId: 'string', activityType: 'string', content: 'object' },
    optional: { replace: 'boolean' },
    tagged: true,
  },
  {
    event: activity.delta('m', [], by('a')),
    before: [activity.snapshot('m', {}, by('a'))],
    required: { messageId: 'string', activityType: 'string', patch: 'array' },
    tagged: true,
  },
  { event: raw({ any: 1 }, by('a', { source: 'x' })), required: { event: 'json' }, optional: { source: 'string' }, tagged: true },
  { event: custom('acme.note', 1, by('a')), required: { name: 'string', value: 'json' }, tagged: true },
  {
    event: span.start('m', by('a')),
    required: { messageId: 'string' },
    after: [span.end('m')],
    tagged: true,
  },
  {
    event: span.end('m', by('a')),
    before: [span.start('m', by('a'))],
    required: { messageId: 'string' },
    tagged: true,
  },
  {
    event: thought.start('m', by('a')),
    required: { messageId: 'string', role: 'string' },
    after: [thought.end('m')],
    tagged: true,
  },
  {
    event: thought.content('m', 'hm', by('a')),
    before: [thought.start('m', by('a'))],
    required: { messageId: 'string', delta: 'string' },
    after: [thought.end('m')],
    tagged: true,
  },
  {
    event: thought.end('m', by('a')),
    before: [thought.start('m', by('a'))],
    required: { messageId: 'string' },
    tagged: true,
  },
  {
    event: thought.chunk({ messageId: 'm', delta: 'hm', ...by('a') }),
    optional: { delta: 'string' },
    opener: { messageId: 'string' },
    tagged: true,
  },
  {
    event: secret('message', 'm', 'x', by('a')),
    before: text.whole('m', 'x', by('a')),
    required: { subtype: 'string', entityId: 'string', encryptedValue: 'string' },
    tagged: true,
  },
  {
    event: sub.started('a', { description: 'd', parentSubagentRunId: 'z', parentToolCallId: 'c', parentMessageId: 'm' }),
    before: [sub.started('z')],
    required: { subagentRunId: 'string', name: 'string' },
    optional: { description: 'string', parentSubagentRunId: 'string', parentToolCallId: 'string', parentMessageId: 'string' },
    after: [sub.finished('a'), sub.finished('z')],
  },
  {
    event: sub.finished('a', { result: 1, outcome: { type: 'success' } }),
    before: [sub.started('a')],
    required: { subagentRunId: 'string' },
    optional: { result: 'any', outcome: 'object' },
  },
  {
    event: sub.error('a', { code: 'E' }),
    before: [sub.started('a')],
    required: { subagentRunId: 'string', message: 'string' },
    optional: { code: 'string' },
  },
];

const WRONG = {
  string: [7, {}, ['x'], true],
  object: ['x', [], 7],
  array: ['x', {}, 7],
  boolean: ['true', 1],
  any: [],
  json: [],
};

/** The nulls that the client takes for absent. */
const LENIENT = new Set([
  'TOOL_CALL_START.parentMessageId', 'TOOL_CALL_CHUNK.parentMessageId', 'RUN_FINISHED.outcome', 'RUN_FINISHED.result',
  'SUBAGENT_FINISHED.result',
]);

const without = (event, field) => Object.fromEntries(Object.entries(event).filter(([key]) => key !== field));
const kindOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

for (const { event, before = [], required = {}, optional = {}, opener = {}, after = [], tagged, alone } of EVENTS) {
  const { type } = event;
  const prefix = type === 'RUN_STARTED' ? [] : [runStarted(), ...before];
  const at = prefix.length;
  const stream = (changed) => [...prefix, changed, ...after, ...(alone ? [] : [runFinished()])];
  const accept = (name, changed) => good(`${type}/${name}`, stream(changed));
  const refuse = (name, words, changed) => bad(`${type}/${name}`, words, at, stream(changed));

  accept('every field', event);
  const least = Object.fromEntries(
    Object.entries(event).filter(([key]) => key === 'type' || key in required || key in opener || key === 'subagentRunId'),
  );
  accept('fewest fields', least);
  for (const [field, kind] of Object.entries({ ...required, ...opener, ...optional })) {
    for (const value of WRONG[kind]) refuse(`${field} is ${kindOf(value)}`, field, { ...event, [field]: value });
    if (kind === 'json' || LENIENT.has(`${type}.${field}`)) accept(`${field} is null`, { ...event, [field]: null });
    else refuse(`${field} is null`, field, { ...event, [field]: null });
  }
  for (const field of Object.keys(required)) refuse(`${field} is missing`, field, without(event, field));
  for (const field of Object.keys(opener)) refuse(`${field} is missing`, `must have a ${field}`, without(event, field));

  accept('a field nobody knows', { ...event, colour: 'blue', toString: 1 });
  accept('timestamp', { ...event, timestamp: -1 });
  accept('rawEvent null', { ...event, rawEvent: null });
  accept('rawEvent', { ...event, rawEvent: [null, { deep: true }] });
  accept('metadata', { ...event, metadata: { 'acme.k': null, 'ag-ui': {}, list: [1] } });
  refuse('timestamp is 1.5', 'timestamp', { ...event, timestamp: 1.5 });
  refuse('timestamp is string', 'timestamp', { ...event, timestamp: '1' });
  refuse('timestamp null', 'timestamp', { ...event, timestamp: null });
  refuse('metadata null', 'metadata', { ...event, metadata: null });
  refuse('metadata is array', 'metadata', { ...event, metadata: [] });
  if (tagged) {
    refuse('subagentRunId null', 'subagentRunId', { ...event, subagentRunId: null });
    refuse('subagentRunId is number', 'subagentRunId', { ...event, subagentRunId: 4 });
    // A step belongs to whoever started it, tagged or not; everything else may be continued without a tag.
    if (!type.startsWith('STEP_')) accept('subagentRunId missing', without(event, 'subagentRunId'));
  } else if (!('subagentRunId' in event)) {
    accept('subagentRunId where there is none', { ...event, subagentRunId: 'a' });
    accept('subagentRunId null where there is none', { ...event, subagentRunId: null });
  }
}

// ── What nobody knows, and what is wrong ───────────────────────────────────────────────────────────────────────────

for (const type of ['META', 'RUN_CANCELLED', 'text_message_start', 'TextMessageStart', 'toString', '__proto__', 'RUN_STARTED ']) {
  good(`unknown type ${type}`, run({ type, messageId: 'm', delta: 5 }, text.whole('m')));
  good(`unknown type ${type} first`, [{ type }, ...run(text.whole('m'))]);
  good(`unknown type ${type} last`, [...run(text.whole('m')), { type }]);
}
good('nothing but unknown types', [{ type: 'META' }, { type: 'OTHER' }]);
good('nothing at all', []);
bad('an event that is an array', 'not a JSON object', null, [runStarted(), verbatim('[]')], { wire: true });
bad('an event that is null', 'not a JSON object', null, [runStarted(), verbatim('null')], { wire: true });
bad('an event that is a string', 'not a JSON object', null, [runStarted(), verbatim('"RUN_FINISHED"')], { wire: true });
bad('an event that is a number', 'not a JSON object', null, [runStarted(), verbatim('3')], { wire: true });
bad('an event without a type', 'no event type', null, [runStarted(), { messageId: 'm' }], { wire: true });
bad('an event whose type is empty', 'no event type', null, [runStarted(), { type: '' }], { wire: true });
bad('an event whose type is a number', 'no event type', null, [runStarted(), { type: 5 }], { wire: true });
bad('an event whose type is null', 'no event type', null, [runStarted(), { type: null }], { wire: true });

for (const [name, stamp, fine] of [
  ['1.0', '1.0', true], ['1e3', '1e3', true], ['-0', '-0', true], ['2^53-1', '9007199254740991', true],
  ['-(2^53-1)', '-9007199254740991', true], ['2^53', '9007199254740992', false], ['-2^53', '-9007199254740992', false],
  ['1e400', '1e400', false], ['1e-7', '1e-7', false], ['2^53-1 as float', '9007199254740991.0', true],
]) {
  const events = run(verbatim(`{"type":"CUSTOM","name":"n","value":1,"timestamp":${stamp}}`));
  if (fine) good(`timestamp ${name} as text`, events);
  else bad(`timestamp ${name} as text`, 'timestamp', 1, events, name === '1e400' ? { gap: 'infinite-number' } : {});
}

for (const role of ['developer', 'system', 'assistant', 'user']) {
  good(`text role ${role}`, run(text.whole('m', 'x', { role })));
  good(`chunk role ${role}`, run(text.chunk({ messageId: 'm', role, delta: 'x' })));
}
for (const role of ['tool', 'reasoning', 'activity', 'robot', '', 'User']) {
  bad(`text role ${role}`, 'role', 1, run(text.whole('m', 'x', { role })));
  bad(`chunk role ${role}`, 'role', 1, run(text.chunk({ messageId: 'm', role, delta: 'x' })));
}
for (const role of ['assistant', 'thinking', '']) {
  bad(`reasoning role ${role}`, 'role', 1, run(thought.whole('m', 'x', { role })));
  bad(`result role ${role}`, 'role', 1, run(tool.result('r', 'c', 'x', { role })));
}
good('role on a reasoning chunk is stripped', run(thought.chunk({ messageId: 'm', delta: 'x', role: 'user' })));
bad('an unknown subtype', 'subtype', 4, run(text.whole('m'), secret('part', 'm')));
good('empty words everywhere', run(
  text.start('', by('')), text.content('', '', by('')), text.end('', by('')),
  tool.start('', '', by('')), tool.args('', ''), tool.end(''),
  step.started(''), step.finished(''), custom('', ''), raw(''),
));

// ── Outcomes and usage ─────────────────────────────────────────────────────────────────────────────────────────────

const ends = (name, fields) => good(name, [runStarted(), ...text.whole('m'), runFinished(fields)]);
const fails = (name, words, fields) => bad(name, words, 4, [runStarted(), ...text.whole('m'), runFinished(fields)]);
const ask = (x) => ({ type: 'interrupt', interrupts: [{ id: 'i', reason: 'why', ...x }] });
ends('outcome success', { outcome: { type: 'success' } });
ends('outcome success, pending', { outcome: { type: 'success', pendingToolCallIds: ['c'] } });
ends('outcome success, pending empty', { outcome: { type: 'success', pendingToolCallIds: [] } });
fails('outcome success, pending null', 'pendingToolCallIds', { outcome: { type: 'success', pendingToolCallIds: null } });
fails('outcome success, pending a number', 'pendingToolCallIds', { outcome: { type: 'success', pendingToolCallIds: [1] } });
ends('outcome success with interrupts is stripped', { outcome: { type: 'success', interrupts: [{ nonsense: 1 }] } });
ends('outcome cancelled', { outcome: { type: 'cancelled' } });
ends('outcome cancelled with interrupts is stripped', { outcome: { type: 'cancelled', interrupts: 3 } });
ends('outcome cancelled with a result', { outcome: { type: 'cancelled' }, result: 1 });
ends('outcome interrupt', { outcome: ask() });
ends('outcome interrupt, every field', {
  outcome: ask({
    message: 'm', toolCallId: 'c', responseSchema: { type: 'object', extra: null }, expiresAt: 'whenever', metadata: { k: null },
    subagentRunId: 'a',
  }),
});
ends('outcome interrupt, unknown field', { outcome: ask({ colour: 'blue' }) });
ends('outcome interrupt with pending is stripped', { outcome: { ...ask(), pendingToolCallIds: 5 } });
ends('outcome interrupt twice the same id', {
  outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'a' }, { id: 'i', reason: 'b' }] },
});
fails('outcome interrupt of none', 'interrupts', { outcome: { type: 'interrupt', interrupts: [] } });
fails('outcome interrupt without any', 'interrupts', { outcome: { type: 'interrupt' } });
fails('outcome interrupt without an id', 'id', { outcome: { type: 'interrupt', interrupts: [{ reason: 'x' }] } });
fails('outcome interrupt without a reason', 'reason', { outcome: { type: 'interrupt', interrupts: [{ id: 'x' }] } });
for (const field of ['message', 'toolCallId', 'responseSchema', 'expiresAt', 'metadata', 'subagentRunId']) {
  fails(`outcome interrupt, ${field} null`, field, { outcome: ask({ [field]: null }) });
}
fails('outcome interrupt, responseSchema an array', 'responseSchema', { outcome: ask({ responseSchema: [] }) });
ends('outcome of an unknown type is removed', { outcome: { type: 'exploded', interrupts: [] } });
ends('outcome without a type is removed', { outcome: {} });
ends('outcome with a type that is a number is removed', { outcome: { type: 5 } });
fails('outcome an array', 'outcome', { outcome: [] });
fails('outcome a string', 'outcome', { outcome: 'success' });
ends('usage, every field', {
  usage: [{
    provider: 'p', model: 'm', inputTokens: 1, outputTokens: 2, totalTokens: 3, reasoningTokens: 0, cachedInputTokens: 0,
    cacheWriteInputTokens: 9007199254740991,
  }],
});
ends('usage, nothing in it', { usage: [{}] });
ends('usage, unknown field', { usage: [{ cost: 1.5 }] });
fails('usage negative', 'inputTokens', { usage: [{ inputTokens: -1 }] });
fails('usage a fraction', 'inputTokens', { usage: [{ inputTokens: 1.5 }] });
fails('usage null', 'usage', { usage: null });
fails('usage of null', 'usage', { usage: [null] });
fails('usage, tokens null', 'inputTokens', { usage: [{ inputTokens: null }] });
fails('usage too much', 'totalTokens', { usage: [{ totalTokens: 9007199254740992 }] });
ends('a result that is false', { result: false });
for (const outcome of [{ type: 'success' }, { type: 'suspended' }, { type: 'suspended', interruptIds: [] }, { type: 'suspended', interruptIds: ['i'] }]) {
  good(`subagent outcome ${JSON.stringify(outcome)}`, run(sub.started('a'), sub.finished('a', { outcome })));
}
good('subagent outcome success with ids is stripped', run(sub.started('a'), sub.finished('a', { outcome: { type: 'success', interruptIds: 3 } })));
good('subagent outcome of an unknown type is removed', run(sub.started('a'), sub.finished('a', { outcome: { type: 'cancelled' } })));
bad('subagent outcome, ids null', 'interruptIds', 2, run(sub.started('a'), sub.finished('a', { outcome: { type: 'suspended', interruptIds: null } })));
bad('subagent outcome, an id a number', 'interruptIds', 2, run(sub.started('a'), sub.finished('a', { outcome: { type: 'suspended', interruptIds: [1] } })));
bad('subagent outcome null', 'outcome', 2, run(sub.started('a'), sub.finished('a', { outcome: null })));
good('outcome on a subagent error is stripped', run(sub.started('a'), sub.error('a', { outcome: { type: 'exploded' } })));

// ── Messages and parts ─────────────────────────────────────────────────────────────────────────────────────────────

const MESSAGES = {
  developer: { id: 'x', role: 'developer', content: 'c', name: 'n', encryptedValue: 'e' },
  system: { id: 'x', role: 'system', content: 'c', name: 'n', encryptedValue: 'e' },
  assistant: { id: 'x', role: 'assistant', content: 'c', toolCalls: [call('c')], name: 'n', encryptedValue: 'e' },
  user: { id: 'x', role: 'user', content: 'c', name: 'n', encryptedValue: 'e' },
  tool: { id: 'x', role: 'tool', content: 'c', toolCallId: 'c', error: 'e', encryptedValue: 'e' },
  activity: { id: 'x', role: 'activity', activityType: 'PLAN', content: {} },
  reasoning: { id: 'x', role: 'reasoning', content: 'c', encryptedValue: 'e' },
};
for (const [role, message] of Object.entries(MESSAGES)) {
  const whole = { ...message, metadata: { k: null }, subagentRunId: 'a' };
  const list = (changed) => run(messages([changed]));
  good(`message ${role}`, list(whole));
  good(`message ${role} with an unknown field`, list({ ...whole, colour: 1 }));
  good(`message ${role} in the input`, [runStarted({ input: { threadId: 't', runId: 'r', messages: [whole] } }), runFinished()]);
  for (const field of Object.keys(whole)) {
    if (field === 'role') continue;
    bad(`message ${role}, ${field} null`, field, 1, list({ ...whole, [field]: null }));
    const needed = field === 'id' || field === 'activityType' || field === 'toolCallId' || (field === 'content' && role !== 'assistant');
    if (needed) bad(`message ${role}, ${field} missing`, field, 1, list(without(whole, field)));
  }
}
good('message of an unknown role is removed', run(messages([user('u'), { id: 'x', role: 'robot', content: 'c' }, { id: 'y' }])));
good('message activity with a name and a value is stripped', run(messages([{ ...MESSAGES.activity, name: 'n', encryptedValue: 'e' }])));
bad('message an array', 'messages', 1, run(messages([[]])));
bad('message null', 'null', 1, run(messages([null])));
bad('message assistant of parts', 'content', 1, run(messages([assistant('x', { content: [{ type: 'text', text: 'x' }] })])));
bad('message system of parts', 'content', 1, run(messages([{ id: 'x', role: 'system', content: [] }])));
good('message user of no parts', run(messages([user('x', [])])));
good('message assistant of nothing', run(messages([assistant('x')])));
bad('message activity of an array', 'content', 1, run(messages([{ ...MESSAGES.activity, content: [] }])));
bad('call of another type', 'type', 1, run(messages([assistant('x', { toolCalls: [{ ...call('c'), type: 'code' }] })])));
bad('call without arguments', 'arguments', 1, run(messages([assistant('x', { toolCalls: [{ id: 'c', type: 'function', function: { name: 'n' } }] })])));
bad('call with arguments as an object', 'arguments', 1, run(messages([assistant('x', { toolCalls: [call('c', 'n', {})] })])));
good('call with every field and one more', run(messages([assistant('x', {
  toolCalls: [{ ...call('c', 'n', '{not json'), encryptedValue: 'e', metadata: { k: 1 }, subagentRunId: 'a', colour: 1 }],
})])));

const SOURCES = [
  { type: 'data', value: 'AA==', mimeType: 'image/png' }, { type: 'url', value: 'https://example.org/x' },
  { type: 'url', value: 'x', mimeType: 'image/png' }, { type: 'file', value: 'h' },
  { type: 'file', value: 'h', provider: 'p', mimeType: 'm' },
];
const both = (name, parts) => {
  good(`${name} in a message`, run(messages([user('u', parts)])));
  good(`${name} in a result`, run(tool.result('r', 'c', parts)));
};
const neither = (name, words, parts) => {
  bad(`${name} in a message`, words, 1, run(messages([user('u', parts)])));
  bad(`${name} in a result`, words, 1, run(tool.result('r', 'c', parts)));
};
for (const [n, source] of SOURCES.entries()) {
  both(`part source ${n}`, ['image', 'audio', 'video', 'document'].map((type) => ({ type, source, id: 'p', metadata: 'any' })));
}
both('part text', [{ type: 'text', text: '' }, { type: 'text', text: 'x', id: 'i', metadata: [1] }]);
both('part unknown is removed', [{ type: 'hologram', text: 'x' }, { type: 'text', text: 'left' }, {}]);
both('part source unknown removes the part', [{ type: 'image', source: { type: 'ipfs', value: 'x' } }, { type: 'text', text: 'left' }]);
both('part with unknown fields', [{ type: 'text', text: 'x', colour: 1 }, { type: 'image', source: { ...SOURCES[0], size: 1 } }]);
neither('part data without mimeType', 'mimeType', [{ type: 'image', source: { type: 'data', value: 'AA==' } }]);
neither('part without source', 'source', [{ type: 'image' }]);
neither('part source null', 'source', [{ type: 'image', source: null }]);
neither('part source an array', 'source', [{ type: 'image', source: [] }]);
neither('part text null', 'text', [{ type: 'text', text: null }]);
neither('part null', 'content', [null]);
neither('part text with metadata null', 'metadata', [{ type: 'text', text: 'x', metadata: null }]);
good('part media with metadata null in a message', run(messages([user('u', [{ type: 'image', source: SOURCES[0], metadata: null }])])));
bad('part media with metadata null in a result', 'metadata', 1, run(tool.result('r', 'c', [{ type: 'image', source: SOURCES[0], metadata: null }])));
bad('result an object', 'content', 1, run(tool.result('r', 'c', { a: 1 })));
good('result of no parts', run(tool.result('r', 'c', [])));

// ── Patches ────────────────────────────────────────────────────────────────────────────────────────────────────────

const patch = (name, ...ops) => good(`patch ${name}`, run(state.snapshot({ a: 1, l: [1, 2], '': 0 }), state.delta(ops)));
const noPatch = (name, words, ...ops) => {
  bad(`patch ${name}`, words, 2, run(state.snapshot({ a: 1 }), state.delta(ops)));
  bad(`patch of an activity ${name}`, words, 2, run(activity.snapshot('x', { a: 1 }), activity.delta('x', ops)));
};
patch('of every kind', { op: 'add', path: '/b', value: null }, { op: 'replace', path: '/a', value: 2 }, { op: 'test', path: '/a', value: 2 },
  { op: 'copy', from: '/a', path: '/c' }, { op: 'move', from: '/c', path: '/d' }, { op: 'remove', path: '/d' });
patch('with members nobody knows', { op: 'add', path: '/b', value: 1, note: 'x', from: 7 });
patch('with an unknown op', { op: 'append', path: '/b', value: 1 }, { op: 'add', path: '/c', value: 1 });
patch('without an op', { path: '/b', value: 1 });
patch('of nothing');
noPatch('path without a slash', 'path', { op: 'add', path: 'a', value: 1 });
noPatch('path with ~2', 'path', { op: 'add', path: '/~2', value: 1 });
noPatch('path ending in ~', 'path', { op: 'add', path: '/a~', value: 1 });
noPatch('path null', 'path', { op: 'add', path: null, value: 1 });
noPatch('path missing', 'path', { op: 'remove' });
noPatch('value missing', 'value', { op: 'add', path: '/a' });
noPatch('value missing in test', 'value', { op: 'test', path: '/a' });
noPatch('value missing in replace', 'value', { op: 'replace', path: '/a' });
noPatch('from missing', 'from', { op: 'move', path: '/a' });
noPatch('from bad', 'from', { op: 'copy', from: 'a', path: '/a' });
noPatch('op null', 'nvalid', null);
noPatch('op a list', 'nvalid', []);
bad('patch under the other name', 'delta', 1, run({ type: 'STATE_DELTA', patch: [] }));
bad('patch of an activity under the other name', 'patch', 2, run(activity.snapshot('x'), { type: 'ACTIVITY_DELTA', messageId: 'x', activityType: 'P', delta: [] }));
bad('state under the old name', 'snapshot', 1, run({ type: 'STATE_SNAPSHOT', state: {} }));
bad('an error under another name', 'message', 1, [runStarted(), { type: 'RUN_ERROR', threadId: 't', runId: 'r', error: 'x' }]);
good('an error with ids', [runStarted(), runError({ threadId: 't', runId: 'r' })]);

// ── The input of RUN_STARTED ───────────────────────────────────────────────────────────────────────────────────────

const begins = (input) => [runStarted({ input: { threadId: 't', runId: 'r', messages: [user('u')], ...input } }), runFinished()];
good('input, every field', begins({
  protocolVersion: '1.0', parentRunId: 'p', state: { a: null }, tools: [{ name: 'n', description: 'd', parameters: {}, metadata: {} }],
  context: [{ description: 'd', value: 'v' }], forwardedProps: 5, resume: [{ interruptId: 'i', status: 'resolved', payload: 1, metadata: {} }],
}));
good('input, state null', begins({ state: null }));
good('input, forwardedProps null', begins({ forwardedProps: null }));
good('input, tool parameters null', begins({ tools: [{ name: 'n', description: 'd', parameters: null }] }));
good('input, resume payload null', begins({ resume: [{ interruptId: 'i', status: 'cancelled', payload: null }] }));
good('input, media metadata null', begins({ messages: [user('u', [{ type: 'image', source: SOURCES[0], metadata: null }])] }));
good('input, unknown fields', begins({ colour: 1, tools: [{ name: 'n', description: 'd', colour: 1 }] }));
bad('input, status unknown', 'status', 0, begins({ resume: [{ interruptId: 'i', status: 'maybe' }] }));
bad('input, resume null', 'resume', 0, begins({ resume: null }));
bad('input, tools null', 'tools', 0, begins({ tools: null }));
bad('input, context null', 'context', 0, begins({ context: null }));
bad('input, context value a number', 'value', 0, begins({ context: [{ description: 'd', value: 1 }] }));
bad('input, tool without description', 'description', 0, begins({ tools: [{ name: 'n' }] }));
bad('input, messages missing', 'messages', 0, begins({ messages: undefined }));
bad('input, parentRunId null', 'parentRunId', 0, begins({ parentRunId: null }));
bad('input, protocolVersion null', 'protocolVersion', 0, begins({ protocolVersion: null }));
bad('input, a message tagged null', 'subagentRunId', 0, begins({ messages: [user('u', 'x', { subagentRunId: null })] }));
for (const version of ['1.0', '1.1', '2.0', '0.0.39', 'new', '']) {
  good(`version ${version}`, [runStarted({ protocolVersion: version }), runFinished()]);
}

// ── Retired ────────────────────────────────────────────────────────────────────────────────────────────────────────

const think = (type, x) => ({ type: `THINKING_${type}`, ...x });
const minted = { minted: true };
const whole = [think('START', { title: 'Plan' }), think('TEXT_MESSAGE_START'), think('TEXT_MESSAGE_CONTENT', { delta: 'hm' }), think('TEXT_MESSAGE_CONTENT', { delta: 'm' }), think('TEXT_MESSAGE_END'), think('END')];
good('thinking', run(whole), minted);
good('thinking twice', run(whole, whole, text.whole('m')), minted);
good('thinking without a span', run(whole.slice(1, 5)), minted);
good('thinking, an empty span', run(think('START'), think('END')), minted);
good('thinking under a tag, with metadata', run(whole.map((event) => ({ ...event, subagentRunId: 'a', metadata: { k: event.type } }))), minted);
good('thinking with ids of its own', run(whole.map((event) => ({ ...event, messageId: 'mine' }))), minted);
good('thinking over two runs', [...run(whole), ...run(whole)], minted);
good('thinking, two messages in a span', run(whole[0], whole.slice(1, 5), whole.slice(1, 5), whole[5]), minted);
good('thinking, the first opener is replaced in a second run', [runStarted(), whole[0], runError(), ...run(whole)], minted);
bad('thinking content without a start', 'No active reasoning message', 1, run(whole[2]), minted);
bad('thinking end of a message without a start', 'No active reasoning message', 1, run(whole[4]), minted);
bad('thinking end of a span without a start', 'No active reasoning span', 1, run(whole[5]), minted);
bad('thinking content after the end', 'No active reasoning message', 3, run(whole[1], whole[4], whole[2]), minted);
bad('thinking content without delta', 'delta', 2, run(whole[1], think('TEXT_MESSAGE_CONTENT')), minted);
bad('thinking message left open', 'reasoning messages are still active', 2, run(whole[1]), minted);
bad('thinking span left open', 'reasoning spans are still active', 2, run(whole[0]), minted);
bad('thinking message opened twice leaves one open', 'reasoning messages are still active', 5, run(whole[1], whole[1], whole[2], whole[4]), minted);
bad('thinking closes a text chunk', 'First TEXT_MESSAGE_CHUNK', 3, run(text.chunk({ messageId: 'm', delta: 'x' }), whole[0], text.chunk({ delta: 'y' })), minted);

const binary = (x) => ({ type: 'binary', mimeType: 'image/png', ...x });
const old = (name, ...parts) => {
  good(`binary ${name}`, run(messages([user('u', parts)])));
  good(`binary ${name} in the input`, begins({ messages: [user('u', parts)] }));
};
old('data', binary({ data: 'AA==' }));
old('url', binary({ url: 'https://example.org/x', filename: 'x.png' }));
old('data before url', binary({ data: 'AA==', url: 'x', id: 'i' }));
old('of each kind', ...['image/gif', 'audio/wav', 'video/mp4', 'application/pdf', '', 'imagery'].map((mimeType) => binary({ mimeType, data: 'AA==' })));
old('id only is removed', binary({ id: 'i' }), { type: 'text', text: 'left' });
old('without mimeType is removed', { type: 'binary', data: 'AA==' }, { type: 'text', text: 'left' });
old('empty data, then url', binary({ data: '', url: 'x' }));
old('beside its modern twin', binary({ data: 'AA==' }), { type: 'image', source: { type: 'data', value: 'AA==', mimeType: 'image/png' } });
old('beside its twin, with a name', binary({ data: 'AA==', filename: 'f' }), { type: 'image', source: { type: 'data', value: 'AA==', mimeType: 'image/png' } });
old('beside its named twin', binary({ data: 'AA==', filename: 'f' }), { type: 'image', source: { type: 'data', value: 'AA==', mimeType: 'image/png' }, metadata: { filename: 'f' } });
old('twice', binary({ data: 'AA==' }), binary({ data: 'AA==' }));
good('binary in a result is removed', run(tool.result('r', 'c', [binary({ data: 'AA==' })])));
good('binary in a tool message', run(messages([{ id: 'x', role: 'tool', toolCallId: 'c', content: [binary({ data: 'AA==' })] }])));
good('nulls together', [runStarted(), runFinished({ result: null, outcome: null, rawEvent: null })]);

// ── What JSON can say and JavaScript cannot ────────────────────────────────────────────────────────────────────────

good('a key twice, the last counts', run(verbatim('{"type":"STATE_SNAPSHOT","snapshot":1,"snapshot":{"a":1,"a":2}}')));
good('the type twice, the last counts', run(verbatim('{"type":"RUN_ERROR","type":"CUSTOM","name":"n","value":0}')));
good('a key named __proto__ on an event', run(verbatim('{"type":"CUSTOM","name":"n","value":0,"__proto__":{"x":1}}')));
good('a key named __proto__ in a state', run(verbatim('{"type":"STATE_SNAPSHOT","snapshot":{"constructor":1,"prototype":2}}')));
good('characters of every width', run(text.whole('m', 'aé€😀\u0000\u2028"\\')));
good('floats in a state', run(verbatim('{"type":"STATE_SNAPSHOT","snapshot":[1.0,1.5,1e2,-0.0,0.1,1e-7,123456789.125,9007199254740991]}')));
good('an integer beyond 2^53 in a state', run(verbatim('{"type":"STATE_SNAPSHOT","snapshot":12345678901234567890}')));
good('a number beyond all in a state', run(verbatim('{"type":"STATE_SNAPSHOT","snapshot":{"n":1e999}}')), { gap: 'infinite-number' });
good('half a surrogate pair', run(verbatim('{"type":"CUSTOM","name":"\\ud83d","value":0}')), { gap: 'lone-surrogate' });
good('a pair split over two deltas', run(text.start('m'), verbatim('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\\ud83d"}'),
  verbatim('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\\ude00"}'), text.end('m')), { gap: 'lone-surrogate' });
