/* tests/runtime/null_graphs.h - what t_null.c calls functions of jitrun_graph.h with. */
#ifndef TESTS_NULL_GRAPHS_H
#define TESTS_NULL_GRAPHS_H

static const uint64_t dims[] = { 4 };
static uint32_t value;
static float four[4];
static const void *const ins[] = { four };
static void *const outs[] = { four };
static jit_graph *graph;
static jit_executable *executable;
static jit_specialiser *specialiser;

static int drawn(jit_graph *p, const jit_error *err)
{
	jit_graph_close(p);
	return p ? JIT_OK : code(err);
}

static int runnable(jit_executable *p, const jit_error *err)
{
	jit_executable_close(p);
	return p ? JIT_OK : code(err);
}

static int special(jit_specialiser *p, const jit_error *err)
{
	jit_specialiser_close(p);
	return p ? JIT_OK : code(err);
}

static int asked(const jit_executable *p, const jit_error *err) { return p ? JIT_OK : code(err); }

static void open_graphs(jit_compute *c, jit_error *err)
{
	static const jit_graph_options o = { .size = sizeof o, .source = "input x f32[4]\ny = neg x\noutput y\n" };

	graph = jit_graph_open(&o, err);
	executable = c && graph ? jit_executable_open(c, graph, err) : NULL;
	specialiser = executable ? jit_specialiser_open(c, &o, err) : NULL;
}

static void close_graphs(void)
{
	jit_specialiser_close(specialiser);
	jit_executable_close(executable);
	jit_graph_close(graph);
}

#endif
