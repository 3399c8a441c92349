/* loaders/model/model_load.h - what the parts of the model loader share; private to loaders/model/model*.c, to vision/,
 * which reads another part of the same files, and to the fuzz targets.
 *
 *   model_path.c  which files a path means
 *   model.c       opens and parses them, owns and releases everything, reads tensors
 *   model_sources.c  what a model is opened from, given as bytes and asked back
 *   model_gguf.c  GGUF metadata -> hyperparameters; model_gguf_rope.c those of positions and scales;
 *                 model_gguf_fields.c reads keys
 *   model_hf.c    config.json   -> hyperparameters; model_hf_rope.c those of positions, model_hf_scales.c of scales;
 *                 model_hf_fields.c reads fields
 *   model_hf_window.c  windows and which layers have one, from config.json
 *   model_gguf_mixers.c, model_hf_mixers.c  which layers keep a state instead of keys and values
 *   model_gguf_scan.c, model_hf_scan.c  those of the selective scan; model_hf_beside.c Falcon H1's factors
 *   model_encoder.c, model_hf_encoder.c, model_gguf_encoder.c  what encoders have beside others
 *   model_layers.c, model_gguf_layers.c, model_hf_layers.c  layers that differ in sizes
 *   model_switches.c  what the row of an architecture says for both
 *   model_experts.c  mixtures of experts, for both
 *   model_check.c  ranges of the hyperparameters
 *   model_bind.c  every tensor: found, shape, type; and that none is left over
 *   model_hf_quants.c  what config.json says of quantised weights
 *   model_affine.c  matrices that are several tensors; model_affine_read.c reads them
 *   model_xielu.c  the numbers of an activation function
 *   model_columns.c  experts' matrices that do not lie row by row
 *   model_mlx.c  tensors as MLX lays them out
 *   model_chat.c  chat templates
 *   model_sampling.c  how tokens are to be chosen
 *   model_pooling.c  what embeddings are made of; model_modules.c, model_dense.c the layers behind that
 *   model_classifier.c  what makes scores of texts; model_floats.c weights as floats
 *   model_metadata.c  all that the files say of themselves, as a list
 *   model_arch.c  the table of architectures, and what may be left over
 *
 * Rule: a number from a file enters model_spec through hparam_range(), hparam_limit() or a check of its own, and
 * model_bind() runs before anything is allocated in proportion to one.
 */
#ifndef LOADERS_MODEL_LOAD_H
#define LOADERS_MODEL_LOAD_H

#include "loaders/files/file.h"
#include "loaders/files/gguf.h"
#include "loaders/model/model.h"
#include "loaders/model/model_affine.h"
#include "loaders/model/model_arch.h"
#include "loaders/files/names.h"
#include "loaders/files/safetensors.h"

enum model_format { MODEL_GGUF, MODEL_HF };

/* One weight file: opened and parsed. */
struct model_part {
	struct file file;
	enum model_format format;
	union {
		struct gguf gguf;
		struct safetensors st;
	};
};

/* A tensor of any part. */
struct catalog_entry {
	uint32_t part, tensor;
};

struct gguf_reader;
struct hf_reader;

