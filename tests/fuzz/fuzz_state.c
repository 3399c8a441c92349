/* tests/fuzz/fuzz_state.c - arbitrary bytes as a saved session: what is restored computes within its memory, and what
 * is refused is so with a sentence. Each input is tried as it is, and once more with checksums that fit and with what
 * says which model it belongs to, so that the numbers behind them are reached. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jit/store/record.h"
#include "runtime/session/session_kv.h"
#include "runtime/session/session_state.h"
#include "tests/fuzz/fuzz.h"
#include "tests/runtime/tiny_model.h"

enum {
	HEADER = 256,
	AT_VERSION = 8,
	AT_LENGTH = 80,
	AT_COMPUTED = 84,
	AT_FIRST = 88,
	AT_BYTES = 96,
	AT_SUM = 104,
	AT_ABOUT = 112,
	AT_HEADER_SUM = 248,
	CONTEXT = 140,
	WITH_PICTURES = 3, /* a version */
	FEATURES = 6
};

static jit_model *model;
static uint8_t own[HEADER]; /* of a session that has no tokens */
static uint64_t extent_bytes;

static const struct tiny_model small = {
	.arch = "mistral",
	.layers = 2,
	.hidden = 4,
	.ffn = 6,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 2,
	.vocab = 5,
	.type = DTYPE_F32,
	.tied = true,
	.extra = ", \"sliding_window\": 9"
};

static jit_session *open_session(void)
{
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = JIT_SPECULATE_OFF), NULL);
	if (!s)
		abort();
	return s;
}

static void close_model(void) { jit_model_close(model); }

/* Computes two tokens, which asks for everything that was restored. */
static void use(jit_session *s)
{
	const int32_t id = 1;
	jit_error err = { 0 };

	if (jit_session_length(s) > CONTEXT + 1)
		abort();
	for (size_t i = 0; i < jit_session_length(s); i++)
		if (jit_session_ids(s)[i] < 0 || jit_session_ids(s)[i] >= (int32_t)small.vocab)
			abort();
	for (int i = 0; i < 2; i++)
		if (jit_session_feed(s, &id, 1, &err) != JIT_OK && !err.message[0])
			abort();
}

static void restore(const uint8_t *p, size_t n)
{
	jit_session *s = open_session();
	jit_error err = { 0 };

	if (jit_session_restore(s, fuzz_file(0, "state", p, n), &err) != JIT_OK &&
	    (!err.message[0] || jit_session_length(s)))
		abort();
	use(s);
	jit_session_close(s);
}

static const uint8_t *read_back(const char *path, uint8_t *out, size_t max, size_t *n)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		abort();
	*n = fread(out, 1, max, f);
	fclose(f);
	return out;
}

/* The same picture at two places, and only a part of it at the second. */
static void show(jit_session *s)
{
	struct image_features like = {
		.tokens = FEATURES, .width = small.hidden, .levels = 1, .rows = 2, .columns = 3
	};
	jit_error err = { 0 };

	like.values = calloc(FEATURES * small.hidden, sizeof *like.values);
	struct image_features *f = like.values ? picture_open(&like, NULL) : NULL;
	if (!f || session_feed_image(s, f, 0, FEATURES, 2, &err) != JIT_OK ||
	    jit_session_feed(s, &(int32_t){ 1 }, 1, &err) != JIT_OK ||
	    session_feed_image(s, f, 1, FEATURES - 2, 2, &err) != JIT_OK)
		abort();
	picture_release(f);
}

