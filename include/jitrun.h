/* jitrun.h - run a large language model from C.
 *
 * jitrun reads a GGUF or safetensors model, writes machine code for exactly that model's shapes, and streams tokens at
 * the speed of the machine's memory. Headers beside this one, jitrun_*.h, add to it.
 *
 * MODEL AND SESSION. A jit_model is a file made ready: weights in memory (packed for this CPU), tokenizer, generated
 * kernels. It never changes after jit_model_open() returns. A jit_session is one conversation on it: a KV cache,
 * a position, sampling state. Many sessions may live on one model, and each must be closed before the model is. Whole,
 * this program is docs/example.c:
 *
 *     jit_model *m = jit_model_open("model.gguf", NULL, &err);
 *     jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 512), &err);
 *     jit_session_feed_text(s, "Once upon a time", 16, 0, &err);
 *     for (int32_t id; jit_session_next(s, &id, &err) == JIT_OK && !jit_model_is_end(m, id); )
 *         ... jit_session_text(s, id, &n, &err) gives the bytes to print ...
 *
 * TOKENS. Token ids are int32_t, 0 <= id < vocab. Positions count from 0; a session computes at most `context` of them.
 * All can be fed: then one token is chosen from the last one's logits, which is in no position and has no successor
 * (JIT_ERROR_CONTEXT).
 *
 * LOGITS. One float per vocabulary entry, unscaled. The same tokens give the same logits, bit for bit, whatever the
 * number of threads, however the prompt was cut into feeds, and on every instruction set (the order of float operations
 * is fixed by contract). They are finite: where a model's weights hold or lead to others, a call for logits,
 * a token or a score gets JIT_ERROR_FORMAT each time, which names the first token with such logits, counted from 0.
 *
 * THREADS. A jit_model may be used from any number of threads. A jit_session belongs to one thread at a time, but for
 * jit_session_cancel(); different sessions may run at once. Each session owns its worker threads.
 *
 * ERRORS. Functions return JIT_OK or an error code (or NULL) and fill the caller's jit_error, which may be NULL, with
 * one sentence that names the object, the value found and the value expected. The library never prints and never exits.
 * After a failed feed the session is where it was before it, unless it was cancelled. Every number given is checked:
 * one that is out of range, infinite or NaN is JIT_ERROR_ARGUMENT, and so is NULL where no comment says that it may be,
 * but for a list of 0 entries. Functions without a status do nothing then, and return 0, NULL or -1.
 *
 * MEMORY. Everything opened is closed by its own function, which takes NULL for nothing. Strings and arrays returned as
 * `const` are borrowed and live as long as stated.
 *
 * STRUCTS AND VERSIONS. Every struct begins with its own size, which the macro of the same name sets; jit_error and
 * entries of lists have none, and stay as they are.
 *
 *     jit_session_options o = JIT_SESSION_OPTIONS(.context = 512, .threads = 4);
 *     jit_session_stats stats = JIT_SESSION_STATS();
 *
 * Fields not named are 0, which is each field's default. Later versions of the library only add fields, at the end, so
 * that a program compiled against an older jitrun.h runs with a newer library, and the other way round as far as it
 * asks for nothing new. The library reads and writes no more than the size says. What a shorter struct of options lacks
 * has its default; of a longer one the bytes that the library does not know must be 0, and of a longer struct of
 * results they become 0. A size of 0, which was forgotten, one above 4096 or no multiple of 8 is JIT_ERROR_ARGUMENT.
 */
#ifndef JITRUN_H
#define JITRUN_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif
#define JITRUN_VERSION "0.3.0"

typedef struct jit_model jit_model;
typedef struct jit_session jit_session;

