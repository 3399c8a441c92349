/* tests/jit/ptx_call.c - see ptx_call.h. */
#include "tests/jit/ptx_call.h"

#include <stdlib.h>
#include <string.h>

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"

struct ptx_card {
	struct device *device;
	const struct cuda_api *api;
	bool real;
	struct random_ir_buffers *there;
};

struct ptx_card *ptx_card_open(uint32_t capability, struct error *err)
{
	struct ptx_card *c = calloc(1, sizeof *c);

	c->real = getenv("JITRUN_TEST_CUDA") != NULL;
	c->api = c->real ? cuda_library(err) : cuda_simulated();
	c->device = c->api ? cuda_open(c->api, c->real || capability < 90 ? 0 : CUDA_SIMULATED_90, err) : NULL;
	if (c->device)
		c->there = c->device->alloc(c->device, sizeof *c->there, DEVICE_BUFFERS, err);
	if (c->there)
		return c;
	ptx_card_close(c);
	return NULL;
}

void ptx_card_close(struct ptx_card *c)
{
	if (c->there)
		c->device->release(c->device, c->there, sizeof *c->there);
	device_close(c->device);
	free(c);
}

bool ptx_card_is_real(const struct ptx_card *c) { return c->real; }

/* The same buffers, whose pointers are right there. */
static void relocate(struct random_ir_buffers *b, const struct random_ir_buffers *from,
                     const struct random_ir_buffers *to)
{
	const uint64_t by = (uint64_t)(uintptr_t)to - (uint64_t)(uintptr_t)from;

	for (unsigned k = 0; k < RANDOM_IR_POINTERS; k++)
		b->pointer[k] += by;
	for (unsigned k = 0; k < 3; k++)
		b->arg[k] += by;
}

static int load(struct ptx_card *c, const struct object *o, void **module, void **function, uint32_t shared)
{
	char *text = malloc(o->code_bytes + 1);

	memcpy(text, o->code, o->code_bytes);
	text[o->code_bytes] = 0;
	int result = c->api->module_load(module, text);
	free(text);
	if (!result)
		result = c->api->module_function(function, *module, PTX_ENTRY);
	if (!result && shared > 48 << 10)
		result = c->api->function_set(*function, CUDA_FUNCTION_SHARED, (int)shared);
	return result;
}

/* Memory is there. */
static bool launch(struct ptx_card *c, const struct object *o, unsigned waves, struct ptx_launch *l, struct error *err)
{
	void *params[] = { &l->arg, &l->begin, &l->per, &l->rest, &l->order, &l->next }, *module = NULL,
	     *function = NULL;
	struct cuda_launch_config config = {
		.grid = { 1, 1, 1 }, .block = { waves * 32, 1, 1 }, .shared_bytes = ptx_shared_bytes(o, waves)
	};
	char text[200];
	int result = load(c, o, &module, &function, config.shared_bytes);

	if (!result)
		result = c->api->launch(&config, function, params, NULL);
	if (!result)
		result = c->api->stream_wait(NULL);
	if (module)
		c->api->module_unload(module);
	return !result || error_set(err, ERROR_DEVICE, "%s", cuda_result_text(c->api, result, text, sizeof text));
}

bool ptx_call(struct ptx_card *c, const struct object *o, unsigned waves, struct random_ir_buffers *b, int64_t begin,
              int64_t end, struct error *err)
{
	struct ptx_launch l = { .arg = (uint64_t)(uintptr_t)c->there->arg,
		                .begin = begin,
		                .per = (uint32_t)(end - begin),
		                .order = PTX_WAIT_FIRST };
	struct cuda *d = (struct cuda *)c->device;

	relocate(b, b, c->there);
	bool ok = cuda_enter(d, err) && d->device.upload(&d->device, c->there, b, sizeof *b, err) &&
	          launch(c, o, waves, &l, err) && d->device.read(&d->device, b, c->there, sizeof *b, err);
	relocate(b, c->there, b);
	return ok;
}

bool ptx_call_block(struct ptx_card *c, const struct object *o, unsigned waves, const struct ptx_block_of *b,
                    int64_t end, struct error *err)
{
	struct device *d = c->device;
	uint8_t *there = cuda_enter((struct cuda *)d, err) ? d->alloc(d, b->bytes, DEVICE_BUFFERS, err) : NULL;
	const uint64_t by = (uint64_t)(uintptr_t)there - (uint64_t)(uintptr_t)b->memory;
	struct ptx_launch l = {
		.arg = (uint64_t)(uintptr_t)b->args + by, .per = (uint32_t)end, .order = PTX_WAIT_FIRST
	};

	if (!there)
		return false;
	for (unsigned i = 0; i < b->n_args; i++)
		b->args[i] += b->numbers >> i & 1 ? 0 : by;
	bool ok = d->upload(d, there, b->memory, b->bytes, err) && launch(c, o, waves, &l, err) &&
	          d->read(d, b->memory, there, b->bytes, err);
	for (unsigned i = 0; i < b->n_args; i++)
		b->args[i] -= b->numbers >> i & 1 ? 0 : by;
	d->release(d, there, b->bytes);
	return ok;
}
