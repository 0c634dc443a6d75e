// What AG-UI's own protobuf package makes of our bytes, and what we make of its bytes.
//
// Every event type in many variants: encoded by both sides, the bytes must be the same; decoded by both sides, so must
// the events. Then bytes of which some were broken: what we take, the package takes for the same event. Where the
// package does what nobody should do, we differ on purpose; those cases have names, and a case that no longer differs
// fails.

import assert from 'node:assert/strict';
import path from 'node:path';

import { require, run, step, target } from '../lib/gateway.mjs';

// It warns of each event that it encodes against its own schema; those are told here, with a name.
console.warn = () => {};
const proto = require('@ag-ui/proto');
const { EventEncoder } = require('@ag-ui/encoder');
const xtask = path.join(target, 'debug', 'xtask');

const VARIANTS = 40;
const BROKEN = 60;

/** Has our side do many things at once. */
async function ours(tasks) {
  const input = tasks.map((task) => `${JSON.stringify(task)}\n`).join('');
  const { code, stdout, stderr } = await run(xtask, ['agui', 'protobuf'], { input });
  assert.equal(code, 0, `xtask agui protobuf: exit ${code}: ${stderr}`);
  const answers = stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(answers.length, tasks.length, 'one answer for each task');
  return answers;
}

const hex = (bytes) => Buffer.from(bytes).toString('hex');
const plain = (value) => JSON.parse(JSON.stringify(value));

/** Without what version 1.1 adds, which the package does not know. */
function before11(value) {
  if (Array.isArray(value)) value.forEach(before11);
  else if (value !== null && typeof value === 'object') {
    delete value.encryptedValueType;
    Object.values(value).forEach(before11);
  }
  return value;
}

/** What the package makes of bytes, in the words of our side. */
function theirs(bytes) {
  try {
    return { decoded: plain(proto.decode(Buffer.from(bytes, 'hex'))) };
  } catch (error) {
    return error.name === 'AGUIUnknownEventTypeError' ? { decoded: null } : { error: error.message };
  }
}

// Numbers that come out the same each time: xorshift32.
let seed = 0x2545f491;
function random(below) {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) % below;
}
const pick = (list) => list[random(list.length)];

// How optional fields are treated: none, all, all of them empty, or as it comes.
let mode = 'random';
const there = () => (mode === 'random' ? random(2) === 0 : mode !== 'none');

const TEXTS = ['', 'a', 'm-1', 'Grüße, 世界 🚂', 'line\nline\u0000\ufeff', 'x'.repeat(130), '"{}[]"', '\ufffd'];
const text = () => (mode === 'empty' ? '' : pick(TEXTS));
const NUMBERS = [0, 1, -1, 0.5, -1.25, 1e-7, 1e21, 1e300, 255, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, 2 ** 53, 1e20, 5e-324];
const INTEGERS = [0, 1, -1, 127, 128, 300, 1_700_000_000_000, 2 ** 53 - 1, -(2 ** 53 - 1)];
const COUNTS = INTEGERS.filter((number) => number >= 0);
const KEYS = ['', 'a', 'b', 'ключ', 'a/b~c', 'constructor', 'toString', '-1', '01'];

function object(depth = 0) {
  const made = {};
  for (let left = mode === 'empty' ? 0 : random(4); left > 0; left -= 1) made[pick(KEYS)] = open(depth + 1);
  return made;
}

/** Anything that JSON can say. */
function open(depth = 0) {
  const kind = depth === 0 && mode === 'empty' ? pick([2, 5, 6]) : random(depth > 4 ? 4 : 8);
  if (kind === 0) return null;
  if (kind === 1) return random(2) === 0;
  if (kind === 2) return text();
  if (kind === 3) return pick(NUMBERS);
  return kind % 2 === 0 ? Array.from({ length: random(4) }, () => open(depth + 1)) : object(depth);
}
function some() {
  for (;;) {
    const value = open();
    if (value !== null) return value;
  }
}

