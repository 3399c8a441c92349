/* tests/language/run_kernel.c - a kernel of the language on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/store/execmem.h"
#include "jit/target.h"
#include "tests/jit/ptx_call.h"
#include "tests/jit/rdna_call.h"
#include "tests/language/run_kernel.h"
#include "tests/support/shared.h"

enum { BETWEEN = 192, CANARY = 0xa5 };

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

uint64_t run_hash(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t k = 0; k < n; k++)
		h = (h ^ p[k]) * UINT64_C(1099511628211);
	return h;
}

/* --- opening */

static size_t split_constants(char *text, struct jk_value value[16])
{
	size_t n = 0;

	for (char *at = strtok(text, " "); at && n < 16; at = strtok(NULL, " ")) {
		char *equals = strchr(at, '=');
		assert_non_null(equals);
		*equals = 0;
		value[n++] = (struct jk_value){ at, equals + 1 };
	}
	return n;
}

static void lay_out(struct run *r)
{
	size_t at = BETWEEN;

	for (size_t k = 0; k < jk_parameters(r->kernel); k++) {
		const struct jk_parameter *p = jk_parameter(r->kernel, k);
		r->arg[k] = 0;
		if (!p->dims)
			continue;
		r->arg[k] = at;
		at += ((size_t)p->bytes + BETWEEN + 63) & ~(size_t)63;
	}
	r->bytes = (at + 63) & ~(size_t)63;
	at = r->bytes;
	r->memory = aligned_alloc(64, (at + 63) & ~(size_t)63);
	assert_non_null(r->memory);
	memset(r->memory, CANARY, at);
	for (size_t k = 0; k < jk_parameters(r->kernel); k++)
		if (jk_parameter(r->kernel, k)->dims)
			memset(r->memory + r->arg[k], 0, (size_t)jk_parameter(r->kernel, k)->bytes);
}

void run_open(struct run *r, const char *text, const char *kernel, const char *constants)
{
	char copy[300];
	struct jk_value value[16];
	struct jk_messages m;

	snprintf(copy, sizeof copy, "%s", constants);
	const size_t n = split_constants(copy, value);
	r->file = jk_parse("test.jk", text, strlen(text), &m);
	r->kernel = r->file ? jk_bind(r->file, kernel, value, n, &m) : NULL;
	if (!r->kernel) {
		jk_print_messages("test.jk", text, strlen(text), &m, stderr);
		fail_msg("%s", m.message[0].text);
	}
	lay_out(r);
}

void run_open_example(struct run *r, const char *example, const char *kernel, const char *constants)
{
	char relative[100], path[1024];
	size_t n;

	snprintf(relative, sizeof relative, "docs/examples/kernels/%s.jk", example);
	char *text = (char *)file_bytes(source_path(path, relative), &n); /* with room for one byte more */
	text[n] = 0;
	run_open(r, text, kernel, constants);
	free(text);
}

void run_close(struct run *r)
{
	jk_kernel_close(r->kernel);
	jk_file_close(r->file);
	free(r->memory);
}

static size_t number_of(const struct run *r, const char *name)
{
	for (size_t k = 0; k < jk_parameters(r->kernel); k++)
		if (strcmp(jk_parameter(r->kernel, k)->name, name) == 0)
			return k;
	fail_msg("there is no parameter %s", name);
	return 0;
}

void *run_array(const struct run *r, const char *name) { return r->memory + r->arg[number_of(r, name)]; }
void run_set_bits(struct run *r, const char *name, uint64_t bits) { r->arg[number_of(r, name)] = bits; }
void run_set_f32(struct run *r, const char *name, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, 4);
	run_set_bits(r, name, bits);
}

const char *run_refused(const char *text, const char *constants, struct jk_messages *m)
{
	char copy[300];
	struct jk_value value[16];

	snprintf(copy, sizeof copy, "%s", constants);
	const size_t n = split_constants(copy, value);
	struct jk_file *f = jk_parse("test.jk", text, strlen(text), m);
	struct jk_kernel *k = f ? jk_bind(f, NULL, value, n, m) : NULL;
	if (k)
		fail_msg("not refused: %s", text);
	jk_file_close(f);
	assert_true(m->n > 0);
	return m->message[0].text;
}

