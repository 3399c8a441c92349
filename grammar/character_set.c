#include "grammar/character_set.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "grammar/effort.h"

void set_add(struct character_set *s, uint32_t low, uint32_t high)
{
	void *all = s->range;

	if (s->n >= EXPRESSION_MOST || !effort_array(&all, &s->capacity, s->n + 1, sizeof *s->range)) {
		s->failed = true;
		return;
	}
	s->range = all;
	s->range[s->n++] = (struct character_range){ low, high };
}

void set_add_all(struct character_set *s, const struct character_set *other)
{
	for (size_t i = 0; i < other->n; i++)
		set_add(s, other->range[i].low, other->range[i].high);
	s->failed |= other->failed;
}

static int by_low(const void *a, const void *b)
{
	const struct character_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

void set_invert(struct character_set *s)
{
	struct character_set left = { 0 };
	uint32_t from = 0;

	if (s->n)
		qsort(s->range, s->n, sizeof *s->range, by_low);
	for (size_t i = 0; i < s->n; i++) {
		if (s->range[i].low > from)
			set_add(&left, from, s->range[i].low - 1);
		if (s->range[i].high >= from)
			from = s->range[i].high + 1;
	}
	if (from <= CHARACTER_MOST)
		set_add(&left, from, CHARACTER_MOST);
	left.failed |= s->failed;
	free(s->range);
	*s = left;
}

void set_sort(struct character_set *s)
{
	size_t kept = 0;

	if (s->n)
		qsort(s->range, s->n, sizeof *s->range, by_low);
	for (size_t i = 0; i < s->n; i++) {
		struct character_range *last = kept ? &s->range[kept - 1] : NULL;
		if (last && s->range[i].low <= last->high + 1)
			last->high = s->range[i].high > last->high ? s->range[i].high : last->high;
		else
			s->range[kept++] = s->range[i];
	}
	s->n = kept;
}

void set_add_categories(struct character_set *s, uint32_t categories)
{
	enum { STEPS = 200000 /* of all characters */ };

	s->failed |= !effort_take(STEPS);
	for (uint32_t code = 0, from = 0; categories && !s->failed && code <= CHARACTER_MOST + 1; code++) {
		bool in = code <= CHARACTER_MOST && categories >> utf8proc_category((utf8proc_int32_t)code) & 1;
		if (!in && from < code)
			set_add(s, from, code - 1);
		if (!in)
			from = code + 1;
	}
}

void set_add_cases(struct character_set *s)
{
	enum { CASED_MOST = 0x1e943 /* behind it no letter has another case */ };
	const size_t n = s->n;

	for (size_t i = 0; i < n && !s->failed; i++) {
		const uint32_t high = s->range[i].high < CASED_MOST ? s->range[i].high : CASED_MOST;
		for (uint32_t code = s->range[i].low; code <= high && effort_take(1); code++) {
			const uint32_t small = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code),
				       large = (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
			if (small != code)
				set_add(s, small, small);
			if (large != code)
				set_add(s, large, large);
		}
	}
	set_sort(s);
}
