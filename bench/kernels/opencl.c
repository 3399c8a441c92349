/* bench/kernels/opencl.c - the examples as OpenCL kernels (kernels.cl beside this file) on the first device, as a
 * worker of compare.py: pocl on this CPU, where that is installed. Built by compare.py: gcc -O2 opencl.c -lOpenCL.
 * What sums or scans rows is not there: it is one work item's in OpenCL, or another algorithm.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "worker.h"

static struct {
	cl_context context;
	cl_command_queue queue;
	cl_device_id device;
	cl_program program;
	cl_kernel kernel;
	cl_mem buffer[WORKER_ARRAYS];
	size_t size[3];
	cl_uint dims;
} it;

static char *text_of(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);

	if (!f || !text || !fread(text, 1, (1 << 16) - 1, f)) {
		fprintf(stderr, "%s cannot be read\n", path);
		exit(1);
	}
	fclose(f);
	return text;
}

static const char *open_device(const char *path)
{
	cl_platform_id platform;
	cl_int err = clGetPlatformIDs(1, &platform, NULL);
	const char *text = text_of(path);

	if (err || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &it.device, NULL))
		return "there is no OpenCL device";
	it.context = clCreateContext(NULL, 1, &it.device, NULL, NULL, &err);
	it.queue = clCreateCommandQueue(it.context, it.device, 0, &err);
	it.program = clCreateProgramWithSource(it.context, 1, &text, NULL, &err);
	return err || clBuildProgram(it.program, 1, &it.device, "-cl-std=CL1.2", NULL, NULL)
	               ? "it was not built"
	               : NULL;
}

static void close_case(struct worker_case *c)
{
	for (int i = 0; i < c->arrays; i++)
		if (it.buffer[i]) {
			clReleaseMemObject(it.buffer[i]);
			it.buffer[i] = NULL;
		}
	if (it.kernel)
		clReleaseKernel(it.kernel);
	it.kernel = NULL;
}

static void set_size(const struct worker_case *c)
{
	const bool plane = !strcmp(c->name, "mandelbrot") || !strcmp(c->name, "noise"),
		   cube = !strcmp(c->name, "stencil");

	it.dims = plane || !strcmp(c->name, "matmul") ? 2 : cube ? 3 : 1;
	it.size[0] = (size_t)worker_constant(c, plane ? "width" : "n") - (cube ? 8 : 0);
	it.size[1] = plane ? (size_t)worker_constant(c, "height") : cube ? it.size[0] : 0;
	it.size[2] = it.size[0];
	if (!strcmp(c->name, "matmul"))
		it.size[1] = (size_t)worker_constant(c, "m");
}

static const char *open_case(struct worker_case *c)
{
	cl_int err = CL_SUCCESS;
	cl_uint n = 0;

	it.kernel = clCreateKernel(it.program, c->name, &err);
	if (err)
		return "kernels.cl has no such kernel";
	for (int i = 0; !err && i < c->arrays; i++, n++) {
		const struct worker_array *a = &c->array[i];
		const float value = (float)a->value;
		if (worker_is_scalar(a)) {
			err = clSetKernelArg(it.kernel, n, sizeof value, &value);
			continue;
		}
		it.buffer[i] = clCreateBuffer(it.context, CL_MEM_USE_HOST_PTR, a->bytes, a->data, &err);
		if (!err)
			err = clSetKernelArg(it.kernel, n, sizeof it.buffer[i], &it.buffer[i]);
	}
	for (const char *p = c->constants; !err && p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL, n++) {
		const cl_int value = atoi(strchr(p, '=') + 1);
		err = clSetKernelArg(it.kernel, n, sizeof value, &value);
	}
	set_size(c);
	return err ? "OpenCL refused an argument" : NULL;
}

static bool run_case(struct worker_case *c)
{
	(void)c;
	return !clEnqueueNDRangeKernel(it.queue, it.kernel, it.dims, NULL, it.size, NULL, 0, NULL, NULL) &&
	       !clFinish(it.queue);
}

int main(int argc, char **argv)
{
	const struct worker w = { open_case, run_case, NULL, close_case, NULL };
	const char *why = argc == 2 ? open_device(argv[1]) : "usage: opencl KERNELS.cl";

	if (why) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	return worker_main(&w);
}
