/* vision/read_clip.c - image encoders out of the keys of llama.cpp's mmproj files (clip.*), for the projectors of
 * projectors.def. What a file has no key for, its tensors say.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "vision/spec.h"

struct clip_reader {
	const struct gguf *g;
	const struct model_file *file;
	struct tower_spec *s;
	struct error *err;
};

/* ---- keys */

static bool read_number(struct clip_reader *r, const char *key, bool needed, uint64_t max, uint32_t *out)
{
	uint64_t v = 0;
	bool found = false;

	if (!gguf_u64(r->g, key, &v, &found, r->err))
		return false;
	if (!found)
		return !needed || error_set(r->err, ERROR_FORMAT, "%s: the key %s is missing", r->g->path, key);
	*out = (uint32_t)(v > max ? 0 : v);
	return hparam_range(r->g->path, key, (double)v, 1, (double)max, r->err);
}

/* One that may only say what follows from others. */
static bool check_number(struct clip_reader *r, const char *key, uint32_t only)
{
	uint64_t v = only;
	bool found;

	return gguf_u64(r->g, key, &v, &found, r->err) &&
	       (v == only || error_set(r->err, ERROR_UNSUPPORTED, "%s: %s is %" PRIu64 ", expected %" PRIu32,
	                               r->g->path, key, v, only));
}

static bool read_text(struct clip_reader *r, const char *key, struct gguf_str *out, bool *found)
{
	return gguf_string(r->g, key, out, found, r->err);
}

static bool read_switch(struct clip_reader *r, const char *key, bool *on)
{
	bool found;

	return gguf_bool(r->g, key, on, &found, r->err);
}

/* NULL: it is not there, or r->err says what is wrong. */
static const struct gguf_kv *read_array(struct clip_reader *r, const char *key, uint64_t max)
{
	const struct gguf_kv *kv = gguf_find(r->g, key);

	if (!kv || (kv->type == GGUF_ARRAY && kv->item <= GGUF_BOOL && kv->item != GGUF_F32 && kv->count <= max))
		return kv;
	error_set(r->err, ERROR_FORMAT, "%s: %s is no array of at most %" PRIu64 " integers", r->g->path, key, max);
	return NULL;
}

/* ---- tensors */

static bool has_tensor(const struct clip_reader *r, const char *name)
{
	struct found_tensor f;

	return model_find_tensor(r->file, name, &f);
}

static void switch_by(struct clip_reader *r, const char *name, uint32_t flag)
{
	r->s->flags = has_tensor(r, name) ? r->s->flags | flag : r->s->flags & ~flag;
}

static bool find_matrix(struct clip_reader *r, const char *name, struct found_tensor *f)
{
	return (model_find_tensor(r->file, name, f) && f->rank == 2) ||
	       error_set(r->err, ERROR_FORMAT, "%s: there is no matrix %s", r->g->path, name);
}

/* Older files have the two matrices of the feed-forward layer under each other's name, and those of Qwen 2 VL have
 * another number for its width. */
static bool read_ffn(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	struct found_tensor up, down;
	uint32_t ffn = 0;

	if (!find_matrix(r, "v.blk.0.ffn_up.weight", &up) || !find_matrix(r, "v.blk.0.ffn_down.weight", &down))
		return false;
	if (!(s->flags & TOWER_GATED) && up.dim[0] != s->hidden && down.dim[0] == s->hidden) {
		s->flags |= TOWER_FILE_SWAPPED;
		up = down;
	}
	if (!hparam_range(r->g->path, "v.blk.0.ffn_up.weight's rows", (double)up.dim[1], 1, TOWER_MAX_WIDTH, r->err))
		return false;
	s->ffn = (uint32_t)up.dim[1];
	if (arch_word_in("qwen2vl_merger", s->row->types))
		return true;
	return read_number(r, "clip.vision.feed_forward_length", true, TOWER_MAX_WIDTH, &ffn) &&
	       check_number(r, "clip.vision.feed_forward_length", s->ffn);
}

/* A table of positions that is a square. */
static bool read_side(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	struct found_tensor f;

	if (!find_matrix(r, "v.position_embd.weight", &f))
		return false;
	for (s->side = 1; s->side < TOWER_MAX_SIDE && (s->side + 1ull) * (s->side + 1ull) <= f.dim[1];)
		s->side++;
	return (uint64_t)s->side * s->side == f.dim[1] ||
	       error_set(r->err, ERROR_FORMAT,
	                 "%s: the tensor v.position_embd.weight has %" PRIu64 " rows, expected a square of at most %d",
	                 r->g->path, f.dim[1], TOWER_MAX_SIDE);
}

/* ---- families */

