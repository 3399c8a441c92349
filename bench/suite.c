#include "bench/suite.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bandwidth.h"
#include "bench/layer_bench.h"
#include "bench/peak.h"
#include "bench/measurement.h"
#include "runtime/jitrun.h"
#include "programs/output.h"

enum { BANDWIDTH_BYTES = 1 << 28, READINGS = 2, ROWS_MOST = 1024 };
static const double run_seconds = 0.01, quiet_seconds = 0.02;

/* hidden x attention x ffn */
#define TINY(hidden, attention, ffn) { "tiny-" #hidden "x" #attention "x" #ffn, "llama", hidden, 4, (attention) / 32, (attention) / 32, 32, ffn, 512, 2048, 1e4, 1e-5, true, 0, 0 }
static const struct shape tiny[] = { TINY(64, 64, 128), TINY(128, 192, 192), TINY(128, 128, 256) };
static const char *const known[] = { "qwen3-0.6b", "llama-3.2-1b", "llama-3.2-3b", "mistral-7b" };
static const char *const weights[] = { "bf16", "q8_0", "q4_k" };
enum { TINY_SHAPES = sizeof tiny / sizeof *tiny, SHAPES = TINY_SHAPES + sizeof known / sizeof *known, WEIGHTS = sizeof weights / sizeof *weights };
/* Passes: one token early and late, guesses, a prompt. Matrices do not ask for the position: a second one is for attention alone. */
static const struct { uint32_t columns, position; bool attention_only; } passes[] = { { 1, 512, false }, { 1, 8192, true }, { 8, 512, false }, { 256, 512, false } };
enum { PASSES = sizeof passes / sizeof *passes };

struct suite {
	const struct suite_options *o;
	struct lab *lab;
	struct bandwidth *bandwidth;
	struct peak *peak;
	FILE *out;
	char seen[ROWS_MOST][48]; int n_seen;
	json_t *rows;
	int noisy;
};

/* What one operation costs; the name holds what decides it and nothing of how it is done. */
struct operation { struct lab_run run; char name[96]; double flops, bytes; enum peak_kind peak; };

/* The launches of one matrix, and what they do. Returns how many. */
static size_t matrix_launches(const struct plan *p, size_t first)
{
	size_t n = 1;

	while (first + n < p->n_launches && p->kernel[p->launch[first + n].kernel].key.kind == KEY_MATMUL && p->launch[first + n].arg[MATMUL_W] == p->launch[first].arg[MATMUL_W])
		n++;
	return n;
}

static void describe_matrix(struct operation *op, const struct suite *s, const char *model, const char *format)
{
	const struct plan_launch *l = &op->run.plan->launch[op->run.first];
	const struct key *k = &op->run.plan->kernel[l->kernel].key;
	unsigned matrices = k->flags & KEY_SILU_MUL ? 2 : 1;

	op->run.n = matrix_launches(op->run.plan, op->run.first);
	for (size_t i = op->run.first; i < op->run.first + op->run.n; i++) {
		const struct plan_launch *at = &op->run.plan->launch[i];
		const struct key *key = &op->run.plan->kernel[at->kernel].key;
		uint64_t tile_columns = at->arg[MATMUL_TILES] * key->columns, units = (uint64_t)(at->end - at->begin);
		op->bytes += (double)template_traffic(key, units, 0, tile_columns);
		op->flops += 2.0 * k->rows * k->k * matrices * (double)tile_columns;
		if (i > op->run.first)          /* weights once */
			op->bytes -= (double)template_traffic(key, units, 0, 0);
	}
	op->peak = peak_of(s->o->target->name, k->activation == DTYPE_Q8_0 + 1);
	snprintf(op->name, sizeof op->name, "%s %s matrix %ux%u%s%s c%.0f", model, format, k->rows, k->k, matrices == 2 ? " silu" : "", k->flags & KEY_RESIDUAL ? " resid" : "",
	         op->flops / (2.0 * k->rows * k->k * matrices));
}

static void describe_attention(struct operation *op, const struct suite *s, uint32_t columns, const char *model)
{
	const struct plan_launch *l = &op->run.plan->launch[op->run.first];
	const struct key *k = &op->run.plan->kernel[l->kernel].key;
	double seen = (double)columns * ((double)op->run.position + (columns + 1) / 2.0);

	op->bytes = (double)template_traffic(k, (uint64_t)(l->end - l->begin), op->run.position, columns);
	op->flops = 4.0 * k->heads * k->head_dim * seen;
	op->peak = peak_of(s->o->target->name, false);
	snprintf(op->name, sizeof op->name, "%s attention %ux%u/%u c%u @%llu", model, k->heads, k->head_dim, k->kv_heads, columns, (unsigned long long)op->run.position);
}

/* A shape that several models have is measured once. */
static bool wanted(struct suite *s, const struct operation *op)
{
	const char *what = strchr(op->name, ' ');

	if (s->o->only && !strstr(op->name, s->o->only))
		return false;
	if (!lab_fits(s->lab, &op->run) || s->n_seen == ROWS_MOST)
		return false;
	for (int i = 0; i < s->n_seen; i++)
		if (strcmp(s->seen[i], what) == 0)
			return false;
	snprintf(s->seen[s->n_seen++], sizeof s->seen[0], "%s", what);
	return true;
}

