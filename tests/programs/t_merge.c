/* tests/programs/t_merge.c - jitquant --lora beside a merge in float64 by plain loops: ranks and alphas by pattern,
 * magnitudes (DoRA), embeddings, rows in the order of either kind of file, several adapters with scales.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/files/gguf.h"
#include "tests/runtime/tiny_model.h"

enum { WHOLE = 9 /* a seed */ };
enum { HIDDEN = 96, FFN = 160, HEADS = 3, KV = 1, HEAD = 32, VOCAB = 320, RANK = 4, MODULES = 7 };

static char dir[] = "/tmp/jitrun-merge-XXXXXX";

/* What an adapter of the test adds to: HF's name, GGUF's, the sizes, and how rows lie in GGUF files. */
static const struct module {
	const char *hf, *gguf;
	unsigned out, in, rank;
	double alpha;
	bool pairs; /* rows of heads lie as (i, i + 16) in one file, and as neighbours in the other */
} modules[MODULES] = {
	{ "model.layers.0.self_attn.q_proj", "blk.0.attn_q.weight", HEADS *HEAD, HIDDEN, RANK, 8, true },
	{ "model.layers.1.self_attn.k_proj", "blk.1.attn_k.weight", KV *HEAD, HIDDEN, RANK, 8, true },
	{ "model.layers.0.self_attn.v_proj", "blk.0.attn_v.weight", KV *HEAD, HIDDEN, 7, 8, false },
	{ "model.layers.1.mlp.down_proj", "blk.1.ffn_down.weight", HIDDEN, FFN, RANK, 3, false },
	{ "model.layers.1.mlp.up_proj", "blk.1.ffn_up.weight", FFN, HIDDEN, RANK, 8, false },
	{ "lm_head", "output.weight", VOCAB, HIDDEN, RANK, 8, false },
	{ "model.embed_tokens", "token_embd.weight", VOCAB, HIDDEN, RANK, 8, false }, /* out: tokens */
};

/* ---- an adapter: numbers by a formula, so that the judge need not read files */

static float number_of(unsigned seed, unsigned tensor, size_t i)
{
	uint64_t x = seed * 1000003u + tensor * 7919u + i + 1;

	x ^= x >> 12, x *= 0x9e3779b97f4a7c15u, x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
	return (float)((int64_t)(x & 0xffffff) - 0x800000) / 0x800000 * 0.25f;
}

static float magnitude_of(unsigned seed, unsigned module, size_t row)
{
	return 1.5f + number_of(seed, 100 + module, row);
}

struct writer {
	FILE *header, *data;
	char *text, *bytes;
	size_t n_text, n_bytes, at;
};

static void put(struct writer *w, const char *module, const char *end, size_t rows, size_t cols, unsigned seed,
                unsigned tensor)
{
	const size_t n = rows * cols * 4;

	fprintf(w->header, "%c\"base_model.model.%s%s\":{\"dtype\":\"F32\",\"shape\":[%zu", w->at ? ',' : '{', module,
	        end, rows);
	if (cols > 1 || tensor < 100)
		fprintf(w->header, ",%zu", cols);
	fprintf(w->header, "],\"data_offsets\":[%zu,%zu]}", w->at, w->at + n);
	for (size_t i = 0; i < rows * cols; i++) {
		const float x = tensor < 100 ? number_of(seed, tensor, i) : magnitude_of(seed, tensor - 100, i);
		fwrite(&x, 4, 1, w->data);
	}
	w->at += n;
}

static void open_writer(struct writer *w)
{
	w->header = open_memstream(&w->text, &w->n_text);
	w->data = open_memstream(&w->bytes, &w->n_bytes);
	assert_true(w->header && w->data);
}

