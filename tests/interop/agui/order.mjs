// The order of events: each rule broken in each of its ways, beside what it allows. Names begin with the rule.

import {
  activity, assistant, by, call, category, custom, messages, raw, run, runError, runFinished, runStarted, secret, span,
  state, step, sub, text, thought, tool, user,
} from './events.mjs';

const { all, good, bad } = category('order');
export default all;

const ok = (name, ...events) => good(name, run(...events));
const no = (name, words, at, ...events) => bad(name, words, at, run(...events));

/** One event of each kind that needs nothing before it. */
const FREE = [
  text.start('m'), tool.start('c'), tool.result('r', 'c'), state.snapshot(1), state.delta([]), messages([]),
  activity.snapshot('a'), activity.delta('a', []), raw(1), custom('n', 1), step.started('s'), span.start('m'),
  thought.start('m'), secret('message', 'm'), sub.started('a'),
];

// ── V1 to V4: runs ─────────────────────────────────────────────────────────────────────────────────────────────────

for (const event of [...FREE, runFinished(), runError()]) {
  bad(`V1 ${event.type} after an error`, 'already errored', 2, [runStarted(), runError(), event]);
}
for (const event of [...FREE, runFinished()]) {
  bad(`V2 ${event.type} after the end`, 'already finished', 2, [runStarted(), runFinished(), event]);
}
for (const event of [...FREE, runFinished()]) {
  bad(`V3 ${event.type} first`, "First event must be 'RUN_STARTED'", 0, [event, runStarted(), runFinished()]);
}
good('V1 a run after an error', [runStarted(), ...text.whole('m'), runError(), ...run(text.whole('n'))]);
good('V1 a run after an error in the middle of things', [
  runStarted(), step.started('s'), sub.started('a'), text.start('m'), text.content('m', 'half'), tool.start('c'), span.start('r'),
  thought.start('r'), runError(), ...run(text.whole('m', 'again'), tool.whole('c'), step.started('s'), step.finished('s')),
]);
bad('V1 a second error', 'already errored', 2, [runStarted(), runError(), runError()]);
bad('V1 after an error that came first', 'already errored', 1, [runError(), text.start('m')]);
good('V2 an error after the end', [...run(text.whole('m')), runError()]);
good('V2 an error after the end, then a run', [...run(text.whole('m')), runError(), ...run(text.whole('n'))]);
bad('V2 an error after the end, then another', 'already errored', 3, [runStarted(), runFinished(), runError(), runError()]);
bad('V2 an error after the end, then an end', 'already errored', 3, [runStarted(), runFinished(), runError(), runFinished()]);
good('V2 an unknown event after the end', [...run(text.whole('m')), { type: 'META' }]);
good('V2 three runs', [...run(text.whole('m')), ...run(text.whole('n')), ...run(text.whole('o'))]);
good('V2 runs of other ids', [runStarted({ runId: 'x' }), runFinished({ runId: 'y', threadId: 'z' }), runStarted({ threadId: 'q' }), runFinished()]);
good('V3 an error first', [runError()]);
good('V3 an error first, then a run', [runError(), ...run(text.whole('m'))]);
good('V3 an unknown event first', [{ type: 'META' }, ...run()]);
good('V3 nothing but a start', [runStarted()]);
bad('V4 a start in a run', 'while a run is still active', 1, [runStarted(), runStarted()]);
bad('V4 a start in a run, of another id', 'while a run is still active', 4, [runStarted(), ...text.whole('m'), runStarted({ runId: 'r2' }), runFinished()]);
bad('V4 a start in the second run', 'while a run is still active', 3, [...run(), runStarted(), runStarted()]);
bad('V4 a start in the run after an error', 'while a run is still active', 3, [runStarted(), runError(), runStarted(), runStarted()]);
bad('V4 a start in the run after an error that came first', 'while a run is still active', 2, [runError(), runStarted(), runStarted()]);
good('V4 no end at all', [runStarted(), ...text.whole('m')]);
good('V4 no end at all, open things', [runStarted(), text.start('m'), text.content('m', 'cut'), tool.start('c'), step.started('s'), sub.started('a')]);

// ── V5 to V9: nulls and outcomes ───────────────────────────────────────────────────────────────────────────────────
// The shapes say all of these, and say so first; what is left is that a rule about order does not come before them.

