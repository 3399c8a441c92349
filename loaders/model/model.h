/* loaders/model/model.h - a model file, opened: what it is (model_spec) and where its tensors lie.
 *
 * Owns: the open files and the checked description of the model in them. After model_open()
 * returns true every number here has been checked: sizes multiply without overflow, every tensor
 * lies inside its file, every shape agrees with the hyperparameters. Users above may therefore
 * index without asking again. Every byte of a file is hostile until it has passed through here.
 * Files are read, not mapped: one that is cut, written to or taken away while it is open is a
 * sentence of the next reader, or of model_read_done(). What is in memory is not the file's any more.
 *
 * Never: computes with weights, allocates in proportion to a number read from a file that was not
 * first compared with the file's size, prints, exits.
 *
 * A path may be a .gguf file (the first of a split set finds the others), a .safetensors file
 * (config.json and tokenizer.json beside it), or a directory that holds either.
 */
#ifndef LOADERS_MODEL_H
#define LOADERS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/sampling_fields.h"
#include "loaders/model/model_mixers.h"
#include "loaders/model/tensor_slots.h"

/* The forms that layers have, each the sequence of steps in runtime/plan/arch_NAME.c: id, name. Architectures of one
 * form differ in which tensors they have. */
#define MODEL_FORMS(X) X(LLAMA, llama) X(LATENT, latent) X(BERT, bert)
enum model_form {
#define X(id, name) FORM_##id,
	MODEL_FORMS(X)
#undef X
};

/* The activation function of the feed-forward layer. */
enum model_act {
	MODEL_SILU,
	MODEL_GELU, /* its approximation by tanh */
	MODEL_RELU2,
	MODEL_SWIGLU_OAI, /* gpt-oss */
	MODEL_GELU_ERF,   /* GELU itself */
	MODEL_RELU,
	MODEL_XIELU /* by four numbers of the layer's */
};

/* Those of MODEL_XIELU: of what is above 0 and below, what both have, and where what is below ends. */
enum { XIELU_ABOVE, XIELU_BELOW, XIELU_BOTH, XIELU_END, XIELU_NUMBERS };

/* What a layer rotates queries and keys by. */
enum model_rotation {
	ROTATION_MAIN,   /* model_spec.rope */
	ROTATION_WINDOW, /* model_spec.window_rope */
	ROTATION_NONE,   /* nothing */
	MODEL_ROTATIONS
};

enum rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_LONG };

/* A frequency divided by so much, or more, is 0: the pair does not rotate. */
#define MODEL_ROPE_STILL 1e30f

/* A factor or a bound that a model may have. All 0: none, which is not the same as one of 0 or 1. */
struct model_scale {
	bool given;
	float value;
};

/* Rotary embedding. The angle of pair i of dims/2 at position p is (float)p * (float)inv_freq[i]. */
struct model_rope {
	uint32_t dims; /* rotated dimensions of a head: the first ones */
	double theta;
	enum rope_scaling scaling;
	double factor;                            /* linear, llama3, yarn */
	double low_freq_factor, high_freq_factor; /* llama3 */
	uint32_t original_context;                /* llama3, yarn, long */
	double beta_fast, beta_slow,
		attention_factor;  /* yarn, long; attention_factor multiplies cos and sin, already resolved */
	bool yarn_truncate;        /* yarn: correction range rounded outwards (HF `truncate`, default true) */
	const float *freq_factors; /* dims/2 divisors of inv_freq, or NULL: GGUF's rope_freqs.weight, which replaces
	                              llama3; of long, those of sessions of up to original_context positions */
	/* Of pictures' tokens, pairs rotate by time, row or column: so many by each; 0: all have one position.
	 * interleaved: pairs alternate, else sections lie one behind the other. */
	uint32_t sections[3];
	bool interleaved;
	const float *long_factors; /* long: those of longer sessions; NULL with MODEL_HEADER_ONLY, as freq_factors */
};

struct model_quants;

