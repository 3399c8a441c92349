/* runtime/session/session_kv.c - see session_kv.h. */
#include "runtime/session/session_kv.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "kernels-templates/templates.h"

/* Of one layer. */
static uint64_t extents_of(const struct model_spec *s, uint32_t layer, size_t positions, uint32_t first)
{
	uint64_t chunks = kv_chunks(positions);

	if (!plan_layer_keeps(s, layer))
		return 0;
	return plan_layer_slides(s, layer) ? chunks - (first < chunks ? first : chunks) : chunks;
}

uint64_t kv_extents_count(const struct model_spec *s, size_t positions, uint32_t first)
{
	uint64_t n = 0;

	for (uint32_t layer = 0; layer < s->layers; layer++)
		n += extents_of(s, layer, positions, first);
	return n;
}

uint64_t kv_extents_bytes(const struct plan_cache *kv, const struct model_spec *s, size_t positions, uint32_t first)
{
	uint64_t n = 0;

	for (uint32_t layer = 0; layer < s->layers; layer++)
		n += extents_of(s, layer, positions, first) * plan_cache_bytes(kv->type, s, layer);
	return n;
}

size_t kv_extent_max(const struct plan_cache *kv, const struct model_spec *s)
{
	size_t max = 0;

	for (uint32_t layer = 0; layer < s->layers; layer++) {
		size_t bytes = (size_t)plan_cache_bytes(kv->type, s, layer);
		max = bytes > max ? bytes : max;
	}
	return max;
}

struct kv_extent *kv_extents(const struct session_memory *m, const struct model_spec *s, size_t positions,
                             uint32_t first, struct error *err)
{
	uint64_t n = kv_extents_count(s, positions, first), at = 0;
	struct kv_extent *out = malloc((n + 1) * sizeof *out);

	if (!out)
		error_set(err, ERROR_MEMORY, "no memory for a list of %llu pieces of the KV cache",
		          (unsigned long long)n);
	for (uint32_t c = 0; out && c < kv_chunks(positions); c++)
		for (uint32_t layer = 0; layer < s->layers; layer++)
			if (plan_layer_keeps(s, layer) && (c >= first || !plan_layer_slides(s, layer)))
				out[at++] = (struct kv_extent){ session_memory_chunk(m, s, layer, c), layer, c,
					                        (size_t)plan_cache_bytes(m->kv.type, s, layer) };
	return out;
}

/* Of `groups` groups of positions, `wide` positions each, which alternate by `element` bytes: all but the first `used`
 * positions of a head. */
static void clean(uint8_t *p, unsigned wide, size_t element, size_t row_bytes, uint32_t used)
{
	for (unsigned first = 0; first < NUMERICS_CHUNK; first += wide, p += wide * row_bytes) {
		unsigned keep = used <= first ? 0 : used - first < wide ? used - first : wide;
		for (size_t row = 0; row < row_bytes / element; row++)
			memset(p + (row * wide + keep) * element, 0, (wide - keep) * element);
	}
}

void kv_extent_clean(const struct session_memory *m, const struct model_spec *s, uint32_t layer, uint8_t *extent,
                     uint32_t used)
{
	const struct plan_cache *kv = &m->kv;
	const uint32_t dims = model_cache_dim(s, layer);
	size_t row_bytes = template_kv_row_bytes(kv->type, dims), head = row_bytes * NUMERICS_CHUNK;
	bool vectors = template_kv_octets(m->device->facts.target, kv->type, dims);
	size_t key = vectors ? 16 : kv->type == DTYPE_F16 ? 2 : 4;

	for (uint32_t h = 0; h < model_sizes_of(s, layer).kv_heads; h++) { /* layouts: docs/kernel-templates.md */
		clean(extent + h * head, 32, key, row_bytes, used);
		if (s->latent.rank)
			continue;
		clean(extent + plan_cache_keys(kv->type, s, layer) + h * head, vectors ? 8 : 1, vectors ? 2 : row_bytes,
		      row_bytes, used);
	}
}

/* From one place of the device to another. copy: room for it where the host does not reach there. */
static bool copy_bytes(struct device *d, uint8_t *to, const uint8_t *from, size_t bytes, uint8_t *copy,
                       struct error *err)
{
	if (d->copy)
		return d->copy(d, to, from, bytes, err);
	if (!d->facts.host_reaches)
		return d->read(d, copy, from, bytes, err) && d->upload(d, to, copy, bytes, err);
	memcpy(to, from, bytes);
	return true;
}

bool kv_copy_bytes(struct device *d, uint8_t *to, const uint8_t *from, size_t bytes, struct error *err)
{
	uint8_t *copy = d->facts.host_reaches ? NULL : malloc(bytes);
	bool ok = (copy || d->facts.host_reaches || error_set(err, ERROR_MEMORY, "no memory for %zu bytes", bytes)) &&
	          copy_bytes(d, to, from, bytes, copy, err);

	free(copy);
	return ok;
}

/* Those extents that both keep; the new one wants none else. */
static bool copy_extents(const struct session_memory *to, const struct session_memory *from, const struct model_spec *s,
                         size_t positions, uint8_t *copy, struct error *err)
{
	uint64_t extents = kv_extents_count(s, positions, from->window_first);
	struct kv_extent *have = kv_extents(from, s, positions, from->window_first, err),
			 *want = have ? kv_extents(to, s, positions, from->window_first, err) : NULL;
	bool ok = want != NULL;

	for (uint64_t i = 0; ok && i < extents; i++)
		ok = !want[i].at || want[i].at == have[i].at ||
		     copy_bytes(from->device, want[i].at, have[i].at, have[i].bytes, copy, err);
	free(have);
	free(want);
	return ok;
}

bool kv_copy(struct session_memory *to, const struct session_memory *from, const struct model_spec *s, size_t positions,
             size_t next, struct error *err)
{
	if (!positions) /* nor need there be memory yet */
		return true;
	const struct session_states *t = &from->states;
	size_t extent = kv_extent_max(&from->kv, s), max = extent > t->bytes ? extent : t->bytes;
	int state = t->bytes ? states_find(t, next) : -1;
	uint8_t *copy = from->device->facts.host_reaches ? NULL : malloc(max);
	bool ok = (copy || from->device->facts.host_reaches ||
	           error_set(err, ERROR_MEMORY, "no memory for %zu bytes", max)) &&
	          copy_extents(to, from, s, positions, copy, err);

	if (ok && state >= 0)
		ok = copy_bytes(from->device, states_take(&to->states, t->position[state]),
		                t->base + (uint64_t)state * t->bytes, t->bytes, copy, err);
	free(copy);
	return ok;
}
