// An AG-UI run that waits, heard and answered in AAEP: the answer, taken back, resumes the agent that asked.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { require, run as execute, step, target } from '../../lib/gateway.mjs';
import { agentServer, lines, translate } from './peers.mjs';

const { HttpAgent } = require('@ag-ui/client');

const yesOrNo = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] };
const oneOf = { type: 'string', oneOf: [{ const: 'eu', title: 'Europe' }, { const: 'us', title: 'America' }] };

const called = (id, name, input) => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(input) },
  { type: 'TOOL_CALL_END', toolCallId: id },
];
const said = (id, words) => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: words },
  { type: 'TEXT_MESSAGE_END', messageId: id },
];

/** What an agent of each kind does, what it asks, and what it makes of the answer. */
const AGENTS = {
  'a call that needs a yes': {
    before: called('call-1', 'delete_branch', { branch: 'old' }),
    interrupts: [{ id: 'int-1', reason: 'tool_call', message: 'Delete the branch old?', toolCallId: 'call-1', responseSchema: yesOrNo }],
    after([{ status, payload }]) {
      if (status !== 'resolved' || payload?.approved !== true) return said('m-2', `Kept: ${payload?.message ?? 'no reason'}.`);
      const input = payload.editedArgs ?? { branch: 'old' };
      return [{ type: 'TOOL_CALL_RESULT', messageId: 'result-1', toolCallId: 'call-1', content: `deleted ${input.branch}` }, ...said('m-2', 'Done.')];
    },
  },
  'a yes to no call': {
    before: said('m-1', 'Everything is ready.'),
    interrupts: [{ id: 'int-2', reason: 'confirmation', message: 'Publish the notes?', responseSchema: yesOrNo }],
    after: ([{ status, payload }]) => said('m-2', status === 'resolved' && payload?.approved === true ? 'Published.' : 'Not published.'),
  },
  'a question with choices': {
    before: said('m-1', 'I need to know one thing.'),
    interrupts: [{ id: 'int-3', reason: 'input_required', message: 'Which region?', responseSchema: oneOf }],
    after: ([{ status, payload }]) => said('m-2', `${status}: ${JSON.stringify(payload)}`),
  },
  'two calls at once': {
    before: [...called('call-1', 'delete_branch', { branch: 'old' }), ...called('call-2', 'delete_branch', { branch: 'new' })],
    interrupts: ['1', '2'].map((n) => ({ id: `int-${n}`, reason: 'tool_call', message: `Delete number ${n}?`, toolCallId: `call-${n}`, responseSchema: yesOrNo })),
    after: (resume) => said('m-2', resume.map(({ interruptId, payload }) => `${interruptId} ${payload?.approved}`).sort().join(', ')),
  },
};

const yes = { type: 'confirmation.reply', decision: 'accept' };
const no = { type: 'confirmation.reply', decision: 'reject' };

/** Which agent, what a person answers to each question in turn, and what the conversation ends with. */
const CASES = [
  ['a call that needs a yes', [yes], ['deleted old', 'Done.']],
  ['a call that needs a yes', [no], ['Kept: no reason.']],
  ['a call that needs a yes', [{ ...no, decision_rationale: 'it is still used' }], ['Kept: it is still used.']],
  ['a call that needs a yes', [{ ...yes, modified_action: { branch: 'older' } }], ['deleted older', 'Done.']],
  ['a yes to no call', [yes], ['Published.']],
  ['a yes to no call', [no], ['Not published.']],
  ['a question with choices', [{ type: 'clarification.reply', response: 'us' }], ['resolved: "us"']],
  ['two calls at once', [yes, no], ['int-1 true, int-2 false']],
];

/** The agents, as a server that minds what it is asked: a run that resumes nothing asks, one that resumes goes on. */
function answer({ threadId, runId, resume }, name) {
  const { before, interrupts, after } = AGENTS[decodeURIComponent(name)];
  const begun = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' };
  const done = { type: 'RUN_FINISHED', threadId, runId };
  if (resume === undefined) return [begun, ...before, { ...done, outcome: { type: 'interrupt', interrupts } }];
  assert.deepEqual(resume.map(({ interruptId }) => interruptId).sort(), interrupts.map(({ id }) => id).sort());
  return [begun, ...after(resume), done];
}

const WAITS = /^aaep:agent\.awaiting\.(confirmation|clarification)$/;

