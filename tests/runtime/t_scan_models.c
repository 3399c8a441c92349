/* tests/runtime/t_scan_models.c - models with the selective scan in forms of which no reference lies there, made from
 * those that do: Granite's as the GGUF file that a converter writes and without experts, and Nemotron's with its
 * feed-forward layers cut into experts, which then must compute what it computes undivided. */
#include <ftw.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "runtime/jitrun.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/st_writer.h"
#include "tests/support/shared.h"

enum { TOKENS = 37 };

static char folder[200];

/* ---- a safetensors file, read */

struct original {
	uint8_t *file;
	const uint8_t *data;
	json_t *header, *config;
};

struct piece {
	uint64_t dim[3], rank;
	const uint8_t *p;
	size_t bytes;
	enum dtype type;
};

static bool open_original(struct original *o, const char *name)
{
	char path[1024], relative[100];
	uint64_t length;
	size_t n;

	snprintf(relative, sizeof relative, "golden/%s/config.json", name);
	if (!shared_path(path, relative))
		return false;
	char *text = (char *)file_bytes(path, &n);
	text[n] = 0;
	for (char *p; (p = strstr(text, "Infinity"));) /* which is no JSON */
		memcpy(p, "100000.0", 8);
	o->config = json_loads(text, 0, NULL);
	free(text);
	snprintf(relative, sizeof relative, "golden/%s/model.safetensors", name);
	o->file = file_bytes(shared_path(path, relative), &n);
	memcpy(&length, o->file, 8);
	o->header = json_loadb((char *)o->file + 8, length, 0, NULL);
	o->data = o->file + 8 + length;
	assert_true(o->config && o->header);
	return true;
}

static void close_original(struct original *o)
{
	json_decref(o->config);
	json_decref(o->header);
	free(o->file);
}

static struct piece piece_of(json_t *entry, const uint8_t *data)
{
	json_t *at = json_object_get(entry, "data_offsets"), *shape = json_object_get(entry, "shape");
	struct piece t = { .dim = { 1, 1, 1 }, .rank = json_array_size(shape), .type = DTYPE_BF16 };
	uint64_t from = (uint64_t)json_integer_value(json_array_get(at, 0));

