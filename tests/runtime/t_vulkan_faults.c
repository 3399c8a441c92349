/* tests/runtime/t_vulkan_faults.c - what a driver of Vulkan refuses: each limit that kernels, allocations and launches
 * depend on, each call that fails, a device that is lost, and work that does not end.
 *
 * The driver is the first one here, on most machines Mesa's llvmpipe; what it says and does is changed on the way, in
 * the tables of functions that the device calls. Without any, all is left out.
 */
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
#include "runtime/plan/cut.h"
#include "tests/support/shared.h"

static struct vulkan_library *library;
static struct vulkan_instance_api real;

/* ---- limits: what the driver says is changed */

enum limit {
	INVOCATIONS,
	GROUP_SIZE,
	SUBGROUPS,
	GROUPS,
	PUSH_BYTES,
	ALLOCATIONS,
	ALLOCATION_BYTES,
	BUFFER_BYTES,
	SUBGROUP_SIZE,
	SUBGROUP_STAGES,
	NO_LIMIT
};
static enum limit changed;
static uint64_t changed_to;

static void properties(void *device, struct vulkan_properties *p)
{
	real.properties(device, p);
	for (void *next = p; next; next = ((struct vulkan_properties *)next)->next) {
		struct vulkan_properties *p10 = next;
		struct vulkan_properties_11 *p11 = next;
		struct vulkan_properties_13 *p13 = next;
		const bool is_10 = p10->type == VULKAN_PROPERTIES, is_11 = p10->type == VULKAN_PROPERTIES_11,
			   is_13 = p10->type == VULKAN_PROPERTIES_13;
		switch (changed) {
		case INVOCATIONS: is_10 ? p10->invocations = (uint32_t)changed_to : 0; break;
		case GROUP_SIZE: is_10 ? p10->group_sizes[0] = (uint32_t)changed_to : 0; break;
		case GROUPS: is_10 ? p10->groups[0] = (uint32_t)changed_to : 0; break;
		case PUSH_BYTES: is_10 ? p10->push_bytes = (uint32_t)changed_to : 0; break;
		case ALLOCATIONS: is_10 ? p10->allocations = (uint32_t)changed_to : 0; break;
		case ALLOCATION_BYTES: is_11 ? p11->allocation_bytes = changed_to : 0; break;
		case SUBGROUP_STAGES: is_11 ? p11->subgroup_stages = (uint32_t)changed_to : 0; break;
		case BUFFER_BYTES: is_13 ? p13->buffer_bytes = changed_to : 0; break;
		case SUBGROUPS: is_13 ? p13->max_subgroups = (uint32_t)changed_to : 0; break;
		case SUBGROUP_SIZE:
			if (is_11)
				p11->subgroup_size = (uint32_t)changed_to;
			if (is_13)
				p13->min_subgroup = p13->max_subgroup = (uint32_t)changed_to;
			break;
		default: break;
		}
	}
}

static struct device *open_with(enum limit limit, uint64_t to, struct error *err)
{
	changed = limit;
	changed_to = to;
	*err = (struct error){ 0 };
	struct device *d = device_open("vulkan", NULL, err);
	changed = NO_LIMIT;
	return d;
}

