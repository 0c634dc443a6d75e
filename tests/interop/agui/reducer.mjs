// What events leave behind: messages, state, metadata, patches. All of these resolve; what counts is the document.

import {
  activity, assistant, by, call, category, custom, messages, raw, run, runError, runFinished, runStarted, secret, span,
  state, step, sub, text, thought, tool, user, verbatim,
} from './events.mjs';

const { all, good, bad } = category('reducer');
export default all;

const ok = (name, ...events) => good(name, run(...events));
const from = (name, input, ...events) => good(name, run(...events), { input });
const seen = { messages: [user('u', 'some'), assistant('m', { content: 'more' })] };
const echo = (list) => runStarted({ input: { threadId: 't', runId: 'r', messages: list, state: { not: 'applied' } } });
const plan = (id, x) => ({ id, role: 'activity', activityType: 'PLAN', content: { done: 0 }, ...x });
const idea = (id, x) => ({ id, role: 'reasoning', content: 'hm', ...x });

// ── RUN_STARTED ────────────────────────────────────────────────────────────────────────────────────────────────────

good('start/appends what is unknown', [echo([user('u', 'other'), user('v'), plan('p'), idea('r')]), runFinished()], { input: seen });
good('start/appends one id once', [echo([user('v', 'first'), user('v', 'second')]), runFinished()]);
good('start/of the second run', [...run(text.whole('m')), echo([user('m', 'not'), user('w')]), runFinished()]);
good('start/state is not applied', [echo([]), runFinished()], { input: { state: { kept: 1 } } });
good('start/nothing', [runStarted(), runFinished()], { input: { messages: [user('u'), plan('p')], state: { n: [1] } } });

// ── Text ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ok('text/role, name and tag', text.start('m', by('a', { role: 'user', name: 'Ann' })), text.end('m'));
ok('text/an empty name and tag', text.start('m', by('', { name: '' })), text.end('m'));
from('text/an existing message keeps role, name and tag', seen, text.start('u', { role: 'system', name: 'N' }), text.content('u', '+'), text.end('u'));
from('text/onto a message tagged by nobody', seen, text.start('m', by('a')), text.content('m', '+'), text.end('m'));
from('text/onto parts', { messages: [user('u', [{ type: 'text', text: 'x' }])] }, text.start('u'), text.content('u', 'new'), text.end('u'));
from('text/onto parts, an empty delta', { messages: [user('u', [])] }, text.start('u'), text.content('u', ''), text.end('u'));
from('text/onto an assistant without content', { messages: [assistant('m', { toolCalls: [call('c')] })] }, text.whole('m'));
from('text/onto a tool message', { messages: [{ id: 'm', role: 'tool', toolCallId: 'c', content: 'x' }] }, text.whole('m'));
from('text/onto a thought', { messages: [idea('m')] }, text.whole('m'));
from('text/onto an activity', { messages: [plan('m')] }, text.whole('m', 'x', { metadata: { k: 1 } }));
from('text/two messages of one id', { messages: [user('m', 'a'), user('m', 'b')] }, text.whole('m', '+'));
ok('text/onto an activity that came meanwhile', text.start('m'), activity.snapshot('m'), text.content('m', 'x'), text.end('m'));
ok('text/dropped by a snapshot meanwhile', text.start('m'), text.content('m', 'x'), messages([user('u')]), text.content('m', 'y'), text.end('m'));
ok('text/replaced by a snapshot meanwhile', text.start('m'), text.content('m', 'x'), messages([user('m', 'other')]), text.content('m', 'y'), text.end('m'));
ok('text/long', text.start('m'), ...Array.from({ length: 60 }, (_, n) => text.content('m', `${n} `)), text.end('m'));

