#include "programs/synth/synth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/synth/synth_blocks.h"
#include "programs/synth/synth_tensors.h"
#include "loaders/files/gguf_write.h"
#include "loaders/tokenizer/tokenizer.h"
#include "base/math_host.h"
#include "base/memfile.h"

enum { ALIGN = 32 };
enum {
	TOKEN_NORMAL = 1,
	TOKEN_CONTROL = 3,
	TOKEN_UNUSED = 5,
	ASCII = 128,
	BYTES = 256,
	MERGED = 256,
	END = 257,
	KNOWN = 258
};
enum { CHUNK = 8 << 20 };
uint64_t synth_bytes(const struct model_shape *s, const struct mixture *m)
{
	struct tensors *l = malloc(sizeof *l);
	uint64_t sum = 0;
	if (!l)
		return 0;
	synth_list_tensors(l, s, m);
	for (uint32_t i = 0; i < l->n; i++)
		sum += synth_tensor_bytes(&l->list[i]);
	free(l);
	return sum;
}

/* ---- metadata. Write errors are asked for once, at the end */

struct out {
	struct gguf_out gguf;
	const char *arch;
	void (*progress)(void *user, uint64_t done, uint64_t total);
	void *user;
};

static void put(struct out *o, const void *p, size_t n) { gguf_put_raw(&o->gguf, p, n); }

/* A name that begins with a dot is the architecture's. Returns out. */
static const char *key_name(char out[96], const struct out *o, const char *name)
{
	snprintf(out, 96, "%s%s", name[0] == '.' ? o->arch : "", name);
	return out;
}

static void pair_u32(struct out *o, const char *name, uint32_t v)
{
	char key[96];
	gguf_put_u32(&o->gguf, key_name(key, o, name), v);
}

static void pair_f32(struct out *o, const char *name, double v)
{
	char key[96];
	gguf_put_f32(&o->gguf, key_name(key, o, name), (float)v);
}

static void pair_text(struct out *o, const char *name, const char *v) { gguf_put_string(&o->gguf, name, v); }

/* By layer, where those without any have a convolution. */
static void put_kv_heads(struct out *o, const struct model_shape *s)
{
	if (strcmp(s->arch, "lfm2") != 0) {
		pair_u32(o, ".attention.head_count_kv", s->kv_heads);
		return;
	}
	char key[96];
	gguf_put_array(&o->gguf, key_name(key, o, ".attention.head_count_kv"), GGUF_I32, s->layers);
	for (uint32_t i = 0; i < s->layers; i++) {
		uint32_t heads = shape_attends(s, i) ? s->kv_heads : 0;
		put(o, &heads, sizeof heads);
	}
	pair_u32(o, ".shortconv.l_cache", s->taps);
}

static void put_delta_rule(struct out *o, const struct model_shape *s)
{
	pair_u32(o, ".ssm.conv_kernel", s->taps);
	pair_u32(o, ".ssm.state_size", s->key_dim);
	pair_u32(o, ".ssm.group_count", s->key_heads);
	pair_u32(o, ".ssm.time_step_rank", s->value_heads);
	pair_u32(o, ".ssm.inner_size", s->value_heads * s->value_dim);
	pair_u32(o, ".full_attention_interval", 4);
}

static void put_experts(struct out *o, const struct model_shape *s)
{
	pair_u32(o, ".expert_count", s->experts);
	pair_u32(o, ".expert_used_count", s->experts_used);
	pair_u32(o, ".expert_feed_forward_length", s->expert_ffn);
	if (strcmp(s->arch, "qwen35moe") == 0)
		pair_u32(o, ".expert_shared_feed_forward_length", s->shared * s->expert_ffn);
	else if (s->shared)
		pair_u32(o, ".expert_shared_count", s->shared);
	if (s->dense)
		pair_u32(o, ".leading_dense_block_count", s->dense);
}

static void put_latent(struct out *o, const struct model_shape *s)
{
	pair_u32(o, ".attention.kv_lora_rank", s->rank);
	pair_u32(o, ".attention.q_lora_rank", s->query_rank);
	pair_u32(o, ".attention.key_length_mla", s->head_dim);
	pair_u32(o, ".attention.value_length_mla", s->value);
}