	for (size_t i = 0; i < t.rank; i++)
		t.dim[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
	if (strcmp(json_string_value(json_object_get(entry, "dtype")), "F32") == 0)
		t.type = DTYPE_F32;
	t.p = data + from;
	t.bytes = (size_t)json_integer_value(json_array_get(at, 1)) - from;
	return t;
}

/* ---- what is made of it */

static char *path_of(char out[300], const char *name)
{
	snprintf(out, 300, "%s/%s", folder, name);
	return out;
}

static void write_file(const char *name, const void *p, size_t n)
{
	char path[300];
	FILE *f = fopen(path_of(path, name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* The directory of a model: its files. */
static void write_model(const char *name, struct st_writer *w, json_t *config)
{
	char path[300], file[260];
	size_t n;
	uint8_t *weights = st_writer_finish(w, 8, &n);
	char *text = json_dumps(config, 0);

	mkdir(path_of(path, name), 0777);
	snprintf(file, sizeof file, "%s/model.safetensors", name);
	write_file(file, weights, n);
	snprintf(file, sizeof file, "%s/config.json", name);
	write_file(file, text, strlen(text));
	free(weights);
	free(text);
}

static void put(struct st_writer *w, const char *name, const struct piece *t)
{
	st_write_tensor(w, name, t->type, (unsigned)t->rank, t->dim, t->p, t->bytes);
}

/* Rows and columns from `first` on of a matrix of BF16. */
static void put_part(struct st_writer *w, const char *name, const struct piece *t, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols)
{
	uint16_t *part = malloc(rows * cols * 2);
	const uint64_t shape[] = { rows, cols };

	for (uint64_t r = 0; r < rows; r++)
		memcpy(part + r * cols, t->p + ((row + r) * t->dim[1] + col) * 2, cols * 2);
	st_write_tensor(w, name, DTYPE_BF16, 2, shape, part, rows * cols * 2);
	free(part);
}

/* ---- logits */

struct run {
	const char *device;
	int batch;
};

static float *logits_of(const char *path, struct run run, size_t *n)
{
	jit_error err = { 0 };
	int32_t ids[TOKENS];
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = run.device, .cache_dir = ""), &err);
	jit_model_info info = JIT_MODEL_INFO();

	if (!m)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	*n = (size_t)info.vocab;
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i * 31 + 5) % info.vocab;
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 64, .kv = JIT_KV_F32, .batch = run.batch, .threads = 2), &err);
	if (!s || jit_session_feed(s, ids, TOKENS, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
	float *out = malloc(*n * sizeof *out);
	memcpy(out, jit_session_logits(s, &err), *n * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

/* tolerance: of the largest; 0: the same bits. */
static void compare(const char *a, struct run run_a, const char *b, struct run run_b, double tolerance)
{
	size_t n, m;
	float *x = logits_of(a, run_a, &n), *y = logits_of(b, run_b, &m);
	double worst = 0, largest = 0;

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
		largest = fmax(largest, fabs((double)x[i]));
	}
	if (!(worst <= tolerance * largest) || (tolerance == 0 && memcmp(x, y, n * sizeof *x) != 0))
		fail_msg("%s on %s and %s on %s differ by %g of %g", a, run_a.device, b, run_b.device, worst, largest);
	assert_true(largest > 0);
	free(x);
	free(y);
}

/* ---- Nemotron: relu2 makes each number inside a feed-forward layer by itself, so that the layer is the sum of its
 * parts: a third is the expert of all tokens, and two are experts that all tokens go to, by a half each, times 2 */

static void put_cut(struct st_writer *w, const char *name, const struct piece *t)
{
	const bool up = strstr(name, "up_proj");
	char base[200], full[260];

	snprintf(base, sizeof base, "%.*s", (int)(strstr(name, up ? "up_proj" : "down_proj") - name), name);
	for (int i = 0; i < 3; i++) {
		snprintf(full, sizeof full, i ? "%sexperts.%d.%s" : "%sshared_experts.%.0d%s", base, i ? i - 1 : 0,
		         up ? "up_proj.weight" : "down_proj.weight");
		put_part(w, full, t, up ? 32 * (uint64_t)i : 0, up ? 32 : t->dim[0], up ? 0 : 32 * (uint64_t)i,
		         up ? t->dim[1] : 32);
	}
	if (!up)
		return;
	static const float none[2];
	snprintf(full, sizeof full, "%sgate.weight", base);
	st_write_tensor(w, full, DTYPE_BF16, 2, (const uint64_t[]){ 2, t->dim[1] }, NULL, 2 * t->dim[1] * 2);
	snprintf(full, sizeof full, "%sgate.e_score_correction_bias", base);
	st_write_tensor(w, full, DTYPE_F32, 1, (const uint64_t[]){ 2 }, none, sizeof none);
}

static void test_nemotron_experts(void **state)
{
	static const struct {
		const char *name;
		int value;
	} fields[] = { { "n_routed_experts", 2 },      { "num_experts_per_tok", 2 },
		       { "n_shared_experts", 1 },      { "moe_intermediate_size", 32 },
		       { "routed_scaling_factor", 2 }, { "moe_shared_expert_intermediate_size", 32 } };
	static const struct run runs[] = { { "cpu", 1 }, { "cpu", 7 }, { "ref", 16 }, { "sim:gfx1100", 16 } };
	struct original o;
	struct st_writer w;
	char path[1024], made[300];
	const char *name;
	json_t *entry;
	(void)state;

	if (!open_original(&o, "nemotronh-a"))
		skip();
	assert_string_equal(json_string_value(json_object_get(o.config, "hybrid_override_pattern")), "M-M*-");
	st_writer_start(&w);
	json_object_foreach(o.header, name, entry)
	{
		struct piece t = strcmp(name, "__metadata__") ? piece_of(entry, o.data) : (struct piece){ 0 };
		if (strstr(name, "up_proj") || strstr(name, "down_proj"))
			put_cut(&w, name, &t);
		else if (t.p)
			put(&w, name, &t);
	}
	json_object_set_new(o.config, "hybrid_override_pattern", json_string("MEM*E"));
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_object_set_new(o.config, fields[i].name, json_integer(fields[i].value));
	write_model("nemotron", &w, o.config);
	close_original(&o);
	path_of(made, "nemotron");
	compare(shared_path(path, "golden/nemotronh-a"), (struct run){ "cpu", 64 }, made, (struct run){ "cpu", 64 },
	        1e-5);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		if (!test_quick() || i < 2)
			compare(made, (struct run){ "cpu", 64 }, made, runs[i], 0);
}

/* ---- Granite without experts, and with ones that say nothing: the same */

static void test_granite_without_experts(void **state)
{
	struct original o;
	struct st_writer with, without;
	char a[300], b[300];
	const char *name;
	json_t *entry;
	(void)state;

	if (!open_original(&o, "granitehybrid-a"))
		skip();
	st_writer_start(&with);
	st_writer_start(&without);
	json_object_foreach(o.header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct piece t = piece_of(entry, o.data);
		if (strstr(name, "block_sparse_moe.output_linear"))
			t.p = NULL;
		put(&with, name, &t);
		if (!strstr(name, "block_sparse_moe"))
			put(&without, name, &t);
	}
	write_model("with", &with, o.config);
	json_object_set_new(o.config, "num_local_experts", json_integer(0));
	write_model("without", &without, o.config);
	close_original(&o);
	compare(path_of(a, "with"), (struct run){ "cpu", 16 }, path_of(b, "without"), (struct run){ "cpu", 16 }, 0);
}

/* ---- Granite as a GGUF file */

static float bf16_at(const struct piece *t, uint64_t i)
{
	uint16_t half;
	float f;

	memcpy(&half, t->p + 2 * i, 2);
	uint32_t bits = (uint32_t)half << 16;
	memcpy(&f, &bits, 4);
	return f;
}

/* Vectors and small matrices are F32 there. */
static void put_floats(struct gguf_writer *w, const char *name, const struct piece *t, uint64_t cols, bool minus_exp)
{
	uint64_t n = t->bytes / 2;
	float *x = malloc(n * sizeof *x);

	for (uint64_t i = 0; i < n; i++)
		x[i] = minus_exp ? (float)-exp((double)bf16_at(t, i)) : bf16_at(t, i);
	gguf_write_tensor(w, name, DTYPE_F32, cols == n ? 1 : 2, (const uint64_t[]){ cols, n / cols }, x, n * 4);
	free(x);
}

/* Rows of queries and keys in pairs that rotate, though none does here. */
static void put_paired(struct gguf_writer *w, const char *name, const struct piece *t, uint64_t head)
{
	uint8_t *rows = malloc(t->bytes);
	size_t row = t->dim[1] * 2;

	for (uint64_t r = 0; r < t->dim[0]; r++)
		memcpy(rows + r * row, t->p + (r - r % head + r % 2 * (head / 2) + r % head / 2) * row, row);
	gguf_write_tensor(w, name, DTYPE_BF16, 2, (const uint64_t[]){ t->dim[1], t->dim[0] }, rows, t->bytes);
	free(rows);
}

/* One half of the rows of each of `count` matrices. */
static void put_half(struct gguf_writer *w, const char *name, const struct piece *t, uint64_t count, int half)
{
	uint64_t rows = t->dim[t->rank - 2] / 2, cols = t->dim[t->rank - 1];
	uint8_t *p = malloc(t->bytes / 2);
	size_t part = rows * cols * 2;

	for (uint64_t e = 0; e < count; e++)
		memcpy(p + e * part, t->p + (2 * e + (uint64_t)half) * part, part);
	gguf_write_tensor(w, name, DTYPE_BF16, (unsigned)t->rank, (const uint64_t[]){ cols, rows, count }, p,
	                  t->bytes / 2);
	free(p);
}

static void put_granite(struct gguf_writer *w, const char *name, const struct piece *t)
{
	static const struct {
		const char *hf, *gguf;
		char how; /* w: as it is, v: a vector, c: rows of one, a: such of -exp, p: paired, r: floats, h: in
		             halves, then its gguf is what kind of experts */
	} names[] = { { "input_layernorm.weight", "attn_norm.weight", 'v' },
		      { "post_attention_layernorm.weight", "ffn_norm.weight", 'v' },
		      { "mamba.in_proj.weight", "ssm_in.weight", 'w' },
		      { "mamba.out_proj.weight", "ssm_out.weight", 'w' },
		      { "mamba.conv1d.weight", "ssm_conv1d.weight", 'r' },
		      { "mamba.conv1d.bias", "ssm_conv1d.bias", 'v' },
		      { "mamba.dt_bias", "ssm_dt.bias", 'v' },
		      { "mamba.A_log", "ssm_a", 'a' },
		      { "mamba.D", "ssm_d", 'c' },
		      { "mamba.norm.weight", "ssm_norm.weight", 'v' },
		      { "self_attn.q_proj.weight", "attn_q.weight", 'p' },
		      { "self_attn.k_proj.weight", "attn_k.weight", 'p' },
		      { "self_attn.v_proj.weight", "attn_v.weight", 'w' },
		      { "self_attn.o_proj.weight", "attn_output.weight", 'w' },
		      { "block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight", 'r' },
		      { "block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", 'w' },
		      { "block_sparse_moe.input_linear.weight", "exps", 'h' },
		      { "shared_mlp.input_linear.weight", "shexp", 'h' },
		      { "shared_mlp.output_linear.weight", "ffn_down_shexp.weight", 'w' } };
	unsigned layer;
	int at = 0;
	char full[100], part[60];

	if (sscanf(name, "model.layers.%u.%n", &layer, &at) != 1 || !at)
		return;
	size_t k = 0;
	while (k < sizeof names / sizeof *names && strcmp(names[k].hf, name + at) != 0)
		k++;
	if (k == sizeof names / sizeof *names)
		fail_msg("%s is not expected", name);
	const char how = names[k].how;
	for (int half = 0; half < (how == 'h' ? 2 : 1); half++) {
		if (how == 'h')
			snprintf(part, sizeof part, "ffn_%s_%s.weight", half ? "up" : "gate", names[k].gguf);
		else
			snprintf(part, sizeof part, "%s", names[k].gguf);
		snprintf(full, sizeof full, "blk.%u.%s", layer, part);
		if (how == 'w')
			gguf_write_tensor(w, full, DTYPE_BF16, (unsigned)t->rank,
			                  (const uint64_t[]){ t->dim[t->rank - 1], t->dim[t->rank - 2], t->dim[0] },
			                  t->p, t->bytes);
		else if (how == 'p')
			put_paired(w, full, t, 16);
		else if (how == 'h')
			put_half(w, full, t, t->rank == 3 ? t->dim[0] : 1, half);
		else
			put_floats(w, full, t,
			           how == 'v'   ? t->bytes / 2
			           : how == 'r' ? t->dim[t->rank - 1]
			                        : 1,
			           how == 'a');
	}
}

static void put_granite_keys(struct gguf_writer *w)
{
	static const struct {
		const char *key;
		uint32_t value;
	} numbers[] = { { "block_count", 3 },          { "context_length", 1 << 20 },
		        { "embedding_length", 64 },    { "feed_forward_length", 32 },
		        { "attention.head_count", 4 }, { "rope.dimension_count", 16 },
		        { "vocab_size", 315 },         { "expert_count", 4 },
		        { "expert_used_count", 2 },    { "expert_shared_feed_forward_length", 32 },
		        { "ssm.conv_kernel", 4 },      { "ssm.state_size", 16 },
		        { "ssm.group_count", 1 },      { "ssm.inner_size", 128 },
		        { "ssm.time_step_rank", 4 } };
	static const struct {
		const char *key;
		float value;
	} reals[] = { { "attention.layer_norm_rms_epsilon", 1e-5f },
		      { "rope.freq_base", 10000 },
		      { "attention.scale", 0.4f },
		      { "embedding_scale", 12 },
		      { "residual_scale", 0.22f },
		      { "logit_scale", 2.5f } };
	static const int32_t kv[] = { 0, 2, 0 };
	char key[80];

	gguf_write_string(w, "general.architecture", "granitehybrid");
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		snprintf(key, sizeof key, "granitehybrid.%s", numbers[i].key);
		gguf_write_u32(w, key, numbers[i].value);
	}
	for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
		snprintf(key, sizeof key, "granitehybrid.%s", reals[i].key);
		gguf_write_f32(w, key, reals[i].value);
	}
	gguf_write_array(w, "granitehybrid.attention.head_count_kv", GGUF_I32, 3, kv, sizeof kv);
	gguf_write_bool(w, "granitehybrid.rope.scaling.finetuned", false);
}

