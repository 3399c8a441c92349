#include "bench/passes.h"

#include "bench/layer_bench.h"
#include "runtime/speculate/speculate.h"

static const uint32_t prompts[] = { 24, 32, 48, 64, 128, 256 };
static const uint32_t depths[] = { 64, 256, 512, 1024, 2048, 4096, 8192 };
enum {
	SMALL = SPECULATE_MAX,
	PROMPTS = sizeof prompts / sizeof *prompts,
	DEPTHS = sizeof depths / sizeof *depths,
	POSITION = 64,
	WATCHED_MAX = 2 * SMALL + PROMPTS + 2 * DEPTHS
};
static const double run_seconds = 0.003;

/* What is measured in turn with the others; the least of its times. */
struct watched {
	struct lab_run run;
	double min;
};
struct table {
	struct watched row[WATCHED_MAX];
	int n;
};

static bool measure_alternately(struct lab *l, struct table *t, long rounds, struct error *err)
{
	for (long r = 0; r < rounds; r++)
		for (int i = 0; i < t->n; i++) {
			double took = lab_time_for(l, &t->row[i].run, run_seconds, err);
			if (took < 0)
				return false;
			if (r == 0 || took < t->row[i].min)
				t->row[i].min = took;
		}
	return true;
}

/* The launches of the one layer there is. */
static struct lab_run layer_of(struct plan *p, uint64_t position)
{
	return (struct lab_run){ p, p->section[1], p->section[2] - p->section[1], position };
}

static bool watch_layer(struct lab *l, struct table *t, uint32_t tokens, bool general, uint64_t position,
                        struct error *err)
{
	struct plan *p = lab_plan(l, tokens, general, err);

	if (p)
		t->row[t->n++].run = layer_of(p, position);
	return p != NULL;
}

static uint32_t next_width(uint32_t tokens)
{
	for (unsigned w = 0; w < SPECULATE_WIDTHS; w++)
		if (speculate_tokens[w] >= tokens)
			return speculate_tokens[w];
	return tokens;
}

/* Row n - 1 is of n tokens, row FEW + n - 1 of the same with general kernels, then the prompts. */
static bool tokens_table(struct lab *l, const char *format, long rounds, FILE *out, struct error *err)
{
	struct table t = { 0 };
	bool ok = true;

	for (uint32_t n = 1; ok && n <= SMALL; n++)
		ok = watch_layer(l, &t, n, false, POSITION, err);
	for (uint32_t n = 1; ok && n <= SMALL; n++)
		ok = watch_layer(l, &t, n, true, POSITION, err);
	for (int i = 0; ok && i < PROMPTS; i++)
		ok = watch_layer(l, &t, prompts[i], false, POSITION, err);
	if (!ok || !measure_alternately(l, &t, rounds, err))
		return false;
	const struct watched *exact = t.row, *general = t.row + SMALL, *prompt = t.row + 2 * SMALL;
	fprintf(out,
	        "\n| %s: tokens | a layer, in times of one token | the next width takes | one token again and again "
	        "takes |\n| ---: | ---: | ---: | ---: |\n",
	        format);
	for (uint32_t n = 1; n <= SMALL; n++)
		fprintf(out, "| %u | %.2f | %.2f | %.2f |\n", n, exact[n - 1].min / exact[0].min,
		        exact[next_width(n) - 1].min / exact[n - 1].min, general[n - 1].min / exact[n - 1].min);
	for (int i = 0; i < PROMPTS; i++)
		fprintf(out, "| %u | %.2f | in passes of 16: %.2f | |\n", prompts[i], prompt[i].min / exact[0].min,
		        exact[SMALL - 1].min * prompts[i] / SMALL / prompt[i].min);
	return true;
}

static struct lab_run attention_of(struct plan *p, uint64_t position)
{
	struct lab_run r = layer_of(p, position);

	while (p->kernel[p->op[r.first].kernel].key.kind != KEY_ATTENTION)
		r.first++;
	r.n = 1;
	return r;
}

/* What is not spent on positions is the most that kernels for a class of contexts can save. */
static bool contexts_table(struct lab *l, uint32_t tokens, long rounds, FILE *out, struct error *err)
{
	struct plan *p = lab_plan(l, tokens, false, err);
	struct table t = { 0 };

	if (!p)
		return false;
	for (int i = 0; i < DEPTHS; i++)
		t.row[t.n++].run = attention_of(p, depths[i]);
	for (int i = 0; i < DEPTHS; i++)
		t.row[t.n++].run = layer_of(p, depths[i]);
	if (!measure_alternately(l, &t, rounds, err))
		return false;
	const struct watched *attention = t.row, *layer = t.row + DEPTHS;
	double each =
		(attention[DEPTHS - 1].min - attention[DEPTHS - 2].min) / (depths[DEPTHS - 1] - depths[DEPTHS - 2]);
	fprintf(out,
	        "\n| attention of %u token%s, positions | time for each position, in times of that between %u and %u | "
	        "of the layer | not spent on positions, of the layer |\n"
	        "| ---: | ---: | ---: | ---: |\n",
	        tokens, tokens > 1 ? "s" : "", depths[DEPTHS - 2], depths[DEPTHS - 1]);
	for (int i = 0; i < DEPTHS; i++) {
		double seen = depths[i] + (tokens + 1) / 2.0, rest = attention[i].min - seen * each;
		fprintf(out, "| %u | %.2f | %.1f %% | %.1f %% |\n", depths[i], attention[i].min / seen / each,
		        100 * attention[i].min / layer[i].min, rest > 0 ? 100 * rest / layer[i].min : 0);
	}
	return true;
}

bool passes_run(const struct passes_options *o, FILE *out, struct error *err)
{
	static const char *const formats[] = { "bf16", "q8_0", "q4_k" };
	struct lab *l = lab_open(o->target, o->threads, err);
	bool ok = l != NULL;

	if (ok)
		fprintf(out, "a layer of %s, %s, %d threads\n", o->shape->name, o->target->name, lab_threads(l));
	for (int i = 0; ok && i < (o->mixture ? 1 : 3); i++) {
		const struct mixture *m = o->mixture ? o->mixture : mixture_find(formats[i]);
		ok = lab_model(l, o->shape, m, err) && tokens_table(l, m->name, o->rounds, out, err);
		if (ok && (o->mixture || i == 1))
			ok = contexts_table(l, 1, o->rounds, out, err) && contexts_table(l, 8, o->rounds, out, err) &&
			     contexts_table(l, LAB_TOKENS, o->rounds, out, err);
	}
	lab_close(l);
	return ok;
}
