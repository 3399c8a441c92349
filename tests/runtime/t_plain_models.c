/* tests/runtime/t_plain_models.c - whole models beside plain loops in double precision, with configurations of which no
 * reference lies there: OLMo 2 behind a long text, with scaled rotation and beside a window that it does not have;
 * Granite whose scores have a scale of 1, of 0, or one that the file leaves to the class. And tensors of layers that
 * predict further tokens, which Qwen 3 Next's files have and no field mentions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

/* What the loops compute. */
struct plain {
	uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
	bool behind; /* norms stand behind attention and the feed-forward layer, and norm rows of Q and K */
	double eps, theta, slower; /* slower: linear scaling */
	double embed, residual, scores, logits;
	const struct original *o;
};

/* A tensor as doubles; free() it. */
static double *tensor(const struct plain *p, const char *format, uint32_t layer)
{
	char name[120];

	snprintf(name, sizeof name, format, layer);
	json_t *entry = json_object_get(p->o->header, name);
	if (!entry)
		fail_msg("no tensor %s", name);
	const struct slice t = original_slice(entry, p->o->data);
	assert_int_equal(t.type, DTYPE_BF16);
	double *out = malloc(t.bytes / 2 * sizeof *out);
	for (size_t i = 0; i < t.bytes / 2; i++) {
		uint32_t bits = (uint32_t)t.p[2 * i] << 16 | (uint32_t)t.p[2 * i + 1] << 24;
		float one;
		memcpy(&one, &bits, sizeof one);
		out[i] = (double)one;
	}
	return out;
}

/* n rows of `in` numbers through a matrix of out rows. */
static double *product(const struct plain *p, const char *format, uint32_t layer, const double *x, uint32_t n,
                       uint32_t in, uint32_t out)
{
	double *w = tensor(p, format, layer), *y = calloc((size_t)n * out, sizeof *y);

	for (size_t t = 0; t < n; t++)
		for (size_t r = 0; r < out; r++)
			for (size_t i = 0; i < in; i++)
				y[t * out + r] += w[r * in + i] * x[t * in + i];
	free(w);
	return y;
}

/* Rows normed, into y, which may be x. */
static void norm(const struct plain *p, const char *format, uint32_t layer, const double *x, double *y, uint32_t n,
                 uint32_t width)
{
	double *w = tensor(p, format, layer);

	for (size_t t = 0; t < n; t++) {
		double sum = 0;
		for (size_t i = 0; i < width; i++)
			sum += x[t * width + i] * x[t * width + i];
		const double by = 1 / sqrt(sum / width + p->eps);
		for (size_t i = 0; i < width; i++)
			y[t * width + i] = x[t * width + i] * by * w[i];
	}
	free(w);
}

static void rotate(const struct plain *p, double *x, uint32_t n, uint32_t heads)
{
	const uint32_t half = p->head_dim / 2;

	for (uint32_t t = 0; t < n; t++)
		for (uint32_t h = 0; h < heads; h++)
			for (uint32_t i = 0; i < half; i++) {
				double *a = &x[((size_t)t * heads + h) * p->head_dim + i], first = a[0],
				       second = a[half], angle = t / (p->slower * pow(p->theta, 2.0 * i / p->head_dim));
				a[0] = first * cos(angle) - second * sin(angle);
				a[half] = second * cos(angle) + first * sin(angle);
			}
}

/* What one head of a token attends to. */
static void attend(const struct plain *p, const double *q, const double *k, const double *v, uint32_t token,
                   uint32_t head, double *share, double *out)
{
	const uint32_t d = p->head_dim, of = head / (p->heads / p->kv_heads);
	double max = -INFINITY, sum = 0;

	for (uint32_t s = 0; s <= token; s++) {
		const double *key = &k[((size_t)s * p->kv_heads + of) * d];
		double score = 0;
		for (uint32_t i = 0; i < d; i++)
			score += q[i] * key[i];
		share[s] = score * p->scores;
		max = fmax(max, share[s]);
	}
	for (uint32_t s = 0; s <= token; s++)
		sum += share[s] = exp(share[s] - max);
	memset(out, 0, d * sizeof *out);
	for (uint32_t s = 0; s <= token; s++)
		for (uint32_t i = 0; i < d; i++)
			out[i] += share[s] / sum * v[((size_t)s * p->kv_heads + of) * d + i];
}