static void test_limits(void **state)
{
	static const struct {
		enum limit limit;
		uint64_t to;
		const char *says;
	} rows[] = { { INVOCATIONS, 4, "its driver's maxComputeWorkGroupInvocations is 4, kernels for spirv" },
		     { GROUP_SIZE, 7, "its driver's maxComputeWorkGroupSize[0] is 7, kernels for spirv" },
		     { SUBGROUPS, 0, "its driver's maxComputeWorkgroupSubgroups is 0, kernels for spirv" },
		     { GROUPS, 0, "its driver's maxComputeWorkGroupCount[0] is 0, kernels for spirv" },
		     { PUSH_BYTES, 39, "its driver's maxPushConstantsSize is 39, kernels for spirv" },
		     { ALLOCATIONS, 63, "its driver's maxMemoryAllocationCount is 63, kernels for spirv" },
		     { ALLOCATION_BYTES, 1000, "its driver's maxMemoryAllocationSize is 1000, kernels for spirv" },
		     { BUFFER_BYTES, 1000, "its driver's maxBufferSize is 1000, kernels for spirv" },
		     { SUBGROUP_SIZE, 64, "its subgroups have 64 lanes; 8, 16 or 32 are needed" },
		     { SUBGROUP_STAGES, 1, "its subgroups do nothing together where it computes" } };
	struct error err;

	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		assert_null(open_with(rows[k].limit, rows[k].to, &err));
		if (!strstr(err.text, rows[k].says))
			fail_msg("\"%s\", expected: %s", err.text, rows[k].says);
		if (rows[k].limit == SUBGROUP_SIZE || rows[k].limit == SUBGROUP_STAGES)
			continue;
		const char *needed = strstr(err.text, " need ");
		assert_non_null(needed);
		/* what is said to be needed is enough */
		const uint64_t enough = strtoull(needed + 6, NULL, 10);
		struct device *d = open_with(rows[k].limit, enough, &err);
		if (!d)
			fail_msg("%llu of limit %d: %s", (unsigned long long)enough, (int)rows[k].limit, err.text);
		device_close(d);
	}
}

/* ---- memory in pieces */

static void check_addresses(struct vulkan *d, uint8_t *at, const uint8_t *want, const struct cut_share share[4])
{
	/* what kernels see of a matrix is in one piece, and has its bytes */
	for (unsigned k = 0; k < 4; k++) {
		const uint64_t first = (uint64_t)(uintptr_t)at + share[k].at, size = share[k].bytes * share[k].units,
			       there = vulkan_argument(d, first);
		assert_int_equal(vulkan_argument(d, first + size - 1), there + size - 1);
		struct vulkan_region *r = vulkan_region_of(d, first);
		assert_non_null(r);
		assert_int_equal(r->address + (first - r->name), there);
		assert_memory_equal(r->mapped + (first - r->name), want + share[k].at, size);
	}
}

static void check_table(struct device *device, uint8_t *at, const struct cut_share share[4])
{
	struct vulkan *d = (struct vulkan *)device;
	struct error err = { 0 };
	/* a table of addresses has them as kernels need them */
	uint8_t *const table = device->alloc(device, 16, DEVICE_BUFFERS, &err);
	uint8_t *const address[] = { at + share[2].at, at + share[3].at };
	uint64_t there[2];
	assert_true(device->upload_addresses(device, table, address, 2, &err));
	assert_true(device->read(device, there, table, sizeof there, &err));
	for (unsigned k = 0; k < 2; k++)
		assert_int_equal(there[k], vulkan_argument(d, (uint64_t)(uintptr_t)address[k]));
	device->release(device, table, 16);
}

static void test_pieces(void **state)
{
	const uint64_t max = 1 << 20;
	/* two matrices, a gap, a matrix, one that is as large as can be */
	const struct cut_share share[] = {
		{ 0, 1000, 700 }, { 700000, 64, 4000 }, { 1000000, 512, 1000 }, { 1512000, 1000, 1040 }
	};
	const size_t bytes = 1512000 + 1040000 + WEIGHTS_SLACK;
	struct error err;
	uint8_t *const want = malloc(bytes), *const got = calloc(1, bytes);

	for (unsigned buffers = 0; buffers < 2; buffers++) {
		struct device *device = open_with(buffers ? BUFFER_BYTES : ALLOCATION_BYTES, max, &err);
		struct vulkan *d = (struct vulkan *)device;
		unsigned regions = 0;
		assert_non_null(device);
		assert_null(device->alloc(device, max + 1, DEVICE_CACHE, &err));
		if (!strstr(err.text, "the KV cache: 1048577 bytes are more than the 1048576 that ") ||
		    !strstr(err.text,
		            buffers ? "in one piece (maxBufferSize)" : "in one piece (maxMemoryAllocationSize)"))
			fail_msg("%s", err.text);
		err = (struct error){ 0 };
		assert_int_equal(device->share_bytes(device, bytes, share, 4), bytes);
		uint8_t *const at = device->alloc_shares(device, bytes, share, 4, &err);
		if (!at)
			fail_msg("%s", err.text);
		for (struct vulkan_region *r = d->regions; r; r = r->next)
			regions++;
		assert_in_range(regions, 3, 8);
		for (size_t k = 0; k < bytes; k++)
			want[k] = (uint8_t)(k * 2654435761u >> 16);
		assert_true(device->upload(device, at, want, bytes, &err));
		assert_true(device->read(device, got, at, bytes, &err));
		assert_memory_equal(want, got, bytes);
		check_addresses(d, at, want, share);
		check_table(device, at, share);
		device->release(device, at, bytes);
		assert_null(d->regions);
		/* a matrix that does not fit */
		const struct cut_share large = { 5000, 2000, 1000 };
		assert_null(device->alloc_shares(device, 2005000 + WEIGHTS_SLACK, &large, 1, &err));
		assert_non_null(strstr(err.text, "weights that must lie in one piece: 20"));
		assert_null(d->regions);
		device_close(device);
	}
	free(want);
	free(got);
}

