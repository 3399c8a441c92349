/* tests/jit/t_spirv_ops.c - SPIR-V for every row of ops.def: spirv-val judges each module, and the interpreter what it
 * computes on a device of Vulkan, byte for byte.
 *
 * Every operation alone on edge values, its operands vectors, broadcasts or constants, its destination on each operand;
 * scalars, memory of all kinds, loops, random kernels. Without spirv-val, or without a driver of Vulkan, that part is
 * left out, and says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "jit/target.h"
#include "runtime/device/vulkan/vulkan.h"
#include "tests/jit/op_kernels.h"
#include "tests/support/shared.h"

enum { SHOWN = 12 };
enum nans { NANS_EXACT, NANS_ALIKE };

static const struct target *target;
static struct vulkan *device; /* NULL: no device has this target */
static struct vulkan_region *memory;
static bool validates;
static char folder[] = "/tmp/t_spirv_ops.XXXXXX";
static unsigned failures, kernels, files;

static void tell(const char *what, const char *why)
{
	if (failures++ < SHOWN)
		printf("# %s, %s: %s\n", target->name, what, why);
}

/* ---- spirv-val: one call for many modules */

enum { FILES_MAX = 200 };

static void validate_all(void)
{
	char command[200];

	if (!files)
		return;
	snprintf(command, sizeof command,
	         "cd %s && for f in *.spv; do spirv-val --target-env vulkan1.3 $f || { cp $f failed; exit 1; }; done",
	         folder);
	if (system(command) != 0)
		tell("a module", "spirv-val refuses it");
	snprintf(command, sizeof command, "rm -f %s/*.spv", folder);
	assert_int_equal(system(command), 0);
	files = 0;
}

static void keep(const struct object *o)
{
	char path[100];

	snprintf(path, sizeof path, "%s/%03u.spv", folder, files++);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(o->code, 1, o->code_bytes, f), o->code_bytes);
	fclose(f);
	if (files == FILES_MAX)
		validate_all();
}

/* ---- the device */

static void relocate(struct random_ir_buffers *b, uint64_t by)
{
	for (unsigned k = 0; k < RANDOM_IR_POINTERS; k++)
		b->pointer[k] += by;
	for (unsigned k = 0; k < 3; k++)
		b->arg[k] += by;
}

static int dispatch(uint64_t pipeline, const struct spirv_launch *l)
{
	const struct vulkan_commands_info info = { .type = VULKAN_COMMANDS_INFO, .pool = device->pool, .count = 1 };
	const struct vulkan_begin_info begin = { .type = VULKAN_BEGIN_INFO };
	void *commands = NULL;
	int result = device->api.allocate_commands(device->logical, &info, &commands);

	assert_int_equal(result, 0);
	device->api.begin(commands, &begin);
	device->api.bind_pipeline(commands, 1, pipeline);
	device->api.push(commands, device->layout, VULKAN_STAGE_COMPUTE, 0, sizeof *l, l);
	device->api.dispatch(commands, 1, 1, 1);
	assert_int_equal(device->api.end(commands), 0);
	result = vulkan_run_commands(device, commands, device->fence);
	device->api.free_commands(device->logical, device->pool, 1, &commands);
	return result;
}

static bool run(const struct object *o, struct random_ir_buffers *b, int64_t begin, int64_t end, struct error *err)
{
	const uint64_t by = memory->address - (uint64_t)(uintptr_t)b,
		       scratch = memory->address + (sizeof *b + 63) / 64 * 64;
	struct spirv_launch l = { .arg = memory->address + offsetof(struct random_ir_buffers, arg),
		                  .scratch = scratch,
		                  .begin = begin,
		                  .per = (uint32_t)(end - begin) };
	uint64_t pipeline;

	if (!vulkan_make_pipeline(device, o, &pipeline, err))
		return false;
	relocate(b, by);
	memcpy(memory->mapped, b, sizeof *b);
	const int result = dispatch(pipeline, &l);
	memcpy(b, memory->mapped, sizeof *b);
	relocate(b, -by);
	device->api.destroy_pipeline(device->logical, pipeline, NULL);
	return !result || error_set(err, ERROR_DEVICE, "%s", vulkan_result_text(result));
}

