// Whether `banister repair` makes of a broken AG-UI stream one that the official client takes, with nothing said lost.
//
// Each broken stream first goes to the client as it is, which must refuse it, miss its end, or lose some of its words.

import assert from 'node:assert/strict';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { run as execute, step as tell, target } from '../lib/gateway.mjs';
import {
  by, custom, runError, runFinished, runStarted, span, step, sub, text, textOf, thought, tool,
} from './agui/events.mjs';
import { lineOf, streams } from './agui-streams.mjs';
import { direct, wire } from './agui/oracle.mjs';

const begin = runStarted({ protocolVersion: '1.0' });
const finish = runFinished();
const whole = (...events) => [begin, ...events.flat(), finish];
const said = (id, words, x) => [text.start(id, x), text.content(id, words)];
const called = (id, args) => [tool.start(id), tool.args(id, args)];
const thinks = (id, words) => [thought.start(id), thought.content(id, words)];

/** What is broken, how, and the words that must survive. */
const CASES = [
  ['missing text END', 'one message', whole(said('m', 'never closed')), ['never closed']],
  ['missing text END', 'two messages, one closed', whole(said('m', 'left open'), text.whole('n', 'closed')), ['left open', 'closed']],
  ['missing text END', 'in the first of two runs', [...whole(said('m', 'first run')), ...whole(text.whole('n', 'second run'))], ['first run', 'second run']],
  ['missing tool END', 'one call', whole(called('c', 'half an argument')), ['half an argument']],
  ['missing tool END', 'a call with its result', whole(called('c', 'arguments'), tool.result('r', 'c', 'answer'), text.whole('m', 'so')), ['arguments', 'answer', 'so']],
  ['missing reasoning END', 'a message', whole(thinks('r', 'pondering'), text.whole('m', 'aloud')), ['pondering', 'aloud']],
  ['missing reasoning END', 'a span', whole(span.start('s'), thought.whole('r', 'inside'), text.whole('m', 'outside')), ['inside', 'outside']],
  ['missing reasoning END', 'both', whole(span.start('s'), thinks('r', 'deep'), text.whole('m', 'shallow')), ['deep', 'shallow']],
  ['END after terminal', 'of a text', [begin, ...said('m', 'closed late'), finish, text.end('m')], ['closed late']],
  ['END after terminal', 'of a call', [begin, ...called('c', 'late too'), finish, tool.end('c')], ['late too']],
  ['END after terminal', 'once more', [...whole(text.whole('m', 'closed twice')), text.end('m')], ['closed twice']],
  ['END after terminal', 'of an error', [begin, ...said('m', 'broke off'), runError(), text.end('m')], ['broke off']],
  ['unclosed steps', 'one', whole(step.started('plan'), text.whole('m', 'in a step')), ['in a step']],
  ['unclosed steps', 'several, of several owners', whole(step.started('plan'), step.started('plan', by('a')), step.started('do'), step.finished('do'), text.whole('m', 'in steps')), ['in steps']],
  ['CRLF framing', 'a whole run', whole(text.whole('m', 'carriage')), ['carriage'], '\r\n'],
  ['CRLF framing', 'a call', whole(called('c', 'returned'), tool.end('c'), tool.result('r', 'c', 'line feed')), ['returned', 'line feed'], '\r\n'],
  ['no terminal event', 'cut after a message', [begin, ...text.whole('m', 'and then nothing')], ['and then nothing']],
  ['no terminal event', 'cut in a message', [begin, ...text.whole('m', 'whole'), ...said('n', 'half')], ['whole', 'half']],
  ['no terminal event', 'cut in a chunk', [begin, text.chunk({ messageId: 'm', delta: 'chunked' })], ['chunked']],
  ['no terminal event', 'cut in the second run', [...whole(text.whole('m', 'one')), begin, ...said('n', 'two')], ['one', 'two']],
  ['orphan chunks', 'text', whole(text.chunk({ delta: 'no ' }), text.chunk({ delta: 'name' })), ['no name']],
  ['orphan chunks', 'text after a custom event', whole(text.chunk({ messageId: 'm', delta: 'before' }), custom('acme.x', 1), text.chunk({ delta: 'after' })), ['before', 'after']],
  ['orphan chunks', 'a thought', whole(thought.chunk({ delta: 'whose?' }), text.whole('m', 'mine')), ['whose?', 'mine']],
  ['orphan chunks', 'a call without an id', whole(tool.chunk({ toolCallName: 'look', delta: 'nameless' }), text.whole('m', 'next')), ['nameless', 'next']],
  ['content without start', 'text', whole(text.content('m', 'suddenly')), ['suddenly']],
  ['content without start', 'text, then its end', whole(text.content('m', 'out of '), text.content('m', 'nothing'), text.end('m')), ['out of nothing']],
  ['content without start', 'a thought', whole(thought.content('r', 'unbidden'), thought.end('r'), text.whole('m', 'hm')), ['unbidden', 'hm']],
  ['content without start', 'after the end', whole(text.whole('m', 'done'), text.content('m', ' not yet'), text.end('m')), ['done', 'not yet']],
  ['missing RUN_STARTED', 'a message', [...text.whole('m', 'unannounced'), finish], ['unannounced']],
  ['missing RUN_STARTED', 'nothing around a message', text.whole('m', 'bare'), ['bare']],
  ['missing RUN_STARTED', 'of the second run', [...whole(text.whole('m', 'one')), ...text.whole('n', 'two'), finish], ['one', 'two']],
  ['null optionals', 'on a message', whole(text.start('m', { name: null, metadata: null }), text.content('m', 'nothing is null'), text.end('m', by(null))), ['nothing is null']],
  ['null optionals', 'on a run', [runStarted({ protocolVersion: '1.0', parentRunId: null, input: null }), ...text.whole('m', 'still here'), runFinished({ usage: null })], ['still here']],
  ['null optionals', 'on a chunk', whole(text.chunk({ messageId: 'm', role: null, name: null, delta: 'chunk' })), ['chunk']],
  ['unknown enum word', 'a role', whole(text.whole('m', 'the narrator', { role: 'narrator' })), ['the narrator']],
  ['unknown enum word', 'a role of a chunk', whole(text.chunk({ messageId: 'm', role: 'model', delta: 'the model' })), ['the model']],
  ['unknown enum word', "a thought's role", whole(thought.whole('r', 'assistance', { role: 'assistant' }), text.whole('m', 'given')), ['assistance', 'given']],
  ['RUN_FINISHED twice', 'at once', [...whole(text.whole('m', 'twice over')), finish], ['twice over']],
  ['RUN_FINISHED twice', 'with words between', [...whole(text.whole('m', 'first end')), ...text.whole('n', 'second end'), finish], ['first end', 'second end']],
  ['event after terminal', 'a message', [...whole(text.whole('m', 'said')), ...text.whole('n', 'afterword')], ['said', 'afterword']],
  ['event after terminal', 'a custom event', [...whole(text.whole('m', 'kept')), custom('acme.usage', { tokens: 1 })], ['kept']],
  ['event after terminal', 'after an error', [begin, ...text.whole('m', 'before it'), runError(), ...text.whole('n', 'after it')], ['before it', 'after it']],
  ['unclosed subagent', 'one', whole(sub.started('a'), text.whole('m', 'helped', by('a'))), ['helped']],
  ['unclosed subagent', 'two, one in the other', whole(sub.started('a'), sub.started('b', { parentSubagentRunId: 'a' }), text.whole('m', 'nested', by('b')), sub.finished('b')), ['nested']],
  ['unclosed subagent', 'with an open message', whole(sub.started('a'), said('m', 'unfinished', by('a'))), ['unfinished']],
].map(([fault, name, events, words, newline = '\n']) => ({ fault, name, events, words, newline }));

