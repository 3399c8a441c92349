/* vision/weights.c - a tower's tensors: found by their names, checked, and copied to the device as they are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels-templates/formats/weight_format.h"
#include "loaders/model/model_load.h"
#include "vision/parts.h"

enum { MAX_NAME = 256, NO_LAYER = 0 };

static bool is_projectors(enum tower_slot slot) { return slot >= TOWER_OUT_NORM; }

static enum tower_slot slot_in_file(const struct tower_spec *s, enum tower_slot slot)
{
	if (!(s->flags & TOWER_FILE_SWAPPED) || (slot != TOWER_UP && slot != TOWER_DOWN))
		return slot;
	return slot == TOWER_UP ? TOWER_DOWN : TOWER_UP;
}

static void write_name(const struct tower *t, enum tower_slot slot, uint32_t layer, bool bias, char out[MAX_NAME])
{
	const char *name = t->spec.row->name[slot_in_file(&t->spec, slot)], *number = strstr(name, "%u");
	const int part = is_projectors(slot);
	const size_t n = strlen(name), whole = n && name[n - 1] == '!', end = n - whole;
	int at = snprintf(out, MAX_NAME, "%.*s", (int)t->prefix_length[part], t->prefix[part]);

	if (slot >= TOWER_DEEP_NORM && t->spec.flags & TOWER_DEEP_BY_LAYER)
		layer = t->spec.deep[layer];
	if (number)
		at += snprintf(out + at, MAX_NAME - (size_t)at, "%.*s%" PRIu32 "%.*s", (int)(number - name), name,
		               layer, (int)(end - (size_t)(number - name) - 2), number + 2);
	else
		at += snprintf(out + at, MAX_NAME - (size_t)at, "%.*s", (int)end, name);
	if (!whole)
		snprintf(out + at, MAX_NAME - (size_t)at, "%s", bias ? ".bias" : ".weight");
}

static bool find_prefix(struct tower *t, int part, const char *words, enum tower_slot slot, struct error *err)
{
	struct found_tensor found;
	char name[MAX_NAME];

	const char *p = words;

	do {
		p += strspn(p, " ");
		t->prefix[part] = p;
		t->prefix_length[part] = strcspn(p, " ");
		write_name(t, slot, 0, false, name);
		if (model_find_tensor(t->files.file, name, &found))
			return true;
		p += t->prefix_length[part];
	} while (*p);
	return error_set(err, ERROR_FORMAT, "%s: there is no tensor %s, which a model of this type for images has",
	                 t->files.file->part[0].file.label, name);
}

bool tower_find_prefixes(struct tower *t, struct error *err)
{
	return find_prefix(t, 0, t->spec.row->tower, TOWER_PATCH, err) &&
	       find_prefix(t, 1, t->spec.row->out, TOWER_OUT_1, err);
}

/* ---- one tensor */

static uint64_t elements_of(const struct found_tensor *f)
{
	return f->bytes / dtype_table[f->type].bytes * dtype_table[f->type].block;
}

/* Fills in the dimensions that the file decides. */
static bool check_shape(const struct found_tensor *f, const char *name, struct shape *s, struct error *err)
{
	char is[SHAPE_TEXT_MAX], expected[SHAPE_TEXT_MAX];
	struct shape found = { .rank = f->rank < 4 ? f->rank : 4 };

	for (uint32_t i = 0; i < found.rank; i++)
		found.dim[i] = f->dim[found.rank - 1 - i];
	for (unsigned i = 0; i < s->rank; i++)
		if (!s->dim[i] && found.rank == s->rank)
			s->dim[i] = found.dim[i];
	if (elements_of(f) == shape_elements(s) && (f->rank != s->rank || shape_equal(&found, s)))
		return true;
	return error_set(err, ERROR_FORMAT, "%s: the tensor %s has the shape %s, expected %s", f->label, name,
	                 strchr(shape_text(JIT_TYPE_F32, &found, is), '['),
	                 strchr(shape_text(JIT_TYPE_F32, s, expected), '['));
}

