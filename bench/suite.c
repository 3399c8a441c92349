#include "bench/suite.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/bandwidth.h"
#include "bench/layer_bench.h"
#include "bench/peak.h"
#include "bench/measurement.h"
#include "kernels-templates/signature.h"
#include "include/jitrun.h"
#include "programs/common/output.h"

enum { READINGS = 2, ROWS_MAX = 1024 };
static const double run_seconds = 0.01, quiet_seconds = 0.02;

/* hidden x attention x ffn */
#define TINY(hidden, attention, ffn) \
	{ \
		"tiny-" #hidden "x" #attention "x" #ffn, "llama", hidden, 4, (attention) / 32, (attention) / 32, 32, \
			ffn, 512, 2048, 1e4, 1e-5, true, 0, 0, SHAPE_NO_STATE \
	}
static const struct model_shape tiny[] = { TINY(64, 64, 128), TINY(128, 192, 192), TINY(128, 128, 256) };
static const char *const known[] = { "qwen3-0.6b", "llama-3.2-1b", "llama-3.2-3b", "mistral-7b" };
static const char *const weights[] = { "bf16", "q8_0", "q4_k" };
enum {
	TINY_SHAPES = sizeof tiny / sizeof *tiny,
	SHAPES = TINY_SHAPES + sizeof known / sizeof *known,
	WEIGHTS = sizeof weights / sizeof *weights
};
/* Passes: one token early and late, draft tokens, a prompt. Matrices do not ask for the position: a second one is for
 * attention alone. */
static const struct {
	uint32_t tokens, position;
	bool attention_only;
} passes[] = { { 1, 512, false }, { 1, 8192, true }, { 8, 512, false }, { 256, 512, false } };
enum { PASSES = sizeof passes / sizeof *passes };

struct suite {
	const struct suite_options *o;
	struct lab *lab;
	struct bandwidth *bandwidth;
	struct peak *peak;
	FILE *out;
	char seen[ROWS_MAX][48];
	int n_seen;
	json_t *rows;
	int noisy;
};

/* What one operation costs; the name holds what decides it and nothing of how it is done. */
struct operation {
	struct lab_run run;
	char name[96];
	double flops, bytes;
	enum peak_kind peak;
};

/* The launches of one matrix, and what they do. Returns how many. */
static size_t matrix_launches(const struct plan *p, size_t first)
{
	size_t n = 1;

	while (first + n < p->n_ops && p->kernel[p->op[first + n].kernel].key.kind == KEY_MATMUL &&
	       p->op[first + n].arg[MATMUL_W] == p->op[first].arg[MATMUL_W])
		n++;
	return n;
}

static void describe_matrix(struct operation *op, const struct suite *s, const char *model, const char *format)
{
	const struct plan_op *l = &op->run.plan->op[op->run.first];
	const struct key *k = &op->run.plan->kernel[l->kernel].key;
	unsigned matrices = k->flags & KEY_PAIR ? 2 : 1;

	op->run.n = matrix_launches(op->run.plan, op->run.first);
	for (size_t i = op->run.first; i < op->run.first + op->run.n; i++) {
		const struct plan_op *at = &op->run.plan->op[i];
		const struct key *key = &op->run.plan->kernel[at->kernel].key;
		uint64_t tile_tokens = kernel_columns(key, at->arg, op->run.plan->tokens),
			 units = (uint64_t)(at->end - at->begin);
		op->bytes += (double)template_traffic(key, units, 0, tile_tokens);
		op->flops += 2.0 * k->rows * k->k * matrices * (double)tile_tokens;
		if (i > op->run.first) /* weights once */
			op->bytes -= (double)template_traffic(key, units, 0, 0);
	}
	op->peak = peak_of(s->o->target->name, k->activation == key_type(DTYPE_Q8_0) ? PEAK_INT8 : PEAK_FLOATS);
	snprintf(op->name, sizeof op->name, "%s %s matrix %ux%u%s%s%s c%.0f", model, format, k->rows, k->k,
	         matrices == 2 ? " " : "", matrices == 2 ? key_act_name(k->act) : "",
	         k->flags & KEY_RESIDUAL ? " resid" : "", op->flops / (2.0 * k->rows * k->k * matrices));
}