/* --- running. Units are cut in two calls wherever the machine can. */

static void address(const struct run *r, uint8_t *memory, uint64_t arg[JK_MAX_PARAMETERS + 1])
{
	for (size_t k = 0; k < jk_parameters(r->kernel); k++)
		arg[k] = jk_parameter(r->kernel, k)->dims ? (uintptr_t)memory + r->arg[k] : r->arg[k];
}

static void compare(const struct run *r, const uint8_t *memory, const uint8_t *want, const char *name)
{
	for (size_t at = 0; at < r->bytes; at++)
		if (memory[at] != want[at]) {
			size_t k = 0;
			for (size_t i = 0; i < jk_parameters(r->kernel); i++)
				if (jk_parameter(r->kernel, i)->dims && r->arg[i] <= at)
					k = i;
			fail_msg("%s: byte %zu of %s is %02x, expected %02x", name, at - (size_t)r->arg[k],
			         jk_parameter(r->kernel, k)->name, memory[at], want[at]);
		}
}

static void check_canaries(const struct run *r, const uint8_t *memory)
{
	uint8_t *only = malloc(r->bytes);

	assert_non_null(only);
	memcpy(only, memory, r->bytes);
	for (size_t k = 0; k < jk_parameters(r->kernel); k++)
		if (jk_parameter(r->kernel, k)->dims)
			memset(only + r->arg[k], CANARY, (size_t)jk_parameter(r->kernel, k)->bytes);
	for (size_t at = 0; at < r->bytes; at++)
		if (only[at] != CANARY)
			fail_msg("something outside of the arrays was written, at byte %zu", at);
	free(only);
}

static void build(const struct run *r, unsigned lanes, unsigned waves, struct ir *ir)
{
	struct error err = { 0 };

	if (!jk_build_lanes(ir, r->kernel, lanes, waves, false, &err))
		fail_msg("%u lanes: %s", lanes, err.text);
	if (!ir_verify(ir, &err)) {
		ir_print(ir, stderr);
		fail_msg("%u lanes: %s", lanes, err.text);
	}
}

static void interpret(const struct run *r, unsigned lanes, uint8_t *memory)
{
	uint64_t arg[JK_MAX_PARAMETERS + 1];
	const int64_t units = (int64_t)jk_units(r->kernel), cut = units / 3;
	struct ir ir;

	build(r, lanes, 1, &ir);
	address(r, memory, arg);
	ir_interp(&ir, arg, cut, units);
	ir_interp(&ir, arg, 0, cut);
	ir_free(&ir);
}

/* False: the target lacks a row that the kernel has. */
static bool compile(const struct run *r, const struct target *t, struct ir *ir, struct object *object)
{
	struct error err = { 0 };

	if (!jk_build(ir, r->kernel, t, false, &err))
		fail_msg("%s: %s", t->name, err.text);
	if (!ir_verify(ir, &err)) {
		ir_print(ir, stderr);
		fail_msg("%s: %s", t->name, err.text);
	}
	if (compile_ir(object, ir, t, &(struct compile_options){ .verify_passes = true }, NULL, &err))
		return true;
	if (err.code != ERROR_UNSUPPORTED || !strstr(err.text, "has no instruction")) {
		ir_print(ir, stderr);
		fail_msg("%s: %s", t->name, err.text);
	}
	ir_free(ir);
	return false;
}

static bool run_x86(const struct run *r, const struct target *t, uint8_t *memory)
{
	const struct target_cpu cpu = target_this_cpu();
	const int64_t units = (int64_t)jk_units_on(r->kernel, t), cut = units / 2;
	uint64_t arg[JK_MAX_PARAMETERS + 1];
	struct error err = { 0 };
	struct object object;
	kernel_fn fn = NULL;
	struct ir ir;

	if (!compile(r, t, &ir, &object))
		return false;
	if (target_runs(&cpu, t, NULL)) {
		void *code = execmem_map(object.code, object.code_bytes, &err);
		assert_non_null(code);
		memcpy(&fn, &code, sizeof fn);
		address(r, memory, arg);
		fn(arg, 0, cut);
		fn(arg, cut, units);
		execmem_unmap(code, object.code_bytes);
	}
	object_free(&object);
	ir_free(&ir);
	return fn != NULL;
}

