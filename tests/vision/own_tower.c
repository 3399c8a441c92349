/* tests/vision/own_tower.c - a small tower of Qwen 2 VL that the test writes, beside the same in plain loops of
 * doubles; and what of such files is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/shared.h"
#include "tests/vision/tower_tests.h"

enum {
	WIDTH = 24,
	HEADS = 3,
	DIM = 8,
	FFN = 48,
	LAYERS = 2,
	PATCH = 2,
	NUMBERS = 3 * 2 * 2 * 2,
	OUT = 20,
	MERGED = 96
};

static const char config[] =
	"{\"model_type\": \"qwen2_vl\", \"vision_config\": {\"model_type\": \"qwen2_vl\", "
	"\"depth\": 2, \"embed_dim\": 24, "
	"\"hidden_size\": 20, \"mlp_ratio\": 2, \"num_heads\": 3, \"patch_size\": 2%s}}";

/* ---- its tensors */

struct tensor_of {
	const char *name;
	uint32_t rows, columns; /* rows 0: a vector */
	float *x;
};

static struct tensor_of tensors[] = {
	{ "visual.patch_embed.proj.weight", WIDTH, NUMBERS, NULL },
	{ "visual.blocks.%u.norm1.weight", 0, WIDTH, NULL },
	{ "visual.blocks.%u.norm1.bias", 0, WIDTH, NULL },
	{ "visual.blocks.%u.attn.qkv.weight", 3 * WIDTH, WIDTH, NULL },
	{ "visual.blocks.%u.attn.qkv.bias", 0, 3 * WIDTH, NULL },
	{ "visual.blocks.%u.attn.proj.weight", WIDTH, WIDTH, NULL },
	{ "visual.blocks.%u.attn.proj.bias", 0, WIDTH, NULL },
	{ "visual.blocks.%u.norm2.weight", 0, WIDTH, NULL },
	{ "visual.blocks.%u.norm2.bias", 0, WIDTH, NULL },
	{ "visual.blocks.%u.mlp.fc1.weight", FFN, WIDTH, NULL },
	{ "visual.blocks.%u.mlp.fc1.bias", 0, FFN, NULL },
	{ "visual.blocks.%u.mlp.fc2.weight", WIDTH, FFN, NULL },
	{ "visual.blocks.%u.mlp.fc2.bias", 0, WIDTH, NULL },
	{ "visual.merger.ln_q.weight", 0, WIDTH, NULL },
	{ "visual.merger.ln_q.bias", 0, WIDTH, NULL },
	{ "visual.merger.mlp.0.weight", MERGED, MERGED, NULL },
	{ "visual.merger.mlp.0.bias", 0, MERGED, NULL },
	{ "visual.merger.mlp.2.weight", OUT, MERGED, NULL },
	{ "visual.merger.mlp.2.bias", 0, OUT, NULL },
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static double uniform(uint64_t i)
{
	uint64_t z = i * 0x9E3779B97F4A7C15 + 1;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53 * 2 - 1;
}

static uint32_t copies(const struct tensor_of *t) { return strstr(t->name, "%u") ? LAYERS : 1; }
static uint32_t size_of(const struct tensor_of *t) { return (t->rows ? t->rows : 1) * t->columns; }

static void make(void)
{
	for (unsigned i = 0; i < TENSORS; i++) {
		struct tensor_of *t = &tensors[i];
		const uint32_t n = size_of(t) * copies(t);
		t->x = malloc(n * sizeof *t->x);
		assert_non_null(t->x);
		for (uint32_t k = 0; k < n; k++)
			t->x[k] = (float)(uniform(i * 100000 + k) * (t->rows ? 0.4 : 0.3) +
			                  (strstr(t->name, "norm") != NULL));
	}
}

static void unmake(void)
{
	for (unsigned i = 0; i < TENSORS; i++)
		free(tensors[i].x);
}

static const float *own(unsigned i, uint32_t layer) { return tensors[i].x + size_of(&tensors[i]) * layer; }

/* The folder, with config.json and model.safetensors; without: the number of a tensor that is left out; more: one that
 * is too many. */
static const char *write_folder(char path[1024], const char *fields, int without, const char *more)
{
	char name[1100], header[16384] = "{", text[100];
	uint64_t at = 0, n = 1;
	FILE *f;

	snprintf(path, 1024, "own_tower.%ld", (long)getpid());
	mkdir(path, 0700);
	snprintf(name, sizeof name, "%s/config.json", path);
	f = fopen(name, "w");
	assert_non_null(f);
	fprintf(f, config, fields);
	fclose(f);
	for (unsigned i = 0; i < TENSORS; i++)
		for (uint32_t l = 0; l < copies(&tensors[i]) && (int)i != without; l++) {
			const struct tensor_of *t = &tensors[i];
			snprintf(text, sizeof text, t->name, l);
			n += (uint64_t)snprintf(header + n, sizeof header - n,
			                        "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", n > 1 ? "," : "", text);
			if (t->rows)
				n += (uint64_t)snprintf(header + n, sizeof header - n, "%u,", t->rows);
			n += (uint64_t)snprintf(header + n, sizeof header - n, "%u],\"data_offsets\":[%llu,%llu]}",
			                        t->columns, (unsigned long long)at,
			                        (unsigned long long)(at + size_of(t) * 4));
			at += size_of(t) * 4;
		}
	n += more ? (uint64_t)snprintf(header + n, sizeof header - n,
	                               ",\"%s\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[%llu,%llu]}", more,
	                               (unsigned long long)at, (unsigned long long)at)
	          : 0;
	n += (uint64_t)snprintf(header + n, sizeof header - n, "}");
	snprintf(name, sizeof name, "%s/model.safetensors", path);
	f = fopen(name, "wb");
	assert_non_null(f);
	fwrite(&n, 1, sizeof n, f);
	fwrite(header, 1, n, f);
	for (unsigned i = 0; i < TENSORS; i++)
		if ((int)i != without)
			fwrite(tensors[i].x, 4, size_of(&tensors[i]) * copies(&tensors[i]), f);
	fclose(f);
	return path;
}

static void remove_folder(const char *path)
{
	char name[1100];

	snprintf(name, sizeof name, "%s/config.json", path);
	unlink(name);
	snprintf(name, sizeof name, "%s/model.safetensors", path);
	unlink(name);
	rmdir(path);
}

/* ---- the same in plain loops */

enum { PATCHES_MAX = 64 };
static double stream[PATCHES_MAX][WIDTH], normal[PATCHES_MAX][WIDTH], qkv[PATCHES_MAX][3 * WIDTH],
	mixed[PATCHES_MAX][WIDTH];

static void linear(const float *w, const float *b, const double *x, double *y, unsigned rows, unsigned columns)
{
	for (unsigned r = 0; r < rows; r++) {
		double sum = b ? (double)b[r] : 0;
		for (unsigned c = 0; c < columns; c++)
			sum += (double)w[r * columns + c] * x[c];
		y[r] = sum;
	}
}

static void layer_norm(const float *w, const float *b, const double *x, double *y)
{
	double mean = 0, square = 0;

	for (unsigned i = 0; i < WIDTH; i++)
		mean += x[i] / WIDTH;
	for (unsigned i = 0; i < WIDTH; i++)
		square += (x[i] - mean) * (x[i] - mean) / WIDTH;
	for (unsigned i = 0; i < WIDTH; i++)
		y[i] = (x[i] - mean) / sqrt(square + 1e-6) * (double)w[i] + (double)b[i];
}

/* Pairs (i, i + 4) of a head: the first two turn by the row, the others by the column. */
static void rotate(double *head, unsigned y, unsigned x)
{
	for (unsigned i = 0; i < DIM / 2; i++) {
		const double angle = (i < 2 ? y : x) / pow(10000, (i % 2) / 2.0), a = head[i], b = head[i + DIM / 2];
		head[i] = a * cos(angle) - b * sin(angle);
		head[i + DIM / 2] = b * cos(angle) + a * sin(angle);
	}
}

static void attend(unsigned n)
{
	for (unsigned h = 0; h < HEADS; h++)
		for (unsigned i = 0; i < n; i++) {
			double sum = 0, out[DIM] = { 0 };
			for (unsigned k = 0; k < n; k++) {
				double score = 0;
				for (unsigned d = 0; d < DIM; d++)
					score += qkv[i][h * DIM + d] * qkv[k][WIDTH + h * DIM + d];
				const double e = exp(score / sqrt(DIM));
				sum += e;
				for (unsigned d = 0; d < DIM; d++)
					out[d] += e * qkv[k][2 * WIDTH + h * DIM + d];
			}
			for (unsigned d = 0; d < DIM; d++)
				mixed[i][h * DIM + d] = out[d] / sum;
		}
}

static void plain_layer(unsigned l, unsigned n, unsigned width)
{
	double add[WIDTH], wide[FFN];

	for (unsigned i = 0; i < n; i++) {
		/* Blocks of 2 x 2 patches, of which each is row by row. */
		const unsigned block = i / 4, y = block / (width / 2) * 2 + i % 4 / 2,
			       x = block % (width / 2) * 2 + i % 2;
		layer_norm(own(1, l), own(2, l), stream[i], normal[i]);
		linear(own(3, l), own(4, l), normal[i], qkv[i], 3 * WIDTH, WIDTH);
		for (unsigned h = 0; h < 2 * HEADS; h++)
			rotate(qkv[i] + h * DIM, y, x);
	}
	attend(n);
	for (unsigned i = 0; i < n; i++) {
		linear(own(5, l), own(6, l), mixed[i], add, WIDTH, WIDTH);
		for (unsigned k = 0; k < WIDTH; k++)
			stream[i][k] += add[k];
		layer_norm(own(7, l), own(8, l), stream[i], normal[i]);
		linear(own(9, l), own(10, l), normal[i], wide, FFN, WIDTH);
		for (unsigned k = 0; k < FFN; k++)
			wide[k] /= 1 + exp(-1.702 * wide[k]);
		linear(own(11, l), own(12, l), wide, add, WIDTH, FFN);
		for (unsigned k = 0; k < WIDTH; k++)
			stream[i][k] += add[k];
	}
}

static void plain(const float *pixels, unsigned height, unsigned width, float *out)
{
	const unsigned n = height * width;
	double x[NUMBERS], row[MERGED], wide[MERGED], last[OUT];

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < NUMBERS; k++)
			x[k] = (double)pixels[i * NUMBERS + k];
		linear(own(0, 0), NULL, x, stream[i], WIDTH, NUMBERS);
	}
	for (unsigned l = 0; l < LAYERS; l++)
		plain_layer(l, n, width);
	for (unsigned b = 0; b < n / 4; b++) {
		for (unsigned i = 0; i < 4; i++)
			layer_norm(own(13, 0), own(14, 0), stream[b * 4 + i], row + i * WIDTH);
		linear(own(15, 0), own(16, 0), row, wide, MERGED, MERGED);
		for (unsigned k = 0; k < MERGED; k++)
			wide[k] *= (1 + erf(wide[k] / sqrt(2))) / 2;
		linear(own(17, 0), own(18, 0), wide, last, OUT, MERGED);
		for (unsigned k = 0; k < OUT; k++)
			out[b * OUT + k] = (float)last[k];
	}
}