/* Layers with a window and without one, and what else differs between them. */
static void put_gemma(struct out *o, const struct model_shape *s)
{
	char key[96];

	pair_f32(o, ".rope.freq_base_swa", 1e4);
	if (s->rope_factor > 0) {
		pair_text(o, key_name(key, o, ".rope.scaling.type"), "linear");
		pair_f32(o, ".rope.scaling.factor", s->rope_factor);
	}
	if (!s->global_dim)
		return;
	pair_f32(o, ".final_logit_softcapping", 30);
	pair_u32(o, ".attention.shared_kv_layers", shape_borrowing(s));
	pair_u32(o, ".embedding_length_per_layer_input", s->layer_input);
	gguf_put_array(&o->gguf, key_name(key, o, ".attention.sliding_window_pattern"), GGUF_BOOL, s->layers);
	for (uint32_t i = 0; i < s->layers; i++)
		put(o, synth_slides(s, i) ? "\1" : "", 1);
	pair_u32(o, ".attention.key_length_swa", s->head_dim);
	pair_u32(o, ".attention.value_length_swa", s->head_dim);
	pair_u32(o, ".rope.dimension_count_swa", s->head_dim);
}

static void put_sizes(struct out *o, const struct model_shape *s, const struct mixture *m)
{
	char name[96];
	snprintf(name, sizeof name, "random %s %s", s->name, m->name);
	pair_text(o, "general.architecture", s->arch);
	pair_text(o, "general.name", name);
	pair_text(o, "general.type", "model");
	pair_u32(o, "general.alignment", ALIGN);
	pair_u32(o, "general.file_type", (uint32_t)m->file_type);
	pair_u32(o, "general.quantization_version", 2);
	pair_u32(o, ".vocab_size", s->vocab);
	pair_u32(o, ".context_length", s->context);
	pair_u32(o, ".embedding_length", s->hidden);
	pair_u32(o, ".block_count", s->layers);
	if (s->ffn)
		pair_u32(o, ".feed_forward_length", s->ffn);
	pair_u32(o, ".attention.head_count", s->heads);
	put_kv_heads(o, s);
	const uint32_t dim = s->global_dim ? s->global_dim : s->head_dim;
	pair_u32(o, ".attention.key_length", s->rank ? s->rank + s->rotates : dim);
	pair_u32(o, ".attention.value_length", s->rank ? s->rank : dim);
	pair_f32(o, ".attention.layer_norm_rms_epsilon", s->eps);
	pair_u32(o, ".rope.dimension_count", s->rotates ? s->rotates : dim);
	pair_f32(o, ".rope.freq_base", s->theta);
	if (synth_is_gemma(s))
		put_gemma(o, s);
	if (s->value_heads)
		put_delta_rule(o, s);
	if (s->experts)
		put_experts(o, s);
	if (s->rank)
		put_latent(o, s);
	if (s->window)
		pair_u32(o, ".attention.sliding_window", s->window);
	if (synth_is_gpt_oss(s)) {
		pair_text(o, ".rope.scaling.type", "yarn");
		pair_f32(o, ".rope.scaling.factor", 32);
		pair_u32(o, ".rope.scaling.original_context_length", 4096);
	}
}

static void put_tokenizer(struct out *o, const struct model_shape *s)
{
	struct gguf_out *g = &o->gguf;
	char text[32];

	pair_text(o, "tokenizer.ggml.model", "gpt2");
	pair_text(o, "tokenizer.ggml.pre", "gpt-2");
	gguf_put_array(g, "tokenizer.ggml.tokens", GGUF_STRING, s->vocab);
	for (uint32_t i = 0; i < s->vocab; i++) {
		if (i < BYTES)
			text[tokenizer_spell_byte(i, text)] = 0;
		else
			snprintf(text, sizeof text, i == MERGED ? "th" : i == END ? "<|end|>" : "<|unused_%u|>", i);
		gguf_put_text(g, text, strlen(text));
	}
	gguf_put_array(g, "tokenizer.ggml.token_type", GGUF_I32, s->vocab);
	for (uint32_t i = 0; i < s->vocab; i++) {
		uint32_t type = i == END ? TOKEN_CONTROL : i < KNOWN ? TOKEN_NORMAL : TOKEN_UNUSED;
		put(o, &type, sizeof type);
	}
	gguf_put_array(g, "tokenizer.ggml.merges", GGUF_STRING, 1);
	gguf_put_text(g, "t h", 3);
	pair_u32(o, "tokenizer.ggml.bos_token_id", END);
	pair_u32(o, "tokenizer.ggml.eos_token_id", END);
	gguf_put_key(g, "tokenizer.ggml.add_bos_token", GGUF_BOOL);
	put(o, "", 1);
}

