/* loaders/tokenizer/tokenizer_internal.h - what the files of the tokenizer share.
 *
 * Owns: the opened tokenizer, the stages a text passes, and the working memory of one encode call.
 * A text is cut at special tokens, each part is normalised (tokenizer_norm.c), cut into words
 * (tokenizer_pretok.c), and each word merged into tokens (tokenizer_merge.c). The two readers
 * (tokenizer_gguf.c, tokenizer_json.c) only fill `struct tokenizer`; after that it is read-only,
 * which is what lets any thread encode and decode. Whatever grows during a call lives in struct tok_work.
 */
#ifndef LOADERS_TOKENIZER_INTERNAL_H
#define LOADERS_TOKENIZER_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "loaders/files/gguf.h"
#include "loaders/tokenizer/tokenizer.h"

enum {
	TOK_MAX_TOKENS = 1 << 24,
	TOK_MAX_TOKEN_BYTES = 1 << 24,
	TOK_MAX_SPECIAL_BYTES = 4096,
	TOK_MAX_AROUND = 16,
	TOK_MAX_PAIR = 16,
	TOK_MAX_PIECE = 512, /* bytes of a word's piece */
	TOK_MARK_BYTES = 16,
	TOK_MAX_EOG = 32,
	TOK_MAX_STEPS = 16,
	TOK_SCRATCH = 256
};

enum tok_model {
	TOK_BYTE_LEVEL,  /* symbols are bytes, spelt with one printable character each; merges have ranks */
	TOK_CHAR_RANKS,  /* symbols are characters; merges have ranks */
	TOK_CHAR_SCORES, /* symbols are characters; two merge when the joined text is a token, best score first */
	TOK_WORD_PIECE,  /* the longest token each time */
	TOK_UNIGRAM      /* those tokens whose scores add up to most */
};

/* Open-addressing hash of token texts. Up to 8 bytes the key is the text itself; longer texts keep a
 * hash and are compared with the token. id_plus_1 is 0 in an empty slot. */
struct tok_slot {
	uint64_t key;
	uint32_t n, id_plus_1;
};

/* Open-addressing hash of mergeable pairs of ids: left << 32 | right. */
struct tok_merge {
	uint64_t pair;
	uint32_t rank_plus_1;
	int32_t result;
};

struct tok_special {
	const char *p;
	uint32_t n;
	int32_t id;
	bool hidden; /* only matched when TOKENIZE_SPECIAL is asked for */
	bool lstrip, rstrip, single_word;
};

/* Special tokens sorted by text; first[] says which bytes begin one. */
struct tok_special_set {
	struct tok_special *row;
	size_t n;
	bool first[256];
	bool covers; /* a hidden token that is not asked for still keeps others from being found inside its text */
};

enum tok_norm_kind {
	TOK_NORM_NFC,
	TOK_NORM_NFD,
	TOK_NORM_NFKC,
	TOK_NORM_NFKD,
	TOK_NORM_LOWER,
	TOK_NORM_REPLACE,
	TOK_NORM_PREPEND,
	TOK_NORM_STRIP,
	TOK_NORM_COLLAPSE_SPACES,
	TOK_NORM_CLEAN,   /* control characters go, and white space becomes spaces */
	TOK_NORM_CHINESE, /* spaces around Chinese characters */
	TOK_NORM_ACCENTS, /* decomposed, and without marks that take no room */
	TOK_NORM_CHARSMAP
};

struct tok_norm_step {
	enum tok_norm_kind kind;
	pcre2_code *from_re;   /* REPLACE by pattern; else by the text from */
	const char *from, *to; /* REPLACE; PREPEND uses `to` */
	size_t n_from, n_to;
	bool left, right; /* STRIP */
};

enum tok_split_behaviour {
	TOK_SPLIT_REMOVED,
	TOK_SPLIT_ISOLATED,
	TOK_SPLIT_MERGED_PREVIOUS,
	TOK_SPLIT_MERGED_NEXT,
	TOK_SPLIT_CONTIGUOUS
};
enum tok_prefix_scheme { TOK_PREFIX_NEVER, TOK_PREFIX_FIRST, TOK_PREFIX_ALWAYS };

/* What stands before a word's first piece, or before the others, in the vocabulary. */
struct tok_mark {
	char p[TOK_MARK_BYTES];
	unsigned n;
};

/* SentencePiece's table of texts and what becomes of them; views. */
struct tok_charsmap {
	const unsigned char *units;
	const char *texts;
	uint32_t n_units;
	size_t n_texts;
};

