// Streams by chance, the same ones every time: valid ones, and valid ones with something done to them.

import {
  activity, assistant, by, call, custom, messages, raw, runError, runFinished, runStarted, secret, span, state, step, sub,
  text, thought, tool, user,
} from './events.mjs';

/** Numbers that look random and are the same every time (mulberry32). */
export function chance(seed) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(next() * n);
  return {
    below,
    pick: (list) => list[below(list.length)],
    odds: (n) => below(n) === 0,
  };
}

const TAGS = [undefined, undefined, 'a', 'b', ''];
const tagged = (tag) => (tag === undefined ? {} : by(tag));
const WORDS = ['', 'a', 'hello ', 'wörld', '😀', '\n', '"quoted"', '{"k":', '1}', '漢'];

/** Keeps account of what is open and whose, so that what it emits is allowed. */
class Producer {
  constructor(rng) {
    this.rng = rng;
    this.events = [];
    this.serial = 0;
    this.closed = { text: [], tool: [], thought: [] };
    this.activities = [];
    this.forget();
  }

  forget() {
    this.open = { text: new Set(), tool: new Set(), thought: new Set(), span: new Set() };
    this.owners = { message: new Map(), tool: new Map(), reasoning: new Map(), activity: new Map() };
    this.lanes = new Map();
    this.steps = [];
    this.subagents = { active: [], over: [] };
  }

  fresh(prefix) {
    this.serial += 1;
    return `${prefix}${this.serial}`;
  }

  /** Extras that change nothing, or only the metadata. */
  extras() {
    const { rng } = this;
    return {
      ...(rng.odds(8) && { timestamp: rng.below(1e9) }),
      ...(rng.odds(8) && { metadata: { [rng.pick(['k', 'l'])]: rng.pick([1, null, 'x', { deep: [] }]) } }),
      ...(rng.odds(12) && { rawEvent: rng.pick([1, { type: 'x' }, null]) }),
      ...(rng.odds(15) && { novelty: rng.pick([1, null]) }),
    };
  }

  /** The tag that something known may be continued with. */
  tagOf(kind, id) {
    const owner = this.owners[kind].get(id);
    return this.rng.odds(2) ? {} : tagged(owner?.tag);
  }

  emit(event, { closes = false } = {}) {
    if (closes) this.lanes.delete(event.subagentRunId);
    this.events.push({ ...event, ...this.extras() });
  }

  /** Begins an item, a new one or one that was closed. */
  begin(kind, bucket, prefix, make) {
    const again = this.rng.odds(6) && this.closed[kind].length > 0;
    const id = again ? this.rng.pick(this.closed[kind]) : this.fresh(prefix);
    if (this.open[kind].has(id) || [...this.lanes.values()].some((lane) => lane.id === id)) return;
    const known = this.owners[bucket].has(id);
    const tag = known ? this.tagOf(bucket, id) : tagged(this.rng.pick(TAGS));
    if (!known) this.owners[bucket].set(id, { tag: tag.subagentRunId });
    this.emit(make(id, tag), { closes: true });
    this.open[kind].add(id);
  }

  proceed(kind, bucket, make) {
    if (this.open[kind].size === 0) return;
    const id = this.rng.pick([...this.open[kind]]);
    this.emit(make(id, this.tagOf(bucket, id)), { closes: true });
  }

  finish(kind, bucket, make) {
    if (this.open[kind].size === 0) return;
    const id = this.rng.pick([...this.open[kind]]);
    this.emit(make(id, this.tagOf(bucket, id)), { closes: true });
    this.open[kind].delete(id);
    this.closed[kind]?.push(id);
  }

  chunk(kind, bucket, prefix, make) {
    const { rng } = this;
    const lanes = [...this.lanes].filter(([, lane]) => lane.kind === kind);
    const delta = rng.odds(6) ? {} : { delta: rng.pick(WORDS) };
    if (lanes.length > 0 && !rng.odds(3)) {
      const [tag, lane] = rng.pick(lanes);
      const nameless = tag === undefined || (lanes.length === 1 && this.lanes.get(undefined)?.kind !== kind);
      const by = rng.pick([{ id: true }, { id: true, tag: true }, { tag: true }, ...(nameless ? [{}] : [])]);
      if (!by.id && tag === undefined && this.lanes.get(undefined)?.kind !== kind) return;
      if (!by.id && !by.tag && !nameless) return;
      // Without an id and without a tag, the parent's own lane goes first.
      if (!by.id && tag === undefined && !lanes.some(([owner]) => owner === undefined)) return;
      this.emit({ ...make(by.id ? lane.id : undefined, rng.odds(4) ? lane.said : {}), ...delta, ...(by.tag && tagged(tag)) });
      return;
    }
    const id = this.fresh(prefix);
    const tag = rng.pick(TAGS);
    const said = kind === 'text' ? rng.pick([{}, { role: 'user' }, { role: 'assistant', name: 'n' }]) : kind === 'tool' ? { toolCallName: 'look' } : {};
    this.lanes.set(tag, { kind, id, said });
    this.owners[bucket].set(id, { tag });
    this.emit({ ...make(id, said), ...delta, ...tagged(tag) });
    this.closed[kind].push(id);
  }

