/* tests/jit/t_ptx_text.c - the PTX text of a small model's kernels: the same twice, every operation on floats with its
 * rounding, no branch that may diverge; and where NVIDIA's assembler is found (ptxas, in $PATH or /usr/local/cuda/bin),
 * it takes them and keeps all registers in registers.
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

#include "jit/ptx/ptx.h"
#include "kernels-templates/templates.h"
#include "loaders/model.h"
#include "runtime/plan/plan.h"
#include "tests/support/shared.h"

static const char *const names[] = { "sm80", "sm90" };

/* Each kernel of passes over one token and over several. */
static unsigned each_kernel(const char *model, const struct target *t,
                            void (*fn)(const struct target *t, const struct key *key, const struct object *o))
{
	static const uint32_t tokens[] = { 1, 7 };
	const struct plan_options opt = { .target = t };
	struct error err = { 0 };
	struct weights w;
	struct model m;
	char path[1024];
	unsigned n = 0;

	if (!shared_path(path, model))
		return 0;
	if (!model_open(&m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) || !weights_describe(&w, &m.spec, &err))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < 2; i++) {
		struct plan p;
		if (!plan_outline(&p, &m.spec, &w, DTYPE_F16, tokens[i], PLAN_LAST_LOGITS, &opt, &err))
			fail_msg("%s", err.text);
		for (size_t k = 0; k < p.n_kernels; k++, n++) {
			struct object o;
			if (!compile_key(&o, &p.kernel[k].key, template_build, NULL, NULL, &err))
				fail_msg("%s", err.text);
			fn(t, &p.kernel[k].key, &o);
			object_free(&o);
		}
		plan_free(&p);
	}
	weights_close(&w);
	model_close(&m);
	return n;
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

static void check_text(const struct target *t, const struct key *key, const struct object *o)
{
	struct error err = { 0 };
	struct object again;
	const char *text = (const char *)o->code, *end = text + o->code_bytes;

	assert_true(compile_key(&again, key, template_build, NULL, NULL, &err));
	assert_int_equal(again.code_bytes, o->code_bytes);
	assert_memory_equal(again.code, o->code, o->code_bytes);
	object_free(&again);
	for (const char *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		check_line(line, (size_t)(next - line));
		line = next + 1;
	}
}

static void test_text(void **state)
{
	for (unsigned t = 0; t < 2; t++)
		each_kernel("golden/llama-a/model-q8_0.gguf", target_find(names[t]), check_text);
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

static unsigned turn, assembled;

static void assemble(const struct target *t, const struct key *key, const struct object *o)
{
	char path[] = "/tmp/t_ptx_text-XXXXXX", command[300], line[300], name[KEY_TEXT_MAX];
	bool spills = false, used = false;

	if (turn++ % (test_full() ? 1 : test_quick() ? 11 : 4))
		return;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, o->code, o->code_bytes), o->code_bytes);
	close(fd);
	snprintf(command, sizeof command, "%s -v -arch=sm_%s -o /dev/null %s 2>&1", assembler(), t->name + 2, path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		spills = spills ||
		         (strstr(line, "bytes spill") && !strstr(line, "0 bytes spill stores, 0 bytes spill loads"));
		used = used || strstr(line, "Used ");
		if (strstr(line, "error") || strstr(line, "fatal"))
			printf("# %s", line);
	}
	int status = pclose(f);
	unlink(path);
	if (status || spills || !used)
		fail_msg("%s: %s", key_text(key, name, sizeof name),
		         spills ? "registers are spilled" : "it is refused");
	assembled++;
}

static void test_assembler(void **state)
{
	if (!assembler()) {
		printf("# skipped: no ptxas is installed\n");
		skip();
	}
	for (unsigned t = 0; t < 2; t++)
		each_kernel("golden/llama-a/model-q8_0.gguf", target_find(names[t]), assemble);
	printf("# ptxas took %u kernels\n", assembled);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_writer),
		                            cmocka_unit_test(test_assembler) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