bad('V5 a null tag before the order is judged', 'subagentRunId', 2, [runStarted(), runFinished(), text.start('m', by(null))]);
bad('V5 a null tag on the first event', 'subagentRunId', 0, [text.start('m', by(null))]);
for (const field of ['description', 'parentSubagentRunId', 'parentToolCallId', 'parentMessageId']) {
  no(`V6 ${field} null`, field, 1, sub.started('a', { [field]: null }));
}
no('V6 outcome null', 'outcome', 2, sub.started('a'), sub.finished('a', { outcome: null }));
no('V6 code null', 'code', 2, sub.started('a'), sub.error('a', { code: null }));
ok('V7 an unknown outcome', sub.started('a'), sub.finished('a', { outcome: { type: 'late' } }));
no('V7 an outcome that is no object', 'outcome', 2, sub.started('a'), sub.finished('a', { outcome: 'success' }));
no('V8 ids null', 'interruptIds', 2, sub.started('a'), sub.finished('a', { outcome: { type: 'suspended', interruptIds: null } }));
no('V8 an id that is null', 'interruptIds', 2, sub.started('a'), sub.finished('a', { outcome: { type: 'suspended', interruptIds: ['i', null] } }));
bad('V9 a null tag on an interrupt', 'subagentRunId', 1, [runStarted(), runFinished({ outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'x', subagentRunId: null }] } })]);
good('V9 a tag on an interrupt', [runStarted(), runFinished({ outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'x', subagentRunId: 'a' }] } })]);

// ── V10 to V12, V17, V18: things that open and close ───────────────────────────────────────────────────────────────

const PAIRED = [
  ['V10', 'V11', 'text', text, (id, x) => text.start(id, x), (id, x) => text.content(id, 'w', x)],
  ['V12', 'V12', 'tool', tool, (id, x) => tool.start(id, 'look', x), (id, x) => tool.args(id, 'w', x)],
  ['V17', 'V18', 'reasoning', thought, (id, x) => thought.start(id, x), (id, x) => thought.content(id, 'w', x)],
];
for (const [twice, missing, name, { end }, start, content] of PAIRED) {
  no(`${twice} ${name} start of an open one`, 'already in progress', 2, start('m'), start('m'));
  no(`${twice} ${name} start of an open one after content`, 'already in progress', 3, start('m'), content('m'), start('m'));
  no(`${twice} ${name} start of an open one, tagged`, 'already in progress', 2, start('m', by('a')), start('m', by('b')));
  ok(`${twice} ${name} two at once`, start('m'), start('n'), content('m'), content('n'), end('m'), content('n'), end('n'));
  ok(`${twice} ${name} opened again`, start('m'), content('m'), end('m'), start('m'), content('m'), end('m'));
  ok(`${twice} ${name} without content`, start('m'), end('m'));
  no(`${missing} ${name} content before any start`, 'No active', 1, content('m'));
  no(`${missing} ${name} content of another`, 'No active', 2, start('m'), content('n'));
  no(`${missing} ${name} content after the end`, 'No active', 3, start('m'), end('m'), content('m'));
  no(`${missing} ${name} end before any start`, 'No active', 1, end('m'));
  no(`${missing} ${name} end twice`, 'No active', 3, start('m'), end('m'), end('m'));
  no(`${missing} ${name} end of another`, 'No active', 2, start('m'), end('n'));
  bad(`${missing} ${name} content in the next run`, 'No active', 4, [runStarted(), start('m'), runError(), runStarted(), content('m')]);
  bad(`${missing} ${name} content of a message of the input`, 'No active', 1, run(content('m')), { input: { messages: [user('m')] } });
  no(`${missing} ${name} content of a message of a snapshot`, 'No active', 2, messages([assistant('m', { toolCalls: [call('m')] })]), content('m'));
  ok(`${missing} ${name} onto a message of a snapshot`, messages([assistant('m', { content: 'x', toolCalls: [call('m')] })]), start('m'), content('m'), end('m'));
}
ok('V10 one id as text, call, thought, span and activity', text.start('m'), tool.start('m'), thought.start('m'), span.start('m'), activity.snapshot('k'), text.end('m'), tool.end('m'), thought.end('m'), span.end('m'));
no('V17 a span opened twice', 'A reasoning span', 2, span.start('m'), span.start('m'));
ok('V17 a span opened again', span.start('m'), span.end('m'), span.start('m'), span.end('m'));
ok('V17 a span and a message of one id', span.start('m'), thought.whole('m'), span.end('m'));
ok('V17 a message outlives its span', span.start('m'), thought.start('m'), span.end('m'), thought.content('m', 'x'), thought.end('m'));
ok('V17 a message without a span', thought.whole('m'));
no('V18 a span closed by the wrong id', 'No active reasoning span', 2, span.start('m'), span.end('n'));
no('V18 a span closed twice', 'No active reasoning span', 3, span.start('m'), span.end('m'), span.end('m'));
no('V18 a message closed by its span', 'No active reasoning message', 4, span.start('m'), thought.start('m'), span.end('m'), thought.end('n'));
no('V18 a span is no message', 'No active reasoning message', 2, span.start('m'), thought.content('m', 'x'));
no('V18 a message is no span', 'No active reasoning span', 2, thought.start('m'), span.end('m'));
no('V18 a text is no thought', 'No active reasoning message', 2, text.start('m'), thought.content('m', 'x'));
no('V11 a thought is no text', 'No active text message', 2, thought.start('m'), text.content('m', 'x'));
ok('V12 results need no call', tool.result('r', 'nobody'), tool.result('r', 'nobody'));
ok('V12 a result before the end', tool.start('c'), tool.result('r', 'c'), tool.end('c'));
ok('V12 arguments that are no JSON', tool.whole('c', '{oops'));