static bool clip_read_square(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t size = 0;

	if (!read_number(r, "clip.vision.image_size", true, TOWER_MAX_WIDTH, &size))
		return false;
	s->side = s->max = size / s->patch;
	s->out_eps = s->eps;
	return hparam_range(r->g->path, "clip.vision.image_size / clip.vision.patch_size", s->side, 1, TOWER_MAX_SIDE,
	                    r->err) &&
	       (s->side % s->merge == 0 || s->row->positions != POSITIONS_TABLE ||
	        error_set(r->err, ERROR_FORMAT, "%s: %s is %" PRIu32 ", expected a divisor of %" PRIu32, r->g->path,
	                  s->row->merge_key, s->merge, s->side));
}

/* Features are taken behind one layer: the last one that the file has, if it does not say which. */
static bool clip_read_llava(struct clip_reader *r)
{
	const char *key = "clip.vision.feature_layer";
	const struct gguf_kv *kv = read_array(r, key, TOWER_MAX_LAYERS);

	if (r->err->code || !clip_read_square(r))
		return false;
	r->s->out = 0;
	if (!kv)
		return true;
	if (kv->count != 1)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: %s has %" PRIu64 " layers, expected one", r->g->path,
		                 key, kv->count);
	const int64_t layer = gguf_item_int(kv, 0);
	if (!hparam_range(r->g->path, key, (double)layer, 1, r->s->layers, r->err))
		return false;
	r->s->layers = (uint32_t)layer;
	return true;
}

static bool clip_read_internvl(struct clip_reader *r)
{
	switch_by(r, "v.blk.0.attn_q.bias", TOWER_QKV_BIAS);
	if (!clip_read_square(r))
		return false;
	r->s->out_eps = 1e-5;
	return true;
}

static bool clip_read_pixtral(struct clip_reader *r)
{
	struct tower_spec *s = r->s;

	switch_by(r, "mm.1.bias", TOWER_OUT_BIAS);
	if (!clip_read_square(r))
		return false;
	s->side = 0;
	if (has_tensor(r, "mm.patch_merger.weight"))
		return true;
	s->end = END_MLP;
	s->flags |= TOWER_NO_OUT_NORM;
	return check_number(r, s->row->merge_key, 1);
}

static bool clip_read_lfm(struct clip_reader *r)
{
	switch_by(r, "mm.1.bias", TOWER_OUT_BIAS);
	if (!has_tensor(r, "mm.input_norm.weight"))
		r->s->flags |= TOWER_NO_OUT_NORM;
	r->s->out_eps = 1e-5;
	return read_side(r);
}

/* The table of positions has two halves. Bounds of matrices that a file leaves out are none. */
static bool clip_read_gemma4(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	struct found_tensor f;

	s->theta = 100;
	s->out_eps = s->eps;
	switch_by(r, "v.std_bias", TOWER_STANDARD);
	if (!model_find_tensor(r->file, "v.position_embd.weight", &f) || f.rank != 3 || f.dim[2] != 2)
		return error_set(r->err, ERROR_FORMAT, "%s: there is no tensor v.position_embd.weight of two matrices",
		                 r->g->path);
	if (!hparam_range(r->g->path, "v.position_embd.weight's rows", (double)f.dim[1], 1, 1 << 20, r->err))
		return false;
	s->side = (uint32_t)f.dim[1];
	s->max = s->side < TOWER_MAX_SIDE ? s->side : TOWER_MAX_SIDE;
	return true;
}

/* Every so many layers one sees all; the others see windows of as many pixels as all published models have. */
static bool read_windows(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t pattern = 0, size = 112;

	if (!read_number(r, "clip.vision.n_wa_pattern", true, TOWER_MAX_LAYERS, &pattern) ||
	    !read_number(r, "clip.vision.window_size", false, TOWER_MAX_WIDTH, &size))
		return false;
	for (uint32_t i = pattern; i <= s->layers; i += pattern)
		s->sees_all[i - 1] = true;
	s->window = size / s->merge / s->patch;
	return hparam_range(r->g->path, "window_size / (spatial_merge_size * patch_size)", s->window, 1, TOWER_MAX_SIDE,
	                    r->err);
}

static bool read_deep(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	const char *key = "clip.vision.is_deepstack_layers";
	const struct gguf_kv *kv = read_array(r, key, s->layers);

	for (uint64_t i = 0; kv && i < kv->count; i++) {
		if (!gguf_item_int(kv, i))
			continue;
		if (s->n_deep == TOWER_MAX_DEEP)
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: %s has more than %d layers", r->g->path, key,
			                 TOWER_MAX_DEEP);
		s->deep[s->n_deep++] = (uint32_t)i;
	}
	return r->err->code == ERROR_NONE;
}

static bool clip_read_qwen(struct clip_reader *r)
{
	r->s->out_eps = r->s->eps;
	r->s->frames = 2;
	if (has_tensor(r, "v.blk.0.attn_qkv.weight"))
		r->s->flags |= TOWER_FUSED;
	if (r->s->flags & TOWER_GATED && !read_windows(r))
		return false;
	return !r->s->row->positions || (read_side(r) && read_deep(r));
}

