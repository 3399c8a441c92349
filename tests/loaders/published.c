/* tests/loaders/published.c - see published.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model_load.h"
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
