// A real gateway for scripts: started in a directory of its own below the target directory, ended by its own handle.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const target = path.resolve(process.env.CARGO_TARGET_DIR ?? path.join(root, 'target'));
const built = path.join(target, 'debug', 'banister');

// Packages live below the target directory, where the usual search for them does not look.
export const require = createRequire(path.join(target, 'tools/npm/here.js'));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `probe` gives something, or fails saying what it waited for. */
export async function until(what, probe, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain for ${what}`);
    await sleep(20);
  }
}

/** Gives what is promised, or fails saying what it waited for. */
export function within(what, promise, ms = 20_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms in vain for ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Says what is being tried, so that a failure has a place. */
export function step(text) {
  console.log(`- ${text}`);
}

/** Runs a program to its end. */
export function run(program, words, { input = '', env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const out = [];
    const err = [];
    child.stdout.on('data', (piece) => out.push(piece));
    child.stderr.on('data', (piece) => err.push(piece));
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
    // Whoever refuses early does not read all of it.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** A directory for a gateway of a test. */
function fresh(name) {
  const parent = path.join(target, 'tests');
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(path.join(parent, `${name}-`));
}

/**
 * Starts a gateway and waits until it listens; with a `config.toml` of its own, where one is given. `dir` is the
 * directory of a gateway that was stopped and kept, `banister` another binary than the one built here.
 */
export async function start(name, { config, dir = fresh(name), banister = built } = {}) {
  const data = path.join(dir, 'data');
  rmSync(path.join(data, 'gateway.json'), { force: true });
  // The person's own rules and settings must not decide what a test sees.
  const env = { PATH: process.env.PATH, HOME: path.join(dir, 'home'), TZ: 'UTC' };
  const words = ['serve', '--data', data, '--listen', '127.0.0.1:0'];
  if (config) {
    const file = path.join(dir, 'config.toml');
    writeFileSync(file, config);
    words.push('--config', file);
  }
  // What the gateway before it left says where that one listened.
  rmSync(path.join(data, 'gateway.json'), { force: true });
  const child = spawn(banister, words, {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (piece) => (log = (log + piece).slice(-20_000)));
  const ended = new Promise((resolve) => child.on('close', resolve));
  let running = true;
  ended.then(() => (running = false));
  const kill = () => running && child.kill('SIGKILL');
  process.on('exit', kill);

  const told = await until('the gateway to listen', () => {
    if (!running) throw new Error(`the gateway ended at once:\n${log}`);
    try {
      return JSON.parse(readFileSync(path.join(data, 'gateway.json'), 'utf8'));
    } catch {
      return null;
    }
  });
  const key = readFileSync(path.join(data, 'keys/person.key'), 'utf8').trim();
  const url = `http://${told.address}`;
  const authorized = { authorization: `Bearer ${key}` };

  return {
    dir,
    data,
    url,
    authorized,
    log: () => log,

    /** Starts the installed hook as Claude Code does, and gives its answer. */
    async hook(event, session, fields) {
      const payload = {
        session_id: session,
        prompt_id: `${session}-1`,
        cwd: '/home/dev/orbit',
        permission_mode: 'default',
        hook_event_name: event,
        ...fields,
      };
      const input = JSON.stringify(payload);
      return run(path.join(data, 'hook/banister-hook'), ['claude-code', event], { input, env });
    },

    /** Runs `banister` on this gateway's data. */
    banister: (...words) => run(banister, words, { env }),

    /** Gets JSON with the person's key. */
    async get(where) {
      const response = await fetch(url + where, { headers: authorized });
      if (!response.ok) throw new Error(`GET ${where}: ${response.status} ${await response.text()}`);
      return response.json();
    },

    async stop({ keep = false } = {}) {
      if (running) child.kill('SIGTERM');
      await ended;
      process.off('exit', kill);
      if (!keep) rmSync(dir, { recursive: true, force: true });
    },
  };
}
