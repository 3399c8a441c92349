/* tests/runtime/t_scan_models.c - models with the selective scan in a form of which no reference lies there, made from
 * one that does: Nemotron's with its feed-forward layers cut into experts, which then must compute what it computes
 * undivided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

/* Rows and columns from `first` on of a matrix of BF16. */
static void put_part(struct st_writer *w, const char *name, const struct slice *t, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols)
{
	uint16_t *part = malloc(rows * cols * 2);
	const uint64_t shape[] = { rows, cols };

	for (uint64_t r = 0; r < rows; r++)
		memcpy(part + r * cols, t->p + ((row + r) * t->dim[1] + col) * 2, cols * 2);
	st_write_tensor(w, name, DTYPE_BF16, 2, shape, part, rows * cols * 2);
	free(part);
}

/* ---- Nemotron: relu2 makes each number inside a feed-forward layer by itself, so that the layer is the sum of its
 * parts: a third is the expert of all tokens, and two are experts that all tokens go to, by a half each, times 2 */

static void put_cut(struct st_writer *w, const char *name, const struct slice *t)
{
	const bool up = strstr(name, "up_proj");
	char base[200], full[260];

	snprintf(base, sizeof base, "%.*s", (int)(strstr(name, up ? "up_proj" : "down_proj") - name), name);
	for (int i = 0; i < 3; i++) {
		snprintf(full, sizeof full, i ? "%sexperts.%d.%s" : "%sshared_experts.%.0d%s", base, i ? i - 1 : 0,
		         up ? "up_proj.weight" : "down_proj.weight");
		put_part(w, full, t, up ? 32 * (uint64_t)i : 0, up ? 32 : t->dim[0], up ? 0 : 32 * (uint64_t)i,
		         up ? t->dim[1] : 32);
	}
	if (!up)
		return;
	static const float none[2];
	snprintf(full, sizeof full, "%sgate.weight", base);
	st_write_tensor(w, full, DTYPE_BF16, 2, (const uint64_t[]){ 2, t->dim[1] }, NULL, 2 * t->dim[1] * 2);
	snprintf(full, sizeof full, "%sgate.e_score_correction_bias", base);
	st_write_tensor(w, full, DTYPE_F32, 1, (const uint64_t[]){ 2 }, none, sizeof none);
}

static void test_nemotron_experts(void **state)
{
	static const struct {
		const char *name;
		int value;
	} fields[] = { { "n_routed_experts", 2 },      { "num_experts_per_tok", 2 },
		       { "n_shared_experts", 1 },      { "moe_intermediate_size", 32 },
		       { "routed_scaling_factor", 2 }, { "moe_shared_expert_intermediate_size", 32 } };
	static const struct remade_run runs[] = { { "cpu", 1 }, { "cpu", 7 }, { "ref", 16 }, { "sim:gfx1100", 16 } };
	struct original o;
	struct st_writer w;
	char path[1024], made[300];
	const char *name;
	json_t *entry;
	(void)state;

	if (!original_open(&o, "nemotronh-a"))
		skip();
	assert_string_equal(json_string_value(json_object_get(o.config, "hybrid_override_pattern")), "M-M*-");
	st_writer_start(&w);
	json_object_foreach(o.header, name, entry)
	{
		struct slice t = strcmp(name, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		if (strstr(name, "up_proj") || strstr(name, "down_proj"))
			put_cut(&w, name, &t);
		else if (t.p)
			remade_put(&w, name, &t);
	}
	json_object_set_new(o.config, "hybrid_override_pattern", json_string("MEM*E"));
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_object_set_new(o.config, fields[i].name, json_integer(fields[i].value));
	remade_model("nemotron", &w, o.config);
	original_close(&o);
	remade_path(made, "nemotron");
	remade_compare(shared_path(path, "golden/nemotronh-a"), (struct remade_run){ "cpu", 64 }, made,
	               (struct remade_run){ "cpu", 64 }, 1e-5);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		if (!test_quick() || i < 2)
			remade_compare(made, (struct remade_run){ "cpu", 64 }, made, runs[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nemotron_experts) };
	return cmocka_run_group_tests(tests, remade_start, remade_end);
}