enum jit_status {
	JIT_OK = 0,
	JIT_ERROR_IO,          /* a file could not be opened or read */
	JIT_ERROR_FORMAT,      /* a file breaks its format's rules, or its weights lead to logits that are not finite */
	JIT_ERROR_UNSUPPORTED, /* well formed, but jitrun does not do it */
	JIT_ERROR_MEMORY,      /* not enough memory */
	JIT_ERROR_ARGUMENT,    /* a value of the caller's is out of range */
	JIT_ERROR_DEVICE,      /* the device cannot run this */
	JIT_ERROR_CONTEXT,     /* the session's context is full */
	JIT_ERROR_CANCELLED,   /* jit_cancel_set() or jit_session_cancel() asked for it */
	JIT_ERROR_STALLED      /* a step of a batch computed none of the tokens that are due: a fault of jitrun */
};

typedef struct jit_error {
	int code;          /* enum jit_status */
	int reserved[3];   /* 0 */
	char message[512]; /* one sentence, no newline */
} jit_error;

/* A struct with its size and the fields given, as JIT_STRUCT(jit_sampling, .top_k = 40). In C++20 as well. */
#ifdef __cplusplus
#define JIT_STRUCT(type, ...) \
	type { .size = sizeof(type), __VA_ARGS__ }
#else
#define JIT_STRUCT(type, ...) \
	(type) { .size = sizeof(type), __VA_ARGS__ }
#endif

/* JITRUN_VERSION of the library, which may be newer or older than this header. */
const char *jit_version(void);

/* ---- cancelling */

/* CANCELLING. A jit_cancel is a request that a program shares between threads, and with its signal handlers. Models and
 * sessions opened with one look at it while they load or compute. Once it is set, the call that runs returns
 * JIT_ERROR_CANCELLED, and so does every later one that would compute, until it is set to 0 again. Loading ends within
 * a few MiB of weights; a session within a stage of the pass that runs (a few operations of a layer), on cards within
 * the pass. jit_session_cancel() asks the same of one session.
 *
 * The session then is where its last finished pass left it: of a long prompt, jit_session_length() says how many tokens
 * were taken. Whatever is computed next equals, bit for bit, what a session gives that was never cancelled. */
typedef struct jit_cancel jit_cancel;

jit_cancel *jit_cancel_open(jit_error *err);
/* When no model loads and no session is open that was given it. */
void jit_cancel_close(jit_cancel *c);
/* asked: non-zero to stop, 0 to go on. From any thread, and from signal handlers. */
void jit_cancel_set(jit_cancel *c, int requested);
int jit_cancel_get(const jit_cancel *c);

/* ---- model */

