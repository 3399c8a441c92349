/* tests/runtime/t_dense.c - dense layers behind pooling, as modules.json lists them and as GGUF files hold them: held
 * to a plain computation from the tokens' rows, what a packed model keeps of them, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/jitrun.h"
#include "loaders/model/model_load.h"
#include "runtime/host/pool.h"
#include "runtime/model/fingerprint.h"
#include "tests/runtime/dense_folder.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/rank_model.h"
#include "tests/support/shared.h"

enum { TOKENS = 7, HIDDEN = 64, WIDEST = DENSE_WIDEST };
static const int32_t ids[TOKENS] = { 1, 3, 2, 4, 0, 2, 3 };
static char dir[] = "/tmp/t_dense-XXXXXX", file[] = "/tmp/t_dense-gguf-XXXXXX", path[300];

static uint32_t seed = 11;
static struct layer layers[2];

static void put_text(const char *name, const char *text) { tiny_write(dir, name, text, strlen(text)); }

static const char both_layers[] = MODULES_BEGIN
	"," MODULE("Dense", "2_Dense") "," MODULE("Dense", "3_Dense") "," MODULE("Normalize", "4_Normalize") "]";

static const char *const folders[] = { "1_Pooling", "2_Dense", "3_Dense" };
static const char *const written[] = {
	"config.json",
	"model.safetensors",
	"modules.json",
	"1_Pooling/config.json",
	"2_Dense/config.json",
	"2_Dense/model.safetensors",
	"2_Dense/pytorch_model.bin",
	"3_Dense/config.json",
	"3_Dense/model.safetensors"
};

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (mkdir(in_dir(folders[i]), 0700) != 0)
			return -1;
	struct tiny_model t = tiny_min;
	t.hidden = HIDDEN;
	tiny_write_hf(dir, &t);
	put_text("1_Pooling/config.json", "{\"pooling_mode\": \"mean\"}");
	put_text("modules.json", both_layers);
	int fd = mkstemp(file);
	return fd < 0 || close(fd);
}

static int drop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof written / sizeof *written; i++)
		unlink(in_dir(written[i]));
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		rmdir(in_dir(folders[i]));
	unlink(file);
	return rmdir(dir);
}

/* ---- embeddings */

struct opened {
	jit_model *m;
	jit_session *s;
	uint32_t hidden, width;
};

static struct opened open_model(const char *model)
{
	jit_model_info info = JIT_MODEL_INFO();
	struct opened o = { 0 };
	jit_error err = { 0 };