// ── V13 and V14: a call belongs to the message that carries it ─────────────────────────────────────────────────────

const child = (x) => tool.start('c', 'look', { parentMessageId: 'm', ...x });
const theirs = text.whole('m', 'x', by('a'));
ok('V13 the tag of its parent', theirs, child(by('a')), tool.end('c'));
ok('V13 no tag inherits', theirs, child(), tool.args('c', 'x', by('a')), tool.end('c', by('a')));
no('V13 inherited, then another tag', "does not match the tool call 'c'", 5, theirs, child(), tool.args('c', 'x', by('b')));
no('V13 another tag than its parent', "does not match its parent message 'm' owner 'a'", 4, theirs, child(by('b')));
no('V13 a tag below the parent agent', "owner '(the parent agent)'", 4, text.whole('m'), child(by('a')));
no('V13 the empty tag below the parent agent', "owner '(the parent agent)'", 4, text.whole('m'), child(by('')));
ok('V13 an unknown parent', child(by('a')), tool.end('c'));
no('V13 below an open message', 'does not match its parent', 2, text.start('m', by('a')), child(by('b')));
no('V13 below a message of a snapshot', 'does not match its parent', 2, messages([assistant('m', by('a'))]), child(by('b')));
no('V13 below an untagged message of a snapshot', 'does not match its parent', 2, messages([assistant('m')]), child(by('b')));
bad('V13 below a message of the input echoed', 'does not match its parent', 1, [runStarted({ input: { threadId: 't', runId: 'r', messages: [assistant('m', by('a'))] } }), child(by('b'))]);
good('V13 below a message of the input not echoed', run(child(by('b')), tool.end('c')), { input: { messages: [assistant('m', by('a'))] } });
no('V13 below the message of a result', 'does not match its parent', 2, tool.result('m', 'x', 'y', by('a')), child(by('b')));
ok('V13 a thought is no parent', thought.whole('m', 'x', by('a')), child(by('b')), tool.end('c'));
ok('V13 an activity is no parent', activity.snapshot('m', {}, by('a')), child(by('b')), tool.end('c'));
ok('V13 a call is no parent', tool.whole('m', '', by('a')), child(by('b')), tool.end('c'));
no('V13 chunks too', 'does not match its parent', 4, theirs, tool.chunk({ toolCallId: 'c', toolCallName: 'look', parentMessageId: 'm', ...by('b') }));
no('V13 the empty parent is a parent too', 'does not match its parent', 4, text.whole('', 'x', by('a')), tool.start('c', 'look', { parentMessageId: '', ...by('b') }));
no('V14 opened again below another owner', "tool call 'c' is owned by 'b' but its parent message 'm' is owned by 'a'", 6, tool.start('c', 'look', by('b')), tool.end('c'), theirs, child());
no('V14 opened again below the parent agent', "owned by '(the parent agent)'", 6, tool.start('c', 'look', by('b')), tool.end('c'), text.whole('m'), child());
no('V14 opened again, of the parent agent', "tool call 'c' is owned by '(the parent agent)'", 6, tool.start('c'), tool.end('c'), theirs, child());
ok('V14 opened again below the same owner', tool.start('c', 'look', by('a')), tool.end('c'), theirs, child(), tool.end('c'));
ok('V14 opened again below an unknown message', tool.start('c', 'look', by('b')), tool.end('c'), child(), tool.end('c'));
no('V14 a call of a snapshot below another owner', 'A tool call belongs', 5, messages([assistant('n', { toolCalls: [call('c')], ...by('b') })]), theirs, child());
no('V14 opened again, tagged as neither', 'does not match its parent', 6, tool.start('c', 'look', by('b')), tool.end('c'), theirs, child(by('b')));