/** Streams with nothing to repair. */
const SOUND = [
  ['a message', whole(text.whole('m', 'sound'))],
  ['a run that broke', [begin, ...said('m', 'half'), runError({ code: 'E' })]],
  ['two runs with everything in them', [
    ...whole(step.started('s'), text.whole('m'), tool.whole('c'), tool.result('r', 'c'), step.finished('s')),
    ...whole(sub.started('a'), span.start('t', by('a')), thought.whole('t', 'hm', by('a')), span.end('t'), sub.finished('a'), text.chunk({ messageId: 'n', delta: 'x' })),
  ]],
];

const TERMINAL = new Set(['RUN_FINISHED', 'RUN_ERROR']);
const frames = (events, newline) => events.map((event) => `data: ${textOf(event)}${newline}${newline}`);
const lines = (events) => events.map((event) => `${textOf(event)}\n`).join('');

/** Whether every run that was begun was also ended. */
function ended(types) {
  let open = true;
  for (const type of types) {
    if (type === 'RUN_STARTED') open = true;
    else if (TERMINAL.has(type)) open = false;
  }
  return !open;
}

const has = (messages, words) => words.every((word) => JSON.stringify(messages).includes(JSON.stringify(word).slice(1, -1)));

async function repair(input) {
  const { code, stdout, stderr } = await execute(path.join(target, 'debug', 'banister'), ['repair', '-'], { input });
  assert.equal(code, 0, `banister repair: exit ${code}\n${stderr}`);
  const events = stdout.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
  return { events, stderr };
}

