// Short names for AG-UI events, and the two ways to put a stream into the corpus.
//
// A stream is `{name, input?, events, minted?, wire?, gap?, meant?}`. `minted` marks those in which the client invents
// message ids; `wire` those that only make sense as frames, because an event is no object with a type; `gap` names the
// difference that is known; `meant` is what the author expects of the client.

const event = (type) => (fields) => ({ type, ...fields });

export const runStarted = (x) => ({ type: 'RUN_STARTED', threadId: 't', runId: 'r', ...x });
export const runFinished = (x) => ({ type: 'RUN_FINISHED', threadId: 't', runId: 'r', ...x });
export const runError = (x) => ({ type: 'RUN_ERROR', message: 'it broke', ...x });

export const text = {
  start: (messageId, x) => ({ type: 'TEXT_MESSAGE_START', messageId, ...x }),
  content: (messageId, delta, x) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...x }),
  end: (messageId, x) => ({ type: 'TEXT_MESSAGE_END', messageId, ...x }),
  chunk: event('TEXT_MESSAGE_CHUNK'),
  whole: (id, words = 'hello', x) => [text.start(id, x), text.content(id, words), text.end(id)],
};

export const tool = {
  start: (toolCallId, toolCallName = 'look', x) => ({ type: 'TOOL_CALL_START', toolCallId, toolCallName, ...x }),
  args: (toolCallId, delta, x) => ({ type: 'TOOL_CALL_ARGS', toolCallId, delta, ...x }),
  end: (toolCallId, x) => ({ type: 'TOOL_CALL_END', toolCallId, ...x }),
  chunk: event('TOOL_CALL_CHUNK'),
  result: (messageId, toolCallId, content = 'seen', x) => ({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, ...x }),
  whole: (id, args = '{"at":1}', x) => [tool.start(id, 'look', x), tool.args(id, args), tool.end(id)],
};

/** The span around thoughts. */
export const span = {
  start: (messageId, x) => ({ type: 'REASONING_START', messageId, ...x }),
  end: (messageId, x) => ({ type: 'REASONING_END', messageId, ...x }),
};

export const thought = {
  start: (messageId, x) => ({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...x }),
  content: (messageId, delta, x) => ({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta, ...x }),
  end: (messageId, x) => ({ type: 'REASONING_MESSAGE_END', messageId, ...x }),
  chunk: event('REASONING_MESSAGE_CHUNK'),
  whole: (id, words = 'hm', x) => [thought.start(id, x), thought.content(id, words), thought.end(id)],
};

export const secret = (subtype, entityId, encryptedValue = 'c2VhbGVk', x) => ({
  type: 'REASONING_ENCRYPTED_VALUE',
  subtype,
  entityId,
  encryptedValue,
  ...x,
});

export const state = {
  snapshot: (snapshot, x) => ({ type: 'STATE_SNAPSHOT', snapshot, ...x }),
  delta: (delta, x) => ({ type: 'STATE_DELTA', delta, ...x }),
};

export const messages = (list, x) => ({ type: 'MESSAGES_SNAPSHOT', messages: list, ...x });

export const activity = {
  snapshot: (messageId, content = { done: 0 }, x) => ({
    type: 'ACTIVITY_SNAPSHOT',
    messageId,
    activityType: 'PLAN',
    content,
    ...x,
  }),
  delta: (messageId, patch, x) => ({ type: 'ACTIVITY_DELTA', messageId, activityType: 'PLAN', patch, ...x }),
};

export const step = {
  started: (stepName, x) => ({ type: 'STEP_STARTED', stepName, ...x }),
  finished: (stepName, x) => ({ type: 'STEP_FINISHED', stepName, ...x }),
};

export const sub = {
  started: (subagentRunId, x) => ({ type: 'SUBAGENT_STARTED', subagentRunId, name: 'helper', ...x }),
  finished: (subagentRunId, x) => ({ type: 'SUBAGENT_FINISHED', subagentRunId, ...x }),
  error: (subagentRunId, x) => ({ type: 'SUBAGENT_ERROR', subagentRunId, message: 'it gave up', ...x }),
};

export const raw = (value, x) => ({ type: 'RAW', event: value, ...x });
export const custom = (name, value, x) => ({ type: 'CUSTOM', name, value, ...x });

/** A tag: who an event belongs to. */
export const by = (subagentRunId, x) => ({ subagentRunId, ...x });

export const user = (id, content = 'hi', x) => ({ id, role: 'user', content, ...x });
export const assistant = (id, x) => ({ id, role: 'assistant', ...x });
export const call = (id, name = 'look', args = '{}', x) => ({ id, type: 'function', function: { name, arguments: args }, ...x });

/** One whole run. */
export const run = (...events) => [runStarted(), ...events.flat(), runFinished()];

/** An event given as JSON text, for what a JavaScript value cannot say. */
export class Verbatim {
  constructor(json) {
    this.json = json;
  }
}

export const verbatim = (json) => new Verbatim(json);
export const textOf = (event) => (event instanceof Verbatim ? event.json : JSON.stringify(event));
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Collects the streams of one category. */
export function category(prefix) {
  const all = [];
  const add = (name, events, meant, rest) => {
    all.push({ name: `${prefix}/${name}`, events: events.flat(), meant, ...rest });
  };
  return {
    all,
    /** The client applies it. */
    good: (name, events, rest) => add(name, events, { verdict: 'resolve' }, rest),
    /** The client refuses it, with these words, at this event. */
    bad: (name, words, at, events, rest) => add(name, events, { verdict: 'reject', words, at }, rest),
  };
}