static void compare(const struct random_ir_buffers *want, const struct random_ir_buffers *got, enum nans nans,
                    const char *what)
{
	char text[100];

	for (size_t k = 0; k < sizeof want->out; k += 4) {
		uint32_t w, g;
		memcpy(&w, want->out + k, 4);
		memcpy(&g, got->out + k, 4);
		if (w == g || (nans == NANS_ALIKE && op_is_nan(w) && op_is_nan(g)))
			continue;
		snprintf(text, sizeof text, "output word %zu is %08x, the interpreter says %08x", k / 4, g, w);
		tell(what, text);
		return;
	}
	if (memcmp(want->in, got->in, sizeof want->in) != 0)
		tell(what, "it wrote what is only read");
}

static void check(const struct ir *ir, const void *in, size_t in_bytes, uint64_t seed, int64_t begin, int64_t end,
                  enum nans nans, const char *what)
{
	struct error err = { 0 };
	struct object made;

	kernels++;
	if (!compile_ir(&made, ir, target, NULL, NULL, &err)) {
		tell(what, err.text);
		return;
	}
	if (validates)
		keep(&made);
	if (device) {
		struct random_ir_buffers *want = random_ir_buffers_new(seed), *got = random_ir_buffers_new(seed);
		memcpy(want->in, in, in_bytes);
		memcpy(got->in, in, in_bytes);
		ir_interp(ir, want->arg, begin, end);
		if (run(&made, got, begin, end, &err))
			compare(want, got, nans, what);
		else
			tell(what, err.text);
		free(want);
		free(got);
	}
	object_free(&made);
}

static void begin_ir(struct ir *b)
{
	ir_init(b, target->lanes);
	b->waves = target->waves;
}

/* ---- op by op */

static bool makes_nans(enum ir_op op)
{
	return op == IR_fadd || op == IR_fsub || op == IR_fmul || op == IR_ffma || op == IR_fdiv || op == IR_fsqrt ||
	       op == IR_fhalf || op == IR_fround || op == IR_ffloor || op == IR_fceil || op == IR_ftrunc;
}

static unsigned tried;

/* A driver takes its time to compile, so a row gets few of its forms at a time. */
static void check_vector_op(enum ir_op op, int64_t imm)
{
	uint32_t in[OP_WORDS];
	char what[60];
	const struct ir_facts *f = &ir_facts[op];
	const unsigned operands = 0u + (f->a != IR_TYPE__) + (f->b != IR_TYPE__) + (f->c != IR_TYPE__);

	op_fill(in, op);
	for (unsigned forms = 0; forms < (test_full() ? 64 : 1); forms++) {
		if ((forms & 3) == 3 || (forms >> 2 & 3) == 3 || forms >> 4 == 3 || forms >> 2 * operands)
			continue;
		for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
			struct ir b;
			if (test_quick() && tried++ % 48 != (unsigned)op % 48)
				continue;
			begin_ir(&b);
			snprintf(what, sizeof what, "%s #%lld, forms %x, on %u", f->name, (long long)imm, forms,
			         dst_on);
			if (op_build_vector(&b, op, imm, dst_on, forms, in))
				check(&b, in, sizeof in, 1, 0, 1, makes_nans(op) ? NANS_ALIKE : NANS_EXACT, what);
			ir_free(&b);
		}
	}
}

static void test_vector_ops(void **state)
{
	op_each_vector(target->lanes, check_vector_op);
	validate_all();
	assert_int_equal(failures, 0);
}

static void check_scalar(const struct ir *b, const void *in, size_t in_bytes, unsigned round)
{
	if (tried++ % (test_full() ? 1 : test_quick() ? 997 : 23) == 0)
		check(b, in, in_bytes, 1, 0, 1, NANS_EXACT, "scalars");
}

