/* tests/jit/t_ptx_text.c - the PTX text of a small model's kernels, each by itself and all of a pass as one program:
 * the same twice, every operation on floats with its rounding, no branch that may diverge; and where NVIDIA's assembler
 * is found (ptxas, in $PATH or /usr/local/cuda/bin), it takes them and keeps all registers in registers.
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

#include "jit/ir/ir_build.h"
#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model.h"
#include "runtime/plan/plan.h"
#include "tests/support/shared.h"

static const char *const names[] = { "sm80", "sm90" };
static const char *const models[] = { "golden/llama-a/model-q8_0.gguf", "golden/qwen3-gqa2-bf16",
	                              "golden/gemma4-moe-a/model-q8_0.gguf" };

struct outlined {
	struct model m;
	struct weights w;
};

/* False: there is no such model here. */
static bool outline(struct outlined *o, const char *model)
{
	struct error err = { 0 };
	char path[1024];

	if (!shared_path(path, model))
		return false;
	if (!model_open(&o->m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !weights_describe(&o->w, &o->m.spec, &err))
		fail_msg("%s", err.text);
	return true;
}

static void outline_end(struct outlined *o)
{
	weights_close(&o->w);
	model_close(&o->m);
}

static void outline_plan(const struct outlined *o, struct plan *p, const struct target *t, uint32_t tokens)
{
	const struct plan_options opt = { .target = t };
	struct error err = { 0 };

	if (!plan_outline(p, &o->m.spec, &o->w, DTYPE_F16, tokens, PLAN_LAST_LOGITS, &opt, &err))
		fail_msg("%s", err.text);
}

/* Each kernel of passes over one token and over several. */
static unsigned each_kernel(const char *model, const struct target *t,
                            void (*fn)(const struct target *t, const char *name, const struct key *key,
                                       const struct object *o))
{
	static const uint32_t tokens[] = { 1, 7 };
	struct error err = { 0 };
	struct outlined m;
	unsigned n = 0;

	if (!outline(&m, model))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		struct plan p;
		outline_plan(&m, &p, t, tokens[i]);
		for (size_t k = 0; k < p.n_kernels; k++, n++) {
			struct object o;
			char name[KEY_TEXT_MAX];
			if (!compile_key(&o, &p.kernel[k].key, template_build, NULL, NULL, &err))
				fail_msg("%s", err.text);
			fn(t, key_text(&p.kernel[k].key, name, sizeof name), &p.kernel[k].key, &o);
			object_free(&o);
		}
		plan_free(&p);
	}
	outline_end(&m);
	return n;
}

/* The kernels of a pass over one token as one text. False: there is no such model here. */
static bool make_program(const char *model, const struct target *t, struct object *out)
{
	enum { MAX = 64 };
	static struct ir ir[MAX];
	const struct ir *list[MAX];
	struct error err = { 0 };
	struct outlined m;
	struct plan p;

	if (!outline(&m, model))
		return false;
	outline_plan(&m, &p, t, 1);
	assert_in_range(p.n_kernels, 1, MAX);
	for (size_t k = 0; k < p.n_kernels; k++) {
		ir_init(&ir[k], t->lanes);
		ir[k].waves = t->waves;
		if (!template_build(&ir[k], &p.kernel[k].key, t, &err))
			fail_msg("%s", err.text);
		list[k] = &ir[k];
	}
	if (!ptx_program(out, list, p.n_kernels, t, &err))
		fail_msg("%s: %s", model, err.text);
	for (size_t k = 0; k < p.n_kernels; k++)
		ir_free(&ir[k]);
	plan_free(&p);
	outline_end(&m);
	return true;
}

/* --- the text by itself */

static void check_line(const char *line, size_t n)
{
	static const char *const free_of_rounding[] = { "setp.", "cvt.f32.f16", "cvt.rni.", "ld.", "st." };
	char copy[200];

	snprintf(copy, sizeof copy, "%.*s", (int)n, line);
	const char *op = copy + strspn(copy, "\t");
	if (*op == '@')
		op += strcspn(op, " ") + 1;
	bool fine = !strstr(op, ".f32") || strstr(op, ".rn.");
	for (unsigned k = 0; k < sizeof free_of_rounding / sizeof *free_of_rounding; k++)
		fine = fine || strncmp(op, free_of_rounding[k], strlen(free_of_rounding[k])) == 0;
	if (!fine || strstr(op, ".ftz") || strstr(op, "min.f32") || strstr(op, "max.f32"))
		fail_msg("an operation without its rounding: %s", copy);
	if (strncmp(op, "bra", 3) == 0 && strncmp(op, "bra.uni", 7) != 0)
		fail_msg("a branch that may diverge: %s", copy);
}