static void put_tensor_list(struct out *o, const struct tensors *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct synth_tensor *t = &l->list[i];
		const uint64_t ne[3] = { t->cols, t->rows, t->stack };
		gguf_put_tensor(&o->gguf, (struct gguf_str){ t->name, strlen(t->name) }, t->type,
		                t->stack      ? 3
		                : t->rows > 1 ? 2
		                              : 1,
		                ne);
	}
}

/* ---- the weights */

/* What each pair's frequency is divided by: nothing for short waves, all of it for long ones, a blend between. */
static void put_rope_factors(struct out *o, const struct model_shape *s)
{
	const double pi = 3.14159265358979323846, low = 1, high = 4, trained = 8192;
	for (uint32_t i = 0; i < s->head_dim / 2; i++) {
		double wave = 2 * pi * math_host_pow(s->theta, 2.0 * i / s->head_dim),
		       blend = (trained / wave - low) / (high - low);
		blend = blend < 0 ? 0 : blend > 1 ? 1 : blend;
		float f = (float)(1 / ((1 - blend) / s->rope_factor + blend));
		put(o, &f, sizeof f);
	}
}

static void put_still_factors(struct out *o, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		float f = i < n / 4 ? 1 : 1e30f;
		put(o, &f, sizeof f);
	}
}

static void put_same(struct out *o, uint64_t n, float one)
{
	for (uint64_t i = 0; i < n; i++)
		put(o, &one, sizeof one);
}

/* n bytes of the pool of blocks, from `at` on and around its end. */
static void put_pool(struct out *o, const uint8_t *pool, uint64_t whole, uint64_t at, uint64_t n)
{
	for (uint64_t part; n; n -= part, at = 0) {
		part = n < whole - at ? n : whole - at;
		put(o, pool + at, part);
	}
}

/* n bytes of rows, whose heads are no part of the pool. Where the next ones begin in it. */
static uint64_t put_rows(struct out *o, const struct synth_tensor *t, const uint8_t *pool, uint64_t whole, uint64_t at,
                         uint64_t n)
{
	const uint64_t head = dtype_table[t->type].row, row = dtype_row_bytes(t->type, t->cols);
	uint8_t bytes[8];

	if (!head) {
		put_pool(o, pool, whole, at, n);
		return (at + n) % whole;
	}
	synth_row_head(t->type, bytes);
	for (uint64_t i = 0; i < n / row; i++) {
		put(o, bytes, head);
		put_pool(o, pool, whole, at, row - head);
		at = (at + row - head) % whole;
	}
	return at;
}

/* From the pool of blocks, which starts elsewhere for each tensor, so that no two layers are the same. Blocks of zeros
 * are weights of 0 in every type. */
static void put_random(struct out *o, const struct synth_tensor *t, uint32_t number, uint8_t *const pool[])
{
	uint64_t size = dtype_table[t->type].bytes, whole = CHUNK / size * size,
		 at = (uint64_t)number * 7919 % (CHUNK / size) * size, left = synth_tensor_bytes(t);

	if (t->content == RANDOM_TOKENS) {
		const uint64_t row = left / t->rows;
		at = put_rows(o, t, pool[t->type], whole, at, ASCII * row);
		for (uint64_t i = 0; i < (BYTES - ASCII) * row; i++)
			put(o, "", 1);
		left -= BYTES * row;
		at = (at + (BYTES - ASCII) * row / size * size) % whole;
	}
	put_rows(o, t, pool[t->type], whole, at, left);
}

static bool is_random(const struct synth_tensor *t) { return t->content == RANDOM || t->content == RANDOM_TOKENS; }

