/* programs/jitserve/jitserve_preset.c - what is kept with each of the server's models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitserve/jitserve.h"
#include "programs/common/preset.h"

static struct kept {
	const char *manifest, *file;
	struct preset preset; /* as of the last time that the model was opened */
	const char *stop[PRESET_SETTINGS];
	bool laid; /* its adapters are in the model's list */
} kept[SERVE_MAX_MODELS];

void serve_preset_from(size_t i, const char *manifest, const char *file)
{
	kept[i].manifest = manifest;
	kept[i].file = file;
}

static bool set_one(struct served *m, struct kept *k, struct sampling_args *a, const char *name, const char *value,
                    long *context, char why[400])
{
	char *end;
	long n = strtol(value, &end, 10);
	bool whole = end != value && !*end;

	if (strcmp(name, "stop") == 0) {
		k->stop[m->n_stop++] = value;
		return true;
	}
	if (strcmp(name, "context") == 0) {
		*context = n;
		return whole && n >= 0 && n <= 1 << 30;
	}
	if (strcmp(name, "n-predict") == 0) {
		if (!serve_given(name))
			m->max = n;
		return whole && n >= -2 && n <= 1 << 30;
	}
	if (strcmp(name, "lora") == 0) {
		snprintf(why, 400, "adapters of presets are read when the server starts, of models that it has then");
		return k->laid;
	}
	return serve_given(name) || sampling_args_set(a, name, value, why);
}

/* What k->preset says goes into *m, its sampling and *context. */
static bool set_all(struct served *m, struct kept *k, struct sampling_args *a, long *context, struct error *err)
{
	const struct preset *p = &k->preset;

	m->n_stop = 0;
	*context = 0;
	for (unsigned s = 0; s < p->n_set; s++) {
		char why[400] = "";
		if (!set_one(m, k, a, p->set[s].name, p->set[s].value, context, why))
			return error_set(err, ERROR_ARGUMENT, "%s: \"%s\" cannot be \"%.60s\"%s%s", p->path,
			                 p->set[s].name, p->set[s].value, *why ? ": " : "", why);
	}
	return true;
}

bool serve_preset_read(const struct served *m, size_t i, struct preset *p, struct error *err)
{
	const struct kept *k = &kept[i];

	return k->file ? preset_read(p, k->file, err) : preset_find(p, m->path, k->manifest, err);
}

void serve_preset_laid(size_t i) { kept[i].laid = true; }

bool serve_preset_check(const struct preset *p, struct error *err)
{
	struct sampling_args a = sampling_args_usual;
	struct kept *k = calloc(1, sizeof *k);
	struct served *m = calloc(1, sizeof *m);
	long context;
	bool ok = (k && m) || error_set(err, ERROR_MEMORY, "no memory for a preset");

	if (ok) {
		k->preset = *p;
		ok = set_all(m, k, &a, &context, err);
	}
	free(k);
	free(m);
	return ok;
}

bool serve_preset_use(struct served *m, size_t i, struct sampling_args *a, long *context, jit_error *err)
{
	struct kept *k = &kept[i];
	struct error e = { 0 };
	struct preset *p = &k->preset;

	preset_free(p);
	bool ok = serve_preset_read(m, i, p, &e) && set_all(m, k, a, context, &e);
	if (m->max < -1) /* as ollama says: as many as the context holds */
		m->max = -1;
	m->stop = k->stop;
	m->system = p->system;
	m->begins = p->messages;
	m->own_template = p->template;
	if (!ok) {
		*err = (jit_error){ .code = JIT_ERROR_ARGUMENT };
		snprintf(err->message, sizeof err->message, "%s", e.text);
	}
	return ok;
}
