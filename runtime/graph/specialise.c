/* runtime/graph/specialise.c - of jitrun_graph.h: a graph whose sizes change, and its executables, one for each set of
 * sizes. They are made when they are requested, or before that on a thread.
 *
 * Owns: the list of sets, in the order in which they were first named, and what became of each. One that is being made
 * is waited for, and never made twice at a time.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/onnx.h"
#include "runtime/graph/graph_api.h"
#include "runtime/host/system.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

enum state { UNMADE, QUEUED, MAKING, READY };

struct special {
	struct special *next;
	char *sizes; /* in the order of their names */
	enum state state;
	bool ahead, failed; /* ahead: the thread makes it or made it. failed: the last attempt did */
	jit_executable *x;
	struct executable_report report;
	double began, took, waited; /* seconds; began: behind the opening of all */
	uint64_t uses;
};

struct jit_specialiser {
	jit_compute *compute;
	jit_graph_options from; /* path and source: owned */
	char *fixed;            /* sizes that hold for all */
	struct onnx_file *onnx; /* NULL: it is a text */
	struct special *first;
	size_t n;
	double opened;
	pthread_mutex_t lock, reading;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread, ends;
};

/* ---- opening */

static bool keep_source(jit_specialiser *s, const jit_graph_options *o, struct error *err)
{
	char *bytes = NULL;
	size_t n = o->n;

	if (!o->source && !o->path)
		return error_set(err, ERROR_ARGUMENT, "a specialiser has neither source nor path");
	s->fixed = strdup(o->sizes ? o->sizes : "");
	s->from.path = o->path ? strdup(o->path) : NULL;
	if (!s->fixed || (o->path && !s->from.path))
		return error_set(err, ERROR_MEMORY, "no memory for a graph");
	if (!o->source && !(bytes = graph_read_file(o->path, &n, err)))
		return false;
	if (o->source && !n)
		n = strlen(o->source);
	const char *at = bytes ? bytes : o->source;
	if (graph_is_onnx(at, n)) {
		s->onnx = graph_open_onnx(o->path, at, n, err);
		free(bytes);
		return s->onnx != NULL;
	}
	if (!bytes && (bytes = malloc(n + 1)))
		memcpy(bytes, o->source, n);
	s->from.source = bytes;
	s->from.n = n;
	return bytes || error_set(err, ERROR_MEMORY, "no memory for a graph");
}

static void forget(jit_specialiser *s)
{
	while (s->first) {
		struct special *e = s->first;
		s->first = e->next;
		jit_executable_close(e->x);
		free(e->sizes);
		free(e);
	}
	onnx_close(s->onnx);
	free((char *)(uintptr_t)s->from.path);
	free((char *)(uintptr_t)s->from.source);
	free(s->fixed);
	free(s);
}

jit_specialiser *jit_specialiser_open(jit_compute *c, const jit_graph_options *options, jit_error *err)
{
	jit_graph_options o = JIT_GRAPH_OPTIONS();
	struct error e = { 0 };
	jit_specialiser *s = NULL;

	if (NEEDED(c, &e) && NEEDED(options, &e) && SIZED_READ(jit_graph_options, &o, options, &e)) {
		s = calloc(1, sizeof *s);
		if (!s) {
			error_set(&e, ERROR_MEMORY, "no memory for a graph");
		} else if (keep_source(s, &o, &e)) {
			s->compute = c;
			s->opened = system_seconds();
			pthread_mutex_init(&s->lock, NULL);
			pthread_mutex_init(&s->reading, NULL);
			pthread_cond_init(&s->changed, NULL);
		} else {
			forget(s);
			s = NULL;
		}
	}
	model_report(err, &e);
	return s;
}

void jit_specialiser_close(jit_specialiser *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->reading);
	pthread_mutex_destroy(&s->lock);
	forget(s);
}

/* ---- sets of sizes */

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct graph_size *)x)->name, ((const struct graph_size *)y)->name);
}

/* The sizes in the order of their names, malloc'ed. */
static char *in_order(const char *text, struct error *err)
{
	struct graph_sizes *s = malloc(sizeof *s);
	char *out = NULL;
	size_t n;

	if (!s)
		error_set(err, ERROR_MEMORY, "no memory for sizes");
	else if (graph_read_sizes(s, text, err)) {
		FILE *f = open_memstream(&out, &n);
		qsort(s->size, s->n, sizeof *s->size, by_name);
		for (size_t i = 0; f && i < s->n; i++)
			fprintf(f, "%s%s=%llu", i ? " " : "", s->size[i].name, (unsigned long long)s->size[i].value);
		if (!f || fclose(f) != 0)
			error_set(err, ERROR_MEMORY, "no memory for sizes");
	}
	free(s);
	if (err->code == ERROR_NONE)
		return out;
	free(out);
	return NULL;
}

/* Locked. Takes the text. */
static struct special *find_or_add(jit_specialiser *s, char *sizes, struct error *err)
{
	struct special **at = &s->first;

	for (; *at; at = &(*at)->next)
		if (strcmp((*at)->sizes, sizes) == 0) {
			free(sizes);
			return *at;
		}
	*at = calloc(1, sizeof **at);
	if (!*at) {
		free(sizes);
		error_set(err, ERROR_MEMORY, "no memory for a graph");
		return NULL;
	}
	(*at)->sizes = sizes;
	s->n++;
	return *at;
}

