/* tests/loaders/published.c - see published.h. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/st_writer.h"
#include "tests/loaders/published.h"

const char *refusal(const char *type)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (strcmp(refused[i].type, type) == 0)
			return refused[i].part;
	return NULL;
}

void text_of(struct bytes *b, const char *s) { bytes_put(b, s, strlen(s)); }

void check_said(const char *name, const uint8_t *weights, size_t n, const char *config, size_t n_config,
                const char *part, struct counts *c)
{
	struct error err = { 0 };
	struct model m;
	bool ok = model_open_memory(&m, weights, n, config, n_config, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err);

	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", name, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
	c->opened += ok;
	c->refused += !ok;
}

uint64_t number(json_t *o, const char *key, uint64_t otherwise)
{
	json_t *v = json_object_get(o, key);

	return json_is_number(v) ? (uint64_t)json_number_value(v) : otherwise;
}

void entry(struct header *h, const char *name, uint64_t rows, uint64_t cols)
{
	char line[400], shape[60];
	uint64_t end = h->at + 2 * (rows ? rows : 1) * cols;

	snprintf(shape, sizeof shape, rows ? "%" PRIu64 ",%" PRIu64 : "%.0" PRIu64 "%" PRIu64, rows, cols);
	snprintf(line, sizeof line,
	         "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
	         h->at ? "," : "{", name, shape, h->at, end);
	text_of(&h->b, line);
	h->at = end;
}

void stacked_entry(struct header *h, const char *name, uint64_t count, uint64_t rows, uint64_t cols)
{
	char line[400];
	uint64_t end = h->at + 2 * count * rows * cols;

	snprintf(line, sizeof line,
	         ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64
	         "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
	         name, count, rows, cols, h->at, end);
	text_of(&h->b, line);
	h->at = end;
}

/* What LlamaConfig has where a file leaves it out. */
void fill_up_llama(json_t *text)
{
	static const struct {
		const char *key;
		int value;
	} usual[] = { { "hidden_size", 4096 },
		      { "intermediate_size", 11008 },
		      { "num_hidden_layers", 32 },
		      { "num_attention_heads", 32 },
		      { "vocab_size", 32000 } };

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!json_object_get(text, usual[i].key))
			json_object_set_new(text, usual[i].key, json_integer(usual[i].value));
}
