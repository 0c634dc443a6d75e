// Whether we judge AG-UI streams as the official client does: same verdict, same refused event, same messages and state.
//
//   node agui-verdicts.mjs                 compare `xtask agui follow` with the client
//   node agui-verdicts.mjs --oracle FILE   only ask the client, and write what it said

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { run, step, target } from '../lib/gateway.mjs';
import { textOf } from './agui/events.mjs';
import { direct, stray, wire } from './agui/oracle.mjs';
import { lineOf, streams } from './agui-streams.mjs';

/** Differences that are meant to be. Each must be seen in some stream, or it is no longer one. */
const GAPS = {
  'lone-surrogate': 'half of a surrogate pair is a string to JavaScript and no Unicode text to anybody else',
  'infinite-number': 'a number beyond the range of doubles is Infinity to the client and no JSON number to us',
  'root-into-itself': 'moving the root below itself leaves the client with a circular state; RFC 6902 forbids it',
  'inherited-member': "the client's patch library finds members that every JavaScript object inherits",
  'wrapped-index': "the client's patch library takes list indices modulo 2^32",
  'loose-index': "the client's patch library takes 01 and the empty text for an index, and appends what is moved or copied past the end; RFC 6901 and 6902 forbid it",
  'no-members': "the client's patch library does nothing, without failing, below a number or a word, and finds its length; RFC 6902 lets the patch fail",
  'root-from-nowhere': "the client's patch library copies what is not there to the root, and leaves nothing at all; RFC 6902 lets the patch fail",
};

/** How many disagreements are told one by one. */
const TOLD = 60;

/** One stream in so many also goes over HTTP. */
const SAMPLE = 10;

// ── The client ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Ids that the client made up are numbered, so that two runs can be compared. */
function unmint(stream, list) {
  if (!stream.minted) return list;
  const told = stream.events.map(textOf).join('\n');
  let count = 0;
  return list.map((message) => {
    if (told.includes(JSON.stringify(message.id))) return message;
    count += 1;
    return { ...message, id: `minted ${count}` };
  });
}

const document = (stream, { messages, state }) => ({ messages: unmint(stream, messages), state });
const minted = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
const words = (message) => message?.replace(minted, 'minted') ?? null;

/** Why the client does not do what the author of the stream expects. */
function surprise({ meant }, said) {
  if (!meant) return null;
  if (said.verdict !== meant.verdict) return `${said.verdict}: ${said.message}`;
  if (meant.verdict === 'resolve') return null;
  if (!said.message.includes(meant.words)) return `other words: ${said.message}`;
  return said.at === meant.at ? null : `at ${said.at}, not ${meant.at}`;
}

async function ask(all) {
  const server = await wire();
  const verdicts = [];
  const faults = [];
  let twice = 0;
  for (const [n, stream] of all.entries()) {
    const sent = stream.wire || n % SAMPLE === 0 ? await server.overHttp(stream) : null;
    const said = stream.wire ? sent : await direct(stream);
    if (sent && !stream.wire) {
      twice += 1;
      const told = ({ verdict, error, message, ...rest }) => [verdict, error, words(message), document(stream, rest)];
      if (!isDeepStrictEqual(told(sent), told(said))) {
        faults.push(`${stream.name}: over HTTP ${JSON.stringify(told(sent))}, directly ${JSON.stringify(told(said))}`);
      }
    }
    const why = surprise(stream, said);
    if (why) faults.push(`${stream.name}: not what was meant: ${why}`);
    verdicts.push(said);
  }
  await server.close();
  assert.deepEqual(faults, [], 'the client is as the corpus takes it to be');
  assert.ok(twice >= 100, `${twice} streams went both ways`);
  step(`the client judged ${all.length} streams, ${twice} of them over HTTP too; ${stray.length} promises of its own failed`);
  return verdicts;
}