/* Called while a model loads, from the opening thread: done of total bytes. Non-zero: give up (JIT_ERROR_ARGUMENT). */
typedef int (*jit_progress_fn)(void *user, uint64_t done, uint64_t total);
enum { JIT_TUNE_QUICK, JIT_TUNE_CACHED, JIT_TUNE_OFF };
enum { JIT_NUMERICS_EXACT, JIT_NUMERICS_BOUNDED, JIT_NUMERICS_ALWAYS_BOUNDED };
typedef struct jit_model_options {
	size_t size;
	const char *device; /* "cpu" (default); "ref": interprets every kernel, slow and exact; "sim:gfx1100" and so on:
	                       code for that card, simulated; "cuda" or "cuda:1": an NVIDIA card, "cuda:0,1": two
	                       together; "amd", "amd:1" or "amd:gfx1101": a Radeon card, so far a fake driver's alone */
	const char *isa;    /* NULL: the best this CPU has; or "avx2" and so on, as jitrun --help lists them */
	int threads;        /* for loading; 0: one per core this process may use (affinity, cgroup quota) */
	int sealed;         /* non-zero: no code is generated, see below */
	/* Generated code is kept here: directories and pack files (.jkp), separated by ':' and asked in this order; the
	 * first directory that can be written receives what is new. NULL: $JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun; "":
	 * nowhere. Refused when others than this user and root may write it. */
	const char *cache_dir;
	uint64_t cache_limit; /* bytes a directory may hold; beyond, what was used longest ago goes; 0: 256 MiB */
	int f32_activations;  /* non-zero: quantised weights multiply f32, not int8 blocks: slower, closer to f32 */
	/* JIT_NUMERICS_EXACT: every device, prompt length and cut gives the same bits. BOUNDED: dense matrices of
	 * floats may be multiplied by inputs rounded to the weights' type, within a stated error (numerics.h, rule 13):
	 * by cards, and by CPUs that measure it faster than exact. ALWAYS_BOUNDED: by those that do not, too. */
	int bounded_numerics;
	int tune; /* JIT_TUNE_QUICK: the first session to decode tries schedules of kernels, in passes it makes anyway,
	             and keeps in the cache which are fastest on this processor; JIT_TUNE_CACHED: only what is known
	             already; JIT_TUNE_OFF. Never changes a bit of a result */
	int perf_map;         /* non-zero: /tmp/perf-PID.map for Linux perf; refused if a link, a FIFO or another's */
	const char *dump_ir;  /* file that receives the IR of every kernel generated, or NULL */
	const char *dump_asm; /* the same as machine code, .byte lines an assembler accepts */
	jit_progress_fn progress;
	void *progress_user;
	const char *jitdump; /* directory for jit-PID.dump, which perf inject --jit reads; or NULL */
	int gdb;             /* non-zero: kernels are entered into the list gdb reads, so that it shows their names */
	int copy_weights;    /* non-zero: packed weights are checked and copied, not mapped and shared; opens slower */
	jit_cancel *cancel;  /* ends jit_model_open when it is set; NULL: nothing does */
	/* Packed weights of GGUF and safetensors files are kept in this directory, and mapped by the next process that
	 * opens the same files. NULL: $JITRUN_WEIGHT_CACHE, and nowhere when it is not set; "": that, or
	 * $XDG_CACHE_HOME/jitrun-weights, or ~/.cache/jitrun-weights. A sealed model only looks there. */
	const char *weight_cache;
	uint64_t weight_cache_limit; /* bytes it may hold; beyond, what was used longest ago goes; 0: 64 GiB */
	/* The session to come, or NULL: what it cannot have beside the weights is refused before they load. */
	const struct jit_session_options *session;
	const char *ranks; /* "fork:2": so many processes compute the model; "mpi": mpirun's (docs/cluster.md); NULL */
	const char *split; /* NULL: "pipeline"; "pipeline:12,16": layers of each; "rows", "rows:1,7": matrix shares */
} jit_model_options;
#define JIT_MODEL_OPTIONS(...) JIT_STRUCT(jit_model_options, __VA_ARGS__)

/* SEALED. All kernels come from cache_dir, which is only read; jitwarm fills it. jit_model_open loads every one the
 * model can need that is there, and fails when there is none, or when the system does not let one be read;
 * jit_session_open fails when one that the session can need is missing or damaged, with its key and what the nearest
 * one has instead. After jit_model_open no kernel is loaded, and no page made executable. */

/* path: a .gguf file, a .safetensors file with config.json beside it, or a directory holding either. options NULL: all
 * defaults; fields left zero are defaults. */
jit_model *jit_model_open(const char *path, const jit_model_options *options, jit_error *err);
/* Before the model is closed: whether the files of perf_map, dump_ir, dump_asm and jitdump could be written whole. */
int jit_model_written(jit_model *m, jit_error *err);
void jit_model_close(jit_model *m);

/* What is in the bounded class. PROMPTS: cards' products by F16 and BF16 matrices, for tokens of a session's prompt
 * that fill tiles: results depend on how it is cut. ALL: products of CPUs by BF16 matrices, also in batches: results
 * depend on tokens alone. NONE: all is exact. Products by experts, and jit_session_score() of PROMPTS, always are. */