// ── V15 and V16: steps ─────────────────────────────────────────────────────────────────────────────────────────────

no('V15 twice', 'is already active', 2, step.started('s'), step.started('s'));
no('V15 twice in a subagent', "in subagent 'a'", 2, step.started('s', by('a')), step.started('s', by('a')));
ok('V15 of two owners', step.started('s'), step.started('s', by('a')), step.started('s', by('')), step.finished('s', by('')), step.finished('s'), step.finished('s', by('a')));
ok('V15 again', step.started('s'), step.finished('s'), step.started('s'), step.finished('s'));
ok('V15 crossing', step.started('s'), step.started('t'), step.finished('s'), step.finished('t'));
no('V16 not started', 'that was not started', 1, step.finished('s'));
no('V16 twice', 'that was not started', 3, step.started('s'), step.finished('s'), step.finished('s'));
no('V16 by a subagent', "attributed to subagent 'a': that step is open under the parent agent", 2, step.started('s'), step.finished('s', by('a')));
no('V16 by the parent agent', "attributed to the parent agent: that step is open under subagent 'a'", 2, step.started('s', by('a')), step.finished('s'));
no('V16 by another subagent', "open under subagent 'a'", 2, step.started('s', by('a')), step.finished('s', by('b')));
no('V16 by the empty tag', 'open under the parent agent', 2, step.started('s'), step.finished('s', by('')));
bad('V16 in the next run', 'that was not started', 4, [runStarted(), step.started('s'), runError(), runStarted(), step.finished('s')]);

// ── V19: what is continued belongs to whoever began it ─────────────────────────────────────────────────────────────

