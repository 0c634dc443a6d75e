// Makes a data directory with everything in it that a later version has to open, verify, migrate and resume.
//
//   node tests/data/make.mjs BANISTER DIRECTORY
//
// BANISTER is the binary of the version whose files these become, DIRECTORY must not exist. `data` in it is the data
// directory as the gateway left it, `config.toml` its configuration, `checkpoint.jsonl` what was signed, and
// `noted.json` what those who listened had heard, with the ids that they would resume from. Keys, times and the
// journal's epoch are drawn anew each time; everything else is the same. Takes about two minutes: one turn has to be
// silent for a minute before it is ended.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { spawn } from 'node:child_process';

import { root, start, step, until, within } from '../lib/gateway.mjs';

const [banister, directory] = process.argv.slice(2).map((word) => path.resolve(word));
assert.ok(directory && !existsSync(directory), 'use: node tests/data/make.mjs BANISTER DIRECTORY, which must not exist');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const lines = (file) => readFileSync(path.join(root, 'conformance', file), 'utf8').trimEnd().split('\n');
// Deadlines count from an event's own time, so that of events that ask is today's.
const today = (event) => event.replace(/"timestamp":"[^"]*"/, `"timestamp":"${new Date().toISOString()}"`);
// Of the shape of a real one, and nobody's.
const SECRET = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;

const agent = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const { threadId, runId } = JSON.parse(body);
  const events = [
    { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' },
    { type: 'STATE_SNAPSHOT', snapshot: { seen: [] } },
    { type: 'TEXT_MESSAGE_START', messageId: 'up-1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'up-1', delta: 'Ebb tide at ' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'up-1', delta: 'four o’clock.' },
    // Nobody began this one: it is repaired on its way.
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'up-2', delta: 'Out of the blue.' },
    { type: 'RUN_FINISHED', threadId, runId },
  ];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
});
await new Promise((resolve) => agent.listen(0, '127.0.0.1', resolve));

const CONFIG = `# What the gateway was started with that made this directory.
[journal]
checkpoint_minutes = 600

[journal.capture_of]
codex = "redacted"
agui = "redacted"
weaver = "metadata"

[upstreams.tide]
url = "http://127.0.0.1:9/agent"
`;
const here = CONFIG.replace(/http:.*agent/, `http://127.0.0.1:${agent.address().port}/agent`);

let gateway = await start('data', { banister, config: `idle_minutes = 1\n${here}` });

