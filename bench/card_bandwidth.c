/* bench/card_bandwidth.c - see card_bandwidth.h. */
#include "bench/card_bandwidth.h"

#include <stdlib.h>

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"

enum {
	THREADS = 256,
	VECTORS = 8,            /* of 16 bytes, that a thread has under way */
	PART = THREADS * 16,    /* bytes: a vector for each thread */
	BLOCK = VECTORS * PART, /* what a block reads in a turn */
	BYTES = 1 << 30,
	MIN = 512 << 20, /* several times the largest cache of a card */
	SECTIONS = 61,   /* of the memory, each with bytes of its own */
	CALIBRATION = 3
};

struct card_bandwidth {
	struct cuda *card;
	void *module, *function, *queue, *before, *after;
	uint64_t data, sums;
	size_t bytes;
	uint32_t blocks; /* of a multiprocessor */
};

/* clang-format off */
#define LOAD(a, b, c, d, at) "\tld.global.v4.b32 {%r" #a ", %r" #b ", %r" #c ", %r" #d "}, [%d0+" #at "];\n"
#define ADD(to, from) "\tadd.s32 %r" #to ", %r" #to ", %r" #from ";\n"
#define ADDS(a, b, c, d) ADD(4, a) ADD(5, b) ADD(6, c) ADD(7, d)

