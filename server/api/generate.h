/* server/api/generate.h - handing a request to the batcher. */
#ifndef SERVER_GENERATE_H
#define SERVER_GENERATE_H

#include "server/http/http.h"
#include "server/engine/models.h"
#include "server/engine/task.h"

/* Opens the reply's stream and hands the tasks to the model's batcher, which holds them; x has the reply then. False:
 * refused, and the reply is closed. */
bool generate(struct exchange *x, struct reply *r, const struct served *m, struct task *const *tasks, size_t n);

#endif