/* One tensor, in its file. rows x cols, row after row; a vector has rows == 1. */
struct model_tensor {
	const char *name; /* as in the file, for messages */
	enum dtype type;
	uint64_t rows, cols;
	uint32_t part;           /* of the model's files */
	uint64_t offset;         /* there */
	size_t bytes, row_bytes; /* bytes 0: the model has no such tensor (an absent bias) */
	/* Of a matrix whose quants and scales are tensors of their own, how these lie (loaders/model/model_affine.h):
	 * an entry for each expert, or one. offset is that of the quants. NULL: it is one tensor. */
	const struct model_quants *quants;
	/* Rows of Q or K (or elements of their bias or norm) whose order in the file is not the kernels': the first
	 * rope_dims of a head rotate, as pairs (2i, 2i + 1) with rope_pairs, else as (i, i + rope_dims/2). Code that
	 * packs asks model_source_row(); no kernel knows of the other order. 0: rows stay as they lie. */
	uint32_t rope_dims;
	bool rope_pairs;
	uint32_t head_rows,
		head_first; /* of each head_rows rows in the file, a head's begin with this one; 0: head_dim */
	/* Rows that lie in the file by heads of keys, by_key of them for each, 0: they do not. Packed, each section has
	 * of every head its `rows` from `first` on, and behind it comes the next one. */
	uint32_t by_key, key_heads;
	struct {
		uint32_t rows, first;
	} section[3];
	bool minus_exp;                /* each number x of the file stands for -exp(x) */
	bool plus_one;                 /* a norm's weights, to each of which 1 is added */
	bool ones;                     /* a vector that no file has: each number is 1 */
	const float *given;            /* a vector that no tensor of a file is: its numbers, or NULL */
	uint32_t by_channel;           /* a vector of so many numbers of each channel; packed, 32 channels' first ones
	                                  come first; 0: it is none */
	const float *each_times;       /* the same of each number by itself, or NULL */
	float times;                   /* each number of the file stands for its product with this; 0: for itself */
	uint32_t rope_head, rope_skip; /* of these: a head's rows, where the model's head_dim does not say it; the first
	                                  ones that stay as they are */
	/* A matrix for each of `heads` heads, 0: it is one. A head's are rows first ... of the own_file_rows that it
	 * has in the file, own_rows of them; or, transposed, what there are rows of `cols` columns of. `rows` counts
	 * each head's filled up to 32; row_bytes and bytes are the file's. */
	uint32_t heads, own_rows, own_file_rows, own_first;
	bool transposed, own_apart; /* own_apart: of a matrix that is one, its rows are neighbours in the file */
	/* Of a mixture's experts, rows and cols being one's: how many, 0 for other tensors; and where each lies, in
	 * bytes from one to the next, or anywhere (location, experts entries). bytes: of all. With own_file_rows each
	 * has so many rows, or elements of a vector, in the file, of which those from own_first on are meant that lie
	 * equally far apart; MXFP4 with a group has its scales apart, and floats may be transposed
	 * (model_columns.c). */
	uint32_t experts;
	uint64_t expert_stride;
	const struct expert_location *location;
	const struct model_extent *extent; /* MODEL_EXTENTS tensors whose elements are the vector's, or NULL: one is */
};

struct expert_location {
	uint32_t part;
	uint64_t offset;
};

enum { MODEL_EXTENTS = 3 };
struct model_extent {
	uint32_t part;
	uint64_t offset, bytes;
};

/* Each tensor by its name in tensor_slots.h, and by its position among those of its sort. */
struct model_layer {
	union {
		struct {
#define X(name, ...) struct model_tensor name;
			MATRIX_SLOTS_EACH(X)
#undef X
		};
		struct model_tensor matrix[MATRIX_SLOTS];
	};
	union {
		struct {
#define X(name, ...) struct model_tensor name;
			VECTOR_SLOTS_EACH(X)
#undef X
		};
		struct model_tensor vector[VECTOR_SLOTS];
	};
};
_Static_assert(sizeof(struct model_layer) == TENSOR_SLOTS * sizeof(struct model_tensor), "a layer is its tensors");