static jit_executable *make(jit_specialiser *s, const char *sizes, bool aside, struct error *err)
{
	struct graph_sizes *all = malloc(sizeof *all);
	char *text = malloc(strlen(s->fixed) + strlen(sizes) + 2);
	struct tensor_graph g;
	jit_executable *x = NULL;
	bool ok = (all && text) || error_set(err, ERROR_MEMORY, "no memory for sizes");

	if (ok) {
		sprintf(text, "%s %s", s->fixed, sizes);
		ok = graph_read_sizes(all, text, err);
	}
	if (ok) {
		pthread_mutex_lock(&s->reading); /* what is open of a file is read by one at a time */
		ok = s->onnx ? graph_import_onnx(&g, s->onnx, all, err) : graph_read(&g, &s->from, all, err);
		pthread_mutex_unlock(&s->reading);
		if (ok) {
			x = graph_executable(s->compute, &g, aside, err);
			tensor_graph_free(&g);
		}
	}
	free(all);
	free(text);
	return x;
}

/* Locked, and unlocked while it is made. */
static void make_now(jit_specialiser *s, struct special *e, bool ahead, struct error *err)
{
	const double begin = system_seconds();

	e->state = MAKING;
	e->ahead = ahead;
	e->began = begin - s->opened;
	pthread_mutex_unlock(&s->lock);
	jit_executable *x = make(s, e->sizes, ahead, err);
	pthread_mutex_lock(&s->lock);
	e->took = system_seconds() - begin;
	e->x = x;
	e->failed = !x;
	e->state = x ? READY : UNMADE;
	if (x)
		executable_get_report(executable_of(x), &e->report);
	pthread_cond_broadcast(&s->changed);
}

jit_executable *jit_specialiser_get(jit_specialiser *s, const char *sizes, jit_error *err)
{
	struct error e = { 0 };
	jit_executable *x = NULL;
	char *key = NEEDED(s, &e) && NEEDED(sizes, &e) ? in_order(sizes, &e) : NULL;

	if (key) {
		pthread_mutex_lock(&s->lock);
		struct special *at = find_or_add(s, key, &e);
		const double begin = system_seconds();
		if (at && at->state == MAKING) {
			while (at->state == MAKING)
				pthread_cond_wait(&s->changed, &s->lock);
			at->waited += system_seconds() - begin;
		}
		if (at && at->state != READY)
			make_now(s, at, false, &e);
		if (at && at->x) {
			at->uses++;
			x = at->x;
		}
		pthread_mutex_unlock(&s->lock);
	}
	model_report(err, &e);
	return x;
}

/* ---- ahead */

/* What goes wrong is found anew, and said, when the executable is requested. */
static void *work(void *user)
{
	jit_specialiser *s = user;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		struct special *e = s->first;
		struct error err = { 0 };
		while (e && e->state != QUEUED)
			e = e->next;
		if (e)
			make_now(s, e, true, &err);
		else
			pthread_cond_wait(&s->changed, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int jit_specialiser_ahead(jit_specialiser *s, const char *sizes, jit_error *err)
{
	struct error e = { 0 };
	char *key = NEEDED(s, &e) && NEEDED(sizes, &e) ? in_order(sizes, &e) : NULL;

	if (key) {
		pthread_mutex_lock(&s->lock);
		struct special *at = find_or_add(s, key, &e);
		if (at && at->state == UNMADE) {
			at->state = QUEUED;
			if (!s->has_thread)
				s->has_thread = pthread_create(&s->thread, NULL, work, s) == 0;
			if (!s->has_thread) {
				at->state = UNMADE;
				error_set(&e, ERROR_IO, "no thread can be started that makes executables ahead");
			}
			pthread_cond_broadcast(&s->changed);
		}
		pthread_mutex_unlock(&s->lock);
	}
	return model_report(err, &e);
}

/* ---- what became of each */

size_t jit_specialiser_count(jit_specialiser *s)
{
	size_t n = 0;

	if (s) {
		pthread_mutex_lock(&s->lock);
		n = s->n;
		pthread_mutex_unlock(&s->lock);
	}
	return n;
}

static uint64_t nanoseconds(double seconds) { return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0; }

static void describe(const struct special *at, jit_specialisation *out)
{
	out->sizes = at->sizes;
	out->state = at->state == READY                  ? JIT_SPECIALISED
	             : at->failed && at->state != QUEUED ? JIT_SPECIALISE_FAILED
	                                                 : JIT_SPECIALISING;
	out->ahead = at->ahead;
	out->kernels = at->report.kernels;
	out->on_host = at->report.hosted;
	out->generated = at->report.generated;
	out->began_ns = nanoseconds(at->began);
	out->took_ns = nanoseconds(at->took);
	out->waited_ns = nanoseconds(at->waited);
	out->uses = at->uses;
}

int jit_specialiser_report(jit_specialiser *s, size_t number, jit_specialisation *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED(out, &e)) {
		jit_specialisation own = JIT_SPECIALISATION();
		pthread_mutex_lock(&s->lock);
		const struct special *at = s->first;
		for (size_t i = 0; at && i < number; i++)
			at = at->next;
		if (at)
			describe(at, &own);
		pthread_mutex_unlock(&s->lock);
		if (at)
			SIZED_WRITE(jit_specialisation, out, &own, &e);
		else
			error_set(&e, ERROR_ARGUMENT, "set of sizes %zu of a specialiser that has fewer", number);
	}
	return model_report(err, &e);
}
