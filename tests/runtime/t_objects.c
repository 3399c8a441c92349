/* tests/runtime/t_objects.c - code objects written for a card from a model's header alone: which files there are, that
 * they are the same each time, and that each is a program a simulated card takes. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "programs/synth/synth.h"
#include "jit/key.h"
#include "jit/ptx/ptx.h"
#include "jit/rdna/program.h"
#include "kernels-templates/templates.h"
#include "include/jitrun_cards.h"
#include "runtime/device/program.h"
#include "sim/ptx.h"
#include "sim/sim.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/t_objects.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[96];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

static const char *in_dir(char path[512], const char *name)
{
	snprintf(path, 512, "%s/%s", dir, name);
	return path;
}

/* A model of two layers whose file ends behind its header. */
static void write_header(char path[512])
{
	struct error err = { 0 };
	size_t n;
	uint8_t *bytes = synth_header(&n, shape_find("tiny"), mixture_find("q4_k_m"), &err);
	FILE *f = fopen(in_dir(path, "header.gguf"), "wb");

	assert_non_null(bytes);
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
}

static uint8_t *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	uint8_t *p = malloc((4 << 20) + 1);

	assert_non_null(f);
	assert_non_null(p);
	*n = fread(p, 1, 4 << 20, f);
	fclose(f);
	return p;
}

/* A file is named by a kernel's key or by a pass. */
static bool is_pass(const char *name, const char *target)
{
	char stem[KEY_TEXT_MAX], pass[64];
	struct key key;

	snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen(".co")), name);
	for (int tokens = 1; tokens <= 16; tokens++) {
		snprintf(pass, sizeof pass, "pass-c%d.%s", tokens, target);
		if (strcmp(stem, pass) == 0)
			return true;
	}
	if (!key_parse(&key, stem))
		fail_msg("%s is named after no kernel", name);
	return false;
}

static void check_file(const char *folder, const char *again, const char *name, const char *target)
{
	char path[900];
	struct error err = { 0 };
	size_t n, n_again;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	uint8_t *bytes = read_file(path, &n);
	snprintf(path, sizeof path, "%s/%s", again, name);
	uint8_t *bytes_again = read_file(path, &n_again);
	assert_true(n == n_again && memcmp(bytes, bytes_again, n) == 0);
	struct sim_device *dev = sim_open(target, &err);
	struct sim_object *o = sim_load(dev, bytes, n, &err);
	if (!o)
		fail_msg("%s: %s", name, err.text);
	assert_non_null(sim_find(o, RDNA_PROGRAM_KERNEL));
	sim_unload(o);
	sim_close(dev);
	free(bytes);
	free(bytes_again);
}