enum { JIT_BOUNDED_NONE, JIT_BOUNDED_PROMPTS, JIT_BOUNDED_ALL };
typedef struct jit_model_info {
	size_t size;
	const char *description; /* "qwen3, 28 layers, hidden 1024, Q8_0"; lives as long as the model */
	int vocab, layers, hidden, context_trained, has_tokenizer;
	uint64_t file_bytes;                 /* of the weight files */
	uint64_t weight_bytes;               /* of packed weights, in memory */
	uint64_t token_bytes;                /* of weights read to make one token */
	double load_seconds;                 /* open to ready */
	int has_chat_template, has_sampling; /* sampling: its files say how tokens are to be chosen, or part of it */
	const char *weight_cache_trouble;    /* why packed weights could not be kept; NULL: they were, or need not be */
	int pooling;         /* of embeddings, as its files say: JIT_POOL_LAST and so on; JIT_POOL_NONE: not said */
	int bounded;         /* JIT_BOUNDED_NONE and so on */
	double bounded_gain; /* how many times as many products of BF16 pairs as of floats this CPU makes; 0: unasked */
	int encodes, embedding; /* it generates nothing (jitrun_texts.h); floats of a text's embedding */
	const char *ranks;      /* a line that says which rank has what; NULL: there is one */
} jit_model_info;
#define JIT_MODEL_INFO() JIT_STRUCT(jit_model_info, )
int jit_model_get_info(const jit_model *m, jit_model_info *out, jit_error *err);

/* Text to ids, by the model's own rules. add_special: add BOS / EOS as the model wants. parse_special: text such as
 * "<|im_start|>" becomes that token; without it, no text becomes a control token. *ids is malloc'ed: free() it. */
int jit_model_tokenize(const jit_model *m, const char *text, size_t n, int add_special, int parse_special,
                       int32_t **ids, size_t *n_ids, jit_error *err);
/* Ids to text, malloc'ed and 0-terminated: free() it. *n_text (may be NULL): its bytes before the 0. NULL: err. */
char *jit_model_detokenize(const jit_model *m, const int32_t *ids, size_t n, size_t *n_text, jit_error *err);
/* Non-zero when the token ends a generation; 0 also for what is no token. */
int jit_model_is_end(const jit_model *m, int32_t id);

/* METADATA. What the model's files say of themselves: each key of a GGUF file; of a directory each member of
 * config.json and, behind "generation_config.", of generation_config.json, those of objects in them behind the object's
 * name and a dot ("rope_scaling.factor"). Nothing of it is checked beyond what the model needed. */
enum {
	JIT_METADATA_STRING,
	JIT_METADATA_INTEGER,
	JIT_METADATA_REAL, /* and integers beyond int64_t */
	JIT_METADATA_BOOL,
	JIT_METADATA_ARRAY,
	JIT_METADATA_NULL,
	JIT_METADATA_OTHER /* of the items of an array: of several kinds, arrays, objects, or there are none */
};
typedef struct jit_metadata {
	size_t size;
	const char *key;     /* this and text live as long as the model */
	int kind, item_kind; /* item_kind: of an array */
	int64_t integer;     /* INTEGER; BOOL: 0 or 1 */
	double real;
	const char *text; /* STRING: n bytes as they are in the file, and a 0 behind them; else NULL */
	size_t n;         /* ARRAY: how many items */
} jit_metadata;
#define JIT_METADATA() JIT_STRUCT(jit_metadata, )
size_t jit_model_metadata_count(const jit_model *m);
/* By number from 0, in the order of the files. */
int jit_model_metadata(const jit_model *m, size_t number, jit_metadata *out, jit_error *err);

/* ---- conversations */

/* CHAT TEMPLATES. Model files carry a program that writes a conversation as the model saw it in training. Every byte
 * that comes from messages, tools and variables counts as text, whatever it spells: it never becomes a special token,
 * so that nobody can end a turn, or begin another one, by what they write. */
typedef struct jit_chat_options {
	size_t size;
	const char *messages;  /* JSON array of objects: "role" ("system", "user", "assistant", "tool"), "content" */
	const char *tools;     /* JSON array of what the model may call; NULL: none */
	const char *variables; /* JSON object of what else this template knows, {"enable_thinking":false}; NULL: none */
	const char *template_text; /* instead of the model's own; NULL */
	int no_generation_prompt;  /* non-zero: the text ends with the last message, instead of beginning the answer */
	int has_now;               /* non-zero: templates that write the date find it in */
	int64_t now;               /* seconds since 1970, UTC */
	/* Which of the model's templates, "tool_use" or what its files call others; NULL: the usual one, and with tools
	 * "tool_use" where there is one. Not together with template_text. */
	const char *template_name;
} jit_chat_options;
#define JIT_CHAT_OPTIONS(...) JIT_STRUCT(jit_chat_options, __VA_ARGS__)

