/* tests/runtime/t_packed.c - packed models: the same bits as the files they are made from, the same file wherever they
 * are made, and one sentence for each that is damaged, of another version or of another target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/store/record.h"
#include "include/jitrun.h"
#include "runtime/model/packed.h"
#include "runtime/plan/weights.h"
#include "tests/runtime/mixed_model.h"
#include "tests/runtime/packed_check.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

/* The packed model, mapped and copied, against its source. */
static void check_same(const char *model, const char *device, const char *card)
{
	struct answers want = ask(model, device, 0);

	pack_well(model, card);
	for (int copy = 0; copy < 2; copy++) {
		struct answers got = ask(packed, device, copy);
		assert_string_equal(got.description, want.description);
		assert_int_equal(got.n, want.n);
		if (memcmp(got.logits, want.logits, want.n * sizeof *want.logits))
			fail_msg("%s on %s, %s: the logits differ from the packed model's", model, device,
			         copy ? "copied" : "mapped");
		free(got.logits);
	}
	free(want.logits);
}

static void test_golden_models(void **state)
{
	static const char *const golden[] = {
		"golden/llama-gqa4-bf16",
		"golden/gemma3-a",
		"golden/phi3-a/model-bf16.gguf",
		"data/stories260K/stories260K.gguf",
		"golden/glm4-a",
		"golden/glm4-a/model-bf16.gguf",
		"golden/phi3-a",
		"golden/olmo2-a",
		"golden/arcee-a",
		"golden/ministral3-a",
		"golden/gemma2-a",
		"golden/hunyuan-a",
		"golden/smollm3-a",
		"golden/granite-a",
		"golden/exaone4-a",
		"golden/qwen3-gqa2-bf16",
		"golden/ernie45-a/model-bf16.gguf",
		"data/stories260K/hf",
		"golden/llama-mha-f32",
		"golden/mistral-gqa4-f16",
		"golden/llama-a",
		"golden/ernie45-a",
		"golden/seedoss-a",
		"golden/seedoss-a/model-bf16.gguf",
		"models/tale-llama",
		"models/tale-qwen3/tale-qwen3-q4_k_m.gguf",
	};
	char path[1024];

	for (size_t i = 0; i < sizeof golden / sizeof *golden && (i < 4 || !test_quick()); i++)
		if (shared_path(path, golden[i]))
			check_same(path, "cpu", NULL);
}

/* Every format beside every other, at least once. */
static void test_all_formats(void **state)
{
	enum dtype type[DTYPE_COUNT];
	unsigned n = weight_types(type);
	char path[64];

	for (unsigned i = 0; i < n; i++) {
		struct mixed_types types = mixed_pair(type[i], type[(i + 1) % n]);
		int fd = mixed_model(path, &types);
		check_same(path, "cpu", NULL);
		close(fd);
	}
}

/* Rows that every format and every card takes. */
static const struct tiny_model wide = {
	.arch = "llama",
	.layers = 1,
	.hidden = 256,
	.ffn = 256,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 64,
	.vocab = 96,
	.type = DTYPE_F32,
	.tied = true
};

static void write_tiny(char path[128], const struct tiny_model *t, enum dtype type)
{
	struct error err = { 0 };
	size_t n;
	uint8_t *bytes = tiny_gguf(t, type, &n, &err);

	if (!bytes)
		fail_msg("%s", err.text);
	tiny_write(dir, "tiny.gguf", bytes, n);
	snprintf(path, 128, "%s/tiny.gguf", dir);
	free(bytes);
}

/* A card's layout, of which the device gets a copy; the file holds both. The interpreter maps what the CPU does. */
static void test_other_devices(void **state)
{
	char path[128];

	write_tiny(path, &wide, DTYPE_Q8_0);
	check_same(path, "sim:gfx1100", "gfx1100");
	check_same(path, "ref", NULL);
	unlink(path);
}

/* ---- the same file wherever it is made */

static void test_same_bytes(void **state)
{
	char path[128], other[128];
	struct error err = { 0 };
	size_t n, n_other;

	write_tiny(path, &wide, DTYPE_Q4_K);
	snprintf(other, sizeof other, "%s/other.jkm", dir);
	if (!pack(path, packed, "gfx1100", 1, &err))
		fail_msg("%s", err.text);
	assert_true(pack(path, other, "gfx1201", 3, &err)); /* another card of the same layout */
	uint8_t *a = file_bytes(packed, &n), *b = file_bytes(other, &n_other);
	assert_int_equal(n, n_other);
	assert_memory_equal(a, b, n);
	free(a);
	free(b);
	unlink(other);
	unlink(path);
}