/* Of a pair: a token, or one of the texts; and the type of these tokens. */
enum { TOK_PAIR_FIRST = -1, TOK_PAIR_SECOND = -2 };
struct tok_pair_part {
	int32_t what, type;
};

struct tok_pre_step {
	enum { TOK_PRE_SPLIT, TOK_PRE_PREFIX } kind;
	/* SPLIT: cut at the matches of re, or where re is NULL at the text */
	pcre2_code *re;
	const char *text;
	size_t n_text;
	enum tok_split_behaviour behaviour;
	bool invert;
	/* PREFIX: every piece that does not begin with `mark` gets it; with replace, each space becomes the mark
	 * first */
	char mark[8];
	unsigned n_mark;
	bool replace;
	enum tok_prefix_scheme scheme;
};

struct tokenizer {
	enum tok_model model;
	struct gguf_str *token; /* views: into the file (GGUF) or into the arena (JSON) */
	uint8_t *type;          /* enum tok_type */
	size_t n_token;
	uint32_t max_token; /* bytes of the longest token */
	uint64_t seed;      /* of both hashes, so that a file cannot be made to collide */
	struct tok_slot *slot;
	uint64_t slot_mask;
	struct tok_merge *merge;
	uint64_t merge_mask;
	uint64_t *may_merge; /* a bit for the hash of each pair: most pairs do not merge, and are told by it alone */
	uint64_t may_mask;
	struct tok_table {
		void *p;
		size_t bytes;
	} slot_table, merge_table, may_table;          /* the mappings these three lie in */
	uint32_t *score_order;                         /* TOK_CHAR_SCORES: smaller is better */
	int32_t byte_id[256];                          /* the token of one byte, -1 where there is none */
	bool byte_fallback, fuse_unknown, whole_words; /* whole_words: a word that is a token needs no merging */
	bool whole_newlines;                           /* a word of newlines that is a token needs none either */
	bool drop_unknown; /* what has no token, and no unknown token stands for it, adds nothing; otherwise the text is
	                      refused */
	bool gaps_close;   /* what is dropped is gone before merging, so that its neighbours may merge */
	bool cut_at_marks; /* no token continues over "▁": words may be cut before it */
	bool drop_first_space; /* decoding: the space that encoding put before the text */
	bool cleans_up;        /* TOK_WORD_PIECE, decoding: marks and the ends of contractions have no space before */
	bool space_mark;       /* decoding: "▁" stands for a space */
	int32_t bos, eos, unknown;
	int32_t role[TOK_ROLES];      /* -1: none */
	struct tok_mark begin, inner; /* TOK_WORD_PIECE */
	size_t max_characters;        /* ... of a word; a longer one is unknown */
	float *score;                 /* TOK_UNIGRAM */
	double unknown_score;
	struct tok_charsmap charsmap; /* TOK_NORM_CHARSMAP */
	struct tok_pair_part pair[TOK_MAX_PAIR];
	unsigned n_pair; /* 0: nobody says how */
	int32_t head[TOK_MAX_AROUND], tail[TOK_MAX_AROUND];
	unsigned n_head, n_tail;
	int32_t eog[TOK_MAX_EOG];
	unsigned n_eog;
	struct tok_special_set special[2]; /* [0] looked for in the raw text, [1] in the normalised text */
	struct tok_norm_step norm[TOK_MAX_STEPS];
	unsigned n_norm;
	struct tok_pre_step pre[TOK_MAX_STEPS];
	unsigned n_pre;
	struct tok_long {
		int32_t id;
		size_t n;
		char *p;
	} * longs;
	size_t n_longs; /* decoded tokens over TOK_SCRATCH bytes */
	char *arena;    /* owned texts, one block */
};

/* A growing array of bytes. */
struct tok_buf {
	char *p;
	size_t n, cap;
};

/* A piece of the working text; bad: one byte that is no part of a character. */
struct tok_span {
	uint32_t at, n;
	bool bad;
};
struct tok_spans {
	struct tok_span *p;
	size_t n, cap;
};

struct tok_symbol {
	uint32_t prev, next, at, n;
	int32_t id;
};
struct tok_pair {
	uint64_t key;
	uint32_t n;
	int32_t id;
}; /* key: priority << 32 | index of the left symbol */

/* A token of a long word, or what becomes one or more when it is written. */
struct tok_piece {
	uint32_t at, n;
	int32_t id;
};

