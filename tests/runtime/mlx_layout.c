/* tests/runtime/mlx_layout.c - see mlx_layout.h. What is laid out: experts of a kind in one tensor, gate and up apart;
 * a convolution's taps as (channels, taps, 1), and then norms of some families with their 1; latent attention's
 * matrices by head; names of text models inside others. */
#include "tests/runtime/mlx_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n >= m && strcmp(name + n - m, end) == 0;
}

/* The name up to `at`, and `end`. */
static char *renamed(char out[200], const char *name, const char *at, const char *end)
{
	snprintf(out, 200, "%.*s%s", (int)(at - name), name, end);
	return out;
}

static void put(struct st_writer *w, const char *name, const struct slice *t, const uint8_t *p, uint64_t rows)
{
	const uint64_t shape[] = { t->dim[0], rows, t->dim[2] };

	st_write_tensor(w, name, t->type, 3, shape, p, t->bytes / t->dim[1] * rows);
}

/* Of each expert's rows every second, or one half. */
static void put_some(struct st_writer *w, const char *name, const struct slice *t, bool serial, int which)
{
	const uint64_t rows = t->dim[1] / 2;
	const size_t row = t->bytes / t->dim[0] / t->dim[1];
	uint8_t *p = malloc(t->bytes / 2);

	for (uint64_t e = 0; e < t->dim[0]; e++)
		for (uint64_t r = 0; r < rows; r++)
			memcpy(p + (e * rows + r) * row,
			       t->p + (2 * e * rows + (serial ? 2 * r + (uint64_t)which : r + (uint64_t)which * rows)) *
			                       row,
			       row);
	put(w, name, t, p, rows);
	free(p);
}

/* Tensors of experts 0, 1, ... under names with their number. */
static void put_stack(const struct original *o, struct st_writer *w, const char *name, const char *at)
{
	static const char *const kinds[][2] = { { "w1.", "gate_proj." },        { "w2.", "down_proj." },
		                                { "w3.", "up_proj." },          { "gate_proj.", "gate_proj." },
		                                { "down_proj.", "down_proj." }, { "up_proj.", "up_proj." } };
	const char *kind = at + strlen("experts.0.");
	uint8_t *all = NULL;
	struct slice t = { 0 };
	uint64_t n = 0;
	char one[200], to[200];

	for (json_t *entry;; n++) {
		snprintf(one, sizeof one, "%.*sexperts.%d.%s", (int)(at - name), name, (int)n, kind);
		if (!(entry = json_object_get(o->header, one)))
			break;
		t = original_slice(entry, o->data);
		all = realloc(all, (n + 1) * t.bytes);
		memcpy(all + n * t.bytes, t.p, t.bytes);
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strncmp(kind, kinds[i][0], strlen(kinds[i][0])) == 0) {
			snprintf(to, sizeof to, "%.*sswitch_mlp.%sweight", (int)(at - name), name, kinds[i][1]);
			st_write_tensor(w, to, t.type, 3, (const uint64_t[]){ n, t.dim[0], t.dim[1] }, all,
			                n * t.bytes);
			break;
		}
	free(all);
}