/** What a person hears while the agent waits: the recording ends there, and so the session; a live one would not. */
function live(events) {
  const asks = events.filter(({ type }) => WAITS.test(type));
  return [events.slice(0, events.findLastIndex(({ type }) => WAITS.test(type)) + 1), asks];
}

async function check(file) {
  const { code, stdout, stderr } = await execute(path.join(target, 'debug', 'banister'), ['check', '--protocol', 'aaep', file]);
  assert.equal(code, 0, `banister check: ${stdout}${stderr}`);
}

/** Has an agent ask. Gives the client, and the AAEP stream of what the agent sent, as it came over the wire. */
async function asked(server, folder, name, n) {
  const recorded = path.join(folder, `${n}.sse`);
  const agent = new HttpAgent({
    url: `${server.url}/${encodeURIComponent(name)}`,
    threadId: `thread-${n}`,
    async fetch(url, init) {
      const response = await fetch(url, init);
      const body = Buffer.from(await response.arrayBuffer());
      writeFileSync(recorded, body);
      return new Response(body, { status: response.status, headers: response.headers });
    },
  });
  await agent.runAgent({ runId: `run-${n}` });
  assert.deepEqual(agent.pendingInterrupts.map(({ id }) => id), AGENTS[name].interrupts.map(({ id }) => id));
  return { agent, heard: (await translate(['--from', 'agui', '--to', 'aaep', recorded])).events };
}

/** Nobody answers before the recording ends: taken back as it is, nobody has. */
async function unanswered(server, folder, name) {
  const { heard } = await asked(server, folder, name, 'unanswered');
  const { events } = await translate(['--from', 'aaep', '--to', 'agui'], heard);
  const answers = events.flatMap(({ input }) => input?.resume ?? []).filter(({ status }) => status === 'resolved');
  assert.deepEqual(answers, [], 'nobody answered');
}

async function one(server, folder, [name, answers, ending], n) {
  const { agent, heard } = await asked(server, folder, name, n);

  // A person hears it in AAEP and answers there.
  const [events, asks] = live(heard);
  const questions = AGENTS[name].interrupts.map(({ message }) => message);
  assert.equal(asks.length, questions.length, 'every interrupt is asked');
  for (const [k, ask] of asks.entries()) assert.ok(JSON.stringify(ask).includes(questions[k]), `${questions[k]} is asked`);
  const replies = answers.map((words, k) => ({
    ...words,
    reply_token: asks[k].reply_token,
    subscription_id: 'sub_peer',
    timestamp: asks[k].timestamp,
    decided_by: 'user:ada',
  }));
  const files = { stream: events, reply: replies, both: [...events, ...replies] };
  for (const [file, messages] of Object.entries(files)) writeFileSync(path.join(folder, `${n}.${file}.jsonl`), lines(messages));
  const [stream, reply, both] = Object.keys(files).map((file) => path.join(folder, `${n}.${file}.jsonl`));
  await check(both);

  // The answer, taken back, is what the agent waits for.
  const { events: back } = await translate(['--from', 'aaep', '--to', 'agui', stream, reply]);
  const waits = back.find(({ type, outcome }) => type === 'RUN_FINISHED' && outcome?.type === 'interrupt');
  assert.deepEqual([waits.threadId, waits.runId], [`thread-${n}`, `run-${n}`], 'the same run waits');
  assert.deepEqual(
    waits.outcome.interrupts.map(({ metadata, ...rest }) => rest),
    AGENTS[name].interrupts,
    'for the same',
  );
  const { input } = back.findLast(({ type }) => type === 'RUN_STARTED');
  assert.equal(input.threadId, `thread-${n}`);
  await agent.runAgent({ resume: input.resume });
  assert.deepEqual(agent.pendingInterrupts, [], 'nothing waits any more');
  assert.deepEqual(agent.messages.slice(-ending.length).map(({ content }) => content), ending);
}

export async function answered(folder) {
  const server = await agentServer(answer);
  const failures = [];
  try {
    for (const [n, row] of CASES.entries()) {
      await one(server, folder, row, n).catch((error) => failures.push(`${row[0]}, ${JSON.stringify(row[1])}: ${error.message}`));
    }
    for (const name of Object.keys(AGENTS)) {
      await unanswered(server, folder, name).catch((error) => failures.push(`${name}, not answered: ${error.message}`));
    }
  } finally {
    await server.close();
  }
  assert.equal(failures.length, 0, failures.join('\n'));
  step(`${CASES.length} interrupts, answered in AAEP, resumed the agents that asked`);
}