/* The pairs of a word that may merge (tokenizer_queue.c). */
struct tok_queue {
	struct tok_pair *heap;
	size_t n_heap, heap_cap;
	struct tok_pair *row; /* from row_first on, rising */
	size_t row_first, n_row, row_cap;
	struct tok_pair *later; /* those of buckets, each with the one behind it in `next` */
	uint32_t *next;
	size_t n_later, later_cap, next_cap;
	uint32_t spare;            /* the first of those in `later` that were taken */
	struct tok_bucket *bucket; /* NULL: no word was long yet */
	int now;                   /* what belongs to this bucket or to one before it is in the heap */
};

struct tok_work {
	struct tok_buf text, other; /* the part being worked on, and where a step writes its result */
	struct tok_buf normal;      /* the normalised part, while special tokens are looked for in it */
	const uint8_t
		*raw_plain; /* of the whole text: 1 for a byte of which no hidden token is made; NULL: none is plain */
	bool plain;         /* the same is kept of the part: a byte for each of theirs */
	struct tok_buf text_plain, other_plain, normal_plain;
	struct tok_spans spans, next;
	struct tok_symbol *symbol;
	size_t symbol_cap;
	struct tok_piece *piece; /* of the stretches of a long word that are merged */
	size_t n_piece, piece_cap;
	struct tok_queue queue;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	void *way; /* struct tok_way of tokenizer_pieces.c */
	size_t way_cap;
	int32_t *id;
	size_t n_id, id_cap;
	bool at_start; /* the part begins the text */
	unsigned flags;
	uint64_t steps, max_steps; /* work done that a file could make superlinear, and its bound (0: none) for the
	                               whole text */
	uint64_t weight;
	size_t position; /* of the expression being matched: steps a character takes, and where it has come to */
	struct error *err;
};
/* One budget for a text, of this many steps for each byte and some more for a short one. A step is a character looked
 * at by an expression, a byte written by a step, a comparison of special tokens. Published tokenizers take below thirty
 * a byte. */
enum { TOK_STEPS_A_BYTE = 512, TOK_STEPS_MORE = 1 << 20 };
/* False, with err set, once the budget is used up. */
bool tok_spend(struct tok_work *w, uint64_t steps);
void tok_work_free(struct tok_work *w);

/* ---- which pair merges next (tokenizer_queue.c). False, with err set: there is no memory. */

/* Begins with none, for a word of so many symbols. */
bool tok_queue_begin(struct tok_work *w, size_t symbols);
bool tok_queue_push(const struct tokenizer *t, struct tok_work *w, const struct tok_pair *c);
/* Takes the pair with the smallest key; *any: there was one. */
bool tok_queue_pop(struct tok_work *w, struct tok_pair *c, bool *any);
void tok_queue_free(struct tok_queue *q);

/* ---- bytes and characters (tokenizer_chars.c) */

/* Length of the character at p (1..4); 0: the bytes are no character; -1: they are the beginning of one, cut off. */
int tok_char(const void *p, size_t n);
unsigned tok_decode(const unsigned char *p, unsigned n); /* p, n: a valid character */
unsigned tok_encode(unsigned c, char out[4]);
/* The byte that a character spells in byte-level vocabularies (tokenizer_spell_byte), or -1: none. */
int tok_char_byte(unsigned c);

/* Bytes of the white-space character at p, or just before p + n; 0 when there is none. */
unsigned tok_space_after(const char *p, size_t n);
unsigned tok_space_before(const char *p, size_t n);
/* The first byte of the character that ends at p + n (n > 0). */
size_t tok_last_char(const char *p, size_t n);

bool tok_grow(void **p, size_t *cap, size_t need, size_t item, struct error *err);
bool tok_append(struct tok_buf *b, const void *p, size_t n, struct error *err);
bool tok_span_add(struct tok_spans *s, size_t at, size_t n, bool bad, struct error *err);

/* ---- vocabulary (tokenizer_vocab.c) */

struct tokenizer *tok_new(struct error *err);
/* token, type and n_token are filled: builds the hash of texts and the byte tokens. */
bool tok_index(struct tokenizer *t, const char *where, struct error *err);
int32_t tok_find(const struct tokenizer *t, const char *p, size_t n);
/* Merges are announced by number, then given in order of rank. */
/* lenient: a merge with a text that is no token is passed over, it could never apply; otherwise it is refused. */
struct tok_merger {
	struct tokenizer *t;
	char *joined;
	uint32_t rank;
	int32_t last;
	const char *where;
	bool lenient;
};
bool tok_merges_begin(struct tok_merger *m, struct tokenizer *t, uint64_t count, const char *where, struct error *err);
bool tok_merges_add(struct tok_merger *m, const char *a, size_t na, const char *b, size_t nb, struct error *err);
void tok_merges_end(struct tok_merger *m);
const struct tok_merge *tok_merge_find(const struct tokenizer *t, int32_t left, int32_t right);
/* Special tokens: any order in, then sorted. Texts are borrowed. */
bool tok_special_sort(struct tok_special_set *s, const char *where, struct error *err);
/* The longest special token at p, or NULL, of hidden ones those of up to `hidden` bytes; adds what the search took to
 * *steps. */
