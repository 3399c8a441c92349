/* tests/fuzz/fuzz_graph.c - arbitrary bytes as a graph's text: what is read is written as a text that is read as the
 * same graph, is made simpler by the passes, and is cut into groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/passes.h"
#include "graph/text.h"
#include "runtime/graph/partition.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS_MAX = 4096, CONSTANTS = 0 };

static void need(int condition)
{
	if (!condition)
		abort();
}

static char *written(const struct tensor_graph *g, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	need(f != NULL);
	graph_text_write(g, f, CONSTANTS);
	need(fclose(f) == 0);
	return text;
}

/* Whether the passes, which compute what depends on constants alone, are done in no time. */
static bool is_small(const struct tensor_graph *g)
{
	for (tensor_value v = 1; v < g->values; v++)
		if (shape_elements(&g->value[v].shape) > ELEMENTS_MAX)
			return false;
	for (uint32_t i = 0; i < g->nodes; i++) {
		const struct attribute *window = tensor_node_attribute(&g->node[i], ATTRIBUTE_window);
		for (uint32_t k = 0; window && k < window->n; k++)
			if (window->whole[k] > ELEMENTS_MAX)
				return false;
	}
	return g->nodes < 200;
}

static void look(const struct tensor_graph *g)
{
	struct tensor_graph simple;
	struct partition p;
	struct error err = { 0 };

	tensor_graph_init(&simple);
	if (passes_run(&simple, g, &err)) {
		need(simple.inputs == g->inputs && simple.outputs == g->outputs);
		for (uint32_t i = 0; i < g->outputs; i++) {
			const struct tensor_value_info *a = &g->value[g->output[i]],
						       *b = &simple.value[simple.output[i]];
			need(a->type == b->type && shape_equal(&a->shape, &b->shape));
		}
		for (unsigned lanes = 0; lanes <= 16; lanes += 8) { /* a card, and CPUs */
			need(partition_make(&p, &simple, lanes, &err));
			partition_free(&p);
		}
	}
	tensor_graph_free(&simple);
}

void fuzz_graph(const uint8_t *p, size_t n)
{
	const struct graph_size size = { "n", 3 };
	struct tensor_graph g, again;
	struct error err = { 0 };
	const char *name[4];
	size_t length[4], first_bytes, second_bytes;

	const size_t sizes = graph_text_sizes((const char *)p, n, name, length, 4);
	need(sizes <= 4);
	if (!graph_text_read(&g, "fuzz", (const char *)p, n, &size, sizes > 0, &err)) {
		need(err.text[0]);
		return;
	}
	/* Inputs are written before all nodes, so that values without a name have other numbers when they are read. */
	for (int time = 0; time < 2; time++) {
		char *text = written(&g, &first_bytes);
		if (!graph_text_read(&again, "again", text, first_bytes, NULL, 0, &err))
			abort();
		need(again.values == g.values && again.nodes == g.nodes && again.outputs == g.outputs);
		tensor_graph_free(&g);
		g = again;
		free(text);
	}
	char *first = written(&g, &first_bytes);
	if (!graph_text_read(&again, "again", first, first_bytes, NULL, 0, &err))
		abort();
	char *second = written(&again, &second_bytes);
	need(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
	if (is_small(&g))
		look(&g);
	free(first);
	free(second);
	tensor_graph_free(&g);
	tensor_graph_free(&again);
}

void fuzz_graph_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const texts[] = {
		"graph a\nsize n\ninput x f32[n,4] # rows\ninput w f32[4,2]\nh = dot x w left=[1] right=[0]\n"
		"c = constant f32[] 0.5\nb = broadcast c shape=[n,1*2] axes=[]\nh = mul h b\noutput h as y\n",
		"input x i64[2,3]\na, b = sort x x axis=1 descending=1\nc = convert b type=u8\nd = reshape c "
		"shape=[6]\n"
		"e = slice d start=[1] limit=[5] strides=[2]\noutput e\noutput a\n",
		"input x f64[1,2,5,5]\nw = constant f64[2,1,1,3] 1 nan inf -0 2 3\n"
		"y = conv x w groups=2 strides=[1,2] low=[0,1] high=[1,0]\nz = window_max y window=[2,1]\n"
		"s = reduce_sum z axes=[2,3]\noutput s\n",
		"a = constant bool[2] 1 0\ni = iota type=i32 shape=[2,2] axis=1\nx = constant i32[] 7\n"
		"p = pad i x low=[1,-1] high=[0,2] interior=[0,1]\nt = take p i axis=0\n"
		"r = scatter_along i i i axis=1 mode=add\nn = not a\noutput t\noutput r\noutput n\n"
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		take(user, (const uint8_t *)texts[i], strlen(texts[i]));
}
