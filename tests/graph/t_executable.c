/* tests/graph/t_executable.c - compiled graphs beside the interpreter, bit for bit: random graphs of all operations on
 * odd shapes, on each instruction set of this CPU, by interpreted kernels, and on a simulated card of each kind; with
 * one thread and three. With JITRUN_TEST_CUDA in the environment, on a real card, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/passes.h"
#include "graph/text.h"
#include "runtime/graph/executable.h"
#include "tests/graph/attention_graph.h"
#include "tests/graph/product_graph.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/swept_cases.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

enum { OUTPUTS = 8 };

static const struct setup {
	const char *device, *isa;
	int threads;
} setups[] = { { "cpu", NULL, 1 },         { "cpu", "avx2", 3 },    { "ref", NULL, 1 },
	       { "sim:gfx1101", NULL, 1 }, { "sim:sm90", NULL, 1 }, { "cuda", NULL, 1 } };
enum { SETUPS = sizeof setups / sizeof *setups };

static jit_compute *computes[SETUPS];
static uint32_t graphs, kernels, hosted, attentions;

static int open_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SETUPS; i++) {
		jit_error e = { 0 };
		if (strcmp(setups[i].device, "cuda") == 0 && !getenv("JITRUN_TEST_CUDA"))
			continue;
		computes[i] = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = setups[i].device, .isa = setups[i].isa,
		                                                    .threads = setups[i].threads, .cache_dir = ""),
		                               &e);
		if (!computes[i])
			printf("# skipped: %s %s: %s\n", setups[i].device, setups[i].isa ? setups[i].isa : "",
			       e.message);
	}
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SETUPS; i++)
		jit_compute_close(computes[i]);
	printf("# %u runs of graphs, %u kernels, %u groups on the host\n", graphs, kernels, hosted);
	return 0;
}

static void say(const struct tensor_graph *g, const struct executable *x, const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	graph_text_write(g, stdout, 8);
	if (x)
		executable_print(x, stdout, true);
	fflush(stdout);
	fail_msg("%s: %s", what, why);
}

/* Which bits a NaN has is the machine's affair. */
static bool is_nan(int type, union number x)
{
	const int wide = tensor_wide_type(type);

	return wide == JIT_TYPE_F32 ? isnan(x.f) : wide == JIT_TYPE_F64 && isnan(x.d);
}

static void compare(const struct tensor_graph *g, const struct executable *x, const struct tensor *expected,
                    const struct tensor *found, const char *what)
{
	for (uint32_t i = 0; i < g->outputs; i++)
		for (uint64_t k = 0; k < shape_elements(&expected[i].shape); k++) {
			const union number a = tensor_get(&expected[i], k), b = tensor_get(&found[i], k);
			char why[200], first[40], second[40];
			if (a.u == b.u || (is_nan(expected[i].type, a) && is_nan(expected[i].type, b)))
				continue;
			graph_text_number(first, expected[i].type, a);
			graph_text_number(second, expected[i].type, b);
			snprintf(why, sizeof why, "element %llu of output %s is %s (%llx), expected %s (%llx)",
			         (unsigned long long)k, g->output_name[i], second, (unsigned long long)b.u, first,
			         (unsigned long long)a.u);
			say(g, x, what, why);
		}
}