typedef struct jit_chat {
	size_t size;
	char *text; /* n bytes and a 0 */
	size_t n;
	int32_t *ids; /* of the whole conversation, BOS included where the model wants it; NULL without a tokenizer */
	size_t n_ids;
} jit_chat;
#define JIT_CHAT() JIT_STRUCT(jit_chat, )

/* Feed the ids to a session; of a longer conversation, those that it does not have yet. JIT_ERROR_UNSUPPORTED: the
 * model's files have no template. A template may refuse a conversation: the sentence has its words. Give what is in
 * out back with jit_chat_free. From any thread. */
int jit_chat_render(const jit_model *m, const jit_chat_options *options, jit_chat *out, jit_error *err);
void jit_chat_free(jit_chat *out);

/* ---- devices */

typedef struct jit_device_info {
	size_t size;
	char name[32];     /* for jit_model_options.device: "cpu", "sim:gfx1100" */
	char about[200];   /* what it is, one line */
	char why_not[512]; /* empty: models can be opened on it; else one sentence */
} jit_device_info;
#define JIT_DEVICE_INFO() JIT_STRUCT(jit_device_info, )
/* How many devices this machine has, and what each of them is, by number from 0. */
size_t jit_device_count(void);
int jit_device_get_info(size_t number, jit_device_info *out, jit_error *err);

/* ---- session */

/* Added to the logit of a token: a finite number, or -infinity, after which the token is never chosen. An entry of a
 * list, it has no size and stays as it is. */
typedef struct jit_logit_bias {
	int32_t id;
	float bias;
} jit_logit_bias;

/* What fields point to is copied. Samplers beyond temperature, top_k, top_p, min_p and repeat_penalty: see SAMPLERS. */
typedef struct jit_sampling {
	size_t size;
	float temperature;    /* 0 or less: greedy (the largest logit, the lowest id among equals) */
	int top_k;            /* 0: all */
	float top_p;          /* 0 to 1; 1 or 0: all */
	float min_p;          /* 0 to 1; 0: all */
	float repeat_penalty; /* 1 or 0: none */
	int repeat_window;    /* last tokens the penalty looks at; 0: 64 */
	uint64_t seed;        /* the same seed, options and tokens give the same choice */
	const char *samplers; /* their names with semicolons between, in the order of their use; NULL: the usual one */
	const char *const *dry_breakers;  /* n_dry_breakers texts; NULL: newline, colon, quotation mark, asterisk */
	const jit_logit_bias *logit_bias; /* n_logit_bias entries */
	int n_dry_breakers, n_logit_bias;
	float typical_p;                           /* 0 to 1; 1 or 0: off */
	float top_n_sigma;                         /* 0 or less: off */
	float frequency_penalty, presence_penalty; /* 0: off; over repeat_window tokens */
	float dynatemp_range;                      /* temperature from less to more by this, by the entropy; 0: off */
	float dynatemp_exponent;                   /* 0: 1 */
	float xtc_probability;                     /* 0 to 1; 0: off */
	float xtc_threshold;                       /* 0 to 1, more than 0.5 is off; 0: 0.1 */
	float dry_multiplier;                      /* 0: off */
	float dry_base;                            /* at least 1; 0: 1.75 */
	int dry_allowed_length;                    /* 0: 2 */
	int dry_window;                            /* last tokens DRY looks at; 0: 64; -1: all */
	int mirostat;                              /* 0: off; 1, 2: that version */
	int min_keep;                              /* tokens that top_p, min_p, typical_p and XTC leave at least */
	float mirostat_tau, mirostat_eta;          /* 0: 5, 0.1 */
	float adaptive_target;                     /* 0 to 1; 0: off */
	float adaptive_decay;                      /* 0 to 0.99; 0: 0.9 */
} jit_sampling;
#define JIT_SAMPLING(...) JIT_STRUCT(jit_sampling, __VA_ARGS__)

