'use strict';
// support.js - what the tests share: the model in JITRUN_MODEL, and what the program jitrun makes of it.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Model } = require('jitrun');

const PROMPT = 'Once upon a time';
const listOf = (name) => process.env[name].split(',').map(Number);

module.exports = {
  PROMPT,
  // What the program generates behind PROMPT, greedily; and with its defaults, a temperature of 1.2 and the seed 7.
  ids: listOf('JITRUN_IDS'),
  seeded: {
    ids: listOf('JITRUN_SEEDED_IDS'), text: fs.readFileSync(process.env.JITRUN_SEEDED_TEXT),
    sampling: { temperature: 1.2, seed: 7 },
  },
  session: { context: 256, threads: 1 },
  greedy: { temperature: 0 },
  template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
    '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  tools: [{
    type: 'function',
    function: {
      name: 'weather',
      parameters: { type: 'object', properties: { sky: { enum: ['blue', 'grey'] } }, required: ['sky'] },
    },
  }],
  file: process.env.JITRUN_MODEL,
  open: (options) => Model.open(process.env.JITRUN_MODEL, { threads: 1, ...options }),
  long: 'Once upon a time there was a king who had three daughters, and they lived by the sea. '.repeat(2),
  bits: (floats) => new Uint32Array(floats.buffer, floats.byteOffset, floats.length),
  folder: () => fs.mkdtempSync(path.join(os.tmpdir(), 'jitrun-node-')),
  collect: async (times = 4) => {
    for (let i = 0; i < times; i++) {
      globalThis.gc();
      await new Promise(setImmediate);
    }
  },
};