/* What packing makes of certain rows: these numbers change with the layout alone, never with compiler or processor. */
static void test_layouts_are_the_same_everywhere(void **state)
{
	uint64_t all = 0, id;

	for (int layout = WEIGHT_BY_VECTOR; layout <= WEIGHT_LANE_CONTIGUOUS; layout++)
		for (int t = 0; t < DTYPE_COUNT; t++)
			if (weight_supported((enum dtype)t)) {
				uint8_t bytes[8];
				assert_true(weights_format_id((enum dtype)t, (enum weight_layout)layout, &id, NULL));
				record_put64(bytes, id);
				all = record_checksum(bytes, sizeof bytes, all);
			}
	if (all != UINT64_C(0x526398515699d016))
		fail_msg("the layouts of packed weights have changed, as 0x%016llx says: if that was meant, this is "
		         "the number to expect",
		         (unsigned long long)all);
}

/* ---- what is refused */

static void refused_with(const char *path, const char *device, int status, const char *part)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .cache_dir = "");
	jit_error err = { 0 };
	jit_model *m = jit_model_open(path, &mo, &err);

	if (m || err.code != status || !strstr(err.message, part))
		fail_msg("expected \"%s\" (%d), got %s \"%s\" (%d)", part, status, m ? "a model and" : "", err.message,
		         err.code);
}

static void write_bytes(const uint8_t *p, size_t n) { tiny_write(dir, "model.jkm", p, n); }

enum {
	HEADER = 64,
	RECORD = 64,
	AT_VERSION = 8,
	AT_SECTIONS = 12,
	AT_BYTES = 16,
	AT_INDEX = 24,
	AT_INDEX_SUM = 32,
	AT_SUM = 56
};

static void seal(uint8_t *p, size_t n)
{
	uint64_t index = record_get64(p + AT_INDEX);

	if (index <= n)
		record_put64(p + AT_INDEX_SUM, record_checksum(p + index, n - index, 1));
	record_put64(p + AT_SUM, record_checksum(p, AT_SUM, 1));
}

static void test_versions_and_targets(void **state)
{
	char path[128];
	size_t n;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	refused_with(packed, "sim:gfx1100", JIT_ERROR_UNSUPPORTED, "pack it with --target gfx1100");
	uint8_t *p = file_bytes(packed, &n);
	record_put32(p + AT_VERSION, 2);
	write_bytes(p, n);
	refused_with(packed, "cpu", JIT_ERROR_UNSUPPORTED, "has version 2, expected 1");
	record_put32(p + AT_VERSION, 1u << 24);
	write_bytes(p, n);
	refused_with(packed, "cpu", JIT_ERROR_UNSUPPORTED, "big-endian");
	record_put32(p + AT_VERSION, 1);
	uint8_t *index = p + record_get64(p + AT_INDEX);
	uint32_t sections = record_get32(p + AT_SECTIONS);
	for (uint32_t i = 0; i < sections; i++)
		if (record_get64(index + i * RECORD + 24))
			index[i * RECORD + 24] ^= 1; /* the layout of the weights */
	seal(p, n);
	write_bytes(p, n);
	refused_with(packed, "cpu", JIT_ERROR_UNSUPPORTED, "pack it again");
	free(p);
	unlink(path);
}

/* Every cut, and every byte changed: a sentence, or weights alone differ, and verifying says so. */
static bool opens(const uint8_t *p, size_t n, bool *sound)
{
	struct error err = { 0 }, why = { 0 };

	write_bytes(p, n);
	*sound = true;
	struct packed *o = packed_open(packed, &err);
	if (!o) {
		assert_true(err.text[0]);
		return false;
	}
	const struct container *c = packed_container(o);
	for (size_t i = 0; i < container_count(c); i++)
		*sound = container_verify(c, container_get(c, i), &why) && *sound;
	assert_true(*sound || strstr(why.text, "damaged"));
	packed_close(o);
	return true;
}

static void test_damage(void **state)
{
	const size_t step = test_quick() ? 61 : 7;
	char path[128];
	size_t n;
	bool sound;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	uint8_t *p = file_bytes(packed, &n);
	uint64_t index = record_get64(p + AT_INDEX);
	assert_true(opens(p, n, &sound) && sound);
	for (size_t cut = 0; cut < n; cut += cut < HEADER || cut >= index ? 1 : step * 16)
		if (opens(p, cut, &sound))
			fail_msg("a file of %zu of %zu bytes opens", cut, n);
	for (size_t i = 0; i < n; i += i < HEADER || i >= index ? 1 : step) {
		p[i] ^= 0x10;
		bool open = opens(p, n, &sound);
		if (open && (i < HEADER || i >= index))
			fail_msg("byte %zu of header or index", i);
		p[i] ^= 0x10;
	}
	free(p);
	unlink(path);
}

