// The pages, as people use them: by keyboard, at 320 pixels, without scripts, in each language; and what must not work.
//
//   node tests/browser/page.mjs [quick|full]
//
// `full` adds sizes, dark and forced colours, reduced motion, each in each language.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';

import { require, start, step, target, until, within } from '../lib/gateway.mjs';

const { chromium } = require('playwright-core');
const { AxeBuilder } = require('@axe-core/playwright');

const FULL = process.argv[2] === 'full';
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
/** How long anything may take that the browser is asked for. Only a browser that hangs takes as long. */
const LIMIT = 60_000;
const LANGUAGES = { en: 'ltr', es: 'ltr', ar: 'rtl', ja: 'ltr' };

const screenshots = path.join(target, 'screenshots');
mkdirSync(screenshots, { recursive: true });
const gateway = await start('browser');
// The program itself, where it is: Debian's wrapper around it adds flags of its own, among them some for a GPU.
const PROGRAM = ['/usr/lib/chromium/chromium', '/usr/bin/chromium'].find(existsSync);
const browser = await chromium.launch({
  executablePath: PROGRAM,
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
  ],
  // What a browser leaves in a home is not left in the person's.
  env: { PATH: process.env.PATH, HOME: path.join(gateway.dir, 'browser'), TMPDIR: gateway.dir },
});

let asks = 0;
/** Where browsers find the gateway: what a login link says. */
let site;

/** Has an agent ask; gives the ask and the hook's answer to come. */
async function ask() {
  asks += 1;
  const id = `toolu_ask_${asks}`;
  const answer = gateway.hook('PreToolUse', 'asking', {
    tool_name: 'Bash',
    tool_use_id: id,
    tool_input: { command: `git push --force origin main-${asks}`, description: 'Publish the fix' },
  });
  const open = await until('the ask to open', async () => {
    const { asks } = await gateway.get('/api/inbox');
    return asks.find(({ action }) => action === id);
  });
  // A hook that was left without a gateway says nothing; that must not hide why the test failed.
  const said = ({ stdout, stderr }) =>
    stdout ? JSON.parse(stdout).hookSpecificOutput : { permissionDecision: `none: ${stderr}` };
  return { open, answer: answer.then(said) };
}

/** Closes a page or a browser. One that does not close hides nothing that was to be seen, and holds nobody up. */
function done(opened) {
  return within('a page to close', opened.close(), 10_000).catch(({ message }) => console.log(`  ${message}`));
}

async function stillOpen({ open }) {
  const { asks } = await gateway.get('/api/inbox');
  assert.ok(asks.some(({ id }) => id === open.id), 'the ask is still open');
}

async function loginLink() {
  const { code, stdout, stderr } = await gateway.banister('token', 'login', '--data', gateway.data);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

/**
 * Holds a page against the rules of accessibility. In the page itself ("legacy mode"), which has no frames: the other
 * way opens and closes one more page each time, in front of the one that is looked at.
 */
async function accessible(page, where) {
  const axe = new AxeBuilder({ page }).setLegacyMode(true).withTags(TAGS);
  const { violations } = await within(`axe on ${where}`, axe.analyze(), LIMIT);
  const told = violations.map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.map((n) => n.html).join('\n  ')}`);
  assert.deepEqual(told, [], `axe on ${where}`);
}

async function fits(page, where) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${where}: ${content} px of content in a window of ${window} px`);
}

const shoot = (page, name) =>
  page.screenshot({ path: path.join(screenshots, `${name}.png`), fullPage: true, timeout: LIMIT });

/**
 * Does something that leads to another page, and waits until that is there: its address and its content. The key or
 * the click itself is not waited for. It is acknowledged by the page that it was for, and under load that page may be
 * gone by then; nothing in the driver bounds that wait.
 */
async function leads(page, where, act) {
  const arrived = page.waitForURL(where, { timeout: LIMIT });
  act().catch(() => {});
  await arrived;
}

