/* vision/spec.h - what an image encoder and its projector are: sizes, and which of the forms that families have.
 *
 * Owns: the description, the table of families, and the reading of files' fields. Nothing here computes.
 */
#ifndef VISION_SPEC_H
#define VISION_SPEC_H

#include "loaders/model/model.h"
#include "loaders/model/model_arch.h"

enum {
	TOWER_MAX_LAYERS = 256,
	TOWER_MAX_WIDTH = 1 << 16,
	TOWER_MAX_SIDE = 1 << 12, /* patches on a side */
	TOWER_MAX_DEEP = 8
};

/* A tensor of the tower or of its projector. Those from TOWER_NORM1 to TOWER_BEHIND2 every layer has. */
enum tower_slot {
	TOWER_PATCH, /* from a patch's numbers to a row of the stream */
	TOWER_CLASS,
	TOWER_POSITIONS,
	TOWER_PRE_NORM,
	TOWER_POST_NORM,
	TOWER_NORM1,
	TOWER_Q,
	TOWER_K,
	TOWER_V,
	TOWER_QKV, /* the three in one */
	TOWER_O,
	TOWER_SCALE1, /* what attention's result is multiplied by, number by number */
	TOWER_NORM2,
	TOWER_GATE,
	TOWER_UP,
	TOWER_DOWN,
	TOWER_SCALE2,
	TOWER_Q_NORM, /* of each head's queries and keys; of what a layer's two parts add */
	TOWER_K_NORM,
	TOWER_BEHIND1,
	TOWER_BEHIND2,
	TOWER_STD_BIAS, /* subtracted from a pooled row, and what that is multiplied by */
	TOWER_STD_SCALE,
	TOWER_OUT_NORM,  /* the projector's, in the order of its steps */
	TOWER_OUT_MERGE, /* several patches into one row */
	TOWER_OUT_1,
	TOWER_OUT_2,
	TOWER_DEEP_NORM, /* of what the first layers of the text model get */
	TOWER_DEEP_1,
	TOWER_DEEP_2,
	TOWER_SLOTS
};

/* Which numbers positions have. */
enum tower_positions {
	POSITIONS_NONE,
	POSITIONS_TABLE,     /* a row each: the picture has exactly as many patches */
	POSITIONS_BUCKETS,   /* the row of the part of the side where the patch is */
	POSITIONS_CORNERS,   /* between four rows, the corners of table and picture being the same */
	POSITIONS_ANTIALIAS, /* the table resized as a picture is, with antialiasing */
	POSITIONS_AXES       /* the sum of a row by the column, of the table's first half, and one by the row */
};
enum tower_rotation {
	ROTATES_NOTHING,
	ROTATES_HALVES,      /* the first half of a head's pairs by the row, the second by the column */
	ROTATES_INTERLEAVED, /* the same, but rows and columns have alternating frequencies */
	ROTATES_SEPARATELY   /* half a head by the column, the other by the row, each with pairs of its own */
};
enum tower_act { TOWER_GELU, TOWER_GELU_TANH, TOWER_GELU_QUICK, TOWER_SILU };
enum tower_end {
	END_MLP,      /* one matrix, or two with an activation between */
	END_SHUFFLE,  /* the rows of a block of patches side by side, a norm, and that */
	END_CHANNELS, /* the same side by side number by number, behind a norm, one matrix more */
	END_POOL,     /* their mean, a norm, and a matrix that is stored transposed */
	END_MERGER,   /* as END_SHUFFLE, but the norm is before a block is put together */
	END_ROOT_POOL /* their mean times the root of the width, a norm without weights, a matrix */
};

