/* train/data.h - files of texts and conversations as rows of tokens.
 *
 * Owns: the forms of data that are read, which tokens count, and how texts are put together in rows.
 *
 *   a text            the whole file is one text, cut into rows that overlap by one token
 *   JSON lines        an object each: {"messages": [...]} (also "conversations" with "from" and "value"), of which the
 *                     assistant's turns count; {"prompt", "completion"}, of which the completion counts;
 *                     {"text"}, of which everything counts
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "loaders/model/model.h"

enum data_long { DATA_REFUSE, DATA_CUT, DATA_SKIP };
struct data_options {
	uint32_t context;
	bool apart;                /* a row has one text alone */
	enum data_long too_long;   /* what becomes of conversations that are longer than a row */
	const char *template_text; /* of conversations, instead of the model's own; NULL */
};

struct data_row {
	size_t first, n; /* in the arrays below */
};
struct data {
	int32_t *ids, *texts;
	uint8_t *counts;
	struct data_row *row;
	size_t tokens, token_room, rows, row_room;
	size_t documents, skipped; /* skipped: too long, or without anything that counts */
	uint64_t counted, digest;  /* digest: of all of it */
};

/* Adds a file's rows. False: err, one sentence that names the file and the line; data_free() is due in any case. */
bool data_read(struct data *d, const struct model *m, const char *path, const struct data_options *o,
               struct error *err);
void data_free(struct data *d);
/* Row number i of an endless sequence: epochs, each in an order of its own by seed; shuffled false: as they are. */
size_t data_order(const struct data *d, uint64_t seed, bool shuffled, uint64_t i);

/* ---- between data.c and data_chat.c */

/* A text of n tokens becomes part of a row; counts NULL: all count. line 0: it may be cut anywhere. */
bool data_add(struct data *d, const struct data_options *o, const int32_t *ids, const uint8_t *counts, size_t n,
              const char *path, size_t line, struct error *err);
/* A conversation: its messages as JSON, and tools or NULL. */
bool data_add_chat(struct data *d, const struct model *m, const struct data_options *o, const char *messages,
                   const char *tools, const char *path, size_t line, struct error *err);

#endif
