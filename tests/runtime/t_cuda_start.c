/* tests/runtime/t_cuda_start.c - what a start on an NVIDIA card asks of its driver and of the cache: every kernel is
 * linked once in its life, read twice (text and code) and loaded once in a process, whatever asks for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/model/model.h"
#include "tests/support/shared.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

static _Atomic unsigned links, loads, contexts, graphs;

static int count_link(void *state, int type, void *data, size_t bytes, const char *name, uint32_t n, int *options,
                      void **values)
{
	links++;
	return __real_cuda_simulated()->link_add(state, type, data, bytes, name, n, options, values);
}

static int count_load(void **module, const void *image)
{
	loads++;
	return __real_cuda_simulated()->module_load(module, image);
}

static int count_context(void **context, int device)
{
	contexts++;
	return __real_cuda_simulated()->context_retain(context, device);
}

static int count_graph(void **exec, void *graph, unsigned long long flags)
{
	graphs++;
	return __real_cuda_simulated()->graph_instantiate(exec, graph, flags);
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api;

	api = *__real_cuda_simulated();
	api.link_add = count_link;
	api.module_load = count_load;
	api.context_retain = count_context;
	api.graph_instantiate = count_graph;
	return &api;
}

static void must(bool ok, const jit_error *err)
{
	if (!ok)
		fail_msg("%s", err->message);
}

struct counted {
	unsigned links, loads, graphs;
	struct cache_counters cache;
	struct registry_counters registry;
};

/* A prompt and two tokens, in each of so many sessions. */
static struct counted start(const char *cache, unsigned sessions)
{
	static const int32_t ids[] = { 300, 311 };
	char path[1024];
	jit_error err = { 0 };
	struct counted c;

	links = loads = contexts = graphs = 0;
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.device = "sim:sm90", .cache_dir = cache, .threads = 2), &err);
	must(m != NULL, &err);
	for (unsigned i = 0; i < sessions; i++) {
		jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32, .threads = 2), &err);
		must(s && jit_session_feed(s, ids, 2, &err) == JIT_OK, &err);
		for (int step = 0; step < 2; step++)
			must(jit_session_feed(s, ids, 1, &err) == JIT_OK, &err);
		jit_session_close(s);
	}
	assert_int_equal(contexts, 1);
	cache_count(m->cache, &c.cache);
	registry_count(m->registry, &c.registry);
	c.links = links;
	c.loads = loads;
	c.graphs = graphs;
	jit_model_close(m);
	return c;
}

static void test_starts(void **state)
{
	char dir[] = "/tmp/t_cuda_start-XXXXXX", command[64];

	assert_non_null(mkdtemp(dir));
	struct counted cold = start(dir, 1), warm = start(dir, 1), twice = start(dir, 2);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	const unsigned kernels = (unsigned)cold.registry.generated;
	printf("# %u kernels, %u graphs\n", kernels, cold.graphs);
	assert_true(kernels > 10);
	assert_int_equal(cold.graphs, 2); /* a prompt of two, a token */
	assert_int_equal(cold.links, kernels);
	assert_int_equal(cold.loads, kernels);
	assert_int_equal(cold.cache.stored, 2 * kernels);
	assert_int_equal(warm.links, 0);
	assert_int_equal(warm.loads, kernels);
	assert_int_equal(warm.graphs, cold.graphs);
	assert_int_equal(warm.registry.generated, 0);
	assert_int_equal(warm.cache.hits, 2 * kernels);
	assert_int_equal(warm.cache.misses, 0);
	assert_int_equal(warm.cache.stored, 0);
	assert_int_equal(twice.links, 0);
	assert_int_equal(twice.loads, kernels);
	assert_int_equal(twice.cache.hits, 2 * kernels);
	assert_int_equal(twice.graphs, 2 * cold.graphs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_starts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