// ── Tools ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ok('tool/no parent', tool.whole('c'));
ok('tool/no parent, tagged', tool.start('c', 'look', by('a')), tool.end('c'));
ok('tool/below its message', text.whole('m'), tool.start('c', 'look', { parentMessageId: 'm' }), tool.args('c', '{"a":'), tool.args('c', '1}'), tool.end('c'));
ok('tool/below an open message', text.start('m'), tool.start('c', 'look', { parentMessageId: 'm' }), text.content('m', 'x'), tool.end('c'), text.end('m'));
ok('tool/below an unknown message', tool.start('c', 'look', { parentMessageId: 'p' }), tool.end('c'), tool.start('d', 'look', { parentMessageId: 'p' }), tool.end('d'));
ok('tool/below an unknown message, tagged', tool.start('c', 'look', by('a', { parentMessageId: 'p' })), tool.end('c'));
ok('tool/below the empty message', tool.start('c', 'look', { parentMessageId: '' }), tool.end('c'));
from('tool/below a user', seen, tool.start('c', 'look', { parentMessageId: 'u' }), tool.end('c'));
from('tool/below a user, tagged', seen, tool.start('c', 'look', by('a', { parentMessageId: 'u' })), tool.end('c'));
from('tool/below an activity', { messages: [plan('p')] }, tool.start('c', 'look', { parentMessageId: 'p' }), tool.end('c'));
from('tool/a message is called like the call', { messages: [user('c')] }, tool.start('c', 'look', by('a')), tool.args('c', 'x'), tool.end('c'));
from('tool/an assistant is called like the call', { messages: [assistant('c')] }, tool.start('c', 'look', by('a')), tool.end('c'));
from('tool/an assistant without calls', seen, tool.start('c', 'look', { parentMessageId: 'm' }), tool.end('c'));
from('tool/known, renamed', { messages: [assistant('m', { toolCalls: [call('c', 'look', '{"a"')] })] }, tool.start('c', 'touch'), tool.args('c', ':1}'), tool.end('c'));
from('tool/known, elsewhere', { messages: [assistant('m', { toolCalls: [call('c')] }), assistant('n')] }, tool.start('c', 'look', { parentMessageId: 'n' }), tool.end('c'));
from('tool/known, tagged', { messages: [assistant('m', { toolCalls: [call('c')] })] }, tool.start('c', 'look', by('a')), tool.end('c'));
ok('tool/opened again', tool.whole('c', '{'), tool.whole('c', '}'));
ok('tool/dropped by a snapshot', tool.start('c'), messages([]), tool.args('c', 'x'), tool.end('c'));
ok('tool/two at once', tool.start('c'), tool.start('d'), tool.args('d', '1'), tool.args('c', '2'), tool.end('c'), tool.end('d'));

// ── Results ────────────────────────────────────────────────────────────────────────────────────────────────────────

ok('result/after its call', tool.whole('c'), text.whole('m'), tool.result('r', 'c'));
ok('result/after the results before it', tool.whole('c'), tool.start('d', 'look', { parentMessageId: 'c' }), tool.end('d'), text.whole('m'), tool.result('r1', 'd'), tool.result('r2', 'c'), tool.result('r3', 'd'));
ok('result/of nobody', text.whole('m'), tool.result('r', 'c'), text.whole('n'));
ok('result/tagged', tool.whole('c'), tool.result('r', 'c', 'x', by('a', { metadata: { k: 1 }, role: 'tool' })));
ok('result/parts', tool.whole('c'), tool.result('r', 'c', [{ type: 'text', text: 'x' }, { type: 'image', source: { type: 'file', value: 'f' } }]));
ok('result/of an id that exists', tool.whole('c'), text.whole('r'), tool.result('r', 'c'), text.start('r'), text.content('r', '+'), text.end('r'));
ok('result/twice', tool.whole('c'), tool.result('r', 'c', 'a'), tool.result('r', 'c', 'b'));
from('result/of a call of the input', { messages: [user('u'), assistant('m', { toolCalls: [call('c')] }), user('v')] }, tool.result('r', 'c'));
from('result/past a stranger\'s result', { messages: [assistant('m', { toolCalls: [call('c')] }), { id: 'x', role: 'tool', toolCallId: 'z', content: '' }, user('v')] }, tool.result('r', 'c'));
ok('result/a text grows on it', tool.result('r', 'c', [{ type: 'text', text: 'x' }]), text.whole('r', 'words'));
ok('result/empty words', tool.whole('c'), tool.result('', 'c', ''));

// ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

for (const value of [null, false, 0, '', [], {}, 'x', 1.5, { a: { b: null } }]) {
  from(`state/snapshot ${JSON.stringify(value)}`, { state: { old: 1 } }, state.snapshot(value));
  from(`state/snapshot ${JSON.stringify(value)}, then a patch`, { state: { old: 1 } }, state.snapshot(value), state.delta([{ op: 'add', path: '/n', value: 1 }]));
}
from('state/does not merge', { state: { a: 1 } }, state.snapshot({ b: 1 }), state.snapshot({ c: 1 }));
from('state/a patch of the input\'s state', { state: { a: 1 } }, state.delta([{ op: 'replace', path: '/a', value: 2 }]));
ok('state/a patch of none', state.delta([{ op: 'add', path: '/a', value: 2 }]));
for (const value of [false, 0, '', [], 'x']) from(`state/initial ${JSON.stringify(value)}`, { state: value }, state.delta([{ op: 'add', path: '', value: [1] }]));
good('state/kept over runs', [...run(state.snapshot({ a: 1 })), ...run(state.delta([{ op: 'add', path: '/b', value: 1 }]))]);
good('state/kept by an error', [runStarted(), state.snapshot({ a: 1 }), runError()]);

// ── Patches ────────────────────────────────────────────────────────────────────────────────────────────────────────