/* ---- tests */

static void fill(float *pixels, unsigned n, unsigned seed)
{
	for (unsigned i = 0; i < n; i++)
		pixels[i] = (float)uniform(7000000 + seed * 10000 + i);
}

/* The same bits from every place. */
static void compare_setups(const char *path, const struct tower_pixels *p, const struct tower_features *f)
{
	static const struct {
		const char *device, *isa;
		int threads;
		bool slow;
	} setups[] = { { "cpu", NULL, 3, false },       { "cpu", "avx2", 1, false },   { "cpu", "avx512", 2, false },
		       { "ref", NULL, 1, false },       { "sim:sm90", NULL, 1, true }, { "sim:gfx1101", NULL, 1, true },
		       { "sim:gfx1100", NULL, 1, true } };

	for (unsigned i = 0; i < sizeof setups / sizeof *setups; i++) {
		struct error err = { 0 };
		jit_error e = { 0 };
		if (setups[i].slow && test_quick())
			continue;
		jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = setups[i].device, .isa = setups[i].isa,
		                                                       .threads = setups[i].threads),
		                                  &e);
		if (!c && setups[i].isa) { /* this CPU has no such instructions */
			printf("# %s\n", e.message);
			continue;
		}
		assert_non_null(c);
		struct tower *t = tower_open(path, c, &err);
		if (!t)
			fail_msg("%s: %s", setups[i].device, err.text);
		struct tower_features g = tower_encoded(t, p);
		if (memcmp(f->values, g.values, f->tokens * f->width * sizeof *f->values) != 0)
			fail_msg("%s %s with %d threads gives other bits", setups[i].device,
			         setups[i].isa ? setups[i].isa : "", setups[i].threads);
		free(g.values);
		tower_close(t);
		jit_compute_close(c);
	}
}