static void test_allocations(void **state)
{
	struct error err;
	struct device *d = open_with(ALLOCATIONS, 64, &err);
	void *p[64];
	unsigned n = 0;

	assert_non_null(d);
	while (n < 64 && (p[n] = d->alloc(d, 100, DEVICE_ARRAYS, &err)))
		n++;
	assert_int_equal(n, 63); /* one is for copies */
	assert_non_null(strstr(err.text, "has 64 allocations already, which is all it may have"));
	d->release(d, p[10], 100);
	assert_non_null(p[10] = d->alloc(d, 100, DEVICE_ARRAYS, &err));
	while (n)
		d->release(d, p[--n], 100);
	device_close(d);
}

/* ---- calls that fail */

static const char text[] =
	"const i64 n = 100;\n"
	"kernel double_it(in f32 x[n], out f32 o[n]) over (i in n) {\n"
	"	o[i] = x[i] + x[i];\n"
	"}\n";

struct run {
	jit_compute *compute;
	jit_kernel *kernel;
	jit_launch *launch;
	float x[100], o[100];
};

/* Any of it may fail. Returns whether it ran. */
static bool begin_run(struct run *r, jit_error *err)
{
	r->kernel = jit_kernel_open(r->compute, &JIT_KERNEL_OPTIONS(.source = text), err);
	r->launch = r->kernel ? jit_launch_open(r->kernel, err) : NULL;
	for (unsigned k = 0; k < 100; k++)
		r->x[k] = (float)k;
	memset(r->o, 0, sizeof r->o);
	return r->launch && jit_launch_set_memory(r->launch, 0, r->x, sizeof r->x, err) == JIT_OK &&
	       jit_launch_set_memory(r->launch, 1, r->o, sizeof r->o, err) == JIT_OK &&
	       jit_launch_run(r->launch, err) == JIT_OK;
}

static void end_run(struct run *r)
{
	jit_launch_close(r->launch);
	jit_kernel_close(r->kernel);
	r->launch = NULL;
	r->kernel = NULL;
}

static struct vulkan_device_api device_real;
static unsigned calls, fails_at, fails_with_lost;
static bool stuck;          /* nothing ends */
static unsigned given_back; /* while it was so */
static uint64_t longest;    /* nanoseconds that somebody waited */

static int counted(void)
{
	if (++calls != fails_at)
		return 0;
	return fails_with_lost ? VULKAN_DEVICE_LOST : VULKAN_NO_HOST_MEMORY;
}

/* Those that can fail: the call of that number does, and does nothing. */
#define FAILS(name, parameters, ...) \
	static int fail_##name parameters \
	{ \
		const int result = counted(); \
		return result ? result : device_real.name(__VA_ARGS__); \
	}
FAILS(create_buffer, (void *d, const struct vulkan_buffer_info *i, const void *a, uint64_t *out), d, i, a, out)
FAILS(allocate, (void *d, const struct vulkan_allocate_info *i, const void *a, uint64_t *out), d, i, a, out)
FAILS(bind, (void *d, uint64_t buffer, uint64_t memory, uint64_t offset), d, buffer, memory, offset)
FAILS(map, (void *d, uint64_t m, uint64_t o, uint64_t n, uint32_t f, void **out), d, m, o, n, f, out)
FAILS(create_module, (void *d, const struct vulkan_module_info *i, const void *a, uint64_t *out), d, i, a, out)
FAILS(create_pipelines,
      (void *d, uint64_t c, uint32_t n, const struct vulkan_compute_info *i, const void *a, uint64_t *out), d, c, n, i,
      a, out)
