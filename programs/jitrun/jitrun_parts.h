/* programs/jitrun/jitrun_parts.h - what the parts of the jitrun program share.
 *
 *   jitrun_main.c      opens the model and the session, and runs what was asked for
 *   jitrun_options.c   the command line
 *   jitrun_meaning.c   what its options mean for the library
 *   jitrun_adapters.c  adapters that are laid over the model
 *   jitrun_words.c     what of it has no dashes
 *   jitrun_remove.c    jitrun rm: a model leaves the cache
 *   jitrun_fetch.c     models that are not here yet: jitrun pull, and -hf
 *   jitrun_notes.c     what else is worth knowing
 *   jitrun_text.c      the prompt in, generated text out
 *   jitrun_template.c  the chat template, judged before the model is loaded
 *   jitrun_images.c    the image encoder, and pictures of a prompt
 *   jitrun_chat.c      a conversation: messages in, answers out
 *   jitrun_pictures.c  its pictures: /image, and files that messages name
 *   jitrun_saved.c     /save and /load
 *   jitrun_set.c       /set: how its next answers are made and shown
 *   jitrun_show.c      /show: what the model is, and how it is asked
 *   jitrun_message.c   what is a message: a line, several, a block, a paste
 *   jitrun_json.c      the same as JSON, at the end or token by token
 *   jitrun_summary.c   what is said at the end: statistics, the report
 *   jitrun_command.c   options of commands whose answer is a table
 *   jitrun_info.c      jitrun info: what a model is
 *   jitrun_list.c      jitrun list: which models there are
 *   jitrun_ps.c        jitrun ps: which models a server has in memory
 *   jitrun_doctor.c    jitrun doctor: what this machine offers (jitrun_doctor.h)
 *
 * stdout carries what was asked for (text, ids or JSON lines) and nothing else; everything said to a person goes to
 * stderr. Exit status: 0 done, 1 something failed (one sentence on stderr), 2 a wrong command line, 3 the
 * answer of a command is no, 130 interrupted.
 */
#ifndef PROGRAMS_JITRUN_PARTS_H
#define PROGRAMS_JITRUN_PARTS_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "answers/think.h"
#include "base/error.h"
#include "programs/common/model_names.h"
#include "programs/common/options.h"
#include "programs/jitrun/perplexity.h"
#include "programs/common/preset.h"
#include "programs/common/prompt.h"
#include "programs/common/sampling_args.h"
#include "programs/jitrun/wrap.h"
#include "include/jitrun_cards.h"
#include "programs/common/draft_model.h"
#include "include/jitrun_images.h"

enum { N_DEFAULT = -2 /* of --n-predict: 256 tokens of a text, all of an answer */ };
enum { OPERANDS_MAX = 4 /* run MODEL PROMPT, and one too many */ };
enum { EXIT_NO = 3, EXIT_INTERRUPTED = 130 };

/* ---- jitrun_options.c */

struct jitrun_options {
	const char *system, *template_file; /* conversations */
	bool chat, no_chat, single_turn, show_prompt;
	const char *model, *mmproj, *prompt, *file, *prompt_ids, *perplexity, *speculate, *tune, *device, *isa, *ranks,
		*split, *kv_type, *activations, *numerics, *cache, *dump_ir, *dump_asm, *jitdump, *trace, *launch,
		*target, *dump_objects;
	const char *hf_repo, *hf_file; /* what jitpull fetches */
	struct draft_arguments draft;
	const char *imatrix_out, *prompt_cache, *json_schema, *json_schema_file, *regex, *gbnf, *gbnf_file;
	bool prompt_cache_all, prompt_cache_ro, additional;
	const char *operand[OPERANDS_MAX], *think, *reasoning_message;
	bool verbose, escape, offline;
	bool no_history, special, echo, print_ids, json, json_stream, quiet, ignore_eos, no_cache, sealed, copy_weights,
		cache_weights, devices, perf_map, gdb, report, profile;
	struct option_about about;
	struct sampling_args sampling;
	struct option_list stop, lora, lora_scaled, image;
	bool lora_unapplied;
	long n, context, threads, batch, workgroups, units, cache_limit, cache_weights_limit;
	long reasoning_budget; /* tokens; -1: as many as it takes */
	long logprobs;         /* tokens; -1: none are asked for */
};
extern struct jitrun_options opt;

/* Fills opt. False: the program ends with *status, and all that there is to say was said. */
bool jitrun_parse_options(int argc, char **argv, int *status);

/* ---- jitrun_meaning.c */

jit_model_options jitrun_model_options(void);
/* The options point at the other two, which it fills. */
jit_session_options jitrun_session_options(jit_sampling *sampling, jit_card_options *card);
jit_objects_options jitrun_objects_options(void);

/* ---- jitrun_draft.c */

