// Whether the tables of fields (server/request/request_fields.def, base/sampling.def) have every field that the official clients can send. By hand:
// node tests/server/clients/fields.mjs server/request/request_fields.def base/sampling.def FOLDER/node_modules
import { readFileSync } from "node:fs";

const [table, sampling, modules] = process.argv.slice(2);
const CHAT = 1, TEXT = 2, NATIVE = 4, MESSAGES = 8, RESPONSES = 16, EMBED = 32, RANK = 64, SCORE = 128, INFILL = 256;
const kinds = { CHAT, TEXT, NATIVE, MESSAGES, RESPONSES, EMBED, RANK, SCORE, INFILL, TOKENIZE: 0, DETOKENIZE: 0, SLOT: 0,
	GENERATE: CHAT | TEXT | NATIVE | MESSAGES | RESPONSES, TALK: CHAT | MESSAGES | RESPONSES };
const rows = [...readFileSync(table, "utf8").matchAll(/^(?:DONE|REFUSED|PASSED)\(([A-Z_ |]+), "([^"]+)"/gm),
	...readFileSync(sampling, "utf8").matchAll(/^\s+REQUEST\(([A-Z_ |]+), "([^"]+)"/gm)]
	.map(([, k, name]) => [k.split("|").reduce((sum, one) => sum | (kinds[one.trim()] ?? 0), 0), name]);
const sources = [
	[CHAT, "openai/resources/chat/completions/completions.d.ts", "ChatCompletionCreateParamsBase"],
	[TEXT, "openai/resources/completions.d.ts", "CompletionCreateParamsBase"],
	[RESPONSES, "openai/resources/responses/responses.d.ts", "ResponseCreateParamsBase"],
	[EMBED, "openai/resources/embeddings.d.ts", "EmbeddingCreateParams"],
	[MESSAGES, "@anthropic-ai/sdk/resources/messages/messages.d.ts", "MessageCreateParamsBase"],
	[MESSAGES, "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts", "MessageCreateParamsBase"],
	[MESSAGES, "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts", "MessageCountTokensParams"],
];
let missing = 0, seen = 0;

for (const [kind, file, name] of sources) {
	const text = readFileSync(`${modules}/${file}`, "utf8");
	const from = text.search(new RegExp(`interface ${name}(?: extends [^{]*)? \\{`));
	const body = text.slice(from, text.indexOf("\n}", from));
	for (const [, field] of body.matchAll(/^ {4}['"]?([A-Za-z_]+)['"]?\??:/gm)) {
		seen++;
		if (!rows.some(([k, n]) => (k & kind) && n === field)) {
			console.log(`missing: ${name} ${field}`);
			missing++;
		}
	}
}
console.log(`${seen} fields of clients, ${missing} missing`);
process.exit(missing || !seen ? 1 : 0);
