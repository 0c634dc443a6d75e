// `banister translate`, and the official client as it runs what came out: one run after another, on one thread.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import path from 'node:path';
import { mock } from 'node:test';

import { require, run as execute, target } from '../../lib/gateway.mjs';

const { HttpAgent } = require('@ag-ui/client');
const { EventEncoder } = require('@ag-ui/encoder');

const TERMINAL = new Set(['RUN_FINISHED', 'RUN_ERROR']);

/** The time of events that have none, so that every run of these scripts sees the same. */
const TIME = '2026-03-01T09:00:00Z';

export const lines = (messages) => messages.map((message) => `${JSON.stringify(message)}\n`).join('');
export const parsed = (text) => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));

/** Runs `banister translate`: what it printed, and its report. Exit code 1 is for what says nothing at all. */
export async function translate(words, input, expected = 0) {
  const { code, stdout, stderr } = await execute(
    path.join(target, 'debug', 'banister'),
    ['translate', '--time', TIME, '--json', ...words],
    input === undefined ? {} : { input: typeof input === 'string' ? input : lines(input) },
  );
  assert.equal(code, expected, `banister translate ${words.join(' ')}: exit ${code}\n${stderr.slice(0, 2_000)}`);
  return { events: parsed(stdout), report: JSON.parse(stderr) };
}

/** A stream cut before every beginning of a run. */
export function runsOf(events) {
  const runs = [];
  for (const event of events) {
    if (event.type === 'RUN_STARTED' || runs.length === 0) runs.push([]);
    runs.at(-1).push(event);
  }
  return runs;
}

export const isWhole = (run) => run[0].type === 'RUN_STARTED' && run.some(({ type }) => TERMINAL.has(type));

/** A server on the loopback interface; `answer` gives the events for a run's input and its path. */
export async function agentServer(answer) {
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const events = answer(JSON.parse(Buffer.concat(pieces).toString()), request.url.slice(1));
    const encoder = new EventEncoder({ accept: 'text/event-stream' });
    response.writeHead(200, { 'content-type': encoder.getContentType() });
    for (const event of events) response.write(encoder.encodeSSE(event));
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What the client says on the console while `task` runs. */
async function overhear(task) {
  const said = [];
  const kept = { warn: console.warn, error: console.error, log: console.log, debug: console.debug };
  console.warn = (...words) => said.push(words.map(String).join(' '));
  console.error = console.log = console.debug = () => {};
  try {
    return [await task(), said];
  } finally {
    Object.assign(console, kept);
  }
}

/**
 * Has the client run a translated session, each run one answer, the interrupts of one answered by the `resume` that the
 * next one names. The clock is the recording's: the client answers no interrupt that has expired.
 */
export async function replay(events) {
  const runs = runsOf(events);
  const server = await agentServer((_, n) => runs[Number(n)]);
  const agent = new HttpAgent({ url: server.url, threadId: runs[0][0].threadId ?? 't' });
  const told = [];
  const warnings = [];
  let failure = null;
  try {
    for (const [n, run] of runs.entries()) {
      const { runId = 'r', input, timestamp } = run[0];
      const before = JSON.parse(JSON.stringify({ messages: agent.messages, state: agent.state }));
      agent.url = `${server.url}/${n}`;
      if (timestamp !== undefined) mock.timers.enable({ apis: ['Date'], now: timestamp });
      const [error, said] = await overhear(() =>
        agent.runAgent({ runId, ...(input?.resume && { resume: input.resume }) }).then(() => null, (why) => why),
      );
      mock.timers.reset();
      warnings.push(...said);
      if (error) {
        failure = `run ${n + 1} of ${runs.length}: ${error.message}`;
        break;
      }
      told.push({ before, run, after: JSON.parse(JSON.stringify({ messages: agent.messages, state: agent.state })) });
    }
  } finally {
    await server.close();
  }
  return { failure, warnings, told, agent, messages: told.at(-1)?.after.messages, state: told.at(-1)?.after.state };
}

/** What our own reducer makes of streams `{name, messages?, state?, events}`. */
export async function follow(streams) {
  const { code, stdout, stderr } = await execute(path.join(target, 'debug', 'xtask'), ['agui', 'follow'], { input: lines(streams) });
  assert.equal(code, 0, `xtask agui follow: exit ${code}\n${stderr.slice(0, 2_000)}`);
  const told = parsed(stdout);
  assert.deepEqual(told.map(({ name }) => name), streams.map(({ name }) => name), 'one line per stream, in the same order');
  return told;
}
