/* runtime/engine/report.c - the report in its two forms; rows are made once, each form only says them. */
#include "runtime/engine/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfile.h"
#include "jit/store/safefile.h"

struct rows {
	struct profile_kernel *kernel;
	size_t n, capacity;
};

static void add_row(const struct kernel *k, void *user)
{
	struct rows *r = user;
	if (r->n < r->capacity)
		r->kernel[r->n++].key = k->key;
}

static void count_row(const struct kernel *k, void *user)
{
	(void)k;
	++*(size_t *)user;
}

/* Without a profile: every kernel of the model, in the order of their keys. */
static bool registry_rows(jit_model *m, struct profile_kernel **list, size_t *n)
{
	struct rows r = { 0 };

	registry_each(m->registry, count_row, &r.capacity);
	if (!(r.kernel = calloc(r.capacity + 1, sizeof *r.kernel)))
		return false;
	registry_each(m->registry, add_row, &r);
	*list = r.kernel;
	*n = r.n;
	return true;
}

static const char *source_name(const struct kernel *k) { return k ? kernel_source_name(k->source) : "interpreted"; }

/* The reference device has no kernels; of the others all that ran are in the registry. */
static const struct kernel *find(jit_model *m, const struct key *key)
{
	struct error ignored = { 0 };
	return m->device->facts.interprets ? NULL : registry_get(m->registry, key, NULL, &ignored);
}

struct report {
	jit_model *m;
	const struct profile *p;
	const struct report_background *background;
	struct profile_kernel *kernel;
	size_t n;
	struct profile_totals totals;
};

/* All workers' time inside passes. */
static double all_nanoseconds(const struct report *r)
{
	return (double)(r->totals.nanoseconds[PROFILE_PROMPT] + r->totals.nanoseconds[PROFILE_DECODE]) *
	       r->totals.workers;
}

static double working_nanoseconds(const struct report *r)
{
	double sum = 0;
	for (size_t i = 0; i < r->n; i++)
		sum += (double)r->kernel[i].nanoseconds;
	return sum;
}

static double per(double a, double b) { return b > 0 ? a / b : 0; }

/* ---- targets this machine does not run, and why */

static const char *refusal(const struct target *t, struct error *err)
{
	const struct target_cpu cpu = target_this_cpu();

	*err = (struct error){ 0 };
	return t->backend->host_runs && !target_runs(&cpu, t, err) ? err->text : NULL;
}

/* ---- for people */

static void text_kernels(const struct report *r, FILE *out)
{
	char key[KEY_TEXT_MAX];

	/* of two lines, so that a row is no wider than 80 columns */
	fprintf(out, "kernel\n  %-11s %7s %11s %8s %10s %6s %7s\n", "from", "bytes", "registers", "calls", "bytes/call",
	        "time", "GB/s");
	for (size_t i = 0; i < r->n; i++) {
		const struct profile_kernel *k = &r->kernel[i];
		const struct kernel *made = find(r->m, &k->key);
		char registers[32] = "-";
		if (made)
			snprintf(registers, sizeof registers, "%u+%u%s%.0u", made->object.vector_regs,
			         made->object.scalar_regs, made->object.mask_regs ? "+" : "", made->object.mask_regs);
		fprintf(out, "%s\n  %-11s %7u %11s %8" PRIu64 " %10.0f %5.1f%% %7.2f\n",
		        key_text(&k->key, key, sizeof key), source_name(made), made ? made->object.code_bytes : 0,
		        registers, k->calls, per((double)k->bytes, (double)k->calls),
		        100 * per((double)k->nanoseconds, all_nanoseconds(r)),
		        per((double)k->bytes * r->totals.workers, (double)k->nanoseconds));
	}
}

/* How many times as fast as its usual schedule a kernel's own was found to be; 0: nothing was found out. */
static double tuned_gain(const struct report *r, const struct key *key)
{
	struct tune_result found;

	return r->m->tune && tune_find(r->m->tune, key, &found) && found.key.schedule == key->schedule ? found.gain : 0;
}