/* How the model's makers say that its tokens are to be chosen (generation_config.json, general.sampling of GGUF files),
 * with what stands for the rest (docs/sampling.md): temperature 0.8, top_k 40, top_p 0.95 and min_p 0.05 where they
 * name none of these. The seed is 0. What it points to lives as long as the model. A session does not take these by
 * itself:
 *
 *     jit_sampling p = JIT_SAMPLING();
 *     jit_model_sampling_defaults(m, &p, &err);
 *     p.seed = ...
 *     jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.sampling = &p), &err);
 */
int jit_model_sampling_defaults(const jit_model *m, jit_sampling *out, jit_error *err);

enum { JIT_SPECULATE_OFF = -1, JIT_SPECULATE_AUTO = 0 };
enum { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };
enum { JIT_PROFILE_OFF, JIT_PROFILE_SUMS, JIT_PROFILE_EVENTS };

typedef struct jit_card_options jit_card_options; /* jitrun_cards.h */

typedef struct jit_session_options {
	size_t size;
	int context;   /* positions; 0: as in training, in half of free memory (of a card's a quarter), 4096 at least */
	int threads;   /* 0: one per core this process may use */
	int batch;     /* most prompt tokens computed in one pass, at most 1024; 0: 264, on NVIDIA cards 512 */
	int kv;        /* KV cache: JIT_KV_F16; JIT_KV_F32; JIT_KV_Q8_0: 9 bits a number instead of 16, rounded more */
	int speculate; /* JIT_SPECULATE_AUTO, JIT_SPECULATE_OFF, or 4, 8, 16: tokens of a pass with draft tokens */
	int profile;   /* JIT_PROFILE_OFF; JIT_PROFILE_SUMS: for jit_session_report; _EVENTS: jit_session_trace, too */
	const jit_sampling *sampling;          /* NULL: all defaults, which is greedy; copied */
	const jit_card_options *card;          /* for cards; NULL: all defaults; copied */
	jit_cancel *cancel;                    /* ends jit_session_open and what the session computes; borrowed; NULL */
	const struct jit_draft_options *draft; /* jitrun_draft.h: a model that proposes tokens; NULL; copied */
} jit_session_options;
#define JIT_SESSION_OPTIONS(...) JIT_STRUCT(jit_session_options, __VA_ARGS__)

/* SPECULATION. Where the end of the text was seen before in it, jit_session_next computes the tokens that followed
 * there along with the last one, in one pass of 4, 8 or 16 tokens. As long as its choices equal these draft tokens,
 * their logits are there already. Neither tokens nor logits change, with sampling or without. AUTO makes such passes
 * only when, by what was measured in this session, they gain time; trying costs a two-hundredth of it at most. */

jit_session *jit_session_open(jit_model *m, const jit_session_options *options, jit_error *err);
void jit_session_close(jit_session *s);

/* From any thread: the call that computes on the session, or else the next one that will, returns JIT_ERROR_CANCELLED,
 * which answers all requests made until then. */
void jit_session_cancel(jit_session *s);

/* Appends tokens and computes them; afterwards the logits are those after the last one. */
int jit_session_feed(jit_session *s, const int32_t *ids, size_t n, jit_error *err);
/* The same for text, with BOS added when the session is empty and the model wants it. parse_special: 0 for text that
 * others wrote, as in jit_model_tokenize. */
int jit_session_feed_text(jit_session *s, const char *text, size_t n, int parse_special, jit_error *err);

/* Chooses the next token by the session's sampling parameters. The following call of jit_session_next (or feed, or
 * logits) computes it, so the last token of a generation costs nothing. */
int jit_session_next(jit_session *s, int32_t *id, jit_error *err);

/* The logits after the last token: vocab finite floats, valid until the next call. NULL: nothing was fed, or err. */
const float *jit_session_logits(jit_session *s, jit_error *err);