/* Seconds that the operation takes at least when the peaks hold; which of the two it is. */
static double least_seconds(const struct operation *op, double bandwidth, double peak, bool *memory)
{
	double by_memory = op->bytes / bandwidth, by_cores = op->flops / peak;

	*memory = by_memory > by_cores;
	return *memory ? by_memory : by_cores;
}

static bool measure(struct suite *s, const struct operation *op, struct row *r, double *seconds, bool *memory, struct error *err)
{
	struct series v = { 0 };
	double limit[2];

	if (lab_time_for(s->lab, &op->run, quiet_seconds, err) < 0)
		return false;
	limit[0] = least_seconds(op, bandwidth_sample(s->bandwidth, READINGS), peak_sample(s->peak, op->peak, READINGS), memory);
	for (long i = 0; i < s->o->repetitions; i++) {
		double took = lab_time_for(s->lab, &op->run, run_seconds, err);
		if (took <= 0)
			return false;
		bool ignored;
		limit[1] = least_seconds(op, bandwidth_sample(s->bandwidth, READINGS), peak_sample(s->peak, op->peak, READINGS), &ignored);
		v.value[v.n] = 1 / took;
		v.limit[v.n++] = 1 / (limit[0] < limit[1] ? limit[0] : limit[1]);
		limit[0] = limit[1];
	}
	*r = (struct row){ .unit = "1/s", .threads = lab_threads(s->lab), .work = 1, .limit_name = *memory ? "read bandwidth" : peak_name(op->peak), .limit_unit = "1/s" };
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
		const struct { const char *name; double value; } number[] = { { "microseconds", 1e6 * seconds }, { "microseconds_least", 1e6 / r->value.greatest }, { "gflops", gflops },
			{ "gbs", rate }, { "share", r->share } };
		json_t *o = json_pack("{s:s, s:s, s:s}", "test", op->name, "limit", r->limit_name, "noisy", r->noisy);
		for (size_t i = 0; i < sizeof number / sizeof *number; i++)
			json_object_set_new(o, number[i].name, r->noisy[0] ? json_null() : output_real(number[i].value));
		json_array_append_new(s->rows, o);
		return;
	}
	if (r->noisy[0])
		fprintf(s->out, "| %-52s | %11s | %8s | %6s | %-14s | %7s |\n", op->name, "noisy", "", "", r->limit_name, "");
	else
		fprintf(s->out, "| %-52s | %11.2f | %8.1f | %6.1f | %-14s | %5.1f %% |\n", op->name, 1e6 * seconds, gflops, rate, r->limit_name, 100 * r->share);
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

static bool run_pass(struct suite *s, const struct shape *shape, const char *format, int pass, struct error *err)
{
	struct plan *p = lab_plan(s->lab, passes[pass].columns, false, err);

	if (!p)
		return false;
	for (size_t i = 0; i < p->n_launches; i++) {
		struct operation op = { .run = { p, i, 1, passes[pass].position } };
		enum key_kind kind = (enum key_kind)p->kernel[p->launch[i].kernel].key.kind;
		if (kind == KEY_ATTENTION) {
			describe_attention(&op, s, passes[pass].columns, shape->name);
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

static bool run_shapes(struct suite *s, struct error *err)
{
	for (int i = 0; i < SHAPES; i++)
		for (int w = 0; w < (i < TINY_SHAPES ? WEIGHTS - 1 : WEIGHTS); w++) {      /* blocks of 256 weights are longer than tiny rows */
			const struct shape *shape = i < TINY_SHAPES ? &tiny[i] : shape_find(known[i - TINY_SHAPES]);
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
			json_object_set_new(peaks, peak_name((enum peak_kind)k), output_real(peak_sample(s->peak, (enum peak_kind)k, READINGS) / 1e9));
	json_t *o = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:O}", "suite", "jitrun kernels 1", "version", jit_version(), "target", s->o->target->name, "threads", lab_threads(s->lab),
		"bandwidth_gbs", output_real(bandwidth_sample(s->bandwidth, READINGS) / 1e9), "peaks_gops", peaks, "rows", s->rows);
	bool ok = o && json_dumpf(o, s->out, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6)) == 0;
	json_decref(o);
	fputc('\n', s->out);
	return ok ? true : error_set(err, ERROR_IO, "the report could not be written");
}

bool suite_run(const struct suite_options *o, FILE *out, int *noisy, struct error *err)
{
	struct suite *s = calloc(1, sizeof *s);
	bool ok = s != NULL;

	if (ok) {
		*s = (struct suite){ .o = o, .out = out, .rows = json_array(), .lab = lab_open(o->target, o->threads, err) };
		ok = s->lab != NULL;
	}
	if (ok && !((s->bandwidth = bandwidth_open(lab_threads(s->lab), BANDWIDTH_BYTES)) && (s->peak = peak_open(lab_threads(s->lab)))))
		ok = error_set(err, ERROR_MEMORY, "no memory to measure the machine with");
	if (ok && !o->json)
		fprintf(out, "%s, %d threads\n\n| operation                                            |          us | Gflop/s  |   GB/s | limited by     |   share |\n"
		        "| ---------------------------------------------------- | ----------: | -------: | -----: | -------------- | ------: |\n", o->target->name, lab_threads(s->lab));
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

/* ---- two reports */

static json_t *read_report(const char *path, struct error *err)
{
	json_error_t why;
	json_t *o = json_load_file(path, 0, &why);

	if (!o)
		error_set(err, ERROR_FORMAT, "%s: cannot be read: %s", path, why.text);
	else if (!json_is_string(json_object_get(o, "suite")) || !json_is_array(json_object_get(o, "rows"))) {
		error_set(err, ERROR_FORMAT, "%s: is no report of jitbench suite -o json", path);
		json_decref(o);
		o = NULL;
	}
	return o;
}

static const json_t *find_row(const json_t *report, const char *test)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row) {
		const char *name = json_string_value(json_object_get(row, "test"));
		if (name && test && strcmp(name, test) == 0)
			return row;
	}
	return NULL;
}

