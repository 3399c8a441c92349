#include "programs/synth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/synth_blocks.h"
#include "loaders/gguf_write.h"
#include "loaders/tokenizer.h"
#include "base/math_host.h"
#include "base/memfile.h"

enum { ALIGN = 32 };
enum { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_UNUSED = 5, BYTES = 256, MERGED = 256, END = 257, KNOWN = 258 };
enum { CHUNK = 8 << 20, MAX_TENSORS = 16 + 24 * SHAPE_MAX_LAYERS };
enum content { RANDOM, ONES, MINUS_ONES, ROPE_FACTORS };

struct tensor {
	char name[48];
	enum dtype type;
	enum content content;
	uint64_t rows, cols, stack; /* stack: matrices one behind the other; 0: it is one */
};
struct tensors {
	struct tensor list[MAX_TENSORS];
	uint32_t n;
};

static uint64_t tensor_bytes(const struct tensor *t)
{
	return (t->stack ? t->stack : 1) * t->rows * (t->cols / dtype_table[t->type].block) *
	       dtype_table[t->type].bytes;
}

/* ---- which tensors */

__attribute__((format(printf, 6, 7))) static void add(struct tensors *l, enum dtype type, enum content content,
                                                      uint64_t rows, uint64_t cols, const char *format, ...)
{
	struct tensor *t = &l->list[l->n++];
	va_list args;
	*t = (struct tensor){ .type = type, .content = content, .rows = rows, .cols = cols };
	va_start(args, format);
	vsnprintf(t->name, sizeof t->name, format, args);
	va_end(args);
}

/* So many matrices in one tensor. A row of a size that the type does not have is of Q8_0. */
static void add_stack(struct tensors *l, enum dtype type, uint64_t count, uint64_t rows, uint64_t cols,
                      const char *name, uint32_t i)
{
	add(l, cols % dtype_table[type].block ? DTYPE_Q8_0 : type, RANDOM, rows, cols, "blk.%u.%s.weight", i, name);
	l->list[l->n - 1].stack = count;
}