/* first: the first token of which the result is wanted. */
static double *attention(const struct plain *p, uint32_t layer, const double *x, uint32_t n, uint32_t first)
{
	const uint32_t width = p->heads * p->head_dim, kv = p->kv_heads * p->head_dim;
	double *q = product(p, "model.layers.%u.self_attn.q_proj.weight", layer, x, n, p->hidden, width),
	       *k = product(p, "model.layers.%u.self_attn.k_proj.weight", layer, x, n, p->hidden, kv),
	       *v = product(p, "model.layers.%u.self_attn.v_proj.weight", layer, x, n, p->hidden, kv),
	       *out = calloc((size_t)n * width, sizeof *out), *share = malloc(n * sizeof *share);

	if (p->behind) {
		norm(p, "model.layers.%u.self_attn.q_norm.weight", layer, q, q, n, width);
		norm(p, "model.layers.%u.self_attn.k_norm.weight", layer, k, k, n, kv);
	}
	rotate(p, q, n, p->heads);
	rotate(p, k, n, p->kv_heads);
	for (uint32_t t = first; t < n; t++)
		for (uint32_t h = 0; h < p->heads; h++) {
			const size_t at = (size_t)t * width + (size_t)h * p->head_dim;
			attend(p, &q[at], k, v, t, h, share, &out[at]);
		}
	double *sum = product(p, "model.layers.%u.self_attn.o_proj.weight", layer, out, n, width, p->hidden);
	free(q);
	free(k);
	free(v);
	free(out);
	free(share);
	return sum;
}

static double *feed_forward(const struct plain *p, uint32_t layer, const double *x, uint32_t n)
{
	double *gate = product(p, "model.layers.%u.mlp.gate_proj.weight", layer, x, n, p->hidden, p->ffn),
	       *up = product(p, "model.layers.%u.mlp.up_proj.weight", layer, x, n, p->hidden, p->ffn);

	for (size_t i = 0; i < (size_t)n * p->ffn; i++)
		gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
	double *sum = product(p, "model.layers.%u.mlp.down_proj.weight", layer, gate, n, p->ffn, p->hidden);
	free(gate);
	free(up);
	return sum;
}

/* The stream plus what one half of a layer adds. */
static void half_layer(const struct plain *p, uint32_t layer, bool attends, double *x, uint32_t n, uint32_t first)
{
	const char *name = attends && !p->behind   ? "model.layers.%u.input_layernorm.weight"
	                   : attends || !p->behind ? "model.layers.%u.post_attention_layernorm.weight"
	                                           : "model.layers.%u.post_feedforward_layernorm.weight";
	const size_t numbers = (size_t)n * p->hidden;
	double *in = malloc(numbers * sizeof *in);

	memcpy(in, x, numbers * sizeof *in);
	if (!p->behind)
		norm(p, name, layer, x, in, n, p->hidden);
	double *add = attends ? attention(p, layer, in, n, first) : feed_forward(p, layer, in, n);
	if (p->behind)
		norm(p, name, layer, add, add, n, p->hidden);
	for (size_t i = 0; i < numbers; i++)
		x[i] += add[i] * p->residual;
	free(in);
	free(add);
}

/* The logits behind the last token. */
static double *forward(const struct plain *p, const int32_t *ids, uint32_t n)
{
	double *embed = tensor(p, "model.embed_tokens.weight", 0), *x = malloc((size_t)n * p->hidden * sizeof *x);

	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < p->hidden; i++)
			x[t * p->hidden + i] = embed[(size_t)ids[t] * p->hidden + i] * p->embed;
	for (uint32_t layer = 0; layer < p->layers; layer++) {
		half_layer(p, layer, true, x, n, layer + 1 < p->layers ? 0 : n - 1);
		half_layer(p, layer, false, x, n, 0);
	}
	double *last = &x[(size_t)(n - 1) * p->hidden];
	norm(p, "model.norm.weight", 0, last, last, 1, p->hidden);
	const bool own = json_object_get(p->o->header, "lm_head.weight");
	double *logits =
		product(p, own ? "lm_head.weight" : "model.embed_tokens.weight", 0, last, 1, p->hidden, p->vocab);
	for (size_t i = 0; i < p->vocab; i++)
		logits[i] *= p->logits;
	free(embed);
	free(x);
	return logits;
}

static uint32_t size_of(const struct original *o, const char *name)
{
	json_t *v = json_object_get(o->config, name);

	return v ? (uint32_t)json_integer_value(v) : 0;
}

static struct plain plain_of(const struct original *o)
{
	struct plain p = { size_of(o, "num_hidden_layers"),
		           size_of(o, "hidden_size"),
		           size_of(o, "intermediate_size"),
		           size_of(o, "num_attention_heads"),
		           size_of(o, "num_key_value_heads"),
		           size_of(o, "head_dim"),
		           size_of(o, "vocab_size"),
		           .residual = 1,
		           .embed = 1,
		           .logits = 1,
		           .slower = 1,
		           .o = o };

	p.head_dim = p.head_dim ? p.head_dim : p.hidden / p.heads;
	p.scores = 1 / sqrt(p.head_dim);
	p.eps = json_number_value(json_object_get(o->config, "rms_norm_eps"));
	p.theta = json_number_value(json_object_get(o->config, "rope_theta"));
	return p;
}

