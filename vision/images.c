/* vision/images.c - pictures for a language model. See images.h. */
#include "vision/images.h"

#include <stdatomic.h>

#include "jit/store/record.h"
#include "runtime/model/model.h"
#include "runtime/session/session_pictures.h"

bool images_attach(const struct tower *t, jit_model *m, struct error *err)
{
	const struct tower_spec *s = tower_spec_of(t);

	if (!model_is_alone(m, "pictures", err))
		return false;
	if (s->out != m->file.spec.hidden || s->n_deep >= m->file.spec.layers)
		return error_set(
			err, ERROR_ARGUMENT,
			"the image encoder gives %u numbers for a token, and for %u layers, expected %u: it is "
			"another model's",
			s->out, s->n_deep, m->file.spec.hidden);
	atomic_store(&m->shown, 1 + s->n_deep);
	return true;
}

/* Of the pixels, and of how they lie. */
static uint64_t key_of(const struct tower_spec *s, const struct tower_pixels *p)
{
	const uint32_t sides[] = { p->tiles, p->height, p->width };
	const uint64_t each =
		(uint64_t)p->height * p->width * (s->flags & TOWER_ROWS ? tower_patch_numbers(s) : s->channels);

	return record_checksum(p->values, p->tiles * each * sizeof *p->values, record_checksum(sides, sizeof sides, 0));
}

struct image_features *images_encode(struct tower *t, const struct tower_pixels *p, struct error *err)
{
	const struct tower_spec *s = tower_spec_of(t);
	const uint32_t by = (s->flags & TOWER_ROWS ? 1 : s->patch) * s->merge;
	struct tower_features f;

	if (!tower_encode(t, p, &f, err))
		return NULL;
	const struct image_features made = {
		.values = f.values,
		.tokens = f.tokens,
		.width = f.width,
		.levels = f.levels,
		.rows = p->height / by,
		.columns = p->width / by,
		.key = key_of(s, p)
	};
	return picture_open(&made, err);
}