/* What may differ between the layers of a model. */
struct model_sizes {
	uint32_t kv_heads, head_dim, ffn;
	uint32_t kv_layer; /* whose keys and values it attends to: its own number, or that of an earlier layer */
};

/* Latent attention: of each token one vector of `rank` numbers is kept, which all heads read as keys and as values, and
 * behind it a key of `rotating` dimensions. */
struct model_latent {
	uint32_t rank;       /* 0: none */
	uint32_t query_rank; /* queries go through a vector of so many numbers; 0: they do not */
	uint32_t rest,
		rotating; /* a query's dimensions: those that do not rotate, then those that do; head_dim together */
	uint32_t value;   /* dimensions of a head's result */
};
/* Of the norms of those vectors, whatever the others have. */
#define MODEL_LATENT_EPS 1e-6f

struct model_spec {
	enum model_form form;
	const char *arch_name, *name; /* as in the file */
	uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
	const struct model_sizes *layer_sizes; /* layers entries, or NULL: all as above. Those above are the largest */
	const uint32_t
		*layer_heads;    /* layers entries of attention's heads, or NULL: `heads` in all, which is the most */
	uint32_t context_train;  /* positions the model was made for */
	uint32_t sliding_window; /* 0: none */
	bool window_chunks; /* windows all begin at multiples of their length: a token sees its chunk of the text */
	const uint8_t *layer_is_sliding; /* layers entries, or NULL when all layers share sliding_window */
	const uint8_t *layer_rotation;   /* layers entries of enum model_rotation, or NULL: all as rope says */
	const uint8_t *layer_mixer;      /* layers entries of enum model_mixer, or NULL: attention in all */
	struct model_recurrent recurrent;
	float norm_eps, head_eps; /* of the norms of Q's and K's heads, of channels' steps and behind the delta rule, 0:
	                             the same */
	bool tied;                /* logits use the embedding matrix */
	bool norms_rotated;       /* norms of Q's and K's heads stand behind the rotation */
	bool head_weights;        /* norms of Q's and K's heads are as others, and each head has its own weights */
	bool centred;             /* norms subtract the mean */
	bool value_norms;         /* each head's values are normed, without weights */
	uint32_t layer_input;     /* numbers that each layer gets of a token's own (numerics.h rule 11); 0: none */
	bool attends_beside;      /* layers that keep a state attend, too, and both results are added to the stream */
	enum model_scan_norm scan_norm;
	struct model_factors factors;
	bool one_part;          /* a layer is a mixer or a feed-forward layer, not both */
	bool pictures_whole;    /* tokens of a picture see all of it, */
	bool pictures_windowed; /* in layers with a window alone */
	bool parallel;          /* the feed-forward layer reads what attention reads, behind one norm */
	enum model_act act;
	struct model_scale attention_scale; /* of the scores; none: 1/sqrt(head_dim) */
	struct model_scale embed_scale, residual_scale, logit_scale, logit_cap, score_cap;
	/* Queries at position p are multiplied by 1 + query_scale * ln(1 + floor((p + query_scale_offset) /
	 * query_scale_length)); 0: none. query_scale_still: in layers that do not rotate, alone. */
	double query_scale;
	uint32_t query_scale_length, query_scale_offset;
	bool query_scale_still;
	struct model_latent latent; /* with it, kv_heads is 1 */
	/* Of a mixture of experts; 0: none. The first layers may have none. */
	uint32_t experts, experts_used, expert_ffn, shared_ffn, dense_layers;
	uint32_t expert_groups, expert_groups_used; /* those of a token are of some groups; 0: there are none */
	const uint8_t *layer_routes;        /* layers entries: which are mixtures; NULL: all but those first ones */
	bool router_sigmoid, router_normed; /* of a softmax: over the chosen, else over all */
	float router_near;                  /* shares are those among experts so near the greatest; 0: among others */
	bool router_share_eps;              /* of a sigmoid: beside the sum of the chosen ones */
	bool experts_scaled; /* the one chosen expert's input is multiplied by its share, and its result is not */
	bool experts_beside; /* layers with experts have a dense feed-forward layer beside them */
	struct model_scale router_scale,
		shared_scale; /* of the chosen experts' shares; of the shared expert's result */
	bool dense_rotates;   /* the first layers without experts rotate, whatever others of their kind do */
	struct model_rope rope, window_rope;
	/* It encodes a text: tokens see what is behind them, too, a window reaches sliding_window / 2 to each side, and
	 * nothing is generated. The embedding of a token is the sum of its row, of its position's, the first token's
	 * being row positions_from, and of its type's; then comes a norm. All of these but the first may be missing. */
	bool encodes;
	uint32_t positions_from, token_types;
	double alibi;     /* scores lose so much with distance, by head: the greatest bias of ALiBi; 0: none */
	uint32_t buckets; /* of distances, for each of which scores have a number of a head's; 0: none */
	struct model_tensor pos_embed, type_embed, embed_norm, embed_norm_bias, final_norm_bias, head_bias, score_bias;
	struct model_tensor embed, final_norm, lm_head;          /* lm_head is embed when tied */
	struct model_tensor input_embed, input_proj, input_norm; /* with layer_input */
	struct model_layer *layer;                               /* layers entries */
};