const DOC = { a: 1, b: { c: [1, 2, 3] }, l: [1, [2], { x: 1 }], '': 'empty', 'a/b': 's', 'm~n': 't', n: null, '0': 'zero', e: {} };
const op = (kind, path, x) => ({ op: kind, path, ...x });
const add = (path, value) => op('add', path, { value });
const replace = (path, value) => op('replace', path, { value });
const check = (path, value) => op('test', path, { value });
const remove = (path) => op('remove', path);
const move = (source, path) => op('move', path, { from: source });
const copy = (source, path) => op('copy', path, { from: source });
const PATCHES = {
  'add a member': [add('/z', 1)],
  'add over a member': [add('/a', 2)],
  'add null': [add('/a', null)],
  'add below nothing': [add('/q/z', 1)],
  'add below a number': [add('/a/z', 1)],
  'add below a string': [add('/a~1b/z', 1)],
  'add below null': [add('/n/z', 1)],
  'add into a list': [add('/l/1', 'new')],
  'add at the end': [add('/l/3', 'new')],
  'add with a dash': [add('/l/-', 'new')],
  'add past the end': [add('/l/4', 'new')],
  'add at a leading zero': [add('/l/01', 'new')],
  'add at a word': [add('/l/x', 'new')],
  'add at a minus': [add('/l/-1', 'new')],
  'add at a fraction': [add('/l/1.0', 'new')],
  'add at an exponent': [add('/l/1e0', 'new')],
  'add at an empty index': [add('/l/', 'new')],
  'add at length': [add('/l/length', 0)],
  'add at the root': [add('', { new: 1 })],
  'add null at the root': [add('', null)],
  'add a number at the root': [add('', 7)],
  'add a list at the root, then to it': [add('', []), add('/-', 1), add('/0', 0)],
  'add to the empty name': [add('/', 1)],
  'add to a slash': [add('/a~1b', 1)],
  'add to a tilde': [add('/m~0n', 1)],
  'add to ~01': [add('/~01', 1)],
  'add deep': [add('/b/c/-', 4), add('/b/d', {}), add('/b/d/e', [])],
  'add __proto__': [add('/__proto__/x', 1)],
  'add __proto__ itself': [add('/__proto__', 1)],
  'add constructor': [add('/constructor', 1)],
  'add constructor prototype': [add('/constructor/prototype/x', 1)],
  'add prototype': [add('/prototype', 1)],
  'add toString': [add('/toString', 1)],
  'replace toString': [replace('/toString', 1)],
  'add hasOwnProperty below': [add('/hasOwnProperty/x', 1)],
  'replace a member': [replace('/a', { x: 1 })],
  'replace nothing': [replace('/q', 1)],
  'replace in a list': [replace('/l/0', 0)],
  'replace past the end': [replace('/l/3', 0)],
  'replace with a dash': [replace('/l/-', 0)],
  'replace the root': [replace('', 0)],
  'replace the root by null, then go on': [replace('', null), add('', { back: 1 })],
  'replace below the root by null': [replace('', null), add('/x', 1)],
  'remove a member': [remove('/a')],
  'remove nothing': [remove('/q')],
  'remove in a list': [remove('/l/0')],
  'remove past the end': [remove('/l/3')],
  'remove with a dash': [remove('/l/-')],
  'remove the root': [remove('')],
  'remove the root, then add': [remove(''), add('', 1)],
  'remove a null': [remove('/n')],
  'remove deep': [remove('/b/c/1'), remove('/b/c/1')],
  'move a member': [move('/a', '/z')],
  'move nothing': [move('/q', '/z')],
  'move onto itself': [move('/a', '/a')],
  'move into its own child': [move('/b', '/b/c/0')],
  'move into its own member': [move('/b', '/b/z')],
  'move to a parent': [move('/b/c', '/b')],
  'move within a list': [move('/l/0', '/l/2')],
  'move within a list, to the end': [move('/l/0', '/l/-')],
  'move within a list, past the end': [move('/l/0', '/l/3')],
  'move the root': [move('', '/z')],
  'move to the root': [move('/b', '')],
  'move by a name that begins alike': [move('/a', '/a~1b')],
  'move a null': [move('/n', '/z')],
  'copy a member': [copy('/b', '/z'), add('/z/new', 1)],
  'copy nothing': [copy('/q', '/z')],
  'copy into its own child': [copy('/b', '/b/z')],
  'copy the root': [copy('', '/z')],
  'copy to the root': [copy('/b', '')],
  'copy into a list': [copy('/a', '/l/1')],
  'copy a dash': [copy('/l/-', '/z')],
  'copy a null': [copy('/n', '/z')],
  'test a member': [check('/a', 1), add('/z', 1)],
  'test a float': [check('/a', 1.0), add('/z', 1)],
  'test in vain': [add('/z', 1), check('/a', 2)],
  'test nothing': [check('/q', null)],
  'test a null': [check('/n', null), add('/z', 1)],
  'test an object of another order': [add('/o', { p: 1, q: [1] }), check('/o', { q: [1], p: 1 }), add('/z', 1)],
  'test a list of another order': [check('/b/c', [2, 1, 3])],
  'test a list against an object': [check('/b/c', { 0: 1, 1: 2, 2: 3 })],
  'test a string against a number': [check('/a', '1')],
  'test the root': [check('', DOC), add('/z', 1)],
  'test past the end': [check('/l/3', null)],
  'test an empty object against an empty list': [check('/e', [])],
  'all or nothing': [add('/z', 1), remove('/a'), remove('/q')],
  'one after another': [add('/x', []), add('/x/-', 1), copy('/x', '/y'), move('/x/0', '/w'), replace('/y/0', 2), check('/w', 1)],
  'a member named like an index': [replace('/0', 'nought')],
  'move past the end from elsewhere': [move('/a', '/l/9')],
  'copy past the end': [copy('/a', '/l/9')],
  'move to a word of a list': [move('/a', '/l/x')],
  'copy to a word of a list': [copy('/a', '/l/x')],
  'move to an empty index': [move('/a', '/l/')],
  'copy below nothing': [copy('/a', '/q/z')],
  'move below nothing': [move('/a', '/q/z')],
  'move below a number': [move('/n', '/a/z')],
  'replace at a leading zero': [replace('/l/00', 'new')],
  'remove at a leading zero': [remove('/l/00')],
  'test at a leading zero': [check('/l/00', 1), add('/z', 1)],
  'copy from a leading zero': [copy('/l/00', '/z')],
  'replace at an empty index': [replace('/l/', 'new')],
  'remove at an empty index': [remove('/l/')],
  'test at an empty index': [check('/l/', 1), add('/z', 1)],
  'replace at a word': [replace('/l/x', 'new')],
  'remove at a word': [remove('/l/x')],
  'test at a word': [check('/l/x', 1)],
  'test at length': [check('/l/length', 3), add('/z', 1)],
  'replace at length': [replace('/l/length', 0)],
  'remove at length': [remove('/l/length')],
  'add below an element': [add('/l/2/y', 1), add('/l/1/-', 3)],
  'add below a leading zero': [add('/l/02/y', 1)],
  'add below a dash': [add('/l/-/y', 1)],
  'add below past the end': [add('/l/7/y', 1)],
  'add at 2^32': [add('/l/4294967296', 'new')],
  'add at 2^31': [add('/l/2147483648', 'new')],
  'add at a very long index': [add('/l/99999999999999999999', 'new')],
  'remove toString': [remove('/toString')],
  'test toString': [check('/toString', 1)],
  'copy toString': [copy('/toString', '/z')],
  'move constructor': [move('/constructor', '/z')],
  'replace constructor': [replace('/constructor', 1)],
  'remove __proto__': [remove('/__proto__')],
  'replace __proto__': [replace('/__proto__', {})],
  'move to __proto__': [move('/e', '/__proto__')],
  'copy from __proto__': [copy('/__proto__', '/z')],
  'test __proto__': [check('/__proto__', {}), add('/z', 1)],
  'add __proto__ deep': [add('/b/__proto__', 1)],
  'add a value that is shared': [add('/x', { y: [] }), copy('/x', '/w'), add('/w/y/-', 1)],
  'move, then change': [move('/b', '/w'), add('/w/c/-', 4)],
  'a number at the root, then below it': [replace('', 5), add('/x', 1)],
  'a word at the root, then below it': [replace('', 'word'), replace('/0', 'W')],
  'a list at the root, then below it': [replace('', [1, 2]), remove('/0'), add('/-', 3)],
  'null at the root, then remove': [replace('', null), remove('')],
  'copy from nowhere to the root': [copy('/nowhere', '')],
  'nothing': [],
  'an unknown op between': [add('/z', 1), { op: 'merge', path: '/a', value: 1 }, add('/y', 1)],
  'extra members': [{ ...add('/z', 1), from: '/nowhere', comment: {} }],
};
/** Where the client's patch library does what only a JavaScript object can do. */
const QUIRKS = {
  'root-into-itself': ['move the root'],
  'inherited-member': ['replace toString', 'remove toString', 'copy toString', 'move constructor', 'replace constructor'],
  'wrapped-index': ['add at 2^31', 'add at 2^32'],
  'loose-index': [
    'add at a leading zero', 'add at an empty index', 'move within a list, past the end', 'move past the end from elsewhere',
    'copy past the end', 'move to an empty index', 'test at a leading zero', 'test at an empty index',
  ],
  'no-members': ['a number at the root, then below it', 'a word at the root, then below it'],
  'root-from-nowhere': ['copy from nowhere to the root'],
};
const UNCLONABLE = ['copy toString', 'move constructor'];
for (const [name, patch] of Object.entries(PATCHES)) {
  const known = Object.entries(QUIRKS).find(([, names]) => names.includes(name));
  const gap = known ? { gap: known[0] } : {};
  const renamed = { activityType: 'OTHER', metadata: { k: 1 } };
  const events = run(state.delta(patch));
  const input = { state: DOC };
  if (UNCLONABLE.includes(name)) bad(`patch/${name}`, 'could not be cloned', null, events, { input, ...gap });
  else good(`patch/${name}`, events, { input, ...gap });
  good(`patch of an activity/${name}`, run(activity.snapshot('p', DOC), activity.delta('p', patch, renamed)), gap);
}
from('patch/fails, then succeeds', { state: { a: 1 } }, state.delta([remove('/q')]), state.delta([add('/b', 1)]));
from('patch/of a list', { state: [1, 2] }, state.delta([add('/0', 0), remove('/1')]));
ok('patch/of a number', state.snapshot(5), state.delta([add('/a', 1)]), state.delta([replace('', 6)]));
for (const value of [5, 'word', true, '']) {
  for (const [name, patch] of [
    ['add', [add('/x', 1)]], ['add deep', [add('/x/y', 1)]], ['replace', [replace('/x', 1)]], ['remove', [remove('/x')]],
    ['test', [check('/x', 1)]], ['test the root', [check('', value), add('', 'ok')]], ['move', [move('/x', '/y')]], ['nothing', []],
    ['remove the root', [remove('')]], ['a character', [replace('/0', 'W')]], ['the length', [check('/length', 4), add('', 'ok')]],
  ]) {
    const gap = name === 'the length' && value === 'word' ? { gap: 'no-members' } : {};
    good(`patch of ${JSON.stringify(value)}/${name}`, run(state.snapshot(value), state.delta(patch)), gap);
  }
}
ok('patch/of null', state.snapshot(null), state.delta([]), state.delta([add('', 1)]));
ok('patch/of null, a test', state.snapshot(null), state.delta([check('', null)]));
ok('patch/a member named __proto__ in a snapshot', verbatim('{"type":"STATE_SNAPSHOT","snapshot":{"a":{"prototype":1}}}'), state.delta([replace('/a/prototype', 2)]));