static void check_at(const struct tensor_graph *g, unsigned p, const struct tensor *in, const struct tensor *expected,
                     const char *what)
{
	const void *from[8];
	void *to[OUTPUTS];
	struct tensor found[OUTPUTS];
	struct error err = { 0 };
	struct executable_report r;
	char at[200];
	struct executable *x = executable_open(computes[p], g, &err);

	snprintf(at, sizeof at, "%s on %s %s", what, setups[p].device, setups[p].isa ? setups[p].isa : "");
	if (!x)
		say(g, NULL, at, err.text);
	for (uint32_t i = 0; i < g->inputs; i++)
		from[i] = in[i].data;
	for (uint32_t i = 0; i < g->outputs; i++) {
		assert_true(tensor_make(&found[i], expected[i].type, &expected[i].shape, &err));
		to[i] = found[i].data;
	}
	/* Twice: memory that values share is that of the run before. */
	for (int run = 0; run < 2; run++)
		if (!executable_run(x, from, to, &err))
			say(g, x, at, err.text);
	compare(g, x, expected, found, at);
	executable_get_report(x, &r);
	attentions += attention_groups(x);
	kernels += r.kernels;
	hosted += r.hosted;
	graphs++;
	for (uint32_t i = 0; i < g->outputs; i++)
		tensor_free(&found[i]);
	executable_close(x);
}

typedef void filling(struct tensor *t, int type, const struct shape *s, uint64_t seed);

static void check(const struct tensor_graph *g, uint64_t seed, const char *what, unsigned which, filling *fill)
{
	struct tensor in[8], out[OUTPUTS];
	const struct tensor *operand[8];
	struct error err = { 0 };

	for (uint32_t i = 0; i < g->inputs; i++) {
		fill(&in[i], g->value[g->input[i]].type, &g->value[g->input[i]].shape, seed + i);
		operand[i] = &in[i];
	}
	if (!tensor_graph_eval(g, operand, out, &err))
		say(g, NULL, what, err.text);
	for (unsigned p = 0; p < SETUPS; p++)
		if (computes[p] && (which >> p & 1))
			check_at(g, p, in, out, what);
	for (uint32_t i = 0; i < g->inputs; i++)
		tensor_free(&in[i]);
	for (uint32_t i = 0; i < g->outputs; i++)
		tensor_free(&out[i]);
}

static void test_random(void **state)
{
	const unsigned n = test_full() ? 20000 : test_quick() ? (SANITIZED ? 40 : 120) : 1000;
	const char *seed = getenv("JITRUN_TEST_SEED");
	unsigned loops = 0, equations = 0;
	(void)state;

	for (unsigned i = seed ? (unsigned)atoi(seed) : 0; i < (seed ? (unsigned)atoi(seed) + 1 : n); i++) {
		struct tensor_graph g;
		char what[80];
		random_graph(&g, i, 4 + i % 24);
		for (uint32_t k = 0; k < g.nodes; k++) {
			loops += g.node[k].op == OP_scan;
			equations += g.node[k].op == OP_solve;
		}
		snprintf(what, sizeof what, "JITRUN_TEST_SEED=%u", i);
		/* The CPU always; what simulates in turns. */
		check(&g, i, what, seed ? 63 : 35 | 4u << i % 3, random_tensor);
		tensor_graph_free(&g);
	}
	printf("# %u loops and %u sets of equations in random graphs\n", loops, equations);
	assert_true(seed || (loops >= n / 8 && equations >= n / 32));
}

/* Numbers are small ones, so that no sum is NaN. */
static void test_products(void **state)
{
	const unsigned n = test_full() ? 6000 : test_quick() ? (SANITIZED ? 24 : 80) : 600;
	const char *seed = getenv("JITRUN_TEST_SEED");
	(void)state;

	for (unsigned i = seed ? (unsigned)atoi(seed) : 0; i < (seed ? (unsigned)atoi(seed) + 1 : n); i++) {
		struct tensor_graph g;
		char what[80];
		(i % 2 ? conv_graph : product_graph)(&g, i);
		snprintf(what, sizeof what, "JITRUN_TEST_SEED=%u, a product", i);
		check(&g, i, what, seed ? 63 : 35 | (i % 8 == 0 ? 4u << i / 8 % 3 : 0), smooth_tensor);
		tensor_graph_free(&g);
	}
}