static inline struct model_scale model_scale_of(float value) { return (struct model_scale){ true, value }; }

/* Whether a layer is a mixture of experts. */
static inline bool model_layer_routes(const struct model_spec *s, uint32_t layer)
{
	return s->experts && (s->layer_routes ? s->layer_routes[layer] : layer >= s->dense_layers);
}

static inline struct model_sizes model_sizes_of(const struct model_spec *s, uint32_t layer)
{
	return s->layer_sizes ? s->layer_sizes[layer] : (struct model_sizes){ s->kv_heads, s->head_dim, s->ffn, layer };
}

static inline uint32_t model_heads_of(const struct model_spec *s, uint32_t layer)
{
	return s->layer_heads ? s->layer_heads[layer] : s->heads;
}

/* By which parameters a layer rotates. */
static inline const struct model_rope *model_rope_of(const struct model_spec *s, uint32_t layer)
{
	return s->layer_rotation && s->layer_rotation[layer] == ROTATION_WINDOW ? &s->window_rope : &s->rope;
}

static inline enum model_mixer model_layer_mixer(const struct model_spec *s, uint32_t layer)
{
	return s->layer_mixer ? (enum model_mixer)s->layer_mixer[layer] : MIXER_ATTENTION;
}

/* Dimensions of a row of the KV cache. */
static inline uint32_t model_cache_dim(const struct model_spec *s, uint32_t layer)
{
	return s->latent.rank ? s->latent.rank + s->latent.rotating : model_sizes_of(s, layer).head_dim;
}

struct tokenizer;
struct model_file; /* private: files, parsed metadata, strings */

/* How the model's conversations are written (chat/chat.h): a text of the files, with a 0 behind it, by its name. */
struct model_chat_template {
	const char *name; /* "default" for the usual one; others are for what they are called, as "tool_use" */
	const char *text;
	size_t n;
};

/* How the model's makers say that tokens are to be chosen: what the files name of it, and nothing else. A temperature
 * of 0 always takes the likeliest token; top_k 0 and -1 are all; repeat_window 0 is no penalties, -1 all tokens. */
struct model_sampling {
	uint64_t given; /* bit i: value[i] is in the files */
	double value[SAMPLING_FIELDS];
	char *samplers; /* their names in order, as the file has them; NULL */
	int32_t *never; /* tokens that are never chosen */
	size_t n_never;
	char *not_done; /* what else the files ask for, which is not done: names with commas between; NULL: nothing */
	int32_t *never_first; /* tokens that are not chosen right behind what was fed */
	size_t n_never_first;
	uint32_t no_repeat; /* so many tokens in a row come once; 0: any number of times */
	int32_t *words;     /* rows of several tokens that do not come, each behind its length */
	size_t n_words;     /* of the lengths and tokens together */
	char **stop;        /* texts that end a generation */
	size_t n_stop;
};
enum { MODEL_STOP_TEXTS = 256, MODEL_STOP_BYTES = 4096 }; /* the most of them, and of each */