// ── Snapshots of messages ──────────────────────────────────────────────────────────────────────────────────────────

const history = { messages: [user('u', '1'), assistant('m', { content: '2' }), plan('p'), idea('r'), user('v', '3')] };
from('snapshot/replaces in place', history, messages([user('v', 'V'), user('u', 'U')]));
from('snapshot/appends in its order', history, messages([user('x'), user('u', 'U'), user('w')]));
from('snapshot/empty', history, messages([]));
from('snapshot/an activity drops the activities', history, messages([user('u'), plan('q')]));
from('snapshot/a thought drops the thoughts', history, messages([user('u'), idea('s')]));
from('snapshot/both', history, messages([plan('q'), idea('s')]));
from('snapshot/changes a role', history, messages([assistant('u', { content: 'x' }), user('p'), user('r')]));
from('snapshot/an id twice, unknown', history, messages([user('x', 'a'), user('x', 'b')]));
from('snapshot/an id twice, known', history, messages([user('u', 'a'), user('u', 'b')]));
from('snapshot/of two of one id', { messages: [user('u', 'a'), user('u', 'b')] }, messages([user('u', 'c')]));
from('snapshot/an unknown role is as if absent', history, messages([{ id: 'u', role: 'robot' }]));
from('snapshot/an unknown field', history, messages([{ ...user('u'), colour: 1 }]));
from('snapshot/keeps the metadata it brings', history, messages([user('u', 'x', { metadata: { a: 1 } })]), text.start('u', { metadata: { b: 2 } }), text.end('u'));
ok('snapshot/of a run', text.whole('a', '1'), tool.whole('c'), tool.result('t', 'c'), thought.whole('r'), activity.snapshot('p'), messages([user('n'), assistant('c', { toolCalls: [call('c')] })]), text.whole('z'));
const mixed = { messages: [plan('p'), plan('q', { activityType: 'MAP' }), user('u'), idea('r')] };
for (const [name, own] of [
  ['null', { authoritativeActivityTypes: null }], ['a list', { authoritativeActivityTypes: ['MAP'] }], ['none', { authoritativeActivityTypes: [] }],
  ['a word', { authoritativeActivityTypes: 'MAP' }], ['a list of numbers', { authoritativeActivityTypes: [1] }], ['nothing', {}], ['no object', 5], ['a null convention', null], ['an array', []],
]) {
  from(`snapshot/owns ${name}`, mixed, messages([user('u')], { metadata: { '@ag-ui/client': own } }));
  from(`snapshot/owns ${name}, and brings one`, mixed, messages([user('u'), plan('z')], { metadata: { '@ag-ui/client': own } }));
}

