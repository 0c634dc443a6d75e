// What the official AG-UI client makes of our sessions, what our own checker makes of our streams, and what our client
// makes of an agent that uses the official encoder.
//
// A scripted Claude Code works through the installed hook; `HttpAgent` attaches late, then live, then to a session in
// which something was refused.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

import { require, run, start, step, target, until, within } from '../lib/gateway.mjs';

const { HttpAgent } = require('@ag-ui/client');
const { EventEncoder } = require('@ag-ui/encoder');
const proto = require('@ag-ui/proto');
const example = path.join(target, 'debug', 'examples', 'agui');
const gateway = await start('interop');

/** Sends one hook's payload and insists that the hook is content. */
async function tell(event, session, fields) {
  const { code, stderr } = await gateway.hook(event, session, fields);
  assert.equal(code, 0, `${event}: exit ${code}: ${stderr}`);
}

async function ask(session, call) {
  const { code, stdout, stderr } = await gateway.hook('PreToolUse', session, call);
  assert.equal(code, 0, `PreToolUse: exit ${code}: ${stderr}`);
  return JSON.parse(stdout).hookSpecificOutput;
}

/** Begins a turn in which a file is to be read; what remains is the tool's end and the last words. */
async function begin(session, call) {
  await tell('SessionStart', session, { source: 'startup', model: 'scripted' });
  await tell('UserPromptSubmit', session, { prompt: `What does ${call.tool_input.file_path} do?` });
  assert.equal((await ask(session, call)).permissionDecision, 'allow');
}

async function end(session, call) {
  await tell('PostToolUse', session, { ...call, tool_response: { content: 'fn retry() {}' }, duration_ms: 3 });
  await tell('Stop', session, { last_assistant_message: 'It tries again until the deadline.', stop_hook_active: false });
}

const reading = (id) => ({
  tool_name: 'Read',
  tool_use_id: id,
  tool_input: { file_path: '/home/dev/orbit/src/retry.rs' },
});

/** The gateway's id of the session that came last. */
async function newest(known) {
  const { sessions } = await gateway.get('/api/sessions');
  const fresh = sessions.filter(({ id }) => !known.has(id));
  assert.equal(fresh.length, 1, 'one session is new');
  known.add(fresh[0].id);
  return fresh[0].id;
}

function attach(session) {
  return new HttpAgent({ url: `${gateway.url}/agui/sessions/${session}`, headers: gateway.authorized });
}

/** The messages a client has that attaches when all is over. */
async function late(session) {
  const agent = attach(session);
  await agent.runAgent();
  return agent.messages;
}

/** The messages without the ids that only have to be there. */
function shape(messages) {
  return messages.map(({ id, ...rest }) => {
    assert.ok(id, 'a message has an id');
    if (rest.toolCalls) {
      rest.toolCalls = rest.toolCalls.map((call) => ({
        ...call,
        function: { ...call.function, arguments: JSON.parse(call.function.arguments) },
      }));
    }
    return rest;
  });
}

/** The bytes of one run of a session, in the form that is asked for. */
async function attached(session, accept) {
  const response = await fetch(`${gateway.url}/agui/sessions/${session}`, {
    method: 'POST',
    headers: { ...gateway.authorized, accept, 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 't', runId: 'r', messages: [] }),
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('vary'), 'accept');
  return { type: response.headers.get('content-type'), bytes: Buffer.from(await response.arrayBuffer()) };
}

/** The events of a body that is text. */
function fromText(bytes) {
  return bytes.toString().split('\n\n').filter(Boolean).map((frame) => JSON.parse(frame.replace(/^data: /, '')));
}

/** The events of a body that is not, as the official package reads them. */
function fromFrames(bytes) {
  const events = [];
  while (bytes.length > 0) {
    const end = 4 + bytes.readUInt32BE(0);
    events.push(JSON.parse(JSON.stringify(proto.decode(bytes.subarray(4, end)))));
    bytes = bytes.subarray(end);
  }
  return events;
}

