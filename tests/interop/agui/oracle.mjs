// What the official client makes of a stream.
//
// `direct` hands events to the client one per turn of the event loop, so that each is applied before the next is judged,
// and knows which event was refused. `overHttp` sends them as server-sent events from a loopback server, each only when
// the one before has been read.

import http from 'node:http';
import { createRequire } from 'node:module';

import { require } from '../../lib/gateway.mjs';
import { textOf } from './events.mjs';

const { AbstractAgent, HttpAgent } = require('@ag-ui/client');
const { Observable } = createRequire(require.resolve('@ag-ui/client'))('rxjs');

/** A value as JSON says it; the client can end with one that JSON cannot say. */
function plain(value) {
  try {
    return value === undefined ? null : JSON.parse(JSON.stringify(value));
  } catch {
    return { unspeakable: true };
  }
}

/** What the client says on the console while `task` runs. */
async function overhear(task) {
  const warnings = [];
  const kept = { warn: console.warn, error: console.error, log: console.log, debug: console.debug };
  console.warn = (...words) => warnings.push(words.map(String).join(' '));
  console.error = console.log = console.debug = () => {};
  try {
    return [await task(), warnings];
  } finally {
    Object.assign(console, kept);
  }
}

/** Runs an agent to its end and says how it went. */
async function follow(agent) {
  const types = [];
  const [told, warnings] = await overhear(async () => {
    try {
      await agent.runAgent({ runId: 'r' }, { onEvent: ({ event }) => void types.push(event.type) });
      return { verdict: 'resolve', error: null, message: null };
    } catch (error) {
      return { verdict: 'reject', error: error.constructor.name, message: error.message };
    }
  });
  return { ...told, messages: plain(agent.messages), state: plain(agent.state), warnings, types };
}

const start = ({ messages, state } = {}) => ({
  threadId: 't',
  ...(messages !== undefined && { initialMessages: messages }),
  ...(state !== undefined && { initialState: state }),
});

class Paced extends AbstractAgent {
  constructor(config, events) {
    super(config);
    this.events = events;
    this.refused = null;
  }

  run() {
    return new Observable((subscriber) => {
      let next = 0;
      const turn = () => {
        if (subscriber.closed) return;
        if (next === this.events.length) {
          subscriber.complete();
          return;
        }
        subscriber.next(this.events[next]);
        if (subscriber.closed) this.refused = next;
        next += 1;
        setImmediate(turn);
      };
      setImmediate(turn);
    });
  }
}

/** The client's verdict, and the index of the event that it refused. */
export async function direct({ input, events }) {
  const agent = new Paced(start(input), events.map((event) => JSON.parse(textOf(event))));
  const told = await follow(agent);
  return { ...told, at: told.verdict === 'reject' ? agent.refused : null };
}

/** A loopback server that serves bodies, frame by frame. */
export async function wire() {
  const bodies = new Map();
  let last = 0;
  const server = http.createServer((request, response) => {
    request.resume();
    request.on('end', async () => {
      const body = bodies.get(request.url);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.socket.setNoDelay(true);
      let gone = false;
      response.on('close', () => {
        gone = true;
        body.read();
      });
      for (const piece of body.pieces) {
        if (gone) return;
        const read = new Promise((resolve) => (body.read = resolve));
        response.write(piece);
        if (body.paced) await read;
      }
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;

  /** Fetches for real; tells the server when a piece has been read. */
  const attentive = (body) => async (url, init) => {
    const response = await fetch(url, init);
    const watch = new TransformStream(
      {
        transform(piece, out) {
          out.enqueue(piece);
          setImmediate(() => setImmediate(() => body.read()));
        },
      },
      undefined,
      { highWaterMark: 0 },
    );
    return new Response(response.body.pipeThrough(watch), { status: response.status, headers: response.headers });
  };

  return {
    /** The verdict on these pieces of a body; `paced` sends each only when the one before has been read. */
    async pieces(pieces, input, { paced = true } = {}) {
      const where = `/${(last += 1)}`;
      const body = { pieces, paced, read: () => {} };
      bodies.set(where, body);
      const agent = new HttpAgent({ ...start(input), url: origin + where, fetch: attentive(body) });
      const told = await follow(agent);
      bodies.delete(where);
      return { ...told, at: null };
    },
    overHttp({ input, events }) {
      return this.pieces(events.map((event) => `data: ${textOf(event)}\n\n`), input);
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

// A connection that the client drops makes a second promise of its own fail, which nobody can catch.
export const stray = [];
process.on('unhandledRejection', (reason) => stray.push(String(reason)));