// ── Activities ─────────────────────────────────────────────────────────────────────────────────────────────────────

ok('activity/new', activity.snapshot('p', { a: 1 }, by('a', { metadata: { k: 1 } })));
ok('activity/new without replacing', activity.snapshot('p', { a: 1 }, { replace: false }));
ok('activity/replaced', activity.snapshot('p', { a: 1 }, by('a', { metadata: { k: 1, l: 1 } })), activity.snapshot('p', { b: 1 }, { activityType: 'MAP', metadata: { k: 2 } }));
ok('activity/replaced under a tag', activity.snapshot('p'), activity.snapshot('p', {}, by('b')));
ok('activity/not replaced', activity.snapshot('p', { a: 1 }, by('a')), activity.snapshot('p', { b: 1 }, by('b', { replace: false, activityType: 'MAP', metadata: { k: 1 } })));
from('activity/takes a message', seen, activity.snapshot('m', { a: 1 }, { metadata: { k: 1 } }));
from('activity/does not take a message', seen, activity.snapshot('m', { a: 1 }, { replace: false, metadata: { k: 1 } }));
from('activity/takes a message with metadata', { messages: [user('m', 'x', { metadata: { old: 1 } })] }, activity.snapshot('m', {}, { metadata: { k: 1 } }));
ok('activity/patch of nobody', activity.delta('p', [add('/a', 1)], { metadata: { k: 1 } }));
from('activity/patch of a message', seen, activity.delta('m', [add('/a', 1)], { metadata: { k: 1 } }));
ok('activity/patch that fails keeps its metadata', activity.snapshot('p'), activity.delta('p', [remove('/q')], { activityType: 'MAP', metadata: { k: 1 } }));
ok('activity/patch keeps the tag', activity.snapshot('p', {}, by('a')), activity.delta('p', [add('/x', 1)]));
ok('activity/patch to a number, then again', activity.snapshot('p'), activity.delta('p', [replace('', 5)]), activity.delta('p', [add('/x', 1)]), activity.delta('p', [replace('', {})]));
ok('activity/patch to null, then again', activity.snapshot('p'), activity.delta('p', [remove('')]), activity.delta('p', [add('/x', 1)]));
from('activity/of the input', { messages: [plan('p')] }, activity.delta('p', [replace('/done', 1)]));
ok('activity/then a thought', activity.snapshot('p'), thought.whole('p', 'x', { metadata: { k: 1 } }));
ok('activity/then a value', activity.snapshot('p'), secret('message', 'p'));
ok('activity/an unknown key of __proto__ in its content', verbatim('{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"P","content":{"constructor":{"x":1}}}'));

