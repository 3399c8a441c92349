/* train/new.c - see new.h. */
#include "train/new.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/math_host.h"
#include "loaders/files/file.h"
#include "loaders/model/model_wanted.h"
#include "train/net.h"
#include "train/save.h"

static const double two_pi = 6.28318530717958647692;

/* Number e of tensor t: of a normal distribution, by two uniform numbers. */
static double normal(uint64_t seed, uint64_t t, uint64_t e)
{
	const double u = (net_uniform(seed, t, 2 * e) + 1) / 2, v = net_uniform(seed, t, 2 * e + 1);
	double s, c;

	math_host_sincos(two_pi * v, &s, &c);
	return math_host_sqrt(-2 * math_host_log(1 - u)) * c;
}

static void fill(float *x, uint64_t n, const struct wanted_tensor *t, const struct model_wanted *w, uint64_t number,
                 uint64_t seed, double deviation)
{
	const float plain = t->kind == WANTED_NORM && !w->less_one ? 1 : 0;

	for (uint64_t i = 0; i < n; i++)
		x[i] = t->kind == WANTED_MATRIX ? (float)(normal(seed, number, i) * deviation) : plain;
}

/* initializer_range, perhaps of a text model within another. */
static double deviation_of(const void *config, uint64_t n)
{
	json_t *all = json_read_plain(config, n), *text = json_object_get(all, "text_config"),
	       *range = json_object_get(text ? text : all, "initializer_range");
	const double x = json_number_value(range);

	json_decref(all);
	return x > 0 && x < 1 ? x : 0.02;
}

static bool write_weights(const struct model_wanted *w, const char *to, uint64_t seed, double deviation,
                          uint64_t *weights, struct error *err)
{
	struct train_entry *e = calloc(w->n + (size_t)1, sizeof *e);
	char path[4096];
	bool ok = e || error_set(err, ERROR_MEMORY, "there is no memory for the weights");

	*weights = 0;
	for (uint32_t i = 0; ok && i < w->n; i++) {
		const struct wanted_tensor *t = &w->tensor[i];
		const struct shape s = { t->rank, { t->dim[0], t->dim[1] } };
		const uint64_t n = shape_elements(&s);
		float *x = malloc((n + 1) * sizeof *x);
		ok = x || error_set(err, ERROR_MEMORY, "there is no memory for %.100s", t->name);
		if (ok)
			fill(x, n, t, w, i, seed, deviation);
		e[i] = (struct train_entry){ t->name, s, x };
		*weights += n;
	}
	ok = ok && train_path(path, to, "model.safetensors", err) && train_write_safetensors(path, e, w->n, err);
	for (uint32_t i = 0; e && i < w->n; i++)
		free((void *)(uintptr_t)e[i].values);
	free(e);
	return ok;
}

bool train_new(const char *from, const char *to, uint64_t seed, uint64_t *weights, struct error *err)
{
	struct file config = { 0 };
	struct model_wanted w = { 0 };
	char path[4096];
	bool ok = train_path(path, from, "config.json", err) && file_open(&config, path, err) &&
	          file_text(&config, JSON_MAX_CONFIG, err) && model_wanted_read(&w, config.base, config.size, err) &&
	          train_folder_open(to, err) && train_copy_texts(from, to, err);

	ok = ok && write_weights(&w, to, seed, deviation_of(config.base, config.size), weights, err);
	model_wanted_free(&w);
	file_close(&config);
	return ok;
}
