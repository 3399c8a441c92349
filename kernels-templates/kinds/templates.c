/* kernels-templates/kinds/templates.c - the table of the kinds of kernels: builder, argument slots, effort, traffic.
 *
 * Owns: the table and what every key must satisfy. Knows nothing of what a kernel computes. A new kind is a row in
 * key.h, its argument slots in templates.h and signature.def, a builder, what it moves in traffic.c, and a row here.
 */
#include <assert.h>
#include <stdio.h>

#include "kernels-templates/emit/build.h"
#include "kernels-templates/matmul/matmul_schedule.h"

bool build_refuse(const struct key *key, struct error *err, const char *what)
{
	char text[KEY_TEXT_MAX];
	return error_set(err, ERROR_UNSUPPORTED, "kernel %s: %s", key_text(key, text, sizeof text), what);
}

/* ---- schedules: matmuls alone have several */

static bool has_schedules(const struct key *key) { return key->kind == KEY_MATMUL && !(key->flags & KEY_BY_HEAD); }

const char *template_schedule_refusal(const struct key *key)
{
	return has_schedules(key) ? matmul_schedule_refusal(key)
	       : key->schedule    ? "kernels of this kind have one schedule"
	                          : NULL;
}

unsigned template_schedules(const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX])
{
	if (has_schedules(key))
		return matmul_schedules(key, out);
	out[0] = 0;
	return 1;
}

unsigned template_schedules_near(const struct key *key, unsigned field, uint32_t out[TEMPLATE_SCHEDULES_MAX - 1])
{
	return has_schedules(key) ? matmul_schedules_near(key, field, out) : 0;
}

struct key template_tuned_like(const struct key *key)
{
	struct key k = *key;

	if (k.kind == KEY_MATMUL) {
		k.tile_n = 1;
		k.flags &= ~(uint32_t)(KEY_WIDE | KEY_UNSIGNED);
	}
	return k;
}

uint32_t template_schedule_follow(const struct key *key, const struct key *one)
{
	return has_schedules(key) ? matmul_schedule_follow(key, one) : 0;
}

char *template_schedule_name(const struct key *key, char *out, size_t cap)
{
	if (has_schedules(key))
		return matmul_schedule_name(key, out, cap);
	snprintf(out, cap, "the usual way");
	return out;
}

const char *template_schedule_field(const struct key *key, unsigned field, uint32_t *value)
{
	return has_schedules(key) ? matmul_schedule_field(key, field, value) : NULL;
}

static bool interleave_or_narrow(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	return (key->numerics == NUMERICS_BOUNDED && !target->has_dot2 ? to_half_build
	                                                               : interleave_build)(b, key, target, err);
}

/* Made of kernels that others build (jit/compile.h). */
static bool program_refuse(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	return build_refuse(key, err, "a program has no template of its own");
}

/* Users' kernels are made of their source alone (compile_builder). */
static bool user_refuse(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	return build_refuse(key, err,
	                    "a user's kernel is made of its source, which only jitk and the library's callers have");
}

static uint64_t no_traffic(const struct key *key, uint64_t units, uint64_t position, uint64_t columns) { return 0; }