FAILS(create_pool, (void *d, const struct vulkan_pool_info *i, const void *a, uint64_t *out), d, i, a, out)
FAILS(create_fence, (void *d, const struct vulkan_fence_info *i, const void *a, uint64_t *out), d, i, a, out)
FAILS(allocate_commands, (void *d, const struct vulkan_commands_info *i, void **out), d, i, out)
FAILS(begin, (void *c, const struct vulkan_begin_info *i), c, i)
FAILS(end, (void *c), c)
FAILS(reset_fences, (void *d, uint32_t n, const uint64_t *f), d, n, f)
FAILS(submit, (void *q, uint32_t n, const struct vulkan_submit_info *i, uint64_t f), q, n, i, f)

static int fail_wait_fences(void *d, uint32_t n, const uint64_t *f, uint32_t all, uint64_t ns)
{
	longest = ns > longest ? ns : longest;
	if (stuck)
		return VULKAN_TIMEOUT;
	const int result = counted();
	/* it ends all the same, so that what runs is no more */
	const int ended = device_real.wait_fences(d, n, f, all, ns);
	return result ? result : ended;
}

/* Those that give something back. */
#define GIVES_BACK(name, parameters, ...) \
	static void give_##name parameters \
	{ \
		given_back += stuck; \
		device_real.name(__VA_ARGS__); \
	}
