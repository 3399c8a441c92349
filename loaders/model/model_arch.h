/* loaders/model/model_arch.h - what is known of model architectures: one table of those that run and those that are
 * refused.
 *
 * Owns: names (GGUF's general.architecture, config.json's model_type and architectures), how a family differs from
 * llama where jitrun computes the difference, what a refused family needs, and the lists of tensors, keys and fields
 * that change nothing.
 *
 * Rule: what a file says and neither a reader asks for nor a list here names is refused. A name comes onto a list only
 * when leaving it out cannot change a result.
 */
#ifndef LOADERS_MODEL_ARCH_H
#define LOADERS_MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/model/model.h"

/* Which layers of a config.json have its window. */
enum arch_window {
	WINDOW_IGNORED,
	WINDOW_ALL_LAYERS,
	WINDOW_BY_TYPE, /* by layer_types, else all but one of so many (sliding_window_pattern) */
	/* those where use_sliding_window turns it on: */
	WINDOW_IF_USED,     /* all */
	WINDOW_SOME_LAYERS, /* by layer_types, else from max_window_layers on */
	WINDOW_ALTERNATES,  /* by layer_types, else each second one before max_window_layers */
	WINDOW_CHUNKS,      /* attention_chunk_size: by layer_types, else those that rotate */
	WINDOW_STILL        /* by layer_types, else those that do not rotate */
};

/* Another name for a tensor of a layer. */
struct arch_name {
	enum tensor_slot slot;
	const char *gguf, *hf; /* NULL: the usual one; both: no entry */
};
enum { ARCH_NAMES_MAX = 32, ARCH_NORM_NAMES = 4 };

/* Matrices that one tensor of the file holds, row after row. */
enum arch_fused {
	FUSED_QKV = 1,
	FUSED_GATE_UP = 2,
	FUSED_CONV = 4,
	FUSED_Q_GATE = 8, /* head by head */
	FUSED_EXPERTS = 16,
	FUSED_DELTA = 32, /* of the delta rule: what goes through the convolution and the gate, by heads of keys */
	FUSED_RATES = 64, /* its two matrices with a row for each head of values, by heads of keys */
	FUSED_BY_COLUMNS =
		128, /* experts' rows of gate and up alternately, and of floats columns as rows (model_columns.c) */
	FUSED_SCAN = 256,     /* of the selective scan: the gate, what goes through the convolution, and the steps */
	FUSED_SHARED = 512,   /* gate and up of the shared expert */
	FUSED_CHANNEL = 2048, /* of the selective scan of channels: its input and gate; steps, keys and queries */
	FUSED_BY_HEADS = 1024 /* with FUSED_QKV: of each head its queries, keys and values */
};

/* What a family has beyond llama, where tensors alone do not show it. */
enum arch_switch {
	SWITCH_SCALES = 1,            /* of embeddings, of what is added to the stream, of scores and logits */
	SWITCH_QUERY_SCALE = 2,       /* of queries, by position */
	SWITCH_PARTIAL = 4,           /* a part of a head may rotate */
	SWITCH_LONG = 8,              /* rotary factors for short and for long contexts */
	SWITCH_NO_ROPE_LAYERS = 16,   /* one layer of four does not rotate, or as no_rope_layers says */
	SWITCH_WINDOWS_ROTATE = 32,   /* where some layers have a window, the others do not rotate */
	SWITCH_WINDOW_ROPE = 64,      /* layers with a window rotate without scaling, perhaps by a base of their own */
	SWITCH_EMBED_ROOT = 128,      /* embeddings are scaled by sqrt(hidden) */
	SWITCH_PLUS_ONE = 256,        /* safetensors hold norms' weights less 1 */
	SWITCH_QUERY_SCALAR = 512,    /* the scores' scale is 1/sqrt(query_pre_attn_scalar) */
	SWITCH_YARN_FACTOR = 1024,    /* GGUF's yarn_attn_factor is the whole attention factor */
	SWITCH_CAPS = 4096,           /* scores and logits are bounded */
	SWITCH_NORMS_ROTATED = 2048,  /* norms of Q's and K's heads stand behind the rotation */
	SWITCH_LAYER_NORM = 8192,     /* norms subtract the mean */
	SWITCH_PARALLEL = 16384,      /* attention and the feed-forward layer read one norm */
	SWITCH_LOGIT_SCALE = 32768,   /* logits are multiplied by logit_scale */
	SWITCH_LAYER_SIZES = 65536,   /* layers differ in sizes; some attend to others' keys and values */
	SWITCH_SCORES_PLAIN = 131072, /* scores have no scale */
	SWITCH_VALUE_NORMS = 262144,  /* each head's values are normed, without weights */
	SWITCH_TILED = 1 << 19, /* GGUF has heads of values round-robin over those of keys (model_recurrent.tiled) */
	SWITCH_LATER_LAYERS = 1 << 23, /* layers that predict further tokens may stand behind the others */
	SWITCH_ONE_PART = 1 << 25,     /* a layer is a mixer or a feed-forward layer, not both */
	SWITCH_NO_ROPE = 1 << 22,      /* whether layers rotate the file says */
	SWITCH_LATENT = 1 << 24,       /* latent attention */
	SWITCH_YARN_EXACT = 1 << 21,   /* YaRN's borders are not rounded in GGUF files */
	SWITCH_RANKS = 1 << 26,        /* GGUF files may hold a classifier of the last token, which ranks texts */
	SWITCH_HEAD_NORMS = 1 << 20,   /* norms of heads as use_qk_norm says, or the tensors of a GGUF file */
	SWITCH_ALPHA = 1 << 28,        /* the rotary scaling "dynamic" is a larger base, by its alpha */
	SWITCH_LOGIT_CAP = 1 << 27,    /* logits are bounded; with SWITCH_CAPS scores are, too */
	SWITCH_ENCODES = 1 << 29,      /* arch_row.encoder says more */
	SWITCH_DEPTH_SCALES = 1 << 30, /* scales of embeddings, of what is added to the stream, and of logits that
	                                  follow from the number of layers and the width of a smaller model */
};