for (const [, , name, { end }, start, content] of PAIRED) {
  const label = name === 'text' ? 'message' : name === 'tool' ? 'tool call' : 'reasoning message';
  no(`V19 ${name} content`, `does not match the ${label} 'm' opener's subagent 'a'`, 2, start('m', by('a')), content('m', by('b')));
  no(`V19 ${name} end`, 'does not match', 2, start('m', by('a')), end('m', by('b')));
  no(`V19 ${name} content of the parent agent`, "'(the parent agent)'", 2, start('m'), content('m', by('a')));
  no(`V19 ${name} content of the empty tag`, "opener's subagent ''", 2, start('m', by('')), content('m', by('a')));
  no(`V19 ${name} opened again`, 'does not match', 3, start('m', by('a')), end('m'), start('m', by('b')));
  no(`V19 ${name} opened again, of the parent agent`, 'does not match', 3, start('m'), end('m'), start('m', by('a')));
  ok(`V19 ${name} untagged`, start('m', by('a')), content('m'), end('m'), start('m'), content('m', by('a')), end('m', by('a')));
  good(`V19 ${name} is forgotten in the next run`, [...run(start('m', by('a')), end('m')), ...run(start('m', by('b')), end('m'))]);
  good(`V19 ${name} of another run's error`, [runStarted(), start('m', by('a')), runError(), ...run(start('m', by('b')), end('m'))]);
}
no('V19 a span', 'does not match the reasoning message', 2, span.start('m', by('a')), span.end('m', by('b')));
no('V19 a message under another tag than its span', 'does not match', 2, span.start('m', by('a')), thought.start('m', by('b')));
no('V19 a span under another tag than its message', 'does not match', 4, thought.whole('m', 'x', by('a')), span.start('m', by('b')));
ok('V19 a message of another id than its span', span.start('s', by('a')), thought.whole('m', 'x', by('b')), span.end('s', by('a')));
no('V19 an activity', "does not match the activity 'm' opener's subagent 'a'", 2, activity.snapshot('m', {}, by('a')), activity.delta('m', [], by('b')));
no('V19 an activity of the parent agent', "'(the parent agent)'", 2, activity.snapshot('m'), activity.delta('m', [], by('a')));
ok('V19 an activity, untagged', activity.snapshot('m', {}, by('a')), activity.delta('m', []));
ok('V19 an unknown activity', activity.delta('m', [], by('a')), activity.delta('m', [], by('b')));
ok('V19 an activity replaced is another owner', activity.snapshot('m', {}, by('a')), activity.snapshot('m', {}, by('b')), activity.delta('m', [], by('b')));
no('V19 an activity replaced is no longer the old owner', "subagent 'b'", 3, activity.snapshot('m', {}, by('a')), activity.snapshot('m', {}, by('b')), activity.delta('m', [], by('a')));
no('V19 an activity replaced untagged is the parent agent', "'(the parent agent)'", 3, activity.snapshot('m', {}, by('a')), activity.snapshot('m', {}), activity.delta('m', [], by('a')));
no('V19 an activity not replaced keeps its owner', "subagent 'a'", 3, activity.snapshot('m', {}, by('a')), activity.snapshot('m', {}, by('b', { replace: false })), activity.delta('m', [], by('b')));
no('V19 a first activity that does not replace has an owner', "subagent 'a'", 2, activity.snapshot('m', {}, by('a', { replace: false })), activity.delta('m', [], by('b')));
no('V19 a value of a text', "does not match the message 'm'", 4, text.whole('m', 'x', by('a')), secret('message', 'm', 'v', by('b')));
no('V19 a value of a thought', "does not match the message 'm'", 4, thought.whole('m', 'x', by('a')), secret('message', 'm', 'v', by('b')));
no('V19 a value of a span', "does not match the message 'm'", 3, span.start('m', by('a')), span.end('m'), secret('message', 'm', 'v', by('b')));
no('V19 a value of a call', "does not match the tool call 'm'", 4, tool.whole('m', 'x', by('a')), secret('tool-call', 'm', 'v', by('b')));
no('V19 a value of a call of the parent agent', "'(the parent agent)'", 4, tool.whole('m'), secret('tool-call', 'm', 'v', by('b')));
no('V19 a value of a result', 'does not match', 2, tool.result('m', 'c', 'x', by('a')), secret('message', 'm', 'v', by('b')));
ok('V19 a value of nobody', secret('message', 'm', 'v', by('a')), secret('tool-call', 'm', 'v', by('b')));
ok('V19 a value of the other kind', text.whole('m', 'x', by('a')), secret('tool-call', 'm', 'v', by('b')));
ok('V19 a value of an activity', activity.snapshot('m', {}, by('a')), secret('message', 'm', 'v', by('b')));
ok('V19 a value, text before thought', text.whole('m', 'x', by('a')), thought.whole('m', 'x', by('b')), secret('message', 'm', 'v', by('a')));
no('V19 a value, text before thought, not the thought', "subagent 'a'", 7, text.whole('m', 'x', by('a')), thought.whole('m', 'x', by('b')), secret('message', 'm', 'v', by('b')));
ok('V19 a result of another than the call', tool.whole('c', 'x', by('a')), tool.result('r', 'c', 'x', by('b')));
ok('V19 a result takes a message over', text.whole('m', 'x', by('a')), tool.result('m', 'c', 'x', by('b')), text.start('m', by('b')), text.end('m'));
no('V19 a result takes a message over from its owner', "subagent 'b'", 5, text.whole('m', 'x', by('a')), tool.result('m', 'c', 'x', by('b')), text.start('m', by('a')));
no('V19 a later result is the owner', "subagent 'b'", 3, tool.result('m', 'c', 'x', by('a')), tool.result('m', 'c', 'x', by('b')), text.start('m', by('a')));
no('V19 an untagged result is the parent agent', "'(the parent agent)'", 3, tool.result('m', 'c', 'x', by('a')), tool.result('m', 'c', 'x'), text.start('m', by('a')));
no('V19 a result takes an open message over', "subagent 'b'", 3, text.start('m', by('a')), tool.result('m', 'c', 'x', by('b')), text.content('m', 'y', by('a')));
for (const [how, wrap, at] of [
  ['a snapshot', (list) => [runStarted(), messages(list)], 2],
  ['an echoed input', (list) => [runStarted({ input: { threadId: 't', runId: 'r', messages: list } })], 1],
]) {
  const rule = (name, words, list, ...events) => bad(`V19 ${how}: ${name}`, words, at + events.length - 1, [...wrap(list), ...events, runFinished()]);
  const fine = (name, list, ...events) => good(`V19 ${how}: ${name}`, [...wrap(list), ...events, runFinished()]);
  rule('a text', "subagent 'a'", [assistant('m', by('a'))], text.start('m', by('b')));
  rule('a text of the parent agent', "'(the parent agent)'", [assistant('m')], text.start('m', by('b')));
  rule('a user', "'(the parent agent)'", [user('m')], text.start('m', by('b')));
  rule('a call', "subagent 'a'", [assistant('m', { toolCalls: [call('c')], ...by('a') })], tool.start('c', 'look', by('b')));
  rule('a thought', "subagent 'a'", [{ id: 'm', role: 'reasoning', content: 'x', ...by('a') }], thought.start('m', by('b')));
  rule('a span', "subagent 'a'", [{ id: 'm', role: 'reasoning', content: 'x', ...by('a') }], span.start('m', by('b')));
  rule('an activity', "subagent 'a'", [{ id: 'm', role: 'activity', activityType: 'P', content: {}, ...by('a') }], activity.delta('m', [], by('b')));
  rule('a value', "subagent 'a'", [{ id: 'm', role: 'reasoning', content: 'x', ...by('a') }], secret('message', 'm', 'v', by('b')));
  rule('a tool message', "subagent 'a'", [{ id: 'm', role: 'tool', toolCallId: 'c', content: 'x', ...by('a') }], text.start('m', by('b')));
  fine('a thought is no text', [{ id: 'm', role: 'reasoning', content: 'x', ...by('a') }], text.start('m', by('b')), text.end('m'));
  fine('the same tag', [assistant('m', by('a'))], text.start('m', by('a')), text.content('m', 'x'), text.end('m', by('a')));
  fine('the last of two', [assistant('m', by('a')), assistant('m', by('b'))], text.start('m', by(how === 'a snapshot' ? 'b' : 'a')), text.end('m'));
}
ok('V19 a snapshot takes an open message over', text.start('m', by('a')), messages([assistant('m', by('b'))]), text.content('m', 'x', by('b')), text.end('m'));
no('V19 a snapshot takes an open message from its owner', "subagent 'b'", 3, text.start('m', by('a')), messages([assistant('m', by('b'))]), text.content('m', 'x', by('a')));
no('V19 a snapshot without the message keeps the owner', "subagent 'a'", 5, text.whole('m', 'x', by('a')), messages([]), text.start('m', by('b')));
no('V19 a snapshot gives an open call to the parent agent', "'(the parent agent)'", 3, tool.start('c', 'look', by('a')), messages([assistant('m', { toolCalls: [call('c')] })]), tool.args('c', 'x', by('a')));
good('V19 the input, not echoed, has no owners', run(text.start('m', by('b')), text.end('m')), { input: { messages: [assistant('m', by('a'))] } });
ok('V19 state is nobody\'s', state.snapshot(1, by('a')), state.snapshot(2, by('b')), state.delta([], by('c')));

