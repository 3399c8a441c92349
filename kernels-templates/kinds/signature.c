/* kernels-templates/kinds/signature.c - the table of what kernels read and write: the rows of signature.def, compiled.
 *
 * Owns: the words that the rows are written in. Each row becomes a function of the key, the slots' values and the unit.
 */
#include "kernels-templates/signature.h"

#include <assert.h>
#include <string.h>

#include "kernels-templates/kinds/signature_spans.h"

enum { ARGS_MAX = 24 };

static uint32_t dataflow(const struct key *k, uint32_t access)
{
	return access && has(k, KEY_AWAITED) ? access | KERNEL_DATAFLOW : access;
}


static void put_spans(struct kernel_use *use, struct spans spans) { memcpy(use->span, spans.s, sizeof use->span); }

#define VALUE KERNEL_VALUE
#define READ KERNEL_READ
#define WRITE KERNEL_WRITE
#define UPDATE KERNEL_UPDATE
#define SOME KERNEL_SOME
#define DATAFLOW(access) dataflow(k, access)
#define IF(c, access) ((c) ? (access) : 0u)
#define HAS(flag) has(k, KEY_##flag)
#define IS_INT8 is_int8(k)
#define HAS_HALVES (k->numerics == NUMERICS_BOUNDED)
#define IS_NARROW is_narrow(k)
#define GROUPED (has(k, KEY_EXPERTS) && k->tile_n > 1)
#define ACTIVATION activation_type(k)

#define F32 KERNEL_F32
#define HALF KERNEL_HALF
#define I32 KERNEL_I32
#define INT8 KERNEL_INT8
#define BLOCK KERNEL_BLOCK
#define GROUP KERNEL_GROUP
#define ADDRESS KERNEL_ADDRESS
#define WEIGHT KERNEL_WEIGHT
#define CACHED KERNEL_CACHED
#define COUNT KERNEL_COUNT

#define SCALAR KERNEL_SCALAR
#define COLUMNS KERNEL_COLUMNS
#define TILES KERNEL_TILES
#define POSITION KERNEL_POSITION
#define VECTOR KERNEL_VECTOR
#define ROWS KERNEL_ROWS
#define PANELS KERNEL_PANELS
#define PACKED KERNEL_PACKED
#define STACK KERNEL_STACK
#define PICKED KERNEL_PICKED
#define TABLE KERNEL_TABLE
#define PAGES KERNEL_PAGES
#define RECORDS KERNEL_RECORDS
#define STATE KERNEL_STATE
#define ROUTES KERNEL_ROUTES

#define AT(at, bytes) one(at, bytes, 1, 0)
#define EACH(at, bytes, count, stride) one(at, bytes, count, stride)
#define NOWHERE one(0, 0, 0, 0)

/* a NULL: how the slot is used, without the bytes. */
#define ARG(kind, slot, access_, type_, layout_, span_, meaning) \
	static struct kernel_use use_##kind##_##slot(const struct key *k, const uint64_t *a, uint64_t u) \
	{ \
		struct kernel_use use = { access_, (uint8_t)(type_), (uint8_t)(layout_), { { 0, 0, 0, 0 } } }; \
		if (a && use.access & KERNEL_UPDATE) /* else the key may lack what a span divides by */ \
			put_spans(&use, span_); \
		return use; \
	}
#include "kernels-templates/kinds/signature.def"
#undef ARG

static const struct kernel_arg args[KEY_KIND_COUNT][ARGS_MAX] = {
#define ARG(kind, slot, access_, type_, layout_, span_, meaning) \
	[KEY_##kind][kind##_##slot] = { #slot, meaning, use_##kind##_##slot },
#include "kernels-templates/kinds/signature.def"
#undef ARG
};

/* ---- questions */

const struct kernel_arg *kernel_arg(const struct key *key, unsigned slot)
{
	const struct kernel_arg *arg = &args[key->kind][slot];

	assert(slot < template_args(key) && slot < ARGS_MAX && arg->use);
	return arg;
}

struct kernel_use kernel_unit(const struct key *key, const uint64_t *arg, unsigned slot, int64_t unit)
{
	return kernel_arg(key, slot)->use(key, arg, (uint64_t)unit);
}

struct kernel_use kernel_use(const struct key *key, unsigned slot) { return kernel_arg(key, slot)->use(key, NULL, 0); }

struct kernel_extent kernel_extent(const struct key *key, const uint64_t *arg, unsigned slot, int64_t begin,
                                   int64_t end)
{
	struct kernel_extent e = { UINT64_MAX, 0 };

	for (int64_t u = begin; u < end; u++) {
		const struct kernel_use use = kernel_unit(key, arg, slot, u);
		for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
			const struct kernel_span *s = &use.span[i];
			const uint64_t last = s->at + (s->count > 1 ? (s->count - 1) * s->stride : 0) + s->bytes;
			const bool some = s->count || use.access & KERNEL_SOME;
			e.begin = some && s->at < e.begin ? s->at : e.begin;
			e.end = some && last > e.end ? last : e.end;
		}
	}
	return e.begin < e.end ? e : (struct kernel_extent){ 0, 0 };
}

unsigned kernel_slot(const struct key *key, enum kernel_layout layout)
{
	const unsigned n = template_args(key);
	unsigned slot = 0;

	while (slot < n && !(kernel_use(key, slot).layout == layout && kernel_use(key, slot).access))
		slot++;
	return slot;
}

uint64_t kernel_columns(const struct key *key, const uint64_t *arg, uint64_t pass)
{
	const unsigned slot = kernel_slot(key, KERNEL_COLUMNS);

	return slot < template_args(key) ? arg[slot] : pass;
}

unsigned kernel_type_bytes(enum kernel_type type)
{
	static const uint8_t bytes[KERNEL_TYPES] = {
		[KERNEL_F32] = 4,
		[KERNEL_HALF] = 2,
		[KERNEL_I32] = 4,
		[KERNEL_INT8] = 1,
		[KERNEL_BLOCK] = sizeof(struct activation_block),
		[KERNEL_GROUP] = sizeof(struct route_group),
		[KERNEL_ADDRESS] = 8
	};
	return bytes[type];
}