// ── We ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function follow(all) {
  const { code, stdout, stderr } = await run(path.join(target, 'debug', 'xtask'), ['agui', 'follow'], { input: all.map(lineOf).join('') });
  assert.equal(code, 0, `xtask agui follow: exit ${code}\n${stderr.slice(0, 2_000)}`);
  const lines = stdout.split('\n').filter((line) => line !== '');
  assert.equal(lines.length, all.length, 'one line per stream');
  return lines.map((line, n) => {
    const said = JSON.parse(line);
    // A line that cannot be read has no name; only streams that nobody but JavaScript can read may be such lines.
    if (!all[n].gap || said.name) assert.equal(said.name, all[n].name, 'in the same order');
    // What JSON cannot tell apart is the same: -0 and 0.
    return JSON.parse(JSON.stringify(said));
  });
}

// ── The comparison ─────────────────────────────────────────────────────────────────────────────────────────────────

/** What differs: nothing, the verdict, the event that is refused, or what is left behind. */
function differs(stream, theirs, ours) {
  if (theirs.verdict !== ours.verdict) return 'verdict';
  if (theirs.verdict === 'reject') return theirs.at !== null && theirs.at !== ours.at ? 'event' : null;
  return isDeepStrictEqual(document(stream, theirs), document(stream, ours)) ? null : 'document';
}

function show(stream, { verdict, at, rule, error, message, ...rest }) {
  const why = verdict === 'reject' ? ` at ${at} (${rule ?? error}): ${message}` : ` ${JSON.stringify(document(stream, rest))}`;
  return `${verdict}${why}`.replace(/\s+/g, ' ').slice(0, 600);
}

function compare(all, theirs, ours) {
  const table = new Map();
  const used = new Set();
  const told = [];
  for (const [n, stream] of all.entries()) {
    const category = stream.name.split('/')[0];
    if (!table.has(category)) table.set(category, { total: 0, agree: 0, verdict: 0, event: 0, document: 0, gap: 0 });
    const row = table.get(category);
    row.total += 1;
    const what = differs(stream, theirs[n], ours[n]);
    if (what === null) row.agree += 1;
    else if (stream.gap) {
      row.gap += 1;
      used.add(stream.gap);
    } else {
      row[what] += 1;
      told.push(`${stream.name}: ${what}\n    client: ${show(stream, theirs[n])}\n    we:     ${show(stream, ours[n])}`);
    }
  }
  const sum = { total: 0, agree: 0, verdict: 0, event: 0, document: 0, gap: 0 };
  for (const row of table.values()) for (const key of Object.keys(sum)) sum[key] += row[key];

  for (const line of told.slice(0, TOLD)) console.log(line);
  if (told.length > TOLD) console.log(`… and ${told.length - TOLD} more`);
  const columns = Object.keys(sum);
  console.log(`${''.padEnd(10)}${columns.map((key) => key.padStart(10)).join('')}`);
  for (const [name, row] of [...table, ['all', sum]]) {
    console.log(`${name.padEnd(10)}${columns.map((key) => String(row[key]).padStart(10)).join('')}`);
  }
  // The spec wants what came before a violation to stay; the contract only binds us where the client resolves.
  const refused = all.filter((_, n) => theirs[n].verdict === 'reject' && ours[n].verdict === 'reject').length;
  const kept = all.filter((stream, n) => theirs[n].verdict === 'reject' && ours[n].verdict === 'reject' && isDeepStrictEqual(document(stream, theirs[n]), document(stream, ours[n]))).length;
  console.log(`of ${refused} streams refused by both, ${kept} leave the same messages and state behind`);

  const unused = Object.keys(GAPS).filter((gap) => !used.has(gap));
  for (const gap of unused) console.log(`no stream shows the gap ${gap} any more: ${GAPS[gap]}`);
  return told.length === 0 && unused.length === 0;
}

const all = streams();
assert.equal(new Set(all.map(({ name }) => name)).size, all.length, 'every stream has a name of its own');
for (const { gap, name } of all) assert.ok(!gap || gap in GAPS, `${name}: there is no gap ${gap}`);

const theirs = await ask(all);
if (process.argv[2] === '--oracle') {
  const said = all.map((stream, n) => ({ stream: JSON.parse(lineOf(stream)), said: theirs[n] }));
  writeFileSync(process.argv[3], JSON.stringify(said, null, 1));
  step(`written to ${process.argv[3]}`);
} else if (compare(all, theirs, await follow(all))) {
  console.log('verdicts: all of it holds');
} else {
  process.exitCode = 1;
}