/* Appends tokens as jit_session_feed does and says how much the model expected them: logprob[i] becomes the natural
 * logarithm of the probability of ids[i] after everything before it (0 for the first token of an empty session); the
 * same on every machine. Slower than a feed: it computes all logits. logprob NULL: to be timed, says nothing. */
int jit_session_score(jit_session *s, const int32_t *ids, size_t n, float *logprob, jit_error *err);

/* EMBEDDINGS. A row is a token's hidden state behind the final norm: `hidden` floats. A text's embedding is made of its
 * tokens' rows, jit_model_info.pooling says how; what belongs before and behind the text, the model's makers say. */
enum { JIT_POOL_LAST, JIT_POOL_MEAN, JIT_POOL_NONE, JIT_POOL_RANK, JIT_POOL_CLS };
typedef struct jit_embedding_options {
	size_t size;
	int pooling;   /* LAST: the last token's row; CLS: the first's; MEAN: the sum of all in double, from the first
	                  on, divided by n, then rounded to float; NONE: all n rows, one after the other;
	                  RANK: one float, the text's score by the model's classifier (docs/serving.md) */
	int normalise; /* non-zero: each row that is given has the Euclidean length 1, unless it is all zeros */
} jit_embedding_options;
#define JIT_EMBEDDING_OPTIONS(...) JIT_STRUCT(jit_embedding_options, __VA_ARGS__)

/* Appends n tokens, at least one, as jit_session_feed does, and gives their embedding instead of logits: n_out finite
 * floats: `embedding` of jit_model_info, with NONE n times `hidden`. They see what the session had before, which is in
 * no mean; rewind to 0 for a text of its own. The same tokens give the same bits. options NULL: all defaults. Then feed
 * at least one token before asking for logits. */
int jit_session_embed(jit_session *s, const int32_t *ids, size_t n, const jit_embedding_options *options, float *out,
                      size_t n_out, jit_error *err);

/* A token and the natural logarithm of its probability. An entry of a list, it has no size and stays as it is. */
typedef struct jit_logprob {
	int32_t id;
	float logprob;
} jit_logprob;
enum { JIT_LOGPROBS_MOST = 256 };

/* Right after jit_session_next: how likely the model held the token it chose (*chosen, unless NULL), and the n
 * likeliest (top; at most JIT_LOGPROBS_MOST, and the vocabulary), the lower id first among equals. As the model says,
 * before anything of jit_sampling; the same bits on every machine. */
int jit_session_logprobs(jit_session *s, float *chosen, jit_logprob *top, size_t n, jit_error *err);

/* The same as they were drawn from, behind all of jit_sampling and a grammar. *n_top (may be NULL): how many there are;
 * where the likeliest is taken, it alone. *chosen is -infinity for a token that was given instead of drawn. */
int jit_session_sampled_logprobs(jit_session *s, float *chosen, jit_logprob *top, size_t n, size_t *n_top,
                                 jit_error *err);

/* The text this token completes: whole UTF-8 characters (0 bytes while inside one), valid until the next call. Once for
 * each token, in order; id -1 flushes what is left. NULL: err; the token was not taken, and may be given again. */
const char *jit_session_text(jit_session *s, int32_t id, size_t *n, jit_error *err);

/* Tokens so far, those chosen but not yet computed included; and the ids themselves. */
size_t jit_session_length(const jit_session *s);
const int32_t *jit_session_ids(const jit_session *s);

/* Forgets every token from position n on (n <= length). Then feed at least one token before asking for logits. Layers
 * with a window keep little more than it where the context is larger: going back further than some hundred tokens then
 * has the rest computed anew, by what is asked for next. Layers that keep a state (of convolutions over time, of the
 * delta rule) have it as it was at a few earlier tokens: those between the last of these and n are computed anew, about
 * as many as were taken back or a prompt's pass has. A session that is restored or forked does the same. */
int jit_session_rewind(jit_session *s, size_t n, jit_error *err);