/* Tensors that hold all experts already; false: it is none. */
static bool put_fused(struct st_writer *w, const char *name, const struct slice *t, const char *own)
{
	const char *at;
	char to[2][200];

	if ((at = strstr(own, "block_sparse_moe.output_linear"))) {
		put(w, renamed(to[0], own, at, "block_sparse_moe.switch_mlp.down_proj.weight"), t, t->p, t->dim[1]);
	} else if ((at = strstr(own, "block_sparse_moe.input_linear"))) {
		put_some(w, renamed(to[0], own, at, "block_sparse_moe.switch_mlp.gate_proj.weight"), t, false, 0);
		put_some(w, renamed(to[1], own, at, "block_sparse_moe.switch_mlp.up_proj.weight"), t, false, 1);
	} else if (ends_in(name, "experts.down_proj")) {
		at = strstr(own, "mlp.experts");
		put(w,
		    at ? renamed(to[0], own, at, "mlp.switch_mlp.down_proj.weight")
		       : renamed(to[0], own, strstr(own, "experts"), "experts.switch_glu.down_proj.weight"),
		    t, t->p, t->dim[1]);
	} else if (ends_in(name, "experts.gate_up_proj")) {
		at = strstr(own, "mlp.experts");
		const char *before = at ? "mlp.switch_mlp." : "experts.switch_glu.";
		at = at ? at : strstr(own, "experts");
		for (int i = 0; i < 2; i++) {
			snprintf(to[0], 200, "%.*s%s%s_proj.weight", (int)(at - own), own, before, i ? "up" : "gate");
			put_some(w, to[0], t, false, i);
		}
	} else {
		return false;
	}
	return true;
}

/* gpt-oss's MXFP4 and the biases of its experts; false: it is none. */
static bool put_transposed(struct st_writer *w, const char *name, json_t *entry, const struct slice *t)
{
	static const struct {
		const char *end, *to;
		bool both;
	} kinds[] = { { "gate_up_proj_blocks", "weight", true }, { "gate_up_proj_scales", "scales", true },
		      { "gate_up_proj_bias", "bias", true },     { "down_proj_blocks", "weight", false },
		      { "down_proj_scales", "scales", false },   { "down_proj_bias", "bias", false } };
	const char *at = strstr(name, "experts.");
	char to[200];

	for (size_t i = 0; at && i < sizeof kinds / sizeof *kinds; i++) {
		if (!ends_in(name, kinds[i].end))
			continue;
		struct slice u = *t;
		bool words = json_array_size(json_object_get(entry, "shape")) == 4;
		u.type = words ? DTYPE_U32 : strcmp(kinds[i].to, "bias") == 0 ? DTYPE_BF16 : DTYPE_U8;
		u.dim[2] = words ? u.dim[2] * 4 : u.dim[2];
		for (int k = 0; k < (kinds[i].both ? 2 : 1); k++) {
			snprintf(to, sizeof to, "%.*sexperts.%s_proj.%s", (int)(at - name), name,
			         !kinds[i].both ? "down"
			         : k            ? "up"
			                        : "gate",
			         kinds[i].to);
			if (t->rank == 2) {
				const uint64_t n = t->dim[1] / (kinds[i].both ? 2 : 1), all = t->dim[0] * n;
				uint16_t *p = malloc(all * 2);
				for (uint64_t j = 0; j < all; j++)
					memcpy(&p[j], t->p + 2 * (kinds[i].both ? 2 * j + (uint64_t)k : j), 2);
				st_write_tensor(w, to, u.type, 2, (const uint64_t[]){ t->dim[0], n }, p, all * 2);
				free(p);
			} else if (kinds[i].both) {
				put_some(w, to, &u, true, k);
			} else {
				put(w, to, &u, u.p, u.dim[1]);
			}
		}
		return true;
	}
	return false;
}

/* Of the rows of each head those for keys, turned; and those for values. */
static void put_by_head(const struct original *o, struct st_writer *w, const char *name, const struct slice *t)
{
	const json_t *text = json_object_get(o->config, "text_config"), *c = text ? text : o->config;
	const uint64_t heads = (uint64_t)json_integer_value(json_object_get(c, "num_attention_heads")),
		       rest = (uint64_t)json_integer_value(json_object_get(c, "qk_nope_head_dim")),
		       rank = (uint64_t)json_integer_value(json_object_get(c, "kv_lora_rank")),
		       value = t->dim[0] / heads - rest;
	const size_t element = t->bytes / t->dim[0] / t->dim[1];
	uint8_t *keys = malloc(heads * rest * rank * element), *values = malloc(heads * value * rank * element);
	char to[200];

	for (uint64_t h = 0; h < heads; h++) {
		const uint8_t *from = t->p + h * (rest + value) * rank * element;
		for (uint64_t r = 0; r < rest; r++)
			for (uint64_t i = 0; i < rank; i++)
				memcpy(keys + ((h * rank + i) * rest + r) * element, from + (r * rank + i) * element,
				       element);
		memcpy(values + h * value * rank * element, from + rest * rank * element, value * rank * element);
	}
	renamed(to, name, strstr(name, "kv_b_proj"), "embed_q.weight");
	st_write_tensor(w, to, t->type, 3, (const uint64_t[]){ heads, rank, rest }, keys,
	                heads * rest * rank * element);
	renamed(to, name, strstr(name, "kv_b_proj"), "unembed_out.weight");
	st_write_tensor(w, to, t->type, 3, (const uint64_t[]){ heads, value, rank }, values,
	                heads * value * rank * element);
	free(keys);
	free(values);
}

