/* tests/runtime/t_vulkan.c - the device vulkan: small models give the CPU's logits there, bit for bit; copies go
 * through a buffer that both reach as well as directly; what cannot be is said.
 *
 * The device is the first one that a driver of Vulkan offers here, on most machines Mesa's llvmpipe;
 * JITRUN_TEST_VULKAN=vulkan:1 names another one. Without any, all is left out. What differs is told, and the rest is
 * done all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun.h"
#include "include/jitrun_cards.h"
#include "runtime/device/vulkan/vulkan.h"
#include "runtime/kernels/compute.h"
#include "tests/support/shared.h"

static const char *name;

/* llvmpipe compiles a model's kernels for half a minute, so the quick size takes none of them unless JITRUN_ONLY names
 * one, and the usual size every eighth. */
static const char *const models[] = {
	"llama-a/model-q8_0.gguf",
	"qwen3-gqa2-bf16",
	"qwen35-a",
	"gemma3-a",
	"qwen3moe-a",
	"llama-mha-f32",
	"gemma4-e-a",
	"lfm2-a",
	"phi3-a",
	"mixtral-a",
	"llama-a",
	"qwen2moe-a",
	"olmoe-a",
	"granitemoe-a",
	"glm4moe-a",
	"smollm3-a",
	"granite-a",
	"olmo2-a",
	"olmo3-a",
	"exaone4-a",
	"glm4-a",
	"arcee-a",
	"hunyuan-a",
	"ministral3-a",
	"gemma2-a",
	"cohere2-a",
	"gemma4-k-a",
	"llama-gqa4-bf16",
	"mistral-gqa4-f16",
	"ernie45-a",
	"seedoss-a",
	"deepseekv2-a",
	"deepseekv3-a",
	"glm4moelite-a",
	"gptoss-a",
	"mistral4-a",
	"gemma4-moe-a",
	"qwen35moe-a",
	"lfm2moe-a",
	"granitehybrid-a",
	"nemotronh-a",
	"qwen3next-a",
	"gptoss-a-mxfp4"
};
enum { MODELS = sizeof models / sizeof *models, TOKENS = 19, STEPS = 3 };

/* The logits behind a prompt and behind each of STEPS passes more, the second of several tokens, malloc'ed; NULL: err.
 */
static float *logits_of(const char *path, const char *device, int kv, size_t *n, jit_error *err)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .cache_dir = "");
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 64, .kv = kv);
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m = jit_model_open(path, &mo, err);
	jit_session *s = m ? jit_session_open(m, &so, err) : NULL;
	float *all = NULL;
	bool ok = s && jit_model_get_info(m, &info, err) == JIT_OK;

	*n = (size_t)info.vocab;
	if (ok)
		all = malloc(*n * (STEPS + 1) * sizeof *all);
	for (int step = 0; ok && step <= STEPS; step++) {
		int32_t ids[TOKENS];
		const int count = step == 2 ? 5 : step ? 1 : TOKENS;
		for (int i = 0; i < count; i++)
			ids[i] = ((step * 7 + i) * 29 + 3) % (int)*n;
		const float *logits =
			jit_session_feed(s, ids, (size_t)count, err) == JIT_OK ? jit_session_logits(s, err) : NULL;
		ok = logits != NULL;
		if (ok)
			memcpy(all + (size_t)step * *n, logits, *n * sizeof *all);
	}
	jit_session_close(s);
	jit_model_close(m);
	if (ok)
		return all;
	free(all);
	return NULL;
}

/* False: they differ, and that was told. */
static bool same(const char *model, const char *path, int kv)
{
	jit_error err = { 0 };
	size_t n, m, at = 0;
	float *want = logits_of(path, "cpu", kv, &n, &err), *got = want ? logits_of(path, name, kv, &m, &err) : NULL;
	const bool equal = got && memcmp(want, got, n * (STEPS + 1) * sizeof *got) == 0;

	while (got && !equal && memcmp(&want[at], &got[at], sizeof *got) == 0)
		at++;
	if (!got)
		printf("# %s: %s\n", model, err.message);
	else if (!equal)
		printf("# %s: step %zu, logit %zu is %a, the CPU says %a\n", model, at / n, at % n, (double)got[at],
		       (double)want[at]);
	fflush(stdout);
	free(want);
	free(got);
	return equal;
}

static void test_models(void **state)
{
	static const int kv[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };
	unsigned differ = 0, run = 0;
	char path[1024], relative[80];

	for (unsigned k = 0; k < MODELS; k++) {
		if (getenv("JITRUN_ONLY") ? !strstr(models[k], getenv("JITRUN_ONLY"))
		                          : test_quick() || (!test_full() && k % 8))
			continue;
		snprintf(relative, sizeof relative, "golden/%s", models[k]);
		if (!shared_path(path, relative))
			continue;
		differ += !same(models[k], path, kv[k % 3]);
		run++;
	}
	printf("# %u models, %u differ\n", run, differ);
	if (!run)
		skip();
	assert_int_equal(differ, 0);
}