// ── V20 to V23: subagents ──────────────────────────────────────────────────────────────────────────────────────────

no('V20 without an id', 'subagentRunId', 1, { type: 'SUBAGENT_STARTED', name: 'n' });
no('V20 without a name', 'name', 1, { type: 'SUBAGENT_STARTED', subagentRunId: 'a' });
ok('V20 the empty id and name', sub.started('', { name: '' }), sub.finished(''));
no('V21 active', 'is already active', 2, sub.started('a'), sub.started('a'));
no('V21 finished', 'has already finished in this run', 3, sub.started('a'), sub.finished('a'), sub.started('a'));
no('V21 suspended', 'has already finished in this run', 3, sub.started('a'), sub.finished('a', { outcome: { type: 'suspended' } }), sub.started('a'));
no('V21 failed', 'has already finished in this run', 3, sub.started('a'), sub.error('a'), sub.started('a'));
good('V21 in the next run', [...run(sub.started('a'), sub.finished('a')), ...run(sub.started('a'), sub.error('a'))]);
good('V21 in the run after an error', [runStarted(), sub.started('a'), runError(), ...run(sub.started('a'), sub.finished('a'))]);
ok('V21 the name may repeat', sub.started('a'), sub.started('b'), sub.finished('a'), sub.finished('b'));
no('V22 never started', "parentSubagentRunId 'p' has not been started", 1, sub.started('a', { parentSubagentRunId: 'p' }));
no('V22 itself', 'has not been started', 1, sub.started('a', { parentSubagentRunId: 'a' }));
ok('V22 active', sub.started('p'), sub.started('a', { parentSubagentRunId: 'p' }), sub.finished('a'), sub.finished('p'));
ok('V22 finished', sub.started('p'), sub.finished('p'), sub.started('a', { parentSubagentRunId: 'p' }), sub.finished('a'));
ok('V22 the parent ends first', sub.started('p'), sub.started('a', { parentSubagentRunId: 'p' }), sub.finished('p'), sub.finished('a'));
bad('V22 in the run before', 'has not been started', 5, [...run(sub.started('p'), sub.finished('p')), runStarted(), sub.started('a', { parentSubagentRunId: 'p' })]);
no('V23 finished, not active', 'no active subagent', 1, sub.finished('a'));
no('V23 failed, not active', 'no active subagent', 1, sub.error('a'));
no('V23 finished twice', 'no active subagent', 3, sub.started('a'), sub.finished('a'), sub.finished('a'));
no('V23 failed after it finished', 'no active subagent', 3, sub.started('a'), sub.finished('a'), sub.error('a'));
no('V23 failed without words', 'message', 2, sub.started('a'), { type: 'SUBAGENT_ERROR', subagentRunId: 'a' });
ok('V23 tags need no subagent', text.whole('m', 'x', by('ghost')), step.started('s', by('ghost')), step.finished('s', by('ghost')));
ok('V23 tags of one that is over', sub.started('a'), sub.finished('a'), text.whole('m', 'x', by('a')));
ok('V23 a subagent leaves a message open', sub.started('a'), text.start('m', by('a')), sub.finished('a'), text.end('m'));