static void text_schedules(const struct report *r, FILE *out)
{
	char key[KEY_TEXT_MAX], name[TEMPLATE_SCHEDULE_NAME];

	for (size_t i = 0; i < r->n; i++) {
		const struct key *k = &r->kernel[i].key;
		double gain = tuned_gain(r, k);
		if (gain > 0)
			fprintf(out, "tuned %s:\n  %s; %.2f times as fast\n", key_text(k, key, sizeof key),
			        template_schedule_name(k, name, sizeof name), gain);
	}
}

/* Why a kernel could not be kept; NULL: all could. */
static const char *store_trouble(const struct report *r)
{
	return r->m->cache ? cache_store_trouble(r->m->cache) : NULL;
}

static void text_workers(const struct report *r, FILE *out)
{
	static const char *const says[] = {
		[DEVICE_CLOCK_HOST] = "by the host's clock,\nand each launch is waited for",
		[DEVICE_CLOCK_CARD] = "by its own clock;\nlaunches that are timed do not overlap",
		[DEVICE_CLOCK_SIMULATOR] = "which is what the\nsimulator took, and says nothing of a card"
	};
	const struct device_facts *f = &r->m->device->facts;
	const double share = 100 * per(working_nanoseconds(r), all_nanoseconds(r));

	if (f->host_runs)
		fprintf(out,
		        "%d workers were in kernels for %.1f %% of the time of passes; the rest went\n"
		        "between kernels, to waiting for one another\n",
		        r->totals.workers, share);
	else
		fprintf(out, "the card was in kernels for %.1f %% of the time of passes, %s\n", share, says[f->clock]);
}

static void text_totals(const struct report *r, FILE *out)
{
	static const char *const pass[] = { "prompt", "decode" };
	struct error err;

	for (int i = 0; i < 2; i++)
		if (r->totals.passes[i])
			fprintf(out, "%s: %" PRIu64 " pass%s over %" PRIu64 " token%s in %.3f s\n", pass[i],
			        r->totals.passes[i], r->totals.passes[i] == 1 ? "" : "es", r->totals.tokens[i],
			        r->totals.tokens[i] == 1 ? "" : "s", 1e-9 * (double)r->totals.nanoseconds[i]);
	if (r->p)
		text_workers(r, out);
	fprintf(out, "bytes: of code; registers: vector+general+mask; bytes/call: expected to be read\n"
	             "and written; GB/s: these bytes by the time of a worker\n");
	fprintf(out,
	        "%" PRIu64 " kernels were generated or loaded in the background in %.2f ms,\n%" PRIu64
	        " when decoding needed them\n",
	        r->background->compile_ahead.made, 1e-6 * (double)r->background->compile_ahead.nanoseconds,
	        r->background->stalls);
	text_schedules(r, out);
	fprintf(out, "target %s\n", r->m->target->name);
	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++)
		if (refusal(&target_table[i], &err))
			fprintf(out, "refused %s: %s\n", target_table[i].name, err.text);
	if (store_trouble(r))
		fprintf(out, "not stored in the cache: %s\n", store_trouble(r));
}

static char *make_text(const struct report *r)
{
	struct memfile f;

	if (!memfile_open(&f))
		return NULL;
	text_kernels(r, f.out);
	text_totals(r, f.out);
	return memfile_take(&f, NULL);
}

/* ---- for programs */

void report_schedule(json_t *o, const struct key *key)
{
	char name[TEMPLATE_SCHEDULE_NAME];
	uint32_t value;

	json_object_set_new(o, "schedule", json_string(template_schedule_name(key, name, sizeof name)));
	if (!template_schedule_field(key, 0, &value))
		return;
	json_t *fields = json_object();
	for (unsigned i = 0; i < TEMPLATE_SCHEDULE_FIELDS; i++) {
		const char *field = template_schedule_field(key, i, &value);
		json_object_set_new(fields, field, json_integer(value));
	}
	json_object_set_new(o, "schedule_fields", fields);
}