async function send(method, where, { key = 'person', body, headers = {} } = {}) {
  const bearer = readFileSync(path.join(gateway.data, 'keys', `${key}.key`), 'utf8').trim();
  const response = await fetch(gateway.url + where, {
    method,
    body: typeof body === 'object' ? JSON.stringify(body) : body,
    headers: { authorization: `Bearer ${bearer}`, ...headers },
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${where}: ${response.status} ${text}`);
  return text;
}

const push = (where, events, headers) =>
  send('POST', where, { key: 'agent', body: events.join('\n'), headers: { 'content-type': 'application/x-ndjson', ...headers } });

async function command(...words) {
  const { code, stdout, stderr } = await gateway.banister(...words, '--data', gateway.data);
  assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
  return stdout;
}

const shell = (id, text) => ({ tool_name: 'Bash', tool_use_id: id, tool_input: { command: text, description: `Step ${id}` } });
const open = async () => JSON.parse(await send('GET', '/api/inbox')).asks;
const opened = (what, fits) => until(what, async () => (await open()).find(fits));

/** Has Claude Code ask, and answers. */
async function asked(session, id, text, ...answer) {
  const waits = gateway.hook('PreToolUse', session, shell(id, text));
  const { id: ask } = await opened(text, ({ action }) => action === id);
  await command('answer', ask, ...answer);
  return (await waits).stdout;
}

const aaep = (session, number, type, fields) =>
  JSON.stringify({
    '@context': 'https://aaep-protocol.org/context/v1', aaep_version: '1.0.0', type: `aaep:agent.${type}`,
    event_id: `evt_${session}n${number}`, session_id: `sess_${session}`, sequence_number: number,
    timestamp: new Date().toISOString(), producer: { agent_id: session },
    urgency: 'normal', localization_hints: { primary_language: 'en' }, ...fields,
  });
const aep = (session, number, type, fields) =>
  JSON.stringify({
    aep_version: '0.1', id: `evt_${session}${number}`, type, time: `2026-05-11T07:00:${String(number).padStart(2, '0')}.000Z`,
    agent: { slug: 'finch' }, session: { id: session }, ...fields,
  });

step('a turn that nobody ends');
await gateway.hook('UserPromptSubmit', 'silent', { prompt: 'Look for driftwood.' });
await until('the turn to be ended', async () => (await command('log', 'show', '--json')).includes('"idle"'), 150_000);
await gateway.stop({ keep: true });
gateway = await start('data', { banister, config: here, dir: gateway.dir });

step('a coding agent with hooks: allowed, refused, accepted, rejected, granted, expired');
await gateway.hook('SessionStart', 'orbit', { source: 'startup' });
await gateway.hook('UserPromptSubmit', 'orbit', { prompt: 'Publish the lighthouse tables. 灯台の表を公開して。' });
await gateway.hook('PreToolUse', 'orbit', shell('t1', 'git status'));
await gateway.hook('PostToolUse', 'orbit', { ...shell('t1', 'git status'), tool_response: 'clean' });
await gateway.hook('PreToolUse', 'orbit', shell('t2', 'rm -rf ~'));
assert.match(await asked('orbit', 't3', 'git push --force origin main', 'accept', '--message', 'Go ahead.'), /"allow"/);
await gateway.hook('PostToolUse', 'orbit', { ...shell('t3', 'git push --force origin main'), tool_response: 'pushed' });
assert.match(await asked('orbit', 't4', 'git push --force origin tables', 'reject', '--message', 'Not today.'), /"deny"/);
assert.match(await asked('orbit', 't5', 'git push origin tables', '--yes', '--remember', 'project'), /"allow"/);
const { stdout } = await gateway.hook('PreToolUse', 'orbit', shell('t6', 'git push origin tables'));
assert.match(stdout, /"allow"/, 'what was granted is not asked');
assert.match(await asked('orbit', 't7', 'npm publish', '--yes', '--remember', 'session'), /"allow"/);
const { grants } = JSON.parse(await command('grants', '--json'));
await command('grants', 'revoke', grants.find(({ scope }) => scope === 'session').id);
await send('POST', '/hooks/claude-code/PreToolUse', {
  key: 'agent', headers: { 'banister-deadline-ms': '3500', 'idempotency-key': 'expires' },
  body: { session_id: 'orbit', prompt_id: 'orbit-1', cwd: '/home/dev/orbit', hook_event_name: 'PreToolUse', ...shell('t8', 'git push -f') },
});
await gateway.hook('Stop', 'orbit', { last_assistant_message: 'Published the lighthouse tables.' });

step('credentials that are not kept');
await send('POST', '/hooks/codex/UserPromptSubmit', {
  key: 'agent', body: { session_id: 'quiet', hook_event_name: 'UserPromptSubmit', turn_id: 'q1', prompt: `Use ${SECRET} for the harbour.` },
});
const pieces = [`Token `, SECRET.slice(0, 9), SECRET.slice(9), ' is ', 'the harbour’s.\nDone.'];
const said = pieces.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'p1', delta }));
await push('/agui/threads/pieces/events', [
  { type: 'RUN_STARTED', threadId: 'pieces', runId: 'p', protocolVersion: '1.0' },
  { type: 'TEXT_MESSAGE_START', messageId: 'p1', role: 'assistant' },
  ...said,
  { type: 'TEXT_MESSAGE_END', messageId: 'p1' },
  { type: 'RUN_FINISHED', threadId: 'pieces', runId: 'p' },
].map((event) => JSON.stringify(event)), { 'idempotency-key': 'pieces' });
await push('/aaep/v1/events', [aaep('weaver', 1, 'session.started', { summary_normal: 'Weaving.', request_text: 'Weave a net.' })]);

step('pushed in three protocols, asked and answered');
const greenhouse = lines('aaep/session.jsonl').map(today);
await push('/aaep/v1/events', greenhouse.slice(0, 9));
await command('answer', (await opened('a question', ({ kind }) => kind === 'clarification')).id, '--choice', 'north');
await push('/aaep/v1/events', greenhouse.slice(9, 11));
const valve = await opened('the valve', ({ pushed, kind }) => pushed && kind === 'confirmation');
await command('answer', valve.id, 'accept');
await push('/aaep/v1/events', greenhouse.slice(11));
await push('/aep/v0.1/events', lines('aep/session.jsonl'));
await push('/agui/threads/thread-kiln/events', lines('agui/session.jsonl'), { 'idempotency-key': 'kiln' });

step('broken and refused');
await push('/aep/v0.1/events', [aep('crow', 1, 'session.start', {}), '{"aep_version": "0.1", "id": "evt_crow2"}', '{"aep_version":', aep('crow', 3, 'no.such.type', {})]);

step('an action that is asked about by a program, with more time');
const decided = send('POST', '/aep/v0.1/decide?deadline_ms=7200000', {
  key: 'agent', body: aep('decide', 1, 'action.requested', {
    tool: { type: 'native', name: 'Bash' }, action: { type: 'tool_call', id: 'act_1', input: { command: 'git push -f origin nest' } },
  }),
});
const first = await opened('the program’s ask', ({ action }) => action === 'act_1');
const { ask: second } = JSON.parse(await send('POST', `/api/asks/${first.id}/extend`, { body: { seconds: 600 } }));
await command('answer', second, 'accept');
assert.match(await decided, /"allow"/);

step('an agent behind the gateway');
const keyFile = (await command('token', 'issue', '--scope', 'watch,emit', '--name', 'front-end')).trim();
writeFileSync(path.join(gateway.data, 'keys', 'front.key'), keyFile);
await send('POST', '/agui/upstreams/tide', {
  key: 'front', headers: { accept: 'text/event-stream' },
  body: { threadId: 'tide-1', runId: 'r1', state: {}, tools: [], context: [], forwardedProps: {}, messages: [{ id: 'u1', role: 'user', content: 'When is ebb tide?' }] },
});
await command('token', 'revoke', 'front-end');

step('what is open when the gateway stops: a hook, a question, an interrupt, a handoff');
await push('/aaep/v1/events', [
  aaep('harbour', 1, 'session.started', { summary_normal: 'Counting boats.', request_text: 'Count the boats.' }),
  aaep('harbour', 2, 'state.changed', { from_state: 'idle', to_state: 'thinking', urgency: 'background' }),
  aaep('harbour', 3, 'awaiting.clarification', { urgency: 'critical', question: 'Do ferries count?', reply_token: 'rpl_ferries', timeout_seconds: 80000, accepted_response_kinds: ['freetext'] }),
]);
await push('/agui/threads/loft/events', [
  { type: 'RUN_STARTED', threadId: 'loft', runId: 'l1', protocolVersion: '1.0' },
  { type: 'RUN_FINISHED', threadId: 'loft', runId: 'l1', outcome: { type: 'interrupt', interrupts: [{ id: 'int-loft', reason: 'confirmation', message: 'Clear the loft?' }] } },
].map((event) => JSON.stringify(event)));
await push('/aaep/v1/events', [
  aaep('pilot', 1, 'session.started', { summary_normal: 'Steering.' }),
  aaep('pilot', 2, 'state.changed', { from_state: 'idle', to_state: 'thinking', urgency: 'background' }),
  aaep('pilot', 3, 'handoff.requested', { urgency: 'critical', reason: 'The fog is too thick.', target_kind: 'human' }),
]);
await gateway.hook('UserPromptSubmit', 'waits', { prompt: 'Ship it.' });
const hook = spawn(path.join(gateway.data, 'hook/banister-hook'), ['claude-code', 'PreToolUse'], { stdio: ['pipe', 'ignore', 'ignore'] });
hook.stdin.end(JSON.stringify({ session_id: 'waits', prompt_id: 'waits-1', cwd: '/home/dev/orbit', hook_event_name: 'PreToolUse', ...shell('w1', 'git push --force origin ship') }));
await opened('the hook that waits', ({ action }) => action === 'w1');

step('what those who listen have heard');
/** The frames of a stream until it has been quiet for a while: their ids, and of the events id and type. */
async function heard(where, headers = {}) {
  const gone = new AbortController();
  const response = await fetch(gateway.url + where, { headers: { ...gateway.authorized, ...headers }, signal: gone.signal });
  assert.ok(response.ok, where);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const piece = await Promise.race([reader.read(), sleep(1_500)]);
    if (!piece || piece.done) break;
    text += piece.value;
  }
  gone.abort();
  const frames = text.split('\n\n').filter((frame) => /^data: /m.test(frame));
  return frames.map((frame) => {
    const event = JSON.parse(/^data: (.*)$/m.exec(frame)[1]);
    return { cursor: /^id: (.*)$/m.exec(frame)[1], event: event.event_id ?? event.id, type: event.type ?? 'response' };
  });
}

const terms = { type: 'subscription.request', aaep_version: '1.0.0', subscriber_id: 'noted', capabilities: { max_events_per_second: 100, languages: ['en'], supports_confirmation_reply: true } };
const { subscription_id: subscription } = JSON.parse(await send('POST', '/aaep/v1/subscriptions', { body: terms }));
const { sessions } = JSON.parse(await send('GET', '/api/sessions'));
const orbit = JSON.parse((await command('log', 'show', '--json', '--limit', '100000')).split('\n').find((line) => line.includes('lighthouse tables'))).session;
const attached = await send('POST', `/agui/sessions/${orbit}`, { headers: { accept: 'text/event-stream' }, body: { threadId: 't', runId: 'r', messages: [] } });
const snapshot = attached.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6))).find(({ type }) => type === 'MESSAGES_SNAPSHOT');
const noted = {
  about: 'What the version that made `data` had told, and the ids it had given: see make.mjs.',
  made: new Date().toISOString(),
  layout: 4,
  sessions: sessions.map(({ id, records }) => ({ id, records })),
  open: (await open()).map(({ id, kind, action, question, subject }) => ({ id, kind, action, question, subject })),
  grants: JSON.parse(await command('grants', '--json')).grants.map(({ id, covers }) => ({ id, covers })),
  words: { found: ['lighthouse', 'litres', '灯台', 'driftwood', 'kiln', 'fog'], lost: [SECRET, 'net'] },
  streams: {
    aaep: await heard('/aaep/v1/events?from=start'),
    aep: await heard('/aep/v0.1/events?from=start'),
    subscribed: await heard(`/aaep/v1/events?subscription_id=${subscription}&from=start`),
  },
  attached: { session: orbit, messages: snapshot.messages.map(({ id, role }) => ({ id, role })) },
};
await gateway.stop({ keep: true });
hook.kill();

step('what came while there was no gateway');
await within('the hook', gateway.hook('UserPromptSubmit', 'spooled', { prompt: 'Mend the anchor.' }), 60_000);
await within('the hook', gateway.hook('PreToolUse', 'spooled', shell('s1', 'git push')), 60_000);
const spooled = readdirSync(path.join(gateway.data, 'spool'));
assert.equal(spooled.length, 2, spooled.join(' '));

step('signed, and copied');
mkdirSync(directory, { recursive: true });
await command('log', 'checkpoint', '--out', path.join(directory, 'checkpoint.jsonl'));
noted.key = (await command('log', 'checkpoint', '--key')).trim();
noted.records = Number(/^(\d+) records/m.exec((await gateway.banister('log', 'verify', '--data', gateway.data)).stdout)[1]);
const kept = ['journal.db', 'journal.key', 'digest.key', 'keys', 'spool'];
for (const name of kept) {
  cpSync(path.join(gateway.data, name), path.join(directory, 'data', name), {
    recursive: true,
    filter: (file) => !file.endsWith('front.key'),
  });
}
writeFileSync(path.join(directory, 'config.toml'), CONFIG);
writeFileSync(path.join(directory, 'noted.json'), `${JSON.stringify(noted, null, 1)}\n`);
agent.close();
agent.closeAllConnections();
console.log(`${directory}: ${noted.records} records, ${noted.open.length} open asks, ${spooled.length} spooled payloads`);
