/* bench/schedules.c - times the default schedule and another in alternation. See schedules.h. */
#include "bench/schedules.h"

#include <stdlib.h>

#include "bench/layer_bench.h"
#include "kernels-templates/templates.h"

static const uint32_t passes[] = { 1, 4, 8, 16, 96 };
enum {
	PASSES = sizeof passes / sizeof *passes,
	POSITION = 64,
	DISTANCE = 1 /* the field's number */,
	VARIANTS_MAX = 64,
	ROUNDS_MAX = 1024
};
static const double run_seconds = 0.002;

struct variant {
	uint32_t schedule;
	char name[TEMPLATE_SCHEDULE_NAME];
	double usual[ROUNDS_MAX], other[ROUNDS_MAX];
};
struct table {
	struct variant row[VARIANTS_MAX];
	unsigned n;
};

static void add(struct table *t, struct key key, uint32_t schedule)
{
	unsigned i = 0;

	while (i < t->n && t->row[i].schedule != schedule)
		i++;
	if (i < t->n || t->n == VARIANTS_MAX)
		return;
	key.schedule = t->row[t->n].schedule = schedule;
	template_schedule_name(&key, t->row[t->n++].name, sizeof t->row->name);
}

/* Schedules that differ from the default in one setting, or in distance from those that sessions try. */
static void list_kernel(struct table *t, const struct key *usual)
{
	uint32_t near[TEMPLATE_SCHEDULES_MAX - 1], quick[TEMPLATE_SCHEDULES_MAX];
	unsigned quick_count = template_schedules(usual, quick);

	for (unsigned q = 0; q < quick_count; q++)
		add(t, *usual, quick[q]);
	for (unsigned f = 0; f < TEMPLATE_SCHEDULE_FIELDS; f++)
		for (unsigned from = 0; from < (f == DISTANCE ? quick_count : 1); from++) {
			struct key key = *usual;
			key.schedule = quick[from];
			unsigned n = template_schedules_near(&key, f, near);
			for (unsigned v = 0; v < n; v++)
				add(t, *usual, near[v]);
		}
}

static void list_variants(struct table *t, const struct lab_run *r)
{
	t->n = 0;
	for (size_t i = r->first; i < r->first + r->n; i++) {
		struct key usual = r->plan->kernel[r->plan->op[i].kernel].key;
		usual.schedule = 0;
		if (usual.kind == KEY_MATMUL)
			list_kernel(t, &usual);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double quartile(double *time, long n)
{
	qsort(time, (size_t)n, sizeof *time, ascending);
	return time[n / 4];
}

static double time_with(struct lab *l, const struct lab_run *r, uint32_t schedule, unsigned times, struct error *err)
{
	return lab_set_schedule(l, r->plan, schedule, err) ? lab_processor_time(l, r, times, err) : -1;
}

static bool measure(struct lab *l, struct table *t, const struct lab_run *r, long rounds, struct error *err)
{
	double once = time_with(l, r, 0, 2, err);
	unsigned times = once > 0 && once < run_seconds ? (unsigned)(run_seconds / once) : 1;

	if (once < 0)
		return false;
	for (long n = 0; n < rounds; n++)
		for (unsigned i = 0; i < t->n; i++) {
			struct variant *v = &t->row[i];
			bool first = n % 2 == 0;
			if (first && (v->usual[n] = time_with(l, r, 0, times, err)) < 0)
				return false;
			if ((v->other[n] = time_with(l, r, v->schedule, times, err)) < 0)
				return false;
			if (!first && (v->usual[n] = time_with(l, r, 0, times, err)) < 0)
				return false;
		}
	return true;
}

static bool pass_table(struct lab *l, struct table *t, const char *format, uint32_t tokens, long rounds, FILE *out,
                       struct error *err)
{
	struct plan *p = lab_plan(l, tokens, false, err);

	if (!p)
		return false;
	struct lab_run r = { p, p->section[1], p->section[2] - p->section[1], POSITION };
	list_variants(t, &r);
	if (!measure(l, t, &r, rounds, err) || !lab_set_schedule(l, p, 0, err))
		return false;
	fprintf(out, "\n| %s, %u token%s | times as fast |\n| --- | ---: |\n", format, tokens, tokens > 1 ? "s" : "");
	for (unsigned i = 0; i < t->n; i++)
		fprintf(out, "| %s%s | %.3f |\n", t->row[i].name,
		        t->row[i].schedule ? "" : " (the default, against itself)",
		        quartile(t->row[i].usual, rounds) / quartile(t->row[i].other, rounds));
	fflush(out);
	return true;
}

bool schedules_run(const struct schedules_options *o, FILE *out, struct error *err)
{
	static const char *const formats[] = { "bf16", "q8_0", "q4_k", "q6_k" };
	struct lab *l = lab_open(o->target, o->threads, err);
	struct table *t = malloc(sizeof *t);
	long rounds = o->rounds < ROUNDS_MAX ? o->rounds : ROUNDS_MAX;
	bool ok = l && (t || error_set(err, ERROR_MEMORY, "no memory for a table"));

	if (ok)
		fprintf(out, "a layer of %s, %s, %d threads\n", o->shape->name, o->target->name, lab_threads(l));
	for (int i = 0; ok && i < (o->mixture ? 1 : 4); i++) {
		const struct mixture *m = o->mixture ? o->mixture : mixture_find(formats[i]);
		ok = lab_model(l, o->shape, m, err);
		for (int n = 0; ok && n < PASSES; n++)
			ok = pass_table(l, t, m->name, passes[n], rounds, out, err);
	}
	free(t);
	lab_close(l);
	return ok;
}