/* arg: the data; begin: a word for each thread's sum; per: turns; rest: bytes from a thread's turn to its next. */
static const char text[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".visible .entry " PTX_ENTRY "(.param .u64 arg, .param .s64 begin, .param .u32 per, .param .u32 rest, "
	".param .u32 order)\n.maxntid 256, 1, 1\n{\n"
	"\t.reg .b32 %r<40>;\n\t.reg .b64 %d<4>;\n\t.reg .pred %p<1>;\n"
	"\tld.param.u64 %d0, [arg];\n\tld.param.u64 %d1, [begin];\n\tld.param.u32 %r0, [per];\n"
	"\tld.param.u32 %r1, [rest];\n\tcvt.u64.u32 %d2, %r1;\n\tmov.u32 %r2, %tid.x;\n\tmov.u32 %r3, %ctaid.x;\n"
	"\tmul.wide.u32 %d3, %r3, 32768;\n\tadd.s64 %d0, %d0, %d3;\n"
	"\tmul.wide.u32 %d3, %r2, 16;\n\tadd.s64 %d0, %d0, %d3;\n"
	"\tmad.lo.u32 %r3, %r3, 256, %r2;\n\tmul.wide.u32 %d3, %r3, 4;\n\tadd.s64 %d1, %d1, %d3;\n"
	"\tmov.b32 %r4, 0;\n\tmov.b32 %r5, 0;\n\tmov.b32 %r6, 0;\n\tmov.b32 %r7, 0;\n"
	"L0:\n"
	LOAD(8, 9, 10, 11, 0) LOAD(12, 13, 14, 15, 4096) LOAD(16, 17, 18, 19, 8192) LOAD(20, 21, 22, 23, 12288)
	LOAD(24, 25, 26, 27, 16384) LOAD(28, 29, 30, 31, 20480) LOAD(32, 33, 34, 35, 24576)
	LOAD(36, 37, 38, 39, 28672)
	ADDS(8, 9, 10, 11) ADDS(12, 13, 14, 15) ADDS(16, 17, 18, 19) ADDS(20, 21, 22, 23)
	ADDS(24, 25, 26, 27) ADDS(28, 29, 30, 31) ADDS(32, 33, 34, 35) ADDS(36, 37, 38, 39)
	"\tadd.s64 %d0, %d0, %d2;\n\tadd.s32 %r0, %r0, -1;\n\tsetp.gt.s32 %p0, %r0, 0;\n\t@%p0 bra.uni L0;\n"
	ADD(4, 5) ADD(6, 7) ADD(4, 6)
	"\tst.global.b32 [%d1], %r4;\n\tret;\n}\n";
/* clang-format on */

static uint32_t grid_of(const struct card_bandwidth *b) { return b->blocks * b->card->units; }
static uint32_t iterations_of(const struct card_bandwidth *b) { return (uint32_t)(b->bytes / BLOCK / grid_of(b)); }
static size_t read_bytes(const struct card_bandwidth *b) { return (size_t)iterations_of(b) * grid_of(b) * BLOCK; }
static size_t section_at(const struct card_bandwidth *b, unsigned section)
{
	return b->bytes / SECTIONS * section / 4 * 4;
}

/* ---- what is read: each section is full of one byte, its number */

static int fill(const struct card_bandwidth *b)
{
	int result = 0;

	for (unsigned k = 0; !result && k < SECTIONS; k++) {
		size_t at = section_at(b, k), end = k + 1 < SECTIONS ? section_at(b, k + 1) : b->bytes;
		result = b->card->api->set_bytes(b->data + at, (uint8_t)(k + 1), end - at);
	}
	return result ? result : b->card->api->stream_wait(NULL); /* our queue waits for no other */
}

/* The sum of all words of the first so many bytes. */
static uint32_t sum_of(const struct card_bandwidth *b, size_t bytes)
{
	uint32_t sum = 0;

	for (unsigned k = 0; k < SECTIONS; k++) {
		size_t at = section_at(b, k), end = k + 1 < SECTIONS ? section_at(b, k + 1) : b->bytes;
		if (at < bytes)
			sum += (uint32_t)(((end < bytes ? end : bytes) - at) / 4) * 0x01010101u * (k + 1);
	}
	return sum;
}

/* ---- reading */

static int launch(struct card_bandwidth *b)
{
	uint64_t data = b->data, sums = b->sums;
	uint32_t iterations = iterations_of(b), stride = grid_of(b) * BLOCK, order = 0;
	void *params[] = { &data, &sums, &iterations, &stride, &order };
	const struct cuda_launch_config config = {
		.grid = { grid_of(b), 1, 1 }, .block = { THREADS, 1, 1 }, .stream = b->queue
	};

	return b->card->api->launch(&config, b->function, params, NULL);
}

/* Bytes a second, of cards as fast as the first one; 0: *result. */
static double read_once(struct card_bandwidth *b, int *result)
{
	const struct cuda_api *api = b->card->api;
	float milliseconds = 0;

	*result = api->event_record(b->before, b->queue, 0);
	if (!*result)
		*result = launch(b);
	if (!*result)
		*result = api->event_record(b->after, b->queue, 0);
	if (!*result)
		*result = api->stream_wait(b->queue);
	if (!*result)
		*result = api->event_elapsed(&milliseconds, b->before, b->after);
	return *result ? 0
	               : (double)(b->card->cards * read_bytes(b)) /
	                         (milliseconds > 0 ? 1e-3 * (double)milliseconds : 1e-6);
}

double card_bandwidth_sample(struct card_bandwidth *b, int times, struct error *err)
{
	double best = 0;
	int result = 0;

	if (!cuda_enter(b->card, err))
		return 0;
	for (int i = 0; !result && i < times; i++) {
		double rate = read_once(b, &result);
		best = rate > best ? rate : best;
	}
	if (!result)
		return best;
	cuda_died(b->card, result, "measuring its read bandwidth", err);
	return 0;
}

/* Whether the sums are those of what should have been read. */
static bool check(struct card_bandwidth *b, struct error *err)
{
	const size_t n = (size_t)grid_of(b) * THREADS;
	uint32_t *sums = malloc(n * sizeof *sums), sum = 0;
	struct device *d = &b->card->device;

	if (!sums)
		return error_set(err, ERROR_MEMORY, "no memory for the sums of %zu threads", n);
	bool ok = d->read(d, sums, (const void *)(uintptr_t)b->sums, n * sizeof *sums, err);
	for (size_t i = 0; ok && i < n; i++)
		sum += sums[i];
	free(sums);
	if (ok && sum != sum_of(b, read_bytes(b)))
		ok = error_set(err, ERROR_DEVICE,
		               "%s: what was read to measure its bandwidth adds to %08x, expected %08x", b->card->name,
		               sum, sum_of(b, read_bytes(b)));
	return ok;
}

/* How many blocks a multiprocessor should have: what reads fastest. */
static bool calibrate(struct card_bandwidth *b, struct error *err)
{
	static const uint32_t blocks[] = { 1, 2, 4, 8 };
	uint32_t fastest = 0;
	double best = 0;

	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		b->blocks = blocks[i];
		if (!iterations_of(b))
			break;
		double rate = card_bandwidth_sample(b, CALIBRATION, err);
		if (rate <= 0 || !check(b, err))
			return false;
		fastest = rate > best ? b->blocks : fastest;
		best = rate > best ? rate : best;
	}
	b->blocks = fastest;
	return best > 0 ||
	       error_set(err, ERROR_ARGUMENT, "%zu bytes are too few to measure %s", b->bytes, b->card->name);
}

