// A hook as people write it for Node: node hook.mjs URL KEY
import { readFileSync } from 'node:fs';

const [url, key] = process.argv.slice(2);
const input = JSON.parse(readFileSync(0, 'utf8'));
const response = await fetch(url, {
  method: 'POST',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify(input),
});
const { hookSpecificOutput } = await response.json();
console.log(JSON.stringify({ hookSpecificOutput }));
