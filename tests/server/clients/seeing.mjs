// seeing.mjs MODEL FOLDER - makes the folder of a reference model that sees, with a tokenizer of single bytes and a chat
// template, which the reference lacks.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const [model, folder] = process.argv.slice(2);
const mark = '<|image_pad|>';
mkdirSync(folder);
for (const file of ['config.json', 'preprocessor_config.json', 'model.safetensors'])
	symlinkSync(resolve(model, file), `${folder}/${file}`);
const image = JSON.parse(readFileSync(`${model}/config.json`)).image_token_id;
const vocab = {};
for (let b = 0, others = 0; b < 256; b++) {
	const plain = (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
	vocab[String.fromCharCode(plain ? b : 256 + others++)] = 3 + b;
}
const level = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: true };
writeFileSync(`${folder}/tokenizer.json`, JSON.stringify({
	version: '1.0', normalizer: null, pre_tokenizer: level, post_processor: null, decoder: level,
	added_tokens: [{ id: image, content: mark, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }],
	model: { type: 'BPE', vocab, merges: [] },
}));
writeFileSync(`${folder}/tokenizer_config.json`, JSON.stringify({ chat_template:
	`{% for m in messages %}{{ m.role + ':' }}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}` +
	`{% if p.type == 'image' %}{{ '${mark}' }}{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{{ '|' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}` }));