static void describe_attention(struct operation *op, const struct suite *s, uint32_t tokens, const char *model)
{
	const struct plan_op *l = &op->run.plan->op[op->run.first];
	const struct key *k = &op->run.plan->kernel[l->kernel].key;
	double seen = (double)tokens * ((double)op->run.position + (tokens + 1) / 2.0);

	op->bytes = (double)template_traffic(k, (uint64_t)(l->end - l->begin), op->run.position, tokens);
	op->flops = 4.0 * k->heads * k->head_dim * seen;
	op->peak = peak_of(s->o->target->name, PEAK_FLOATS);
	snprintf(op->name, sizeof op->name, "%s attention %ux%u/%u c%u @%llu", model, k->heads, k->head_dim,
	         k->kv_heads, tokens, (unsigned long long)op->run.position);
}

/* A shape that several models have is measured once. */
static bool wanted(struct suite *s, const struct operation *op)
{
	const char *what = strchr(op->name, ' ');

	if (s->o->only && !strstr(op->name, s->o->only))
		return false;
	if (!lab_fits(s->lab, &op->run) || s->n_seen == ROWS_MAX)
		return false;
	for (int i = 0; i < s->n_seen; i++)
		if (strcmp(s->seen[i], what) == 0)
			return false;
	snprintf(s->seen[s->n_seen++], sizeof s->seen[0], "%s", what);
	return true;
}

/* Seconds that the operation takes at least when the peaks hold; which of the two it is. */
static double min_seconds(const struct operation *op, double bandwidth, double peak, bool *memory)
{
	double by_memory = op->bytes / bandwidth, by_cores = op->flops / peak;

	*memory = by_memory > by_cores;
	return *memory ? by_memory : by_cores;
}

static bool measure(struct suite *s, const struct operation *op, struct row *r, double *seconds, bool *memory,
                    struct error *err)
{
	struct series v = { 0 };
	double limit[2];

	if (lab_time_for(s->lab, &op->run, quiet_seconds, err) < 0)
		return false;
	limit[0] = min_seconds(op, bandwidth_sample(s->bandwidth, READINGS), peak_sample(s->peak, op->peak, READINGS),
	                       memory);
	for (long i = 0; i < s->o->repetitions; i++) {
		double took = lab_time_for(s->lab, &op->run, run_seconds, err);
		if (took <= 0)
			return false;
		bool ignored;
		limit[1] = min_seconds(op, bandwidth_sample(s->bandwidth, READINGS),
		                       peak_sample(s->peak, op->peak, READINGS), &ignored);
		v.value[v.n] = 1 / took;
		v.limit[v.n++] = 1 / (limit[0] < limit[1] ? limit[0] : limit[1]);
		limit[0] = limit[1];
	}
	*r = (struct row){ .unit = "1/s",
		           .threads = lab_threads(s->lab),
		           .work = 1,
		           .limit_name = *memory ? "read bandwidth" : peak_name(op->peak),
		           .limit_unit = "1/s" };
	row_fill(r, &v, s->o->noise);
	*seconds = 1 / r->value.median;
	return true;
}

static void print_operation(struct suite *s, const struct operation *op, const struct row *r, double seconds)
{
	double gflops = op->flops / seconds / 1e9, rate = op->bytes / seconds / 1e9;

	if (r->noisy[0]) {
		fprintf(stderr, "jitbench: %s is noisy: %s.\n", op->name, r->noisy);
		s->noisy++;
	}
	if (s->o->json) {
		const struct {
			const char *name;
			double value;
		} number[] = { { "microseconds", 1e6 * seconds },
			       { "microseconds_least", 1e6 / r->value.greatest },
			       { "gflops", gflops },
			       { "gbs", rate },
			       { "share", r->share } };
		json_t *o = json_pack("{s:s, s:s, s:s}", "test", op->name, "limit", r->limit_name, "noisy", r->noisy);
		for (size_t i = 0; i < sizeof number / sizeof *number; i++)
			json_object_set_new(o, number[i].name,
			                    r->noisy[0] ? json_null() : output_real(number[i].value));
		json_array_append_new(s->rows, o);
		return;
	}
	if (r->noisy[0])
		output_lines(s->out, 4, "| %-52s | %11s | %8s | %6s | %-14s | %7s |\n", op->name, "noisy", "", "",
		             r->limit_name, "");
	else
		output_lines(s->out, 4, "| %-52s | %11.2f | %8.1f | %6.1f | %-14s | %5.1f %% |\n", op->name,
		             1e6 * seconds, gflops, rate, r->limit_name, 100 * r->share);
	fflush(s->out);
}

static bool run_operation(struct suite *s, const struct operation *op, struct error *err)
{
	struct row r;
	double seconds;
	bool memory;

	if (!wanted(s, op))
		return true;
	if (!measure(s, op, &r, &seconds, &memory, err))
		return false;
	print_operation(s, op, &r, seconds);
	return true;
}

