/* server/engine/loader.h - which of the server's models are in memory.
 *
 * Owns: the memory that models may take together, the one thread that opens and closes them, and the requests that wait
 * for one. A request holds its model from its first look at it to the end of its answer, and a model that is held
 * stays. Where a model that is asked for finds no room, those that nobody holds leave, the one that was not used for
 * the longest first. Where all are held, the same one takes no new requests until it can leave, so that nobody waits
 * for longer than the answers that run. A model also leaves when it was not held for as long as it may stay, or when
 * that is asked for.
 */
#ifndef SERVER_LOADER_H
#define SERVER_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/engine/batcher.h"
#include "server/engine/models.h"
#include "server/engine/sight.h"
#include "server/request/refusal.h"
#include "server/engine/stream.h"

struct loader_options {
	/* Fills in model, batcher and all else of *m, and bytes: what it takes. False: err, and nothing is open. */
	bool (*open)(struct served *m, jit_error *err);
	void (*close)(struct served *m);
	/* Bytes that it will take, as far as its files say. */
	uint64_t (*estimate)(const struct served *m);
	uint64_t limit; /* bytes of all models; UINT64_MAX: none */
	size_t max;     /* models that are open at once; 0: any number */
	double keep;    /* seconds that a model stays after its last answer; below 0: for good */
	bool stays;     /* no request changes that, nor makes a model leave */
};

struct loader;

/* What a request has of a model: part of the request's own struct, all 0 at first. */
enum lease_state { LEASE_NONE, LEASE_WANTED, LEASE_AWAITED, LEASE_HELD, LEASE_FAILED, LEASE_GONE };
struct lease {
	struct loader *loader;
	struct served *model;
	int state;                    /* of enum lease_state; the loader's lock guards it while it is AWAITED */
	struct answer_stream *stream; /* wakes the request */
	struct refusal refusal;       /* FAILED */
	bool peeks;                   /* it only looks at the model, which is no use that makes it stay longer */
	struct lease *next;           /* of those that wait */
};

/* NULL: err. No model is open yet. */
struct loader *loader_open(struct models *all, const struct loader_options *o, struct error *err);
/* Opens one now, before the thread is there. False: err. */
bool loader_first(struct loader *l, struct served *m, jit_error *err);
/* From now on others are opened as they are asked for. False: err. */
bool loader_start(struct loader *l, struct error *err);
/* Those that wait are refused, and what models compute fails. */
void loader_stop(struct loader *l);
/* When nobody asks any more. */
void loader_close(struct loader *l);

/* Whether the model is there: it is held then, or else WANTED. */
bool lease_take(struct lease *e, struct loader *l, struct served *m);
/* A lease that is WANTED: the model will be opened for it; e->stream ends when that is settled. False: refused. */
bool lease_await(struct lease *e, struct refusal *r);
/* After that: HELD, FAILED with its refusal, or GONE as the client has gone. */
enum lease_state lease_settle(struct lease *e);
/* Whatever state it is in. */
void lease_end(struct lease *e);

/* ---- by request */

/* How long a model stays after its last answer from now on until it has left, as loader_options.keep. */
void loader_keep(struct loader *l, struct served *m, double seconds);
/* The model leaves as soon as nobody holds it, and takes no request before. gives_up: where it is being opened, that
 * ends. False: it is not in memory. */
bool loader_unload(struct loader *l, struct served *m, bool gives_up);
/* From the thread that found a model's device failed: why goes to m->lost, and the model is opened again as soon as
 * nobody holds it; requests wait meanwhile. By loader_options.open it does the first alone. False: that was said
 * before. */
bool loader_move(struct loader *l, struct served *m, const char *why);
/* Whether loader_options.stays: then the two above do nothing. */
bool loader_stays(const struct loader *l);
/* By loader_options.open, while it reads: how many bytes are there of all. False: it shall give up. */
bool loader_progress(struct loader *l, const struct served *m, uint64_t done, uint64_t all);

/* A model that is not in memory, nor wanted: its entry may become another's, and nothing is known of it any more.
 * False: it is. */
bool loader_forget(struct loader *l, struct served *m);

/* ---- for lists and numbers */

enum model_state { MODEL_AWAY, MODEL_LOADING, MODEL_LOADED, MODEL_CLOSING };

/* What one model is at, as of now. */
struct model_status {
	enum model_state state;
	bool failed;    /* the last time it was to be opened */
	double expires; /* seconds until it leaves if nobody asks for it; below 0: it stays */
	uint64_t bytes, loads;
	jit_model_info info;            /* of the last time it was open; all 0: never */
	struct batcher_numbers numbers; /* of all the times that it was open; gauges: of now */
	struct sight_numbers seen;      /* the same of pictures */
	int context;                    /* of the last time it was open */
	jit_error failure;              /* of its device, for good; code JIT_OK: there was none */
	const char *device;             /* of the last time it was open; NULL: never */
	bool moves;                     /* it is on its way to another device */
	char lost[LOST_MAX];            /* how its first device failed; "": it computes there */
	unsigned parallel;              /* answers that it computes together; 0: it is not open */
};
/* How many may be open at once; 0: any number. */
size_t loader_max(const struct loader *l);
void loader_status(struct loader *l, const struct served *m, struct model_status *out);

#endif