/* The original with these fields, null for those that are to be absent. */
static void check(const struct original *o, const char *name, const char *fields, const struct plain *p, uint32_t n)
{
	char path[300];
	jit_error err = { 0 };
	json_t *config = json_deep_copy(o->config), *own = json_loads(fields, 0, NULL), *v;
	const char *field, *tensor_name;
	json_t *entry;
	struct st_writer w;

	assert_non_null(own);
	json_object_foreach(own, field, v)
	{
		if (json_is_null(v))
			json_object_del(config, field);
		else
			json_object_set(config, field, v);
	}
	st_writer_start(&w);
	json_object_foreach(o->header, tensor_name, entry)
	{
		if (strcmp(tensor_name, "__metadata__") == 0)
			continue;
		const struct slice t = original_slice(entry, o->data);
		remade_put(&w, tensor_name, &t);
	}
	remade_model(name, &w, config);
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = "cpu", .cache_dir = "");
	jit_model *m = jit_model_open(remade_path(path, name), &mo, &err);
	if (!m)
		fail_msg("%s: %s", name, err.message);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = (int)n + 8, .kv = JIT_KV_F32);
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s: %s", name, err.message);
	int32_t *ids = malloc(n * sizeof *ids);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = (int32_t)(3 + (i * 2654435761u >> 8) % (p->vocab - 3));
	if (jit_session_feed(s, ids, n, &err) != JIT_OK)
		fail_msg("%s: %s", name, err.message);
	const float *got = jit_session_logits(s, &err);
	double *want = forward(p, ids, n), max = 0, worst = 0;
	for (uint32_t i = 0; i < p->vocab; i++) {
		max = fmax(max, fabs(want[i]));
		worst = fmax(worst, fabs(want[i] - (double)got[i]));
	}
	if (!(worst <= 2e-4 * max))
		fail_msg("%s: logits differ by %g of %g", name, worst, max);
	jit_session_close(s);
	jit_model_close(m);
	free(want);
	free(ids);
	json_decref(config);
	json_decref(own);
}

static void test_olmo2(void **state)
{
	struct original o;
	(void)state;

	if (!original_open(&o, "olmo2-a"))
		skip();
	struct plain p = plain_of(&o);
	p.behind = true;
	check(&o, "long", "{\"max_position_embeddings\": 8192}", &p, 5200);
	check(&o, "windowed", "{\"sliding_window\": 16}", &p, 300);
	p.slower = 4;
	check(&o, "slower", "{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}}", &p, 300);
	p.theta = 10000;
	check(&o, "usual", "{\"rope_theta\": null, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}}", &p,
	      300);
	p.slower = 1;
	p.eps = 1e-5;
	check(&o, "least", "{\"rope_theta\": null, \"rms_norm_eps\": null, \"rope_scaling\": null}", &p, 40);
	original_close(&o);
}

static void test_granite(void **state)
{
	struct original o;
	(void)state;

	if (!original_open(&o, "granite-a"))
		skip();
	struct plain p = plain_of(&o);
	const json_t *c = o.config;
	p.embed = json_number_value(json_object_get(c, "embedding_multiplier"));
	p.residual = json_number_value(json_object_get(c, "residual_multiplier"));
	p.logits = 1 / json_number_value(json_object_get(c, "logits_scaling"));
	p.scores = json_number_value(json_object_get(c, "attention_multiplier"));
	check(&o, "as-it-is", "{}", &p, 60);
	p.scores = 1;
	check(&o, "one", "{\"attention_multiplier\": 1.0}", &p, 60);
	check(&o, "absent", "{\"attention_multiplier\": null}", &p, 60);
	p.scores = 0;
	check(&o, "none", "{\"attention_multiplier\": 0}", &p, 60);
	p.scores = p.embed = p.residual = p.logits = 1;
	check(&o, "all-absent",
	      "{\"attention_multiplier\": null, \"embedding_multiplier\": null, \"residual_multiplier\": null, "
	      "\"logits_scaling\": null}",
	      &p, 60);
	original_close(&o);
}

static void test_predictors(void **state)
{
	struct original o;
	struct st_writer w;
	const char *name;
	json_t *entry;
	char path[300];
	jit_error err = { 0 };
	(void)state;

	if (!original_open(&o, "qwen3next-a"))
		skip();
	st_writer_start(&w);
	json_object_foreach(o.header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		const struct slice t = original_slice(entry, o.data);
		remade_put(&w, name, &t);
		if (strcmp(name, "model.norm.weight") == 0)
			remade_put(&w, "mtp.norm.weight", &t);
	}
	remade_model("predicting", &w, o.config);
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = "cpu", .cache_dir = "");
	jit_model *m = jit_model_open(remade_path(path, "predicting"), &mo, &err);
	if (!m)
		fail_msg("%s", err.message);
	jit_model_close(m);
	original_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_olmo2),
		cmocka_unit_test(test_granite),
		cmocka_unit_test(test_predictors),
	};

	return cmocka_run_group_tests(tests, remade_start, remade_end);
}
