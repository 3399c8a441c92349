/* tests/jit/t_rdna_disassembly.c - what another disassembler reads in our code objects: every instruction is one it
 * knows, and its words for it, assembled, are the same bytes. Programs of models whose sizes are real and small, of
 * every mixture of weights, on a card of each generation. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "programs/synth/synth.h"
#include "include/jitrun_cards.h"
#include "tests/jit/rdna_disassembler.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

/* Programs hold the functions of all kernels, beside the driver. */
static void disassemble_programs(struct rdna_words *w, const char *tool, const char *dir)
{
	char path[600];
	unsigned n = 0;
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (strncmp(e->d_name, "pass-", 5) == 0) {
			uint64_t before = w->met;
			rdna_disassemble(w, tool, path);
			assert_true(w->met > before + 100);
			n++;
		}
		if (e->d_name[0] != '.')
			unlink(path);
	}
	closedir(d);
	assert_int_equal(n, 4);
}

static void add_model(struct rdna_words *w, const char *tool, const char *target, const char *shape,
                      const char *mixture)
{
	char dir[] = "/tmp/t_rdna_disassembly.XXXXXX", model[64];
	struct error err = { 0 };
	jit_error e = { 0 };
	size_t n;

	assert_non_null(mkdtemp(dir));
	snprintf(model, sizeof model, "%s.gguf", dir);
	uint8_t *bytes = synth_header(&n, shape_find(shape), mixture_find(mixture), &err);
	FILE *f = fopen(model, "wb");
	assert_non_null(bytes);
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
	if (jit_write_objects(model, &JIT_OBJECTS_OPTIONS(.target = target, .dir = dir), NULL, &e) != JIT_OK)
		fail_msg("%s", e.message);
	disassemble_programs(w, tool, dir);
	unlink(model);
	rmdir(dir);
}

/* Models as people have them; small ones then add the types that these lack. */
static const struct {
	const char *shape, *mixture;
} models[] = {
	{ "qwen3-0.6b", "bf16" },
	{ "mistral-7b", "q8_0" },
	{ "llama-3.2-1b", "q4_k_m" },
};
enum { MODELS = sizeof models / sizeof *models };

static bool seen_in_models(enum dtype type)
{
	bool seen = false;

	for (int i = 0; i < MODELS; i++) {
		const struct mixture *m = mixture_find(models[i].mixture);
		seen |= m->matrices == type || m->better == type || m->output == type;
	}
	return seen;
}

static void add_small_models(struct rdna_words *w, const char *tool, const char *target)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	char name[32];

	for (unsigned i = 0; i < n; i++)
		if (!seen_in_models(types[i]) && mixture_find(weight_type_name(name, types[i])))
			add_model(w, tool, target, "tiny", name);
}

static void check_target(const char *target)
{
	const char *tool = rdna_disassembler();
	struct rdna_words w = { 0 };

	for (int i = 0; i < MODELS; i++)
		add_model(&w, tool, target, models[i].shape, models[i].mixture);
	if (!test_quick())
		add_small_models(&w, tool, target);
	printf("# %s: %zu different instructions\n", target, w.n);
	rdna_assemble_back(&w, target);
	rdna_words_clear(&w);
}

static void test_gfx10(void **state)
{
	(void)state;
	check_target("gfx1030");
}
static void test_gfx11(void **state)
{
	(void)state;
	check_target("gfx1101");
}
static void test_gfx115(void **state)
{
	(void)state;
	check_target("gfx1151");
}
static void test_gfx12(void **state)
{
	(void)state;
	check_target("gfx1201");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gfx10), cmocka_unit_test(test_gfx11),
		                            cmocka_unit_test(test_gfx115), cmocka_unit_test(test_gfx12) };
	return cmocka_run_group_tests_name("rdna_disassembly", tests, NULL, NULL);
}