static json_t *json_kernels(const struct report *r)
{
	json_t *list = json_array();
	char key[KEY_TEXT_MAX];

	for (size_t i = 0; i < r->n; i++) {
		const struct profile_kernel *k = &r->kernel[i];
		const struct kernel *made = find(r->m, &k->key);
		json_t *o =
			json_pack("{s:s, s:s}", "key", key_text(&k->key, key, sizeof key), "source", source_name(made));
		if (made)
			json_object_update_new(
				o, json_pack("{s:i, s:i, s:i, s:i, s:I}", "code_bytes", (int)made->object.code_bytes,
			                     "vector_registers", made->object.vector_regs, "general_registers",
			                     made->object.scalar_regs, "mask_registers", made->object.mask_regs,
			                     "nanoseconds_to_make", (json_int_t)made->nanoseconds));
		if (r->p)
			json_object_update_new(
				o, json_pack("{s:I, s:I, s:I, s:f}", "calls", (json_int_t)k->calls, "bytes_expected",
			                     (json_int_t)k->bytes, "nanoseconds", (json_int_t)k->nanoseconds,
			                     "time_share", per((double)k->nanoseconds, all_nanoseconds(r))));
		double gain = tuned_gain(r, &k->key);
		report_schedule(o, &k->key);
		if (gain > 0)
			json_object_set_new(o, "tuned_gain", json_real(gain));
		json_array_append_new(list, o);
	}
	return list;
}

static char *make_json(const struct report *r)
{
	static const char *const clocks[] = {
		[DEVICE_CLOCK_HOST] = "host", [DEVICE_CLOCK_CARD] = "card", [DEVICE_CLOCK_SIMULATOR] = "simulator"
	};
	const struct profile_totals *t = &r->totals;
	const struct device_facts *f = &r->m->device->facts;
	json_t *refused = json_array();
	struct error err;

	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++)
		if (refusal(&target_table[i], &err))
			json_array_append_new(refused,
			                      json_pack("{s:s, s:s}", "target", target_table[i].name, "why", err.text));
	json_t *o = json_pack(
		"{s:s, s:s, s:s, s:b, s:o, s:o, s:{s:I, s:I, s:I}}", "target", r->m->target->name, "device", f->name,
		"clock", clocks[f->clock], "host_runs", (int)f->host_runs, "kernels", json_kernels(r), "refused",
		refused, "background", "kernels", (json_int_t)r->background->compile_ahead.made, "nanoseconds",
		(json_int_t)r->background->compile_ahead.nanoseconds, "stalls", (json_int_t)r->background->stalls);
	if (store_trouble(r))
		json_object_set_new(o, "not_stored", json_string(store_trouble(r)));
	if (r->p)
		json_object_update_new(
			o,
			json_pack("{s:i, s:f, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}}", "workers", t->workers,
		                  "time_in_kernels", per(working_nanoseconds(r), all_nanoseconds(r)), "prompt",
		                  "passes", (json_int_t)t->passes[0], "tokens", (json_int_t)t->tokens[0], "nanoseconds",
		                  (json_int_t)t->nanoseconds[0], "decode", "passes", (json_int_t)t->passes[1], "tokens",
		                  (json_int_t)t->tokens[1], "nanoseconds", (json_int_t)t->nanoseconds[1]));
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
	json_decref(o);
	return text;
}

char *report_make(jit_model *m, const struct profile *p, const struct report_background *b, bool json,
                  struct error *err)
{
	struct report r = { .m = m, .p = p, .background = b };
	char *text = NULL;

	if (p ? profile_kernels(p, &r.kernel, &r.n, &r.totals) : registry_rows(m, &r.kernel, &r.n))
		text = (json ? make_json : make_text)(&r);
	free(r.kernel);
	if (!text)
		error_set(err, ERROR_MEMORY, "no memory for a report of %zu kernels", r.n);
	return text;
}

bool report_trace(const struct profile *p, const char *path, struct error *err)
{
	if (!p || !profile_keeps_events(p))
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: no events were kept to write there; expected jit_session_options.profile to be "
		                 "JIT_PROFILE_EVENTS",
		                 path);
	FILE *out = safefile_stream(path);
	if (!out)
		return error_set(err, ERROR_IO, "%s: cannot be written: %s", path, strerror(errno));
	bool ok = profile_trace(p, out);
	ok = fclose(out) == 0 && ok;
	return ok ? true : error_set(err, ERROR_IO, "%s: could not be written whole: %s", path, strerror(errno));
}