const begins = { type: 'RUN_STARTED', threadId: 'thread', runId: 'run', protocolVersion: '1.0' };
const ends = { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run' };
const talk = [
  { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'Grüße aus 東' },
  { type: 'TEXT_MESSAGE_CHUNK', delta: '京 👩‍🚀' },
  { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'look', parentMessageId: 'm' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"at":' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '"sky"}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c' },
  { type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 'c', content: [{ type: 'text', text: 'stars' }] },
  { type: 'STATE_SNAPSHOT', snapshot: { seen: [1], of: null } },
  { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/seen/-', value: { deep: true } }] },
  { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'plan', content: { steps: 2 } },
  { type: 'REASONING_MESSAGE_CHUNK', messageId: 't', delta: 'hm' },
];

/** What an agent sends, and how our client has to call that. */
const plays = {
  talk: { events: [begins, ...talk, ends], ending: 'finished' },
  waits: {
    events: [begins, { ...ends, outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'confirmation' }] } }],
    ending: 'interrupted',
  },
  stops: { events: [begins, ...talk, { ...ends, outcome: { type: 'cancelled' } }], ending: 'cancelled' },
  fails: { events: [begins, talk[0], { type: 'RUN_ERROR', message: 'no luck', code: 'c' }], ending: 'failed' },
  // The official client calls this a success.
  vanishes: { events: [begins, ...talk], ending: 'truncated', error: /ended before the run did/ },
  breaks: {
    events: [begins, ...talk, { type: 'TEXT_MESSAGE_END', messageId: 'ghost' }, ends],
    ending: 'violated',
    error: /AGUI-SEQ-11/,
    rejects: true,
  },
};