static void add_latent_layer(struct tensors *l, const struct shape *s, enum dtype type, uint32_t i)
{
	const uint32_t rest = s->head_dim - s->rotates;

	add(l, type, RANDOM, s->query_rank, s->hidden, "blk.%u.attn_q_a.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->query_rank, "blk.%u.attn_q_a_norm.weight", i);
	add(l, type, RANDOM, (uint64_t)s->heads * s->head_dim, s->query_rank, "blk.%u.attn_q_b.weight", i);
	add(l, type, RANDOM, s->rank + s->rotates, s->hidden, "blk.%u.attn_kv_a_mqa.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->rank, "blk.%u.attn_kv_a_norm.weight", i);
	add_stack(l, type, s->heads, s->rank, rest, "attn_k_b", i);
	add_stack(l, type, s->heads, s->value, s->rank, "attn_v_b", i);
	add(l, type, RANDOM, s->hidden, (uint64_t)s->heads * s->value, "blk.%u.attn_output.weight", i);
}

static void add_experts(struct tensors *l, const struct shape *s, enum dtype type, enum dtype better, uint32_t i)
{
	const uint64_t shared = (uint64_t)s->shared * s->expert_ffn;

	add(l, DTYPE_F32, RANDOM, s->experts, s->hidden, "blk.%u.ffn_gate_inp.weight", i);
	if (strcmp(s->arch, "deepseek2") == 0)
		add(l, DTYPE_F32, ONES, 1, s->experts, "blk.%u.exp_probs_b.bias", i);
	add_stack(l, type, s->experts, s->expert_ffn, s->hidden, "ffn_gate_exps", i);
	add_stack(l, type, s->experts, s->expert_ffn, s->hidden, "ffn_up_exps", i);
	add_stack(l, better, s->experts, s->hidden, s->expert_ffn, "ffn_down_exps", i);
	if (!shared)
		return;
	if (strcmp(s->arch, "qwen35moe") == 0)
		add(l, DTYPE_F32, RANDOM, 1, s->hidden, "blk.%u.ffn_gate_inp_shexp.weight", i);
	add(l, type, RANDOM, shared, s->hidden, "blk.%u.ffn_gate_shexp.weight", i);
	add(l, type, RANDOM, shared, s->hidden, "blk.%u.ffn_up_shexp.weight", i);
	add(l, better, RANDOM, s->hidden, shared, "blk.%u.ffn_down_shexp.weight", i);
}

/* What mixes the tokens of a layer that keeps a state. */
static void add_state_layer(struct tensors *l, const struct shape *s, enum dtype type, uint32_t i)
{
	uint64_t values = (uint64_t)s->value_heads * s->value_dim,
		 channels = values + 2 * (uint64_t)s->key_heads * s->key_dim;

	if (!s->value_heads) {
		add(l, type, RANDOM, 3 * (uint64_t)s->hidden, s->hidden, "blk.%u.shortconv.in_proj.weight", i);
		add(l, DTYPE_F32, ONES, s->hidden, s->taps, "blk.%u.shortconv.conv.weight", i);
		add(l, type, RANDOM, s->hidden, s->hidden, "blk.%u.shortconv.out_proj.weight", i);
		return;
	}
	add(l, type, RANDOM, channels, s->hidden, "blk.%u.attn_qkv.weight", i);
	add(l, type, RANDOM, values, s->hidden, "blk.%u.attn_gate.weight", i);
	add(l, type, RANDOM, s->value_heads, s->hidden, "blk.%u.ssm_beta.weight", i);
	add(l, type, RANDOM, s->value_heads, s->hidden, "blk.%u.ssm_alpha.weight", i);
	add(l, DTYPE_F32, ONES, channels, s->taps, "blk.%u.ssm_conv1d.weight", i);
	add(l, DTYPE_F32, MINUS_ONES, 1, s->value_heads, "blk.%u.ssm_a", i);
	add(l, DTYPE_F32, ONES, 1, s->value_heads, "blk.%u.ssm_dt.bias", i);
	add(l, DTYPE_F32, ONES, 1, s->value_dim, "blk.%u.ssm_norm.weight", i);
	add(l, type, RANDOM, s->hidden, values, "blk.%u.ssm_out.weight", i);
}

static void add_attention(struct tensors *l, const struct shape *s, enum dtype type, enum dtype better, uint32_t i)
{
	uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim;
	bool gated = strncmp(s->arch, "qwen35", 6) == 0;

	add(l, type, RANDOM, gated ? 2 * q : q, s->hidden, "blk.%u.attn_q.weight", i);
	add(l, type, RANDOM, kv, s->hidden, "blk.%u.attn_k.weight", i);
	add(l, better, RANDOM, kv, s->hidden, "blk.%u.attn_v.weight", i);
	add(l, type, RANDOM, s->hidden, q, "blk.%u.attn_output.weight", i);
	if (strcmp(s->arch, "qwen2") == 0) {
		add(l, DTYPE_F32, ONES, 1, q, "blk.%u.attn_q.bias", i);
		add(l, DTYPE_F32, ONES, 1, kv, "blk.%u.attn_k.bias", i);
		add(l, DTYPE_F32, ONES, 1, kv, "blk.%u.attn_v.bias", i);
	}
	if (strcmp(s->arch, "qwen3") == 0 || strcmp(s->arch, "qwen3moe") == 0 || s->taps) {
		add(l, DTYPE_F32, ONES, 1, s->head_dim, "blk.%u.attn_q_norm.weight", i);
		add(l, DTYPE_F32, ONES, 1, s->head_dim, "blk.%u.attn_k_norm.weight", i);
	}
}

static void add_layer(struct tensors *l, const struct shape *s, const struct mixture *m, uint32_t i)
{
	enum dtype type = m->matrices, better = mixture_layer(m, i, s->layers);

	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.attn_norm.weight", i);
	if (s->rank)
		add_latent_layer(l, s, type, i);
	else if (shape_attends(s, i))
		add_attention(l, s, type, better, i);
	else
		add_state_layer(l, s, type, i);
	add(l, DTYPE_F32, ONES, 1, s->hidden,
	    strncmp(s->arch, "qwen35", 6) == 0 ? "blk.%u.post_attention_norm.weight" : "blk.%u.ffn_norm.weight", i);
	if (s->experts && i >= s->dense) {
		add_experts(l, s, type, better, i);
		return;
	}
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_gate.weight", i);
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_up.weight", i);
	add(l, better, RANDOM, s->hidden, s->ffn, "blk.%u.ffn_down.weight", i);
}

static void list_tensors(struct tensors *l, const struct shape *s, const struct mixture *m)
{
	l->n = 0;
	add(l, s->tied ? m->output : m->matrices, RANDOM, s->vocab, s->hidden, "token_embd.weight");
	if (!s->tied)
		add(l, m->output, RANDOM, s->vocab, s->hidden, "output.weight");
	add(l, DTYPE_F32, ONES, 1, s->hidden,
	    strcmp(s->arch, "lfm2") == 0 ? "token_embd_norm.weight" : "output_norm.weight");
	if (s->rope_factor > 0)
		add(l, DTYPE_F32, ROPE_FACTORS, 1, s->head_dim / 2, "rope_freqs.weight");
	for (uint32_t i = 0; i < s->layers; i++)
		add_layer(l, s, m, i);
}

uint64_t synth_bytes(const struct shape *s, const struct mixture *m)
{
	struct tensors *l = malloc(sizeof *l);
	uint64_t sum = 0;
	if (!l)
		return 0;
	list_tensors(l, s, m);
	for (uint32_t i = 0; i < l->n; i++)
		sum += tensor_bytes(&l->list[i]);
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
static void put_kv_heads(struct out *o, const struct shape *s)
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

static void put_delta_rule(struct out *o, const struct shape *s)
{
	pair_u32(o, ".ssm.conv_kernel", s->taps);
	pair_u32(o, ".ssm.state_size", s->key_dim);
	pair_u32(o, ".ssm.group_count", s->key_heads);
	pair_u32(o, ".ssm.time_step_rank", s->value_heads);
	pair_u32(o, ".ssm.inner_size", s->value_heads * s->value_dim);
	pair_u32(o, ".full_attention_interval", 4);
}

static void put_experts(struct out *o, const struct shape *s)
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

static void put_latent(struct out *o, const struct shape *s)
{
	pair_u32(o, ".attention.kv_lora_rank", s->rank);
	pair_u32(o, ".attention.q_lora_rank", s->query_rank);
	pair_u32(o, ".attention.key_length_mla", s->head_dim);
	pair_u32(o, ".attention.value_length_mla", s->value);
}

static void put_sizes(struct out *o, const struct shape *s, const struct mixture *m)
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
	pair_u32(o, ".attention.key_length", s->rank ? s->rank + s->rotates : s->head_dim);
	pair_u32(o, ".attention.value_length", s->rank ? s->rank : s->head_dim);
	pair_f32(o, ".attention.layer_norm_rms_epsilon", s->eps);
	pair_u32(o, ".rope.dimension_count", s->rotates ? s->rotates : s->head_dim);
	pair_f32(o, ".rope.freq_base", s->theta);
	if (s->value_heads)
		put_delta_rule(o, s);
	if (s->experts)
		put_experts(o, s);
	if (s->rank)
		put_latent(o, s);
	if (s->window)
		pair_u32(o, ".attention.sliding_window", s->window);
}

static void put_tokenizer(struct out *o, const struct shape *s)
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
		const struct tensor *t = &l->list[i];
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
static void put_rope_factors(struct out *o, const struct shape *s)
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

static void put_same(struct out *o, uint64_t n, float one)
{
	for (uint64_t i = 0; i < n; i++)
		put(o, &one, sizeof one);
}

/* From the pool of blocks, which starts elsewhere for each tensor, so that no two layers are the same. */
static void put_random(struct out *o, const struct tensor *t, uint32_t number, uint8_t *const pool[])
{
	uint64_t size = dtype_table[t->type].bytes, whole = CHUNK / size * size,
		 at = (uint64_t)number * 7919 % (CHUNK / size) * size, left = tensor_bytes(t);
	while (left) {
		uint64_t n = left < whole - at ? left : whole - at;
		put(o, pool[t->type] + at, n);
		left -= n;
		at = 0;
	}
}

static bool make_pools(uint8_t *pool[], const struct tensors *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		enum dtype type = l->list[i].type;
		if (l->list[i].content != RANDOM || pool[type])
			continue;
		if (!(pool[type] = malloc(CHUNK)))
			return false;
		synth_fill(type, pool[type], CHUNK / dtype_table[type].bytes);
	}
	return true;
}

static void put_weights(struct out *o, const struct tensors *l, const struct shape *s, uint8_t *const pool[])
{
	static const char zeros[ALIGN];
	uint64_t done = 0, total = 0;

	for (uint32_t i = 0; i < l->n; i++)
		total += tensor_bytes(&l->list[i]);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct tensor *t = &l->list[i];
		if (o->progress)
			o->progress(o->user, done, total);
		done += tensor_bytes(t);
		if (t->content == RANDOM)
			put_random(o, t, i, pool);
		else if (t->content != ROPE_FACTORS)
			put_same(o, t->rows * t->cols, t->content == ONES ? 1.0f : -1.0f);
		else
			put_rope_factors(o, s);
		put(o, zeros, gguf_put_padding(&o->gguf, tensor_bytes(t)));
	}
}

