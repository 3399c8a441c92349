/* tests/runtime/abi_fields.h - every field of the options of jitrun.h and jitrun_cards.h, with values that are taken
 * and values that are refused, for t_abi.c. */
#ifndef TESTS_ABI_FIELDS_H
#define TESTS_ABI_FIELDS_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>

#include "include/jitrun_cards.h"
#include "include/jitrun_draft.h"
#include "include/jitrun_grammar.h"
#include "include/jitrun_images.h"
#include "include/jitrun_optimise.h"
#include "include/jitrun_train.h"

enum kind { WHOLE, REAL, ANY /* flags, pointers, results: any bytes will do */ };
struct field {
	const char *name;
	size_t offset, bytes;
	enum kind kind;
	double good[4], bad[4]; /* 0 ends a list: it is good everywhere */
};

#define AT(type, name) #name, offsetof(type, name), sizeof((type){ 0 }.name)
#define FREE(type, name) \
	{ \
		AT(type, name), ANY, { 0 }, { 0 } \
	}

static const struct field model_fields[] = {
	FREE(jit_model_options, device),
	FREE(jit_model_options, isa),
	{ AT(jit_model_options, threads), WHOLE, { 1, 1024 }, { -1, 1025, INT_MIN, INT_MAX } },
	FREE(jit_model_options, sealed),
	FREE(jit_model_options, cache_dir),
	FREE(jit_model_options, cache_limit),
	FREE(jit_model_options, f32_activations),
	FREE(jit_model_options, bounded_numerics),
	{ AT(jit_model_options, tune), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	FREE(jit_model_options, perf_map),
	FREE(jit_model_options, dump_ir),
	FREE(jit_model_options, dump_asm),
	FREE(jit_model_options, progress),
	FREE(jit_model_options, progress_user),
	FREE(jit_model_options, jitdump),
	FREE(jit_model_options, gdb),
	FREE(jit_model_options, copy_weights),
	FREE(jit_model_options, cancel),
	FREE(jit_model_options, weight_cache),
	FREE(jit_model_options, weight_cache_limit),
	FREE(jit_model_options, session),
	FREE(jit_model_options, ranks),
	FREE(jit_model_options, split),
};
static const struct field session_fields[] = {
	{ AT(jit_session_options, context), WHOLE, { 1, 100 }, { -1, INT_MIN } },
	{ AT(jit_session_options, threads), WHOLE, { 1, 2 }, { -1, 1025, INT_MIN, INT_MAX } },
	{ AT(jit_session_options, batch), WHOLE, { 1, 1024 }, { -1, 1025, INT_MIN, INT_MAX } },
	{ AT(jit_session_options, kv), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	{ AT(jit_session_options, speculate), WHOLE, { -1, 4, 8, 16 }, { -2, 1, 5, 17 } },
	{ AT(jit_session_options, profile), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	FREE(jit_session_options, sampling),
	FREE(jit_session_options, card),
	FREE(jit_session_options, cancel),
	FREE(jit_session_options, draft),
};
static const struct field draft_fields[] = {
	FREE(jit_draft_options, model),
	{ AT(jit_draft_options, kv), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	{ AT(jit_draft_options, context), WHOLE, { 1, 100 }, { -1, INT_MIN } },
	{ AT(jit_draft_options, max), WHOLE, { 1, 4 }, { -1, 16, INT_MIN, INT_MAX } },
	{ AT(jit_draft_options, min), WHOLE, { 1, 3 }, { -1, 16, INT_MIN, INT_MAX } },
	{ AT(jit_draft_options, min_p), REAL, { 0.5, 1, FLT_MIN }, { NAN, INFINITY, -0.25, 1.5 } },
	{ AT(jit_draft_options, reserved), WHOLE, { 0 }, { -1, 1 } },
};
static const struct field sampling_fields[] = {
	{ AT(jit_sampling, temperature), REAL, { 0.7, -1, FLT_MAX }, { NAN, INFINITY, -INFINITY } },
	{ AT(jit_sampling, top_k), WHOLE, { 1, INT_MAX }, { -1, INT_MIN } },
	{ AT(jit_sampling, top_p), REAL, { 0.5, 1, FLT_MIN }, { NAN, INFINITY, -0.25, 1.5 } },
	{ AT(jit_sampling, min_p), REAL, { 0.5, 1, FLT_MIN }, { NAN, -INFINITY, -0.25, 1.5 } },
	{ AT(jit_sampling, repeat_penalty), REAL, { 0.5, 2, FLT_MAX }, { NAN, INFINITY, -INFINITY, -0.25 } },
	{ AT(jit_sampling, repeat_window), WHOLE, { 1, INT_MAX }, { -1, INT_MIN } },
	FREE(jit_sampling, seed),
	FREE(jit_sampling, samplers),
	FREE(jit_sampling, dry_breakers),
	FREE(jit_sampling, logit_bias),
	{ AT(jit_sampling, n_dry_breakers), WHOLE, { 0 }, { -1, INT_MIN, INT_MAX } },
	{ AT(jit_sampling, n_logit_bias), WHOLE, { 0 }, { -1, INT_MIN } },
	{ AT(jit_sampling, typical_p), REAL, { 0.5, 1 }, { NAN, INFINITY, -0.25, 1.5 } },
	{ AT(jit_sampling, top_n_sigma), REAL, { 1, -1, FLT_MAX }, { NAN, INFINITY, -INFINITY } },
	{ AT(jit_sampling, frequency_penalty), REAL, { 1, -1, FLT_MAX }, { NAN, INFINITY, -INFINITY } },
	{ AT(jit_sampling, presence_penalty), REAL, { 1, -1, FLT_MAX }, { NAN, INFINITY, -INFINITY } },
	{ AT(jit_sampling, dynatemp_range), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, -1 } },
	{ AT(jit_sampling, dynatemp_exponent), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, -1 } },
	{ AT(jit_sampling, xtc_probability), REAL, { 0.5, 1 }, { NAN, INFINITY, -0.25, 1.5 } },
	{ AT(jit_sampling, xtc_threshold), REAL, { 0.5, 1 }, { NAN, INFINITY, -0.25, 1.5 } },
	{ AT(jit_sampling, dry_multiplier), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, -1 } },
	{ AT(jit_sampling, dry_base), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, 0.5 } },
	{ AT(jit_sampling, dry_allowed_length), WHOLE, { 1, INT_MAX }, { -1, INT_MIN } },
	{ AT(jit_sampling, dry_window), WHOLE, { -1, 1, INT_MAX }, { -2, INT_MIN } },
	{ AT(jit_sampling, mirostat), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	{ AT(jit_sampling, min_keep), WHOLE, { 1, INT_MAX }, { -1, INT_MIN } },
	{ AT(jit_sampling, mirostat_tau), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, -1 } },
	{ AT(jit_sampling, mirostat_eta), REAL, { 1, FLT_MAX }, { NAN, INFINITY, -INFINITY, -1 } },
	{ AT(jit_sampling, adaptive_target), REAL, { 0.5, 1 }, { NAN, INFINITY, -INFINITY, 1.5 } },
	{ AT(jit_sampling, adaptive_decay), REAL, { 0.5 }, { NAN, INFINITY, -0.25, 1.5 } },
};
static const struct field card_fields[] = {
	{ AT(jit_card_options, launch), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	{ AT(jit_card_options, workgroups), WHOLE, { 1, 1024 }, { -1, 1025, INT_MIN, INT_MAX } },
	{ AT(jit_card_options, units), WHOLE, { 1, 256 }, { -1, 257, INT_MIN, INT_MAX } },
	{ AT(jit_card_options, reserved), WHOLE, { 0 }, { -1, 1 } },
};
static const struct field embedding_fields[] = {
	{ AT(jit_embedding_options, pooling), WHOLE, { 1, 2, 4 }, { -1, 5, INT_MIN, INT_MAX } },
	FREE(jit_embedding_options, normalise),
};
static const struct field chat_fields[] = {
	FREE(jit_chat_options, messages),
	FREE(jit_chat_options, tools),
	FREE(jit_chat_options, variables),
	FREE(jit_chat_options, template_text),
	FREE(jit_chat_options, no_generation_prompt),
	FREE(jit_chat_options, has_now),
	FREE(jit_chat_options, now),
	FREE(jit_chat_options, template_name),
};
static const struct field image_fields[] = {
	FREE(jit_image_options, name),
	FREE(jit_image_options, max_bytes),
	FREE(jit_image_options, max_pixels),
};
static const struct field answer_fields[] = {
	FREE(jit_answer_options, tools),
	FREE(jit_answer_options, prompt),
	FREE(jit_answer_options, n_prompt),
	FREE(jit_answer_options, template_text),
	FREE(jit_answer_options, template_name),
	FREE(jit_answer_options, opened),
	FREE(jit_answer_options, id),
	FREE(jit_answer_options, one_call),
	FREE(jit_answer_options, keep_reasoning),
	FREE(jit_answer_options, cut),
	{ AT(jit_answer_options, reserved), WHOLE, { 0 }, { -1, 1 } },
};
static const struct field grammar_fields[] = {
	{ AT(jit_grammar_options, kind), WHOLE, { 0 }, { -1, 6, 0x100, 0x102 } },
	FREE(jit_grammar_options, behind_reasoning),
	FREE(jit_grammar_options, text),
	FREE(jit_grammar_options, n),
	FREE(jit_grammar_options, prompt),
	FREE(jit_grammar_options, n_prompt),
	FREE(jit_grammar_options, tools),
	FREE(jit_grammar_options, template_text),
	FREE(jit_grammar_options, template_name),
	FREE(jit_grammar_options, opening),
};
static const struct field forced_fields[] = {
	FREE(jit_forced_options, tools),         FREE(jit_forced_options, function),
	FREE(jit_forced_options, template_text), FREE(jit_forced_options, template_name),
	FREE(jit_forced_options, one_call),      { AT(jit_forced_options, reserved), WHOLE, { 0 }, { -1, 1 } },
	FREE(jit_forced_options, prompt),        FREE(jit_forced_options, n_prompt),
};
static const struct field objects_fields[] = {
	FREE(jit_objects_options, target),
	FREE(jit_objects_options, dir),
	{ AT(jit_objects_options, kv), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	FREE(jit_objects_options, f32_activations),
	FREE(jit_objects_options, bounded_numerics),
	{ AT(jit_objects_options, reserved), WHOLE, { 0 }, { -1, 1 } },
};
static const struct field compute_fields[] = {
	FREE(jit_compute_options, device),
	FREE(jit_compute_options, isa),
	{ AT(jit_compute_options, threads), WHOLE, { 1, 1024 }, { -1, 1025, INT_MIN, INT_MAX } },
	FREE(jit_compute_options, sealed),
	FREE(jit_compute_options, cache_dir),
	FREE(jit_compute_options, cache_limit),
	FREE(jit_compute_options, dump_ir),
	FREE(jit_compute_options, dump_asm),
	FREE(jit_compute_options, jitdump),
	FREE(jit_compute_options, perf_map),
	FREE(jit_compute_options, gdb),
	FREE(jit_compute_options, cancel),
	FREE(jit_compute_options, trace),
};
static const struct field kernel_fields[] = {
	FREE(jit_kernel_options, source),
	FREE(jit_kernel_options, n),
	FREE(jit_kernel_options, path),
	FREE(jit_kernel_options, kernel),
	FREE(jit_kernel_options, constants),
	FREE(jit_kernel_options, check),
	{ AT(jit_kernel_options, reserved), WHOLE, { 0 }, { -1, 1 } },
	FREE(jit_kernel_options, messages),
	FREE(jit_kernel_options, n_messages),
};
static const struct field graph_fields[] = {
	FREE(jit_graph_options, source),
	FREE(jit_graph_options, n),
	FREE(jit_graph_options, path),
	FREE(jit_graph_options, sizes),
};
static const struct field optimise_fields[] = {
	FREE(jit_optimise_options, start),
	FREE(jit_optimise_options, start_low),
	FREE(jit_optimise_options, start_high),
	FREE(jit_optimise_options, lower),
	FREE(jit_optimise_options, upper),
	FREE(jit_optimise_options, seed),
	FREE(jit_optimise_options, sigma),
	FREE(jit_optimise_options, crossover_eta),
	FREE(jit_optimise_options, mutation_eta),
	FREE(jit_optimise_options, crossover),
	FREE(jit_optimise_options, mutation),
	{ AT(jit_optimise_options, method), WHOLE, { 1, 2, 3 }, { -1, 4, INT_MIN, INT_MAX } },
	{ AT(jit_optimise_options, dimension), WHOLE, { 0 }, { 0 } },
	{ AT(jit_optimise_options, objectives), WHOLE, { 1 }, { -1, INT_MIN, INT_MAX } },
	{ AT(jit_optimise_options, population), WHOLE, { 4, 1 << 20 }, { -1, INT_MIN } },
	{ AT(jit_optimise_options, divisions), WHOLE, { 1, 99 }, { -1, INT_MIN } },
	FREE(jit_optimise_options, separable),
	FREE(jit_optimise_options, passive),
	{ AT(jit_optimise_options, bounds), WHOLE, { 1 }, { -1, 2, INT_MIN, INT_MAX } },
	{ AT(jit_optimise_options, restarts), WHOLE, { 1, 2, 3 }, { -1, 4, INT_MIN, INT_MAX } },
	{ AT(jit_optimise_options, runs), WHOLE, { 1, 100 }, { -1, INT_MIN } },
};
static const struct field train_fields[] = {
	FREE(jit_train_options, model),
	FREE(jit_train_options, targets),
	FREE(jit_train_options, device),
	FREE(jit_train_options, isa),
	FREE(jit_train_options, cache_dir),
	FREE(jit_train_options, cancel),
	FREE(jit_train_options, seed),
	{ AT(jit_train_options, threads), WHOLE, { 1, 1024 }, { -1, 1025, INT_MIN, INT_MAX } },
	{ AT(jit_train_options, context), WHOLE, { 2, 1 << 17 }, { -1, 1, (1 << 17) + 1, INT_MIN } },
	FREE(jit_train_options, full),
	{ AT(jit_train_options, rank), WHOLE, { 1, 4096 }, { -1, 4097, INT_MIN, INT_MAX } },
	FREE(jit_train_options, rslora),
	FREE(jit_train_options, dora),
	{ AT(jit_train_options, schedule), WHOLE, { 1, 2 }, { -1, 3, INT_MIN, INT_MAX } },
	{ AT(jit_train_options, warmup), WHOLE, { 1, 1 << 30 }, { -1, INT_MIN, INT_MAX } },
	{ AT(jit_train_options, steps), WHOLE, { 1, 1 << 30 }, { -1, INT_MIN, INT_MAX } },
	{ AT(jit_train_options, alpha), REAL, { 0.5, 16, 1e6 }, { NAN, INFINITY, -1 } },
	{ AT(jit_train_options, rate), REAL, { 0.5, 1e-4 }, { NAN, INFINITY, -0.5, 2 } },
	{ AT(jit_train_options, least_rate), REAL, { 0.5, 1 }, { NAN, INFINITY, -0.5, 2 } },
	{ AT(jit_train_options, weight_decay), REAL, { 0.5, 1000 }, { NAN, INFINITY, -0.5, 2000 } },
	{ AT(jit_train_options, beta1), REAL, { 0.5 }, { NAN, INFINITY, -0.5, 1 } },
	{ AT(jit_train_options, beta2), REAL, { 0.5 }, { NAN, INFINITY, -0.5, 1 } },
	{ AT(jit_train_options, epsilon), REAL, { 0.5, 1 }, { NAN, INFINITY, -0.5, 2 } },
	{ AT(jit_train_options, clip), REAL, { 0.5, 1e12 }, { NAN, INFINITY, -0.5 } },
	{ AT(jit_train_options, dropout), REAL, { 0.5 }, { NAN, INFINITY, -0.5, 1 } },
	FREE(jit_train_options, keep_activations),
	{ AT(jit_train_options, reserved), WHOLE, { 0 }, { -1, 1 } },
};
static const struct field work_fields[] = {
	FREE(jit_work, bytes),
	FREE(jit_work, operations),
	FREE(jit_work, copied),
	FREE(jit_work, memory),
};

#endif
