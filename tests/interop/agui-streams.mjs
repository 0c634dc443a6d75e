// The corpus of AG-UI streams: hand-written ones for every rule, random valid ones, random broken ones. The same every
// time. Run by itself it prints the corpus, one stream per line, as `xtask agui follow` reads it.

import { pathToFileURL } from 'node:url';

import lanes from './agui/lanes.mjs';
import named from './agui/named.mjs';
import order from './agui/order.mjs';
import { mishaps, mutant, valid } from './agui/random.mjs';
import reducer from './agui/reducer.mjs';
import shapes from './agui/shapes.mjs';
import { textOf } from './agui/events.mjs';

const VALID = 250;
const MUTANTS = 50;

/** Every stream, each under a name of its own. */
export function streams() {
  const random = Array.from({ length: VALID }, (_, n) => ({ name: `valid/${n}`, ...valid(n + 1), meant: { verdict: 'resolve' } }));
  const broken = mishaps.flatMap((mishap, kind) =>
    Array.from({ length: MUTANTS }, (_, n) => ({ name: `mutant/${mishap} ${n}`, ...mutant(10_000 + kind * 1_000 + n, mishap) })),
  );
  return [...shapes, ...lanes, ...order, ...reducer, ...named, ...random, ...broken];
}

/** A stream as one line of JSON. */
export function lineOf({ name, input = {}, events }) {
  const head = JSON.stringify({ name, ...input });
  return `${head.slice(0, -1)},"events":[${events.map(textOf).join(',')}]}\n`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const stream of streams()) process.stdout.write(lineOf(stream));
}
