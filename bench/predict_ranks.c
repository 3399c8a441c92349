/* bench/predict_ranks.c - see predict_ranks.h. */
#include "bench/predict_ranks.h"

#include "runtime/ranks/forecast.h"

/* Delays: of software and wire, one way. */
static const struct network {
	const char *name;
	double gigabits, microseconds;
} network[] = {
	{ "1 Gbit/s", 1, 80 },          { "2.5 Gbit/s", 2.5, 70 },   { "10 Gbit/s", 10, 30 },
	{ "100 Gbit/s, RDMA", 100, 3 }, { "shared memory", 480, 1 },
};

static double sum(const struct ranks_forecast *f)
{
	double all = 0;

	for (unsigned r = 0; r < f->ranks; r++)
		all += (double)f->token[r];
	return all;
}

static void print_row(FILE *out, const struct network *n, double read, const struct ranks_forecast *rows,
                      const struct ranks_forecast *layers)
{
	const struct ranks_machine m = { read, n->gigabits * 1e9, n->microseconds * 1e-6 };

	fprintf(out, "| %s | %.0f us | %.1f | %.1f | %.1f |\n", n->name, n->microseconds,
	        1 / ranks_token_seconds(rows, &m), 1 / ranks_token_seconds(layers, &m),
	        1 / ranks_filled_seconds(layers, &m));
}

bool predict_ranks(const struct model *m, const struct target *t, const char *ranks, double read, FILE *out,
                   struct error *err)
{
	enum { CONTEXT = 4096 };
	struct ranks_forecast rows, layers;
	char about[256];
	unsigned n;

	if (!ranks_count(ranks, &n, err) || !ranks_forecast(&m->spec, t, DTYPE_F16, CONTEXT, n, "rows", &rows, err) ||
	    !ranks_forecast(&m->spec, t, DTYPE_F16, CONTEXT, n, "pipeline", &layers, err))
		return false;
	model_describe(m, about, sizeof about);
	fprintf(out, "%s: a token reads %.2f GB; %u machines of %.0f GB/s; one alone: %.1f tokens/s\n", about,
	        sum(&layers) / 1e9, n, read / 1e9, read / sum(&layers));
	fprintf(out,
	        "rows: %llu exchanges and %.2f MB a token; pipeline: %llu and %.3f MB; logits (%.2f MB by rows) are "
	        "left "
	        "out\n\n",
	        (unsigned long long)rows.exchanges, (double)rows.exchanged / 1e6, (unsigned long long)layers.exchanges,
	        (double)layers.exchanged / 1e6, (double)rows.logits / 1e6);
	fprintf(out, "| network | delay | rows, tokens/s | pipeline, one text | pipeline, %u texts |\n", n);
	fprintf(out, "| --- | --- | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof network / sizeof *network; i++)
		print_row(out, &network[i], read, &rows, &layers);
	return true;
}