/* A byte of the weights: mapped, it is not compared, and 'jitwarm verify' finds it; copied, it is refused. */
static void test_damaged_weights(void **state)
{
	char path[128];
	size_t n;
	bool sound;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	uint8_t *p = file_bytes(packed, &n);
	struct container *c = container_open(packed, NULL);
	p[container_find(c, CONTAINER_WEIGHTS, WEIGHT_BY_VECTOR)->offset + 100] ^= 1;
	container_close(c);
	assert_true(opens(p, n, &sound) && !sound);
	jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "", .copy_weights = 1);
	jit_error err = { 0 };
	assert_null(jit_model_open(packed, &mo, &err));
	assert_int_equal(err.code, JIT_ERROR_FORMAT);
	assert_non_null(strstr(err.message, "of its section weights-cpu, does not fit"));
	free(p);
	unlink(path);
}

/* Numbers that lie, under checksums that fit. */
static void test_forged_numbers(void **state)
{
	static const uint64_t lies[] = {
		0, 1, 4095, 4097, 1 << 20, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX - 4095, UINT64_MAX
	};
	char path[128];
	size_t n;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	uint8_t *good = file_bytes(packed, &n), *bad = malloc(n);
	size_t index = (size_t)record_get64(good + AT_INDEX), records = record_get32(good + AT_SECTIONS) * RECORD;
	for (size_t at = 8; at < HEADER + records; at += 8) {
		size_t byte = at < HEADER ? at : index + at - HEADER;
		if (byte == AT_INDEX_SUM || byte == AT_SUM || (at < HEADER && at > AT_INDEX_SUM))
			continue;
		bool name = at >= HEADER && (at - HEADER) % RECORD >= 32;
		for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
			jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "");
			jit_error err = { 0 };
			memcpy(bad, good, n);
			record_put64(bad + byte, lies[i]);
			if (memcmp(bad, good, n) == 0)
				continue;
			seal(bad, n);
			write_bytes(bad, n);
			jit_model *m = jit_model_open(packed, &mo, &err);
			/* names, and the layout of what has none, say nothing that is used */
			bool harmless = name || (at >= HEADER && (at - HEADER) % RECORD == 24);
			if (m && !harmless)
				fail_msg("%llu at byte %zu", (unsigned long long)lies[i], byte);
			assert_true(m || err.message[0]);
			jit_model_close(m);
		}
	}
	free(good);
	free(bad);
	unlink(path);
}

/* ---- who may write it, and when */

static void test_trust(void **state)
{
	char path[128];

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	assert_int_equal(chmod(packed, 0666), 0);
	refused_with(packed, "cpu", JIT_ERROR_ARGUMENT, "lets others write it");
	unlink(path);
}

/* Seen by every session that is opened. */
static void test_changed_while_open(void **state)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "");
	char path[128];
	jit_error err = { 0 };
	size_t n;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	jit_model *m = jit_model_open(packed, &mo, &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(m, NULL, &err);
	assert_non_null(s);
	jit_session_close(s);
	uint8_t *p = file_bytes(packed, &n);
	write_bytes(p, n); /* in place: the same bytes at another time */
	free(p);
	assert_null(jit_session_open(m, NULL, &err));
	assert_int_equal(err.code, JIT_ERROR_IO);
	assert_non_null(strstr(err.message, "changed while it was in use"));
	jit_model_close(m);
	unlink(path);
}

/* A disk that is full, as far as a process can have one: the old file stays, and nothing beside it. */
static void test_no_room(void **state)
{
	char path[128], beside[200];
	struct rlimit before, small;
	struct error err = { 0 };
	size_t n, n_after;

	write_tiny(path, &tiny_min, DTYPE_Q8_0);
	pack_well(path, NULL);
	uint8_t *p = file_bytes(packed, &n);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (rlim_t max = 0; max < n; max += 4096) {
		small = (struct rlimit){ max, before.rlim_max };
		memset(&err, 0, sizeof err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		bool ok = pack(path, packed, NULL, 1, &err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_false(ok);
		assert_non_null(strstr(err.text, "cannot write all of the packed model"));
	}
	uint8_t *after = file_bytes(packed, &n_after);
	assert_int_equal(n_after, n);
	assert_memory_equal(p, after, n);
	free(p);
	free(after);
	unlink(path);
	snprintf(beside, sizeof beside, "test $(ls -A %s | wc -l) = 1", dir);
	assert_int_equal(system(beside), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_models),
		cmocka_unit_test(test_all_formats),
		cmocka_unit_test(test_other_devices),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_layouts_are_the_same_everywhere),
		cmocka_unit_test(test_versions_and_targets),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_damaged_weights),
		cmocka_unit_test(test_forged_numbers),
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_changed_while_open),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
