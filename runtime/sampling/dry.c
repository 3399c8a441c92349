#include "runtime/sampling/dry.h"

#include <math.h>
#include <string.h>

#include "base/math_host.h"

/* ---- breakers */

/* The text behind a token, as far as a breaker that begins in the token could reach; and which token each byte is of,
 * the last being 0. */
struct behind {
	unsigned char byte[DRY_BREAKER_BYTES];
	size_t token[DRY_BREAKER_BYTES];
	size_t n;
};

/* Whether the breaker begins at byte `at` of the piece. Its last byte's token; `own` is the piece's. */
static bool begins(const struct dry_breaker *b, const char *piece, size_t n, size_t at, size_t own,
                   const struct behind *next, size_t *token)
{
	size_t here = n - at < b->n ? n - at : b->n, rest = b->n - here;

	if (rest > next->n || memcmp(piece + at, b->bytes, here) != 0 || memcmp(next->byte, b->bytes + here, rest) != 0)
		return false;
	*token = rest ? next->token[rest - 1] : own;
	return true;
}

/* Of the breakers that begin in the piece, the one that ends last: its last byte's token. False: none begins there. */
static bool breaks(const struct dry *d, const char *piece, size_t n, size_t own, const struct behind *next,
                   size_t *token)
{
	size_t end;
	bool any = false;

	for (uint32_t b = 0; b < d->n_breakers; b++)
		for (size_t at = 0; at < n; at++)
			if (begins(&d->breaker[b], piece, n, at, own, next, &end)) {
				*token = !any || end < *token ? end : *token;
				any = true;
			}
	return any;
}

/* The piece goes before what is behind. */
static void prepend(struct behind *next, const char *piece, size_t n, size_t own)
{
	size_t take = n < DRY_BREAKER_BYTES ? n : DRY_BREAKER_BYTES, keep = DRY_BREAKER_BYTES - take;

	if (keep > next->n)
		keep = next->n;
	memmove(next->byte + take, next->byte, keep);
	memmove(next->token + take, next->token, keep * sizeof *next->token);
	memcpy(next->byte, piece, take);
	for (size_t i = 0; i < take; i++)
		next->token[i] = own;
	next->n = take + keep;
}

size_t dry_behind_breaker(const struct dry *d, const int32_t *text, size_t n)
{
	struct behind next = { .n = 0 };
	size_t token;

	for (size_t i = 0; d->n_breakers && i < n; i++) { /* i: tokens behind this one */
		size_t bytes;
		const char *piece = d->piece(d->piece_user, text[n - 1 - i], &bytes);
		if (breaks(d, piece, bytes, i, &next, &token))
			return token;
		prepend(&next, piece, bytes, i);
	}
	return n;
}

/* Whether the token spells a breaker all by itself. */
static bool is_breaker(const struct dry *d, int32_t id)
{
	const struct behind none = { .n = 0 };
	size_t bytes, token;

	if (!d->n_breakers)
		return false;
	const char *piece = d->piece(d->piece_user, id, &bytes);
	return breaks(d, piece, bytes, 0, &none, &token);
}

/* ---- repetitions */

/* same[i], 0 < i < n: how many tokens before the last i agree with the last ones, going back (the Z function of the
 * text read backwards). */
static void agree(const int32_t *text, size_t n, int32_t *same)
{
	size_t left = 0, right = 0; /* the agreement that was seen to reach the farthest: [left, right) going back */

	for (size_t i = 1; i < n; i++) {
		size_t m = 0;
		if (i < right) {
			m = (size_t)same[i - left];
			if (m > right - i)
				m = right - i;
		}
		while (i + m < n && text[n - 1 - m] == text[n - 1 - i - m])
			m++;
		same[i] = (int32_t)m;
		if (i + m > right) {
			left = i;
			right = i + m;
		}
	}
}

/* Greater powers would be infinite. */
static int32_t max_exponent(float base)
{
	return base > 1.000001f ? (int32_t)(88.7228391f / (float)math_host_log((double)base)) : INT32_MAX;
}

static float penalty(const struct dry *d, int32_t length)
{
	int32_t e = length - d->allowed, max = max_exponent(d->base);

	return (float)((double)d->multiplier * math_host_pow((double)d->base, e < max ? e : max));
}

static void penalise(struct candidates *c, int32_t at, const struct dry *d, const int32_t *tally)
{
	int32_t length = tally[c->id[at]] - 1;

	if (length >= 0 && !is_breaker(d, c->id[at]))
		c->logit[at] -= penalty(d, length);
}

void dry_apply(struct candidates *c, const struct dry *d, const int32_t *text, size_t n, int32_t *tally)
{
	if (d->multiplier == 0 || !(d->base >= 1) || d->window <= 0)
		return;
	if (n > (size_t)d->window) {
		text += n - (size_t)d->window;
		n = (size_t)d->window;
	}
	if (n <= (size_t)d->allowed)
		return;
	int32_t limit = (int32_t)dry_behind_breaker(d, text, n);
	if (limit < d->allowed)
		return;
	agree(text, n, d->same);
	for (size_t i = 1; i < n; i++) {
		int32_t length = d->same[i] < limit ? d->same[i] : limit, *longest = &tally[text[n - i]];
		if (length >= d->allowed && length >= *longest)
			*longest = length + 1;
	}
	for (int32_t i = 0; !candidates_all(c) && i < c->n; i++)
		penalise(c, i, d, tally);
	for (size_t i = 0; i < n; i++) {
		if (candidates_all(c) && text[i] < c->n)
			penalise(c, text[i], d, tally);
		tally[text[i]] = 0;
	}
	c->sorted = false;
}