void test_own_tower(void **state)
{
	static const struct {
		uint32_t height, width;
	} sizes[] = { { 4, 6 }, { 2, 2 }, { 6, 4 }, { 8, 8 }, { 2, 14 }, { 4, 4 }, { 4, 6 } };
	static float pixels[2 * PATCHES_MAX * NUMBERS], wanted[PATCHES_MAX * OUT];
	char path[1024];
	struct error err = { 0 };
	(void)state;

	make();
	write_folder(path, "", -1, NULL);
	jit_compute *c = compute_open("cpu", NULL, 1);
	struct tower *t = tower_open(path, c, &err);
	if (!t)
		fail_msg("%s", err.text);
	assert_int_equal(tower_spec_of(t)->image_token, 151655); /* as the class has it where a file says none */
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct tower_pixels p = { pixels, 1, sizes[i].height, sizes[i].width };
		const unsigned n = p.height * p.width;
		fill(pixels, 2 * n * NUMBERS, i);
		plain(pixels, p.height, p.width, wanted);
		struct tower_features f = tower_encoded(t, &p);
		assert_int_equal(f.tokens, n / 4);
		assert_int_equal(f.levels, 1);
		assert_true(tower_difference(f.values, wanted, n / 4 * OUT) < 2e-6);
		if (i == 0)
			compare_setups(path, &p, &f);
		/* Two at once, each with the bits that it has alone. */
		p.tiles = 2;
		struct tower_features both = tower_encoded(t, &p);
		assert_int_equal(both.tokens, n / 4 * 2);
		assert_memory_equal(both.values, f.values, n / 4 * OUT * sizeof *f.values);
		p = (struct tower_pixels){ pixels + n * NUMBERS, 1, sizes[i].height, sizes[i].width };
		struct tower_features second = tower_encoded(t, &p);
		assert_memory_equal(both.values + n / 4 * OUT, second.values, n / 4 * OUT * sizeof *f.values);
		free(f.values);
		free(both.values);
		free(second.values);
	}
	tower_close(t);
	jit_compute_close(c);
	remove_folder(path);
	unmake();
}

