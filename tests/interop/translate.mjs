// What the official AG-UI client makes of what `banister translate` writes.
//
// A coding agent's session becomes a conversation; every stream of the three protocols runs in the client as it runs in
// our own reducer; random AG-UI streams come back from AEP; and an interrupt that was answered in AAEP resumes the very
// agent that asked.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { require, root, step, target } from '../lib/gateway.mjs';
import { direct } from './agui/oracle.mjs';
import { answered } from './translate/answered.mjs';
import { follow, isWhole, lines, parsed, replay, translate } from './translate/peers.mjs';
import { carried, stream } from './translate/roundtrip.mjs';

// Comes with the browser's driver: the examples are YAML, and Node reads none.
const { yaml } = require('playwright-core/lib/utilsBundle');

const RANDOM = 250;
const conformance = path.join(root, 'conformance');

mkdirSync(path.join(target, 'tests'), { recursive: true });
const folder = mkdtempSync(path.join(target, 'tests', 'translate-'));
const fresh = () => mkdtempSync(path.join(folder, 'sessions-'));

/** The sessions that `--out` wrote, in the order in which they began. */
function sessions(directory) {
  const names = readdirSync(directory).sort();
  return names.map((name) => parsed(readFileSync(path.join(directory, name), 'utf8')));
}

/** Does this for all of them, two at a time: as many as the smallest machine has cores. */
async function two(things, task) {
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < things.length) {
      const n = next;
      next += 1;
      results[n] = await task(things[n]);
    }
  };
  await Promise.all([worker(), worker()]);
  return results;
}

// ── A coding agent's session ───────────────────────────────────────────────────────────────────────────────────────

/** A message without the ids that only have to be there, and without our own facts. */
function shape({ id, metadata, ...message }) {
  assert.ok(id, 'a message has an id');
  if (message.toolCalls) {
    message.toolCalls = message.toolCalls.map(({ id: call, function: { name, arguments: words } }) => [call, name, JSON.parse(words)]);
  }
  return message;
}

const ran = (id, name, input, content) => [
  { role: 'assistant', toolCalls: [[id, name, input]] },
  { role: 'tool', toolCallId: id, content: typeof content === 'string' ? content : JSON.stringify(content) },
];

/** What anybody should read who opens the session: each hook's own words, in the order in which they were said. */
function conversation() {
  const hooks = parsed(readFileSync(path.join(conformance, 'hooks/claude-code-session.jsonl'), 'utf8'));
  const messages = [];
  const called = new Map();
  for (const hook of hooks) {
    const { tool_use_id: id, tool_name: name, tool_input: input } = hook;
    if (id !== undefined && !called.has(id)) called.set(id, input);
    const does = (content) => messages.push(...ran(id, name, called.get(id), content));
    if (hook.hook_event_name === 'UserPromptSubmit') messages.push({ role: 'user', content: hook.prompt });
    if (hook.hook_event_name === 'PostToolUse') does(hook.tool_response);
    if (hook.hook_event_name === 'PostToolUseFailure') does(`Failed: ${hook.error}`);
    if (hook.hook_event_name === 'PermissionDenied') does(`Refused: ${hook.reason}`);
    if (hook.hook_event_name === 'Stop') messages.push({ role: 'assistant', content: hook.last_assistant_message });
  }
  assert.deepEqual([messages.length, called.size], [22, 9], 'the recording is the one these numbers are of');
  return messages;
}