  patch() {
    const { rng } = this;
    const path = () => rng.pick(['/a', '/b', '/a/x', '/l/0', '/l/-', '/l/1', '', '/', '/b/c']);
    return Array.from({ length: rng.below(4) }, () => rng.pick([
      () => ({ op: 'add', path: path(), value: rng.pick([1, null, {}, [], 'x', { a: 1, l: [1] }]) }),
      () => ({ op: 'add', path: path(), value: rng.pick([{ x: 1 }, [0]]) }),
      () => ({ op: 'replace', path: path(), value: rng.pick([2, { x: [] }, { a: {}, b: {}, l: [] }]) }),
      () => ({ op: 'remove', path: rng.pick(['/a', '/b', '/l/0', '/l']) }),
      () => ({ op: 'move', from: rng.pick(['/a', '/l/0']), path: rng.pick(['/b', '/c', '/l/-']) }),
      () => ({ op: 'copy', from: rng.pick(['/a', '/b', '/l']), path: rng.pick(['/a', '/b', '/a/x', '/l/0', '/l/-', '/', '/b/c']) }),
      () => ({ op: 'test', path: path(), value: rng.pick([1, null, {}]) }),
      () => ({ op: 'merge', path: path(), value: 1 }),
    ])());
  }

  /** Messages: some of known ids, some new. */
  history() {
    const { rng } = this;
    return Array.from({ length: rng.below(5) }, () => {
      const tag = rng.pick(TAGS);
      const known = [...this.closed.text, ...this.closed.thought, ...this.activities];
      const id = rng.odds(2) && known.length > 0 ? rng.pick(known) : this.fresh('h');
      const made = rng.pick([
        () => user(id, rng.pick(['hi', [{ type: 'text', text: 'x' }]])),
        () => assistant(id, { content: 'so' }),
        () => assistant(id, { toolCalls: [call(this.fresh('k'))] }),
        () => ({ id, role: 'reasoning', content: 'hm' }),
        () => ({ id, role: 'activity', activityType: 'PLAN', content: { a: 1 } }),
        () => ({ id, role: 'tool', toolCallId: 'k', content: 'ok' }),
      ])();
      return { ...made, ...tagged(tag) };
    });
  }

  own(list, authoritative) {
    for (const message of list) {
      const bucket = message.role === 'reasoning' ? 'reasoning' : message.role === 'activity' ? 'activity' : 'message';
      const owner = { tag: message.subagentRunId };
      if (authoritative || !this.owners[bucket].has(message.id)) this.owners[bucket].set(message.id, owner);
      for (const { id } of message.toolCalls ?? []) {
        if (authoritative || !this.owners.tool.has(id)) this.owners.tool.set(id, owner);
      }
    }
  }