static void check_lines(const struct object *o)
{
	const char *text = (const char *)o->code, *end = text + o->code_bytes;

	for (const char *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		check_line(line, (size_t)(next - line));
		line = next + 1;
	}
}

static void same_text(const struct object *o, struct object *again)
{
	assert_int_equal(again->code_bytes, o->code_bytes);
	assert_memory_equal(again->code, o->code, o->code_bytes);
	object_free(again);
}

static void check_text(const struct target *t, const char *name, const struct key *key, const struct object *o)
{
	struct error err = { 0 };
	struct object again;

	assert_true(compile_key(&again, key, template_build, NULL, NULL, &err));
	same_text(o, &again);
	check_lines(o);
}

static void test_text(void **state)
{
	for (unsigned t = 0; t < 2; t++)
		each_kernel(models[0], target_find(names[t]), check_text);
}

static void test_program_text(void **state)
{
	struct object o, again;

	for (unsigned t = 0; t < 2; t++)
		for (unsigned m = 0; m < sizeof models / sizeof *models; m++)
			if (make_program(models[m], target_find(names[t]), &o)) {
				assert_true(make_program(models[m], target_find(names[t]), &again));
				same_text(&o, &again);
				check_lines(&o);
				assert_non_null(
					memmem(o.code, o.code_bytes, PTX_PROGRAM_ENTRY, strlen(PTX_PROGRAM_ENTRY)));
				object_free(&o);
			}
}

/* A kernel that reads arguments which are not in a command, or nobody knows which, is refused. */
static void test_program_arguments(void **state)
{
	static const int64_t at[] = { 0, 184, 188, 192, -8, 4 };
	static const bool word[] = { true, true, true, false, false, true },
			  pointer[] = { true, true, false, false, false, false };
	const struct target *t = target_find("sm90");

	for (unsigned k = 0; k < 2 * sizeof at / sizeof *at + 1; k++) {
		const bool wide = k & 1, computed = k == 2 * sizeof at / sizeof *at;
		const int64_t disp = computed ? 0 : at[k / 2];
		struct error err = { 0 };
		struct object o;
		struct ir b;
		ir_init(&b, t->lanes);
		b.waves = t->waves;
		ir_a arg = ir_arg(&b), out = ir_aload(&b, arg, 8), from = arg;
		if (computed)
			from = ir_aadd(&b, arg, ir_sshli(&b, ir_begin(&b), 3));
		ir_s value = wide ? ir_sload64(&b, from, disp) : ir_sload32(&b, from, disp);
		ir_fstore(&b, out, ir_i2f(&b, ir_isplat(&b, value)), 0, 0);
		bool made = ptx_program(&o, (const struct ir *const[]){ &b }, 1, t, &err);
		if (made != (!computed && (wide ? pointer : word)[k / 2]))
			fail_msg("arguments at %d: %s", (int)disp, made ? "taken" : err.text);
		object_free(&o);
		ir_free(&b);
	}
}

/* What the table does not have, or the target, is refused and not written. */
static void test_writer(void **state)
{
	struct ptx_writer w;

	ptx_init(&w, 80);
	struct ptx_operand r = ptx_new(&w, PTX_B32), d = ptx_new(&w, PTX_B64);
	PTX_PUT(&w, ADD_F32, r, r, r);
	assert_null(w.wrong);
	assert_string_equal(w.body.text, "\tadd.rn.f32 %r0, %r0, %r0;\n");
	PTX_PUT0(&w, GRID_WAIT);
	assert_non_null(w.wrong);
	w.wrong = NULL;
	PTX_PUT(&w, ADD_F32, r, r, d);
	assert_non_null(w.wrong);
	w.wrong = NULL;
	PTX_PUT(&w, ADD_F32, r, r);
	assert_non_null(w.wrong);
	w.wrong = NULL;
	PTX_PUT(&w, LD_GLOBAL_B32, r, ptx_at(d, (int64_t)1 << 31));
	assert_non_null(w.wrong);
	assert_string_equal(w.body.text, "\tadd.rn.f32 %r0, %r0, %r0;\n");
	ptx_free(&w);
}

