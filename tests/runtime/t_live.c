/* tests/runtime/t_live.c - live ranges of values (runtime/plan/live.h): plans of all models, on all kinds of targets,
 * of every width and way, whose values share bytes, beside the same plans whose values have bytes of their own each.
 *
 * Where nothing is shared, an op can only read what the right one wrote. So each op must read what the op of the same
 * number wrote last, and ops must wait as they do there. Of the graph by itself, a plain loop finds which values are
 * there at the same time: these have no byte in common.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/signature.h"
#include "runtime/plan/arch.h"
#include "runtime/plan/order.h"
#include "tests/runtime/plan_areas.h"
#include "tests/support/shared.h"

static uint64_t reads_compared, pairs_compared;

/* ---- what each op reads was written by whom */

/* The op that wrote each 64 bytes of the values last, and 1; 0: none. */
struct writers {
	uint32_t *line;
	uint64_t lines;
};

/* The lines of the values that units of an op touch through a slot; false: none. */
static bool lines_of(const struct plan *p, const struct plan_op *op, uint32_t slot, uint32_t access, uint64_t choices,
                     uint64_t *first, uint64_t *end)
{
	const struct key *key = &p->kernel[op->kernel].key;
	const struct kernel_use use = kernel_use(key, slot);
	uint64_t at;

	if (!(use.access & access) || use.layout == KERNEL_PAGES || use.layout == KERNEL_STATE ||
	    plan_areas_at(op->arg[slot], &at) != AREA_VALUES)
		return false;
	const struct kernel_extent e = plan_touched(key, op->arg, slot, op->begin, op->end, choices);
	*first = (at + e.begin) / 64;
	*end = (at + e.end + 63) / 64;
	return e.begin < e.end;
}

/* A number for all that these lines hold: which ops wrote them, and how much of each. */
static uint64_t found(const struct writers *w, uint64_t first, uint64_t end)
{
	uint64_t sum = 0;

	for (uint64_t i = first; i < end; i++) {
		assert_true(i < w->lines);
		sum = (sum ^ w->line[i]) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
	}
	return sum;
}

static void run(const struct plan *p, uint64_t choices, struct writers *w, uint64_t *reads)
{
	uint64_t first, end;

	memset(w->line, 0, w->lines * sizeof *w->line);
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *op = &p->op[i];
		for (uint32_t slot = 0; slot < op->n_args; slot++)
			reads[i * PLAN_ARGS_MAX + slot] =
				lines_of(p, op, slot, KERNEL_READ, choices, &first, &end) ? found(w, first, end) : 0;
		for (uint32_t slot = 0; slot < op->n_args; slot++)
			for (uint64_t l =
			             lines_of(p, op, slot, KERNEL_WRITE, choices, &first, &end) ? first : UINT64_MAX;
			     l < end; l++)
				w->line[l] = (uint32_t)i + 1;
	}
}

static struct writers writers_of(uint64_t bytes)
{
	const uint64_t lines = bytes / 64 + 1;
	struct writers w = { malloc(lines * sizeof *w.line), lines };

	assert_non_null(w.line);
	return w;
}

static void check_same(const struct plan *shared, const struct plan *apart, uint64_t choices, uint64_t shared_bytes,
                       uint64_t apart_bytes, const char *name)
{
	struct writers ws = writers_of(shared_bytes), wa = writers_of(apart_bytes);
	uint64_t *rs = malloc(shared->n_ops * PLAN_ARGS_MAX * sizeof *rs),
		 *ra = malloc(shared->n_ops * PLAN_ARGS_MAX * sizeof *ra);

	assert_non_null(rs);
	assert_non_null(ra);
	assert_int_equal(shared->n_ops, apart->n_ops);
	run(shared, choices, &ws, rs);
	run(apart, choices, &wa, ra);
	for (size_t i = 0; i < shared->n_ops; i++) {
		char text[KEY_TEXT_MAX];
		key_text(&shared->kernel[shared->op[i].kernel].key, text, sizeof text);
		for (uint32_t slot = 0; slot < shared->op[i].n_args; slot++) {
			if (rs[i * PLAN_ARGS_MAX + slot] != ra[i * PLAN_ARGS_MAX + slot])
				fail_msg("%s: op %zu, %s, finds in slot %u what another op wrote", name, i, text, slot);
			reads_compared += ra[i * PLAN_ARGS_MAX + slot] != 0;
		}
		if (shared->op[i].barrier != apart->op[i].barrier)
			fail_msg("%s: op %zu, %s: a barrier because of shared bytes", name, i, text);
	}
	assert_int_equal(shared->n_stages, apart->n_stages);
	assert_memory_equal(shared->stage, apart->stage, (shared->n_stages + 1) * sizeof *shared->stage);
	free(ws.line);
	free(wa.line);
	free(rs);
	free(ra);
}