async function codingAgent() {
  const recording = path.join(conformance, 'hooks/claude-code-session.jsonl');
  const { events } = await translate(['--from', 'hook:claude-code', '--to', 'agui', recording]);
  const { failure, warnings, told, agent, messages } = await replay(events);
  assert.equal(failure, null);
  assert.deepEqual(warnings, []);
  assert.equal(told.length, 3, 'a request, its question answered, another request');
  assert.deepEqual(agent.pendingInterrupts, [], 'nothing waits');

  const said = messages.filter(({ role }) => role !== 'activity').map(shape);
  assert.deepEqual(said, conversation());

  // The question ends a run, and its answer begins the next.
  const question = 'Which time should the table show?';
  const { outcome } = told[0].run.at(-1);
  assert.deepEqual(outcome.interrupts.map(({ message, toolCallId }) => [message, toolCallId]), [[question, 'toolu_01TideD']]);
  assert.deepEqual(told[1].run[0].input.resume, [{ interruptId: outcome.interrupts[0].id, status: 'resolved', payload: 'Local time' }]);

  const cards = messages.filter(({ role }) => role === 'activity').map(({ activityType, content }) => [activityType, content.status ?? content.text]);
  assert.deepEqual(cards, [['banister.ask', 'accepted'], ['banister.notice', 'Claude needs your permission to use Bash']]);
  const open = events.filter(({ type }) => type === 'SUBAGENT_STARTED').length - events.filter(({ type }) => /^SUBAGENT_(FINISHED|ERROR)$/.test(type)).length;
  assert.equal(open, 0, 'every helper is done');
  step(`${said.length} messages of ${called(said)} tool calls, in ${told.length} runs`);
}

const called = (messages) => messages.flatMap(({ toolCalls = [] }) => toolCalls).length;

// ── Every stream there is ──────────────────────────────────────────────────────────────────────────────────────────

/** What says nothing that AG-UI could: AG-UI has no time outside a run, and these have no run, or are no events. */
const NOTHING = new Set([
  'aaep-a-message-of-a-test-suite.jsonl',
  'aaep-a-reply-of-an-extension.jsonl',
  'aep session.start',
  'aep session.end',
  'aep agent.error outside any turn',
]);

function recordings() {
  const streams = readdirSync(path.join(conformance, 'streams')).sort().map((name) => ({
    name,
    from: name.split('-')[0],
    text: readFileSync(path.join(conformance, 'streams', name), 'utf8'),
  }));
  const examples = ['aaep', 'aep', 'agui'].flatMap((from) =>
    yaml.parse(readFileSync(path.join(conformance, 'translation', `${from}.yaml`), 'utf8')).map(({ type, about, stream: events }) => ({
      name: [from, type, about].filter(Boolean).join(' '),
      from,
      text: lines(events),
    })),
  );
  return [...streams, ...examples];
}

/** The interrupts that an AG-UI recording leaves without an answer. */
function waiting({ from, text }) {
  if (from !== 'agui') return [];
  const last = parsed(text).filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_STARTED').at(-1);
  return (last?.outcome?.interrupts ?? []).map(({ id }) => id);
}

async function everyStream() {
  const all = recordings();
  const translated = await two(all, async (recording) => {
    const directory = fresh();
    const nothing = NOTHING.has(recording.name);
    const { report } = await translate(['--from', recording.from, '--to', 'agui', '--out', directory], recording.text, nothing ? 1 : 0);
    assert.equal(report.unreadable_count, 0, `${recording.name}: ${JSON.stringify(report.unreadable)}`);
    return sessions(directory);
  });
  const failures = [];
  const followed = [];
  let count = 0;
  for (const [n, recording] of all.entries()) {
    for (const [k, events] of translated[n].entries()) {
      const name = `${recording.name}, session ${k + 1}`;
      count += 1;
      const { failure, warnings, told, agent, messages, state } = await replay(events);
      if (failure) {
        failures.push(`${name}: ${failure}`);
        continue;
      }
      // A stream that goes on with an earlier one patches a state that only its own client has.
      const goesOn = (warning) => name.includes('of-an-earlier-stream') && warning.startsWith('Failed to apply state patch');
      for (const warning of warnings.filter((warning) => !goesOn(warning))) failures.push(`${name}: ${warning}`);
      for (const { run } of told) if (!isWhole(run)) failures.push(`${name}: a run without a beginning or an end`);
      const pending = agent.pendingInterrupts.map(({ id }) => id);
      if (!isDeepStrictEqual(pending, waiting(recording))) failures.push(`${name}: ${JSON.stringify(pending)} wait`);
      for (const [at, { before, run, after }] of told.entries()) followed.push({ name: `${name}, run ${at + 1}`, ...before, events: run, after });
      followed.push({ name: `${name}, as one`, events, after: { messages, state } });
    }
  }
  const ours = await follow(followed.map(({ after, ...rest }) => rest));
  for (const [n, { verdict, message, messages, state }] of ours.entries()) {
    const { name, after } = followed[n];
    if (verdict !== 'resolve') failures.push(`${name}: the client takes it, we do not: ${message}`);
    else if (!isDeepStrictEqual({ messages, state }, after)) failures.push(`${name}: the client has ${JSON.stringify(after)}, we have ${JSON.stringify({ messages, state })}`);
  }
  assert.deepEqual(failures, []);
  step(`${all.length} recordings, ${count} sessions, ${followed.length - count} runs: the client has what our reducer has`);
}

