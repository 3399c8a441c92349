/* programs/jitrun/profile_table.c - see profile_table.h. */
#include "programs/jitrun/profile_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

struct row {
	double launches, nanoseconds, bytes;
	const char *name;
};
struct table {
	FILE *out;
	double workers, nanoseconds, bandwidth; /* of all passes; of one worker */
};

static double number(const json_t *o, const char *name) { return json_number_value(json_object_get(o, name)); }

static const char *text(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));
	return s ? s : "";
}

/* ---- passes */

static double of_passes(const json_t *report, const char *name)
{
	return number(json_object_get(report, "prompt"), name) + number(json_object_get(report, "decode"), name);
}

static double passes_since(const json_t *report, const json_t *since, const char *name)
{
	return of_passes(report, name) - of_passes(since, name);
}

/* Whose time it is. */
static const char *clock_says(const json_t *report)
{
	static const struct {
		const char *clock, *says;
	} clocks[] = {
		{ "card", "by the card's clock; launches that are timed do not overlap" },
		{ "simulator", "what the simulator took, which says nothing of a card" },
		{ "host", "by the host's clock; each launch is waited for" },
	};
	const char *says = "";

	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
		if (strcmp(clocks[i].clock, text(report, "clock")) == 0)
			says = clocks[i].says;
	return json_is_true(json_object_get(report, "host_runs")) ? "the mean of the threads" : says;
}

static void head(const struct table *t, const json_t *report, const json_t *since, const char *of)
{
	double passes = passes_since(report, since, "passes"), tokens = passes_since(report, since, "tokens");

	fprintf(t->out, "profile of %s%s%s: %.0f pass%s over %.0f token%s in %.3f ms\n(time: %s)\n", of ? of : "",
	        of ? " on " : "", text(report, "device"), passes, passes == 1 ? "" : "es", tokens,
	        tokens == 1 ? "" : "s", 1e-6 * t->nanoseconds, clock_says(report));
	fprintf(t->out, "%9s %10s %6s %8s%s  %s\n", "launches", "time ms", "share", "GB/s",
	        t->bandwidth > 0 ? " of read" : "", "kernel");
}

/* ---- rows */

static void print(const struct table *t, const struct row *r)
{
	double took = r->nanoseconds / t->workers, rate = took > 0 ? r->bytes / took : 0;
	char read[16] = "";

	if (t->bandwidth > 0)
		snprintf(read, sizeof read, " %6.1f%%", 100e9 * rate / t->bandwidth);
	fprintf(t->out, "%9.0f %10.3f %5.1f%% %8.2f%s  %s\n", r->launches, 1e-6 * took,
	        t->nanoseconds > 0 ? 100 * took / t->nanoseconds : 0, rate, read, r->name);
}

static struct row row_of(const json_t *kernel)
{
	return (struct row){ number(kernel, "calls"), number(kernel, "nanoseconds"), number(kernel, "bytes_expected"),
		             text(kernel, "key") };
}

static struct row row_since(const json_t *kernel, const json_t *since)
{
	struct row r = row_of(kernel), before;
	const json_t *k;
	size_t i;

	json_array_foreach(json_object_get(since, "kernels"), i, k)
	{
		if (strcmp(text(k, "key"), r.name) != 0)
			continue;
		before = row_of(k);
		r.launches -= before.launches;
		r.nanoseconds -= before.nanoseconds;
		r.bytes -= before.bytes;
	}
	return r;
}

static int slower_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->nanoseconds < y->nanoseconds ? 1 : x->nanoseconds > y->nanoseconds ? -1 : strcmp(x->name, y->name);
}

static bool rows(const struct table *t, const json_t *kernels, const json_t *since)
{
	struct row *list = malloc((json_array_size(kernels) + 1) * sizeof *list), all = { .name = "all kernels" };
	const json_t *k;
	size_t i, n = 0;

	if (!list)
		return false;
	json_array_foreach(kernels, i, k)
	{
		list[n] = row_since(k, since);
		n += list[n].launches > 0;
	}
	qsort(list, n, sizeof *list, slower_first);
	for (i = 0; i < n; i++) {
		print(t, &list[i]);
		all.launches += list[i].launches;
		all.nanoseconds += list[i].nanoseconds;
		all.bytes += list[i].bytes;
	}
	print(t, &all);
	double between = t->nanoseconds - all.nanoseconds / t->workers;
	fprintf(t->out, "%9s %10.3f %5.1f%% %8s%s  between kernels\n", "", 1e-6 * between,
	        t->nanoseconds > 0 ? 100 * between / t->nanoseconds : 0, "", t->bandwidth > 0 ? "        " : "");
	free(list);
	return true;
}

/* ---- the table */

static bool no_memory(jit_error *err)
{
	*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for a profile" };
	return false;
}

json_t *profile_table_mark(jit_session *s, jit_error *err)
{
	char *json = jit_session_report(s, 1, err);
	json_t *report = json ? json_read(json, strlen(json), UINT64_MAX, "the report", NULL) : NULL;

	if (json && !report)
		no_memory(err);
	free(json);
	return report;
}

bool profile_table_print(FILE *out, jit_session *s, const struct profile_table *o, jit_error *err)
{
	json_t *report = profile_table_mark(s, err);

	if (!report)
		return false;
	const struct table t = { .out = out,
		                 .workers = number(report, "workers"),
		                 .nanoseconds = passes_since(report, o->since, "nanoseconds"),
		                 .bandwidth = o->bandwidth };
	head(&t, report, o->since, o->of);
	bool ok = rows(&t, json_object_get(report, "kernels"), o->since) || no_memory(err);
	json_decref(report);
	if (ok && fflush(out) != 0) {
		*err = (jit_error){ .code = JIT_ERROR_IO, .message = "the profile could not be written" };
		ok = false;
	}
	return ok;
}