static void test_granite_gguf(void **state)
{
	struct original o;
	struct gguf_writer w;
	char path[1024], made[300];
	const char *name;
	json_t *entry;
	size_t n;
	(void)state;

	if (!open_original(&o, "granitehybrid-a"))
		skip();
	gguf_writer_start(&w, 3, 32);
	put_granite_keys(&w);
	json_object_foreach(o.header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct piece t = piece_of(entry, o.data);
		if (strcmp(name, "model.embed_tokens.weight") == 0)
			gguf_write_tensor(&w, "token_embd.weight", DTYPE_BF16, 2,
			                  (const uint64_t[]){ t.dim[1], t.dim[0] }, t.p, t.bytes);
		else if (strcmp(name, "model.norm.weight") == 0)
			put_floats(&w, "output_norm.weight", &t, t.dim[0], false);
		else
			put_granite(&w, name, &t);
	}
	close_original(&o);
	uint8_t *file = gguf_writer_finish(&w, &n);
	gguf_writer_free(&w);
	write_file("granite.gguf", file, n);
	free(file);
	compare(shared_path(path, "golden/granitehybrid-a"), (struct run){ "cpu", 16 }, path_of(made, "granite.gguf"),
	        (struct run){ "cpu", 16 }, 0);
}

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof folder, "%s/jitrun-scan-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }
static int remove_folder(void **state) { return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nemotron_experts),
		                            cmocka_unit_test(test_granite_without_experts),
		                            cmocka_unit_test(test_granite_gguf) };
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