/* What a text's embedding is, as the model's makers say; numbered as JIT_POOL_LAST and so on. */
enum model_pooling {
	POOLING_LAST, /* the last token's hidden state */
	POOLING_MEAN, /* of all */
	POOLING_NOT_SAID,
	POOLING_RANK, /* none: a score, by a classifier behind the last token's */
	POOLING_CLS   /* the first token's */
};

/* Activation functions that the host computes; numbered as packed models have them. */
enum host_act { HOST_TANH, HOST_GELU, HOST_RELU, HOST_IDENTITY, HOST_SIGMOID };

/* What makes scores of a row: of the last token, or of those that encode, of the first one or the mean of all; classes
 * 0: the model has none. With MODEL_HEADER_ONLY there are no numbers. NULL: that tensor is not there. */
struct model_classifier {
	uint32_t classes;
	enum host_act act;
	bool mean;
	const float *dense, *dense_bias; /* hidden x hidden, behind which comes act; hidden */
	const float *norm;               /* hidden: of a norm behind that, which subtracts the mean */
	const float *out, *out_bias;     /* classes x hidden; classes */
};
enum { MODEL_MAX_CLASSES = 1024 };

/* A layer behind pooling: out x in, with a bias or without, and act behind it. With MODEL_HEADER_ONLY there are no
 * numbers. */
struct model_dense {
	uint32_t in, out;
	enum host_act act;
	bool biased;
	const float *weight, *bias; /* NULL: no bias */
};
enum { MODEL_MAX_DENSE = 8 };

/* What the files say of themselves: a key, and a value of one of these kinds. */
enum metadata_kind {
	METADATA_STRING,
	METADATA_INTEGER,
	METADATA_REAL, /* and integers beyond int64_t */
	METADATA_BOOL,
	METADATA_ARRAY,
	METADATA_NULL,
	METADATA_OTHER /* of items: of several kinds, arrays, objects, or there are none */
};
struct model_metadata {
	const char *key;               /* with a 0 behind it */
	enum metadata_kind kind, item; /* item: of an array */
	int64_t integer;               /* INTEGER, BOOL */
	double real;
	const char *text; /* STRING: n bytes as they are in the file, and a 0; of the other kinds NULL */
	size_t n;         /* of an array: its items */
	/* ARRAY: its items in one block, their keys NULL; of a GGUF file only texts, once they are asked for */
	struct model_metadata *_Atomic items;
};

struct model {
	struct model_spec spec;
	struct tokenizer *tokenizer;  /* NULL when the model has none that can be read; owned by the model */
	struct error tokenizer_error; /* why not, when the files hold one: token ids can be used without it, text
	                                 cannot. Never that memory or the system failed: then no model is opened */
	struct model_chat_template *chat_template; /* what the files hold, nothing of it parsed; there may be none */
	uint32_t n_chat_templates;
	struct error chat_template_error; /* why some cannot be read, as above */
	struct model_sampling sampling;
	enum model_pooling pooling;
	struct model_classifier classifier;        /* with POOLING_RANK */
	struct model_dense dense[MODEL_MAX_DENSE]; /* what a pooled row goes through, in this order */
	uint32_t n_dense;
	struct model_metadata *metadata; /* in the order of the files */
	size_t n_metadata;
	uint64_t tensor_bytes; /* sum over the tensors used */
	uint64_t file_bytes;   /* sum of the sizes of all weight files */
	struct model_file *file;
};

/* How many numbers a pooled text has. */
uint32_t model_embedding(const struct model *m);

/* Item i of the array m->metadata[number], of which it must be one. False: no memory. From any thread. */
bool model_metadata_item(const struct model *m, size_t number, size_t i, struct model_metadata *out, struct error *err);

