/* tests/runtime/abi_kernels.h - the structs of jitrun_kernel.h, jitrun_graph.h and jitrun_train.h for t_abi.c: a call
 * that takes each.
 */
#ifndef TESTS_ABI_KERNELS_H
#define TESTS_ABI_KERNELS_H

#include "include/jitrun_graph.h"
#include "include/jitrun_optimise.h"
#include "include/jitrun_train.h"

static jit_compute *compute;
static jit_kernel *kernel;
static const char kernel_text[] = "kernel add(f32 a, in f32 x[4], out f32 y[4]) over (i in 4) { y[i] = a + x[i]; }";

static int with_compute(void *p, jit_error *err)
{
	jit_compute *c = jit_compute_open(p, err);

	jit_compute_close(c);
	return c ? JIT_OK : err->code;
}

static int with_kernel(void *p, jit_error *err)
{
	jit_kernel *k = jit_kernel_open(compute, p, err);

	jit_kernel_close(k);
	return k ? JIT_OK : err->code;
}

static jit_graph *graph;
static jit_executable *executable;
static const char graph_text[] = "input x f32[4]\ny = neg x\noutput y\n";

static int with_graph(void *p, jit_error *err)
{
	jit_graph *g = jit_graph_open(p, err);

	jit_graph_close(g);
	return g ? JIT_OK : err->code;
}

static int fill_tensor(void *p, jit_error *err) { return jit_graph_input(graph, 0, p, err); }
static int fill_executable(void *p, jit_error *err) { return jit_executable_get_report(executable, p, err); }
static int fill_device(void *p, jit_error *err) { return jit_device_get_info(0, p, err); }
static jit_specialiser *specialiser;
static int fill_special(void *p, jit_error *err) { return jit_specialiser_report(specialiser, 0, p, err); }

static int open_executables(jit_error *err)
{
	static const jit_graph_options o = { .size = sizeof o, .source = "input x f32[4]\ny = neg x\noutput y\n" };

	executable = compute && graph ? jit_executable_open(compute, graph, err) : NULL;
	specialiser = executable ? jit_specialiser_open(compute, &o, err) : NULL;
	return specialiser && jit_specialiser_get(specialiser, "", err);
}

static const double optimise_start[2];
static jit_optimiser *optimiser;
static int open_optimiser(jit_error *err)
{
	optimiser = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = 2, .start = optimise_start, .sigma = 1), err);
	return optimiser != NULL;
}
static int with_optimise(void *p, jit_error *err)
{
	jit_optimiser *o = jit_optimiser_open(p, err);

	jit_optimiser_close(o);
	return o ? JIT_OK : err->code;
}
static int fill_optimise(void *p, jit_error *err) { return jit_optimiser_get_state(optimiser, p, err); }

/* Without a model, so far it got with the struct. */
static int with_train(void *p, jit_error *err)
{
	jit_train *t = jit_train_open(p, err);

	jit_train_close(t);
	return t || strstr(err->message, "model is NULL") == err->message ? JIT_OK : (int)err->code;
}

static jit_train *train;
static int fill_train_tensor(void *p, jit_error *err) { return jit_train_get_tensor(train, 0, p, err); }

static int fill_train_report(void *p, jit_error *err)
{
	static const double steady = 1;
	size_t size;
	int status = jit_train_feed(train, (const int32_t[]){ 1, 2, 3 }, NULL, NULL, 3, err);

	status = status == JIT_OK ? jit_train_evaluate(train, p, err) : status;
	memcpy(&size, p, sizeof size);
	if (status == JIT_OK && size >= offsetof(jit_train_report, seconds) + sizeof steady)
		memcpy((char *)p + offsetof(jit_train_report, seconds), &steady, sizeof steady);
	return status;
}

/* The device is the one that interprets: nothing is measured. */
static int with_work(void *p, jit_error *err) { return jit_device_predict(1, p, &JIT_PREDICTION(), err); }

static int fill_compute(void *p, jit_error *err) { return jit_compute_get_info(compute, p, err); }
static int fill_parameter(void *p, jit_error *err) { return jit_kernel_parameter(kernel, 1, p, err); }
static int fill_report(void *p, jit_error *err) { return jit_kernel_get_report(kernel, p, err); }
static int fill_prediction(void *p, jit_error *err) { return jit_device_predict(1, &JIT_WORK(.bytes = 1), p, err); }

#endif
