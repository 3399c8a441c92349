/* programs/jitwarm/jitwarm_device.c - the card that --device names: its driver makes code of kernels' texts. */
#include <stdlib.h>
#include <string.h>

#include "jit/program_key.h"
#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/device/device.h"

static struct device *device;

bool warm_open_device(struct error *err)
{
	if (!(device = device_open(warm.device, NULL, err)))
		return false;
	return device->linker ||
	       error_set(err, ERROR_ARGUMENT,
	                 "the device \"%.32s\" has no driver that makes code: --device is for cuda, "
	                 "and --target for all else",
	                 warm.device);
}

void warm_close_device(void)
{
	device_close(device);
	device = NULL;
}

const struct driver_linker *warm_linker(void) { return device ? device->linker : NULL; }

const char *warm_driver_note(const struct key *key, char out[WARM_DRIVER_NOTE_MAX])
{
	char text[DRIVER_CODE_TEXT_MAX];
	struct driver_code by;

	*out = 0;
	if (driver_code_is(key, &by))
		snprintf(out, WARM_DRIVER_NOTE_MAX, " (a driver's: %s)", driver_code_text(by, text));
	return out;
}

void warm_learn_program(struct cache *c, const struct key *key)
{
	struct key text = *key;
	struct object o = { 0 };

	text.codegen = key_codegen(key->target);
	if (cache_load(c, &text, &o, NULL, NULL) == RECORD_FOUND)
		program_learn(&o, &text);
	object_free(&o);
}

/* *made: its text can be made. A model whose kernels do not go together runs without one. */
static bool try_program(const struct key *key, bool *made, struct error *err)
{
	struct object o = { 0 };
	struct error why = { 0 };

	*made = compile_key(&o, key, template_build, NULL, NULL, &why);
	object_free(&o);
	return *made || why.code == ERROR_UNSUPPORTED || error_set(err, why.code, "%s", why.text);
}

bool warm_add_programs(const struct model_spec *spec, const struct key_list_options *o, struct key **keys, size_t *n,
                       struct error *err)
{
	struct key *program = NULL, *all = NULL;
	size_t n_programs;
	bool ok = key_list_programs(spec, o, &program, &n_programs, err);

	if (ok && !(all = realloc(*keys, (*n + n_programs + 1) * sizeof *all)))
		ok = error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", *n + n_programs);
	*keys = all ? all : *keys;
	for (size_t i = 0; ok && i < n_programs; i++) {
		bool made;
		ok = try_program(&program[i], &made, err);
		if (made)
			(*keys)[(*n)++] = program[i];
	}
	free(program);
	return ok;
}

bool warm_device_awaits(const struct target *t)
{
	/* Without a device: as one of the target's cards does where nobody says otherwise. */
	return device ? device->facts.target == t && device->facts.awaits : strncmp(t->name, "sm90", 4) == 0;
}

const struct target *warm_device_target(void) { return device ? device->facts.target : NULL; }