  act() {
    const { rng } = this;
    const word = () => rng.pick(WORDS);
    rng.pick([
      () => this.begin('text', 'message', 'm', (id, tag) => text.start(id, { ...tag, ...(rng.odds(3) && { role: rng.pick(['user', 'system']) }) })),
      () => this.proceed('text', 'message', (id, tag) => text.content(id, word(), tag)),
      () => this.proceed('text', 'message', (id, tag) => text.content(id, word(), tag)),
      () => this.finish('text', 'message', (id, tag) => text.end(id, tag)),
      () => this.begin('tool', 'tool', 'c', (id, tag) => tool.start(id, rng.pick(['look', 'touch']), tag)),
      () => this.proceed('tool', 'tool', (id, tag) => tool.args(id, word(), tag)),
      () => this.finish('tool', 'tool', (id, tag) => tool.end(id, tag)),
      () => {
        const id = this.fresh('r');
        const tag = rng.pick(TAGS);
        this.owners.message.set(id, { tag });
        const of = this.closed.tool.length > 0 ? rng.pick(this.closed.tool) : 'nobody';
        this.emit(tool.result(id, of, rng.pick(['ok', [], [{ type: 'text', text: 'x' }]]), tagged(tag)), { closes: true });
      },
      () => this.begin('thought', 'reasoning', 't', (id, tag) => thought.start(id, tag)),
      () => this.proceed('thought', 'reasoning', (id, tag) => thought.content(id, word(), tag)),
      () => this.finish('thought', 'reasoning', (id, tag) => thought.end(id, tag)),
      () => {
        const id = this.fresh('s');
        const tag = rng.pick(TAGS);
        this.owners.reasoning.set(id, { tag });
        this.open.span.add(id);
        this.emit(span.start(id, tagged(tag)), { closes: true });
      },
      () => this.finish('span', 'reasoning', (id, tag) => span.end(id, tag)),
      () => this.chunk('text', 'message', 'm', (messageId, x) => text.chunk({ ...(messageId !== undefined && { messageId }), ...x })),
      () => this.chunk('text', 'message', 'm', (messageId, x) => text.chunk({ ...(messageId !== undefined && { messageId }), ...x })),
      () => this.chunk('tool', 'tool', 'c', (toolCallId, x) => tool.chunk({ ...(toolCallId !== undefined && { toolCallId }), ...x })),
      () => this.chunk('thought', 'reasoning', 't', (messageId, x) => thought.chunk({ ...(messageId !== undefined && { messageId }), ...x })),
      () => this.emit(state.snapshot(rng.pick([{ a: 1, l: [1, 2] }, { b: {} }, [], null, 0, { a: { x: 1 } }]), tagged(rng.pick(TAGS))), { closes: true }),
      () => this.emit(state.delta(this.patch(), tagged(rng.pick(TAGS))), { closes: true }),
      () => {
        const list = this.history();
        this.lanes.clear();
        this.own(list, true);
        this.emit(messages(list));
      },
      () => {
        const known = rng.odds(2) && this.activities.length > 0;
        const id = known ? rng.pick(this.activities) : this.fresh('p');
        const tag = rng.pick(TAGS);
        const replace = rng.pick([{}, { replace: true }, { replace: false }]);
        if (!this.owners.activity.has(id) || replace.replace !== false) this.owners.activity.set(id, { tag });
        this.activities.push(id);
        this.emit(activity.snapshot(id, rng.pick([{ a: 1 }, { l: [1] }, {}]), { ...tagged(tag), ...replace }));
      },
      () => {
        if (this.activities.length === 0) return;
        const id = rng.pick(this.activities);
        this.emit(activity.delta(id, this.patch(), this.tagOf('activity', id)));
      },
      () => this.emit(raw(rng.pick([null, 1, { x: [] }]), tagged(rng.pick(TAGS)))),
      () => this.emit(custom('acme.note', rng.pick([null, 1]), tagged(rng.pick(TAGS))), { closes: true }),
      () => {
        const one = { name: rng.pick(['plan', 'do', 'check']), tag: rng.pick(TAGS) };
        if (this.steps.some(({ name, tag }) => name === one.name && tag === one.tag)) return;
        this.steps.push(one);
        this.emit(step.started(one.name, tagged(one.tag)), { closes: true });
      },
      () => {
        if (this.steps.length === 0) return;
        const [one] = this.steps.splice(rng.below(this.steps.length), 1);
        this.emit(step.finished(one.name, tagged(one.tag)), { closes: true });
      },
      () => {
        const id = rng.odds(2) ? rng.pick(['a', 'b', '']) : this.fresh('sub');
        const { active, over } = this.subagents;
        if (active.includes(id) || over.includes(id)) return;
        const parents = [...active, ...over];
        const parent = parents.length > 0 && rng.odds(2) ? { parentSubagentRunId: rng.pick(parents) } : {};
        active.push(id);
        this.emit(sub.started(id, parent));
      },
      () => this.endSubagent(),
      () => {
        const [subtype, bucket] = rng.pick([['message', 'message'], ['tool-call', 'tool']]);
        const ids = [...this.owners[bucket].keys()];
        const id = ids.length > 0 ? rng.pick(ids) : 'nobody';
        this.emit(secret(subtype, id, word(), this.tagOf(bucket, id)));
      },
      () => this.emit({ type: rng.pick(['META', 'FUTURE_THING']), payload: {} }),
    ])();
  }

  endSubagent() {
    const { active, over } = this.subagents;
    if (active.length === 0) return;
    const [id] = active.splice(this.rng.below(active.length), 1);
    over.push(id);
    this.lanes.delete(id);
    this.emit(this.rng.odds(3) ? sub.error(id) : sub.finished(id, this.rng.pick([{}, { result: 1 }, { outcome: { type: 'suspended' } }])));
  }