/* --- NVIDIA's assembler */

static const char *assembler(void)
{
	static const char *const at[] = { "/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas", "/usr/local/bin/ptxas" };

	for (unsigned k = 0; k < sizeof at / sizeof *at; k++)
		if (access(at[k], X_OK) == 0)
			return at[k];
	return NULL;
}

static unsigned counter, assembled;

/* Returns how many registers a lane has. */
static unsigned assemble_text(const struct target *t, const char *name, const struct object *o)
{
	char path[] = "/tmp/t_ptx_text-XXXXXX", command[300], line[300];
	bool spills = false;
	unsigned used = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, o->code, o->code_bytes), o->code_bytes);
	close(fd);
	snprintf(command, sizeof command, "%s -v -arch=sm_%s -o /dev/null %s 2>&1", assembler(), t->name + 2, path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		const char *registers = strstr(line, "Used ");
		spills = spills ||
		         (strstr(line, "bytes spill") && !strstr(line, "0 bytes spill stores, 0 bytes spill loads"));
		used = registers ? (unsigned)atoi(registers + strlen("Used ")) : used;
		if (strstr(line, "error") || strstr(line, "fatal"))
			printf("# %s", line);
	}
	int status = pclose(f);
	unlink(path);
	if (status || spills || !used)
		fail_msg("%s: %s", name, spills ? "registers are spilled" : "it is refused");
	assembled++;
	return used;
}

static void assemble(const struct target *t, const char *name, const struct key *key, const struct object *o)
{
	if (counter++ % (test_full() ? 1 : test_quick() ? 11 : 4) == 0)
		assemble_text(t, name, o);
}

static void test_assembler(void **state)
{
	if (!assembler()) {
		printf("# skipped: no ptxas is installed\n");
		skip();
	}
	for (unsigned t = 0; t < 2; t++)
		each_kernel(models[0], target_find(names[t]), assemble);
	printf("# ptxas took %u kernels\n", assembled);
}

static void test_program_assembler(void **state)
{
	struct object o;

	if (!assembler()) {
		printf("# skipped: no ptxas is installed\n");
		skip();
	}
	for (unsigned t = test_quick() ? 1 : 0; t < 2; t++)
		for (unsigned m = 0; m < sizeof models / sizeof *models; m++)
			if (make_program(models[m], target_find(names[t]), &o)) {
				printf("# %s, %s: %u registers a lane\n", models[m], names[t],
				       assemble_text(target_find(names[t]), models[m], &o));
				object_free(&o);
			}
}

/* Kernels of prompts, whose operands a block's warps share. */
static void test_shared_operands(void **state)
{
	static const char *const keys[] = { "matmul.q8_0.aq8_0.1024x3072.c64.b1.resid.mma.sm90",
		                            "matmul.q8_0.aq8_0.64x1088.c64.b1.silu.pair.q8out.mma.sm90",
		                            "matmul.q4_k.aq8_0.64x8192.c64.b1.silu.pair.q8out.mma.sm90",
		                            "matmul.q6_k.aq8_0.2048x8192.c64.b1.resid.mma.sm90",
		                            "matmul.bf16.abf16.1024x3072.c64.b1.silu.pair.mma.bounded.sm90" };

	if (!assembler()) {
		printf("# skipped: no ptxas is installed\n");
		skip();
	}
	for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++) {
		struct error err = { 0 };
		struct object o;
		struct key key;
		assert_true(key_parse(&key, keys[k]));
		if (!compile_key(&o, &key, template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
		printf("# %s: %u registers a lane\n", keys[k], assemble_text(target_find("sm90"), keys[k], &o));
		object_free(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_program_text),
		cmocka_unit_test(test_program_arguments),
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_assembler),
		cmocka_unit_test(test_shared_operands),
		cmocka_unit_test(test_program_assembler)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