/* Where a head has few queries, products are computed by themselves. */
static void test_attention(void **state)
{
	const unsigned n = test_full() ? 4000 : test_quick() ? (SANITIZED ? 16 : 60) : 500;
	const char *seed = getenv("JITRUN_TEST_SEED");
	(void)state;

	for (unsigned i = seed ? (unsigned)atoi(seed) : 0; i < (seed ? (unsigned)atoi(seed) + 1 : n); i++) {
		const uint32_t runs = graphs, before = attentions;
		struct tensor_graph g;
		char what[80];
		enum together together;
		attention_graph(&g, i, &together);
		snprintf(what, sizeof what, "JITRUN_TEST_SEED=%u, attention", i);
		check(&g, i, what, seed ? 63 : 35 | (i % 3 == 0 ? 4u << i / 3 % 3 : 0), smooth_tensor);
		if (together != TOGETHER_PERHAPS &&
		    attentions - before != (together == TOGETHER_ALWAYS ? graphs - runs : 0))
			say(&g, NULL, what, "it is not one kernel");
		tensor_graph_free(&g);
	}
}

/* What random graphs seldom draw: each line says which mistake it would show. */
static const char *const texts[] = {
	/* A product of narrow elements that is not rounded before it is added. */
	"input x f16[70]\na = mul x x\nb = add a x\nc = sub b a\noutput c\n",
	"input x u8[70]\na = mul x x\nb = div a x\noutput b\n",
	/* The same bytes read as two types by one kernel. */
	"input x f32[33]\na = bitcast x type=i32\nb = abs x\nc = bitcast b type=i32\nd = sub a c\noutput d\n",
	"input x i16[33]\na = bitcast x type=u16\nb = convert a type=i32\nc = convert x type=i32\nd = sub b c\n"
	"output d\n",
	/* Nodes that differ in the name of an attribute alone. */
	"input x f32[1,1,7]\nw = constant f32[1,1,3] 1 2 3\na = conv x w low=[1]\nb = conv x w high=[1]\n"
	"c = sub a b\noutput c\n",
	/* Random words whose sets have keys of their own, read by another position. */
	"input k u32[2,4]\nb = random_bits k shape=[3,7]\nt = transpose b axes=[2,0,1]\noutput b\noutput t\n",
	"input k u32[4]\nb = random_bits k shape=[37]\nc = convert b type=f32\ns = reduce_sum c axes=[0]\n"
	"output s\n",
	"input k u32[4]\nb = random_bits k shape=[]\nc = random_bits k shape=[0]\noutput b\noutput c\n",
	"input x f16[70]\ninput s f16[70]\ninput a f16[70]\ninput b f16[70]\ny = fake_quantise x s a b\n"
	"z = add y x\noutput z\n",
	/* A part that all lanes take, and another one in it that some take. */
	"input x f32[3,4]\ninput y f32[3,0]\na = neg x\nb = concatenate x a axis=1\n"
	"c = concatenate b y axis=1\nd = neg c\noutput d\n",
	/* A user's kernel that leaves elements out, with memory that others used before. */
	"input x f32[6]\na = cumsum x axis=0\nb = cumsum a axis=0\n"
	"y, c, z = kernel b a source=\"kernel k(out f32 y[6], in f32 x[6], out i32 c[4], in f32 w[6], out f32 "
	"z[6]) over (i in 3) { y[2 * i] = x[i] + w[i]; c[i] = i32(i); z[i] = x[2 * i]; }\"\nd = add y z\n"
	"output d\noutput c\n",
	"input x f32[0]\ny, z = kernel x constants=\"n=0\" source=\"const i64 n; tune b in {32, 64};\\nkernel "
	"k(in "
	"f32 x[n], out f32 y[n], out f32 z[3]) over (i in n) block(b) { y[i] = x[i]; }\"\noutput y\noutput z\n",
	/* One constant that several products of one shape have. */
	"input x f32[4,4]\nw = constant f32[4,4] 1 2 -1 0.5 3 -2 0.25 1 -1 1.5 2 -3 0.5 0.75 -2 1\n"
	"a = dot x w left=[1] right=[0]\nb = dot a w left=[1] right=[0]\nc = dot w b left=[1] right=[0]\n"
	"output b\noutput c\n",
	/* Convolutions of lines that are cut, and of small images with steps, whose lanes are channels. */
	"input x f32[1,2,3,280]\ninput w f32[17,2,2,3]\ny = conv x w low=[1,1] high=[1,1]\noutput y\n",
	"input x f32[2,16,7,35]\ninput w f32[64,8,3,3]\ny = conv x w strides=[2,2] low=[1,1] high=[1,1] groups=2\n"
	"output y\n",
	/* Rows of softmax and of a norm, and a row whose sum others read, too. */
	"input x f32[5,7,70]\nm = reduce_max x axes=[2]\n"
	"mb = broadcast m shape=[5,7,70] axes=[0,1]\nd = sub x mb\ne = exp d\n"
	"s = reduce_sum e axes=[2]\nsb = broadcast s shape=[5,7,70] axes=[0,1]\ny = div e sb\n"
	"output y\n",
	"input x f32[5,7,70]\ninput g f32[70]\ninput b f32[70]\nm = reduce_sum x axes=[2]\n"
	"n = constant f32[] 0.0142857\nnb = broadcast n shape=[5,7] axes=[]\nmean = mul m nb\n"
	"m1 = reshape mean shape=[5,7,1]\nmb = broadcast m1 shape=[5,7,70] axes=[0,1,2]\n"
	"d = sub x mb\nq = mul d d\nv = reduce_sum q axes=[2]\nvar = mul v nb\n"
	"eps = constant f32[] 0.00001\neb = broadcast eps shape=[5,7] axes=[]\nve = add var eb\n"
	"f = rsqrt ve\nfb = broadcast f shape=[5,7,70] axes=[0,1]\nz = mul d fb\n"
	"gb = broadcast g shape=[5,7,70] axes=[2]\nbb = broadcast b shape=[5,7,70] axes=[2]\n"
	"zg = mul z gb\ny = add zg bb\noutput y\n",
	/* A norm over groups of channels, whose result has another shape, and one over two dimensions. */
	"input x f32[4,8,7,9]\ninput g f32[8]\nr = reshape x shape=[4,2,252]\ns = reduce_sum r axes=[2]\n"
	"sb = broadcast s shape=[4,2,252] axes=[0,1]\nc = sub r sb\nq = mul c c\nv = reduce_sum q axes=[2]\n"
	"f = rsqrt v\nfb = broadcast f shape=[4,2,252] axes=[0,1]\nz = mul c fb\n"
	"zz = reshape z shape=[4,8,7,9]\ngb = broadcast g shape=[4,8,7,9] axes=[1]\no = mul zz gb\noutput o\n",
	"input x f32[5,3,7,9]\ninput g f32[3,9]\nm = reduce_max x axes=[2,3]\n"
	"mb = broadcast m shape=[5,3,7,9] axes=[0,1]\nd = sub x mb\ne = exp d\ns = reduce_sum e axes=[2,3]\n"
	"sb = broadcast s shape=[5,3,7,9] axes=[0,1]\nz = div e sb\ngb = broadcast g shape=[5,3,7,9] axes=[1,3]\n"
	"y = mul z gb\noutput y\n",
	"input x f32[3,33]\nm = reduce_max x axes=[1]\nmb = broadcast m shape=[3,33] axes=[0]\n"
	"d = sub x mb\ne = exp d\ns = reduce_sum e axes=[1]\n"
	"sb = broadcast s shape=[3,33] axes=[0]\ny = div e sb\nz = mul sb d\nu = neg s\noutput y\n"
	"output z\noutput u\n",
	/* Parts of a sum, in rows and in columns. */
	"input x f32[2500,9]\na = reduce_sum x axes=[0]\nb = reduce_max x axes=[0]\noutput a\noutput b\n",
	"input x f32[3,2500]\na = reduce_sum x axes=[1]\nb = reduce_min x axes=[1]\noutput a\noutput b\n",
	/* Operands that are made as parts of a concatenation: one that others read, too, one in another shape, one that
	 * stands in two of them, one that is not made here, a concatenation in another one, parts that a product reads
	 * beyond their ends, and one that does not begin where memory is aligned. */
	"input x f32[4,16]\na = cumsum x axis=1\nb = neg a\nc = cumsum b axis=0\nr = reshape c shape=[2,32]\n"
	"p = reshape a shape=[2,32]\nj = concatenate p r axis=0\nk = concatenate r p axis=0\nl = add j k\n"
	"m = concatenate x a axis=0\nn = concatenate j l axis=0\no = cumsum n axis=0\ns = add a c\noutput j\n"
	"output l\noutput m\noutput o\noutput s\noutput n\n",
	"input x f32[3,4,4]\ninput w f32[5,4]\na = cumsum x axis=1\nb = cumsum x axis=2\nf = reshape a shape=[48]\n"
	"h = reshape b shape=[48]\nj = concatenate f h axis=0\ns = reduce_sum j axes=[0]\n"
	"t = dot a w left=[2] right=[1]\nu = dot b w left=[2] right=[1]\nq = concatenate t u axis=0\noutput s\n"
	"output q\noutput j\n",
	"input x f16[3]\na = cumsum x axis=0\nb = cumprod x axis=0\nc = concatenate a b axis=0\noutput c\n",
	/* Partial results of 8 bytes for each lane of a card, of what no array has. */
	"c = constant i64[] -3\ne = broadcast c shape=[13] axes=[]\nr = reduce_sum e axes=[]\noutput r\n",
	/* A kernel that writes all, in memory that others used before. */
	"input x f32[70]\na = cumsum x axis=0\ny = kernel a whole=1 source=\"kernel k(in f32 x[70], out f32 y[70]) "
	"over (i "
	"in 70) { y[69 - i] = x[i]; }\"\nd = add y a\noutput d\n",
	/* Loops: carried values that change places and are given on reshaped, a slice that is what is carried,
	 * a constant, and no iterations. */
	"input a f32[2,3]\ninput b f32[2,3]\ninput x f32[5,3]\nn = neg a\ns, t, u, y, z, c = scan n b b x "
	"carried=3 "
	"stacked=1 reverse=1 body=\"input a f32[2,3]\\ninput b f32[2,3]\\ninput c f32[2,3]\\ninput x f32[3]\\n"
	"r = reshape a shape=[6]\\nr = reshape r shape=[2,3]\\nw = broadcast x shape=[2,3] axes=[1]\\n"
	"s = add c w\\nk = constant i16[3] 1 2 -3\\noutput b\\noutput r\\noutput s\\noutput a\\noutput x\\n"
	"output k\\n\"\nm = mul s t\noutput m\noutput t\noutput u\noutput y\noutput z\noutput c\n",
	"input a f16[7]\ninput x bool[0,7]\ns, y = scan a x carried=1 stacked=1 body=\"input a f16[7]\\n"
	"input x bool[7]\\nb = neg a\\noutput b\\noutput x\\n\"\noutput s\noutput y\n",
	"input a f32[0]\ninput b u8[3]\ns, t, y = scan a b carried=2 length=4 body=\"input a f32[0]\\ninput b "
	"u8[3]\\n"
	"c = mul b b\\noutput a\\noutput c\\noutput b\\n\"\noutput s\noutput t\noutput y\n",
	/* A loop in a loop, whose result is a constant's kernel too, and what no iteration changes. */
	"input x f32[4,3,5]\ninput w f32[5,5]\ny = scan x w stacked=1 body=\"input x f32[3,5]\\ninput w "
	"f32[5,5]\\n"
	"z = constant f32[] 0.5\\nc = broadcast z shape=[5] axes=[]\\ne, f = scan c x w carried=1 stacked=1 "
	"body=\\\"input c f32[5]\\\\ninput x f32[5]\\\\ninput w f32[5,5]\\\\nd = dot c w left=[0] "
	"right=[0]\\\\n"
	"s = add d x\\\\nt = tanh s\\\\ni, j = sort t x axis=0\\\\noutput i\\\\noutput j\\\\n\\\"\\noutput "
	"f\\n\"\n"
	"output y\n",
	/* Equations: pivots, several right sides, narrow floats, a singular matrix, and none. */
	"input a f32[3,7,7]\ninput b f32[3,7,2]\nx = solve a b\noutput x\n",
	"input a f16[2,5,5]\ninput b f16[2,5,1]\nx = solve a b\noutput x\n",
	"input b f64[4,3]\na = constant f64[4,4] 0 2 3 1 0 1 1 1 4 0 0 2 -4 1 0 0\nx = solve a b\noutput x\n",
	"input b f32[2,1]\na = constant f32[2,2] 1 2 2 4\nx = solve a b\noutput x\n",
	"input a f32[1,1]\ninput b f32[1,33]\ninput c f32[0,0]\ninput d f32[0,3]\nx = solve a b\ny = solve c "
	"d\n"
	"output x\noutput y\n",
};