/** An object of fields that are always there, and of fields that may be. */
function record(must, may = {}) {
  const made = {};
  for (const [name, make] of Object.entries(must)) made[name] = make();
  for (const [name, make] of Object.entries(may)) if (there()) made[name] = make();
  return made;
}
const list = (make, least = 0) => () =>
  Array.from({ length: Math.max(least, mode === 'empty' ? 0 : random(4)) }, make);
const word = (...words) => () => pick(words);
const pointer = word('', '/', '/a', '/a~1b/0', '/ü');

const owner = { subagentRunId: text };
const base = { timestamp: () => pick(INTEGERS), rawEvent: some, metadata: object };
const speaker = word('developer', 'system', 'assistant', 'user');

const source = () =>
  pick([
    () => record({ type: word('data'), value: text, mimeType: text }),
    () => record({ type: word('url'), value: text }, { mimeType: text }),
    () => record({ type: word('file'), value: text }, { provider: text, mimeType: text }),
  ])();
const part = () =>
  pick([
    () => record({ type: word('text'), text }, { id: text, metadata: some }),
    () => record({ type: word('image', 'audio', 'video', 'document'), source }, { id: text, metadata: some }),
  ])();
const content = () => (random(2) === 0 ? text() : list(part)());

const toolCall = () =>
  record(
    { id: text, type: word('function'), function: () => record({ name: text, arguments: text }) },
    { encryptedValue: text, metadata: object },
  );
const common = { subagentRunId: text, metadata: object };
const message = () =>
  pick([
    () => record({ id: text, role: word('developer', 'system'), content: text }, { ...common, name: text, encryptedValue: text }),
    () => record({ id: text, role: word('assistant') }, { ...common, content: text, name: text, toolCalls: list(toolCall), encryptedValue: text }),
    () => record({ id: text, role: word('user'), content }, { ...common, name: text, encryptedValue: text }),
    () => record({ id: text, role: word('tool'), content, toolCallId: text }, { ...common, error: text, encryptedValue: text }),
    () => record({ id: text, role: word('activity'), activityType: text, content: object }, common),
    () => record({ id: text, role: word('reasoning'), content: text }, { ...common, encryptedValue: text }),
  ])();

const operation = () =>
  pick([
    () => record({ op: word('add', 'replace', 'test'), path: pointer, value: open }),
    () => record({ op: word('remove'), path: pointer }),
    () => record({ op: word('move', 'copy'), from: pointer, path: pointer }),
  ])();
const count = () => pick(COUNTS);
const usage = () =>
  record({}, {
    provider: text, model: text, inputTokens: count, outputTokens: count, totalTokens: count,
    reasoningTokens: count, cachedInputTokens: count, cacheWriteInputTokens: count,
  });
const interrupt = () =>
  record(
    { id: text, reason: text },
    { message: text, toolCallId: text, responseSchema: object, expiresAt: text, metadata: object, subagentRunId: text },
  );
const input = () =>
  record({ threadId: text, runId: text, messages: list(message) }, {
    protocolVersion: text,
    parentRunId: text,
    state: some,
    tools: list(() => record({ name: text, description: text }, { parameters: some, metadata: object })),
    context: list(() => record({ description: text, value: text })),
    forwardedProps: some,
    resume: list(() => record({ interruptId: text, status: word('resolved', 'cancelled') }, { payload: some, metadata: object })),
  });
const outcome = () =>
  pick([
    () => record({ type: word('success') }, { pendingToolCallIds: list(text) }),
    () => record({ type: word('interrupt'), interrupts: list(interrupt, 1) }),
    () => record({ type: word('cancelled') }),
  ])();
const subagentOutcome = () =>
  pick([
    () => record({ type: word('success') }),
    () => record({ type: word('suspended') }, { interruptIds: list(text) }),
  ])();