/* SAVED SESSIONS. A file holds a session's tokens and its KV cache, and nothing of sampling or stop texts. A session
 * that is restored from it computes the same logits, bit for bit, as one that was fed the tokens. The file is replaced
 * whole or not at all, and readable by its owner alone. It belongs to one model, KV type, numerics and version of the
 * library: anything else is refused by name, and so is a damaged file. Restoring asks for a session that has no tokens,
 * and leaves it so when it fails. */
int jit_session_save(jit_session *s, const char *path, jit_error *err);
int jit_session_restore(jit_session *s, const char *path, jit_error *err);
/* A session with the tokens of s and a copy of its cache; else as the options say, whose kv is that of s. NULL: err. */
jit_session *jit_session_fork(const jit_session *s, const jit_session_options *options, jit_error *err);

/* From the next choice on. NULL: all defaults. After an error the parameters are what they were. */
int jit_session_set_sampling(jit_session *s, const jit_sampling *p, jit_error *err);

/* SAMPLERS. First logit_bias is added. Then the samplers have their turn, as a rule in the order
 *
 *     penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature
 *
 * and `samplers` may name some of them in another order; those it leaves out are not used. Each works on the tokens
 * that the one before left. At last a token is drawn by its probability, by adaptive-p where adaptive_target is set, or
 * the likeliest one is taken where the temperature is 0 or less. mirostat takes the place of all samplers but
 * logit_bias and temperature. Penalties and DRY look at the prompt, too. The state of mirostat and adaptive-p follows
 * the chosen tokens, not those fed; a rewind takes it back with them, and setting the sampling begins it anew. */

/* STOP TEXTS. From now on jit_session_text gives none of n texts, nor anything behind the first that is complete: what
 * could still become one is held back until it is known, and id -1 gives what is held at the end. They are copied, at
 * most 256 of 1 to 4096 bytes. n 0: those of the model's files (jit_model_stop), with which a session begins. Set them
 * anew for another answer, or after a rewind. */
int jit_session_set_stop(jit_session *s, const char *const *texts, size_t n, jit_error *err);
/* The number, from 0, of the text that was found; -1: none was so far. */
int jit_session_stopped(const jit_session *s);

typedef struct jit_session_stats {
	size_t size;
	uint64_t prompt_tokens, decode_tokens; /* computed by feeds; computed one at a time by next */
	double prompt_seconds, decode_seconds;
	/* Distinct kernels of this model so far, and where they came from; packs count as cache. */
	uint64_t kernels, kernels_generated, kernels_from_cache, kernels_from_pack;
	/* Entries found and unusable; kernels that could not be stored; entries removed to keep the limit. */
	uint64_t cache_damaged, cache_store_failed, cache_evicted;
	double generate_seconds; /* spent generating code, all kernels of the model so far */
	uint64_t code_bytes, kv_bytes;
	int threads, context;
	uint64_t decode_passes;     /* to compute decode_tokens: fewer, where draft tokens were accepted */
	uint64_t drafted, accepted; /* draft tokens computed; of them, those the choice equalled */
	struct {
		int tokens, reserved;
		uint64_t passes, drafted, accepted;
	} speculation[3]; /* the same by tokens of the pass: 4, 8, 16 */
	/* Kernels the background thread made or loaded; those decoding waited for; entries that could not be read. */
	uint64_t kernels_background, kernel_stalls, cache_unreadable;
} jit_session_stats;
#define JIT_SESSION_STATS() JIT_STRUCT(jit_session_stats, )
int jit_session_get_stats(const jit_session *s, jit_session_stats *out, jit_error *err);

/* Every kernel the session has used: its key, where it came from, its size and registers, the bytes a call is expected
 * to move, and its share of all workers' time; and what was refused, and why. A table for people, or one JSON object,
 * malloc'ed and 0-terminated: free() it. NULL: err. Without a profile all kernels of the model, without times. */
char *jit_session_report(jit_session *s, int json, jit_error *err);
/* Writes what every worker did when, in Chrome's trace format, of a session with JIT_PROFILE_EVENTS. */
int jit_session_trace(jit_session *s, const char *path, jit_error *err);

#ifdef __cplusplus
}
#endif
#endif
