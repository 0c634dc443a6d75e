// What the official AG-UI client has when it is cut off and comes back, answers, or talks to an agent that misbehaves:
// attached to a session, and through an upstream whose agent uses the official encoder or writes raw bytes.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';

import { require, start, step, until, within } from '../lib/gateway.mjs';

const { HttpAgent } = require('@ag-ui/client');
const { EventEncoder } = require('@ag-ui/encoder');
const full = process.argv[2] === 'full';
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A request that is aborted rejects a second time, where nobody can catch it.
process.on('unhandledRejection', () => {});

const user = { id: 'u1', role: 'user', content: 'What do you see?' };
const talk = [
  { type: 'STATE_SNAPSHOT', snapshot: { seen: [], of: null } },
  { type: 'ACTIVITY_SNAPSHOT', messageId: 'a1', activityType: 'plan', content: { done: 0 } },
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Grüße aus ' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '東京 👩‍🚀' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'look', parentMessageId: 'm1' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"at":' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '"sky"}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/seen/-', value: { deep: true } }] },
  { type: 'ACTIVITY_DELTA', messageId: 'a1', activityType: 'plan', patch: [{ op: 'replace', path: '/done', value: 1 }] },
  { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm2', delta: 'Half, ' },
  { type: 'TEXT_MESSAGE_CHUNK', delta: 'and half.' },
  { type: 'TOOL_CALL_RESULT', messageId: 'x1', toolCallId: 'c1', content: 'stars' },
  { type: 'REASONING_MESSAGE_START', messageId: 't1', role: 'reasoning' },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 't1', delta: 'hm' },
  { type: 'REASONING_MESSAGE_END', messageId: 't1' },
];

/** The agent: what it does is the last part of its path, where it pauses is up to the test. */
const requests = [];
const gates = new Map();
const pause = (thread, at) => {
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  gates.set(`${thread} ${at}`, gate);
  return open;
};