static void test_scalars(void **state)
{
	static const int64_t by[] = { 1, 3, 7, 640, 65537, INT32_MAX };
	uint64_t in[OP_DIVIDENDS];

	op_each_scalar(begin_ir, check_scalar);
	for (unsigned k = 0; k < sizeof by / sizeof *by; k += test_quick() ? 6 : 1) {
		struct ir b;
		begin_ir(&b);
		op_build_division(&b, by[k], in);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, "a quotient");
		ir_free(&b);
	}
	validate_all();
	assert_int_equal(failures, 0);
}

/* ---- memory, names, loops */

static void test_memory(void **state)
{
	uint32_t in[OP_WORDS];
	char what[40];
	struct ir b;

	op_fill(in, IR_f2i);
	for (unsigned n = 0; n <= target->lanes; n += test_quick() ? 6 : 1) {
		begin_ir(&b);
		op_build_lane_counts(&b, n);
		snprintf(what, sizeof what, "memory of %u lanes", n);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, what);
		ir_free(&b);
		begin_ir(&b);
		op_build_awaits(&b, n);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, what);
		ir_free(&b);
	}
	begin_ir(&b);
	op_build_names(&b);
	check(&b, in, sizeof in, 1, 0, 1, NANS_ALIKE, "names of variables");
	ir_free(&b);
	validate_all();
	assert_int_equal(failures, 0);
}

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };

	for (unsigned use = test_quick() ? 1 : 0; use < 2; use++) {
		struct ir b;
		begin_ir(&b);
		op_build_loops(&b, use);
		for (unsigned n = 0; n < 5; n += test_quick() ? 3 : 1)
			for (unsigned m = n + 1; m < 5; m++)
				check(&b, "", 0, 1, counts[n], counts[m], NANS_EXACT, "loops");
		ir_free(&b);
	}
	validate_all();
	assert_int_equal(failures, 0);
}

static void test_random(void **state)
{
	const unsigned n = test_full() ? 200 : test_quick() ? 1 : 60;
	char what[40];

	for (unsigned seed = 1; seed <= n; seed++) {
		struct random_ir_buffers *in = random_ir_buffers_new(seed);
		struct ir b;
		random_ir(&b, target->lanes, seed, 40 + seed % 160);
		snprintf(what, sizeof what, "random kernel %u", seed);
		check(&b, in->in, sizeof in->in, seed, (int64_t)seed % 5, (int64_t)seed % 5 + 1 + seed % 3, NANS_EXACT,
		      what);
		ir_free(&b);
		free(in);
	}
	validate_all();
	assert_int_equal(failures, 0);
}

static int begin_test(void **state)
{
	failures = kernels = tried = 0;
	return 0;
}

static int end_test(void **state)
{
	printf("# %u kernels, %u failed\n", kernels, failures);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

static struct vulkan *open_device(void)
{
	struct error err = { 0 };
	struct vulkan *d = vulkan_open(0, &err);

	if (d)
		memory = vulkan_map_region(d, sizeof(struct random_ir_buffers) + (1 << 20), "a test", &err);
	if (!memory)
		printf("# modules are not run: %s\n", err.text);
	return memory ? d : NULL;
}

static void close_device(struct vulkan *d)
{
	if (!d)
		return;
	vulkan_free_region(d, memory);
	device_close(&d->device);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	static const char *const targets[] = { "spirv8", "spirv16", "spirv32" };
	const struct CMUnitTest tests[] = { TEST(test_vector_ops), TEST(test_scalars), TEST(test_memory),
		                            TEST(test_loops), TEST(test_random) };
	struct vulkan *d = open_device();
	int failed = 0;

	validates = system("command -v spirv-val >/dev/null") == 0;
	if (!validates)
		printf("# modules are not validated: there is no spirv-val (Debian: spirv-tools)\n");
	assert_non_null(mkdtemp(folder));
	for (unsigned t = 0; t < 3; t++) {
		target = target_find(targets[t]);
		device = d && d->is.target == target ? d : NULL;
		if (d && !device)
			printf("# %s: not run, as subgroups of the device here have other sizes\n", target->name);
		failed += cmocka_run_group_tests_name(targets[t], tests, NULL, NULL);
	}
	close_device(d);
	char command[80];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) == 0 ? failed : 1;
}