static bool check_type(const struct found_tensor *f, const char *name, const struct shape *s, struct error *err)
{
	if (!weight_format_find(f->type))
		return error_set(err, ERROR_UNSUPPORTED, "%s: the tensor %s is of type %s, of which no weights are",
		                 f->label, name, dtype_table[f->type].name);
	return s->dim[s->rank - 1] % dtype_table[f->type].block == 0 ||
	       error_set(err, ERROR_FORMAT, "%s: the tensor %s has rows of %" PRIu64 " numbers, expected blocks of %u",
	                 f->label, name, s->dim[s->rank - 1], dtype_table[f->type].block);
}

static bool find(struct tower *t, enum tower_slot slot, uint32_t layer, bool bias, char name[MAX_NAME],
                 struct found_tensor *f, struct error *err)
{
	write_name(t, slot, layer, bias, name);
	if (!model_find_tensor(t->files.file, name, f))
		return error_set(err, ERROR_FORMAT, "%s: the tensor %s is missing", t->files.file->part[0].file.label,
		                 name);
	t->files.file->used[f->entry] = true;
	return true;
}

/* The patches' tensor of a further frame, which is as the first. */
static bool find_frame(struct tower *t, uint32_t frame, const struct found_tensor *first, struct found_tensor *f,
                       struct error *err)
{
	char name[MAX_NAME];

	write_name(t, TOWER_PATCH, NO_LAYER, false, name);
	snprintf(name + strlen(name), MAX_NAME - strlen(name), ".%" PRIu32, frame);
	if (!model_find_tensor(t->files.file, name, f))
		return error_set(err, ERROR_FORMAT, "%s: the tensor %s is missing", first->label, name);
	t->files.file->used[f->entry] = true;
	return (f->type == first->type && f->bytes == first->bytes) ||
	       error_set(err, ERROR_FORMAT, "%s: the tensor %s is not of the size and type of the one before it",
	                 first->label, name);
}

/* A tensor's bytes, and those of the other frames behind it, in the order in which they are computed with. */
static bool read_arranged(struct tower *t, enum tower_slot slot, const struct found_tensor *first, uint8_t *to,
                          struct error *err)
{
	const bool apart = slot == TOWER_PATCH && t->spec.flags & TOWER_FILE_FRAMES;
	uint8_t *raw = malloc(first->bytes + 1);
	struct found_tensor f = *first;
	bool ok = raw || error_set(err, ERROR_MEMORY, "there is no memory for an image encoder");

	for (uint32_t i = 0; ok && i < (apart ? t->spec.frames : 1); i++) {
		ok = (i == 0 || find_frame(t, i, first, &f, err)) &&
		     model_read_found(t->files.file, &f, f.bytes, raw, err);
		if (ok)
			arrange(&t->spec, slot, i, raw, f.bytes, to);
	}
	free(raw);
	return ok;
}

static bool read_weight(struct tower *t, enum tower_slot slot, const struct found_tensor *f, uint8_t *to,
                        struct error *err)
{
	return arrange_due(&t->spec, slot) ? read_arranged(t, slot, f, to, err)
	                                   : model_read_found(t->files.file, f, f->bytes, to, err);
}

static bool copy_weight(struct tower *t, const struct found_tensor *f, struct tower_weight *w, struct error *err)
{
	const enum tower_slot slot = (enum tower_slot)w->slot;
	const bool apart = slot == TOWER_PATCH && !w->bias && t->spec.flags & TOWER_FILE_FRAMES;
	const uint64_t bytes = f->bytes * (apart ? t->spec.frames : 1);
	jit_error e = { 0 };
	uint8_t *own = NULL;

	w->buffer = jit_buffer_open(t->compute, bytes ? bytes : 1, &e);
	if (!w->buffer)
		return error_set(err, ERROR_MEMORY, "%s", e.message);
	uint8_t *at = jit_buffer_memory(w->buffer);
	if (!at)
		at = own = malloc(bytes + 1);
	bool ok = at ? read_weight(t, w->bias && slot == TOWER_PATCH ? TOWER_SLOTS : slot, f, at, err)
	             : error_set(err, ERROR_MEMORY, "there is no memory for an image encoder");
	if (ok && own && jit_buffer_write(w->buffer, 0, own, bytes, &e) != JIT_OK)
		ok = error_set(err, ERROR_DEVICE, "%s", e.message);
	free(own);
	return ok;
}