/* NULL, or what is wrong with its options. */
const char *jitrun_check_draft(void);
/* Opens the draft model, if there is to be one, for a session with these options. */
bool jitrun_open_draft(jit_session_options *o, jit_error *err);
/* That one and the model, when their session is closed. */
void jitrun_close_models(jit_model *m);
/* What came of the draft model. False: the session has no draft model. */
bool jitrun_draft_stats(const jit_session *s, jit_draft_stats *out);
void jitrun_print_draft(const jit_session *s);

/* ---- jitrun_adapters.c */

/* Opens the adapters of the command line; they live until the model is closed. */
bool jitrun_open_adapters(jit_model *m, jit_error *err);
/* The session has them, but for one that begins at its invocation tokens. */
bool jitrun_use_adapters(jit_session *s, jit_error *err);
/* And that one, from where they are in the text for the last time; *have: how many of its tokens the session has, which
 * may be fewer afterwards. */
bool jitrun_begin_adapters(jit_session *s, const int32_t *ids, size_t n, size_t *have, jit_error *err);
void jitrun_close_adapters(void);

/* ---- jitrun_grammar.c */

bool jitrun_has_grammar(void);
int jitrun_check_grammar(void); /* 0, or the exit status after a sentence */
struct run;
/* Whether the grammar can be had; the session has none afterwards. */
bool jitrun_try_grammar(jit_session *s, jit_error *err);
/* For each answer anew, behind the reasoning that a conversation's may have; does nothing where there is no grammar. */
bool jitrun_begin_grammar(const struct run *r, jit_error *err);
bool jitrun_grammar_is_complete(jit_session *s);

/* ---- jitrun_words.c: 0, or the exit status after a sentence */

/* What was given without dashes: the model, as a rule. */
int jitrun_take_words(const char *const *word, int n);
/* What --escape asks for. */
int jitrun_unescape(void);

/* ---- jitrun_main.c: one sentence on stderr; the exit status */

int jitrun_fail(const jit_error *e);
int jitrun_fail_with(const struct error *e);
int jitrun_usage(const char *text);
extern volatile sig_atomic_t interrupted; /* by Ctrl-C, which cancels what the library does as well */
/* true: something begins that Ctrl-C stops, and twice ends the program with it; false: it is over. */
void jitrun_busy(bool now);
double jitrun_seconds(void); /* of a clock that only goes forward */

/* One run of a model over a prompt. */
struct run {
	jit_model *model;
	jit_session *session;
	size_t n_prompt, n_generated;
	bool ended, stopped, full, terminal; /* standard output is a terminal */
	double start, first_token;           /* when it was asked for; seconds from then */
	int context;                         /* positions */
	bool cache_is_old;                   /* the prompt has tokens that the file of --prompt-cache has not */
	bool keeps_text;                     /* text is kept as well as printed */
	char *text;
	size_t n_text;                 /* kept for --json, and for conversations */
	struct session_limits *limits; /* of its reasoning; NULL: there are none, or no answer was begun */
	struct think think;
	struct think_before before; /* reasoning that a conversation's answer may have before its grammar */
	struct wrap wrap;
	char *reasoning; /* kept likewise: what is not in the text */
	size_t n_reasoning;
	int32_t mark_id[THINK_MARKS]; /* of marks that are one token; else -1 */
	char *template_text;          /* of --template FILE; NULL: one of the model's own */
	json_t *logprobs;             /* of each token, for --json; NULL: none so far */
};

/* ---- jitrun_fetch.c: what -hf asks for becomes the model. 0, or the exit status. */

int jitrun_fetch(void);

/* ---- jitrun_notes.c: what is worth knowing, one line each on stderr */

/* That options which are taken will not help. */
void jitrun_warn(const struct run *r);
/* How large the context is where nobody asked for a size, and what it may take; unless it is short, always: in any
 * case. */
void jitrun_tell_context(const struct run *r, bool always);
/* That there is no prompt, where one was to come from standard input. */
void jitrun_note_empty(const struct prompt *p);
/* Not that: of a text that contains the token which every text begins with, removes the one that was added.
 */
void jitrun_begin_once(const jit_model *m, struct prompt *p);
/* What a path or a name means, into jitrun_model. commands: the word may have been meant as one of these; NULL: it was
 * not. False: *status, after a sentence. */
bool jitrun_find_model(const char *word, const struct option_program *commands, int *status);
extern struct model_named jitrun_model;
/* What is kept with that model becomes options that the command line has not; a file that is a preset becomes the model
 * it names. False: *status, after a sentence. */
bool jitrun_use_preset(const struct option_program *program, int *status);
extern struct preset jitrun_preset;
/* Of a model that could not be opened: the sentence, which says where to look if there is no such file. Returns the
 * status, 0 on a rank whose work is done. */
int jitrun_fail_to_open(const char *model, const jit_error *err);
/* What to try after the model could not be opened. */
void jitrun_hint(void);

/* ---- jitrun_cache.c: --prompt-cache; false: err */