/** The fields that each type always has, and those that it may have. */
const EVENTS = {
  TEXT_MESSAGE_START: [{ messageId: text }, { role: speaker, name: text, ...owner }],
  TEXT_MESSAGE_CONTENT: [{ messageId: text, delta: text }, owner],
  TEXT_MESSAGE_END: [{ messageId: text }, owner],
  TEXT_MESSAGE_CHUNK: [{}, { messageId: text, role: speaker, delta: text, name: text, ...owner }],
  TOOL_CALL_START: [{ toolCallId: text, toolCallName: text }, { parentMessageId: text, ...owner }],
  TOOL_CALL_ARGS: [{ toolCallId: text, delta: text }, owner],
  TOOL_CALL_END: [{ toolCallId: text }, owner],
  TOOL_CALL_CHUNK: [{}, { toolCallId: text, toolCallName: text, parentMessageId: text, delta: text, ...owner }],
  TOOL_CALL_RESULT: [{ messageId: text, toolCallId: text, content }, { role: word('tool'), ...owner }],
  STATE_SNAPSHOT: [{ snapshot: open }, owner],
  STATE_DELTA: [{ delta: list(operation) }, owner],
  MESSAGES_SNAPSHOT: [{ messages: list(message) }, {}],
  ACTIVITY_SNAPSHOT: [{ messageId: text, activityType: text, content: object }, { replace: word(true, false), ...owner }],
  ACTIVITY_DELTA: [{ messageId: text, activityType: text, patch: list(operation) }, owner],
  RAW: [{ event: open }, { source: text, ...owner }],
  CUSTOM: [{ name: text, value: open }, owner],
  RUN_STARTED: [{ threadId: text, runId: text }, { protocolVersion: text, parentRunId: text, input }],
  RUN_FINISHED: [{ threadId: text, runId: text }, { result: some, outcome, usage: list(usage) }],
  RUN_ERROR: [{ message: text }, { code: text, usage: list(usage) }],
  STEP_STARTED: [{ stepName: text }, owner],
  STEP_FINISHED: [{ stepName: text }, owner],
  REASONING_START: [{ messageId: text }, owner],
  REASONING_MESSAGE_START: [{ messageId: text, role: word('reasoning') }, owner],
  REASONING_MESSAGE_CONTENT: [{ messageId: text, delta: text }, owner],
  REASONING_MESSAGE_END: [{ messageId: text }, owner],
  REASONING_MESSAGE_CHUNK: [{}, { messageId: text, delta: text, ...owner }],
  REASONING_END: [{ messageId: text }, owner],
  REASONING_ENCRYPTED_VALUE: [{ subtype: word('tool-call', 'message'), entityId: text, encryptedValue: text }, owner],
  SUBAGENT_STARTED: [
    { subagentRunId: text, name: text },
    { description: text, parentSubagentRunId: text, parentToolCallId: text, parentMessageId: text },
  ],
  SUBAGENT_FINISHED: [{ subagentRunId: text }, { result: some, outcome: subagentOutcome }],
  SUBAGENT_ERROR: [{ subagentRunId: text, message: text }, { code: text }],
};

function variants(type) {
  const [must, may] = EVENTS[type];
  return Array.from({ length: VARIANTS }, (_, place) => {
    mode = ['none', 'all', 'empty'][place] ?? 'random';
    const event = record({ type: () => type, ...must }, { ...base, ...may });
    mode = 'random';
    return event;
  });
}

/** Nulls where the protocol allows none, fields that it does not know, a part that it retired. */
function oddities() {
  const run = { threadId: 't', runId: 'r' };
  const user = (content) => ({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content }] });
  const binary = { type: 'binary', mimeType: 'image/png' };
  return [
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: null, name: null, rawEvent: null, metadata: null, timestamp: null },
    { type: 'TEXT_MESSAGE_START', messageId: 'm', mystery: { a: 1 } },
    { type: 'RUN_FINISHED', ...run, outcome: null, result: null, usage: null },
    { type: 'RUN_FINISHED', ...run, outcome: { type: 'exploded' } },
    { type: 'RUN_FINISHED', ...run, outcome: { type: 'cancelled', interrupts: [{ id: 'i', reason: 'r' }] } },
    { type: 'RUN_STARTED', ...run, input: { ...run, messages: [], state: null, tools: null, context: null, forwardedProps: null, resume: null } },
    { type: 'RUN_STARTED', ...run, input: null },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'a', role: 'assistant', content: null, toolCalls: null }] },
    { type: 'STATE_DELTA', delta: [{ op: 'move', path: '/a', from: '/b', value: 3, mystery: true }] },
    user([{ ...binary, data: 'AA', filename: 'f', id: 'i' }]),
    user([{ ...binary, data: '', url: 'https://example.org/a' }]),
    user([{ ...binary, id: 'i' }]),
  ];
}

