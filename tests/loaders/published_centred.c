/* tests/loaders/published_centred.c - the tensors of published models whose norms subtract the mean and have biases. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/published.h"

void centred_entries(struct header *h, const char *type, const char *base, uint64_t layer, const uint64_t size[3])
{
	const uint64_t hidden = size[0], queries = size[1], ffn = size[2];
	const bool phi = strcmp(type, "phi") == 0;
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.bias", 0, hidden, true },
		{ "post_attention_layernorm.bias", 0, hidden, !phi },
		{ "self_attn.dense.weight", hidden, queries, phi },
		{ "self_attn.dense.bias", 0, hidden, phi },
		{ "mlp.fc1.weight", ffn, hidden, phi },
		{ "mlp.fc1.bias", 0, ffn, phi },
		{ "mlp.fc2.weight", hidden, ffn, phi },
		{ "mlp.fc2.bias", 0, hidden, phi },
	};
	char name[120];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu64 ".%s", base, layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
}

void centred_outer(struct header *h, const char *type, const char *base, uint64_t hidden, uint64_t vocab)
{
	const bool phi = strcmp(type, "phi") == 0;
	char name[60];

	snprintf(name, sizeof name, "%s%s.weight", base, phi ? "final_layernorm" : "norm");
	entry(h, name, 0, hidden);
	snprintf(name, sizeof name, "%s%s.bias", base, phi ? "final_layernorm" : "norm");
	entry(h, name, 0, hidden);
	if (phi || strcmp(type, "phimoe") == 0)
		entry(h, "lm_head.bias", 0, vocab);
}