static bool run_rdna(const struct run *r, enum rdna_gen gen, uint8_t *memory)
{
	const struct target *t = target_find(rdna_call_targets[gen]);
	uint64_t arg[JK_MAX_PARAMETERS + 1];
	struct error err = { 0 };
	struct object object;
	struct ir ir;

	if (!compile(r, t, &ir, &object))
		return false;
	address(r, memory, arg);
	const struct rdna_call c = {
		.object = &object,
		.gen = gen,
		.waves = 1,
		.arg = arg,
		.n_args = jk_parameters(r->kernel),
		.begin = 0,
		.end = (int64_t)jk_units_on(r->kernel, t),
		.memory = { { memory, r->bytes, true } }
	};
	if (!rdna_call(&c, &(struct sim_options){ .memory = SIM_MEMORY_RANDOM, .seed = 3, .perturb = 77 }, &err)) {
		ir_print(&ir, stderr);
		fail_msg("%s: %s", t->name, err.text);
	}
	object_free(&object);
	ir_free(&ir);
	return true;
}

static bool run_ptx(const struct run *r, uint8_t *memory)
{
	const struct target *t = target_find("sm90");
	struct error err = { 0 };
	struct object object;
	struct ir ir;
	struct ptx_card *card = ptx_card_open(90, &err);
	/* the words of arguments stand behind the arrays */
	const size_t bytes = r->bytes + 64 * ((JK_MAX_PARAMETERS + 8) / 8);
	uint8_t *block = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	uint64_t arg[JK_MAX_PARAMETERS + 1] = { 0 };
	uint64_t numbers = 0;

	assert_non_null(card);
	assert_non_null(block);
	memcpy(block, memory, r->bytes);
	if (!compile(r, t, &ir, &object)) {
		free(block);
		ptx_card_close(card);
		return false;
	}
	address(r, block, arg);
	for (size_t k = 0; k < jk_parameters(r->kernel); k++)
		if (!jk_parameter(r->kernel, k)->dims)
			numbers |= UINT64_C(1) << k;
	memcpy(block + r->bytes, arg, sizeof arg);
	const struct ptx_block_of b = { .memory = block,
		                        .bytes = bytes,
		                        .args = (uint64_t *)(void *)(block + r->bytes),
		                        .n_args = (unsigned)jk_parameters(r->kernel),
		                        .numbers = numbers };
	if (!ptx_call_block(card, &object, 1, &b, (int64_t)jk_units_on(r->kernel, t), &err)) {
		ir_print(&ir, stderr);
		fail_msg("%s: %s", t->name, err.text);
	}
	memcpy(memory, block, r->bytes);
	free(block);
	object_free(&object);
	ir_free(&ir);
	ptx_card_close(card);
	return true;
}

void run_everywhere(struct run *r, enum run_machines machines)
{
	uint8_t *want = aligned_alloc(64, (r->bytes + 63) & ~(size_t)63),
		*memory = aligned_alloc(64, (r->bytes + 63) & ~(size_t)63);

	assert_non_null(want);
	assert_non_null(memory);
	memcpy(want, r->memory, r->bytes);
	interpret(r, 8, want);
	check_canaries(r, want);
	for (unsigned lanes = 16; lanes <= 32; lanes *= 2) {
		memcpy(memory, r->memory, r->bytes);
		interpret(r, lanes, memory);
		compare(r, memory, want, lanes == 16 ? "16 lanes" : "32 lanes");
	}
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		const struct target *t = &target_table[id];
		memcpy(memory, r->memory, r->bytes);
		if (t->backend == &backend_x86 && run_x86(r, t, memory))
			compare(r, memory, want, t->name);
	}
	if (machines == RUN_CARDS) {
		for (enum rdna_gen gen = 0; gen < RDNA_GEN_COUNT; gen++) {
			memcpy(memory, r->memory, r->bytes);
			if (run_rdna(r, gen, memory))
				compare(r, memory, want, rdna_call_targets[gen]);
		}
		memcpy(memory, r->memory, r->bytes);
		if (run_ptx(r, memory))
			compare(r, memory, want, "sm90");
	}
	memcpy(r->memory, want, r->bytes);
	free(want);
	free(memory);
}
