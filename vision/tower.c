/* vision/tower.c - image encoders, opened and run. */
#include "vision/tower.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "pictures/processor.h"
#include "vision/parts.h"

const struct tower_spec *tower_spec_of(const struct tower *t) { return &t->spec; }

/* ---- sizes */

/* Arrays of graphs have fewer elements than 2^31: rows of the stream, the widest ones, and scores. */
static bool has_room(const struct tower_spec *s, uint32_t height, uint32_t width)
{
	const uint64_t rows = (uint64_t)height * width + 1, max = (uint64_t)1 << 31,
		       block = (uint64_t)s->merge * s->merge;
	uint64_t widest = 3 * (uint64_t)s->hidden;

	widest = s->ffn > widest ? s->ffn : widest;
	widest = tower_patch_numbers(s) > widest ? tower_patch_numbers(s) : widest;
	widest = (uint64_t)s->out / block > widest ? s->out / block : widest;
	return rows < max / widest && rows * (rows / TOWER_PARTS + 1) < max / s->heads;
}

/* In patches. */
static bool grid_of(const struct tower_spec *s, const struct tower_pixels *p, uint32_t *height, uint32_t *width,
                    struct error *err)
{
	const uint32_t by = s->flags & TOWER_ROWS ? 1 : s->patch;
	const char *unit = s->flags & TOWER_ROWS ? "patches" : "pixels";
	const uint32_t step = by * s->merge;

	*height = p->height / by;
	*width = p->width / by;
	if (!p->values || !p->tiles || !p->height || !p->width || p->height % step || p->width % step)
		return error_set(err, ERROR_ARGUMENT,
		                 "%" PRIu32 " pictures of %" PRIu32 " x %" PRIu32
		                 " %s, expected at least one with sides that are multiples of %" PRIu32,
		                 p->tiles, p->width, p->height, unit, step);
	const uint32_t max = s->max ? s->max : TOWER_MAX_SIDE;
	if (*height > max || *width > max ||
	    (s->row->positions == POSITIONS_TABLE && (*height != s->side || *width != s->side)))
		return error_set(err, ERROR_ARGUMENT,
		                 "a picture of %" PRIu32 " x %" PRIu32 " patches, expected %s %" PRIu32 " x %" PRIu32,
		                 *width, *height, s->row->positions == POSITIONS_TABLE ? "just" : "at most", max, max);
	return has_room(s, *height, *width) ||
	       error_set(err, ERROR_ARGUMENT,
	                 "a picture of %" PRIu32 " x %" PRIu32
	                 " patches would need arrays of 2^31 elements or more, expected fewer patches",
	                 *width, *height);
}

bool tower_tokens(const struct tower_spec *s, const struct tower_pixels *p, uint64_t *tokens, struct error *err)
{
	uint32_t height, width;

	if (!grid_of(s, p, &height, &width, err))
		return false;
	*tokens = (uint64_t)p->tiles * (height / s->merge) * (width / s->merge);
	return true;
}

/* ---- passes */

static void close_pass(struct tower_pass *p)
{
	executable_close(p->x);
	tower_graph_free(&p->graph);
	*p = (struct tower_pass){ 0 };
}

static bool open_pass(struct tower *t, struct tower_pass *p, uint32_t height, uint32_t width, struct error *err)
{
	bool *bound = NULL;
	bool ok = tower_draw(&p->graph, t, height, width, err);

	if (ok) {
		bound = calloc(p->graph.g.inputs, sizeof *bound);
		ok = bound || error_set(err, ERROR_MEMORY, "there is no memory for an image encoder");
	}
	for (size_t i = 0; ok && i < p->graph.weights; i++)
		bound[p->graph.copied + i] = true;
	if (ok)
		p->x = executable_open_bound(t->compute, &p->graph.g, bound, err);
	free(bound);
	for (size_t i = 0; p->x && ok && i < p->graph.weights; i++)
		ok = executable_bind(p->x, p->graph.copied + (uint32_t)i, t->weight[p->graph.weight[i]].buffer, 0, err);
	p->height = height;
	p->width = width;
	return ok && p->x;
}

static bool is_of(const struct tower *t, const struct tower_pass *p, uint32_t height, uint32_t width)
{
	return p->x && (t->spec.window ? p->height == height && p->width == width
	                               : (uint64_t)p->height * p->width == (uint64_t)height * width);
}

/* NULL: err. */
static struct tower_pass *pass_of(struct tower *t, uint32_t height, uint32_t width, struct error *err)
{
	struct tower_pass *oldest = &t->pass[0];

	for (int i = 0; i < TOWER_PASSES; i++) {
		if (is_of(t, &t->pass[i], height, width))
			oldest = &t->pass[i];
		else if (!is_of(t, oldest, height, width) && t->pass[i].used < oldest->used)
			oldest = &t->pass[i];
	}
	if (!is_of(t, oldest, height, width)) {
		close_pass(oldest);
		if (!open_pass(t, oldest, height, width, err)) {
			close_pass(oldest);
			return NULL;
		}
	}
	oldest->used = ++t->count;
	return oldest;
}

/* ---- opening */

static uint64_t table_rows(const struct tower_spec *s)
{
	return s->row->positions == POSITIONS_AXES ? 2 * (uint64_t)s->side
	                                           : (uint64_t)s->side * s->side + !!(s->flags & TOWER_HAS_CLASS);
}

