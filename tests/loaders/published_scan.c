/* tests/loaders/published_scan.c - the tensors that follow from what is published of models with the selective scan. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/published.h"

/* A letter of a string, or a word of a list; 0: there is none. */
static char kind_of(json_t *config, uint64_t layer)
{
	const char *kinds = json_string_value(json_object_get(config, "hybrid_override_pattern")),
		   *word = json_string_value(json_array_get(json_object_get(config, "layers_block_type"), layer));

	if (!word)
		return kinds && layer < strlen(kinds) ? kinds[layer] : 0;
	return strcmp(word, "mamba") == 0 ? 'M' : strcmp(word, "attention") == 0 ? '*' : 'E';
}

/* A layer of Nemotron-H, which is one thing alone. */
void one_part_entries(struct header *h, json_t *config, uint64_t layer)
{
	const uint64_t hidden = number(config, "hidden_size", 1), ffn = number(config, "intermediate_size", 1),
		       dim = number(config, "head_dim", number(config, "attention_head_dim", 128)),
		       routed = number(config, "n_routed_experts", 0),
		       wide = number(config, "moe_intermediate_size", 1);
	const char kind = kind_of(config, layer);
	uint64_t heads = number(config, "mamba_num_heads", 1), values = heads * number(config, "mamba_head_dim", 1),
		 channels = values + 2 * number(config, "n_groups", 1) * number(config, "ssm_state_size", 1),
		 q = dim * number(config, "num_attention_heads", 1),
		 kv = dim * number(config, "num_key_value_heads", 1),
		 shared = number(config, "moe_shared_expert_intermediate_size", 1);
	const struct {
		const char *name;
		uint64_t rows, cols;
		char kind; /* 0: all */
	} list[] = {
		{ "norm.weight", 0, hidden, 0 },
		{ "mixer.in_proj.weight", values + channels + heads, hidden, 'M' },
		{ "mixer.out_proj.weight", hidden, values, 'M' },
		{ "mixer.conv1d.weight", channels, number(config, "conv_kernel", 1), 'M' },
		{ "mixer.conv1d.bias", 0, channels, 'M' },
		{ "mixer.A_log", 0, heads, 'M' },
		{ "mixer.dt_bias", 0, heads, 'M' },
		{ "mixer.D", 0, heads, 'M' },
		{ "mixer.norm.weight", 0, values, 'M' },
		{ "mixer.q_proj.weight", q, hidden, '*' },
		{ "mixer.k_proj.weight", kv, hidden, '*' },
		{ "mixer.v_proj.weight", kv, hidden, '*' },
		{ "mixer.o_proj.weight", hidden, q, '*' },
		{ "mixer.up_proj.weight", ffn, hidden, '-' },
		{ "mixer.down_proj.weight", hidden, ffn, '-' },
		{ "mixer.gate.weight", routed, hidden, 'E' },
		{ "mixer.gate.e_score_correction_bias", 0, routed, 'E' },
		{ "mixer.shared_experts.up_proj.weight", shared, hidden, 'E' },
		{ "mixer.shared_experts.down_proj.weight", hidden, shared, 'E' },
	};
	char name[120];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "backbone.layers.%" PRIu64 ".%s", layer, list[i].name);
		if (!list[i].kind || list[i].kind == kind)
			entry(h, name, list[i].rows, list[i].cols);
	}
	for (uint64_t e = 0; kind == 'E' && e < routed; e++) {
		snprintf(name, sizeof name, "backbone.layers.%" PRIu64 ".mixer.experts.%" PRIu64 ".up_proj.weight",
		         layer, e);
		entry(h, name, wide, hidden);
		snprintf(name, sizeof name, "backbone.layers.%" PRIu64 ".mixer.experts.%" PRIu64 ".down_proj.weight",
		         layer, e);
		entry(h, name, hidden, wide);
	}
}