/** Presses Tab until `found` says so of the focused element; gives what was passed on the way. */
async function tabTo(page, found) {
  const passed = [];
  for (let presses = 0; presses < 60; presses += 1) {
    await within('Tab', page.keyboard.press('Tab'), LIMIT);
    const at = await page.evaluate(() => {
      const { tagName, name, value, type } = document.activeElement;
      const { outlineStyle } = getComputedStyle(document.activeElement);
      return { tag: tagName, name, value, type, visible: outlineStyle !== 'none' };
    });
    assert.ok(at.visible, `focus can be seen on ${JSON.stringify(at)}`);
    passed.push(at);
    if (found(at)) return passed;
  }
  return assert.fail(`60 times Tab did not lead there: ${JSON.stringify(passed)}`);
}

const isButton = (value) => (at) => at.tag === 'BUTTON' && at.value === value;

async function reach() {
  step('whoever is not signed in sees how to sign in, and nothing else');
  const stranger = await browser.newContext();
  const page = await stranger.newPage();
  const link = await loginLink();
  site = new URL(link).origin;
  const response = await page.goto(site);
  assert.equal(response.status(), 401);
  assert.match(await page.innerText('main'), /banister token login/);
  assert.equal(await page.locator('form').count(), 0);
  await accessible(page, 'the sign-in page');
  await shoot(page, 'sign-in');
  await done(stranger);

  step('a login link works once');
  const context = await browser.newContext();
  const mine = await context.newPage();
  await mine.goto(link);
  assert.equal(new URL(mine.url()).pathname, '/');
  assert.ok(!mine.url().includes('code='), 'the code is not left in the address');
  const second = await browser.newContext();
  const again = await (await second.newPage()).goto(link);
  assert.equal(again.status(), 401);
  await done(second);
  return context;
}

async function keyboard(context) {
  step('an ask can be found, read and accepted by keyboard, at 320 pixels');
  const asked = await ask();
  const page = await context.newPage();
  await page.setViewportSize({ width: 320, height: 640 });
  await page.goto(site);
  await accessible(page, 'the inbox');
  await fits(page, 'the inbox at 320 px');
  await shoot(page, 'inbox-320');
  assert.ok((await page.innerText('article')).includes(asked.open.subject), 'what would run is shown');
  const passed = await tabTo(page, isButton('accept'));
  const reject = passed.findIndex(isButton('reject'));
  assert.ok(reject >= 0 && reject < passed.length - 1, 'Reject comes before Accept');
  await leads(page, '**/?notice=accepted', () => page.keyboard.press('Enter'));
  assert.equal((await asked.answer).permissionDecision, 'allow');
  await accessible(page, 'the inbox after an answer');
  await done(page);

  step('Enter in the text field rejects, and the words reach the agent');
  const other = await ask();
  const field = await context.newPage();
  await field.goto(site);
  await tabTo(field, ({ tag, name }) => tag === 'INPUT' && name === 'message');
  await field.keyboard.type('Use a branch.');
  await leads(field, '**/?notice=rejected', () => field.keyboard.press('Enter'));
  const verdict = await other.answer;
  assert.equal(verdict.permissionDecision, 'deny');
  assert.match(verdict.permissionDecisionReason, /Use a branch\./);
  await done(field);
}

async function withoutScripts(context) {
  step('without scripts it works all the same');
  const plain = await browser.newContext({
    javaScriptEnabled: false,
    storageState: await context.storageState(),
  });
  const asked = await ask();
  const page = await plain.newPage();
  await page.goto(site);
  await leads(page, '**/?notice=accepted', () => page.click('button[value=accept]'));
  assert.equal((await asked.answer).permissionDecision, 'allow');
  await done(plain);
}

