'use strict';
// ends.js - programs and threads that end while something computes, or while the library waits for their function.
const assert = require('node:assert');
const { spawn } = require('node:child_process');
const test = require('node:test');
const { Worker } = require('node:worker_threads');
const { long, open } = require('./support.js');

const SETUP = `
  const { Model } = require('jitrun');
  const long = ${JSON.stringify(long)}.repeat(4);
  const open = (options) => Model.open(process.env.JITRUN_MODEL, { threads: 1, ...options });
  const session = { context: 1024, threads: 1, batch: 4 };
  const tell = (what) => require('node:worker_threads').parentPort
    ? require('node:worker_threads').parentPort.postMessage(what) : console.log(what);
`;

// What runs when the end comes; and how the end comes, where that is not part of it.
const running = {
  'a prompt': `open().then(async (m) => {
    const s = await m.session(session);
    setTimeout(END, 5);
    await s.feed(long);
  });`,
  'a batch': `open().then(async (m) => {
    const b = await m.batch({ context: 1024, threads: 1, tokens: 4 });
    setTimeout(END, 5);
    await Promise.all([b.generate(long).read(), b.generate(long).read()]);
  });`,
  'a function for prompts': `open().then(async (m) => {
    const s = await m.session(session);
    s.setPromptFn((computed) => { if (computed > 8) END(); });
    await s.feed(long);
  });`,
  'a function for logits': `open().then(async (m) => {
    const s = await m.session(session);
    s.setLogitsFn((logits, ids) => { if (ids.length > 20) END(); });
    await s.feed('Once');
    await s.generate().read();
  });`,
  'progress of loading': `open({ progress: END });`,
  'functions of several sessions': `open().then((m) => Promise.all([1, 2, 3].map(async (n) => {
    const s = await m.session(session);
    s.setPromptFn((computed) => { if (n === 2 && computed > 16) END(); });
    await s.feed(long);
  })));`,
};

function child(code) {
  return new Promise((done) => {
    const one = spawn(process.execPath, ['-e', SETUP + code], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    one.stdout.on('data', (data) => { said += data; });
    one.stderr.on('data', (data) => { said += data; });
    const timer = setTimeout(() => one.kill('SIGKILL'), 60000);
    one.on('close', (status, signal) => {
      clearTimeout(timer);
      done([status, signal, said.trim()]);
    });
  });
}

function thread(code, then) {
  return new Promise((done, failed) => {
    const worker = new Worker(SETUP + code, { eval: true });
    worker.on('message', () => then?.(worker)).on('error', failed).on('exit', done);
  });
}

test('a program ends by process.exit()', async () => {
  const all = Object.entries(running).map(async ([name, code]) => {
    const said = await child(`const END = () => { tell('end'); process.exit(7); };${code}`);
    assert.deepStrictEqual([name, ...said], [name, 7, null, 'end']);
  });
  await Promise.all(all);
});

test('a program ends by an exception that nobody catches, and by itself', async () => {
  const [status, signal, said] = await child(`open().then(async (m) => {
    const s = await m.session(session);
    s.feed(long);
    setTimeout(() => { throw new Error('nobody catches it'); }, 5);
  });`);
  assert.deepStrictEqual([status, signal], [1, null]);
  assert.match(said, /nobody catches it/);
  const whole = await child(`open().then(async (m) => {
    const s = await m.session(session);
    s.setPromptFn(() => {});
    s.feed(long).then(() => tell('fed'));
  });`);
  assert.deepStrictEqual(whole, [0, null, 'fed']);
});

test('a thread ends by process.exit(), and is terminated', async () => {
  for (const code of Object.values(running)) {
    assert.strictEqual(await thread(`const END = () => process.exit(7);${code}`), 7);
    await thread(`const END = () => { tell('now'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50); };
      ${code}`, (worker) => worker.terminate());
  }
  // This thread's own sessions are as ever.
  const s = await (await open()).session({ context: 256 });
  await s.feed(long);
});