/* ---- the table */

static const struct tower_row rows[] = {
#define BIASES (TOWER_QKV_BIAS | TOWER_O_BIAS | TOWER_MLP_BIAS)
#include "vision/projectors.def"
};

static bool say_projectors(const struct clip_reader *r, const struct gguf_str *type)
{
	char names[300] = "", quoted[60];
	size_t at = 0;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
		                       i == 0                                ? ""
		                       : i + 1 == sizeof rows / sizeof *rows ? " or "
		                                                             : ", ",
		                       rows[i].types);
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: clip.projector_type is %s, expected %s", r->g->path,
	                 type ? error_quote(quoted, sizeof quoted, type->p, type->n) : "missing", names);
}

/* One for images counts more than one for all that the file has. */
static bool find_row(struct clip_reader *r)
{
	struct gguf_str type, architecture;
	char quoted[60];
	bool found, sees = true;

	if (!read_text(r, "general.architecture", &architecture, &found))
		return false;
	if (!found || architecture.n != 4 || memcmp(architecture.p, "clip", 4) != 0)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: general.architecture is %s, expected clip, an image encoder (mmproj)", r->g->path,
		                 found ? error_quote(quoted, sizeof quoted, architecture.p, architecture.n)
		                       : "missing");
	if (!read_switch(r, "clip.has_vision_encoder", &sees))
		return false;
	if (!sees)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: clip.has_vision_encoder is false, expected true",
		                 r->g->path);
	if (!read_text(r, "clip.vision.projector_type", &type, &found) ||
	    (!found && !read_text(r, "clip.projector_type", &type, &found)))
		return false;
	for (size_t i = 0; found && i < sizeof rows / sizeof *rows; i++)
		if (strlen(rows[i].types) == type.n && memcmp(rows[i].types, type.p, type.n) == 0)
			r->s->row = &rows[i];
	return r->s->row || say_projectors(r, found ? &type : NULL);
}

/* A file says gelu of both of its forms, which the family tells apart. */
static bool read_act(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	bool gelu = false, silu = false;

	if (!read_switch(r, "clip.use_gelu", &gelu) || !read_switch(r, "clip.use_silu", &silu))
		return false;
	if (gelu && silu)
		return error_set(r->err, ERROR_FORMAT, "%s: both clip.use_gelu and clip.use_silu are true", r->g->path);
	if (silu)
		s->act = TOWER_SILU;
	else if (gelu && (s->act == TOWER_SILU || s->act == TOWER_GELU_QUICK))
		s->act = TOWER_GELU;
	return true;
}

static bool read_sizes(struct clip_reader *r)
{
	struct tower_spec *s = r->s;
	const char *eps = "clip.vision.attention.layer_norm_epsilon";
	bool found = false;

	s->channels = 3;
	s->frames = 1;
	s->merge = s->row->merge;
	if (!read_number(r, "clip.vision.embedding_length", true, TOWER_MAX_WIDTH, &s->hidden) ||
	    !read_number(r, "clip.vision.block_count", true, TOWER_MAX_LAYERS, &s->layers) ||
	    !read_number(r, "clip.vision.attention.head_count", true, TOWER_MAX_WIDTH, &s->heads) ||
	    !read_number(r, "clip.vision.patch_size", true, 1024, &s->patch) ||
	    !read_number(r, "clip.vision.projection_dim", true, TOWER_MAX_WIDTH, &s->out) ||
	    (s->row->merge_key && !read_number(r, s->row->merge_key, false, TOWER_MAX_SIDE, &s->merge)) ||
	    !gguf_f64(r->g, eps, &s->eps, &found, r->err) ||
	    !tower_check_heads(s, r->g->path, "clip.vision.embedding_length", r->err) ||
	    !check_number(r, "clip.vision.attention.head_count_kv", s->heads) ||
	    !check_number(r, "clip.vision.attention.head_dim", s->hidden / s->heads))
		return false;
	return (found || error_set(r->err, ERROR_FORMAT, "%s: the key %s is missing", r->g->path, eps)) &&
	       hparam_range(r->g->path, eps, s->eps, 1e-30, 1, r->err);
}

bool tower_read_clip(struct tower_spec *s, const struct model *m, struct error *err)
{
	struct clip_reader r = { .g = &m->file->part[0].gguf, .file = m->file, .s = s, .err = err };

	*s = (struct tower_spec){ .image_token = -1, .theta = 10000 };
	if (!find_row(&r))
		return false;
	s->flags = s->row->flags;
	s->act = s->row->act;
	s->out_act = s->row->out_act;
	s->end = s->row->end;
	return read_sizes(&r) && read_act(&r) && read_ffn(&r) && s->row->read_keys(&r);
}