static void test_chosen(void **state)
{
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct tensor_graph g;
		struct error err = { 0 };
		char what[40];
		if (!graph_text_read(&g, "chosen", texts[i], strlen(texts[i]), NULL, 0, &err))
			fail_msg("%s", err.text);
		snprintf(what, sizeof what, "chosen graph %zu", i);
		check(&g, i + 100, what, 63, random_tensor);
		tensor_graph_free(&g);
	}
}

static void check_swept(const char *text, unsigned number)
{
	struct tensor_graph g;
	struct error err = { 0 };
	char what[40];
	const uint32_t before = hosted;

	if (!graph_text_read(&g, "swept", text, strlen(text), NULL, 0, &err))
		fail_msg("%s\n%s", err.text, text);
	snprintf(what, sizeof what, "swept graph %u", number);
	check(&g, number + 7, what, test_quick() ? 1 | 2u << number % 4 : 63, random_tensor);
	if (hosted != before)
		say(&g, NULL, what, "a group has no kernel");
	tensor_graph_free(&g);
}

/* What has kernels of its own kind is nowhere interpreted on the host. */
static void test_swept(void **state)
{
	(void)state;
	swept_cases(check_swept, test_quick());
}

static uint32_t draw(uint32_t n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % n);
}

/* Packed weights of every format, beside the formats in plain C. scaled: as files have them; else any bytes, which are
 * infinite and too small for normal numbers, too. */