GIVES_BACK(destroy_device, (void *d, const void *a), d, a)
GIVES_BACK(destroy_buffer, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(free_memory, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(destroy_layout, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(destroy_cache, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(destroy_pipeline, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(destroy_pool, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(destroy_fence, (void *d, uint64_t o, const void *a), d, o, a)
GIVES_BACK(free_commands, (void *d, uint64_t p, uint32_t n, void *const *c), d, p, n, c)

static void watch(struct vulkan *d)
{
	struct vulkan_device_api *const t = &d->api;

	device_real = *t;
	calls = 0;
	t->create_buffer = fail_create_buffer, t->allocate = fail_allocate, t->bind = fail_bind, t->map = fail_map;
	t->create_module = fail_create_module, t->create_pipelines = fail_create_pipelines;
	t->create_pool = fail_create_pool, t->create_fence = fail_create_fence;
	t->allocate_commands = fail_allocate_commands, t->begin = fail_begin, t->end = fail_end;
	t->reset_fences = fail_reset_fences, t->submit = fail_submit, t->wait_fences = fail_wait_fences;
	t->destroy_device = give_destroy_device, t->destroy_buffer = give_destroy_buffer;
	t->free_memory = give_free_memory, t->destroy_layout = give_destroy_layout;
	t->destroy_cache = give_destroy_cache, t->destroy_pipeline = give_destroy_pipeline;
	t->destroy_pool = give_destroy_pool, t->destroy_fence = give_destroy_fence;
	t->free_commands = give_free_commands;
}

static void open_run(struct run *r)
{
	jit_error err = { 0 };

	*r = (struct run){ .compute =
		                   jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "vulkan", .cache_dir = ""), &err) };
	if (!r->compute)
		fail_msg("%s", err.message);
	watch((struct vulkan *)r->compute->device);
}

static void check_result(const struct run *r)
{
	for (unsigned k = 0; k < 100; k++)
		assert_true(r->o[k] == 2 * (float)k);
}

/* Each call in turn fails, with and without memory that the host reaches: one sentence, and after a failure that is no
 * loss of the device the next run is right. */
static void sweep(bool lost)
{
	struct run r;
	unsigned failed = 0;

	fails_with_lost = lost;
	for (unsigned at = 1;; at++) {
		jit_error err = { 0 };
		open_run(&r);
		fails_at = at;
		const bool ok = begin_run(&r, &err);
		const bool reached = calls >= at;
		fails_at = 0;
		if (ok == reached)
			fail_msg("call %u: %s", at, ok ? "its failure was not noticed" : err.message);
		if (ok)
			check_result(&r);
		else if (!strstr(err.message, lost ? "the device was lost" : "memory"))
			fail_msg("call %u: %s", at, err.message);
		end_run(&r);
		err = (jit_error){ 0 };
		if (reached && ((struct vulkan *)r.compute->device)->lost) {
			assert_false(begin_run(&r, &err));
			assert_non_null(strstr(err.message, " is lost since "));
		} else {
			if (!begin_run(&r, &err))
				fail_msg("after call %u: %s", at, err.message);
			check_result(&r);
		}
		end_run(&r);
		jit_compute_close(r.compute);
		failed += reached;
		if (!reached)
			break;
	}
	printf("# %u calls failed\n", failed);
	assert_true(failed > 12);
}

static void test_failures(void **state)
{
	sweep(false);
	setenv("JITRUN_VULKAN_STAGES", "1", 1);
	sweep(false);
	unsetenv("JITRUN_VULKAN_STAGES");
}

static void test_lost(void **state)
{
	sweep(true);
	setenv("JITRUN_VULKAN_STAGES", "1", 1);
	sweep(true);
	unsetenv("JITRUN_VULKAN_STAGES");
}

/* ---- work that does not end */

static void test_stuck(void **state)
{
	struct run r;
	jit_error err = { 0 };

	setenv("JITRUN_CARD_PATIENCE", "30", 1);
	open_run(&r);
	longest = 0;
	if (!begin_run(&r, &err))
		fail_msg("%s", err.message);
	stuck = true;
	assert_int_equal(jit_launch_run(r.launch, &err), JIT_ERROR_DEVICE);
	if (!strstr(err.message, "failed: it did not end in time"))
		fail_msg("%s", err.message);
	assert_int_equal(longest, UINT64_C(30000000000));
	/* nobody waits again, and nothing else begins */
	const unsigned before = calls;
	err = (jit_error){ 0 };
	longest = 0;
	assert_int_equal(jit_launch_run(r.launch, &err), JIT_ERROR_DEVICE);
	assert_non_null(strstr(err.message, "is lost since a pass of 1 dispatches: it did not end in time"));
	struct device *d = r.compute->device;
	struct error why = { 0 };
	assert_null(d->alloc(d, 100, DEVICE_ARRAYS, &why));
	assert_non_null(strstr(why.text, "is lost since"));
	assert_int_equal(calls, before);
	assert_int_equal(longest, 0);
	end_run(&r);
	assert_int_equal(longest, 0);
	jit_compute_close(r.compute);
	assert_int_equal(longest, UINT64_C(10000000000));
	assert_int_equal(given_back, 0);
	stuck = false;

	/* what ends after all, before it is closed, is given back */
	open_run(&r);
	err = (jit_error){ 0 };
	if (!begin_run(&r, &err))
		fail_msg("%s", err.message);
	stuck = true;
	assert_int_equal(jit_launch_run(r.launch, &err), JIT_ERROR_DEVICE);
	stuck = false;
	assert_int_equal(jit_launch_run(r.launch, &err), JIT_ERROR_DEVICE); /* and stays lost */
	assert_true(vulkan_idle((struct vulkan *)r.compute->device, 60));
	end_run(&r);
	assert_int_equal(((struct vulkan *)r.compute->device)->allocations, 1);
	jit_compute_close(r.compute);
	unsetenv("JITRUN_CARD_PATIENCE");
}

/* Of work that never ends, what it may use stays: the driver's memory, that is, and none of ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libvulkan_\n"; }

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_limits),      cmocka_unit_test(test_pieces),
		                            cmocka_unit_test(test_allocations), cmocka_unit_test(test_failures),
		                            cmocka_unit_test(test_lost),        cmocka_unit_test(test_stuck) };
	struct error err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	struct device *d = device_open("vulkan", NULL, &err);
	if (!d) {
		printf("# skipped: %s\n", err.text);
		return 77;
	}
	device_close(d);
	library = (struct vulkan_library *)(uintptr_t)vulkan_library(NULL);
	real = library->api;
	library->api.properties = properties;
	changed = NO_LIMIT;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