/** What the package encodes as something else than it is, and we refuse. */
const REFUSED = {
  'a missing id becomes the text "undefined"': { type: 'TEXT_MESSAGE_END' },
  'a missing role becomes the text "undefined"': { type: 'REASONING_MESSAGE_START', messageId: 'm' },
  'a number becomes a text': { type: 'TEXT_MESSAGE_END', messageId: 7 },
  'a type without a message becomes no bytes': { type: 'META', metaType: 'x', payload: {} },
  'missing content becomes an empty list': { type: 'TOOL_CALL_RESULT', messageId: 'm', toolCallId: 'c' },
  'a part without a binary form is left out': {
    type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content: [{ type: 'hologram' }] }],
  },
  'metadata that is no object is left out': { type: 'STEP_STARTED', stepName: 's', metadata: [1] },
  'content that is no object becomes an empty one': {
    type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'a', role: 'activity', activityType: 'x', content: 'text' }],
  },
  'an object becomes the text "[object Object]"': {
    type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'w', role: 'system', content: { a: 1 } }],
  },
  'an outcome without a type becomes none': { type: 'RUN_FINISHED', threadId: 't', runId: 'r', outcome: {} },
  'a word in another case becomes the word': { type: 'STATE_DELTA', delta: [{ op: 'ADD', path: '/a', value: 1 }] },
};

/** What the package encodes in another way than we do, and in a worse one. */
const DIFFERENT = {
  'a key named __proto__ is lost': '{"type":"STATE_SNAPSHOT","snapshot":{"__proto__":{"x":1},"a":1}}',
  'keys that are numbers go first': '{"type":"STATE_SNAPSHOT","snapshot":{"b":1,"1":2}}',
  'a null in a patch becomes the text "null"': '{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a","from":null}]}',
};

/** Why we refuse bytes that the package takes: it does not look closely everywhere. */
const CLOSER = new Set([
  'a text is not UTF-8',
  'a number is not finite',
  'a number is too long',
  'a field has the number 0',
  'a group does not end where it should',
  'the message ends within a field',
]);

/** Bytes that the package takes, and we refuse. */
const STRICTER = {
  'text that is not UTF-8': '120b0a02080112016d1a02ffff',
  'a number that is not finite': '3a0f0a020806120911000000000000f07f',
  'an event in an encoding that it cannot have, beside one that has it': '0a020a000b0c',
  'a varint of more than 64 bits': '0a0d0a0010ffffffffffffffffff7f',
  'field 0 within usage': '72080a02080d22020000',
};

step('all types of the protocol are tried');
assert.equal(Object.keys(EVENTS).length, 31);

const events = [...Object.keys(EVENTS).flatMap(variants), ...oddities()];
const bytes = events.map((event) => hex(proto.encode(event)));

step(`${events.length} events have the same bytes on both sides`);
const encoded = await ours(events.map((encode) => ({ encode })));
events.forEach((event, place) => {
  assert.deepEqual(encoded[place], { encoded: bytes[place] }, JSON.stringify(event));
});

step('and both sides read the same from them');
const decoded = await ours(bytes.map((decode) => ({ decode })));
events.forEach((event, place) => {
  const { decoded: read, error } = theirs(bytes[place]);
  assert.equal(error, undefined, JSON.stringify(event));
  assert.deepEqual(decoded[place], { decoded: read }, JSON.stringify(event));
});

step('their frames are their bytes behind a length');
const encoder = new EventEncoder({ accept: proto.AGUI_MEDIA_TYPE });
const framed = Buffer.from(encoder.encodeBinary(events[0]));
assert.equal(framed.readUInt32BE(0), framed.length - 4);
assert.equal(hex(framed.subarray(4)), bytes[0]);

