/* kernels-templates/templates.c - which builder does which kind of key.
 *
 * Owns: the dispatch and what every key must satisfy. Knows nothing of what a kernel computes. A new kind is a row in key.h, its argument
 * slots in templates.h, a builder, and a case here.
 */
#include <stdio.h>

#include "kernels-templates/build.h"
#include "kernels-templates/matmul_schedule.h"

bool build_refuse(const struct key *key, struct error *err, const char *what)
{
	char text[KEY_TEXT_MAX];
	return error_set(err, ERROR_UNSUPPORTED, "kernel %s: %s", key_text(key, text, sizeof text), what);
}

/* ---- schedules: matmuls alone have several */

const char *template_schedule_refusal(const struct key *key)
{
	return key->kind == KEY_MATMUL ? matmul_schedule_refusal(key) : key->schedule ? "kernels of this kind have one schedule" : NULL;
}

unsigned template_schedules(const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MOST])
{
	if (key->kind == KEY_MATMUL)
		return matmul_schedules(key, out);
	out[0] = 0;
	return 1;
}

unsigned template_schedules_near(const struct key *key, unsigned field, uint32_t out[TEMPLATE_SCHEDULES_MOST - 1])
{
	return key->kind == KEY_MATMUL ? matmul_schedules_near(key, field, out) : 0;
}

struct key template_tuned_like(const struct key *key)
{
	struct key k = *key;

	if (k.kind == KEY_MATMUL) {
		k.columns = 1;
		k.flags &= ~(uint32_t)(KEY_WIDE | KEY_UNSIGNED);
	}
	return k;
}

uint32_t template_schedule_follow(const struct key *key, const struct key *one)
{
	return key->kind == KEY_MATMUL ? matmul_schedule_follow(key, one) : 0;
}

char *template_schedule_name(const struct key *key, char *out, size_t cap)
{
	if (key->kind == KEY_MATMUL)
		return matmul_schedule_name(key, out, cap);
	snprintf(out, cap, "the usual way");
	return out;
}

const char *template_schedule_field(const struct key *key, unsigned field, uint32_t *value)
{
	return key->kind == KEY_MATMUL ? matmul_schedule_field(key, field, value) : NULL;
}

/* Only products of float matrices, and what prepares their inputs, are ever not exact. */
static bool has_bounded(const struct key *key) { return (key->kind == KEY_MATMUL && key->flags & KEY_MMA) || key->kind == KEY_TURN; }

bool template_build(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	if (ir->lanes != 8 && ir->lanes != 16 && ir->lanes != 32)
		return build_refuse(key, err, "vectors must have 8, 16 or 32 lanes");
	if (key->numerics != NUMERICS_EXACT && (key->numerics != NUMERICS_BOUNDED || !has_bounded(key)))
		return build_refuse(key, err, "only the exact numerics class is done");
	if (key->context_class)
		return build_refuse(key, err, "there are no classes of contexts");
	if (key->schedule && key->kind != KEY_MATMUL)
		return build_refuse(key, err, "kernels of this kind have one schedule");
	switch (key->kind) {
	case KEY_MATMUL:   return matmul_build(ir, key, target, err);
	case KEY_TURN:     return key->numerics == NUMERICS_BOUNDED ? narrow_build(ir, key, target, err) : turn_build(ir, key, target, err);
	case KEY_NORM:     return norm_build(ir, key, target, err);
	case KEY_QUANTISE: return quantise_build(ir, key, target, err);
	case KEY_ROPE:     return rope_build(ir, key, target, err);
	case KEY_KV_STORE: return kv_store_build(ir, key, target, err);
	case KEY_ATTENTION: return attention_build(ir, key, target, err);
	case KEY_EMBED:    return embed_build(ir, key, target, err);
	default:           return build_refuse(key, err, "no template does this kind");
	}
}
