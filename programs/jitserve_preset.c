/* programs/jitserve_preset.c - what is kept with each of the server's models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitserve.h"
#include "programs/preset.h"

static struct kept {
	const char *manifest, *file;
	struct preset preset; /* as of the last time that the model was opened */
	const char *stop[PRESET_SETTINGS];
} kept[SERVE_MOST_MODELS];

void serve_preset_from(size_t i, const char *manifest, const char *file)
{
	kept[i].manifest = manifest;
	kept[i].file = file;
}

static bool set_one(struct served *m, struct kept *k, struct sampling_args *a, const char *name, const char *value,
                    long *context)
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
			m->most = n;
		return whole && n >= -2 && n <= 1 << 30;
	}
	return serve_given(name) || sampling_args_set(a, "jitserve", name, value);
}

bool serve_preset_use(struct served *m, size_t i, struct sampling_args *a, long *context, jit_error *err)
{
	struct kept *k = &kept[i];
	struct error e = { 0 };
	struct preset *p = &k->preset;

	preset_free(p);
	m->n_stop = 0;
	*context = 0;
	bool ok = k->file ? preset_read(p, k->file, &e) : preset_find(p, m->path, k->manifest, &e);
	for (unsigned s = 0; ok && s < p->n_set; s++)
		ok = set_one(m, k, a, p->set[s].name, p->set[s].value, context) ||
		     error_set(&e, ERROR_ARGUMENT, "%s: \"%s\" cannot be \"%.60s\"", p->path, p->set[s].name,
		               p->set[s].value);
	if (m->most < -1) /* as ollama says: as many as the context holds */
		m->most = -1;
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
