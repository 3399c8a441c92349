/* runtime/graph/source_weights.c - elements of packed weights as expressions of their bytes, in the order of operations
 * that the formats have (kernels-templates/formats). */
#include "base/dtype.h"
#include "runtime/graph/source.h"

/* An element's block: where its bytes begin, and which of its elements it is. */
struct packed {
	struct source *s;
	tensor_value bytes;
	const char *block, *at;
};

static const char *byte_at(const struct packed *p, const char *index)
{
	return source_element(p->s, p->bytes,
	                      (struct position){ .flat = source_text(p->s, "(%s + %s)", p->block, index) });
}

static const char *byte_of(const struct packed *p, unsigned number)
{
	return byte_at(p, source_text(p->s, "%u", number));
}

/* An f16 of two bytes, exact; of subnormal ones the number of steps of 2^-24. */
static const char *half_of(const struct packed *p, unsigned number)
{
	struct source *s = p->s;
	const char *h =
		source_local(s, "u32", source_text(s, "(%s | %s << 8)", byte_of(p, number), byte_of(p, number + 1)));
	const char *small = source_text(s, "bits_u32(f32(%s & 1023) * bits_f32(864026624))", h),
		   *beyond = source_text(s, "(2139095040 | (%s & 1023) << 13)", h),
		   *normal = source_text(s, "(((%s & 32767) << 13) + 939524096)", h);
	const char *bits =
		source_local(s, "u32",
	                     source_text(s, "select((%s & 31744) == 31744, %s, select((%s & 31744) == 0, %s, %s))", h,
	                                 beyond, h, small, normal));
	return source_local(s, "f32", source_text(s, "bits_f32(%s | (%s & 32768) << 16)", bits, h));
}

/* Nibble number `at` of 32 whose byte j has the nibbles j and 16 + j; u32. */
static const char *nibble_of(const struct packed *p, unsigned first)
{
	const char *byte = byte_at(p, source_text(p->s, "%u + %s %% 16", first, p->at));

	return source_text(p->s, "(%s >> u32(%s / 16 * 4) & 15)", byte, p->at);
}

/* Bit `at` of 32, as 16 or 0; u32. */
static const char *fifth_of(const struct packed *p, unsigned first)
{
	return source_text(p->s, "((%s >> u32(%s %% 8) & 1) << 4)",
	                   byte_at(p, source_text(p->s, "%u + %s / 8", first, p->at)), p->at);
}

static const char *signed_byte(const struct packed *p, const char *index)
{
	return source_text(p->s, "f32(i32(%s ^ 128) - 128)", byte_at(p, index));
}

/* Scales and minima of six bits, of Q4_K and Q5_K. */
static void steps_of(const struct packed *p, const char *part, const char *out[2])
{
	struct source *s = p->s;
	const char *low = source_local(s, "u32", byte_at(p, source_text(s, "4 + %s", part))),
		   *high = source_local(s, "u32", byte_at(p, source_text(s, "8 + %s", part))),
		   *upper = source_local(s, "u32", byte_at(p, source_text(s, "max(%s, 4)", part)));

	out[0] = source_text(s, "f32(select(%s < 4, %s & 63, %s & 15 | (%s >> 6) << 4))", part, low, high, upper);
	out[1] = source_text(s, "f32(select(%s < 4, %s & 63, %s >> 4 | (%s >> 6) << 4))", part, high, high, low);
}

static const char *fours(const struct packed *p, bool five)
{
	struct source *s = p->s;
	const char *part = source_local(s, "i32", source_text(s, "%s / 32", p->at)), *step[2];
	const char *byte = byte_at(p, source_text(s, "%u + %s / 2 * 32 + %s %% 32", five ? 48 : 16, part, p->at));
	const char *q = source_text(s, "(%s >> u32(%s %% 2 * 4) & 15)", byte, part);

	steps_of(p, part, step);
	if (five)
		q = source_text(s, "(%s | (%s >> u32(%s) & 1) << 4)", q,
		                byte_at(p, source_text(s, "16 + %s %% 32", p->at)), part);
	return source_text(s, "%s * %s * f32(%s) - %s * %s", half_of(p, 0), step[0], q, half_of(p, 2), step[1]);
}

static const char *sixes(const struct packed *p)
{
	struct source *s = p->s;
	const char *half = source_local(s, "i32", source_text(s, "%s / 128", p->at)),
		   *j = source_local(s, "i32", source_text(s, "%s %% 128 / 32", p->at));
	const char *low = byte_at(p, source_text(s, "%s * 64 + %s %% 2 * 32 + %s %% 32", half, j, p->at)),
		   *high = byte_at(p, source_text(s, "128 + %s * 32 + %s %% 32", half, p->at));
	const char *q = source_text(s, "(%s >> u32(%s / 2 * 4) & 15 | (%s >> u32(%s * 2) & 3) << 4)", low, j, high, j);

	return source_text(s, "%s * %s * f32(i32(%s) - 32)", half_of(p, 208),
	                   signed_byte(p, source_text(s, "192 + %s / 16", p->at)), q);
}

const char *source_weight(struct source *s, const struct tensor_node *n, const char *flat)
{
	const enum dtype format = (enum dtype)tensor_node_whole(n, ATTRIBUTE_format, 0, 0);
	const struct dtype_facts *f = &dtype_table[format];
	const char *i = source_local(s, "i32", flat);
	struct packed p = { .s = s, .bytes = n->operand[0] };

	p.block = source_local(s, "i32", source_text(s, "%s / %u * %u", i, f->block, f->bytes));
	p.at = source_local(s, "i32", source_text(s, "%s %% %u", i, f->block));
	switch (format) {
	case DTYPE_F16: return half_of(&p, 0);
	case DTYPE_BF16: return source_text(s, "bits_f32((%s | %s << 8) << 16)", byte_of(&p, 0), byte_of(&p, 1));
	case DTYPE_Q4_0: return source_text(s, "%s * f32(i32(%s) - 8)", half_of(&p, 0), nibble_of(&p, 2));
	case DTYPE_Q4_1: return source_text(s, "%s * f32(%s) + %s", half_of(&p, 0), nibble_of(&p, 4), half_of(&p, 2));
	case DTYPE_Q5_0:
		return source_text(s, "%s * f32(i32(%s | %s) - 16)", half_of(&p, 0), nibble_of(&p, 6), fifth_of(&p, 2));
	case DTYPE_Q5_1:
		return source_text(s, "%s * f32(%s | %s) + %s", half_of(&p, 0), nibble_of(&p, 8), fifth_of(&p, 4),
		                   half_of(&p, 2));
	case DTYPE_Q4_K: return fours(&p, false);
	case DTYPE_Q5_K: return fours(&p, true);
	case DTYPE_Q6_K: return sixes(&p);
	default: /* Q8_0 */
		return source_text(s, "%s * %s", half_of(&p, 0), signed_byte(&p, source_text(s, "2 + %s", p.at)));
	}
}
