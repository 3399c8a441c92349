/* tests/runtime/t_adapters_golden.c - adapters against what transformers and peft computed for them: logits close,
 * greedy ids equal; as PEFT's folders and as the GGUF files that llama.cpp's converter made of them, on models of both
 * kinds. Then trained adapters that show in the text.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/runtime/adapter_sessions.h"

enum { MAX = 512 };

/* ---- reference data */

static json_t *load_expected(const char *folder)
{
	char path[1200];

	snprintf(path, sizeof path, "%s/expected.json", folder);
	json_t *o = json_load_file(path, 0, NULL);
	assert_non_null(o);
	return o;
}

static size_t ids_of(const json_t *run, const char *name, int32_t out[MAX])
{
	const json_t *list = json_object_get(run, name);
	const size_t n = json_array_size(list);

	assert_in_range(n, 1, MAX);
	for (size_t i = 0; i < n; i++)
		out[i] = (int32_t)json_integer_value(json_array_get(list, i));
	return n;
}

/* The f32 tensor of a folder's logits.safetensors, malloc'ed. */
static float *logits_of(const char *folder, const char *name, size_t *n)
{
	char path[1200];
	size_t bytes;
	uint64_t header;

	snprintf(path, sizeof path, "%s/logits.safetensors", folder);
	uint8_t *all = file_bytes(path, &bytes);
	memcpy(&header, all, 8);
	json_t *o = json_loadb((const char *)all + 8, header, 0, NULL);
	const json_t *at = json_object_get(json_object_get(o, name), "data_offsets");
	assert_non_null(at);
	const size_t begin = (size_t)json_integer_value(json_array_get(at, 0)),
		     end = (size_t)json_integer_value(json_array_get(at, 1));
	float *out = malloc(end - begin);
	memcpy(out, all + 8 + header + begin, end - begin);
	*n = (end - begin) / 4;
	json_decref(o);
	free(all);
	return out;
}

/* ---- golden adapters */

static void check_logits(jit_session *s, const char *folder, const char *name, double tolerance)
{
	size_t n;
	float *want = logits_of(folder, name, &n);
	const float *got = jit_session_logits(s, NULL);
	double largest = 0, worst = 0;

	assert_non_null(got);
	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, fabs(want[i]));
		worst = fmax(worst, fabs(want[i] - got[i]));
	}
	if (worst > tolerance * largest)
		fail_msg("%s, %s: logits differ by %g of %g", folder, name, worst, largest);
	free(want);
}

static void check_greedy(jit_session *s, const char *folder, const json_t *run, double floor)
{
	int32_t want[MAX], id;
	const size_t n = ids_of(run, "greedy", want);
	jit_error err = { 0 };

	for (size_t i = 0; i < n; i++) {
		const double margin = json_number_value(json_array_get(json_object_get(run, "margin"), i));
		if (jit_session_next(s, &id, &err) != JIT_OK)
			fail_msg("%s", err.message);
		if (id == want[i])
			continue;
		if (margin > floor)
			fail_msg("%s: token %zu is %d, the reference has %d with margin %g", folder, i, id, want[i],
			         margin);
		return;
	}
}

/* file: of the adapter's folder; "": the folder itself. */
static void check_golden(const char *adapter, const char *file, const char *base, const char *base_file, float scale,
                         size_t runs)
{
	const struct way way = { .kv = JIT_KV_F32 };
	char folder[1024], model[1024], path[1100], name[64];
	int32_t ids[MAX];

	snprintf(name, sizeof name, "golden-more/%.40s", adapter);
	if (!shared_path(folder, name))
		skip();
	snprintf(name, sizeof name, "golden/%.20s/%.30s", base, base_file);
	if (!shared_path(model, name))
		skip();
	snprintf(path, sizeof path, "%s/%s", folder, file);
	jit_model *m = open_model(model, "cpu", true);
	jit_adapter *a = open_adapter(m, path);
	jit_session *s = open_session(m, &way);
	json_t *expected = load_expected(folder), *all = json_object_get(expected, "runs");

	assert_string_equal(json_string_value(json_object_get(expected, "base")), base);
	use(s, &a, &scale, 1);
	for (size_t i = 0; i < json_array_size(all) && i < runs; i++) {
		const json_t *run = json_array_get(all, i);
		const size_t n = ids_of(run, "prompt", ids);
		feed(s, ids, n);
		snprintf(name, sizeof name, "prompt%zu", n);
		check_logits(s, folder, name, 2e-5);
		check_greedy(s, folder, run, 1e-3);
	}
	json_decref(expected);
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
}

static void test_golden_folders(void **unused)
{
	check_golden("lora-llama-a", "", "llama-a", "", 1, 4);
	check_golden("lora-llama-rs-a", "", "llama-a", "", 1, 4);
	check_golden("lora-qwen3-a", "", "qwen3-gqa2-bf16", "", 1, 4);
	check_golden("lora-gemma3-a", "", "gemma3-a", "", 1, 4);
}

/* As llama.cpp's converter wrote them: rows of llama's queries and keys lie in another order there. It has no word for
 * rslora, whose scale is larger by the root of the rank. */
static void test_golden_gguf(void **unused)
{
	check_golden("lora-llama-a", "adapter-f32.gguf", "llama-a", "", 1, 4);
	check_golden("lora-llama-rs-a", "adapter-f32.gguf", "llama-a", "", sqrtf(6), 1);
	check_golden("lora-qwen3-a", "adapter-f32.gguf", "qwen3-gqa2-bf16", "", 1, 1);
	check_golden("lora-gemma3-a", "adapter-f32.gguf", "gemma3-a", "", 1, 1);
}

/* Either kind of adapter on the model's GGUF file. */
static void test_golden_on_gguf(void **unused)
{
	check_golden("lora-llama-a", "", "llama-a", "model-bf16.gguf", 1, 4);
	check_golden("lora-llama-a", "adapter-f32.gguf", "llama-a", "model-bf16.gguf", 1, 4);
	check_golden("lora-gemma3-a", "", "gemma3-a", "model-bf16.gguf", 1, 1);
	check_golden("lora-gemma3-a", "adapter-f32.gguf", "gemma3-a", "model-bf16.gguf", 1, 1);
}

/* ---- adapters whose style shows in the text */

static void check_style(const char *adapter, const char *model_path)
{
	char folder[1024], path[1024], name[64];
	const struct way way = { .kv = JIT_KV_F32 };
	int32_t ids[MAX];

	snprintf(name, sizeof name, "models/%.40s", adapter);
	if (!shared_path(folder, name) || !shared_path(path, model_path))
		skip();
	jit_model *m = open_model(path, "cpu", true);
	jit_adapter *a = open_adapter(m, folder);
	jit_session *s = open_session(m, &way);
	json_t *expected = load_expected(folder), *runs = json_object_get(expected, "runs");

	use(s, &a, NULL, 1);
	for (size_t i = 0; i < json_array_size(runs) && (i == 0 || !test_quick()); i++) {
		const json_t *run = json_array_get(runs, i);
		feed(s, ids, ids_of(run, "prompt", ids));
		check_greedy(s, folder, run, 2e-3);
	}
	json_decref(expected);
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
}

static void test_styles(void **unused)
{
	check_style("tale-llama-shout", "models/tale-llama");
	check_style("tale-llama-whisper", "models/tale-llama");
	check_style("tale-qwen3-shout", "models/tale-qwen3");
	check_style("tale-qwen3-whisper", "models/tale-qwen3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_folders),
		cmocka_unit_test(test_golden_gguf),
		cmocka_unit_test(test_golden_on_gguf),
		cmocka_unit_test(test_styles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