struct model_file {
	enum model_format format;
	unsigned flags;
	struct model_part *part;
	uint32_t n_parts;
	struct catalog_entry *entry;
	bool *used; /* entries */
	uint32_t n_entries;
	struct names names;
	struct file config, generation_config, pooling_config, tokenizer_json, tokenizer_config, chat_jinja,
		chat_json;      /* texts, closed when the model is open, but with MODEL_KEEP_SOURCES */
	struct file chat_named; /* the same of further chat templates; see model_chat.c */
	char *chat_named_bytes; /* which own these bytes, unless they are a packed model's */
	struct file rope_factors, rope_long_factors, classifier_given,
		dense_given; /* from model_open_sources() alone */
	bool from_sources;
	const char *chat_label; /* the file that chat templates come from, for messages, while it is open */
	char *strings;          /* tensor names, 0-terminated, one after the other */
	size_t strings_used, strings_size;
	char *model_name, *arch_name;
	float *freq_factors, *long_factors, *classifier, *xielu, *taps_times;
	size_t n_classifier;
	void *dense; /* as MODEL_SOURCE_DENSE */
	size_t dense_bytes;
	uint8_t *layer_is_sliding, *layer_rotation, *layer_mixer, *layer_routes;
	bool ranks;                        /* HF: the class is one that ranks texts */
	bool rotates;                      /* with SWITCH_NO_ROPE: whether layers rotate */
	bool windowed;                     /* there is a window, though perhaps no layer has it */
	struct expert_location *locations; /* of experts that are tensors of their own */
	size_t n_locations;
	struct model_extent *extents; /* of each layer's taps, MODEL_EXTENTS each */
	struct model_sizes *layer_sizes;
	uint32_t *layer_heads;
	bool delta_fused;   /* GGUF: files of Qwen 3 Next from before its matrices had tensors of their own */
	bool experts_fused; /* GGUF: gate and up of experts are in one tensor, whatever the architecture's row says */
	bool experts_each;  /* HF: experts are tensors of their own, where the architecture's row has all in one */
	uint32_t later_layers; /* behind the model's, which predict further tokens: they are left out */
	bool values_are_keys;  /* of layers without a window: no matrix makes them */
	const struct arch_row *arch;
	struct model_needs needs;
	const struct arch_name *two_norms; /* arch_row.two_norms, where the model has those; NULL: it has not */
	bool by_groups;    /* HF: Q, K and V lie in one tensor by heads of keys, whatever the architecture's row says */
	bool head_ones;    /* norms of Q's and K's heads have no weights, in layers that rotate */
	bool channel_ones; /* norms of channels' steps, keys and queries have no weights */
	bool wrapped;      /* config.json holds this model as its text_config */
	struct quants_config quants;
	struct kept_quants *kept_quants; /* the descriptions that tensors point to */
	struct model_wanted *wanted;     /* what is missing is listed there, as model_wanted.h has it; NULL: an error */
};

struct found_tensor {
	enum dtype type;
	uint32_t rank;
	uint64_t dim[4]; /* fastest first */
	uint32_t part;
	uint64_t offset, bytes; /* in the part's file, where they need not be with MODEL_HEADER_ONLY */
	const char *label;      /* the file, for messages */
	uint32_t entry;
};

/* The files a path means, in the order of their parts. */
struct model_paths {
	enum model_format format;
	char **part;
	uint32_t n_parts;
	char *dir;    /* of the parts, ends in '/' or is empty */
	bool sharded; /* by model.safetensors.index.json; the index decides the parts */
};

/* model_path.c */
bool model_locate(struct model_paths *out, const char *path, struct error *err);
/* When the first GGUF file is parsed: the parts that its keys say there are besides it. */
bool model_locate_parts(struct model_paths *out, const struct gguf *first, struct error *err);
void model_paths_free(struct model_paths *p);
char *model_join(const char *dir, const char *name, struct error *err); /* malloc'ed */
bool model_exists(const char *dir, const char *name);

/* model_index.c: the parts an index names */
bool model_read_index(struct model_paths *out, const struct file *index, struct error *err);

/* model.c */
bool model_begin(struct model *m, unsigned flags, struct error *err);
bool model_parse_part(const struct model_file *f, struct model_part *p, struct error *err);
/* When the files are opened and parsed. */
bool model_finish(struct model *m, struct error *err);
struct name_ref model_entry_name(const void *file, uint32_t entry);
bool model_find_tensor(const struct model_file *f, const char *name, struct found_tensor *out);
/* Not with MODEL_HEADER_ONLY: copies a tensor's first n bytes; says whether two tensors of one size hold the same. */
bool model_read_found(const struct model_file *f, const struct found_tensor *t, size_t n, void *out, struct error *err);
bool model_same_found(const struct model_file *f, const struct found_tensor *a, const struct found_tensor *b,
                      bool *same, struct error *err);
/* The files alone, indexed, with config.json where they are safetensors: nothing is read of them yet. On failure *out
 * is closed. */
bool model_open_files(struct model *out, const char *path, struct error *err);
/* As model_open, from memory: weights is a whole GGUF or safetensors file, config the text of config.json (for
 * safetensors). */
bool model_open_memory(struct model *out, const void *weights, uint64_t n, const void *config, uint64_t n_config,
                       unsigned flags, struct error *err);

/* model_gguf.c */
bool model_read_gguf(struct model *m, struct error *err);
bool model_check_split(const struct model_file *f, struct error *err);

