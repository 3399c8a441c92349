/* tests/fuzz/seeds.c - the inputs that fuzzing begins with, made here: well-formed ones of each kind, and a few that
 * once were wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/ir/ir.h"
#include "jit/target.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model_load.h"
#include "runtime/model/packed.h"
#include "tests/fuzz/fuzz.h"
#include "tests/mutate/mutate.h"
#include "tests/quantise/imatrix_files.h"
#include "tests/loaders/small_vocab.h"
#include "tests/runtime/tiny_model.h"

struct sink {
	void (*take)(void *, const uint8_t *, size_t);
	void *user;
};

static void give(const struct sink *s, const void *p, size_t n) { s->take(s->user, p, n); }
static void give_text(const struct sink *s, const char *text) { give(s, text, strlen(text)); }

static const struct bytes *file_of(const struct mutant *m, const char *name)
{
	for (unsigned i = 0; i < m->files; i++)
		if (strcmp(m->file[i].name, name) == 0)
			return &m->file[i].b;
	abort();
}

/* One file of the well-formed ones of a kind, from byte `from` on. */
static void give_files(const struct sink *s, enum mutant_kind kind, const char *name, size_t from)
{
	for (uint64_t seed = 0; seed < MUTANT_WHOLE; seed++) {
		struct mutant m;
		mutant_make(&m, kind, seed);
		const struct bytes *b = name ? file_of(&m, name) : &m.file[0].b;
		give(s, b->p + from, b->n - from);
		mutant_free(&m);
	}
}

static void give_safetensors(const struct sink *s)
{
	for (uint64_t seed = 0; seed < MUTANT_WHOLE; seed++) {
		struct mutant m;
		struct bytes all = { 0 };
		mutant_make(&m, MUTANT_SAFETENSORS, seed);
		const struct bytes *config = file_of(&m, "config.json"), *weights = file_of(&m, "model.safetensors");
		uint16_t length = (uint16_t)config->n;
		bytes_put(&all, &length, sizeof length);
		bytes_put(&all, config->p, config->n);
		bytes_put(&all, weights->p, weights->n);
		give(s, all.p, all.n);
		bytes_forget(&all);
		mutant_free(&m);
	}
}

