/* runtime/device/card.h - what simulated and real cards have in common: how a plan becomes a program in a card's
 * memory, and a pass becomes launches of it.
 *
 * Owns: preparing plans, distributing units to workgroups, the three ways to launch, cutting long launches, and what is
 * counted and said of launches. Never touches a card: that is the driver's, a few functions below.
 */
#ifndef RUNTIME_CARD_H
#define RUNTIME_CARD_H

#include "runtime/device/device.h"
#include "runtime/device/program.h"

struct card_stream;

struct card_counters {
	uint64_t passes, launches, commands, barriers; /* barriers: of all workgroups, inside launches */
};

/* A plan that was prepared. */
struct card_plan {
	struct card_plan *next;
	const struct plan *plan;
	uint64_t *args; /* a copy of the plan's, for the card; positions are copied before each run */
	size_t args_bytes;
	struct program program;
	struct rdna_command *commands; /* a copy of the program's, for the card */
	size_t commands_bytes;
	double *seconds; /* predicted, of each command; NULL: nobody predicts */
	uint32_t room;   /* workgroups that live at once */
	/* The driver's, set by its load(): */
	void *code;
	uint32_t vgprs, lds; /* registers of a lane, bytes of LDS of a workgroup */
};

/* What a card does for its streams; between begin() and end() no other stream uses the card. */
struct card_driver {
	void (*begin)(struct card_stream *c);
	void (*end)(struct card_stream *c);
	/* Zeroed memory that the host writes and kernels read. NULL: err. */
	void *(*map)(struct card_stream *c, size_t bytes, const char *name, struct error *err);
	void (*unmap)(struct card_stream *c, void *p, size_t bytes);
	bool (*load)(struct card_stream *c, struct card_plan *p, struct error *err);
	void (*unload)(struct card_stream *c, struct card_plan *p); /* what load() set, if it was called */
	/* Launches commands first .. end-1 and waits for their end. */
	bool (*dispatch)(struct card_stream *c, const struct card_plan *p, size_t first, size_t end, struct error *err);
	/* NULL where there is nothing to do: before a plan's first pass, when all of it lies in place; before each
	 * pass.
	 */
	bool (*ready)(struct card_stream *c, struct card_plan *p, struct error *err);
	bool (*pass)(struct card_stream *c, const struct card_plan *p, struct error *err);
	/* Seconds that an op will take. NULL: launches are never cut. */
	double (*predict)(const struct card_stream *c, const struct card_plan *p, size_t op);
	const char *name; /* "the simulated card" */
};

struct card_stream {
	struct stream stream;
	const struct card_driver *driver;
	struct registry *registry;
	enum stream_launch launch;
	uint32_t units, workgroups; /* units: of the card; workgroups: wanted, 0: as many as live at once */
	struct card_counters counters;
	struct card_plan *plans;
	uint32_t arrivals; /* what the launches' struct rdna_program_sync shows */
};

/* A launch is predicted to take no longer, as a card that also draws a screen must get to that; but one op's unit is
 * never cut. */
#define CARD_LAUNCH_SECONDS 0.05

bool card_prepare(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
bool card_run(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
void card_forget_plan(struct stream *s, struct plan *p);
/* Forgets all plans: for a driver's closing of the stream. */
void card_forget(struct card_stream *c);

/* ---- for drivers */

/* So many workgroups at most from now on; the card must not be working. */
void card_partition(struct card_plan *p, uint32_t workgroups);
/* The arguments of a launch, but for where its sync is and how many polls it has. */
struct rdna_program_args card_launch_args(const struct card_stream *c, const struct card_plan *p, size_t first,
                                          size_t end);
/* What a launch left in its sync: that every barrier completed, and nothing else counted there. False: err; the driver
 * then clears the sync, and the stream counts on from 0. */
bool card_check_sync(struct card_stream *c, const struct card_plan *p, size_t first, size_t end,
                     const struct rdna_program_sync *at, struct error *err);
/* The key of the function that has the byte at this offset from the kernel's entry. NULL: the driver's own code. *from:
 * where the function begins. */
const struct key *card_function_at(const struct card_plan *p, uint64_t offset, uint64_t *from);
/* The first command behind so many completed barriers of a launch. */
size_t card_command_at(const struct card_plan *p, size_t first, size_t end, uint32_t barriers);
/* What that command calls. */
const struct key *card_command_key(const struct card_plan *p, size_t command);

#endif
