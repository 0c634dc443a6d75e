// Chunks: which lane a chunk belongs to, what it must repeat, what it becomes, and what closes it.

import {
  activity, assistant, by, category, custom, messages, raw, run, runError, runFinished, runStarted, secret, span, state,
  step, sub, text, thought, tool, user,
} from './events.mjs';

const { all, good, bad } = category('lane');
export default all;

const KINDS = [
  {
    kind: 'text', entity: 'text message', id: 'messageId', type: 'TEXT_MESSAGE_CHUNK',
    first: (id, delta, x) => text.chunk({ messageId: id, delta, ...x }),
    more: (delta, x) => text.chunk({ delta, ...x }),
    start: (id, x) => text.start(id, x), content: (id, x) => text.content(id, 'z', x), end: (id, x) => text.end(id, x),
  },
  {
    kind: 'tool', entity: 'tool call', id: 'toolCallId', type: 'TOOL_CALL_CHUNK',
    first: (id, delta, x) => tool.chunk({ toolCallId: id, toolCallName: 'look', delta, ...x }),
    more: (delta, x) => tool.chunk({ delta, ...x }),
    start: (id, x) => tool.start(id, 'look', x), content: (id, x) => tool.args(id, 'z', x), end: (id, x) => tool.end(id, x),
  },
  {
    kind: 'reasoning', entity: 'reasoning message', id: 'messageId', type: 'REASONING_MESSAGE_CHUNK',
    first: (id, delta, x) => thought.chunk({ messageId: id, delta, ...x }),
    more: (delta, x) => thought.chunk({ delta, ...x }),
    start: (id, x) => thought.start(id, x), content: (id, x) => thought.content(id, 'z', x), end: (id, x) => thought.end(id, x),
  },
];