/* How many rows or columns that is, in this model. */
uint64_t model_width(const struct model_spec *s, uint32_t layer, enum tensor_width w);
/* The order of rows of queries, or (row) of latent vectors with what rotates behind them. */
void model_note_latent(const struct model_spec *s, bool row, bool pairs, struct model_tensor *t);
/* Queries by way of a vector of a low rank, where the sizes of latent attention have one: which tensors there are. */
void model_low_queries(struct model *m);
/* model_switches.c. rotates: which layers do, where the files say so; NULL: as usual. */
void model_take_row(struct model_spec *s, const struct arch_row *row);
/* A factor of 1 changes nothing: the model has none. Not of the scores' scale, whose usual value is another. */
void model_drop_scales_of_1(struct model_spec *s);
/* Sections of rotations of three parts, which must be all pairs; not stated: where they are not, there are none. */
bool model_take_sections(const char *label, const char *name, const uint32_t section[3], bool interleaved, bool stated,
                         struct model_rope *rope, struct error *err);
void model_plain_rope(struct model_rope *rope, double theta); /* of as many dimensions, without scaling */
bool model_mixers_make(struct model *m, const char *label, struct error *err); /* attention in all */
/* Of the delta rule's sizes, which are checked: how many channels its convolution has. */
bool model_delta_channels(struct model *m, const char *label, struct error *err);
/* The same of the selective scan's, and which sizes kernels do. */
/* model_channel.c: the sizes of channels with a state of their own, of which there are `inner` */
bool model_channel_sizes(struct model *m, uint32_t inner, const char *label, struct error *err);
bool model_scan_channels(struct model *m, const char *label, struct error *err);
/* That the layer is a mixture of experts, where single ones are. */
bool model_route_layer(struct model *m, uint32_t layer, const char *label, struct error *err);
bool model_slides_make(struct model *m, const char *label, struct error *err);
bool model_set_rotations(struct model *m, const uint8_t *rotates, const char *label, struct error *err);
bool model_check_factors(const char *label, const char *name, const float *factor, uint32_t n, struct error *err);

/* model_experts.c. experts of a configuration are checked before anything is made for them. */
bool gguf_read_experts(struct gguf_reader *r);
bool hf_read_experts(struct hf_reader *r);
bool model_check_experts(const struct model *m, const char *label, struct error *err);
/* Whether a layer has tensors of the group, as far as its being a mixture of experts decides it. */
bool model_layer_has_group(const struct model_spec *s, uint32_t layer, enum tensor_group group);
bool model_check_scaled(const struct model_spec *s, const char *label, struct error *err);
/* Groups that are all chosen, or a single one, are none. */
/* The shared expert and the others count by halves, where there is one. */
void model_average(struct model_spec *s);
void model_one_group(struct model_spec *s);
/* Which groups of tensors a mixture of experts has. */
void model_need_experts(struct model_file *f, const struct model_spec *s);
/* Where there might be some: what is shared is the feed-forward layer. */
void model_no_experts(struct model_spec *s);
/* Room for the locations of all experts' matrices; false: there are fewer tensors than that. */
bool model_make_locations(struct model *m, const char *label, struct error *err);
/* model_layers.c. model_sizes_make: all layers as the model; model_share_keys: the last `shared` ones attend to keys
 * and values of the last one before them with a window, or without one, as they have; model_sizes_max: the model's
 * sizes become the largest. */
bool model_sizes_make(struct model *m, const char *label, struct error *err);
/* The heads of each layer, where they are not the same. */
bool model_heads_make(struct model *m, const uint32_t *heads, const char *label, struct error *err);
bool model_share_keys(struct model *m, uint32_t shared, const char *label, struct error *err);
void model_sizes_max(struct model_spec *s);
/* The head dimension of layers without a window, where those with one may have another. */
uint32_t model_main_dim(const struct model_spec *s);
/* Whether a layer attends to another one's keys and values, and the slot is of these; whether a layer has a slot. */
bool model_borrows(const struct model_spec *s, uint32_t layer, enum tensor_slot k);
enum model_need model_need_of(const struct model_file *f, const struct model_spec *s, uint32_t layer,
                              enum tensor_slot k, enum tensor_group group);

/* model_hf.c: reads f->config */
bool model_read_config(struct model *m, struct error *err);
/* model_chat.c: the chat templates of the files, or why not, in m->chat_template_error */
void model_read_chat_templates(struct model *m);
/* Those in files of their own that lie beside the model's, in a directory of theirs; there may be none. */
bool model_open_named_templates(struct model_file *f, const char *dir, struct error *err);
void model_free_chat_templates(struct model *m);