static void refuse(jit_compute *c, const char *fields, int without, const char *more, const char *expected)
{
	char path[1024];
	struct error err = { 0 };

	write_folder(path, fields, without, more);
	struct tower *t = tower_open(path, c, &err);
	assert_null(t);
	if (!strstr(err.text, expected))
		fail_msg("\"%s\" says nothing of \"%s\"", err.text, expected);
	remove_folder(path);
}

void test_refused(void **state)
{
	static float pixels[PATCHES_MAX * NUMBERS];
	static const struct tower_pixels wrong[] = {
		{ pixels, 1, 3, 4 }, { pixels, 1, 4, 5 }, { pixels, 0, 4, 4 },
		{ pixels, 1, 0, 4 }, { NULL, 1, 4, 4 },   { pixels, 1, TOWER_MAX_SIDE + 2, 2 }
	};
	char path[1024];
	(void)state;

	make();
	jit_compute *c = compute_open("cpu", NULL, 1);
	refuse(c, ", \"depth\": 0", -1, NULL, "depth is 0");
	refuse(c, ", \"depth\": 3", -1, NULL, "visual.blocks.2.norm1.weight is missing");
	refuse(c, ", \"num_heads\": 7", -1, NULL, "expected 7 heads");
	refuse(c, ", \"num_heads\": 12", -1, NULL, "a multiple of 4 numbers");
	refuse(c, ", \"hidden_act\": \"relu\"", -1, NULL, "hidden_act is \"relu\"");
	refuse(c, ", \"extra_gate\": 3", -1, NULL, "vision_config.extra_gate is 3");
	refuse(c, ", \"rope_parameters\": {\"rope_type\": \"yarn\"}", -1, NULL,
	       "rope_type of vision_config is \"yarn\"");
	refuse(c, ", \"hidden_size\": 21", -1, NULL,
	       "visual.merger.mlp.2.weight has the shape [20,96], expected [21,96]");
	refuse(c, ", \"model_type\": \"siglip\"", -1, NULL, "model_type of vision_config is \"siglip\"");
	refuse(c, "", 17, NULL, "visual.merger.mlp.2.weight is missing");
	refuse(c, "", -1, "visual.blocks.1.attn.gate.weight", "visual.blocks.1.attn.gate.weight is none that");
	write_folder(path, "", -1, NULL);
	struct error err = { 0 };
	struct tower *t = tower_open(path, c, &err);
	assert_non_null(t);
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct tower_features f;
		uint64_t tokens;
		err = (struct error){ 0 };
		assert_false(tower_encode(t, &wrong[i], &f, &err));
		assert_null(f.values);
		assert_non_null(strstr(err.text, "expected at"));
		assert_false(tower_tokens(tower_spec_of(t), &wrong[i], &tokens, &err));
	}
	/* Larger than any graph, and than any memory: refused before anything is read of it. */
	struct tower_features f;
	const struct tower_pixels huge = { pixels, 1, TOWER_MAX_SIDE, TOWER_MAX_SIDE };
	err = (struct error){ 0 };
	assert_false(tower_encode(t, &huge, &f, &err));
	assert_non_null(strstr(err.text, "4096 x 4096 patches would need arrays of 2^31 elements or more"));
	tower_close(t);
	remove_folder(path);
	jit_compute_close(c);
	unmake();
}