/* What the file has of that shape: of patches whose frames are apart, one frame's. */
static bool check_found(const struct tower *t, enum tower_slot slot, bool bias, const struct found_tensor *f,
                        const char *name, struct shape *s, struct error *err)
{
	const bool apart = slot == TOWER_PATCH && !bias && t->spec.flags & TOWER_FILE_FRAMES;
	const bool ordered = slot == TOWER_PATCH && !bias && arrange_due(&t->spec, slot);

	if (apart)
		s->dim[s->rank - 1] /= t->spec.frames;
	bool ok = check_shape(f, name, s, err) && check_type(f, name, s, err);
	if (ok && ordered && dtype_table[f->type].block > 1)
		ok = error_set(err, ERROR_UNSUPPORTED, "%s: the tensor %s is of type %s, expected F32, F16 or BF16",
		               f->label, name, dtype_table[f->type].name);
	if (apart)
		s->dim[s->rank - 1] *= t->spec.frames;
	return ok;
}

int64_t tower_weight_of(struct tower *t, enum tower_slot slot, uint32_t layer, bool bias, const struct shape *s,
                        struct error *err)
{
	struct tower_weight w = { .slot = (uint16_t)slot, .layer = layer, .bias = bias, .shape = *s };
	struct found_tensor f;
	char name[MAX_NAME];

	for (size_t i = 0; i < t->weights; i++)
		if (t->weight[i].slot == slot && t->weight[i].layer == layer && t->weight[i].bias == bias)
			return (int64_t)i;
	if (!find(t, slot, layer, bias, name, &f, err) || !check_found(t, slot, bias, &f, name, &w.shape, err))
		return -1;
	w.type = f.type;
	if (!array_grow((void **)&t->weight, &t->weight_room, t->weights + 1, sizeof *t->weight)) {
		error_set(err, ERROR_MEMORY, "there is no memory for an image encoder");
		return -1;
	}
	const bool ok = copy_weight(t, &f, &w, err);
	t->weight[t->weights++] = w; /* which owns the buffer */
	return ok ? (int64_t)t->weights - 1 : -1;
}

/* One number; false: err. One that is not there stays. */
static bool read_bound(struct tower *t, const char *name, double *out, struct error *err)
{
	struct found_tensor f;
	uint8_t raw[8] = { 0 };
	float value;

	if (!model_find_tensor(t->files.file, name, &f))
		return true;
	t->files.file->used[f.entry] = true;
	if (elements_of(&f) != 1 || dtype_table[f.type].block != 1 || f.bytes > sizeof raw)
		return error_set(err, ERROR_FORMAT, "%s: the tensor %s has %" PRIu64 " numbers, expected one", f.label,
		                 name, elements_of(&f));
	if (!weight_format_find(f.type))
		return error_set(err, ERROR_UNSUPPORTED, "%s: the tensor %s is of type %s", f.label, name,
		                 dtype_table[f.type].name);
	if (!model_read_found(t->files.file, &f, f.bytes, raw, err))
		return false;
	weight_format_find(f.type)->to_f32(&value, raw, 1);
	*out = (double)value;
	return value == value || error_set(err, ERROR_FORMAT, "%s: the tensor %s is no number", f.label, name);
}

