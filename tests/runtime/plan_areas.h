/* tests/runtime/plan_areas.h - a model's weights and a session's memory as addresses alone: each buffer in an area of
 * its own, far from the next, so that an argument of a plan reads as a buffer and an offset into it. Plans over them
 * are looked at and never run. */
#ifndef TESTS_PLAN_AREAS_H
#define TESTS_PLAN_AREAS_H

#include "runtime/plan/live.h"

enum { AREA_BITS = 40, AREA_CONTEXT = 4096 };

enum area {
	AREA_NONE,
	AREA_IDS,
	AREA_COS,
	AREA_SIN,
	AREA_VALUES,
	AREA_LOGITS,
	AREA_GREATEST,
	AREA_RECORDS,
	AREA_DATAFLOW,
	AREA_WEIGHTS,
	AREA_VECTORS,
	AREA_COUNT
};

struct plan_areas {
	struct model model; /* its header alone */
	struct weights weights;
	uint64_t weights_bytes, vectors_bytes;
	const struct target *target;
	bool apart;                /* values have bytes of their own each */
	struct plan_layout layout; /* of the last plan that was built */
};

/* False: err, and plan_areas_close() is still due. */
bool plan_areas_open(struct plan_areas *a, const char *path, struct error *err);
void plan_areas_close(struct plan_areas *a);
/* Weights as this target has them, from now on. */
bool plan_areas_for(struct plan_areas *a, const struct target *target, struct error *err);

/* Buffers for so many tokens, with the values where the areas' layout says; a cache, with pages of their own for layers
 * with a window where there are others, too. */
struct plan_buffers plan_areas_buffers(const struct plan_areas *a, uint32_t tokens);
struct plan_cache plan_areas_cache(const struct plan_areas *a, enum dtype type);
/* Bytes of an area when buffers are for so many tokens. */
uint64_t plan_areas_bytes(const struct plan_areas *a, enum area area, uint32_t tokens);
/* Bytes from that offset of the values to where the form ends that lies there, if they are apart; 0: none begins there
 * or before. */
uint64_t plan_areas_room(const struct plan_areas *a, uint64_t offset);

/* The area of an address, and how far into it; AREA_NONE: it is none. */
enum area plan_areas_at(uint64_t address, uint64_t *offset);
const char *plan_areas_name(enum area area);

/* ---- plans of all sorts that sessions build */

enum { AREA_WIDTHS = 4, AREA_TARGETS = 8, AREA_WAYS = 7 };
extern const uint32_t area_widths[AREA_WIDTHS];
extern const char *const area_targets[AREA_TARGETS];
/* Way number `way` of a pass over so many tokens, by the areas' target; the last way has three sequences. *name: of the
 * way. False: err; *name NULL: there is no such pass. */
bool plan_areas_build(struct plan_areas *a, struct plan *p, unsigned way, uint32_t tokens, const char **name,
                      struct plan_cache *kv, struct error *err);

#endif