const struct template_kind template_kinds[KEY_KIND_COUNT] = {
	[KEY_MATMUL] = { .build = matmul_build,
	                 .args = MATMUL_ARGS,
	                 .effort = 4,
	                 .traffic = traffic_matmul,
	                 .reads = reads_matmul },
	[KEY_INTERLEAVE] = { .build = interleave_or_narrow,
	                     .args = INTERLEAVE_ARGS,
	                     .effort = 1,
	                     .traffic = traffic_interleave },
	[KEY_NORM] = { .build = norm_build, .args = NORM_ARGS, .effort = 2, .traffic = traffic_norm },
	[KEY_QUANTISE] = { .build = quantise_build, .args = QUANTISE_ARGS, .effort = 1, .traffic = traffic_quantise },
	[KEY_SCALE] = { .build = scale_build, .args = SCALE_ARGS, .effort = 1, .traffic = traffic_scale },
	[KEY_ROUTE] = { .build = route_build, .args = ROUTE_ARGS, .effort = 2, .traffic = traffic_route },
	[KEY_DISPATCH] = { .build = dispatch_build, .args = DISPATCH_ARGS, .effort = 1, .traffic = traffic_dispatch },
	[KEY_SCATTER] = { .build = scatter_build, .args = SCATTER_ARGS, .effort = 1, .traffic = traffic_scatter },
	[KEY_COMBINE] = { .build = combine_build, .args = COMBINE_ARGS, .effort = 1, .traffic = traffic_combine },
	[KEY_LAYER_INPUTS] = { .build = layer_inputs_build,
	                       .args = LAYER_INPUTS_ARGS,
	                       .effort = 2,
	                       .traffic = traffic_layer_inputs },
	[KEY_ROPE] = { .build = rope_build, .args = ROPE_ARGS, .effort = 1, .traffic = traffic_rope },
	[KEY_KV_STORE] = { .build = kv_store_build, .args = KV_STORE_ARGS, .effort = 2, .traffic = traffic_kv_store },
	[KEY_ATTENTION] = { .build = attention_build,
	                    .args = ATTENTION_ARGS,
	                    .effort = 8,
	                    .traffic = traffic_attention,
	                    .reads = reads_attention },
	[KEY_MERGE] = { .build = merge_build, .args = MERGE_ARGS, .effort = 1, .traffic = traffic_merge },
	[KEY_CONV] = { .build = conv_build, .args = CONV_ARGS, .effort = 1, .traffic = traffic_conv },
	[KEY_DELTA] = { .build = delta_build, .args = DELTA_ARGS, .effort = 2, .traffic = traffic_delta },
	[KEY_SCAN] = { .build = scan_build, .args = SCAN_ARGS, .effort = 2, .traffic = traffic_scan },
	[KEY_CHANNEL] = { .build = channel_build, .args = CHANNEL_ARGS, .effort = 2, .traffic = traffic_channel },
	[KEY_GATE] = { .build = gate_build, .args = GATE_ARGS, .effort = 1, .traffic = traffic_gate },
	[KEY_EMBED] = { .build = embed_build,
	                .args = EMBED_ARGS,
	                .effort = 2,
	                .traffic = traffic_embed,
	                .reads = reads_embed },
	[KEY_ADAPT_DOWN] = { .build = adapt_down_build, .args = ADAPT_ARGS, .effort = 2, .traffic = traffic_adapt },
	[KEY_ADAPT_UP] = { .build = adapt_up_build, .args = ADAPT_ARGS, .effort = 2, .traffic = traffic_adapt },
	[KEY_PROGRAM] = { .build = program_refuse, .args = 1, .effort = 1, .traffic = no_traffic },
	[KEY_USER] = { .build = user_refuse, .effort = 2, .traffic = no_traffic },
};

/* Only products of float matrices, and what prepares their inputs, are ever not exact. */
static bool has_bounded(const struct key *key, const struct target *target)
{
	return (key->kind == KEY_MATMUL && (key->flags & KEY_MMA || target->has_dot2)) || key->kind == KEY_INTERLEAVE;
}

bool template_build(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	if (ir->lanes != 8 && ir->lanes != 16 && ir->lanes != 32)
		return build_refuse(key, err, "vectors must have 8, 16 or 32 lanes");
	if (key->numerics != NUMERICS_EXACT && (key->numerics != NUMERICS_BOUNDED || !has_bounded(key, target)))
		return build_refuse(key, err, "only the exact numerics class is done");
	if (key->act && key->kind != KEY_MATMUL && key->kind != KEY_CONV && key->kind != KEY_GATE)
		return build_refuse(key, err, "kernels of this kind have no activation function");
	if (key->schedule && key->kind != KEY_MATMUL)
		return build_refuse(key, err, "kernels of this kind have one schedule");
	return key->kind > KEY_NONE && key->kind < KEY_KIND_COUNT
	               ? template_kinds[key->kind].build(ir, key, target, err)
	               : build_refuse(key, err, "no template does this kind");
}

/* ---- what is known of a kernel before it is made */

static const struct template_kind *kind_of(const struct key *key)
{
	assert(key->kind > KEY_NONE && key->kind < KEY_KIND_COUNT);
	return &template_kinds[key->kind];
}

unsigned template_args(const struct key *key) { return kind_of(key)->args; }
unsigned template_effort(const struct key *key) { return kind_of(key)->effort + !!(key->flags & KEY_PAIR); }
uint64_t template_traffic(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return kind_of(k)->traffic(k, units, position, columns);
}

struct template_reads template_reads(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return kind_of(k)->reads ? kind_of(k)->reads(k, units, position, columns) : (struct template_reads){ 0 };
}