/* How a mixture's router works. ROUTING: there may be one; in GGUF alone with ROUTING_GGUF. NORMED, HF_NORMED: shares
 * add up to 1 unless the file says otherwise; STATED: by norm_topk_prob config.json may. GROUPS: experts may be in
 * groups, of which a token's are of some. */
enum arch_routing {
	ROUTING = 1,
	ROUTING_GGUF = 2,
	ROUTING_NORMED = 4,
	ROUTING_HF_NORMED = 8,
	ROUTING_STATED = 16,
	ROUTING_SIGMOID = 32,
	ROUTING_SHARED = 64,     /* the shared expert counts by a gate of its own */
	ROUTING_ALL = 128,       /* every layer: files need not say how wide another one would be */
	ROUTING_SHARE_EPS = 256, /* a millionth stands beside the sum that normed shares are divided by */
	ROUTING_MAYBE = 1024,    /* there may be no experts; what is shared is the feed-forward layer then */
	ROUTING_BESIDE = 2048,   /* experts stand beside the feed-forward layer, where there are any */
	ROUTING_OR_DENSE = 4096, /* with 0 experts config.json means usual feed-forward layers */
	ROUTING_GROUPS = 512,
	ROUTING_SCALED = 131072,      /* of one expert, whose share is in its input; each so many layers are mixtures */
	ROUTING_NEAR = 65536,         /* two experts, whose shares are those among others near them */
	ROUTING_AVERAGED = 32768,     /* the shared expert and the others count by halves; the router may be a sigmoid
	                                 without a bias */
	ROUTING_SHARED_WIDE = 262144, /* the shared expert has a width of its own, and no gate */
	ROUTING_CHOICE_BIAS = 16384,  /* a bias for the choice stands beside the softmax of all */
	ROUTING_COUNTED = 8192        /* n_shared_experts says how many are shared, whatever the router is */
};

/* Of what encodes a text. */
struct arch_encoder {
	bool positions,
		from_pad; /* positions have embeddings; from_pad: from the row behind the pad token's number on */
	bool types;       /* so have types of tokens */
	bool rotates;
	bool one_first; /* the first layer has no norm before attention; of those with windows, the first of
	                   each period has none, else the last one */
	double alibi;   /* model_spec.alibi */
	bool buckets;   /* model_spec.buckets, of which config.json says how many there are */
	/* Of safetensors, behind arch_row.base: embeddings of positions and types, the norm without ".weight", and the
	 * numbers of buckets. */
	const char *pos_embed, *type_embed, *norm, *score_bias;
	const char *ranks; /* of `classes`, the one that ranks texts */
	/* Its classifier's tensors: the dense matrix, its bias, the norm's weights, and those of the classes. */
	const char *classifier[5];
	enum host_act act;
};

/* Lists of names are words with a space between them; in those of tensors * stands for a number. NULL is an empty
 * list. */