/* Everything before the weights. The tokenizer may be left out: it is most of the header, and only text needs it. */
static void put_header(struct out *o, const struct tensors *l, const struct shape *s, const struct mixture *m,
                       bool tokenizer)
{
	gguf_put_begin(&o->gguf, o->gguf.f, ALIGN);
	put_sizes(o, s, m);
	if (tokenizer)
		put_tokenizer(o, s);
	put_tensor_list(o, l);
	gguf_put_end(&o->gguf);
}

static bool write_all(struct out *o, const struct tensors *l, const struct shape *s, const struct mixture *m)
{
	uint8_t *pool[DTYPE_COUNT] = { 0 };
	bool ok = make_pools(pool, l);

	if (ok) {
		put_header(o, l, s, m, true);
		put_weights(o, l, s, pool);
		ok = fflush(o->gguf.f) == 0 && !ferror(o->gguf.f);
	}
	for (int i = 0; i < DTYPE_COUNT; i++)
		free(pool[i]);
	return ok;
}

bool synth_write(int fd, const char *label, const struct shape *s, const struct mixture *m,
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
	list_tensors(l, s, m);
	errno = 0;
	bool ok = write_all(&o, l, s, m);
	if (!ok)
		error_set(err, ERROR_IO, "%s: could not be written: %s", label, strerror(errno ? errno : ENOMEM));
	fclose(o.gguf.f);
	free(l);
	return ok;
}

uint8_t *synth_header(size_t *n, const struct shape *s, const struct mixture *m, struct error *err)
{
	struct tensors *l = malloc(sizeof *l);
	struct memfile f = { 0 };
	struct out o = { .gguf.f = l && memfile_open(&f) ? f.out : NULL, .arch = s->arch };

	if (o.gguf.f) {
		list_tensors(l, s, m);
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