// ── Thoughts and sealed values ─────────────────────────────────────────────────────────────────────────────────────

ok('thought/whole', span.start('s', { metadata: { k: 1 } }), thought.start('r', by('a', { metadata: { a: 1 } })), thought.content('r', 'h', { metadata: { b: 1 } }), thought.content('r', 'm'), thought.end('r', { metadata: { a: 2 } }), span.end('s'));
ok('thought/a span leaves nothing', span.start('s'), span.end('s'));
ok('thought/again', thought.whole('r', 'a'), thought.whole('r', 'b'));
from('thought/onto a text', seen, thought.whole('m', '+'));
from('thought/onto parts', { messages: [user('u', [])] }, thought.whole('u', '+'));
from('thought/onto an activity', { messages: [plan('p')] }, thought.whole('p'));
ok('sealed/a thought', thought.whole('r'), secret('message', 'r', 'v1'), secret('message', 'r', 'v2'));
ok('sealed/a text', text.whole('m'), secret('message', 'm', '', { metadata: { k: 1 } }));
ok('sealed/a call', tool.whole('c'), secret('tool-call', 'c', 'v'));
ok('sealed/a result', tool.result('r', 'c'), secret('message', 'r', 'v'));
ok('sealed/nobody', text.whole('m'), secret('message', 'x'), secret('tool-call', 'm'));
ok('sealed/a message of the call\'s name', tool.whole('c'), secret('message', 'c', 'v'));
from('sealed/the first of two', { messages: [assistant('m', { toolCalls: [call('c')] }), assistant('n', { toolCalls: [call('c')] })] }, secret('tool-call', 'c', 'v'), tool.whole('c'));
ok('sealed/by another version', text.whole('m'), secret('message', 'm', 'v', { encryptedValueType: 'x' }));