struct arch_row {
	const char *gguf;  /* general.architecture, which also begins the names of its keys */
	const char *hf;    /* model_type of config.json */
	const char *lacks; /* what jitrun does not have for it; NULL: it runs */
	const char *note;  /* for docs/models.md */

	/* of those that run */
	enum model_form form;
	const char *classes;           /* what `architectures` of config.json may say */
	bool gguf_pairs, hf_pairs;     /* Q and K rows: rotation pairs adjacent in the file, else halves of a head */
	uint64_t groups;               /* of tensors that every layer has beside the usual ones: bits GROUP(name) */
	uint64_t without;              /* usual ones that no layer has */
	uint32_t switches;             /* enum arch_switch */
	uint32_t gguf_fused, hf_fused; /* enum arch_fused */
	enum model_act act;
	bool gguf_act_said; /* GGUF files say which function it is by hidden_act, or mean SiLU */
	bool gelu_said;     /* config.json says whether it is GELU or its approximation; GGUF files mean `act` */
	/* With WINDOW_BY_TYPE: every so many layers one has no window, the last of them, or the first. */
	uint32_t window_period;
	bool full_first;
	bool full_unlisted;      /* where config.json has no layer_types, none has one */
	const char *layer_heads; /* the field of config.json that lists each layer's heads; NULL: there is none */
	const char *layer_bases; /* the field of config.json that lists each layer's rotary base, 0: it does not
	                            rotate; NULL: there is none */
	const char *embed_root;  /* the field of config.json that turns SWITCH_EMBED_ROOT on; NULL: it always holds */
	double window_theta; /* with SWITCH_WINDOW_ROPE: the windows' rotary base where none is said; 0: as others */
	const char *bias, *o_bias, *mlp_bias; /* the fields of config.json that say there are biases: of Q, K and V, of
	                                         attention's output, of the feed-forward layer; NULL: never */
	bool qkv_bias;                        /* Q, K and V have one, unless config.json says otherwise by `bias` */
	uint32_t head_dim;                    /* where config.json leaves it out; 0: hidden size / heads */
	struct arch_name renamed[ARCH_NAMES_MAX]; /* tensors under other names than tensor_slots.h says */
	bool tied;                                /* tie_word_embeddings where config.json leaves it out */
	uint32_t routing;                         /* enum arch_routing */
	enum arch_window window;                  /* what sliding_window of config.json means */
	const char *stated; /* of config.json, which must be there: the class has no default that works */
	const char *fields; /* of config.json, which its class does not use */
	/* Fields of config.json by other names: "THEIRS=USUAL", or "THEIRS==USUAL" where the class reads nothing under
	 * the usual name. A list in which all numbers are the same counts as that number. */
	const char *renames;
	const char *parallel; /* the field of config.json that says whether SWITCH_PARALLEL holds; NULL: it always does
	                         or never */
	bool norms_apart;     /* then, too, the feed-forward layer has a norm of its own */
	bool head_weights; /* with SWITCH_HEAD_NORMS: each head has weights of its own, and the norm is that of layers
	                    */
	const char *kv_groups; /* with kv_one: the field of config.json by which heads of keys and values are as many as
	                          num_key_value_heads says, each behind its queries in one tensor */
	const struct arch_name *two_norms; /* ... and those names, with that field or as a GGUF file's tensors show: of
	                                      attention's norm and that of the feed-forward layer beside it */
	uint32_t ffn_times;    /* where config.json has no intermediate_size, hidden_size times this; 0: it must */
	bool norms_plain;      /* norms have no weights: files have none of them */
	bool head_biased;      /* so has the output matrix a bias */
	const char *head_bias; /* the field of config.json that says whether it has; NULL: as head_biased */
	const char *layers;    /* of safetensors: what stands before a layer's number; NULL: "layers." */
	/* Of those that generate: embeddings of positions, in safetensors behind `base`, of which the first
	 * positions_from are of no token; NULL: there are none. Layers then do not rotate, nor with alibi
	 * (SWITCH_NO_ROPE). */
	const char *pos_embed;
	uint32_t positions_from;
	/* Of those that generate: the norm of the embedding, in safetensors behind `base`, without ".weight"; NULL:
	 * there is none. */
	const char *embed_norm;
	double alibi;            /* of those that generate: model_spec.alibi */
	bool experts_by_columns; /* all experts' matrices in one tensor may lie column by column in safetensors */
	bool columns_first;      /* matrices of layers lie column by column in safetensors */
	const char *inner;       /* an object of config.json whose members count as fields; NULL: none */
	const char *rotary_dim;  /* the field of config.json that says how many values of a head rotate, or NULL */
	/* What config.json leaves out, as its class has it, where that is not what the reader takes anyway. Words
	 * "NAME=VALUE", the value as JSON without spaces: in place of a field that is absent or null.
	 * "NAME|OTHER=VALUE": where OTHER is missing, too, or an empty object; "NAME|null=VALUE": null is a value of
	 * its own, none. */
	const char *defaults;
	const char *keys; /* of GGUF's, that mean something here, or change nothing here, and elsewhere must be off */
	/* Where GGUF has no such keys: the window, of models of so many layers, or of all (0); bounds. 0: there is
	 * none. */
	uint32_t gguf_window, gguf_window_layers;
	double gguf_score_cap, gguf_logit_cap;
	bool gguf_states_window; /* GGUF files must */
	bool attends_beside;     /* those layers attend, too: Falcon H1 */
	bool channel_ones;       /* norms of channels' steps, keys and queries have no weights */
	/* Of layers with a state: where three tensors hold the taps of queries, keys and values, their names in GGUF
	 * and safetensors, with * for the letter; NULL: one holds all. */
	const char *taps_apart[2];
	bool norms_by_mixer; /* norms stand before the parts of layers with a state, and behind those of others */
	bool states_alone;   /* no layer attends, and there are no other parts: Mamba */
	enum model_mixer recurrent; /* what layers without attention have; MIXER_ATTENTION: there are none */
	const char *counts; /* fields of config.json that say how many experts there are; NULL: any of the names */
	const char *eps;    /* the field of config.json with the norms' epsilon; NULL: rms_norm_eps */
	/* Of safetensors: what names begin with, the embedding's, and that of the output matrix; NULL: as others. */
	const char *base, *embed, *head;
	const char *kv_one; /* the field of config.json that says that there is one head of keys and values; else there
	                       are as many as of queries, each head's queries, keys and values together in one tensor */
	const char *final_norm[2];             /* the tensor's name in GGUF, and in safetensors; NULL: the usual one */
	const struct arch_encoder *encoder;    /* with SWITCH_ENCODES */
	const char *wrapped, *wrapped_classes; /* model_type and architectures of a config.json that holds this one as
	                                          its text_config, beside parts for images or sound */
};