static void write_objects(const char *model, const char *folder, const char *target, jit_objects *made)
{
	jit_error err = { 0 };

	if (jit_write_objects(model, &JIT_OBJECTS_OPTIONS(.target = target, .dir = folder), made, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

static void test_files(void **state)
{
	static const char *const targets[] = { "gfx1030", "gfx1101", "gfx1201" };
	char model[512], first[512], second[512];
	(void)state;

	write_header(model);
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
		char name[64];
		size_t kernels = 0, passes = 0;
		jit_objects made = JIT_OBJECTS(), again = JIT_OBJECTS();
		snprintf(name, sizeof name, "a-%s", targets[t]);
		write_objects(model, in_dir(first, name), targets[t], &made);
		name[0] = 'b';
		write_objects(model, in_dir(second, name), targets[t], &again);
		DIR *d = opendir(first);
		assert_non_null(d);
		for (struct dirent *e; (e = readdir(d));) {
			if (e->d_name[0] == '.')
				continue;
			*(is_pass(e->d_name, targets[t]) ? &passes : &kernels) += 1;
			check_file(first, second, e->d_name, targets[t]);
		}
		closedir(d);
		assert_int_equal(passes, 4);
		assert_int_equal(made.programs, 4);
		assert_int_equal(made.kernels, kernels);
		assert_true(kernels > 20 && made.bytes > 0 && made.bytes == again.bytes);
	}
}

/* Whether the simulator, whose parser is its own, takes the text; and both files are the same. */
static void check_text(const char *folder, const char *again, const char *name, unsigned capability)
{
	char path[900];
	struct error err = { 0 };
	size_t n, n_again;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	char *text = (char *)read_file(path, &n);
	snprintf(path, sizeof path, "%s/%s", again, name);
	uint8_t *text_again = read_file(path, &n_again);
	assert_true(n == n_again && memcmp(text, text_again, n) == 0);
	text[n] = 0;
	struct ptx_text *t = ptx_text_read(text, capability, &err);
	if (!t)
		fail_msg("%s: %s", name, err.text);
	assert_true(ptx_text_has(t, PTX_ENTRY));
	ptx_text_free(t);
	free(text);
	free(text_again);
}

/* For NVIDIA cards: each kernel, named after its key, and nothing else. */
static void test_texts(void **state)
{
	static const char *const targets[] = { "sm80", "sm90" };
	char model[512], first[512], second[512];
	(void)state;

	write_header(model);
	for (unsigned t = 0; t < 2; t++) {
		char name[64], stem[KEY_TEXT_MAX];
		size_t kernels = 0;
		jit_objects made = JIT_OBJECTS(), again = JIT_OBJECTS();
		snprintf(name, sizeof name, "c-%s", targets[t]);
		write_objects(model, in_dir(first, name), targets[t], &made);
		name[0] = 'd';
		write_objects(model, in_dir(second, name), targets[t], &again);
		DIR *d = opendir(first);
		assert_non_null(d);
		for (struct dirent *e; (e = readdir(d));) {
			struct key key;
			size_t n = strlen(e->d_name);
			if (e->d_name[0] == '.')
				continue;
			assert_true(n > 4 && strcmp(e->d_name + n - 4, ".ptx") == 0);
			snprintf(stem, sizeof stem, "%.*s", (int)(n - 4), e->d_name);
			assert_true(key_parse(&key, stem) && key.target == target_find(targets[t])->id);
			check_text(first, second, e->d_name, t ? 90 : 80);
			kernels++;
		}
		closedir(d);
		assert_true(kernels > 20 && made.kernels == kernels && made.programs == 0);
		assert_true(made.bytes > 0 && made.bytes == again.bytes);
	}
}

static void refused(const char *says, const char *model, const jit_objects_options *o)
{
	jit_error err = { 0 };

	assert_int_not_equal(jit_write_objects(model, o, NULL, &err), JIT_OK);
	if (!strstr(err.message, says))
		fail_msg("\"%s\" does not say %s", err.message, says);
}

static void test_refusals(void **state)
{
	char model[512], there[512];
	(void)state;

	write_header(model);
	refused("avx2", model, &JIT_OBJECTS_OPTIONS(.target = "avx2", .dir = dir));
	refused("gfx1200", model, &JIT_OBJECTS_OPTIONS(.target = "gfx906", .dir = dir));
	refused("directory", model, &JIT_OBJECTS_OPTIONS(.target = "gfx1100"));
	refused("header.gguf/x", model,
	        &JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = in_dir(there, "header.gguf/x")));
	refused("nothing.gguf", in_dir(there, "nothing.gguf"), &JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = dir));
}

/* From one phase that uses LDS to the next, the waves of a workgroup have met: in one of the phases from the first on.
 * Returns how many met there alone. */
static unsigned check_early_clobber(const struct plan *p, const struct program *program, struct registry *r)
{
	unsigned alone = 0;
	bool used = false, met = true, all_met = true;

	for (size_t i = 0; i < program->n_commands; i++) {
		const struct object *o = &registry_get(r, &p->kernel[p->op[i].kernel].key, NULL, NULL)->object;
		if (o->frame_bytes || o->shared_bytes) {
			assert_true(!used || met);
			alone += used && !all_met;
			used = true;
			met = all_met = false;
		}
		met |= (program->command[i].flags & (RDNA_COMMAND_BARRIER | RDNA_COMMAND_WORKGROUP_BARRIER)) != 0;
		all_met |= (program->command[i].flags & RDNA_COMMAND_BARRIER) != 0;
	}
	return alone;
}

static void test_lds_is_kept_apart(void **state)
{
	static const struct registry_options options = { .build = template_build };
	struct error err = { 0 };
	struct weights weights;
	struct model model;
	char path[512];
	unsigned alone = 0;
	(void)state;

	write_header(path);
	assert_true(model_open(&model, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err));
	assert_true(weights_describe(&weights, &model.spec, &err));
	for (uint32_t tokens = 1; tokens <= 16; tokens *= 4) {
		const struct plan_options o = { .target = &target_table[TARGET_GFX1100] };
		struct registry *r = registry_open(&options, &err);
		struct program program;
		struct plan p;
		assert_true(plan_outline(&p, &model.spec, &weights, DTYPE_F16, tokens, PLAN_ALL_LOGITS, &o, &err));
		assert_true(program_make(&program, &p, p.args, r, o.target, &err));
		alone += check_early_clobber(&p, &program, r);
		program_free(&program);
		plan_free(&p);
		registry_close(r);
	}
	assert_true(alone > 0); /* or nothing was shown */
	weights_close(&weights);
	model_close(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_texts, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_refusals, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_lds_is_kept_apart, make_dir, remove_dir)
	};
	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