static void give_imatrices(const struct sink *s)
{
	static const float sums[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, calls[] = { 2, 0 };
	const struct imatrix_part parts[] = { { "blk.0.attn_q.weight", 4, 1, sums, calls },
		                              { "blk.0.ffn_up_exps.weight", 4, 2, sums, calls } };
	size_t n;

	uint8_t *p = imatrix_gguf(parts, 2, 3, &n);
	give(s, p, n);
	free(p);
	p = imatrix_old(parts, 2, 3, &n);
	give(s, p, n);
	free(p);
}

/* Every value type, a nested array, another alignment. */
static void give_values(const struct sink *s)
{
	static const uint64_t value = 0x4045000000000000; /* small as an integer of every width, 42.0 as a double */
	struct gguf_writer w;
	char key[8];
	size_t n;

	gguf_writer_start(&w, 2, 64);
	for (int t = 0; t < GGUF_TYPE_COUNT; t++) {
		snprintf(key, sizeof key, "k%d", t);
		if (t != GGUF_STRING && t != GGUF_ARRAY)
			gguf_write_scalar(&w, key, (enum gguf_type)t, &value);
	}
	gguf_write_strings(&w, "tokenizer.ggml.tokens", (const char *const[]){ "a", "", "<0x41>" }, 3);
	gguf_write_nested(&w, "nested", 4, 2, 3);
	gguf_write_tensor(&w, "t", DTYPE_Q4_K, 3, (const uint64_t[]){ 256, 1, 2 }, NULL, 288);
	uint8_t *p = gguf_writer_finish(&w, &n);
	give(s, p, n);
	free(p);
	gguf_writer_free(&w);
}

/* tokenizer.json with what lies beside it, metadata of GGUF files, and texts; the first byte says which. */
static void give_tokenizers(const struct sink *s)
{
	static const char *const texts[] = {
		"s the lower<|a|>12345 \xc3\xa9\xe4\xb8\xad",
		"t aaaa  \n\n12 \xff\xfe",
		"u ab the in<|b|>",
		"0low er 1 2",
		"1\xed\xa0\x80 a",
		"2 the  in\xe2\x96\x81he"
	};

	for (uint64_t seed = 0; seed < MUTANT_WHOLE; seed++) {
		struct mutant m;
		struct bytes all = { 0 };
		mutant_make(&m, MUTANT_TOKENIZER, seed);
		const struct bytes *json = file_of(&m, "tokenizer.json"),
				   *beside = file_of(&m, "tokenizer_config.json");
		bytes_put(&all, json->p, json->n);
		give(s, all.p, all.n);
		bytes_put(&all, "", 1);
		bytes_put(&all, beside->p, beside->n);
		give(s, all.p, all.n);
		bytes_forget(&all);
		mutant_free(&m);
		mutant_make(&m, MUTANT_VOCABULARY, seed);
		bytes_put(&all, "G", 1);
		bytes_put(&all, m.file[0].b.p, m.file[0].b.n);
		give(s, all.p, all.n);
		bytes_forget(&all);
		mutant_free(&m);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		give_text(s, texts[i]);
}

/* Templates of the forms that are published, some with the messages behind a NUL. */
static void give_chats(const struct sink *s)
{
	static const char *const texts[] = {
		"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
		"'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
		"endif %}",
		"{{- bos_token }}\n{%- set ns = namespace(system='', n=0) -%}\n{%- for m in messages if m.role != 'x' "
		"%}\n    {%- if m.content is string and loop.first %}{% set ns.system = m.content | trim %}"
		"{%- elif m.content is iterable %}{% for part in m.content | selectattr('type', 'equalto', 'text') "
		"%}{{ part.text[::-1] | upper ~ part['text'].split('b')[-1] }}{% endfor %}"
		"{%- else %}{% for c in m.tool_calls %}{{ c.function | tojson(indent=2) | indent(4) }}{{ loop.index0 * "
		"2 - 1 }}{% if not loop.last %},{% endif %}{% endfor %}{% endif %}\n{%- endfor %}{{ ns.system }}",
		"{% macro show(x, name='y', depth=0) %}{% if x is mapping %}{% for k, v in x | dictsort %}{{ ' ' * "
		"depth }}{{ k }}: {{ show(v, depth=depth + 1) }}{% endfor %}{% else %}{{ x | default('none', true) }}"
		"{% endif %}{% endmacro %}{{ show(tools[0]) }}{% set t %}{{ messages | map(attribute='role') | join(', "
		"') }}{% endset %}{{ t | replace('u', 'U') | title }}{# c #}{% raw %}{{ }}{% endraw %}",
		"{% if messages|length % 2 == 0 %}{{ raise_exception('Roles must alternate') }}{% endif %}{{ "
		"strftime_now('%d %b %Y') }}{% generation %}{{ '%s|%5.2f' % ('a', 1.5) }}{% endgeneration %}"
		"{% filter upper %}{{ {'a': [1, (2,), none], 'b': 1 // 2 ** 2}['a'] }}{% endfilter %}{% with a = 1 "
		"%}{{ a if a > 0 and a in [1] else 'b' }}{% endwith %}{% for x in range(3) %}{% break %}{% endfor %}",
		"{% macro m() %}[{{ caller(1) }}]{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}{{ "
		"'a,b'.split(',') | sort(reverse=true) | unique | list }}{{ '{} {a}'.format(1, a=2) }}{{ [3, 1] | min "
		"~ 2.5 | round ~ '7' | int }}",
	};
	static const char with[] =
		"{{ messages | tojson }}{{ messages }}\0[1, -2.5e3, {\"a\": [null, \"\\u00e9\\n\"]}, true]";

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		give_text(s, texts[i]);
	give(s, with, sizeof with - 1);
}

static void give_json(const struct sink *s)
{
	static const char *const texts[] = {
		"{\"a\": [1, -2.5e3, true, null, \"\\u00e9\\ud83d\\ude00\\n\"], \"b\": {}}",
		"[[[[]]]]",
		"\"\xf0\x9f\x98\x80\"",
		"1e5",
		"-0",
		"[NaN, Infinity]",
		"{\"a\":1,\"a\":2}",
		"123456789012345678901234567890",
		"\"\\ud800\"",
		"1e999",
		"{\"\\u0000\":0}",
		"\xef\xbb\xbf{}"
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		give_text(s, texts[i]);
	give_files(s, MUTANT_CONFIG, "config.json", 0);
}

static void give_config(const struct sink *s)
{
	struct tiny_model t = tiny_min;

	for (int i = 0; i < 2; i++) {
		t.arch = i ? "qwen3" : "llama";
		t.extra = i ? ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}, \"layer_types\": "
		              "[\"full_attention\"]"
		            : ",\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}";
		char *config = tiny_config(&t);
		give_text(s, config);
		free(config);
	}
}

static void give_keys(const struct sink *s)
{
	static const char *const texts[] = {
		"matmul.q8_0.aq8_0.1024x512.c4.b2.s12f.resid.avx2",
		"attention.kvf16.c1.d64.h4.g2.win.avx512",
		"embed.q8_0.4096x256.avx2",
		"norm.k256.q8out.avx2",
		"interleave.aq8_0.k256.c1.b1.gfx1100",
		"matmul.bf16.af32.64x64.c16.mma.bounded.gfx1201",
		"quantise.avx2",
		"kvstore.kvf16.d64.g2.qknorm.avx2"
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		give_text(s, texts[i]);
}

static void give_ir(const struct sink *s)
{
	static const char *const keys[] = { "norm.k64.avx2", "quantise.avx2", "embed.q8_0.64x64.avx2",
		                            "interleave.aq8_0.k256.c1.b1.avx2" };

	give_text(s, "; a comment\nlanes 16\n%1:I = iconst #-7\n%2:I = iadd %1 %1\n");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct error err = { 0 };
		struct key key;
		struct ir ir;
		char *text = NULL;
		size_t n;
		if (!key_parse(&key, keys[i]) || !template_build(&ir, &key, &target_table[key.target], &err))
			continue;
		FILE *f = open_memstream(&text, &n);
		ir_print(&ir, f);
		fclose(f);
		give(s, text, n);
		free(text);
		ir_free(&ir);
	}
}

/* Code objects of the source tree; decode takes their words from some way in. */
static void give_objects(const struct sink *s, bool words)
{
	static const char *const names[] = { "programs.gfx1030.co", "programs.gfx1100.co", "programs.gfx1200.co",
		                             "kernels.gfx1100.co" };
	const char *src = getenv("srcdir");
	char path[600];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct bytes b = { 0 };
		snprintf(path, sizeof path, "%s/tests/sim/%s", src ? src : ".", names[i]);
		FILE *f = fopen(path, "rb");
		if (!f)
			continue;
		for (int c; (c = getc(f)) != EOF;)
			bytes_put(&b, &(uint8_t){ (uint8_t)c }, 1);
		fclose(f);
		if (!words)
			give(s, b.p, b.n);
		for (size_t at = 0x200; words && at + 256 <= b.n && at < 0x3000; at += 0x400)
			give(s, b.p + at, 256);
		bytes_forget(&b);
	}
}

static void give_options(const struct sink *s)
{
	static const char one[] = "--text\0x\0-n\0"
				  "12\0--real=1.5\0--choice\0two\0operand\0--list=a\0-l\0b\0--chosen\0x\0--\0-x",
			  two[] = "-t\0--nubmer\0"
				  "7\0-n5\0--flag\0--real\0nan\0-c\0four";

	give(s, one, sizeof one - 1);
	give(s, two, sizeof two - 1);
	give_text(s, "--help");
}

static void give_reports(const struct sink *s)
{
#define ROW "{\"test\": \"matmul q8_0\", \"microseconds\": 12.5, \"share\": 0.8, \"noisy\": \"\"}"
#define REPORT \
	"{\"suite\": \"1\", \"version\": \"0.1.0\", \"target\": \"avx2\", \"threads\": 2, \"rows\": [" ROW \
	", {\"test\": \"attention\", \"noisy\": \"share\"}]}"
	static const char two[] = REPORT "\0" REPORT, one[] = REPORT "\0{\"suite\": \"1\", \"rows\": [1, null, {}]}";
#undef REPORT
#undef ROW

	give(s, two, sizeof two - 1);
	give(s, one, sizeof one - 1);
}

static void give_prompt_ids(const struct sink *s)
{
	static const char *const texts[] = {
		"1,2,3",
		"0",
		"2147483647,2147483648",
		"00000000001,000000000012",
		"99999999999",
		"1,,2",
		",1",
		"1,",
		"-1",
		"+1",
		" 1",
		"1 ,2",
		"0x10",
		"1e3",
		"1\xff,2",
		"18446744073709551617",
		"4294967297"
	};
	char many[400];

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		give_text(s, texts[i]);
	for (size_t i = 0; i < sizeof many; i++)
		many[i] = i % 2 ? ',' : '7';
	give(s, many, sizeof many - 1);
}

static void give_samplers(const struct sink *s)
{
	give_text(s, "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
	give_text(s, "temperature;top_k;");
	give_text(s, "15043+1.5");
	give_text(s, "3-inf");
}

static void give_schemas(const struct sink *s)
{
	static const char small
		[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1,\"x\"]}},\"required\":[\"a\"],"
		     "\"additionalProperties\":false}\0{\"a\": 1}",
	   logic[] =
		   "{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"not\":{\"type\":\"string\"}}],\"$defs\":{\"n\":{\"items\":"
		   "{\"$ref\":\"#\"},\"contains\":{\"const\":[1]}}}}\0[[1],2]",
	   bounds[] = "{\"minimum\":-1.5,\"multipleOf\":0.5,\"maxLength\":2,\"pattern\":\"^a\",\"maxProperties\":1,"
		      "\"patternProperties\":{\"b\":false}}\0{\"a\\u0062\":\"\\ud83d\\ude00\"}";

	give(s, small, sizeof small - 1);
	give(s, logic, sizeof logic - 1);
	give(s, bounds, sizeof bounds - 1);
}

static void give_expressions(const struct sink *s)
{
	static const char one[] = "^(a|b{2,3})*[^c-e\\d]\\u00e9$\0abb\303\251", two[] = "(?:\\p{L}+|x?)\\.\0xyz.";

	give(s, one, sizeof one - 1);
	give(s, two, sizeof two - 1);
}

static void give_rules(const struct sink *s)
{
	static const char sum[] = "root ::= sum \"\\n\" # one\nsum ::= term ([-+] term)*\nterm ::= [0-9]+ | \"(\" sum "
				  "\")\"\n\0(1+22)-3\n",
			  sets[] = "root ::= (\n [^a-c\\]\\x00-\\x1f]{2,3} |\n . \"\\u00e9\"?\n)+\0xyz\303\251",
			  deep[] = "root ::= \"(\" root? \")\" | [a-] a{0,2}\na ::= \"\" | \"x\" a\0(((-xx)))";

	give(s, sum, sizeof sum - 1);
	give(s, sets, sizeof sets - 1);
	give(s, deep, sizeof deep - 1);
}

static void give_lark(const struct sink *s)
{
	static const char sum
		[] = "?start: sum // one\n?sum: sum (\"+\" | \"-\") t -> add | t\nt.2: NUMBER | \"(\" sum \")\"\n"
		     "%import common (NUMBER, WS)\n%ignore WS\0(1 + 2.5)-3",
	     words[] =
		     "start: _list{A, \",\"} [\"x\"i]~1..2\n_list{x, d}: x (d x)*\nA: /[\\w-]{1,3}?b*?/s \"a\"..\"c\"\n"
		     "%extend A: /(?:\\u00e9|[^]a-c\\d])+/i\0\303\251a,bc",
	     lazy[] = "start: C+\nC: \"/*\" /(.|\\n)*?/ \"*/\" | /\".*?\"/\n%ignore /#[^\\n]*/\0/* a */\"b\"#";

	give(s, sum, sizeof sum - 1);
	give(s, words, sizeof words - 1);
	give(s, lazy, sizeof lazy - 1);
}

static void give_stops(const struct sink *s)
{
	static const char one[] = "2ab\0aab and b", two[] = "7<|im_end|>\0\nUser:\0Hello <|im_<|im_end|>",
			  many[] = "1abab\0ba\0bb\0a\0cdcdabbaabab";

	give(s, one, sizeof one - 1);
	give(s, two, sizeof two - 1);
	give(s, many, sizeof many - 1);
}

static void give_schedules(const struct sink *s)
{
	give_text(s,
	          "matmul.q8_0.aq8_0.128x256.c1.b1.s2.avx2 1.083 56\nmatmul.q8_0.aq8_0.256x256.c1.b1.s12.avx2 2 7\n");
	give_files(s, MUTANT_TUNE, NULL, 0);
}

static void give_file(const struct sink *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct bytes all = { 0 };
	uint8_t part[4096];

	for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
		bytes_put(&all, part, n);
	if (!f || fclose(f))
		abort();
	unlink(path);
	give(s, all.p, all.n);
	bytes_forget(&all);
}

/* A packed model with weights for cards and none, and one of sections alone. */
static void give_packed(const struct sink *s)
{
	const struct target *cpu = target_find("avx2");
	struct container_section odd = { .kind = CONTAINER_SOURCE, .bytes = 3, .name = "three" };
	char path[200];
	size_t n;
	uint64_t bytes;
	struct model m;
	struct pool *pool = pool_open(1, NULL);
	uint8_t *gguf = tiny_gguf(&tiny_min, DTYPE_F32, &n, NULL);

	snprintf(path, sizeof path, "%s/seed.jkm", fuzz_directory());
	if (!gguf || !pool || !model_open_memory(&m, gguf, n, NULL, 0, MODEL_KEEP_SOURCES, NULL))
		abort();
	for (int targets = 0; targets < 2; targets++) {
		struct packed_options o = { .target = &cpu, .n_targets = targets, .mode = 0600 };
		if (!packed_write(path, &m, &o, pool, &bytes, NULL))
			abort();
		give_file(s, path);
	}
	struct container_writer *w = container_begin(path, 0600, NULL);
	for (uint32_t i = 0; w && i < 3; i++, odd.number++)
		if (!container_add(w, &odd, "abc", NULL))
			abort();
	if (!w || !container_commit(w, &bytes, NULL))
		abort();
	give_file(s, path);
	model_close(&m);
	pool_close(pool);
	free(gguf);
}

void fuzz_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	const struct sink s = { take, user };

	switch (target) {
	case FUZZ_gguf:
		give_files(&s, MUTANT_GGUF, NULL, 0);
		give_values(&s);
		break;
	case FUZZ_safetensors: give_safetensors(&s); break;
	case FUZZ_imatrix: give_imatrices(&s); break;
	case FUZZ_index: give_files(&s, MUTANT_INDEX, "model.safetensors.index.json", 0); break;
	case FUZZ_config: give_config(&s); break;
	case FUZZ_adapter: fuzz_adapter_seeds(take, user); break;
	case FUZZ_encoders: fuzz_encoders_seeds(take, user); break;
	case FUZZ_generation: fuzz_generation_seeds(take, user); break;
	case FUZZ_tokenizer: give_tokenizers(&s); break;
	case FUZZ_chat: give_chats(&s); break;
	case FUZZ_json: give_json(&s); break;
	default: fuzz_models_seeds(target, take, user); break;
	case FUZZ_record: give_files(&s, MUTANT_ENTRY, NULL, 16); break;
	case FUZZ_pack: give_files(&s, MUTANT_PACK, NULL, 0); break;
	case FUZZ_packed: give_packed(&s); break;
	case FUZZ_tune: give_schedules(&s); break;
	case FUZZ_state: fuzz_state_seeds(take, user); break;
	case FUZZ_key: give_keys(&s); break;
	case FUZZ_ir: give_ir(&s); break;
	case FUZZ_object: give_objects(&s, false); break;
	case FUZZ_decode: give_objects(&s, true); break;
	case FUZZ_options: give_options(&s); break;
	case FUZZ_reports: give_reports(&s); break;
	case FUZZ_samplers: give_samplers(&s); break;
	case FUZZ_schema: give_schemas(&s); break;
	case FUZZ_expression: give_expressions(&s); break;
	case FUZZ_rules: give_rules(&s); break;
	case FUZZ_lark: give_lark(&s); break;
	case FUZZ_stop: give_stops(&s); break;
	case FUZZ_calls: fuzz_calls_seeds(take, user); break;
	case FUZZ_heads: fuzz_heads_seeds(take, user); break;
	case FUZZ_hub: fuzz_hub_seeds(take, user); break;
	case FUZZ_prompt_ids: give_prompt_ids(&s); break;
	case FUZZ_COUNT: break;
	}
}