/* The name of the row for Gemma 3's configurations whose attention goes to both sides. */
#define BIDIRECTIONAL_GEMMA "gemma3_text-bidirectional"
/* The name of the row for configurations of BERT whose scores are biased by distance: Jina's. */
#define BIASED_BERT "bert-alibi"

/* The row of such a name, or NULL. */
const struct arch_row *arch_of_gguf(const char *name, size_t n);
const struct arch_row *arch_of_hf(const char *name);
/* The names that run: "llama, qwen2 or qwen3", or as many as there is room for: "llama, qwen2 or others". Returns out.
 */
const char *arch_names(bool gguf, char *out, size_t cap);

/* What the tensors must be, beyond the hyperparameters: which groups of them there are. */
enum model_need { NEED_NOT, NEED_IF_PRESENT, NEED_ALWAYS };

struct model_needs {
	enum model_need group[TENSOR_GROUPS];
	bool tied_by_config; /* HF: tie_word_embeddings; GGUF: tied when output.weight is missing */
	bool head_biased;    /* so has the output matrix a bias */
	bool head_apart;     /* HF: an output matrix that is there is used all the same */
	bool rope_pairs;     /* Q and K rows: rotation pairs adjacent */
};

/* What a row alone says of them: no biases, and not tied. */
struct model_needs arch_needs(const struct arch_row *row, bool rope_pairs);

/* All rows, and the names that change nothing of any of them. */
const struct arch_row *arch_rows(size_t *n);
struct arch_lists {
	const char *gguf_keys, *hf_fields, *gguf_tensors, *hf_tensors;
};
struct arch_lists arch_lists(void);

/* A key (behind the architecture) or field that turns on a computation there is none for, and the value that leaves it
 * off. */
struct arch_off {
	const char *name;
	double off;
	const char *means; /* in words, or NULL where the name says it */
};
const struct arch_off *arch_gguf_offs(size_t *n);
const struct arch_off *arch_hf_off(const char *field);

/* Names that change nothing. */
bool arch_gguf_key_harmless(const char *suffix);
bool arch_hf_field_harmless(const struct arch_row *row, const char *field);
bool arch_tensor_harmless(bool gguf, const char *name, size_t n);
bool arch_word_in(const char *words, const char *word);

#endif