/* A saved session of so many tokens, at most `max` bytes. */
static size_t make(uint8_t *out, size_t max, unsigned tokens, bool pictures)
{
	jit_session *s;
	char path[300];
	size_t n;

	if (!model) {
		char hf[64];
		snprintf(hf, sizeof hf, "/tmp/jitrun-fuzz-model-XXXXXX");
		if (!mkdtemp(hf))
			abort();
		tiny_write_hf(hf, &small);
		model = jit_model_open(hf, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), NULL);
		snprintf(path, sizeof path, "%s/config.json", hf);
		remove(path);
		snprintf(path, sizeof path, "%s/model.safetensors", hf);
		remove(path);
		remove(hf);
		if (!model || atexit(close_model))
			abort();
		atomic_store(&model->shown, 1); /* as an image encoder says it */
		make(own, HEADER, 0, false);
		uint8_t one[16384];
		extent_bytes = (make(one, sizeof one, 1, false) - HEADER - 8) / small.layers;
	}
	s = open_session();
	for (unsigned i = 0; i < tokens; i++)
		if (jit_session_feed(s, &(int32_t){ (int32_t)(i % small.vocab) }, 1, NULL) != JIT_OK)
			abort();
	if (pictures)
		show(s);
	snprintf(path, sizeof path, "%s/saved", fuzz_directory());
	if (jit_session_save(s, path, NULL) != JIT_OK)
		abort();
	read_back(path, out, max, &n);
	remove(path);
	jit_session_close(s);
	return n;
}

void fuzz_state_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static uint8_t p[16384];
	static const unsigned tokens[] = { 0, 1, 3, 127, 128, 129, 140 };

	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		take(user, p, make(p, sizeof p, tokens[i], false));
	take(user, p, make(p, sizeof p, 0, true));
	take(user, p, make(p, sizeof p, 5, true));
}

/* Of what is behind the pieces of the cache: the table, and the features of each picture in it. */
static uint64_t sum_pictures(const uint8_t *p, size_t n, uint64_t sum)
{
	if (n < 8)
		return sum;
	const uint64_t runs = record_get32(p), pictures = record_get32(p + 4), table = 8 + 16 * runs + 32 * pictures;
	if (table > n)
		return sum;
	sum = record_checksum(p, table, sum);
	uint64_t at = table;
	for (uint64_t i = 0; i < pictures; i++) {
		const uint8_t *of = p + 8 + 16 * runs + 32 * i;
		const uint64_t bytes = 4ull * (record_get64(of) & 0xffff) * record_get32(of + 8) % (1 << 20);
		if (bytes > n - at)
			break;
		sum = record_checksum(p + at, bytes, sum);
		at += bytes;
	}
	return sum;
}

static void seal(uint8_t *p, size_t n)
{
	const uint32_t version = record_get32(p + AT_VERSION) == WITH_PICTURES ? WITH_PICTURES : 1;
	uint32_t length = record_get32(p + AT_LENGTH) % (CONTEXT + 3);
	uint64_t sum = version, at = HEADER, step = (length + length % 2) * 4, extents = UINT64_MAX;

	record_put32(p + AT_LENGTH, length);
	record_put32(p + AT_COMPUTED, record_get32(p + AT_COMPUTED) % (CONTEXT + 3));
	record_put32(p + AT_FIRST, record_get32(p + AT_FIRST) % 3);
	memcpy(p, own, AT_LENGTH);
	record_put32(p + AT_VERSION, version);
	memcpy(p + AT_ABOUT, own + AT_ABOUT, AT_HEADER_SUM - AT_ABOUT);
	if (version == WITH_PICTURES && record_get32(p + AT_FIRST) <= kv_chunks(record_get32(p + AT_COMPUTED)))
		extents =
			kv_extents_count(&model->file.spec, record_get32(p + AT_COMPUTED), record_get32(p + AT_FIRST));
	for (uint64_t i = 0; at + step <= n && (step || !i) && i <= extents; i++, at += step, step = extent_bytes)
		sum = record_checksum(p + at, step, sum);
	if (version == WITH_PICTURES)
		sum = sum_pictures(p + at, n - at, sum);
	record_put64(p + AT_BYTES, n - HEADER);
	record_put64(p + AT_SUM, sum);
	record_put64(p + AT_HEADER_SUM, record_checksum(p, AT_HEADER_SUM, version));
}

void fuzz_state(const uint8_t *p, size_t n)
{
	uint8_t none[HEADER];

	if (!model)
		make(none, HEADER, 0, false);
	restore(p, n);
	if (n < HEADER)
		return;
	uint8_t *copy = malloc(n);
	if (!copy)
		return;
	memcpy(copy, p, n);
	seal(copy, n);
	restore(copy, n);
	free(copy);
}
