/* tests/loaders/st_writer.c - see st_writer.h. */
#include "tests/loaders/st_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void text(struct bytes *b, const char *s) { bytes_put(b, s, strlen(s)); }

void st_writer_start(struct st_writer *w)
{
	memset(w, 0, sizeof *w);
	text(&w->header, "{\"__metadata__\":{\"format\":\"pt\"}");
}

void st_write_tensor(struct st_writer *w, const char *name, enum dtype type, unsigned rank, const uint64_t *shape,
                     const void *data, size_t bytes)
{
	char line[300];

	snprintf(line, sizeof line, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, dtype_table[type].name);
	text(&w->header, line);
	for (unsigned d = 0; d < rank; d++) {
		snprintf(line, sizeof line, "%s%" PRIu64, d ? "," : "", shape[d]);
		text(&w->header, line);
	}
	snprintf(line, sizeof line, "],\"data_offsets\":[%zu,%zu]}", w->data.n, w->data.n + bytes);
	text(&w->header, line);
	bytes_put(&w->data, data, bytes);
}

uint8_t *st_from_text(const char *header, size_t header_bytes, size_t data_bytes, size_t *n)
{
	struct bytes all = { 0 };
	uint64_t length = header_bytes;

	bytes_put(&all, &length, 8);
	bytes_put(&all, header, header_bytes);
	bytes_put(&all, NULL, data_bytes);
	*n = all.n;
	return all.p;
}

uint8_t *st_writer_finish(struct st_writer *w, unsigned align, size_t *n)
{
	text(&w->header, "}");
	while ((8 + w->header.n) % align)
		text(&w->header, " ");
	uint8_t *p = st_from_text((const char *)w->header.p, w->header.n, w->data.n, n);
	if (w->data.n)
		memcpy(p + *n - w->data.n, w->data.p, w->data.n);
	bytes_forget(&w->header);
	bytes_forget(&w->data);
	return p;
}