  run(length, last) {
    const { rng } = this;
    this.forget();
    const list = rng.odds(4) ? this.history() : [];
    this.own(list, false);
    this.emit(runStarted(list.length > 0 ? { input: { threadId: 't', runId: 'r', messages: list } } : {}));
    for (let n = 0; n < length; n += 1) this.act();
    if (last && rng.odds(8)) return;
    if (rng.odds(6)) {
      this.emit(runError({ ...(rng.odds(2) && { code: 'E' }) }));
      return;
    }
    while (this.steps.length > 0) {
      const one = this.steps.pop();
      this.emit(step.finished(one.name, tagged(one.tag)), { closes: true });
    }
    while (this.open.text.size > 0) this.finish('text', 'message', (id, tag) => text.end(id, tag));
    while (this.open.tool.size > 0) this.finish('tool', 'tool', (id, tag) => tool.end(id, tag));
    while (this.open.thought.size > 0) this.finish('thought', 'reasoning', (id, tag) => thought.end(id, tag));
    while (this.open.span.size > 0) this.finish('span', 'reasoning', (id, tag) => span.end(id, tag));
    while (this.subagents.active.length > 0) this.endSubagent();
    this.emit(runFinished(rng.pick([
      {}, {}, { result: { ok: 1 } }, { outcome: { type: 'success' } }, { outcome: { type: 'cancelled' } }, { outcome: { type: 'exploded' } },
      { outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'ask' }] } },
    ])));
    if (rng.odds(10)) this.emit(runError());
  }
}

/** A stream that the protocol allows. */
export function valid(seed) {
  const rng = chance(seed);
  const producer = new Producer(rng);
  const runs = 1 + rng.below(3);
  for (let n = 1; n <= runs; n += 1) producer.run(5 + rng.below(25), n === runs);
  const input = rng.odds(3) ? { messages: [user('u'), assistant('h1', { content: 'x' })], state: { a: 1, l: [1] } } : undefined;
  return { events: producer.events, ...(input && { input }) };
}

const KEYS = ['messageId', 'toolCallId', 'toolCallName', 'delta', 'role', 'subagentRunId', 'stepName', 'name', 'content', 'snapshot', 'patch', 'messages', 'metadata', 'timestamp', 'parentMessageId', 'outcome', 'entityId', 'replace', 'activityType'];
const IDS = ['messageId', 'toolCallId', 'stepName', 'entityId', 'subagentRunId', 'parentSubagentRunId'];

/** What may happen to a list of events. */
const MISHAPS = {
  drop: (events, rng) => void events.splice(rng.below(events.length), 1),
  duplicate: (events, rng) => {
    const at = rng.below(events.length);
    events.splice(at, 0, structuredClone(events[at]));
  },
  swap: (events, rng) => {
    const at = rng.below(Math.max(1, events.length - 1));
    if (events[at + 1]) [events[at], events[at + 1]] = [events[at + 1], events[at]];
  },
  shuffle: (events, rng) => {
    const [moved] = events.splice(rng.below(events.length), 1);
    events.splice(rng.below(events.length + 1), 0, moved);
  },
  retag: (events, rng) => {
    const event = rng.pick(events);
    const tag = rng.pick(['a', 'b', '', 'ghost', undefined]);
    if (tag === undefined) delete event.subagentRunId;
    else event.subagentRunId = tag;
  },
  rename: (events, rng) => {
    const named = events.flatMap((event) => IDS.filter((key) => key in event).map((key) => [event, key]));
    if (named.length === 0) return;
    const [event, key] = rng.pick(named);
    const [other, from] = rng.pick(named);
    event[key] = other[from];
  },
  'wrong type': (events, rng) => {
    const event = rng.pick(events);
    const keys = Object.keys(event).filter((key) => key !== 'type');
    if (keys.length > 0) event[rng.pick(keys)] = rng.pick([1, true, [], {}, 'word', 1.5]);
  },
  null: (events, rng) => {
    const event = rng.pick(events);
    const keys = Object.keys(event).filter((key) => key !== 'type');
    if (keys.length > 0) event[rng.pick(keys)] = null;
  },
  omit: (events, rng) => {
    const event = rng.pick(events);
    const keys = Object.keys(event).filter((key) => key !== 'type');
    if (keys.length > 0) delete event[rng.pick(keys)];
  },
  'unknown field': (events, rng) => void (rng.pick(events)[rng.pick(['colour', 'constructor', 'state'])] = rng.pick([1, null, {}])),
  'foreign field': (events, rng) => void (rng.pick(events)[rng.pick(KEYS)] = rng.pick(['x', 'm1', 'a', [], {}])),
  'another type': (events, rng) => void (rng.pick(events).type = rng.pick(events).type),
  'unknown type': (events, rng) => void (rng.pick(events).type += '_V2'),
  cut: (events, rng) => void events.splice(1 + rng.below(events.length)),
  'cut the head': (events, rng) => void events.splice(0, 1 + rng.below(3)),
};
export const mishaps = Object.keys(MISHAPS);

/** A valid stream to which something happened. */
export function mutant(seed, mishap) {
  const rng = chance(seed ^ 0x5bd1e995);
  const stream = valid(seed);
  const events = structuredClone(stream.events);
  MISHAPS[mishap](events, rng);
  if (rng.odds(5) && events.length > 0) MISHAPS[rng.pick(mishaps)](events, rng);
  return { ...stream, events };
}
