// node example.js MODEL [PROMPT...] - prints what a model writes behind a prompt; several are computed together.
'use strict';
const { Model } = require('.');

const options = { maxTokens: 64, sampling: { seed: 7 } };

async function one(model, prompt) {
  const generation = model.generate(prompt, { ...options, session: { context: 512 } });
  process.stdout.write(prompt);
  for await (const text of generation) process.stdout.write(text);
  console.log(`\n[${generation.ids.length} tokens]`);
}

async function together(model, prompts) {
  const batch = await model.batch({ context: 512 });
  const texts = await Promise.all(prompts.map((prompt) => batch.generate(prompt, options).read()));
  prompts.forEach((prompt, i) => console.log(prompt + texts[i]));
  batch.close();
}

async function main(path, ...prompts) {
  const model = await Model.open(path);
  if (prompts.length > 1) await together(model, prompts);
  else await one(model, prompts[0] ?? 'Once upon a time');
  model.close();
}

main(...process.argv.slice(2)).catch((e) => {
  console.error(e.message);
  process.exitCode = 1;
});