/* With its 1, in floats: BF16 would round. */
static void put_norm(struct st_writer *w, const char *name, const struct slice *t)
{
	float *x = malloc(t->dim[0] * sizeof *x);

	for (uint64_t i = 0; i < t->dim[0]; i++) {
		uint32_t bits = (uint32_t)t->p[2 * i] << 16 | (uint32_t)t->p[2 * i + 1] << 24;
		memcpy(&x[i], &bits, 4);
		x[i] += 1;
	}
	st_write_tensor(w, name, DTYPE_F32, 1, t->dim, x, t->dim[0] * sizeof *x);
	free(x);
}

static bool is_norm(const char *name)
{
	return ends_in(name, ".input_layernorm.weight") || ends_in(name, ".post_attention_layernorm.weight") ||
	       ends_in(name, "model.norm.weight") || ends_in(name, ".q_norm.weight") || ends_in(name, ".k_norm.weight");
}

/* Where a text model is inside another; in a mixture of LFM 2 the first layers have other names, too. */
static void own_name(char out[200], const char *name, bool inside, bool mixture)
{
	static const char *const dense[] = { "gate_proj", "down_proj", "up_proj" };
	const char *at = strstr(name, "feed_forward.w");

	if (strncmp(name, "model.language_model.", 21) == 0)
		snprintf(out, 200, "language_model.model.%s", name + 21);
	else if (at && mixture)
		snprintf(out, 200, "%.*sfeed_forward.%s.weight", (int)(at - name), name, dense[at[14] - '1']);
	else
		snprintf(out, 200, "%s%s", inside ? "language_model." : "", name);
}

void mlx_layout(const struct original *o, struct st_writer *w)
{
	const char *type = json_string_value(json_object_get(o->config, "model_type")), *name, *at;
	const bool inside = json_object_get(o->config, "text_config"),
		   plus = strncmp(type, "qwen3_5", 7) == 0 || strcmp(type, "qwen3_next") == 0;
	json_t *entry;
	char own[200];

	st_writer_start(w);
	json_object_foreach(o->header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0 || strncmp(name, "mtp.", 4) == 0 || strstr(name, "visual") ||
		    strstr(name, "vision"))
			continue;
		struct slice t = original_slice(entry, o->data);
		own_name(own, name, inside, strcmp(type, "lfm2_moe") == 0);
		if ((at = strstr(own, "experts.")) && at[8] >= '0' && at[8] <= '9') {
			if (strncmp(at, "experts.0.", 10) == 0)
				put_stack(o, w, own, at);
		} else if (put_fused(w, name, &t, own) || put_transposed(w, own, entry, &t)) {
			continue;
		} else if (t.rank == 3 && t.dim[1] == 1) {
			st_write_tensor(w, own, t.type, 3, (const uint64_t[]){ t.dim[0], t.dim[2], 1 }, t.p, t.bytes);
		} else if (strstr(name, "kv_b_proj.weight")) {
			put_by_head(o, w, own, &t);
		} else if (plus && is_norm(name)) {
			put_norm(w, own, &t);
		} else {
			remade_put(w, own, &t);
		}
	}
}