/* Which switches a family has. */
enum {
	TOWER_RMS = 1,         /* norms do not subtract the mean */
	TOWER_GATED = 2,       /* the feed-forward layer has a gate */
	TOWER_FUSED = 4,       /* queries, keys and values are one tensor */
	TOWER_HAS_CLASS = 8,   /* a row more, in front */
	TOWER_PATCH_BIAS = 16, /* biases: of the patches, of queries, keys and values, of attention's output, of the
	                          feed-forward layer, of the projector */
	TOWER_QKV_BIAS = 32,
	TOWER_O_BIAS = 64,
	TOWER_MLP_BIAS = 128,
	TOWER_OUT_BIAS = 256,
	TOWER_HAS_PRE_NORM = 512,
	TOWER_HAS_POST_NORM = 1024,
	TOWER_SCALED = 2048,       /* layers scale what they add */
	TOWER_OUT_NORM_ONE = 4096, /* 1 is added to the weights of the projector's norm */
	TOWER_ONE_OUT = 8192,      /* the projector has one matrix */
	TOWER_NO_OUT_NORM = 16384,
	TOWER_ROWS = 32768,            /* pixels come as rows of patches */
	TOWER_BLOCKS = 65536,          /* which lie block by block */
	TOWER_ROWS_LAST = 131072,      /* and in which a pixel's channels are neighbours */
	TOWER_OUT_RMS = 1 << 18,       /* the projector's norm does not subtract the mean */
	TOWER_FILE_FRAMES = 1 << 19,   /* how tensors lie in the file (arrange.c): the patches' frames apart, */
	TOWER_FILE_PLANES = 1 << 20,   /* their channels apart, though a pixel's are neighbours in what comes, */
	TOWER_FILE_PAIRS = 1 << 21,    /* of queries and keys those rows side by side that rotate together, */
	TOWER_FILE_SWAPPED = 1 << 22,  /* the matrices of the feed-forward layer under each other's name */
	TOWER_DEEP_BY_LAYER = 1 << 23, /* tensors of deep features have the number of the layer, else of the feature */
	TOWER_HEAD_NORMS = 1 << 24,    /* norms of queries and keys, and one of values without weights; plain scores */
	TOWER_BEHIND = 1 << 25,        /* norms of what a layer's parts add */
	TOWER_CLIPPED = 1 << 26,       /* what goes into a layer's matrices, and what comes out, has bounds */
	TOWER_STANDARD = 1 << 27,      /* TOWER_STD_BIAS and TOWER_STD_SCALE */
	TOWER_SIGNED = 1 << 28         /* numbers of pixels are put from 0..1 into -1..1 */
};

struct tower_reader;
struct clip_reader;
struct tower_row {
	const char *types, *inner; /* model_type of config.json, and of its vision_config; or clip.projector_type */
	uint32_t flags;
	enum tower_positions positions;
	enum tower_rotation rotation;
	enum tower_act act, out_act;
	enum tower_end end;
	const char *tower, *out;       /* what tensors' names begin with: words, of which one fits */
	const char *name[TOWER_SLOTS]; /* behind that, %u being a layer; ! at the end: it is the whole name */
	uint32_t image_token;          /* where config.json leaves it out; 0: it must not */
	struct arch_row fields;        /* .defaults, .fields: as those of text models */
	bool (*read)(struct tower_reader *r);
	/* Of a projector's row: the text of the image token, the key of merge and its default, and what else is read.
	 */
	const char *image_text, *merge_key;
	uint32_t merge;
	bool (*read_keys)(struct clip_reader *r);
};

struct tower_spec {
	const struct tower_row *row;
	uint32_t flags;                                               /* the row's, and what the file says */
	uint32_t hidden, layers, heads, ffn, patch, channels, frames; /* frames: pictures that a patch goes through */
	uint32_t side;                         /* rows and columns of the table of positions; 0: there is none */
	uint32_t max;                          /* rows or columns of patches at most; 0: any number */
	uint32_t merge;                        /* so many patches on each side become one token */
	uint32_t middle;                       /* numbers between the projector's matrices */
	uint32_t out;                          /* numbers of a token's feature */
	int32_t image_token;                   /* stands for features among a text's tokens; -1: the file has none */
	uint32_t window;                       /* tokens on each side that see each other; 0: all do */
	uint32_t deep[TOWER_MAX_DEEP], n_deep; /* layers behind which the text model's first ones get something */
	bool sees_all[TOWER_MAX_LAYERS];       /* with window: layers without */
	double eps, out_eps, theta;
	enum tower_act act, out_act;
	enum tower_end end;
};

struct hf_reader;
struct tower_reader {
	struct hf_reader *hf; /* its root is vision_config */
	const void *outer;    /* json_t: config.json */
	struct tower_spec *s;
};

/* Of config.json, whose text is the model's. */
bool tower_read_config(struct tower_spec *s, struct model *m, struct error *err);
/* The same of the keys of a file for llama.cpp's --mmproj. */
bool tower_read_clip(struct tower_spec *s, const struct model *m, struct error *err);
/* The row of a model_type, and of that of its vision_config (NULL: not said); NULL: none. */
const struct tower_row *tower_row_of(const char *type, const char *inner);
/* Whether a width is so many heads, whose halves may rotate. label, key: of a message. */
bool tower_check_heads(const struct tower_spec *s, const char *label, const char *key, struct error *err);

static inline uint32_t tower_patch_numbers(const struct tower_spec *s)
{
	return s->channels * s->frames * s->patch * s->patch;
}

#endif