step('both sides choose the same form');
const ACCEPTS = [
  '', '*/*', 'application/*', 'text/*', 'application/json', 'text/event-stream', proto.AGUI_MEDIA_TYPE,
  proto.AGUI_MEDIA_TYPE.toUpperCase(), `${proto.AGUI_MEDIA_TYPE};q=0`, `${proto.AGUI_MEDIA_TYPE};q=0, */*`,
  `text/event-stream, ${proto.AGUI_MEDIA_TYPE};q=0.1`, `${proto.AGUI_MEDIA_TYPE};version=2`,
  `${proto.AGUI_MEDIA_TYPE};q=0.5;level=1`, 'application/*;q=0, */*', '*/*;q=0, application/*',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', `text/plain;a="b, ${proto.AGUI_MEDIA_TYPE}"`,
  `text/plain;a="b", ${proto.AGUI_MEDIA_TYPE}`, 'text/event-stream, application/x-ndjson', `${proto.AGUI_MEDIA_TYPE};q=high`,
  ` ${proto.AGUI_MEDIA_TYPE} ; q=1.0 `, ',,', 'application', `${proto.AGUI_MEDIA_TYPE};q=0, ${proto.AGUI_MEDIA_TYPE}`,
];
const chosen = await ours(ACCEPTS.map((accept) => ({ accept })));
ACCEPTS.forEach((accept, place) => {
  assert.equal(chosen[place].media_type, new EventEncoder({ accept }).getContentType(), accept);
});

const broken = bytes.flatMap((whole) => {
  const made = new Set();
  for (let left = BROKEN / 4; left > 0; left -= 1) {
    const copy = Buffer.from(whole, 'hex');
    const place = random(copy.length);
    copy[place] = pick([random(256), copy[place] ^ (1 << random(8)), 0, 0xff]);
    made.add(hex(copy));
    made.add(whole.slice(0, 2 * random(copy.length + 1)));
    // The same field again, and another one beside it.
    made.add(whole + hex(copy));
    made.add(whole + bytes[random(bytes.length)]);
  }
  return [...made];
});
const read = await ours(broken.map((decode) => ({ decode })));
const tally = { same: 0, refused: 0, closer: 0 };
broken.forEach((whole, place) => {
  const told = theirs(whole);
  if (read[place].error === undefined) {
    assert.deepEqual(before11(read[place]), told, whole);
    tally.same += 1;
  } else if (told.error === undefined) {
    assert.ok(CLOSER.has(read[place].error), `${read[place].error}: ${whole}`);
    tally.closer += 1;
  } else {
    tally.refused += 1;
  }
});
step(
  `of ${broken.length} broken messages both sides read ${tally.same} alike and refuse ${tally.refused}; ` +
    `we alone refuse ${tally.closer}`,
);
assert.ok(Object.values(tally).every((count) => count > 100), 'there are some of each');

step('where the package errs, we differ');
const names = Object.keys(REFUSED);
const refusals = await ours(names.map((name) => ({ encode: REFUSED[name] })));
names.forEach((name, place) => {
  assert.ok(refusals[place].error, `${name}: ${JSON.stringify(refusals[place])}`);
  assert.doesNotThrow(() => proto.encode(REFUSED[name]), name);
});
for (const [name, event] of Object.entries(DIFFERENT)) {
  const { code, stdout, stderr } = await run(xtask, ['agui', 'protobuf'], { input: `{"encode":${event}}\n` });
  assert.equal(code, 0, stderr);
  const { encoded: own } = JSON.parse(stdout);
  assert.ok(own, `${name}: ${stdout}`);
  assert.notEqual(own, hex(proto.encode(JSON.parse(event))), name);
}
const strict = await ours(Object.values(STRICTER).map((decode) => ({ decode })));
Object.entries(STRICTER).forEach(([name, given], place) => {
  assert.ok(strict[place].error, `${name}: ${JSON.stringify(strict[place])}`);
  assert.equal(theirs(given).error, undefined, name);
});

console.log('interop: the bytes are the same');