bool tower_bounds(struct tower *t, enum tower_slot slot, uint32_t layer, double bounds[4], struct error *err)
{
	static const char *const of[] = { "input_min", "input_max", "output_min", "output_max" };
	char name[MAX_NAME];

	write_name(t, slot, layer, false, name);
	char *end = strrchr(name, '.'); /* of ".weight", before which some have ".linear" */
	if (end - name > 7 && memcmp(end - 7, ".linear", 7) == 0)
		end -= 7;
	for (int i = 0; i < 4; i++) {
		bounds[i] = i % 2 ? HUGE_VAL : -HUGE_VAL;
		snprintf(end, (size_t)(name + MAX_NAME - end), ".%s", of[i]);
		if (!read_bound(t, name, &bounds[i], err))
			return false;
	}
	return true;
}

float *tower_read_floats(struct tower *t, enum tower_slot slot, uint64_t n, struct error *err)
{
	struct shape s = { .rank = 1, .dim = { n } };
	struct found_tensor f;
	char name[MAX_NAME];

	if (!find(t, slot, 0, false, name, &f, err))
		return NULL;
	if (elements_of(&f) != n) {
		error_set(err, ERROR_FORMAT, "%s: the tensor %s has %" PRIu64 " numbers, expected %" PRIu64, f.label,
		          name, elements_of(&f), n);
		return NULL;
	}
	if (!check_type(&f, name, &s, err))
		return NULL;
	float *out = malloc((n + 1) * sizeof *out);
	uint8_t *raw = malloc(f.bytes + 1);
	bool ok = (out && raw) || error_set(err, ERROR_MEMORY, "there is no memory for the tensor %s", name);
	if (ok && (ok = model_read_found(t->files.file, &f, f.bytes, raw, err)))
		weight_format_find(f.type)->to_f32(out, raw, n);
	free(raw);
	if (ok)
		return out;
	free(out);
	return NULL;
}

/* ---- what is left over */

/* Of a head that no text model reads, of a norm behind the last layer where an earlier layer's result is taken, numbers
 * that are their own, and what else a file has beside an image encoder. */
static bool changes_nothing(const char *name, size_t n)
{
	static const char *const begins[] = {
		"head.", "post_layernorm.", "embeddings.position_ids", "embeddings.mask_token",
		/* of mmproj files: a row of the text model's embeddings, what hears */
		"v.token_embd.img_break", "a.", "mm.a."
	};

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (n >= strlen(begins[i]) && memcmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Of layers behind the one whose result is taken. */
static bool of_later_layer(const struct tower *t, const char *name, size_t n)
{
	const char *pattern = t->spec.row->name[TOWER_NORM1];
	const size_t begin = (size_t)(strstr(pattern, "%u") - pattern);
	uint64_t layer = 0;
	size_t i = begin;

	if (n <= begin || memcmp(name, pattern, begin) != 0)
		return false;
	for (; i < n && name[i] >= '0' && name[i] <= '9' && layer < UINT32_MAX; i++)
		layer = layer * 10 + (uint64_t)(name[i] - '0');
	return i > begin && layer >= t->spec.layers;
}

bool tower_check_left_over(const struct tower *t, struct error *err)
{
	const struct model_file *f = t->files.file;
	char text[100];

	for (uint32_t i = 0; i < f->n_entries; i++) {
		const struct name_ref n = model_entry_name(f, i);
		for (int part = 0; part < 2 && !f->used[i]; part++) {
			const size_t length = t->prefix_length[part];
			if (n.n <= length || memcmp(n.p, t->prefix[part], length) != 0 ||
			    changes_nothing(n.p + length, n.n - length) ||
			    of_later_layer(t, n.p + length, n.n - length))
				continue;
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: the tensor %s is none that jitrun computes with in an image encoder, and "
			                 "without it the results might be wrong",
			                 f->part[f->entry[i].part].file.label,
			                 error_quote(text, sizeof text, n.p, n.n));
		}
	}
	return true;
}

void tower_free_weights(struct tower *t)
{
	for (size_t i = 0; i < t->weights; i++)
		jit_buffer_close(t->weight[i].buffer);
	free(t->weight);
}