static bool make_pools(uint8_t *pool[], const struct tensors *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		enum dtype type = l->list[i].type;
		if (!is_random(&l->list[i]) || pool[type])
			continue;
		if (!(pool[type] = malloc(CHUNK)))
			return false;
		synth_fill(type, pool[type], CHUNK / dtype_table[type].bytes);
	}
	return true;
}

static void put_weights(struct out *o, const struct tensors *l, const struct model_shape *s, uint8_t *const pool[])
{
	static const char zeros[ALIGN];
	uint64_t done = 0, total = 0;

	for (uint32_t i = 0; i < l->n; i++)
		total += synth_tensor_bytes(&l->list[i]);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct synth_tensor *t = &l->list[i];
		if (o->progress)
			o->progress(o->user, done, total);
		done += synth_tensor_bytes(t);
		if (is_random(t))
			put_random(o, t, i, pool);
		else if (t->content == STILL_FACTORS)
			put_still_factors(o, t->cols);
		else if (t->content != ROPE_FACTORS)
			put_same(o, t->rows * t->cols, t->content == ONES ? 1.0f : -1.0f);
		else
			put_rope_factors(o, s);
		put(o, zeros, gguf_put_padding(&o->gguf, synth_tensor_bytes(t)));
	}
}

/* Everything before the weights. The tokenizer may be left out: it is most of the header, and only text needs it. */
static bool put_header(struct out *o, const struct tensors *l, const struct model_shape *s, const struct mixture *m,
                       bool tokenizer)
{
	gguf_put_begin(&o->gguf, o->gguf.f, ALIGN);
	put_sizes(o, s, m);
	if (tokenizer)
		put_tokenizer(o, s);
	put_tensor_list(o, l);
	return gguf_put_end(&o->gguf);
}

static bool write_all(struct out *o, const struct tensors *l, const struct model_shape *s, const struct mixture *m)
{
	uint8_t *pool[DTYPE_COUNT] = { 0 };
	bool ok = make_pools(pool, l);

	if (ok) {
		ok = put_header(o, l, s, m, true);
		if (ok)
			put_weights(o, l, s, pool);
		ok = ok && fflush(o->gguf.f) == 0 && !ferror(o->gguf.f);
	}
	for (int i = 0; i < DTYPE_COUNT; i++)
		free(pool[i]);
	return ok;
}

bool synth_write(int fd, const char *label, const struct model_shape *s, const struct mixture *m,
                 void (*progress)(void *user, uint64_t done, uint64_t total), void *user, struct error *err)
{
	struct tensors *l = malloc(sizeof *l);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct out o = {
		.gguf.f = copy >= 0 ? fdopen(copy, "wb") : NULL, .arch = s->arch, .progress = progress, .user = user
	};

	if (!l || !o.gguf.f) {
		if (copy >= 0 && !o.gguf.f)
			close(copy);
		free(l);
		return error_set(err, ERROR_MEMORY, "%s: no memory to write a model with", label);
	}
	synth_list_tensors(l, s, m);
	errno = 0;
	bool ok = write_all(&o, l, s, m);
	if (!ok)
		error_set(err, ERROR_IO, "%s: could not be written: %s", label, strerror(errno ? errno : ENOMEM));
	fclose(o.gguf.f);
	free(l);
	return ok;
}

uint8_t *synth_header(size_t *n, const struct model_shape *s, const struct mixture *m, struct error *err)
{
	struct tensors *l = malloc(sizeof *l);
	struct memfile f = { 0 };
	struct out o = { .gguf.f = l && memfile_open(&f) ? f.out : NULL, .arch = s->arch };

	if (o.gguf.f) {
		synth_list_tensors(l, s, m);
		put_header(&o, l, s, m, false);
	}
	char *bytes = o.gguf.f ? memfile_take(&f, n) : NULL;
	free(l);
	if (!bytes)
		error_set(err, ERROR_MEMORY, "no memory for the header of a model of shape %s", s->name);
	return (uint8_t *)bytes;
}

int synth_temporary(char *path, size_t size, struct error *err)
{
	const char *dir = getenv("TMPDIR");
	int fd = dir && *dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("jitbench", MFD_CLOEXEC);

	if (fd < 0)
		error_set(err, ERROR_IO, "%s: no temporary file could be made: %s", dir && *dir ? dir : "memory",
		          strerror(errno));
	else
		snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}