enum {
	MODEL_HEADER_ONLY = 1,
	MODEL_NO_TOKENIZER = 2,
	MODEL_KEEP_SOURCES = 4,
	MODEL_CHAT_TEMPLATES = 8
}; /* flags: HEADER_ONLY accepts files whose tensor data is missing or cut; no tensor can be read then. KEEP_SOURCES:
      model_sources() will be asked. NO_TOKENIZER leaves out chat templates, too, but with CHAT_TEMPLATES */

/* Bytes of a chat template; chat/ takes no more. */
enum { MODEL_MAX_CHAT_TEMPLATE = 1 << 20 };

/* Opens and checks. On failure returns false, *out is all zero, err holds one sentence. */
bool model_open(struct model *out, const char *path, unsigned flags, struct error *err);

/* What a model is opened from but its weights: the headers of its weight files in their order, texts, and what else the
 * loader reads of tensors. A packed model (runtime/model/packed.h) holds these. */
enum model_source_role {
	MODEL_SOURCE_GGUF, /* the header of a weight file */
	MODEL_SOURCE_SAFETENSORS,
	MODEL_SOURCE_CONFIG,
	MODEL_SOURCE_GENERATION_CONFIG,
	MODEL_SOURCE_TOKENIZER,
	MODEL_SOURCE_TOKENIZER_CONFIG,
	MODEL_SOURCE_CHAT_TEMPLATE,
	MODEL_SOURCE_ROPE_FACTORS, /* of a GGUF file, f32: model_rope.freq_factors */
	MODEL_SOURCE_LONG_FACTORS, /* and long_factors */
	MODEL_SOURCE_CHAT_JSON,
	MODEL_SOURCE_NAMED_TEMPLATES, /* names and texts alternately, a 0 behind each */
	MODEL_SOURCE_POOLING,
	MODEL_SOURCE_CLASSIFIER, /* of a GGUF file, f32: model_classifier */
	MODEL_SOURCE_DENSE,      /* model_dense.c says what is in it */
	MODEL_SOURCE_ROLES
};
struct model_source {
	enum model_source_role role;
	const void *bytes;
	uint64_t n;
};
const char *model_source_name(enum model_source_role role);
/* Of a model that was opened with MODEL_KEEP_SOURCES; malloc'ed, their bytes are the model's. NULL: err. */
struct model_source *model_sources(const struct model *m, size_t *n, struct error *err);
/* As model_open() with MODEL_HEADER_ONLY, from those, which must outlive the model and are as hostile as files; path
 * names them in messages. */
bool model_open_sources(struct model *out, const struct model_source *s, size_t n, const char *path, unsigned flags,
                        struct error *err);

/* The weight files, for who remembers which they were; header: what was parsed, the model's. */
struct model_part_facts {
	uint64_t bytes, device, inode;
	struct timespec written;
	const uint8_t *header;
	uint64_t header_bytes;
};
uint32_t model_part_count(const struct model *m);
struct model_part_facts model_part_facts(const struct model *m, uint32_t part);

/* The chat template of a name, NULL for the usual one; NULL: there is none. */
const struct model_chat_template *model_find_chat_template(const struct model *m, const char *name);
/* The sentence that there is none of that name, and which there are. Returns false. */
bool model_refuse_chat_template(const struct model *m, const char *name, struct error *err);

/* Which row of the file row r of the packed matrix is, or element of a vector (rope_dims above). */
uint64_t model_source_row(const struct model_tensor *t, uint32_t head_dim, uint64_t r);

/* Copies some of a tensor's bytes, which must be within it. From any thread. */
bool model_read(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes, void *out,
                struct error *err);
/* Whether rows are read quicker the more of them are read at once, since the file has them transposed. */
bool model_rows_lie_apart(const struct model_tensor *t);
/* All that was wanted has been read: whether it was the files that model_open() saw. Closes them; should more be read,
 * they are opened again. */
bool model_read_done(const struct model *m, struct error *err);

void model_close(struct model *m);

/* Architecture and quantisation in a line, for summaries: "qwen3 28 layers, hidden 1024, Q8_0". */
void model_describe(const struct model *m, char *out, size_t cap);

#endif