/* Before anything is loaded: whether the file can be used and written, as far as its name says. */
bool jitrun_cache_check(struct error *err);
/* Of a new session: what the file holds. */
bool jitrun_cache_begin(struct run *r, jit_error *err);
/* *same: so many tokens of the prompt the session has then, and no others; at least one is left. */
bool jitrun_cache_use(struct run *r, const struct prompt *p, size_t *same, jit_error *err);
/* Writes the file where that is due: when the prompt was computed, or with `whole` at the end. */
bool jitrun_cache_end(struct run *r, bool whole, jit_error *err);

/* ---- jitrun_images.c */

/* 0, or the exit status after a sentence: pictures do not go with what else was asked for. */
int jitrun_check_images(bool chat);
/* Opens the image encoder and reads what --image names, before the session is opened. For a conversation, the encoder
 * alone, where the model has one. */
bool jitrun_open_images(jit_model *m, bool chat, jit_error *err);
/* NULL: the model takes no pictures, and *why. */
jit_image_encoder *jitrun_encoder(const char **why);
/* A picture's file, where there is an encoder; jit_image_close() is due. */
jit_image *jitrun_read_image(const char *path, struct error *err);
/* The prompt's tokens, with those that stand for pictures; then these are fed. */
bool jitrun_put_images(struct prompt *p, jit_error *err);
int jitrun_feed_images(struct run *r, jit_error *err);
void jitrun_close_images(void);

/* ---- jitrun_text.c */

/* Reads the prompt, or the text of --perplexity. 0: it is there; otherwise the exit status. */
int jitrun_get_prompt(struct prompt *p);
static inline bool jitrun_is_stdout(const char *path) { return path && path[0] == '-' && !path[1]; }
/* Prints the prompt as it was given, or what its ids stand for. */
bool jitrun_echo(struct run *r, const struct prompt *p, jit_error *err);
/* Both return JIT_OK or an error code, and stop early when interrupted. */
int jitrun_feed(struct run *r, const struct prompt *p, jit_error *err);
int jitrun_generate(struct run *r, jit_error *err);
/* Once, when the model is open. */
void jitrun_find_marks(struct run *r);

/* ---- jitrun_template.c: 0, or the exit status after a sentence */

/* Whether there is a template for a conversation, which can be used as far as that is seen without one. *text: what
 * --template names, malloc'ed, where it is a file. */
int jitrun_check_template(char **text);

/* ---- jitrun_chat.c: the exit status */

/* A conversation over standard input, until its end. */
int jitrun_converse(struct run *r);

/* ---- jitrun_message.c */

struct message {
	char *text;   /* malloc'ed; NULL: there is no more */
	bool is_text; /* whatever it begins with */
	bool failed;  /* it could not be read; an error was printed */
};

/* The next message of standard input. Ctrl-C forgets what was typed of it; twice running it ends the input. */
struct message jitrun_next_message(void);

/* ---- commands: words that may stand where the model does. Each has a command line of its own, whose name is argv[0],
 * and returns the exit status. */

/* jitrun_command.c: options of those whose answer is a table. */
struct jitrun_command {
	bool json;
	struct option_about about;
};
enum { JITRUN_COMMAND_ROWS = 6 };
extern struct jitrun_command jitrun_command;
extern const struct option_row jitrun_command_rows[JITRUN_COMMAND_ROWS];

/* info_ranks.c: what info says of ranks; available: bytes, UINT64_MAX: not known. */
struct ranks_forecast;
struct model_spec;
/* s NULL: the model cannot be read. False: err. */
bool jitrun_look_at_ranks(const char *ranks, const char *split, const struct model_spec *s, uint32_t context,
                          struct ranks_forecast *out, struct error *err);
void jitrun_print_ranks(const struct ranks_forecast *f, uint64_t available);
json_t *jitrun_json_ranks(const struct ranks_forecast *f);
int jitrun_info(int argc, char **argv);
int jitrun_list(int argc, char **argv);
int jitrun_ps(int argc, char **argv);
int jitrun_doctor(int argc, char **argv);
/* Becomes jitpull. */
int jitrun_pull(int argc, char **argv);
int jitrun_remove(int argc, char **argv);

/* ---- jitrun_json.c: exit statuses */

int jitrun_print_json(const struct run *r);
int jitrun_print_perplexity(const struct perplexity *x);
/* A token that jit_session_next chose just now, and the text it completes; with id -1 the rest of the text. False: err.
 */
bool jitrun_json_token(struct run *r, int32_t id, const struct think_parts *text, jit_error *err);

/* ---- jitrun_summary.c: exit statuses */

/* Two lines; verbose: several more before them. */
void jitrun_print_summary(const struct run *r, bool verbose);
const char *jitrun_why_stopped(const struct run *r);
double jitrun_rate(uint64_t n, double seconds); /* 0 for no time */
/* What --report, --profile and --trace ask for. */
int jitrun_report(const struct run *r);

#endif