for (const { kind, entity, id, type, first, more, start, content, end } of KINDS) {
  const ok = (name, ...events) => good(`${kind}/${name}`, run(...events));
  const no = (name, words, at, ...events) => bad(`${kind}/${name}`, words, at, run(...events));
  const again = (key, x) => more('+', { [id]: key, ...x });

  ok('one chunk', first('m', 'a'));
  ok('several chunks', first('m', 'a'), more('b'), again('m'), more(''));
  ok('another id opens another', first('m', 'a'), first('n', 'b'), more('c'));
  ok('an id comes back after another', first('m', 'a'), first('n', 'b'), first('m', 'c'));
  ok('no delta at all', first('m'));
  no('nothing to continue', `First ${type}`, 1, more('a'));
  no('nothing to continue, tagged', `First ${type}`, 1, more('a', by('a')));

  ok('rule 1: the holder by id, untagged', first('m', 'a', by('a')), again('m'), more('c', by('a')));
  ok('rule 1: the holder by id, same tag', first('m', 'a', by('a')), again('m', by('a')));
  no('rule 1: the holder by id, another tag', `Cannot continue ${entity} 'm': chunk subagentRunId 'b'`, 2, first('m', 'a', by('a')), again('m', by('b')));
  no('rule 1: the holder is the parent', `Cannot continue ${entity} 'm'`, 2, first('m', 'a'), again('m', by('a')));
  no('rule 1: the empty tag is not the parent', `Cannot continue ${entity} 'm'`, 2, first('m', 'a'), again('m', by('')));
  ok('rule 2: nobody holds it, the tag says', first('m', 'a', by('a')), first('n', 'b', by('b')), more('c', by('a')), more('d', by('b')));
  ok('rule 2: nobody holds it, untagged is the parent', first('m', 'a', by('a')), first('n', 'b'), more('c', by('a')), more('d'));
  ok('rule 3: no id, the tag says', first('m', 'a'), first('n', 'b', by('a')), more('c', by('a')), more('d'));
  no('rule 3: no id, the tag has none open', `First ${type}`, 2, first('m', 'a'), more('c', by('a')));
  ok('rule 4: the parent goes first', first('m', 'a', by('a')), first('n', 'b'), more('c'));
  ok('rule 4: the only lane of the kind', first('m', 'a', by('a')), more('c'), more('d'));
  no('rule 4: several lanes', `Ambiguous ${type}`, 3, first('m', 'a', by('a')), first('n', 'b', by('b')), more('c'));
  ok('rule 4: the parent decides among several', first('m', 'a', by('a')), first('n', 'b', by('b')), first('o', 'c'), more('d'));
  const other = kind === 'text' ? KINDS[1] : KINDS[0];
  ok('rule 4: the parent holds another kind', first('m', 'a', by('a')), other.first('n', 'b'), more('c'), other.more('d'));
  no('rule 4: none of the kind', `First ${type}`, 2, other.first('n', 'b'), more('c'));
  no('another kind takes the lane', `First ${other.type}`, 3, other.first('n', 'b'), first('m', 'a'), other.more('c'));
  ok('lanes of one id in two kinds', first('m', 'a'), other.first('m', 'b', by('a')), again('m'), other.more('c', by('a')));

  no('mixed with content', 'No active', 2, first('m', 'a'), content('m'));
  no('mixed with an end', 'No active', 2, first('m', 'a'), end('m'));
  ok('a start closes and opens again', first('m', 'a'), start('m'), content('m'), end('m'));
  no('a chunk for an open item', 'already in progress', 2, start('m'), first('m', 'a'), end('m'));
  no('content under another tag', 'No active', 3, first('m', 'a', by('a')), start('n', by('a')), content('m', by('a')));
  ok('an explicit item beside a chunk of another lane', first('m', 'a', by('a')), start('n'), content('n'), end('n'), more('b', by('a')));

  ok('metadata lands', first('m', 'a', { metadata: { a: 1, b: 1 } }), more('b', { metadata: { b: 2 } }), more(undefined, { metadata: { c: 3 } }));
  ok('only a rawEvent', first('m', undefined, { rawEvent: 1 }), more(undefined, { rawEvent: { x: 1 } }));
  ok('nothing in a continuation', first('m', 'a'), more(undefined), again('m'));
  ok('unknown fields in a chunk', first('m', 'a', { colour: 1 }), more('b', { colour: 2 }), more(undefined, { colour: 3 }));
  ok('a reopened id keeps its owner', first('m', 'a', by('a')), custom('n', 0, by('a')), first('m', 'b'), first('m', 'c'));
  no('a reopened id under another tag', 'does not match', 3, first('m', 'a', by('a')), custom('n', 0, by('a')), first('m', 'b', by('b')));

  good(`${kind}/left open at the end of the stream`, [runStarted(), first('m', 'a')]);
  good(`${kind}/left open at an error`, [runStarted(), first('m', 'a'), runError()]);
  good(`${kind}/a new run after an error opens anew`, [runStarted(), first('m', 'a'), runError(), ...run(first('m', 'b'))]);
  bad(`${kind}/a run does not see the lanes of the one before`, `First ${type}`, 4, [...run(first('m', 'a')), runStarted(), more('b'), runFinished()]);
  bad(`${kind}/a chunk first`, "First event must be 'RUN_STARTED'", 0, [first('m', 'a'), runStarted(), runFinished()]);
  bad(`${kind}/a chunk after the end`, 'already finished', 2, [runStarted(), runFinished(), first('m', 'a')]);
  bad(`${kind}/a chunk left open, then a second run`, 'still active', 2, [runStarted(), first('m', 'a'), runStarted()]);
  bad(`${kind}/a chunk that continues nothing after the end`, `First ${type}`, 2, [runStarted(), runFinished(), more('a')]);
  bad(`${kind}/a chunk after an error`, 'already errored', 2, [runStarted(), runError(), first('m', 'a')]);

  // What closes a lane: after it, a chunk without an id has nothing to continue.
  const closers = [
    ['TEXT_MESSAGE_START', (x) => [text.start('k', x)], [text.end('k')]],
    ['TOOL_CALL_START', (x) => [tool.start('k', 'look', x)], [tool.end('k')]],
    ['TOOL_CALL_RESULT', (x) => [tool.result('k', 'c', 'r', x)], []],
    ['STATE_SNAPSHOT', (x) => [state.snapshot(1, x)], []],
    ['STATE_DELTA', (x) => [state.delta([], x)], []],
    ['CUSTOM', (x) => [custom('n', 1, x)], []],
    ['STEP_STARTED', (x) => [step.started('k', x)], null],
    ['REASONING_START', (x) => [span.start('k', x)], [span.end('k')]],
    ['REASONING_MESSAGE_START', (x) => [thought.start('k', x)], [thought.end('k')]],
  ];
  for (const [name, events, after] of closers) {
    const close = after ?? [];
    no(`${name} closes the parent's lane`, `First ${type}`, 3, first('m', 'a'), events(), more('b'));
    ok(`${name} of another lane closes nothing`, first('m', 'a'), events(by('a')), more('b'), after === null ? [step.finished('k', by('a'))] : close);
    no(`${name} closes its own lane`, `First ${type}`, 3, first('m', 'a', by('a')), events(by('a')), more('b'));
    ok(`${name} of the parent leaves a subagent's lane`, first('m', 'a', by('a')), events(), more('b'), after === null ? [step.finished('k')] : close);
  }
  const opened = [
    ['TEXT_MESSAGE_CONTENT', text.start('k'), text.content('k', 'x'), text.end('k')],
    ['TEXT_MESSAGE_END', text.start('k'), text.end('k')],
    ['TOOL_CALL_ARGS', tool.start('k'), tool.args('k', 'x'), tool.end('k')],
    ['TOOL_CALL_END', tool.start('k'), tool.end('k')],
    ['STEP_FINISHED', step.started('k'), step.finished('k')],
    ['REASONING_END', span.start('k'), span.end('k')],
    ['REASONING_MESSAGE_CONTENT', thought.start('k'), thought.content('k', 'x'), thought.end('k')],
    ['REASONING_MESSAGE_END', thought.start('k'), thought.end('k')],
  ];
  for (const [name, opens, closes] of opened) {
    no(`${name} closes the parent's lane`, `First ${type}`, 4, opens, first('m', 'a'), closes, more('b'));
  }
  no('MESSAGES_SNAPSHOT closes all lanes', `First ${type}`, 4, first('m', 'a'), first('n', 'b', by('a')), messages([user('u')]), more('c', by('a')));
  ok('MESSAGES_SNAPSHOT closes all lanes, and they may open again', first('m', 'a'), first('n', 'b', by('a')), messages([]), first('m', 'c'), first('n', 'd', by('a')));
  ok('RUN_FINISHED closes all lanes', first('m', 'a'), first('n', 'b', by('a')), first('o', 'b', by('b')));
  no('SUBAGENT_FINISHED closes its lane', `First ${type}`, 4, sub.started('a'), first('m', 'a', by('a')), sub.finished('a'), more('b'));
  no('SUBAGENT_ERROR closes its lane', `First ${type}`, 4, sub.started('a'), first('m', 'a', by('a')), sub.error('a'), more('b'));
  ok('SUBAGENT_FINISHED of another leaves the lane', sub.started('b'), first('m', 'a', by('a')), first('n', 'a'), sub.finished('b'), more('b', by('a')), more('c'));
  for (const [name, event] of [
    ['RAW', raw(1)], ['ACTIVITY_SNAPSHOT', activity.snapshot('k')], ['ACTIVITY_DELTA', activity.delta('k', [])],
    ['REASONING_ENCRYPTED_VALUE', secret('message', 'k')], ['an unknown event', { type: 'META' }],
  ]) {
    ok(`${name} closes nothing`, first('m', 'a'), event, more('b'));
    ok(`${name} of the lane closes nothing`, first('m', 'a', by('a')), { ...event, ...by('a') }, more('b'));
  }
  ok('SUBAGENT_STARTED closes nothing', first('m', 'a', by('a')), sub.started('a'), more('b'), sub.finished('a'));
}

