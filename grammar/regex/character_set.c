#include "grammar/regex/character_set.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "grammar/machine/effort.h"

void set_add(struct character_set *s, uint32_t low, uint32_t high)
{
	void *all = s->range;

	if (s->n >= EXPRESSION_MAX || !effort_array(&all, &s->capacity, s->n + 1, sizeof *s->range)) {
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
	if (from <= CODE_POINT_MAX)
		set_add(&left, from, CODE_POINT_MAX);
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
	for (uint32_t code = 0, from = 0; categories && !s->failed && code <= CODE_POINT_MAX + 1; code++) {
		bool in = code <= CODE_POINT_MAX && categories >> utf8proc_category((utf8proc_int32_t)code) & 1;
		if (!in && from < code)
			set_add(s, from, code - 1);
		if (!in)
			from = code + 1;
	}
}

static bool has(const struct character_set *s, uint32_t code)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (s->range[middle].high < code)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && s->range[low].low <= code;
}

/* Letters that Python takes for one another without regard to case, where their own capital and small letters do not
 * lead to all of them. */
static void add_other_cases(struct character_set *s)
{
	static const uint32_t same[][4] = {
		{ 0x49, 0x69, 0x130, 0x131 },
		{ 0x4b, 0x6b, 0x212a },
		{ 0x53, 0x73, 0x17f },
		{ 0xb5, 0x39c, 0x3bc },
		{ 0xc5, 0xe5, 0x212b },
		{ 0xdf, 0x1e9e },
		{ 0x1c4, 0x1c5, 0x1c6 },
		{ 0x1c7, 0x1c8, 0x1c9 },
		{ 0x1ca, 0x1cb, 0x1cc },
		{ 0x1f1, 0x1f2, 0x1f3 },
		{ 0x345, 0x399, 0x3b9, 0x1fbe },
		{ 0x390, 0x1fd3 },
		{ 0x392, 0x3b2, 0x3d0 },
		{ 0x395, 0x3b5, 0x3f5 },
		{ 0x398, 0x3b8, 0x3d1, 0x3f4 },
		{ 0x39a, 0x3ba, 0x3f0 },
		{ 0x3a0, 0x3c0, 0x3d6 },
		{ 0x3a1, 0x3c1, 0x3f1 },
		{ 0x3a3, 0x3c2, 0x3c3 },
		{ 0x3a6, 0x3c6, 0x3d5 },
		{ 0x3a9, 0x3c9, 0x2126 },
		{ 0x3b0, 0x1fe3 },
		{ 0x412, 0x432, 0x1c80 },
		{ 0x414, 0x434, 0x1c81 },
		{ 0x41e, 0x43e, 0x1c82 },
		{ 0x421, 0x441, 0x1c83 },
		{ 0x422, 0x442, 0x1c84, 0x1c85 },
		{ 0x42a, 0x44a, 0x1c86 },
		{ 0x462, 0x463, 0x1c87 },
		{ 0x1c88, 0xa64a, 0xa64b },
		{ 0x1e60, 0x1e61, 0x1e9b },
		{ 0xfb05, 0xfb06 }
	};
	const size_t rows = sizeof same / sizeof *same;

	for (size_t i = 0; i < rows && !s->failed && effort_take(2); i++) {
		bool any = false;
		for (unsigned k = 0; k < 4 && same[i][k]; k++)
			any |= has(s, same[i][k]);
		for (unsigned k = 0; any && k < 4 && same[i][k]; k++)
			set_add(s, same[i][k], same[i][k]);
		if (any)
			set_sort(s);
	}
}

void set_add_cases(struct character_set *s)
{
	enum { CASED_MAX = 0x1e943 /* behind it no letter has another case */ };
	const size_t n = s->n;

	for (size_t i = 0; i < n && !s->failed; i++) {
		const uint32_t high = s->range[i].high < CASED_MAX ? s->range[i].high : CASED_MAX;
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
	add_other_cases(s);
}