/** An agent that plays, written with the official encoder: one event every few milliseconds. */
function agentServer() {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const encoder = new EventEncoder({ accept: request.headers.accept });
    response.writeHead(200, { 'content-type': encoder.getContentType() });
    for (const event of plays[request.url.slice(1)].events) {
      response.write(encoder.encodeBinary(event));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    response.end();
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** Has our client run the agents, in both forms, and compares what it has with what the official client has. */
async function ourClient() {
  const server = await agentServer();
  const logged = console.error;
  // The official client logs what it rejects.
  console.error = () => {};
  try {
    for (const [name, { events, ending, error, rejects }] of Object.entries(plays)) {
      const url = `http://127.0.0.1:${server.address().port}/${name}`;
      const official = new HttpAgent({ url, threadId: 'thread' });
      await official.runAgent({ runId: 'run' }).then(
        () => assert.ok(!rejects, name),
        () => assert.ok(rejects, name),
      );
      for (const words of [[url], ['--binary', url]]) {
        const { code, stdout, stderr } = await run(example, words);
        assert.equal(code, 0, `${words}: exit ${code}: ${stderr}`);
        const ours = JSON.parse(stdout);
        assert.equal(ours.ending, ending, `${words}`);
        if (error) assert.match(ours.error, error);
        else assert.equal(ours.error, null);
        if (!rejects) assert.equal(ours.events.length, events.length);
        assert.deepEqual(ours.messages, official.messages, `${words}`);
        assert.deepEqual(ours.state, official.state, `${words}`);
      }
    }
  } finally {
    console.error = logged;
    server.close();
  }
}

/** Follows a stream for a while, keeps what came and has it checked. */
async function check(protocol, where) {
  const heard = new AbortController();
  const response = await fetch(gateway.url + where, { headers: gateway.authorized, signal: heard.signal });
  assert.equal(response.status, 200);
  const pieces = [];
  setTimeout(() => heard.abort(), 1_000);
  try {
    for await (const piece of response.body) pieces.push(piece);
  } catch (error) {
    assert.equal(error.name, 'AbortError');
  }
  const file = path.join(gateway.dir, `${protocol}.sse`);
  writeFileSync(file, Buffer.concat(pieces));
  const { code, stdout, stderr } = await gateway.banister('check', '--protocol', protocol, file);
  assert.equal(code, 0, `banister check ${protocol}: exit ${code}\n${stdout}${stderr}`);
  step(`${protocol}: ${stderr.trim()}`);
}

let failed = true;
try {
  const known = new Set();

  step('a client that comes when all is over has the whole conversation');
  const call = reading('toolu_over');
  await begin('over', call);
  await end('over', call);
  const over = await newest(known);
  assert.deepEqual(shape(await late(over)), [
    { role: 'user', content: 'What does /home/dev/orbit/src/retry.rs do?' },
    {
      role: 'assistant',
      toolCalls: [
        { id: 'toolu_over', type: 'function', function: { name: 'Read', arguments: call.tool_input } },
      ],
    },
    { role: 'tool', toolCallId: 'toolu_over', content: '{"content":"fn retry() {}"}' },
    { role: 'assistant', content: 'It tries again until the deadline.' },
  ]);

  step('a client that comes while the turn is open ends with the same messages as one that comes late');
  await begin('live', reading('toolu_live'));
  const live = await newest(known);
  const agent = attach(live);
  let begun = false;
  const done = agent.runAgent({}, { onRunStartedEvent: () => void (begun = true) });
  await until('the run to begin', () => begun);
  await until('the messages so far', () => agent.messages.length === 2);
  await end('live', reading('toolu_live'));
  await within('the run to end with the turn', done);
  assert.deepEqual(agent.messages, await late(live));
  assert.deepEqual(agent.messages.map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant']);

  step('a client that comes back to the same thread is not told anything twice');
  const before = structuredClone(agent.messages);
  await agent.runAgent();
  assert.deepEqual(agent.messages, before);

  step('a refused tool is a tool call whose result says why');
  await tell('UserPromptSubmit', 'refused', { prompt: 'Make some room.' });
  const wipe = { tool_name: 'Bash', tool_use_id: 'toolu_wipe', tool_input: { command: 'rm -rf /' } };
  const verdict = await ask('refused', wipe);
  assert.equal(verdict.permissionDecision, 'deny');
  await tell('Stop', 'refused', { last_assistant_message: 'I was not allowed to.', stop_hook_active: false });
  const refused = shape(await late(await newest(known)));
  assert.deepEqual(refused.map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant']);
  assert.deepEqual(refused[1].toolCalls, [
    { id: 'toolu_wipe', type: 'function', function: { name: 'Bash', arguments: { command: 'rm -rf /' } } },
  ]);
  assert.equal(refused[2].toolCallId, 'toolu_wipe');
  assert.match(refused[2].content, /refused/i);
  assert.match(refused[2].content, /delete/);
  assert.equal(refused[3].content, 'I was not allowed to.');

  step('both forms of a run say the same, to the official packages');
  const text = await attached(over, 'text/event-stream');
  const frames = await attached(over, proto.AGUI_MEDIA_TYPE);
  assert.deepEqual([text.type, frames.type], ['text/event-stream', proto.AGUI_MEDIA_TYPE]);
  assert.deepEqual(fromFrames(frames.bytes), fromText(text.bytes));
  assert.equal(fromText(text.bytes).at(-1).type, 'RUN_FINISHED');

  step('a run that asks for what is not a run input is refused with the rule and the place');
  const refusal = await fetch(`${gateway.url}/agui/sessions/${over}`, {
    method: 'POST',
    headers: gateway.authorized,
    body: '{"threadId":"t","runId":7,"messages":[]}',
  });
  assert.equal(refusal.status, 400);
  const { error: told } = await refusal.json();
  assert.deepEqual([told.code, told.rule, told.pointer], ['run-input', 'AGUI-EVT-06', '/runId']);

  step('our client has the messages and the state that the official client has, in both forms, and names every ending');
  await ourClient();

  step('our own checker finds no error in our own streams');
  await check('aaep', '/aaep/v1/events?from=start');
  await check('aep', '/aep/v0.1/events?from=start');

  failed = false;
  console.log('interop: all of it holds');
} catch (error) {
  console.error(error);
  console.error(`The gateway's files are in ${gateway.dir}; it said:\n${gateway.log()}`);
  process.exitCode = 1;
} finally {
  await gateway.stop({ keep: failed });
}