/** Posts a form to the gateway as something that is not our page would; gives the status. */
function post(where, form, headers) {
  return new Promise((resolve, reject) => {
    const sent = request(gateway.url + where, { method: 'POST', headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on('error', reject);
    sent.end(new URLSearchParams(form).toString());
  });
}

async function forged(context) {
  step('a write without the token of the page, or from another origin, changes nothing');
  const asked = await ask();
  const page = await context.newPage();
  await page.goto(site);
  const csrf = await page.getAttribute('article input[name=csrf]', 'value');
  const cookies = await context.cookies(site);
  const usual = {
    host: new URL(site).host,
    cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
    'content-type': 'application/x-www-form-urlencoded',
  };
  const good = { csrf, digest: asked.open.digest, decision: 'accept' };
  const { csrf: _, ...bare } = good;
  const wrong = csrf.replace(/^./, (first) => (first === '0' ? '1' : '0'));
  for (const [what, form, headers, statuses] of [
    ['no token', bare, {}, [400, 403, 422]],
    ['a wrong token', { ...good, csrf: wrong }, {}, [403]],
    ['another origin', good, { origin: 'https://elsewhere.example' }, [403]],
    ['no origin at all, by its own word', good, { origin: 'null' }, [403]],
    ['another site, by the browser\'s word', good, { 'sec-fetch-site': 'cross-site' }, [403]],
    ['another host', good, { host: 'elsewhere.example' }, [403]],
    ['no cookie', good, { cookie: '' }, [401]],
    ['another action', { ...good, digest: '0'.repeat(64) }, {}, [409]],
  ]) {
    const status = await post(`/asks/${asked.open.id}/answer`, form, { ...usual, ...headers });
    assert.ok(statuses.includes(status), `${what}: ${status}`);
    await stillOpen(asked);
  }
  await leads(page, '**/?notice=rejected', () => page.click('button[value=reject]'));
  assert.equal((await asked.answer).permissionDecision, 'deny');
  await done(page);
}

async function languages(context) {
  const asked = await ask();
  for (const [lang, dir] of Object.entries(LANGUAGES)) {
    step(`${lang} is spoken on every page`);
    const page = await context.newPage();
    await page.goto(`${site}/?lang=${lang}`);
    const html = page.locator('html');
    assert.equal(await html.getAttribute('lang'), lang);
    assert.equal(await html.getAttribute('dir'), dir);
    await accessible(page, `the inbox in ${lang}`);
    await page.setViewportSize({ width: 320, height: 640 });
    await fits(page, `the inbox in ${lang} at 320 px`);
    await shoot(page, `inbox-${lang}`);
    await leads(page, '**/sessions/**', () => page.click('ul.rows a'));
    assert.equal(await html.getAttribute('lang'), lang, 'the language is remembered');
    await accessible(page, `a session in ${lang}`);
    await fits(page, `a session in ${lang} at 320 px`);
    await shoot(page, `session-${lang}`);
    await done(page);
  }
  return asked;
}

/** Every look a person may have chosen, in every language. */
async function looks(context) {
  const looks = {
    light: {},
    dark: { colorScheme: 'dark' },
    forced: { forcedColors: 'active' },
    still: { reducedMotion: 'reduce' },
  };
  const storageState = await context.storageState();
  for (const [look, emulated] of Object.entries(looks)) {
    step(`the look "${look}" in all languages, at 320 to 1920 pixels`);
    const person = await browser.newContext({ storageState, ...emulated });
    const page = await person.newPage();
    for (const lang of Object.keys(LANGUAGES)) {
      for (const width of [320, 768, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${site}/?lang=${lang}`);
        await fits(page, `${look} ${lang} ${width}`);
        await accessible(page, `${look} ${lang} ${width}`);
      }
      await shoot(page, `inbox-${look}-${lang}`);
    }
    await done(person);
  }
}

let failed = true;
try {
  const context = await reach();
  await keyboard(context);
  await withoutScripts(context);
  await forged(context);
  const left = await languages(context);
  if (FULL) await looks(context);

  step('the agent is told when the person is done');
  const page = await context.newPage();
  await page.goto(`${site}/?lang=en`);
  await leads(page, '**/?notice=rejected', () => page.click('button[value=reject]'));
  assert.equal((await left.answer).permissionDecision, 'deny');

  step('signing out ends the session in the browser');
  const signedOut = page.waitForResponse((response) => response.request().method() === 'POST', { timeout: LIMIT });
  page.click('form[action="/logout"] button').catch(() => {});
  await signedOut;
  const after = await context.newPage();
  assert.equal((await after.goto(site)).status(), 401);

  failed = false;
  console.log(`browser: all of it holds; ${screenshots} shows what was seen`);
} catch (error) {
  console.error(error);
  console.error(`The gateway's files are in ${gateway.dir}; it said:\n${gateway.log()}`);
  process.exitCode = 1;
} finally {
  await done(browser);
  await gateway.stop({ keep: failed });
}