	o.m = jit_model_open(model, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	if (!o.m)
		fail_msg("%s", err.message);
	o.s = jit_session_open(o.m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);
	assert_non_null(o.s);
	assert_int_equal(jit_model_get_info(o.m, &info, &err), JIT_OK);
	o.hidden = (uint32_t)info.hidden;
	o.width = (uint32_t)info.embedding;
	return o;
}

static void close_model(struct opened *o)
{
	jit_session_close(o->s);
	jit_model_close(o->m);
}

static void embed(struct opened *o, int pooling, int normalise, float *out, size_t n)
{
	jit_error err = { 0 };

	assert_int_equal(jit_session_rewind(o->s, 0, &err), JIT_OK);
	if (jit_session_embed(o->s, ids, TOKENS, &JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = normalise),
	                      out, n, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

static double act_of(const char *act, double x)
{
	return strstr(act, "Tanh")      ? tanh(x)
	       : strstr(act, "ReLU")    ? fmax(x, 0)
	       : strstr(act, "GELU")    ? x / 2 * (1 + erf(x / sqrt(2)))
	       : strstr(act, "Sigmoid") ? 1 / (1 + exp(-x))
	                                : x;
}

/* By the definition, with libm; returns how many numbers there are. */
static uint32_t plain(const struct layer *l, int n, double x[WIDEST])
{
	uint32_t width = 0;

	for (int k = 0; k < n; k++) {
		double y[WIDEST];
		for (uint32_t r = 0; r < l[k].out; r++) {
			y[r] = l[k].bias ? (double)l[k].bias_of[r] : 0;
			for (uint32_t i = 0; i < l[k].in; i++)
				y[r] += (double)l[k].weight[r * l[k].in + i] * x[i];
			y[r] = act_of(l[k].act, y[r]);
		}
		memcpy(x, y, sizeof y);
		width = l[k].out;
	}
	return width;
}

static void pool(const float *rows, uint32_t hidden, int pooling, double x[WIDEST])
{
	for (uint32_t i = 0; i < hidden; i++) {
		x[i] = 0;
		for (int t = 0; t < TOKENS; t++)
			x[i] += (double)rows[(uint32_t)t * hidden + i] / TOKENS;
		if (pooling != JIT_POOL_MEAN)
			x[i] = (double)rows[(pooling == JIT_POOL_CLS ? 0 : TOKENS - 1) * hidden + i];
	}
}

static void check_model(const char *model, const struct layer *l, int n)
{
	static const int ways[] = { JIT_POOL_MEAN, JIT_POOL_CLS, JIT_POOL_LAST };
	static float rows[TOKENS * WIDEST], got[WIDEST];
	struct opened o = open_model(model);
	double x[WIDEST];

	embed(&o, JIT_POOL_NONE, 0, rows, (size_t)TOKENS * o.hidden);
	for (int way = 0; way < 6; way++) {
		double length = 0;
		pool(rows, o.hidden, ways[way / 2], x);
		assert_int_equal(plain(l, n, x), o.width);
		embed(&o, ways[way / 2], way % 2, got, o.width);
		for (uint32_t i = 0; i < o.width; i++)
			length += x[i] * x[i];
		for (uint32_t i = 0; i < o.width; i++) {
			const double wanted = way % 2 && length > 0 ? x[i] / sqrt(length) : x[i];
			if (!(fabs((double)got[i] - wanted) < 2e-6 * (1 + fabs(wanted))))
				fail_msg("%s, pooling %d, number %u: %.9g, expected %.9g", l->act, ways[way / 2], i,
				         (double)got[i], wanted);
		}
	}
	close_model(&o);
}

static void test_folder(void **state)
{
	static const char *const acts[] = { "activation.Tanh", "linear.Identity", "activation.ReLU", "activation.GELU",
		                            "activation.Sigmoid" };
	(void)state;

	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		layer_fill(&layers[0], HIDDEN, 96 + (uint32_t)i, acts[i], i % 2 == 0);
		layer_fill(&layers[1], 96 + (uint32_t)i, 13 + (uint32_t)i, acts[(i + 1) % 5], i % 3 == 0);
		layer_write(dir, "2_Dense", &layers[0]);
		layer_write(dir, "3_Dense", &layers[1]);
		check_model(dir, layers, 2);
	}
}

/* How long a vector is says the last layer. */
static void test_sizes(void **state)
{
	struct opened o = open_model(dir);
	float x[WIDEST];
	jit_error err = { 0 };
	char text[100];
	(void)state;

	assert_int_equal(o.width, layers[1].out);
	assert_int_equal(jit_session_embed(o.s, ids, TOKENS, NULL, x, o.hidden, &err), JIT_ERROR_ARGUMENT);
	snprintf(text, sizeof text, "n_out: %u floats were given for an embedding; expected 1 times %u", o.hidden,
	         o.width);
	assert_string_equal(err.message, text);
	close_model(&o);
}

/* ---- GGUF */

static void write_gguf(const struct layer *l, int n, const uint32_t sizes[4])
{
	static const char *const names[] = { "dense_2.weight", "dense_3.weight" };
	struct rank_model m = { .pooling = 1 };

	for (int i = 0; i < n; i++)
		m.tensor[i] = (struct rank_tensor){ names[i], DTYPE_F32, 2, { l[i].in, l[i].out }, l[i].weight };
	for (int i = 0; i < 4 && sizes; i++)
		m.sizes[i] = sizes[i];
	rank_model_write(file, &m);
}

static void test_gguf(void **state)
{
	static struct layer l[2];
	(void)state;

	layer_fill(&l[0], 256, 300, "linear.Identity", false);
	layer_fill(&l[1], 300, 64, "linear.Identity", false);
	write_gguf(l, 2, (const uint32_t[]){ 256, 300, 300, 64 });
	check_model(file, l, 2);
	write_gguf(l, 1, NULL);
	check_model(file, l, 1);
}

/* ---- what is kept */

static uint64_t print_of(const char *model)
{
	struct pool *p = pool_open(1, NULL);
	struct opened o = open_model(model);
	struct error err = { 0 };
	uint64_t out = 0;

	assert_true(model_fingerprint(o.m, p, &out, &err));
	close_model(&o);
	pool_close(p);
	return out;
}

/* A changed weight makes another model. */
static void test_fingerprint(void **state)
{
	const uint64_t first = print_of(dir);
	(void)state;

	assert_true(first == print_of(dir));
	layers[1].weight[5] += 1;
	layer_write(dir, "3_Dense", &layers[1]);
	assert_true(first != print_of(dir));
	layers[1].weight[5] -= 1;
	layer_write(dir, "3_Dense", &layers[1]);
}

static void check_same(const struct model *a, const struct model *b)
{
	assert_int_equal(a->n_dense, b->n_dense);
	for (uint32_t i = 0; i < a->n_dense; i++) {
		const struct model_dense *x = &a->dense[i], *y = &b->dense[i];
		assert_true(x->in == y->in && x->out == y->out && x->act == y->act && x->biased == y->biased);
		assert_memory_equal(x->weight, y->weight, (size_t)x->in * x->out * sizeof(float));
		if (x->biased)
			assert_memory_equal(x->bias, y->bias, x->out * sizeof(float));
	}
}

/* Changed bytes of what a packed model holds are taken or refused, and nothing else happens. */
static void change_bytes(struct model_source *s, size_t n, struct model_source *dense)
{
	const uint8_t *whole = dense->bytes;
	uint8_t *bytes = malloc((size_t)dense->n);
	const uint64_t size = dense->n;

	assert_non_null(bytes);
	for (int k = 0; k < 200; k++) {
		struct error err = { 0 };
		struct model again;
		memcpy(bytes, whole, (size_t)size);
		seed = seed * 1664525 + 1013904223;
		bytes[(seed >> 8) % (k % 2 ? 36 : size)] ^= (uint8_t)(1 + k % 255);
		dense->bytes = bytes;
		dense->n = k % 4 ? size : 1 + (seed >> 8) % size;
		const bool ok = model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err);
		assert_int_equal(ok, err.code == ERROR_NONE);
		if (ok)
			model_close(&again);
	}
	dense->bytes = whole;
	dense->n = size;
	free(bytes);
}

static void check_sources(const char *model)
{
	struct error err = { 0 };
	struct model m, again;
	struct model_source *dense = NULL;
	size_t n;

	assert_true(model_open(&m, model, MODEL_KEEP_SOURCES, &err));
	struct model_source *s = model_sources(&m, &n, &err);
	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		if (s[i].role == MODEL_SOURCE_DENSE)
			dense = &s[i];
	assert_non_null(dense);
	if (!model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err))
		fail_msg("%s", err.text);
	check_same(&m, &again);
	model_close(&again);
	dense->n -= 4;
	assert_false(model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err));
	assert_non_null(strstr(err.text, "bytes of dense layers, expected"));
	dense->n += 4;
	change_bytes(s, n, dense);
	free(s);
	model_close(&m);
}