// ── There and back ─────────────────────────────────────────────────────────────────────────────────────────────────

async function thereAndBack() {
  const all = Array.from({ length: RANDOM }, (_, n) => stream(n));
  const [there, back] = [fresh(), fresh()];
  await translate(['--from', 'agui', '--to', 'aep', '--out', there], all.flatMap(({ events }) => events));
  const file = path.join(folder, 'random.aep.jsonl');
  writeFileSync(file, lines(sessions(there).flat()));
  await translate(['--from', 'aep', '--to', 'agui', '--out', back, file]);
  const returned = sessions(back);
  assert.equal(returned.length, all.length, 'one session per thread');
  const failures = [];
  let things = 0;
  for (const [n, { input, events }] of all.entries()) {
    const before = await direct({ input, events });
    const after = await direct({ input, events: returned[n] });
    assert.equal(before.verdict, 'resolve', `random ${n}: ${before.message}`);
    if (after.verdict !== 'resolve') {
      failures.push(`random ${n}: ${after.message}`);
      continue;
    }
    const [was, is] = [before, after].map(({ messages }) => carried(events, messages));
    things += was.size;
    for (const name of new Set([...was.keys(), ...is.keys()])) {
      const [one, other] = [was.get(name), is.get(name)];
      // A call that goes on after it was over is another call elsewhere: only what was asked for first comes back.
      const of = events.filter(({ toolCallId }) => name === `call ${toolCallId}`).map(({ type }) => type);
      const over = of.findIndex((type) => type === 'TOOL_CALL_END' || type === 'TOOL_CALL_RESULT');
      const goesOn = over >= 0 && one?.[0] === other?.[0] && of.slice(over).some((type) => /_(ARGS|CHUNK|START)$/.test(type));
      if (!isDeepStrictEqual(one, other) && !goesOn) failures.push(`random ${n}: ${name} was ${JSON.stringify(one)}, came back as ${JSON.stringify(other)}`);
    }
    if (!isDeepStrictEqual(after.state, before.state)) {
      failures.push(`random ${n}: the state was ${JSON.stringify(before.state)}, came back as ${JSON.stringify(after.state)}`);
    }
  }
  assert.deepEqual(failures, []);
  assert.ok(things > 600, `only ${things} things are compared`);
  step(`${RANDOM} random streams, ${things} texts, calls and results, came back from AEP`);
}

const PARTS = { codingAgent, everyStream, thereAndBack, answered: () => answered(folder) };
const chosen = process.argv.slice(2);
try {
  for (const [name, part] of Object.entries(PARTS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    try {
      await part();
    } catch (error) {
      console.error(`${name}: ${error.stack}`);
      process.exitCode = 1;
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (!process.exitCode) console.log('translate: all of it holds');
