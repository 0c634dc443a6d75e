// Streams under the names by which the protocol's own conformance corpus knows such cases. The content is ours.

import {
  activity, assistant, by, call, category, custom, messages, raw, run, runError, runFinished, runStarted, secret, span,
  state, step, sub, text, thought, tool, user,
} from './events.mjs';

const { all, good, bad } = category('named');
export default all;

const ok = (name, ...events) => good(name, run(...events));
const no = (name, words, at, ...events) => bad(name, words, at, run(...events));
const piece = (delta, x) => text.chunk({ delta, ...x });

ok('activity-delta-missing-target-tolerated', activity.delta('ghost', [{ op: 'add', path: '/x', value: 1 }]));
ok('activity-replace-false-preserves', activity.snapshot('p', { n: 1 }), activity.snapshot('p', { n: 2 }, { replace: false }));
ok('activity-snapshot-then-delta', activity.snapshot('p', { n: 1 }), activity.delta('p', [{ op: 'replace', path: '/n', value: 2 }]));
no('chunk-conflicting-role-fatal', 'chunk role', 2, piece('a', { messageId: 'm', role: 'user' }), piece('b', { role: 'system' }));
no('chunk-conflicting-tool-name-fatal', 'chunk toolCallName', 2, tool.chunk({ toolCallId: 'c', toolCallName: 'a' }), tool.chunk({ toolCallName: 'b' }));
ok('chunk-expansion-assembles', piece('one ', { messageId: 'm' }), piece('two'));
ok('chunk-repeat-identical-accepted', piece('a', { messageId: 'm', role: 'user', name: 'n' }), piece('b', { messageId: 'm', role: 'user', name: 'n' }));
good('conformant-run-is-quiet', [runStarted({ protocolVersion: '1.0' }), ...text.whole('m'), runFinished()]);
no('content-without-start-fatal', 'No active text message', 1, text.content('m', 'x'));
good('current-peer-declares-protocol-version', [runStarted({ protocolVersion: '1.0' }), runFinished()]);
no('custom-closes-chunk-stream-fatal', 'First TEXT_MESSAGE_CHUNK', 3, piece('a', { messageId: 'm' }), custom('x.y', 1), piece('b'));
ok('encrypted-value-unknown-entity-tolerated', secret('message', 'ghost'), secret('tool-call', 'ghost'));
good('era-0-0-39 content and parent', [runStarted({ parentRunId: 'p', input: { threadId: 't', runId: 'r', messages: [user('u', [{ type: 'binary', mimeType: 'image/png', data: 'AA==' }])] } }), runFinished()]);
good('era-0-0-45 thinking', run({ type: 'THINKING_START' }, { type: 'THINKING_TEXT_MESSAGE_START' }, { type: 'THINKING_TEXT_MESSAGE_CONTENT', delta: 'x' }, { type: 'THINKING_TEXT_MESSAGE_END' }, { type: 'THINKING_END' }), { minted: true });
good('era-0-0-47 nulls', [runStarted(), tool.start('c', 'look', { parentMessageId: null, rawEvent: null }), tool.end('c'), runFinished({ result: null, outcome: null })]);
ok('era-0-0-57 no subagents', text.whole('m'), step.started('s'), step.finished('s'));
bad('event-after-run-finished-fatal', 'already finished', 5, [...run(text.whole('m')), custom('x', 1)]);
no('first-chunk-missing-id-fatal', 'must have a messageId', 1, piece('x'));
bad('first-event-not-run-started-fatal', "First event must be 'RUN_STARTED'", 0, text.whole('m'));
no('first-tool-chunk-missing-name-fatal', 'must have a toolCallName', 1, tool.chunk({ toolCallId: 'c', delta: '{}' }));
good('late-run-error-after-finished-run-continues', [...run(text.whole('m')), runError(), ...run(text.whole('n'))]);
no('malformed-known-field-fatal', 'delta', 2, text.start('m'), text.content('m', 5));
good('messages-snapshot-reconciles-by-id', run(messages([user('b', 'B'), user('c', 'C')])), { input: { messages: [user('a'), user('b')] } });
ok('metadata-merges-last-write-wins', text.start('m', { metadata: { a: 1, b: 1 } }), text.content('m', 'x', { metadata: { b: 2 } }), text.end('m', { metadata: { c: 3 } }));
bad('nested-run-started-fatal', 'while a run is still active', 1, [runStarted(), runStarted({ runId: 'inner' })]);
no('open-message-at-run-finished-fatal', 'text messages are still active', 3, text.start('m'), text.content('m', 'x'));
ok('open-metadata-preserved', text.start('m', { metadata: { any: { thing: [null] } } }), text.end('m'));
ok('open-object-patch-op-extras', state.snapshot({}), state.delta([{ op: 'add', path: '/a', value: 1, why: 'because' }]));
for (const [name, version] of [['newer', '1.9'], ['same', '1.0'], ['uninterpretable', 'latest']]) {
  good(`producer-declares-${name}-version`, [runStarted({ protocolVersion: version }), ...text.whole('m'), runFinished()]);
}
ok('raw-and-custom-pass-through', raw({ x: 1 }, { source: 's' }), custom('a.b', null));
ok('raw-does-not-close-chunk-stream', piece('a', { messageId: 'm' }), raw(1), piece('b'));
ok('reasoning-discipline-verified', span.start('s'), thought.whole('r'), span.end('s'));
no('reasoning-discipline-broken', 'No active reasoning message', 2, span.start('s'), thought.content('s', 'x'));
no('reasoning-message-wrong-role-fatal', 'role', 1, thought.start('r', { role: 'assistant' }));
ok('reasoning-span-and-message', span.start('r'), thought.whole('r'), span.end('r'));
ok('reopen-closed-message-appends', text.whole('m', 'a'), text.whole('m', 'b'));
good('run-error-first-run-continues', [runError(), ...run(text.whole('m'))]);
good('run-error-then-new-run-continues', [runStarted(), runError(), ...run(text.whole('m'))]);
good('run-finished-cancelled-outcome-accepted', [runStarted(), ...text.whole('m'), runFinished({ outcome: { type: 'cancelled' } })]);
good('run-finished-interrupt-outcome-accepted', [runStarted(), runFinished({ outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'r' }] } })]);
no('run-finished-with-active-subagent-fatal', 'subagents are still active', 2, sub.started('a'));
ok('state-delta-applies', state.snapshot({ n: 1 }), state.delta([{ op: 'replace', path: '/n', value: 2 }]));
ok('state-delta-unappliable-warns-and-keeps', state.snapshot({ n: 1 }), state.delta([{ op: 'remove', path: '/ghost' }]));
ok('state-delta-unknown-op-dropped', state.snapshot({ n: 1 }), state.delta([{ op: 'frobnicate', path: '/n' }, { op: 'add', path: '/m', value: 1 }]));
ok('state-falsy-snapshot-applies', state.snapshot(0));
ok('state-null-snapshot-applies', state.snapshot(null));
ok('state-snapshot-replaces', state.snapshot({ a: 1 }), state.snapshot({ b: 1 }));
no('step-finished-without-start-fatal', 'that was not started', 1, step.finished('s'));
no('subagent-attribution-mismatch-fatal', 'does not match', 2, text.start('m', by('a')), text.content('m', 'x', by('b')));
no('subagent-finished-unstarted-fatal', 'no active subagent', 1, sub.finished('a'));
no('subagent-started-missing-name-fatal', 'name', 1, { type: 'SUBAGENT_STARTED', subagentRunId: 'a' });
ok('subagent-terminal-closes-open-chunk-stream', sub.started('a'), piece('x', { messageId: 'm', ...by('a') }), sub.finished('a'));
ok('subagent-unannounced-attribution-accepted', text.whole('m', 'x', by('ghost')));
ok('tool-call-metadata-lands-on-the-call', tool.start('c', 'look', { metadata: { k: 1 } }), tool.end('c'));
ok('tool-call-triad-assembles', tool.start('c'), tool.args('c', '{"a"'), tool.args('c', ':1}'), tool.end('c'));
ok('tool-result-file-source-passes-through', tool.whole('c'), tool.result('r', 'c', [{ type: 'document', source: { type: 'file', value: 'h', provider: 'p' } }]));
ok('tool-result-parts-mint-tool-message', tool.whole('c'), tool.result('r', 'c', [{ type: 'text', text: 'x' }]));
ok('triad-assembles-message', text.start('m'), text.content('m', 'a'), text.content('m', 'b'), text.end('m'));
good('two-sequential-runs-accumulate', [...run(text.whole('m')), ...run(text.whole('n'))]);
no('unknown-enum-value-role-fatal', 'role', 1, text.start('m', { role: 'narrator' }));
ok('unknown-event-dropped', { type: 'SPARKLE', shine: 1 }, text.whole('m'));
bad('unknown-outcome-array-fatal', 'outcome', 1, [runStarted(), runFinished({ outcome: ['success'] })]);
good('unknown-outcome-stripped', [runStarted(), runFinished({ outcome: { type: 'evaporated' } })]);
ok('unknown-part-in-message-list', messages([user('u', [{ type: 'scent' }, { type: 'text', text: 'x' }])]));
ok('unknown-property-stripped', text.start('m', { sparkle: 1 }), text.end('m', { sparkle: 1 }));
good('truncated-run-reported-as-completed', [runStarted(), text.start('m'), text.content('m', 'half')]);
ok('multibyte split', text.start('m'), text.content('m', 'é'), text.content('m', '漢字'), text.end('m'));
ok('combining mark split', text.start('m'), text.content('m', 'e'), text.content('m', '\u0301'), text.end('m'));
ok('zwj split', text.start('m'), text.content('m', '👩\u200d'), text.content('m', '💻'), text.end('m'));
ok('wrong ids at the end', text.whole('m'), tool.result('r', 'nobody'), tool.whole('c', 'not json'));
good('a call of a history is answered', run(tool.result('r', 'c')), { input: { messages: [assistant('m', { toolCalls: [call('c')] })] } });
