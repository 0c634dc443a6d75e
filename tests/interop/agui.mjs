// What the official AG-UI client makes of our sessions, and what our own checker makes of our streams.
//
// A scripted Claude Code works through the installed hook; `HttpAgent` attaches late, then live, then to a session in
// which something was refused.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { require, start, step, until, within } from '../lib/gateway.mjs';

const { HttpAgent } = require('@ag-ui/client');
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