static void check_plan(struct plan_areas *a, unsigned way, uint32_t tokens)
{
	const uint64_t choices = (uint64_t)tokens * a->model.spec.experts_used;
	struct error err = { 0 };
	struct plan_cache kv;
	struct plan shared, apart;
	const char *name;
	char text[200];

	a->apart = false;
	if (!plan_areas_build(a, &shared, way, tokens, &name, &kv, &err))
		fail_msg("%s", err.text);
	if (!name)
		return;
	const uint64_t bytes = a->layout.bytes;
	a->apart = true;
	if (!plan_areas_build(a, &apart, way, tokens, &name, &kv, &err))
		fail_msg("%s", err.text);
	snprintf(text, sizeof text, "%s, %s, %u tokens", a->target->name, name, tokens);
	check_same(&shared, &apart, choices, bytes, a->layout.bytes, text);
	assert_true(bytes <= a->layout.bytes);
	plan_free(&shared);
	plan_free(&apart);
}

/* ---- what is there at the same time */

/* The nodes, first and last, between which a value must stay as it is, whatever is lowered how; it has bytes only from
 * the value that it is made in the place of. */
struct range {
	uint32_t first, last;
};

static void stretch(struct range *r, uint32_t node)
{
	r->first = node < r->first ? node : r->first;
	r->last = node > r->last ? node : r->last;
}

static void find_ranges(const struct graph *g, const struct plan_layout *l, struct range *of)
{
	for (graph_ref v = 0; v < g->n_values; v++)
		of[v] = (struct range){ UINT32_MAX, 0 };
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		for (unsigned in = 0; in < GRAPH_INS; in++) {
			const graph_ref v = g->node[i].in[in];
			const struct graph_node *by = graph_producer(g, v);
			if (v)
				stretch(&of[l->same[v]], i);
			if (v && by && by->kind == NODE_NORM && !by->kept && !by->groups) /* may be made there */
				stretch(&of[l->same[by->in[IN_X]]], i);
			/* units of a chain, or of one kernel, go from queries and keys to the result one by one */
			for (unsigned of_by = 0; v && by && g->node[i].kind == NODE_ATTEND && of_by < GRAPH_INS;
			     of_by++)
				if (by->in[of_by])
					stretch(&of[l->same[by->in[of_by]]], i);
		}
		for (unsigned out = 0; out < GRAPH_OUTS && g->node[i].out[out]; out++)
			stretch(&of[l->same[g->node[i].out[out]]], i);
	}
}

static bool have_common(const struct plan_layout *l, graph_ref v, graph_ref w)
{
	for (unsigned f = 0; f < FORM_INTERLEAVED; f++)
		for (unsigned of = 0; of < FORM_INTERLEAVED; of++)
			if (l->room[v][f] && l->room[w][of] && l->at[v][f] < l->at[w][of] + l->room[w][of] &&
			    l->at[w][of] < l->at[v][f] + l->room[v][f])
				return true;
	return false;
}

static void check_ranges(const struct plan_areas *a)
{
	struct plan_layout l;
	struct error err = { 0 };
	struct graph g;

	assert_true(arch_graph(&g, &a->model.spec, &a->weights, false, 0, &err));
	assert_true(plan_layout_of(&l, &g, &(struct plan_layout_options){ .tokens = 5 }, &err));
	struct range *of = malloc(g.n_values * sizeof *of);
	assert_non_null(of);
	find_ranges(&g, &l, of);
	for (graph_ref v = 1; v < g.n_values; v++)
		for (graph_ref w = v + 1; w < g.n_values; w++) {
			if (l.same[v] != v || l.same[w] != w || of[v].last < of[w].first || of[w].last < of[v].first)
				continue;
			pairs_compared++;
			if (have_common(&l, v, w))
				fail_msg("values %u and %u are there at the same time and have bytes in common", v, w);
		}
	free(of);
	plan_layout_close(&l);
	graph_close(&g);
}

/* ---- models */

static void check_model(const char *path, bool all)
{
	static unsigned round;
	struct error err = { 0 };
	struct plan_areas a = { 0 };

	if (!plan_areas_open(&a, path, &err))
		fail_msg("%s", err.text);
	for (unsigned t = 0; t < AREA_TARGETS; t++) {
		if (!plan_areas_for(&a, target_find(area_targets[t]), &err))
			fail_msg("%s", err.text);
		if (!t)
			check_ranges(&a);
		for (unsigned w = 0; w < AREA_WIDTHS; w++)
			for (unsigned way = 0; way < AREA_WAYS; way++)
				if (all || round++ % 5 == 0)
					check_plan(&a, way, area_widths[w]);
	}
	plan_areas_close(&a);
}

static void test_own_model(void **state)
{
	char path[1024];
	(void)state;

	check_model(source_path(path, "models/tale-q8_0.gguf"), true);
	assert_true(reads_compared > 10000 && pairs_compared > 100);
}

static void test_families(void **state)
{
	char path[1024], model[2048];
	(void)state;

	if (!shared_path(path, "golden"))
		skip();
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));) {
		if (!strchr(d->d_name, '-'))
			continue;
		snprintf(model, sizeof model, "%s/%s", path, d->d_name);
		check_model(model, !test_quick());
	}
	closedir(dir);
	printf("# %" PRIu64 " reads and %" PRIu64 " pairs of values were compared\n", reads_compared, pairs_compared);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_own_model), cmocka_unit_test(test_families) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
