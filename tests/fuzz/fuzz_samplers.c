/* tests/fuzz/fuzz_samplers.c - arbitrary bytes as the texts that say how tokens are chosen: orders of samplers and
 * logit biases; and as texts to stop before, with a text that comes in pieces, against a search in all of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/sampling_args.h"
#include "runtime/sampling/chain.h"
#include "runtime/sampling/stop.h"
#include "tests/fuzz/fuzz.h"

static void try_order(const char *text)
{
	struct error err = { 0 };
	struct sampler_order o;
	unsigned seen = 0;
	bool ok = sampler_order_parse(&o, text, &err);

	if (ok == (err.text[0] != 0) || (ok && (o.n < 1 || o.n > SAMPLERS)))
		abort();
	for (int i = 0; ok && i < o.n; i++) {
		if (o.sampler[i] >= SAMPLERS || seen >> o.sampler[i] & 1)
			abort();
		seen |= 1u << o.sampler[i];
	}
}

static void try_bias(const char *text)
{
	struct sampling_args a = sampling_args_usual;
	char why[400] = "";

	a.logit_bias.value[0] = text;
	a.logit_bias.n = 1;
	bool ok = sampling_args_check(&a, why);
	if (ok == (why[0] != 0) || strlen(why) > 399)
		abort();
	if (ok && (a.bias[0].id < 0 || !(isfinite(a.bias[0].bias) || a.bias[0].bias == -INFINITY)))
		abort();
}

void fuzz_samplers(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);

	if (!text)
		return;
	if (n)
		memcpy(text, p, n);
	text[n] = 0;
	try_order(text);
	try_bias(text);
	free(text);
}

/* Where the text is cut off: before the longest of those that end at the first place where one ends. */
static size_t judge(const char *const *texts, size_t n_texts, const char *text, size_t n)
{
	for (size_t end = 1; end <= n; end++) {
		size_t longest = 0;
		for (size_t i = 0; i < n_texts; i++) {
			size_t size = strlen(texts[i]);
			if (size <= end && size > longest && memcmp(text + end - size, texts[i], size) == 0)
				longest = size + 1 - 1;
		}
		if (longest)
			return end - longest;
	}
	return n;
}

/* A byte that says how the text is cut, up to four texts to stop before, with NULs behind, and the text. */
void fuzz_stop(const uint8_t *p, size_t n)
{
	enum { TEXTS = 4 };
	const char *texts[TEXTS];
	size_t n_texts = 0, at = 1, given = 0, out;
	char *copy = malloc(n + 1);
	struct error err = { 0 };

	if (!copy || n == 0) {
		free(copy);
		return;
	}
	memcpy(copy, p, n);
	copy[n] = 0;
	while (n_texts < TEXTS && memchr(copy + at, 0, n - at)) {
		texts[n_texts++] = copy + at;
		at += strlen(copy + at) + 1;
	}
	struct stop *s = stop_open(texts, n_texts, &err);
	if ((s == NULL) != (err.text[0] != 0))
		abort();
	size_t want = s ? judge(texts, n_texts, copy + at, n - at) : 0;
	for (size_t from = at, step = 1 + p[0] % 7; s && from < n; from += step, step = 1 + step * p[0] % 13) {
		const char *part = stop_take(s, copy + from, step < n - from ? step : n - from, &out);
		if (!part || given + out > want || memcmp(part, copy + at + given, out) != 0)
			abort();
		given += out;
	}
	if (s) {
		const char *rest = stop_rest(s, "", 0, &out);
		if (!rest || given + out != want || memcmp(rest, copy + at + given, out) != 0)
			abort();
	}
	stop_close(s);
	free(copy);
}