/* model_sampling.c */
bool model_read_sampling(struct model *m, struct error *err);
void model_free_sampling(struct model *m);
/* model_encoder.c: of what encodes a text. What the embeddings are made of beside the tokens' rows; behind the layers,
 * the last layer's norm becomes the final one where there is none. */
struct binder;
bool model_bind_encoder(struct binder *b, struct error *err);
void model_move_last_norm(struct model *m);
void model_widen_window(struct model_spec *s);
/* model_xielu.c: numbers of layers' activation functions, where they have any */
bool model_bind_xielu(struct binder *b, struct error *err);
/* model_norms.c: whether the feed-forward layer stands beside attention, and which norms there are then. */
bool gguf_read_parallel(struct gguf_reader *r);
void model_parallel_needs(struct model_file *f, const struct model_spec *s);
/* model_hf_fields.c: arch_row.renames. */
bool hf_rename_fields(struct hf_reader *r);
bool hf_read_encoder(struct hf_reader *r);
/* Whether the file is of a decoder's type, but says that attention goes to both sides. */
const char *hf_row_name(const struct hf_reader *r, const char *type);
bool gguf_read_encoder(struct gguf_reader *r);
/* model_pooling.c */
bool model_read_pooling(struct model *m, struct error *err);
/* model_classifier.c: behind the sizes; the tensors are taken */
bool model_read_classifier(struct model *m, struct error *err);
/* The floats of a tensor in a file, and that a tensor's are finite. */
bool model_read_floats(const struct file *f, const struct found_tensor *t, uint64_t n, float *out, struct error *err);
bool model_check_finite(const char *label, const char *name, const float *x, uint64_t n, struct error *err);
/* model_modules.c: modules.json of a directory and the folders it names, if there is one; m->dense is filled. */
bool model_open_modules(struct model *m, const char *dir, struct error *err);
/* Of these, what modules.json names, and what a layer's config.json says. */
struct module_list {
	char dense[MODEL_MAX_DENSE][256]; /* folders */
	uint32_t n_dense;
};
bool model_read_modules(const struct file *file, struct module_list *out, struct error *err);
bool model_read_dense_config(const struct file *file, struct model_dense *out, struct error *err);
/* model_dense.c: behind the sizes; the tensors of GGUF files are taken */
bool model_read_dense(struct model *m, struct error *err);
/* The numbers of the layers whose sizes m has, if they are to be read. */
typedef bool dense_read_fn(const void *user, uint32_t layer, bool bias, uint64_t n, float *out, struct error *err);
bool model_fill_dense(struct model *m, dense_read_fn *read, const void *user, struct error *err);
/* model_metadata.c */
bool model_read_metadata(struct model *m, struct error *err);
void model_free_metadata(struct model *m);

/* Adds the end-of-generation tokens that config.json and generation_config.json name to the tokenizer. */
bool model_read_end_tokens(struct model *m, struct error *err);

/* model_check.c */
bool model_check_hparams(const struct model *m, const char *label, struct error *err);
/* model_bind.c */
bool model_bind(struct model *m, const char *label, struct error *err);
/* model_left_over.c: when all that is wanted is bound. An output matrix in a file whose configuration says that the
 * embedding is used instead must be the same: engines disagree on which of the two counts. */
bool model_check_tied_head(struct model_file *f, const char *head_name, const char *embed_name, struct error *err);
bool model_check_left_over(const struct model *m, struct error *err);
bool hparam_range(const char *label, const char *key, double value, double min, double max, struct error *err);
/* The same where the limits are jitrun's own, and not the file's fault. */
bool hparam_limit(const char *label, const char *key, double value, double min, double max, struct error *err);
enum {
	MODEL_MAX_LAYERS = 1024,
	MODEL_MAX_WIDTH = 1 << 24,
	MODEL_MAX_HEADS = 1 << 16,
	MODEL_MAX_HEAD_DIM = 1 << 12,
	MODEL_MAX_LAYER_INPUT = 1 << 10,
	MODEL_MAX_CHANNEL_STATE = 256
};
enum { MODEL_MIN_TAPS = 2, MODEL_MAX_TAPS = 8 };
double model_yarn_attention(double factor, double mscale);

/* As model_read() does, tensor by tensor of those with extents (model_bind_recurrent.c). */
bool model_read_extents(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes,
                        uint8_t *out, struct error *err);
/* As model_read() does, of experts with own_file_rows (model_columns.c). */
bool model_read_columns(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes, void *out,
                        struct error *err);

#endif