// ── V24: what is open at the end ───────────────────────────────────────────────────────────────────────────────────

const OPEN = [
  ['steps', step.started('s')], ['text messages', text.start('m')], ['reasoning messages', thought.start('r')],
  ['reasoning spans', span.start('p')], ['tool calls', tool.start('c')], ['subagents', sub.started('a')],
];
for (const [n, [what, opener]] of OPEN.entries()) {
  no(`V24 ${what}`, `while ${what} are still active`, 2, opener);
  const rest = OPEN.slice(n).map(([, event]) => event).reverse();
  no(`V24 ${what} are named first`, `while ${what} are still active`, 1 + rest.length, ...rest);
  good(`V24 ${what} at an error`, [runStarted(), opener, runError()]);
  bad(`V24 ${what}, cancelled`, `while ${what} are still active`, 2, [runStarted(), opener, runFinished({ outcome: { type: 'cancelled' } })]);
}
no('V24 two texts', 'still active: m, n', 3, text.start('m'), text.start('n'));
no('V24 a step of a subagent', "s (subagent 'a')", 3, step.started('s', by('a')), step.started('t'));
bad('V24 in the second run', 'text messages are still active', 4, [...run(), runStarted(), text.start('m'), runFinished()]);
good('V24 nothing of a run that broke', [runStarted(), ...OPEN.map(([, event]) => event), runError(), runStarted(), runFinished()]);