static double number(const json_t *row, const char *name) { return json_number_value(json_object_get(row, name)); }

static bool believed(const json_t *row)
{
	const char *noisy = json_string_value(json_object_get(row, "noisy"));

	return row && noisy && !noisy[0] && number(row, "microseconds") > 0 && number(row, "share") > 0;
}

struct comparison { int same, faster, slower, left_out; json_t *rows; };

/* The share is compared: a machine that was busier in one of the runs had lower peaks as well. */
static void compare_row(struct comparison *c, const json_t *a, const json_t *b, double threshold, bool json, FILE *out)
{
	const char *test = json_string_value(json_object_get(a, "test"));

	if (!test || !believed(a) || !believed(b)) {
		c->left_out++;
		return;
	}
	double time = number(b, "microseconds") / number(a, "microseconds"), share = number(b, "share") / number(a, "share");
	const char *verdict = share < 1 - threshold ? "slower" : share > 1 / (1 - threshold) ? "faster" : "";
	c->slower += verdict[0] == 's';
	c->faster += verdict[0] == 'f';
	c->same += !verdict[0];
	if (json)
		json_array_append_new(c->rows, json_pack("{s:s, s:o, s:o, s:s}", "test", test, "time_ratio", output_real(time), "share_ratio", output_real(share), "verdict", verdict));
	else
		fprintf(out, "| %-52s | %11.2f | %11.2f | %6.3f | %6.3f | %-6s |\n", test, number(a, "microseconds"), number(b, "microseconds"), time, share, verdict);
}

static void say_report(FILE *out, const char *letter, const char *path, const json_t *o)
{
	const char *version = json_string_value(json_object_get(o, "version")), *target = json_string_value(json_object_get(o, "target"));

	fprintf(out, "%s: %s, jitrun %s, %s, %d threads%s", letter, path, version ? version : "?", target ? target : "?", (int)json_integer_value(json_object_get(o, "threads")),
	        *letter == 'A' ? "\n" : "\n\n");
}

bool suite_compare(const char *path_a, const char *path_b, double threshold, bool json, FILE *out, int *slower, struct error *err)
{
	json_t *a = read_report(path_a, err), *b = a ? read_report(path_b, err) : NULL, *row;
	struct comparison c = { .rows = json_array() };
	size_t i;

	if (b && !json) {
		say_report(out, "A", path_a, a);
		say_report(out, "B", path_b, b);
		fputs("| operation                                            |        A us |        B us |   time |  share | B is   |\n"
		      "| ---------------------------------------------------- | ----------: | ----------: | -----: | -----: | ------ |\n", out);
	}
	if (b)
		json_array_foreach(json_object_get(a, "rows"), i, row)
			compare_row(&c, row, find_row(b, json_string_value(json_object_get(row, "test"))), threshold, json, out);
	if (b && json) {
		json_t *o = json_pack("{s:f, s:i, s:i, s:i, s:i, s:O}", "threshold", threshold, "same", c.same, "faster", c.faster, "slower", c.slower, "left_out", c.left_out, "rows", c.rows);
		json_dumpf(o, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
		fputc('\n', out);
		json_decref(o);
	} else if (b) {
		fprintf(out, "\n%d rows within %.3g %%, %d faster, %d slower; %d left out, noisy in one of the reports or not in both\n", c.same, 100 * threshold, c.faster, c.slower, c.left_out);
	}
	if (b && c.same + c.faster + c.slower == 0) {
		error_set(err, ERROR_FORMAT, "%s and %s have no row in common that both could measure", path_a, path_b);
		json_decref(b);
		b = NULL;
	}
	*slower = c.slower;
	bool ok = b != NULL;
	json_decref(c.rows);
	json_decref(a);
	json_decref(b);
	return ok;
}
