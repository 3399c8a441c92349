/* server/http/lanes.h - threads that read requests and begin their answers.
 *
 * The HTTP library's threads have many connections each, and a request can ask for a second of work before its answer
 * begins. So they hand it on to these. There are two lanes: all requests are begun in the quick one, and what turns out
 * to take long goes on in the other, from its beginning.
 *
 * Owns: the threads, the requests that wait for one, and whose turn it is.
 */
#ifndef SERVER_LANES_H
#define SERVER_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum lane { LANE_QUICK, LANE_LONG, LANES };

struct lane_work {
	struct lane_work *next;
	void (*run)(struct lane_work *w); /* which may free it */
	uint64_t key;                     /* of two keys, one that has nothing at work comes first; 0: of none */
};

struct lanes;

/* Threads are started when there is work. NULL: err. */
struct lanes *lanes_open(struct error *err);
/* When everything that was put is done. What comes afterwards is done by the thread that puts it. */
void lanes_finish(struct lanes *all);
void lanes_close(struct lanes *all);

/* Runs it on a thread of the lane; on the calling thread if none can be started or all is finished. */
void lanes_put(struct lanes *all, enum lane lane, struct lane_work *w);

#endif
