/* kernels-templates/templates.c - which builder does which kind of key.
 *
 * Owns: the dispatch and what every key must satisfy. Knows nothing of what a kernel computes. A new kind is a row in key.h, its argument
 * slots in templates.h, a builder, and a case here.
 */
#include "kernels-templates/build.h"
#include "kernels-templates/matmul.h"

bool build_refuse(const struct key *key, struct error *err, const char *what)
{
	char text[KEY_TEXT_MAX];
	return error_set(err, ERROR_UNSUPPORTED, "kernel %s: %s", key_text(key, text, sizeof text), what);
}

unsigned template_schedules(const struct key *key) { return key->kind == KEY_MATMUL ? matmul_schedules(key) : 1; }

struct key template_tuned_like(const struct key *key)
{
	struct key k = *key;

	if (k.kind == KEY_MATMUL) {
		k.columns = 1;
		k.flags &= ~(uint32_t)(KEY_WIDE | KEY_UNSIGNED);
	}
	return k;
}

const char *template_schedule_name(const struct key *key)
{
	static const char *const matmul[] = { "weights into the first cache level", "weights into the second cache level", "weights into the second cache level, then the first" };
	if (key->kind == KEY_MATMUL && key->columns > 1)
		return matmul[key->schedule ? 2 : 0];
	return key->kind == KEY_MATMUL && key->schedule < sizeof matmul / sizeof *matmul ? matmul[key->schedule] : "the usual way";
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
	if (key->schedule >= template_schedules(key))
		return build_refuse(key, err, "there are not so many schedules");
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