const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const input = JSON.parse(body);
  requests.push(input);
  const { threadId, runId } = input;
  const begins = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' };
  const ends = { type: 'RUN_FINISHED', threadId, runId };
  const encoder = new EventEncoder({ accept: request.headers.accept });
  response.writeHead(200, { 'content-type': encoder.getContentType() });
  const send = async (events) => {
    for (const [at, event] of events.entries()) {
      await gates.get(`${threadId} ${at}`);
      response.write(encoder.encodeBinary(event));
      await sleep(2);
    }
  };
  switch (request.url) {
    case '/right':
      await send([begins, ...talk, ends]);
      break;
    case '/no-end':
      await send([begins, ...talk.slice(0, 4)]);
      break;
    case '/dies':
      await send([begins, ...talk.slice(0, 4)]);
      response.write('data: {"type":"TEXT_MES');
      await sleep(20);
      return request.socket.destroy();
    case '/crlf': {
      const frames = [begins, ...talk, ends].map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`);
      const bytes = Buffer.from(`\ufeff${frames.join('')}`);
      for (let at = 0; at < bytes.length; at += 11) {
        response.write(bytes.subarray(at, at + 11));
        await new Promise(setImmediate);
      }
      break;
    }
    case '/slow':
      await send([begins, ...talk.slice(0, 3)]);
      await sleep(full ? 60_000 : 2_500);
      await send([...talk.slice(3), ends]);
      break;
    case '/mute':
      await send([begins, ...talk.slice(0, 4)]);
      return;
    case '/broken':
      await send([
        begins,
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm9', delta: 'Out of the blue.' },
        { type: 'STEP_STARTED', stepName: 'left open' },
        ends,
      ]);
      break;
    case '/asks': {
      const interrupts = [{ id: 'int-1', reason: 'confirmation', message: 'Really?' }];
      const waits = { ...ends, outcome: { type: 'interrupt', interrupts } };
      await send([begins, input.resume ? ends : waits]);
      break;
    }
    case '/interrupts': {
      // As many interrupts as the end of the thread's name says.
      const count = Number(threadId.split('-').at(-1));
      const ids = Array.from({ length: count }, (_, number) => `${threadId}/${number}`);
      const interrupts = ids.map((id) => ({ id, reason: 'confirmation', message: `May I, ${id}?` }));
      const goesOn = { type: 'TEXT_MESSAGE_CHUNK', messageId: `m-${runId}`, role: 'assistant', delta: 'Went on.' };
      const waits = { ...ends, outcome: { type: 'interrupt', interrupts } };
      await send(input.resume ? [begins, goesOn, ends] : [begins, waits]);
      break;
    }
  }
  response.end();
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const at = `http://127.0.0.1:${server.address().port}`;
const config = ['right', 'no-end', 'dies', 'crlf', 'slow', 'mute', 'broken', 'asks', 'interrupts']
  .map((name) => {
    const patience = name === 'mute' ? 'idle_seconds = 2' : '';
    return `[upstreams.${name}]\nurl = "${at}/${name}"\nkeep_alive_seconds = 1\n${patience}\n`;
  })
  .concat(`[upstreams.binary]\nurl = "${at}/right"\nbinary = true\n`)
  .join('\n');
let gateway = await start('upstream', { config });

function through(name, threadId) {
  const url = `${gateway.url}/agui/upstreams/${name}`;
  return new HttpAgent({ url, headers: gateway.authorized, threadId, initialMessages: [structuredClone(user)] });
}

/** Runs an agent, and gives the error that the run ended with, if it did. */
async function failure(agent) {
  let error;
  await within('the run to end', agent.runAgent({}, { onRunErrorEvent: ({ event }) => void (error = event) }), 100_000);
  return error;
}

const had = ({ messages, state }) => structuredClone({ messages, state });

/** Runs one client through, and another that is cut off after some events and comes back when there are more. */
async function cutOff(upstream, cut, back) {
  const whole = through(upstream, `${upstream}-${cut}-whole`);
  await within('a run that is never cut', whole.runAgent());
  const thread = `${upstream}-${cut}-${back}-cut`;
  const goOn = pause(thread, cut);
  const come = pause(thread, back);
  const agent = through(upstream, thread);
  let heard = 0;
  const first = agent.runAgent({}, { onEvent: () => void (heard += 1) }).catch(() => {});
  await until(`${cut} events`, () => heard >= cut);
  agent.abortRun();
  await within('the client to let go', first);
  const asked = requests.length;
  goOn();
  await sleep(60);
  const second = agent.runAgent();
  await sleep(40);
  come();
  await within('the second run', second);
  assert.equal(requests.length, asked, 'the agent was asked once');
  assert.deepEqual(had(agent), had(whole), `${upstream}: cut after ${cut}, back before ${back}`);
}

const resumes = (thread) => requests.filter(({ threadId, resume }) => threadId === thread && resume);

/** The open asks of a thread, by their interrupts' words. */
async function asksOf(thread) {
  const { asks } = await gateway.get('/api/inbox');
  return asks.filter(({ words }) => words?.includes(`${thread}/`));
}

/** What an AAEP subscriber hears, and its reply to everything that a thread asks. */
async function replyAsSubscriber(thread, count) {
  const stop = new AbortController();
  const response = await fetch(`${gateway.url}/aaep/v1/events`, { headers: gateway.authorized, signal: stop.signal });
  const ids = new Set((await asksOf(thread)).map(({ id }) => id));
  let text = '';
  let replied = 0;
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const frames = text.split('\n\n');
    text = frames.pop();
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '));
      const event = data && JSON.parse(data.slice(6));
      if (!event?.type.endsWith('awaiting.confirmation') || !JSON.stringify(event).includes(`${thread}/`)) continue;
      const reply = {
        type: 'confirmation.reply',
        reply_token: event.reply_token,
        decision: 'accept',
        timestamp: new Date().toISOString(),
      };
      const answered = await fetch(`${gateway.url}/aaep/v1/replies`, {
        method: 'POST',
        headers: { ...gateway.authorized, 'content-type': 'application/json' },
        body: JSON.stringify(reply),
      });
      assert.ok(answered.ok, `${answered.status} ${await answered.text()}`);
      replied += 1;
    }
    if (replied === count) break;
  }
  stop.abort();
  assert.equal(ids.size, count);
}