/* ---- opening */

static bool prepare(struct card_bandwidth *b, struct error *err)
{
	const struct cuda_api *api = b->card->api;
	int result = api->module_load(&b->module, text);

	if (!result)
		result = api->module_function(&b->function, b->module, PTX_ENTRY);
	if (!result)
		result = api->stream_create(&b->queue, CUDA_STREAM_APART);
	if (!result)
		result = api->event_create(&b->before, 0);
	if (!result)
		result = api->event_create(&b->after, 0);
	if (!result)
		result = fill(b);
	return !result || cuda_failed(b->card, result, "preparing to measure its read bandwidth", err);
}

/* As much of the card's free memory as makes sense. */
static bool find_bytes(struct card_bandwidth *b, struct error *err)
{
	size_t left = 0, all = 0;
	int result = b->card->api->memory_info(&left, &all);

	if (result)
		return cuda_failed(b->card, result, "asking for free memory", err);
	b->bytes = left / 2 < BYTES ? left / 2 / BLOCK * BLOCK : BYTES;
	return b->bytes >= MIN ||
	       error_set(err, ERROR_MEMORY, "%s has %zu MiB of memory left, too little to measure how fast it is read",
	                 b->card->name, left >> 20);
}

struct card_bandwidth *card_bandwidth_open(struct device *device, size_t bytes, struct error *err)
{
	struct card_bandwidth *b = calloc(1, sizeof *b);

	if (!b) {
		error_set(err, ERROR_MEMORY, "no memory to measure a card with");
		return NULL;
	}
	b->card = (struct cuda *)device;
	b->bytes = bytes;
	b->blocks = 8; /* the most of calibrate() */
	bool ok = cuda_enter(b->card, err) && (bytes || find_bytes(b, err));
	if (ok)
		b->data = (uint64_t)(uintptr_t)device->alloc(device, b->bytes, DEVICE_BUFFERS, err);
	if (ok && b->data)
		b->sums = (uint64_t)(uintptr_t)device->alloc(device, (size_t)grid_of(b) * THREADS * 4, DEVICE_BUFFERS,
		                                             err);
	if (ok && b->sums && prepare(b, err) && calibrate(b, err))
		return b;
	card_bandwidth_close(b);
	return NULL;
}

void card_bandwidth_close(struct card_bandwidth *b)
{
	if (!b)
		return;
	struct device *d = &b->card->device;
	cuda_enter(b->card, NULL); /* and if not: what can be given back is */
	if (b->after)
		b->card->api->event_destroy(b->after);
	if (b->before)
		b->card->api->event_destroy(b->before);
	if (b->queue)
		b->card->api->stream_destroy(b->queue);
	if (b->module)
		b->card->api->module_unload(b->module);
	d->release(d, (void *)(uintptr_t)b->sums, 0);
	d->release(d, (void *)(uintptr_t)b->data, b->bytes);
	free(b);
}

unsigned card_bandwidth_cards(const struct card_bandwidth *b) { return b->card->cards; }
unsigned card_bandwidth_blocks(const struct card_bandwidth *b) { return b->blocks; }