// ── What an opener said must be repeated, or not be said ───────────────────────────────────────────────────────────

const begin = text.chunk({ messageId: 'm', role: 'user', name: 'Ann', delta: 'a' });
good('agree/role and name again', run(begin, text.chunk({ role: 'user', name: 'Ann', delta: 'b' })));
bad('agree/another role', "chunk role 'system' does not match", 2, run(begin, text.chunk({ role: 'system', delta: 'b' })));
bad('agree/another role, by id', "chunk role 'assistant' does not match", 2, run(begin, text.chunk({ messageId: 'm', role: 'assistant' })));
bad('agree/another name', "chunk name 'Bob' does not match", 2, run(begin, text.chunk({ name: 'Bob', delta: 'b' })));
good('agree/the default role counts', run(text.chunk({ messageId: 'm', delta: 'a' }), text.chunk({ role: 'assistant', delta: 'b' })));
bad('agree/not the default role', "chunk role 'user' does not match the open stream's role 'assistant'", 2, run(text.chunk({ messageId: 'm' }), text.chunk({ role: 'user' })));
bad('agree/a name comes late', "does not match the open stream's name (absent)", 2, run(text.chunk({ messageId: 'm' }), text.chunk({ name: 'Ann' })));
const look = tool.chunk({ toolCallId: 'c', toolCallName: 'look', parentMessageId: 'm', delta: '{' });
good('agree/tool and parent again', run(look, tool.chunk({ toolCallName: 'look', parentMessageId: 'm', delta: '}' })));
bad('agree/another tool', "chunk toolCallName 'touch' does not match", 2, run(look, tool.chunk({ toolCallName: 'touch' })));
bad('agree/another parent', "chunk parentMessageId 'n' does not match", 2, run(look, tool.chunk({ parentMessageId: 'n' })));
bad('agree/a parent comes late', 'parentMessageId (absent)', 2, run(tool.chunk({ toolCallId: 'c', toolCallName: 'look' }), tool.chunk({ parentMessageId: 'n' })));
good('agree/a null parent is no parent', run(look, tool.chunk({ parentMessageId: null, delta: '}' })));
bad('agree/a first tool chunk without a name', 'must have a toolCallName', 1, run(tool.chunk({ toolCallId: 'c', delta: 'x' })));
bad('agree/a first tool chunk with neither', 'must have a toolCallId', 1, run(tool.chunk({ delta: 'x' })));
bad('agree/another call without a name', 'must have a toolCallName', 2, run(look, tool.chunk({ toolCallId: 'd' })));
good('agree/two lanes close in the order they opened', run(
  text.chunk({ messageId: 'm', delta: 'a', ...by('b') }), tool.chunk({ toolCallId: 'c', toolCallName: 'look' }),
  thought.chunk({ messageId: 'r', delta: 'x', ...by('a') }),
));
good('agree/a call by chunks below its message', run(text.whole('m'), look, tool.chunk({ delta: '}' }), tool.result('r', 'c')));
good('agree/a call by chunks below a message by chunks', run(text.chunk({ messageId: 'm', delta: 'x' }), look, tool.chunk({ delta: '}' })));
good('agree/an input beside', run(text.chunk({ messageId: 'u', delta: 'more' })), { input: { messages: [user('u', 'some')] } });
good('agree/a chunk onto an assistant of the input', run(look), { input: { messages: [assistant('m', { content: 'x' })] } });