static void check_weights(enum dtype type, unsigned which, bool scaled)
{
	enum { ROWS = 3, BLOCKS = 2 };
	const struct dtype_facts *f = &dtype_table[type];
	struct plain_matrix m = { .type = type, .rows = ROWS, .k = (uint32_t)BLOCKS * f->block };
	struct tensor_graph g;
	struct tensor in[2], out[2];
	struct error err = { 0 };
	char text[400];

	snprintf(text, sizeof text,
	         "input w u8[%d,%d]\ninput x f32[5,%u]\nf = dequantise w format=%s\n"
	         "y = dot x f left=[1] right=[1]\noutput f\noutput y\n",
	         ROWS, f->row + BLOCKS * f->bytes, m.k, f->name);
	if (!graph_text_read(&g, f->name, text, strlen(text), NULL, 0, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < 2; i++)
		random_tensor(&in[i], g.value[g.input[i]].type, &g.value[g.input[i]].shape, type * 2 + i);
	if (scaled && f->block > 1)
		for (uint32_t r = 0; r < ROWS; r++)
			plain_random_row((uint8_t *)in[0].data + plain_row_bytes(&m) * r, type, m.k, draw);
	if (!tensor_graph_eval(&g, (const struct tensor *[]){ &in[0], &in[1] }, out, &err))
		fail_msg("%s", err.text);
	m.data = in[0].data;
	for (uint32_t r = 0; r < ROWS && (scaled || f->block == 1); r++)
		for (uint32_t k = 0; k < m.k; k++) {
			const float expected = plain_weight(&m, r, k),
				    found = ((const float *)out[0].data)[r * m.k + k];
			if (memcmp(&expected, &found, 4) != 0 && !(isnan(expected) && isnan(found)))
				fail_msg("%s: weight %u of row %u is %g, expected %g", f->name, k, r, (double)found,
				         (double)expected);
		}
	for (unsigned p = 0; p < SETUPS; p++)
		if (computes[p] && (which >> p & 1))
			check_at(&g, p, in, out, f->name);
	for (uint32_t i = 0; i < 2; i++) {
		tensor_free(&in[i]);
		tensor_free(&out[i]);
	}
	tensor_graph_free(&g);
}

static void test_weights(void **state)
{
	enum dtype type[DTYPE_COUNT];
	const unsigned n = weight_types_all(type);
	(void)state;

	assert_true(n >= 37);
	for (unsigned i = 0; i < n; i++) {
		check_weights(type[i], test_quick() ? 33 | 2u << i % 4 : 63, true);
		check_weights(type[i], test_quick() ? 33 | 2u << (i + 2) % 4 : 63, false);
	}
}

/* Packed weights are unpacked where each product begins, so that memory holds them once, and the bits are the same. */
static void test_unpacked_again(void **state)
{
	static const char text[] =
		"input x f32[4,64]\ninput w u8[256,68]\ninput v u8[256,68]\n"
		"f = dequantise w format=Q8_0\ng = dequantise v format=Q8_0\n"
		"a = dot x f left=[1] right=[1]\nb = dot x g left=[1] right=[1]\nc = add a b\n"
		"d = dot c f left=[1] right=[0]\ne = dot c g left=[1] right=[0]\ny = add d e\n"
		"z = dot x f left=[1] right=[1]\noutput y\noutput z\n";
	struct tensor_graph g, simple;
	struct error err = { 0 };
	unsigned unpacked = 0, products = 0;
	(void)state;

	assert_true(graph_text_read(&g, "packed", text, strlen(text), NULL, 0, &err));
	tensor_graph_init(&simple);
	assert_true(passes_run_some(&simple, &g, 1u << PASS_WEIGHTS | 1u << PASS_EQUAL, &err));
	for (uint32_t i = 0; i < simple.nodes; i++) {
		unpacked += simple.node[i].op == OP_dequantise;
		products += simple.node[i].op == OP_dot;
	}
	assert_int_equal(products, 4); /* a and z are equal */
	assert_int_equal(unpacked, 4);
	tensor_graph_free(&simple);
	check(&g, 7, "weights that are unpacked for each product", 63, random_tensor);
	tensor_graph_free(&g);
}

/* A graph that does not fit in memory is refused before anything runs: 60 inputs of 6 GB. */
static void test_too_large(void **state)
{
	char text[8000];
	struct tensor_graph g;
	struct error err = { 0 };
	size_t n = 0;
	(void)state;

	for (int i = 0; i < 60; i++)
		n += (size_t)sprintf(text + n, "input x%d f32[1500000000]\ny%d = neg x%d\noutput y%d\n", i, i, i, i);
	assert_true(graph_text_read(&g, "large", text, n, NULL, 0, &err));
	assert_null(executable_open(computes[0], &g, &err));
	assert_int_equal(err.code, ERROR_MEMORY);
	assert_non_null(strstr(err.text, "bytes for values and 0 for constants, and "));
	tensor_graph_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen),  cmocka_unit_test(test_too_large), cmocka_unit_test(test_unpacked_again),
		cmocka_unit_test(test_weights), cmocka_unit_test(test_random),    cmocka_unit_test(test_products),
		cmocka_unit_test(test_swept),   cmocka_unit_test(test_attention)
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