// ── Metadata ───────────────────────────────────────────────────────────────────────────────────────────────────────

const meta = (metadata) => ({ metadata });
ok('metadata/a text', text.start('m', meta({ a: 1, deep: { x: 1 } })), text.content('m', 'x', meta({ b: 1 })), text.end('m', meta({ a: 2, deep: { y: 1 }, n: null })));
ok('metadata/a call', text.whole('m', 'x', meta({ own: 1 })), tool.start('c', 'look', { parentMessageId: 'm', metadata: { a: 1 } }), tool.args('c', 'x', meta({ b: 1 })), tool.end('c', meta({ a: 2 })));
ok('metadata/a result', tool.result('r', 'c', 'x', meta({ a: 1 })));
ok('metadata/an empty one', text.start('m', meta({})), text.content('m', 'x', meta({})), text.end('m', meta({})));
ok('metadata/of events that build nothing', step.started('s', meta({ a: 1 })), step.finished('s', meta({ a: 1 })), raw(1, meta({ a: 1 })), custom('n', 1, meta({ a: 1 })), state.snapshot({}, meta({ a: 1 })), sub.started('a', meta({ a: 1 })), sub.finished('a', meta({ a: 1 })));
from('metadata/onto what is there', { messages: [user('u', 'x', meta({ a: 1, b: 1 }))] }, text.start('u', meta({ b: 2 })), text.end('u'));
ok('metadata/numbers and lists', text.start('m', meta({ n: 1.5, l: [1, null], t: true })), text.end('m'));
ok('metadata/keys in any order', text.start('m', meta({ 10: 'x', 2: 'y', b: 1, a: 2 })), text.end('m'));

// ── Nothing to see ─────────────────────────────────────────────────────────────────────────────────────────────────

from('quiet/callbacks only', seen, step.started('s'), raw({ type: 'RUN_ERROR' }), custom('x', [1]), sub.started('a'), sub.error('a'), step.finished('s'));
good('quiet/an error keeps what is there', [runStarted(), text.start('m'), text.content('m', 'half'), runError()]);
good('quiet/an interrupt keeps what is there', [runStarted(), ...tool.whole('c'), runFinished({ outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'ask' }] } })]);
good('quiet/an interrupt, answered in the next run of the stream', [
  runStarted(), ...tool.whole('c'), runFinished({ outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'ask', toolCallId: 'c' }] } }),
  runStarted({ runId: 'r2' }), tool.result('x', 'c'), ...text.whole('m'), runFinished({ runId: 'r2' }),
]);