/* The folder of that name; more: members of its configuration. */
static void close_writer(struct writer *w, const char *name, const char *more)
{
	char path[200];

	fprintf(w->header, "}");
	fclose(w->header);
	fclose(w->data);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_true(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/%s/adapter_model.safetensors", dir, name);
	FILE *f = fopen(path, "wb");
	const uint64_t length = w->n_text;
	assert_true(f && fwrite(&length, 8, 1, f) == 1 && fwrite(w->text, 1, w->n_text, f) == w->n_text &&
	            fwrite(w->bytes, 1, w->n_bytes, f) == w->n_bytes && fclose(f) == 0);
	snprintf(path, sizeof path, "%s/%s/adapter_config.json", dir, name);
	assert_non_null(f = fopen(path, "w"));
	fprintf(f,
	        "{\"peft_type\":\"LORA\",\"r\":%d,\"lora_alpha\":8,\"rank_pattern\":{\"v_proj\":7},"
	        "\"alpha_pattern\":{\"layers.1.mlp.down_proj\":3}%s}",
	        RANK, more);
	assert_int_equal(fclose(f), 0);
	free(w->text);
	free(w->bytes);
}

/* The embedding and the output as they are, with numbers of their own. */
static void write_whole(const char *name)
{
	static const char *const names[] = { "model.embed_tokens", "lm_head" };
	struct writer w = { 0 };

	open_writer(&w);
	for (unsigned i = 0; i < 2; i++)
		put(&w, names[i], ".weight", VOCAB, HIDDEN, WHOLE, i);
	close_writer(&w, name, ",\"modules_to_save\":[\"embed_tokens\",\"lm_head\"]");
}

/* The norm before attention of a layer, and the last one; numbers: of the first. */
static void write_norms(const char *name, size_t numbers)
{
	struct writer w = { 0 };

	open_writer(&w);
	put(&w, "model.layers.1.input_layernorm", ".weight", numbers, 1, WHOLE, 100);
	put(&w, "model.norm", ".weight", HIDDEN, 1, WHOLE, 101);
	close_writer(&w, name, ",\"modules_to_save\":[\"input_layernorm\",\"norm\"]");
}

static void write_adapter(const char *name, unsigned seed, size_t from, size_t to, bool dora, const char *more)
{
	struct writer w = { 0 };
	char config[200];

	open_writer(&w);
	for (size_t i = from; i < to; i++) {
		const struct module *m = &modules[i];
		const bool embeds = i == MODULES - 1;
		put(&w, m->hf, embeds ? ".lora_embedding_A" : ".lora_A.weight", m->rank, embeds ? m->out : m->in, seed,
		    (unsigned)(2 * i));
		put(&w, m->hf, embeds ? ".lora_embedding_B" : ".lora_B.weight", embeds ? m->in : m->out, m->rank, seed,
		    (unsigned)(2 * i + 1));
		if (dora)
			put(&w, m->hf, ".lora_magnitude_vector", m->out, 1, seed, 100 + (unsigned)i);
	}
	snprintf(config, sizeof config, ",\"use_dora\":%s%s", dora ? "true" : "false", more);
	close_writer(&w, name, config);
}

/* ---- the judge */

/* HF's row that lies at this one of a GGUF file. */
static size_t row_in_hf(const struct module *m, size_t row)
{
	const size_t head = row / HEAD, r = row % HEAD;

	return m->pairs ? head * HEAD + r % 2 * (HEAD / 2) + r / 2 : row;
}

static void merge(const struct module *m, unsigned seed, double scale, bool dora, double *w)
{
	const unsigned i = (unsigned)(m - modules);
	const bool embeds = i == MODULES - 1;

	for (size_t at = 0; at < m->out; at++) {
		const size_t row = row_in_hf(m, at);
		double sum = 0;
		for (size_t c = 0; c < m->in; c++) {
			double d = 0;
			for (size_t j = m->rank; j-- > 0;) { /* another order than the program's */
				const double a = (double)(embeds ? number_of(seed, 2 * i, j * m->out + row)
				                                 : number_of(seed, 2 * i, j * m->in + c));
				const double b = (double)(embeds ? number_of(seed, 2 * i + 1, c * m->rank + j)
				                                 : number_of(seed, 2 * i + 1, row * m->rank + j));
				d += a * b;
			}
			w[at * m->in + c] += scale * m->alpha / m->rank * d;
			sum += w[at * m->in + c] * w[at * m->in + c];
		}
		for (size_t c = 0; dora && c < m->in; c++)
			w[at * m->in + c] = (double)magnitude_of(seed, i, row) * w[at * m->in + c] / sqrt(sum);
	}
}

static uint8_t *tensor_of(const char *file, const char *name, size_t *n)
{
	char path[200];
	struct file f;
	struct gguf g;
	struct error err = { 0 };

	snprintf(path, sizeof path, "%s/%s", dir, file);
	if (!file_open(&f, path, &err) || !gguf_open(&g, &f, false, &err))
		fail_msg("%s", err.text);
	const struct gguf_tensor *t = gguf_find_tensor(&g, name);
	uint8_t *bytes = t ? malloc(t->bytes) : NULL;
	if (!bytes || !file_read(&f, t->offset, t->bytes, bytes, &err))
		fail_msg("%s: %s: %s", file, name, err.text);
	*n = t->bytes;
	gguf_free(&g);
	file_close(&f);
	return bytes;
}

struct laid {
	unsigned seed;
	double scale;
	bool dora;
	size_t from, to;
};

static int quantise(const char *out, const char *options, char said[2000])
{
	char line[1200];

	snprintf(line, sizeof line, "./jitquant %s/in.gguf %s/%s --quiet %s 2>&1", dir, dir, out, options);
	FILE *f = popen(line, "r");
	assert_non_null(f);
	said[fread(said, 1, 1999, f)] = 0;
	const int status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check(const char *options, const struct laid *laid, size_t n)
{
	char said[2000];
	size_t bytes, changed = 0;

	if (quantise("out.gguf", options, said))
		fail_msg("%s: %s", options, said);
	for (size_t i = 0; i < MODULES; i++) {
		const struct module *m = &modules[i];
		const size_t count = (size_t)m->out * m->in;
		float *base = (float *)(void *)tensor_of("in.gguf", m->gguf, &bytes);
		assert_int_equal(bytes, count * 4);
		float *made = (float *)(void *)tensor_of("out.gguf", m->gguf, &bytes);
		double *w = malloc(count * sizeof *w);
		assert_non_null(w);
		for (size_t k = 0; k < count; k++)
			w[k] = (double)base[k];
		for (size_t k = 0; k < n; k++)
			if (i >= laid[k].from && i < laid[k].to)
				merge(m, laid[k].seed, laid[k].scale, laid[k].dora, w);
		for (size_t k = 0; k < count; k++) {
			if (fabs((double)made[k] - w[k]) > 6e-8 * fabs(w[k]) + 1e-12)
				fail_msg("%s: %s[%zu] is %.9g, expected %.12g (it was %.9g)", options, m->gguf, k,
				         (double)made[k], w[k], (double)base[k]);
			changed += made[k] != base[k];
		}
		free(base);
		free(made);
		free(w);
	}
	assert_true(changed > 10000);
}

static int begin(void **state)
{
	const struct tiny_model t = {
		.arch = "llama",
		.layers = 2,
		.hidden = HIDDEN,
		.ffn = FFN,
		.heads = HEADS,
		.kv_heads = KV,
		.head_dim = HEAD,
		.vocab = VOCAB,
		.type = DTYPE_F32
	};
	struct tiny_model tied = t;
	struct error err = { 0 };
	size_t n;
	(void)state;

	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++) {
		tied.tied = i;
		uint8_t *p = tiny_gguf(&tied, DTYPE_F32, &n, &err);
		assert_non_null(p);
		tiny_write(dir, i ? "tied.gguf" : "in.gguf", p, n);
		free(p);
	}
	write_adapter("all", 1, 0, MODULES, false, "");
	write_adapter("dora", 2, 0, MODULES - 1, true, ", \"use_rslora\": false");
	write_adapter("few", 3, 2, 4, false, "");
	write_adapter("late", 4, 2, 4, false, ", \"alora_invocation_tokens\": [3]");
	write_adapter("embeds", 5, MODULES - 1, MODULES, false, "");
	write_whole("whole");
	write_norms("norms", HIDDEN);
	write_norms("short", HIDDEN - 1);
	return 0;
}

static int end(void **state)
{
	char line[100];
	(void)state;

	snprintf(line, sizeof line, "rm -rf '%s'", dir);
	return system(line);
}

static void refused(const char *in, const char *options, const char *words)
{
	char line[600], said[2000];

	snprintf(line, sizeof line, "./jitquant %s/%s %s/made.gguf --quiet %s 2>&1", dir, in, dir, options);
	FILE *f = popen(line, "r");
	assert_non_null(f);
	said[fread(said, 1, sizeof said - 1, f)] = 0;
	if (pclose(f) == 0 || !strstr(said, words))
		fail_msg("%s: \"%s\" is not in: %s", options, words, said);
	snprintf(line, sizeof line, "%s/made.gguf", dir);
	assert_int_not_equal(access(line, F_OK), 0);
}

static void test_merged(void **state)
{
	char options[600];
	(void)state;

	snprintf(options, sizeof options, "--type f32 --lora %s/all", dir);
	check(options, (const struct laid[]){ { 1, 1, false, 0, MODULES } }, 1);
	snprintf(options, sizeof options, "--type f32 --threads 3 --lora %s/dora:0.75", dir);
	check(options, (const struct laid[]){ { 2, 0.75, true, 0, MODULES - 1 } }, 1);
	snprintf(options, sizeof options, "--type f32 --lora %s/few:-2 --lora %s/dora --lora %s/all:0.5", dir, dir,
	         dir);
	check(options,
	      (const struct laid[]){
		      { 3, -2, false, 2, 4 }, { 2, 1, true, 0, MODULES - 1 }, { 1, 0.5, false, 0, MODULES } },
	      3);
}

/* What an adapter has whole takes the place of the model's, and of what adapters before it added. */
static void test_whole(void **state)
{
	static const char *const names[] = { "token_embd.weight", "output.weight" };
	char options[300], said[2000];
	size_t n;
	(void)state;

	snprintf(options, sizeof options, "--type f32 --lora %s/all --lora %s/whole", dir, dir);
	if (quantise("whole.gguf", options, said))
		fail_msg("%s", said);
	for (unsigned i = 0; i < 2; i++) {
		float *made = (float *)(void *)tensor_of("whole.gguf", names[i], &n);
		assert_int_equal(n, VOCAB * HIDDEN * sizeof *made);
		for (size_t k = 0; k < VOCAB * HIDDEN; k++)
			assert_true(made[k] == number_of(WHOLE, i, k));
		free(made);
	}
}

static void test_norms(void **state)
{
	static const char *const names[] = { "blk.1.attn_norm.weight", "output_norm.weight" };
	char options[300], said[2000];
	size_t n;
	(void)state;

	snprintf(options, sizeof options, "--type f32 --lora %s/norms", dir);
	if (quantise("norms.gguf", options, said))
		fail_msg("%s", said);
	for (unsigned i = 0; i < 2; i++) {
		float *made = (float *)(void *)tensor_of("norms.gguf", names[i], &n);
		assert_int_equal(n, HIDDEN * sizeof *made);
		for (size_t k = 0; k < HIDDEN; k++)
			assert_true(made[k] == magnitude_of(WHOLE, i, k));
		free(made);
	}
	snprintf(options, sizeof options, "--type f32 --lora %s/short", dir);
	refused("in.gguf", options, "is of 1 x 95 numbers, expected 96, as the model's layers.1.input_layernorm has");
	snprintf(options, sizeof options, "--type f32 --lora %s/norms:0.5", dir);
	refused("in.gguf", options, "whole modules (modules_to_save), and its scale is 0.5, expected 1");
}

/* Smaller types are made of the merged numbers; what has no adapter stays byte by byte. */
static void test_types(void **state)
{
	char options[300], said[2000];
	size_t n, k;
	(void)state;

	snprintf(options, sizeof options, "--type f32 --lora %s/few", dir);
	assert_int_equal(quantise("f32.gguf", options, said), 0);
	snprintf(options, sizeof options, "--type bf16 --lora %s/few", dir);
	assert_int_equal(quantise("bf16.gguf", options, said), 0);
	float *wide = (float *)(void *)tensor_of("f32.gguf", "blk.0.attn_v.weight", &n);
	uint16_t *narrow = (uint16_t *)(void *)tensor_of("bf16.gguf", "blk.0.attn_v.weight", &k);
	assert_int_equal(n, 2 * k);
	for (size_t i = 0; i < k / 2; i++) {
		uint32_t bits;
		memcpy(&bits, &wide[i], 4);
		assert_int_equal(narrow[i], (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
	}
	free(wide);
	free(narrow);
	uint8_t *a = tensor_of("in.gguf", "blk.1.attn_q.weight", &n),
		*b = tensor_of("f32.gguf", "blk.1.attn_q.weight", &k);
	assert_true(n == k && memcmp(a, b, n) == 0);
	free(a);
	free(b);
}

static void test_refused(void **state)
{
	char options[300], line[400], said[2000];
	(void)state;

	snprintf(options, sizeof options, "--type f32 --lora %s/none", dir);
	refused("in.gguf", options, "cannot be opened");
	snprintf(options, sizeof options, "--type f32 --lora %s/late", dir);
	refused("in.gguf", options, "alora_invocation_tokens is set");
	snprintf(options, sizeof options, "--type f32 --lora %s/embeds", dir);
	refused("tied.gguf", options, "output matrix is its embedding");
	snprintf(options, sizeof options, "--type f32 --lora %s/whole", dir);
	refused("tied.gguf", options, "neither can be replaced alone");
	snprintf(options, sizeof options, "--type f32 --lora %s/whole:0.5", dir);
	refused("in.gguf", options, "whole modules (modules_to_save), and its scale is 0.5, expected 1");
	snprintf(options, sizeof options, "--type q8_0");
	assert_int_equal(quantise("q8.gguf", options, said), 0);
	snprintf(options, sizeof options, "--type q8_0 --lora %s/few", dir);
	refused("q8.gguf", options, "adapters are merged into F32, F16 and BF16");
	/* what is only merged is refused where it is laid over a model */
	snprintf(line, sizeof line, "./jitrun %s/in.gguf --lora %s/dora --prompt-ids 1 -n 1 --no-cache 2>&1", dir, dir);
	FILE *f = popen(line, "r");
	assert_non_null(f);
	said[fread(said, 1, sizeof said - 1, f)] = 0;
	assert_int_not_equal(pclose(f), 0);
	assert_non_null(strstr(said, "magnitudes (DoRA) of lm_head are not done"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_merged), cmocka_unit_test(test_whole),
		                            cmocka_unit_test(test_norms), cmocka_unit_test(test_types),
		                            cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, begin, end);
}