const struct tok_special *tok_special_at(const struct tok_special_set *s, const char *p, size_t n, size_t hidden,
                                         uint64_t *steps);
/* Last step of both readers: long pieces, well-known end tokens, cut_at_marks. */
bool tok_finish(struct tokenizer *t, struct error *err);
void tok_table_free(struct tok_table *table);
void tok_eog_add(struct tokenizer *t, int32_t id);
/* Writes what a token adds to the text; out holds 4 * length of the token + 4 bytes. */
size_t tok_piece_write(const struct tokenizer *t, int32_t id, char *out);

/* ---- roles (tokenizer_roles.c): what the keys of a GGUF file say; and what is left, after all else was read */
void tok_roles_of_gguf(struct tokenizer *t, const struct gguf *g);
void tok_roles_finish(struct tokenizer *t);
/* The field of tokenizer_config.json that gives a role; NULL: none does. */
const char *tok_role_field(size_t number);

/* ---- normalisers (tokenizer_norm.c): text -> text, both in w */
bool tok_normalise(const struct tokenizer *t, struct tok_work *w);

/* ---- pre-tokenizers (tokenizer_pretok.c): w->text -> w->spans */
pcre2_code *tok_regex(const char *pattern, size_t n, const char *where, struct error *err);
/* The splitting rules of a name of tokenizer.ggml.pre; false with err set for an unknown one. */
bool tok_pre_by_name(struct tokenizer *t, const char *name, size_t n, const char *where, bool *adds_bos,
                     struct error *err);
bool tok_pretokenize(const struct tokenizer *t, struct tok_work *w);
/* The next match at or after `from`; *at, *n say where. 1 found, 0 none, -1 error. */
int tok_match(const pcre2_code *re, const char *text, size_t size, size_t from, size_t *at, size_t *n,
              struct tok_work *w);
extern const char tok_gpt2_pattern[];

/* ---- all stages (tokenizer.c): the ids of a text to w->id, within w->max_steps */
bool tok_encode_text(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n);

/* ---- the merge engine (tokenizer_merge.c): one word -> w->id */
bool tok_word(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n);
bool tok_byte(const struct tokenizer *t, struct tok_work *w, unsigned char byte);

/* ---- GGUF keys of WordPiece and Unigram (tokenizer_gguf_pieces.c): all but the vocabulary, and the tokens around a
 * text */
/* A token id; absent, or all ones (none), leaves *id alone (tokenizer_gguf.c). */
bool tok_gguf_id(const struct tokenizer *t, const struct gguf *g, const char *key, int32_t *id, struct error *err);
bool tok_gguf_word_piece(struct tokenizer *t, const struct gguf *g, struct error *err);
bool tok_gguf_unigram(struct tokenizer *t, const struct gguf *g, struct error *err);
bool tok_gguf_around(struct tokenizer *t, const struct gguf *g, struct error *err);
bool tok_gguf_pair(struct tokenizer *t, const struct gguf *g, struct error *err);

/* ---- without merges (tokenizer_pieces.c) */
/* A token of TOK_WORD_PIECE as text: one that begins a word has a space before it. Returns the bytes. */
size_t tok_write_word_piece(const struct tokenizer *t, const struct gguf_str *s, char *out);
bool tok_word_piece(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n);
bool tok_unigram(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n);

/* ---- SentencePiece's normaliser (tokenizer_charsmap.c) */
typedef bool (*tok_put_fn)(struct tok_work *w, const char *p, size_t n, bool fill);
bool tok_charsmap_open(struct tok_charsmap *m, const void *bytes, size_t n, const char *where, struct error *err);
bool tok_charsmap_apply(const struct tok_charsmap *m, struct tok_work *w, tok_put_fn put);

/* ---- pairs (tokenizer_pair.c): a token or a text behind the template so far. False: there is no room. */
bool tok_pair_add(struct tokenizer *t, int32_t what, int32_t type);
bool tok_emit(struct tok_work *w, int32_t id);

#endif