static void test_sources(void **state)
{
	(void)state;
	check_sources(dir);
	check_sources(file);
}

/* With the header alone, sizes are known. */
static void test_header_only(void **state)
{
	struct error err = { 0 };
	struct model m;
	(void)state;

	assert_true(model_open(&m, dir, MODEL_HEADER_ONLY, &err));
	assert_int_equal(model_embedding(&m), layers[1].out);
	assert_null(m.dense[0].weight);
	model_close(&m);
}

/* ---- refusals */

static void refused(const char *model, const char *says)
{
	struct error err = { 0 };
	struct model m;

	if (model_open(&m, model, 0, &err) || !strstr(err.text, says))
		fail_msg("expected \"%s\", got \"%s\"", says, err.text);
}

#define CONFIG(in, out, rest) "{\"in_features\": " in ", \"out_features\": " out rest "}"
#define LINEAR ", \"activation_function\": \"torch.nn.modules.linear.Identity\""

static void test_configs(void **state)
{
	static const char *const rows[][2] = {
		{ "[]", "2_Dense/config.json: its content is an array, expected an object" },
		{ "{", "2_Dense/config.json: is not valid JSON" },
		{ "{}", "2_Dense/config.json: in_features is missing" },
		{ CONFIG("0", "8", LINEAR), "in_features is 0, expected 1" },
		{ CONFIG("64", "1e9", LINEAR), "out_features is 1" },
		{ CONFIG("64", "2.5", LINEAR), "out_features is 2.5, expected an integer" },
		{ CONFIG("64", "8", ""), "activation_function is missing" },
		{ CONFIG("64", "8", ", \"activation_function\": 3"),
		  "activation_function is an integer, expected a string" },
		{ CONFIG("64", "8", ", \"activation_function\": \"torch.nn.modules.activation.Mish\""),
		  "activation_function is \"torch.nn.modules.activation.Mish\", " },
		{ CONFIG("64", "8", LINEAR ", \"bias\": 1"), "bias is an integer, expected true or false" },
		{ CONFIG("64", "8", LINEAR ", \"module_input_name\": \"token_embeddings\""),
		  "module_input_name is \"token_embeddings\", expected" },
		{ CONFIG("64", "8", LINEAR ", \"module_output_name\": \"other\""),
		  "module_output_name is \"other\", expected" },
		{ CONFIG("64", "8", LINEAR ", \"use_residual\": true"), "has the field use_residual, which jitrun" },
		{ CONFIG("64", "8", LINEAR ", \"use_residual\": false"), "expected (8 x 64) in 2 as config.json says" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put_text("2_Dense/config.json", rows[i][0]);
		refused(dir, rows[i][1]);
	}
	layer_write(dir, "2_Dense", &layers[0]);
}

#define ONE_MORE "," MODULE("Dense", "2_Dense")
#define THREE_MORE ONE_MORE ONE_MORE ONE_MORE

static void test_modules(void **state)
{
	static const char *const rows[][2] = {
		{ MODULES_BEGIN "," MODULE("Normalize", "") "," MODULE("Dense", "2_Dense") "]",
		  "modules.json: module 3 is a Dense layer, which is supported behind Pooling and before Normalize" },
		{ MODULES_BEGIN "," MODULE("Dense", "../2_Dense") "]",
		  "the path of module 2 is \"../2_Dense\", expected the name of a folder beside this file" },
		{ MODULES_BEGIN "," MODULE("Dense", "..") "]", "the path of module 2 is \"..\"" },
		{ MODULES_BEGIN "," MODULE("Dense", "") "]", "the path of module 2 is \"\"" },
		{ MODULES_BEGIN ",{\"type\":\"a.Dense\",\"path\":3}]", "the path of module 2 is \"\"" },
		{ MODULES_BEGIN "," MODULE("Dense", "7_Dense") "]", "7_Dense/config.json" },
		{ MODULES_BEGIN "," MODULE("Dense", "3_Dense") "," MODULE("Dense", "2_Dense") "]",
		  "dense layer 0 behind pooling has 100 inputs (in_features), expected the 64 numbers before it" },
		{ MODULES_BEGIN THREE_MORE THREE_MORE THREE_MORE "]", "has more than 8 Dense modules" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put_text("modules.json", rows[i][0]);
		refused(dir, rows[i][1]);
	}
	put_text("modules.json", both_layers);
}

static void test_weights(void **state)
{
	static struct layer l;
	(void)state;

	l = layers[0];
	layer_write_weights(dir, "2_Dense", &l, (const uint64_t[2]){ l.in, l.out }, true);
	refused(dir, "2_Dense/model.safetensors: tensor linear.weight has shape (64 x 100) in 2 dimensions, expected "
	             "(100 x 64) in 2 as config.json says");
	layer_write_weights(dir, "2_Dense", &l, (const uint64_t[2]){ l.out, l.in }, false);
	refused(dir, "2_Dense/model.safetensors: the tensor linear.bias is missing");
	l.bias_of[7] = NAN;
	layer_write(dir, "2_Dense", &l);
	refused(dir, "2_Dense/model.safetensors: number 7 of tensor linear.bias is not finite");
	l.weight[70] = INFINITY;
	layer_write(dir, "2_Dense", &l);
	refused(dir, "2_Dense/model.safetensors: number 70 of tensor linear.weight is not finite");
	unlink(in_dir("2_Dense/model.safetensors"));
	refused(dir, "2_Dense/model.safetensors");
	put_text("2_Dense/pytorch_model.bin", "PK");
	refused(dir, "2_Dense/pytorch_model.bin: is a file of PyTorch, which is not read, expected model.safetensors");
	unlink(in_dir("2_Dense/pytorch_model.bin"));
	layer_write(dir, "2_Dense", &layers[0]);
	l = layers[1];
	l.bias = false;
	layer_write(dir, "3_Dense", &l);
	layer_write_weights(dir, "3_Dense", &l, (const uint64_t[2]){ l.out, l.in }, true);
	refused(dir, "3_Dense/model.safetensors: the tensor linear.bias is none of a Dense layer without a bias");
	layer_write(dir, "3_Dense", &layers[1]);
}

static void test_gguf_refusals(void **state)
{
	static struct layer l[2];
	(void)state;

	layer_fill(&l[0], 256, 16, "linear.Identity", false);
	layer_fill(&l[1], 20, 8, "linear.Identity", false);
	write_gguf(l, 1, (const uint32_t[]){ 256, 17, 0, 0 });
	refused(file, "key qwen3.dense_2_feat_out is 17, expected 16 as dense_2.weight has");
	write_gguf(l, 1, (const uint32_t[]){ 256, 16, 16, 8 });
	refused(file, "the tensor dense_3.weight is missing, which the key qwen3.dense_3_feat_in says there is");
	write_gguf(l, 2, NULL);
	refused(file, "dense layer 1 behind pooling has 20 inputs (in_features), expected the 16 numbers before it");
	rank_model_write(file, &(struct rank_model){
				       .pooling = 4,
				       .tensor = { { "cls.output.weight", DTYPE_F32, 2, { 256, 2 }, layers[0].weight },
	                                           { "dense_2.weight", DTYPE_F32, 2, { 256, 16 }, l[0].weight } } });
	refused(file, "has dense layers behind pooling, and the model ranks texts");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folder),       cmocka_unit_test(test_sizes),   cmocka_unit_test(test_gguf),
		cmocka_unit_test(test_fingerprint),  cmocka_unit_test(test_sources), cmocka_unit_test(test_header_only),
		cmocka_unit_test(test_configs),      cmocka_unit_test(test_modules), cmocka_unit_test(test_weights),
		cmocka_unit_test(test_gguf_refusals)
	};

	return cmocka_run_group_tests(tests, make, drop);
}
