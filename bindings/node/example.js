// node example.js MODEL [PROMPT] - prints the text that a model writes behind a prompt.
'use strict';
const { Model } = require('.');

async function main(path, prompt = 'Once upon a time') {
  const model = await Model.open(path);
  const generation = model.generate(prompt, { maxTokens: 64, session: { context: 512 }, sampling: { seed: 7 } });
  process.stdout.write(prompt);
  for await (const text of generation) process.stdout.write(text);
  console.log(`\n[${generation.ids.length} tokens]`);
  model.close();
}

main(...process.argv.slice(2)).catch((e) => {
  console.error(e.message);
  process.exitCode = 1;
});