/** Answers everything that a thread asks with `banister answer`. */
async function answerAtTheTerminal(thread) {
  for (const { id } of await asksOf(thread)) {
    const { code, stderr } = await gateway.banister('answer', '--data', gateway.data, id, '--yes');
    assert.equal(code, 0, stderr);
  }
}

const wipe = { tool_name: 'Bash', tool_use_id: 'toolu_push', tool_input: { command: 'git push --force origin main' } };

async function tell(event, session, fields) {
  const { code, stderr } = await gateway.hook(event, session, fields);
  assert.equal(code, 0, `${event}: exit ${code}: ${stderr}`);
}

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

let failed = true;
try {
  const known = new Set();
  const reading = { tool_name: 'Read', tool_use_id: 'toolu_read', tool_input: { file_path: '/home/dev/orbit/src/a.rs' } };

  step('attached: cut off and run again, a client has what one has that was never cut');
  await tell('UserPromptSubmit', 'cut', { prompt: 'Read it.' });
  const session = await newest(known);
  const never = attach(session);
  const cut = attach(session);
  const whole = never.runAgent();
  const first = cut.runAgent().catch(() => {});
  await until('both to begin', () => never.messages.length === 1 && cut.messages.length === 1);
  cut.abortRun();
  await within('the client to let go', first);
  await gateway.hook('PreToolUse', 'cut', reading);
  const again = cut.runAgent();
  await tell('PostToolUse', 'cut', { ...reading, tool_response: { content: 'fn a() {}' }, duration_ms: 3 });
  await tell('Stop', 'cut', { last_assistant_message: 'Read.', stop_hook_active: false });
  await within('both to end', Promise.all([whole, again]));
  assert.deepEqual(had(cut), had(never));
  assert.equal(never.messages.length, 4);

  for (const approved of [true, false]) {
    step(`attached: an interrupt is answered with ${approved ? 'yes' : 'no'}, and the hook hears it`);
    const name = `asks-${approved}`;
    await tell('UserPromptSubmit', name, { prompt: 'Push it.' });
    const asking = await newest(known);
    const agent = attach(asking);
    const run = agent.runAgent();
    await until('the run to begin', () => agent.messages.length === 1);
    const hook = gateway.hook('PreToolUse', name, wipe);
    await within('the run to end over the ask', run);
    assert.equal(agent.pendingInterrupts.length, 1);
    const [{ id, toolCallId, expiresAt }] = agent.pendingInterrupts;
    assert.deepEqual([toolCallId, expiresAt], ['toolu_push', undefined]);
    const card = agent.messages.find(({ activityType }) => activityType === 'banister.ask');
    assert.equal(card.content.status, 'open');
    const answer = { interruptId: id, status: 'resolved', payload: { approved } };
    let told;
    const next = agent.runAgent({ resume: [answer] }, { onCustomEvent: ({ event }) => void (told = event) });
    const { code, stdout } = await within('the hook to hear', hook);
    assert.equal(code, 0);
    const decision = JSON.parse(stdout).hookSpecificOutput.permissionDecision;
    assert.equal(decision, approved ? 'allow' : 'deny');
    await tell('Stop', name, { last_assistant_message: 'So be it.', stop_hook_active: false });
    await within('the next run to end', next);
    assert.deepEqual([told.name, told.value[0].counted], ['banister.resume', true]);
    assert.deepEqual(agent.pendingInterrupts, []);
    const late = attach(asking);
    await late.runAgent();
    assert.deepEqual(had(agent), had(late));

    step('attached: the same answer from somebody who was late is taken, and told who was first');
    const slow = attach(asking);
    const answered = await slow.runAgent({ resume: [answer] }, { onCustomEvent: ({ event }) => void (told = event) });
    assert.ok(answered);
    assert.deepEqual([told.value[0].counted, told.value[0].outcome], [false, approved ? 'accepted' : 'rejected']);
  }

  step('upstream: cut off and run again, a client has what one has that was never cut, in both forms');
  for (const upstream of ['right', 'binary']) {
    for (const [cutAt, back] of [[2, 6], [5, 6], [5, 15], [9, 10], [14, 15], [14, 17], [17, 99]]) {
      await cutOff(upstream, cutAt, back);
    }
  }

  step('upstream: CRLF, a byte order mark and cut characters make no difference');
  const right = through('right', 'same');
  await right.runAgent();
  assert.ok(right.messages.length > 4);
  const crlf = through('crlf', 'same-crlf');
  assert.equal(await failure(crlf), undefined);
  assert.deepEqual(had(crlf), had(right));

  step(`upstream: an agent that is silent for ${full ? 'a minute' : 'seconds'} is waited for`);
  const slow = through('slow', 'slow');
  assert.equal(await failure(slow), undefined);
  assert.deepEqual(had(slow), had(right));

  step('upstream: no end, dies, falls silent for ever: the run fails with the reason, what was said stays');
  for (const [name, code] of [['no-end', 'truncated'], ['dies', 'upstream-broken'], ['mute', 'upstream-silent']]) {
    const agent = through(name, name);
    const error = await failure(agent);
    assert.equal(error?.code, code, name);
    assert.ok(error.message.length > 0);
    assert.deepEqual(agent.messages.find(({ id }) => id === 'm1')?.content, 'Grüße aus ');
  }

  step('upstream: what the client would refuse is repaired');
  const broken = through('broken', 'broken');
  assert.equal(await failure(broken), undefined);
  assert.equal(broken.messages.at(-1).content, 'Out of the blue.');

  step('upstream: an interrupt is answered, and the agent gets the answer as it is');
  const asks = through('asks', 'asks');
  await asks.runAgent();
  assert.equal(asks.pendingInterrupts.length, 1);
  const resume = [{ interruptId: 'int-1', status: 'resolved', payload: { approved: true, editedArgs: { a: 1 } } }];
  await asks.runAgent({ resume });
  assert.deepEqual(requests.at(-1).resume, resume);
  assert.deepEqual(asks.pendingInterrupts, []);

  const yes = (id) => ({ interruptId: id, status: 'resolved', payload: { approved: true } });
  for (const count of [1, 3]) {
    for (const door of ['terminal', 'subscriber', 'front end', 'restart']) {
      step(`upstream: ${count} interrupt(s), answered at the ${door}, resume exactly once`);
      const thread = `${door.replace(' ', '-')}-${count}`;
      const agent = through('interrupts', thread);
      await agent.runAgent();
      const pending = agent.pendingInterrupts.map(({ id }) => id);
      assert.equal(pending.length, count);
      await until('the asks', async () => (await asksOf(thread)).length === count);
      if (door === 'restart') {
        await gateway.stop({ keep: true });
        gateway = await start('upstream', { config, dir: gateway.dir });
        agent.url = `${gateway.url}/agui/upstreams/interrupts`;
        assert.equal((await asksOf(thread)).length, count);
      }
      if (door === 'subscriber') await within('the replies', replyAsSubscriber(thread, count));
      else if (door !== 'front end') await answerAtTheTerminal(thread);
      if (door !== 'front end') {
        await until('the agent to be resumed', () => resumes(thread).length === 1);
      }
      // The front end answers as well: it is the first, or gets the run that followed.
      await agent.runAgent({ resume: pending.map(yes) });
      assert.deepEqual(agent.pendingInterrupts, []);
      assert.equal(agent.messages.at(-1).content, 'Went on.');
      await sleep(200);
      assert.equal(resumes(thread).length, 1, 'the agent was resumed once');
      assert.deepEqual(resumes(thread)[0].resume, pending.map(yes));
      assert.deepEqual(await asksOf(thread), []);
    }
  }

  step('upstream: what happened is a session like any other');
  const { sessions } = await gateway.get('/api/sessions');
  assert.ok(sessions.length > known.size);
  const verified = await gateway.banister('log', 'verify', '--data', gateway.data);
  assert.equal(verified.code, 0, verified.stderr);

  failed = false;
  console.log('upstream: all of it holds');
} catch (error) {
  console.error(error);
  console.error(`The gateway's files are in ${gateway.dir}; it said:\n${gateway.log()}`);
  process.exitCode = 1;
} finally {
  server.closeAllConnections();
  server.close();
  await gateway.stop({ keep: failed });
}