static bool read_tower(struct tower *t, const char *path, struct error *err)
{
	struct tower_spec *s = &t->spec;

	if (!model_open_files(&t->files, path, err))
		return false;
	if (!(t->files.file->format == MODEL_GGUF ? tower_read_clip(s, &t->files, err)
	                                          : tower_read_config(s, &t->files, err)) ||
	    !tower_find_prefixes(t, err))
		return false;
	if (s->row->positions)
		t->positions = tower_read_floats(t, TOWER_POSITIONS, table_rows(s) * s->hidden, err);
	if (s->row->positions && !t->positions)
		return false;
	/* The smallest picture's graph names all tensors there are. */
	const uint32_t side = s->row->positions == POSITIONS_TABLE ? s->side : s->merge;
	struct tower_graph g;
	bool ok = tower_draw(&g, t, side, side, err);
	const uint32_t out = ok ? (uint32_t)tensor_value_of(&g.g, g.g.output[0])->shape.dim[1] : 0;
	tower_graph_free(&g);
	if (ok && s->row->read_keys && s->out && s->out != out)
		return error_set(err, ERROR_FORMAT,
		                 "%.200s: clip.vision.projection_dim is %" PRIu32 ", expected %" PRIu32, path, s->out,
		                 out);
	s->out = out;
	return ok && tower_check_left_over(t, err) && model_read_done(&t->files, err);
}

struct tower *tower_open(const char *path, jit_compute *compute, struct error *err)
{
	struct tower *t = calloc(1, sizeof *t);

	if (!t) {
		error_set(err, ERROR_MEMORY, "there is no memory for an image encoder");
		return NULL;
	}
	t->compute = compute;
	if (read_tower(t, path, err))
		return t;
	tower_close(t);
	return NULL;
}

bool tower_read_processor(const struct tower *t, struct image_processor *p, struct error *err)
{
	return processor_read_gguf(p, &t->files.file->part[0].gguf, err);
}

void tower_close(struct tower *t)
{
	if (!t)
		return;
	for (int i = 0; i < TOWER_PASSES; i++)
		close_pass(&t->pass[i]);
	tower_free_weights(t);
	free(t->positions);
	model_close(&t->files);
	free(t);
}

/* ---- encoding */

struct copied {
	void *memory[TOWER_INPUTS];
};

static bool make_inputs(const struct tower *t, const struct tower_graph *g, uint32_t height, uint32_t width,
                        struct copied *c, struct error *err)
{
	for (uint32_t i = 0, at = 0; i < TOWER_INPUTS; i++) {
		if (!g->has[i])
			continue;
		const struct tensor_value_info *v = tensor_value_of(&g->g, g->g.input[at++]);
		c->memory[i] = malloc(shape_elements(&v->shape) * tensor_type_bytes(v->type) + 1);
		if (!c->memory[i])
			return error_set(err, ERROR_MEMORY, "there is no memory for a picture");
	}
	if (g->has[INPUT_POSITIONS])
		prepare_positions(&t->spec, t->positions, height, width, c->memory[INPUT_POSITIONS]);
	if (g->has[INPUT_COSINE])
		prepare_rotation(&t->spec, height, width, c->memory[INPUT_COSINE], c->memory[INPUT_SINE]);
	if (g->has[INPUT_WINDOW])
		prepare_windows(&t->spec, height, width, c->memory[INPUT_WINDOW], c->memory[INPUT_BACK],
		                c->memory[INPUT_INSIDE]);
	return true;
}

static bool encode_tile(struct tower *t, const struct tower_pass *p, const struct tower_pixels *pixels, uint32_t tile,
                        uint32_t height, uint32_t width, struct copied *c, struct tower_features *out,
                        struct error *err)
{
	const struct tower_spec *s = &t->spec;
	const uint64_t each = (uint64_t)height * width * tower_patch_numbers(s),
		       tokens = (uint64_t)(height / s->merge) * (width / s->merge);
	const void **in = calloc(p->graph.g.inputs, sizeof *in);
	void *to[1 + TOWER_MAX_DEEP];
	bool ok = in || error_set(err, ERROR_MEMORY, "there is no memory for a picture");

	for (uint32_t i = 0, at = 0; ok && i < TOWER_INPUTS; i++)
		if (p->graph.has[i])
			in[at++] = c->memory[i];
	for (uint32_t level = 0; level < out->levels; level++)
		to[level] = out->values + (level * out->tokens + tile * tokens) * out->width;
	if (ok) {
		prepare_patches(s, pixels, pixels->values + tile * each, height, width, c->memory[INPUT_PATCHES]);
		ok = executable_run(p->x, in, to, err);
	}
	free(in);
	return ok;
}

bool tower_encode(struct tower *t, const struct tower_pixels *p, struct tower_features *out, struct error *err)
{
	const struct tower_spec *s = &t->spec;
	struct copied c = { 0 };
	uint32_t height, width;

	*out = (struct tower_features){ .width = s->out, .levels = 1 + s->n_deep };
	if (!grid_of(s, p, &height, &width, err) || !tower_tokens(s, p, &out->tokens, err))
		return false;
	const struct tower_pass *pass = pass_of(t, height, width, err);
	out->values = pass ? malloc((out->levels * out->tokens * out->width + 1) * sizeof *out->values) : NULL;
	bool ok = out->values || error_set(err, ERROR_MEMORY, "there is no memory for a picture's features");
	ok = ok && make_inputs(t, &pass->graph, height, width, &c, err);
	for (uint32_t tile = 0; ok && tile < p->tiles; tile++)
		ok = encode_tile(t, pass, p, tile, height, width, &c, out, err);
	for (int i = 0; i < TOWER_INPUTS; i++)
		free(c.memory[i]);
	if (ok)
		return true;
	free(out->values);
	*out = (struct tower_features){ 0 };
	return false;
}