static bool run_pass(struct suite *s, const struct model_shape *shape, const char *format, int pass, struct error *err)
{
	struct plan *p = lab_plan(s->lab, passes[pass].tokens, false, err);

	if (!p)
		return false;
	for (size_t i = 0; i < p->n_ops; i++) {
		struct operation op = { .run = { p, i, 1, passes[pass].position } };
		enum key_kind kind = (enum key_kind)p->kernel[p->op[i].kernel].key.kind;
		if (kind == KEY_ATTENTION) {
			describe_attention(&op, s, passes[pass].tokens, shape->name);
		} else if (kind == KEY_MATMUL && !passes[pass].attention_only) {
			describe_matrix(&op, s, shape->name, format);
		} else {
			continue;
		}
		if (!run_operation(s, &op, err))
			return false;
		i += op.run.n - 1;
	}
	return true;
}

static const struct model_shape *shape_of(int i)
{
	return i < TINY_SHAPES ? &tiny[i] : shape_find(known[i - TINY_SHAPES]);
}

/* Whether rows of a shape can have the text in their names: not when it holds another one's name. */
static bool may_have(const char *only, const struct model_shape *shape)
{
	for (int i = 0; only && i < SHAPES; i++)
		if (strstr(only, shape_of(i)->name) && strcmp(shape_of(i)->name, shape->name) != 0)
			return false;
	return true;
}

static bool run_shapes(struct suite *s, struct error *err)
{
	for (int i = 0; i < SHAPES; i++)
		for (int w = 0; w < (i < TINY_SHAPES ? WEIGHTS - 1 : WEIGHTS);
		     w++) { /* blocks of 256 weights are longer than tiny rows */
			const struct model_shape *shape = shape_of(i);
			if (!may_have(s->o->only, shape))
				continue;
			if (!lab_model(s->lab, shape, mixture_find(weights[w]), err))
				return false;
			for (int p = 0; p < PASSES; p++)
				if (!run_pass(s, shape, weights[w], p, err))
					return false;
		}
	return true;
}

static bool print_report(const struct suite *s, struct error *err)
{
	json_t *peaks = json_object();

	for (int k = 0; k < PEAK_COUNT; k++)
		if (peak_possible((enum peak_kind)k))
			json_object_set_new(peaks, peak_name((enum peak_kind)k),
			                    output_real(peak_sample(s->peak, (enum peak_kind)k, READINGS) / 1e9));
	json_t *o = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:O}", "suite", "jitrun kernels 1", "version",
	                      jit_version(), "target", s->o->target->name, "threads", lab_threads(s->lab),
	                      "bandwidth_gbs", output_real(bandwidth_sample(s->bandwidth, READINGS) / 1e9),
	                      "peaks_gops", peaks, "rows", s->rows);
	bool ok = o && json_dumpf(o, s->out, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6)) == 0;
	json_decref(o);
	fputc('\n', s->out);
	return ok ? true : error_set(err, ERROR_IO, "the report could not be written");
}

bool suite_run(const struct suite_options *o, FILE *out, int *noisy, struct error *err)
{
	struct suite *s = calloc(1, sizeof *s);
	bool ok = s || error_set(err, ERROR_MEMORY, "no memory for the list of what is measured");

	if (ok) {
		*s = (struct suite){
			.o = o, .out = out, .rows = json_array(), .lab = lab_open(o->target, o->threads, err)
		};
		ok = s->lab != NULL;
	}
	if (ok && !((s->bandwidth = bandwidth_open(lab_threads(s->lab))) && (s->peak = peak_open(lab_threads(s->lab)))))
		ok = error_set(err, ERROR_MEMORY, "no memory to measure the machine with");
	if (ok && !o->json)
		output_lines(
			out, 4,
			"%s, %d threads\n\n| operation                                            |          us | "
			"Gflop/s  |   GB/s | limited by     |   share |\n"
			"| ---------------------------------------------------- | ----------: | -------: | -----: | "
			"-------------- | ------: |\n",
			o->target->name, lab_threads(s->lab));
	ok = ok && run_shapes(s, err) && (!o->json || print_report(s, err));
	if (s) {
		*noisy = s->noisy;
		peak_close(s->peak);
		bandwidth_close(s->bandwidth);
		lab_close(s->lab);
		json_decref(s->rows);
	}
	free(s);
	return ok;
}