/* Bytes there and back, over the ends of what is copied at a time. */
static void test_copies(void **state)
{
	const size_t bytes = (size_t)9 << 20;

	for (unsigned stages = 0; stages < 2; stages++) {
		struct error err = { 0 };
		uint8_t *want = malloc(bytes), *got = calloc(1, bytes);
		if (stages)
			setenv("JITRUN_VULKAN_STAGES", "1", 1);
		struct device *d = device_open(name, NULL, &err);
		assert_non_null(d);
		uint8_t *there = d->alloc(d, bytes, DEVICE_BUFFERS, &err);
		assert_non_null(there);
		assert_true(d->read(d, got, there, bytes, &err));
		for (size_t k = 0; k < bytes; k++) {
			assert_int_equal(got[k], 0);
			want[k] = (uint8_t)(k * 2654435761u >> 16);
		}
		assert_true(d->upload(d, there + 1, want + 1, bytes - 1, &err));
		assert_true(d->read(d, got + 1, there + 1, bytes - 1, &err));
		assert_memory_equal(want + 1, got + 1, bytes - 1);
		assert_false(d->read(d, got, (uint8_t *)(uintptr_t)16, 1, &err));
		assert_non_null(strstr(err.text, "0x10 is no address of"));
		d->release(d, there, bytes);
		err = (struct error){ 0 };
		assert_null(d->alloc(d, (size_t)1 << 60, DEVICE_WEIGHTS, &err));
		assert_non_null(strstr(err.text, "the packed weights: 1152921504606846976 bytes are more than the "));
		device_close(d);
		unsetenv("JITRUN_VULKAN_STAGES");
		free(want);
		free(got);
	}
}

static void refuses(const char *device, const char *isa, const char *why)
{
	struct error err = { 0 };

	assert_null(device_open(device, isa, &err));
	if (!strstr(err.text, why))
		fail_msg("%s: \"%s\", expected: %s", device, err.text, why);
}

static void test_names(void **state)
{
	struct error err = { 0 };
	struct device *d = device_open(name, NULL, &err);
	char part[64];

	assert_non_null(d);
	assert_string_equal(d->facts.name, name);
	snprintf(part, sizeof part, "vulkan:%.5s", ((struct vulkan *)d)->is.name);
	device_close(d);
	d = device_open(part, NULL, &err);
	assert_non_null(d);
	device_close(d);
	refuses("vulkan:9", NULL, "so there is no number 9");
	refuses("vulkan:99", NULL, "expected vulkan:NUMBER or a part of its name");
	refuses("vulkan:no such name", NULL, "expected vulkan:NUMBER or a part of its name");
	refuses("vulkan", "avx2", "the device vulkan has what its driver compiles for");
}

/* A long loop is done, or its kernel is refused: llvmpipe leaves it silently. */
static void test_loops(void **state)
{
	static const char text[] =
		"const i64 n = 8;\n"
		"kernel count(out f32 o[n]) over (i in n) {\n"
		"	f32 x = 1;\n"
		"	for (j in 0..7000000) {\n"
		"		x = x * 0.5 + f32(i);\n"
		"	}\n"
		"	o[i] = x;\n"
		"}\n";
	jit_error err = { 0 };
	float o[2][8] = { { 0 } };

	for (unsigned k = 0; k < 2; k++) {
		jit_compute *c =
			jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = k ? name : "cpu", .cache_dir = ""), &err);
		jit_kernel *kernel = c ? jit_kernel_open(c, &JIT_KERNEL_OPTIONS(.source = text), &err) : NULL;
		if (!kernel)
			fail_msg("%s", err.message);
		const bool all = k == 0 || ((struct vulkan *)c->device)->choice[SPIRV_LOOPS];
		jit_launch *l = jit_launch_open(kernel, &err);
		assert_non_null(l);
		assert_int_equal(jit_launch_set_memory(l, 0, o[k], sizeof o[k], &err), JIT_OK);
		const int result = jit_launch_run(l, &err);
		assert_int_equal(result == JIT_OK, all);
		if (!all)
			assert_non_null(strstr(err.message, "more iterations in all than the driver does in one call"));
		else
			assert_memory_equal(o[k], o[0], sizeof o[0]);
		jit_launch_close(l);
		jit_kernel_close(kernel);
		jit_compute_close(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_copies),
		                            cmocka_unit_test(test_loops), cmocka_unit_test(test_models) };
	struct error err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	name = getenv("JITRUN_TEST_VULKAN") ? getenv("JITRUN_TEST_VULKAN") : "vulkan";
	struct device *d = device_open(name, NULL, &err);
	if (!d) {
		printf("# skipped: %s\n", err.text);
		return 77;
	}
	device_close(d);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