/** A type that is almost right is made right, so that an event which clients drop does something. */
const MISSPELT = /^shape\/unknown type (text_message_start|TextMessageStart) /;

/** All streams of the corpus that JSON can hold, repaired, go to the client; what it took before comes out as it was. */
async function corpus(failures) {
  const all = streams().filter(({ gap }) => !gap);
  const { code, stdout, stderr } = await execute(path.join(target, 'debug', 'xtask'), ['agui', 'repair'], { input: all.map(lineOf).join('') });
  assert.equal(code, 0, `xtask agui repair: exit ${code}\n${stderr.slice(0, 2_000)}`);
  const repaired = stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(repaired.length, all.length, 'one line per stream');
  let mended = 0;
  for (const [n, stream] of all.entries()) {
    const { events, changes } = repaired[n];
    const before = stream.wire ? { verdict: 'reject' } : await direct(stream);
    const after = await direct({ input: stream.input, events });
    if (before.verdict === 'reject') mended += 1;
    if (after.verdict !== 'resolve') failures.push(`${stream.name}: ${after.message}\n${lines(events)}`);
    else if (events.length > 0 && !ended(events.map(({ type }) => type))) failures.push(`${stream.name}: no end`);
    else if (before.verdict === 'resolve' && !MISSPELT.test(stream.name)) {
      const [then, now] = [before, after].map(({ messages, state }) => [stream.minted ? messages.map(({ id, ...rest }) => rest) : messages, state]);
      if (!isDeepStrictEqual(now, then)) failures.push(`${stream.name}: ${changes} changes made ${JSON.stringify(then)} into ${JSON.stringify(now)}`);
    }
  }
  tell(`${all.length} streams of the corpus run clean when repaired, ${mended} of which did not before`);
}

const server = await wire();
const faults = new Map();
const failures = [];
try {
  for (const { fault, name, events, words, newline } of CASES) {
    const broken = frames(events, newline);
    const before = await server.pieces(broken);
    const fine = before.verdict === 'resolve' && ended(before.types) && has(before.messages, words);
    assert.ok(!fine, `${fault}, ${name}: the client takes it as it is`);
    faults.set(fault, (faults.get(fault) ?? 0) + 1);
    if (process.argv[2] === '--broken') {
      console.log(`${fault}, ${name}: ${before.verdict} ${before.message ?? JSON.stringify(before.messages)}`.replace(/\s+/g, ' '));
      continue;
    }
    const inputs = [['SSE', broken.join('')], ...(newline === '\n' ? [['NDJSON', lines(events)]] : [])];
    for (const [format, input] of inputs) {
      try {
        const repaired = await repair(input);
        const after = await server.pieces(frames(repaired.events, '\n'));
        assert.equal(after.verdict, 'resolve', `${after.message}\n${lines(repaired.events)}`);
        assert.ok(ended(after.types), `no end: ${after.types.join(' ')}`);
        assert.ok(has(after.messages, words), `lost words: ${JSON.stringify(after.messages)}`);
        // Framing is no change to an event; everything else has to be told.
        if (newline === '\n') assert.notEqual(repaired.stderr.trim(), '', 'what was changed is not told');
      } catch (error) {
        failures.push(`${fault}, ${name}, ${format}: ${error.message}`);
      }
    }
  }
  for (const [fault, count] of faults) assert.ok(count >= 2, `${fault} is tried ${count} times`);
  tell(`${CASES.length} broken streams of ${faults.size} kinds, each refused, without an end, or short of words as it is`);

  if (process.argv[2] !== '--broken') {
    for (const [name, events] of SOUND) {
      try {
        assert.deepEqual((await repair(lines(events))).events, events);
      } catch (error) {
        failures.push(`sound, ${name}: ${error.message}`);
      }
    }
    tell(`${SOUND.length} sound streams, which have to pass unchanged`);
    await corpus(failures);
  }
} finally {
  await server.close();
}
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exitCode = 1;
else if (process.argv[2] !== '--broken') console.log('repair: all of it holds');
