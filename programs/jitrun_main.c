/* programs/jitrun_main.c - the jitrun program: options, prompt, streaming, summary. Uses nothing but jitrun.h of the
 * library, and the names of targets.
 *
 * stdout carries what was asked for (text, ids or one JSON line) and nothing else; everything said to a person goes to
 * stderr. Exit status: 0 done, 1 something failed (one sentence on stderr), 2 a wrong command line, 130 interrupted.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "jit/target.h"
#include "programs/allocator.h"
#include "runtime/jitrun.h"
#include "programs/options.h"
#include "programs/output.h"
#include "programs/perplexity.h"
#include "programs/prompt.h"
#include "runtime/host/system.h"

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130, FEED_STEP = 256, PERPLEXITY_WINDOW = 512 };

static struct {
	const char *prompt, *file, *prompt_ids, *perplexity, *speculate, *tune, *device, *isa, *kv_type, *activations,
		*numerics, *cache, *dump_ir, *dump_asm, *jitdump, *trace, *launch, *target, *dump_objects;
	bool special, echo, print_ids, json, quiet, ignore_eos, no_cache, sealed, devices, perf_map, gdb, report;
	struct option_about about;
	long n, context, threads, top_k, seed, batch, repeat_window, workgroups, units, cache_limit;
	double temp, top_p, min_p, repeat_penalty;
} opt = { .device = "cpu",
	  .kv_type = "f16",
	  .activations = "auto",
	  .numerics = "exact",
	  .speculate = "auto",
	  .tune = "quick",
	  .launch = "token",
	  .n = 256,
	  .top_p = 1,
	  .repeat_penalty = 1 };

/* Read off the table of targets before the command line is. */
static char isa_choices[TARGET_LIST_MAX], card_choices[TARGET_LIST_MAX], device_choices[TARGET_LIST_MAX] = "cpu|ref|";

static void list_targets(void)
{
	size_t n = strlen(device_choices);

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	target_list(card_choices, sizeof card_choices, TARGETS_OF_CARDS, "", "|");
	target_list(device_choices + n, sizeof device_choices - n, TARGETS_OF_CARDS, "sim:", "|");
}

static const struct option_row rows[] = {
	{ "Prompt", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "prompt", 'p', OPTION_TEXT, "TEXT",
	  "the text to continue; without it and without --file, standard input is read", 0, 0, &opt.prompt },
	{ "file", 'f', OPTION_FILE, "FILE", "read the prompt from FILE, - for standard input", 0, 0, &opt.file },
	{ "prompt-ids", 0, OPTION_TEXT, "IDS", "the prompt as token ids: digits with commas between, 1,2,3", 0, 0,
	  &opt.prompt_ids },
	{ "special", 0, OPTION_FLAG, 0,
	  "take names of control tokens, such as <|im_start|>, in the prompt or the text of --perplexity for these "
	  "tokens; without it they are text like any other",
	  0, 0, &opt.special },
	{ "echo", 0, OPTION_FLAG, 0, "print the prompt before what follows it", 0, 0, &opt.echo },
	{ "Generation", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "n-predict", 'n', OPTION_INT, "N", "tokens to generate, -1 until the end or until the context is full (256)",
	  -1, INT_MAX, &opt.n },
	{ "context", 'c', OPTION_INT, "N",
	  "positions the session can hold; 0: what the model was trained for, at most 4096 (0)", 0, INT_MAX,
	  &opt.context },
	{ "ignore-eos", 0, OPTION_FLAG, 0, "go on after an end-of-text token", 0, 0, &opt.ignore_eos },
	{ "temp", 0, OPTION_FLOAT, "T", "temperature; 0 always takes the likeliest token (0)", 0, 100, &opt.temp },
	{ "top-k", 0, OPTION_INT, "K", "choose among the K likeliest tokens, 0: all (0)", 0, INT_MAX, &opt.top_k },
	{ "top-p", 0, OPTION_FLOAT, "P", "choose among the likeliest tokens that together have probability P (1)", 0, 1,
	  &opt.top_p },
	{ "min-p", 0, OPTION_FLOAT, "P", "leave out tokens less likely than P times the likeliest (0)", 0, 1,
	  &opt.min_p },
	{ "repeat-penalty", 0, OPTION_FLOAT, "X", "make tokens seen lately less likely, 1: not (1)", 0.01, 100,
	  &opt.repeat_penalty },
	{ "repeat-last-n", 0, OPTION_INT, "N", "how many last tokens the penalty looks at, 0: 64 (0)", 0, INT_MAX,
	  &opt.repeat_window },
	{ "seed", 's', OPTION_INT, "N", "the same seed gives the same text (0)", 0, (double)LONG_MAX, &opt.seed },
	{ "perplexity", 0, OPTION_FILE, "FILE",
	  "generate nothing; print how well the model expects the text of FILE, in windows of --context tokens (512) "
	  "whose second "
	  "halves are scored",
	  0, 0, &opt.perplexity },
	{ "Output", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "print-ids", 0, OPTION_FLAG, 0, "print the generated token ids on one line instead of text", 0, 0,
	  &opt.print_ids },
	{ "json", 0, OPTION_FLAG, 0,
	  "print one JSON line at the end, with ids, text, timings and counters, instead of text", 0, 0, &opt.json },
	{ "quiet", 'q', OPTION_FLAG, 0, "no progress bar and no summary", 0, 0, &opt.quiet },
	{ "report", 0, OPTION_FLAG, 0,
	  "at the end, list every kernel with its key, source, size, registers, expected bytes and share of the time; "
	  "with --json as its member \"report\"",
	  0, 0, &opt.report },
	{ "trace", 0, OPTION_FILE, "FILE",
	  "write what every thread did when to FILE, in Chrome's trace format, which Perfetto opens", 0, 0,
	  &opt.trace },
	{ "Machine", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "device", 0, OPTION_CHOICE, device_choices,
	  "cpu runs generated code, ref interprets it, slowly; sim:... runs code for that card in a simulator, very "
	  "slowly (cpu)",
	  0, 0, &opt.device },
	{ "devices", 0, OPTION_FLAG, 0,
	  "list the devices that --device takes here, with what each is, or why it cannot be used, and stop", 0, 0,
	  &opt.devices },
	{ "isa", 0, OPTION_CHOICE, isa_choices, "instruction set to generate for (the best this CPU has)", 0, 0,
	  &opt.isa },
	{ "threads", 't', OPTION_INT, "N", "worker threads; 0: one per core this process may use (0)", 0, 1024,
	  &opt.threads },
	{ "batch", 0, OPTION_INT, "N", "most prompt tokens computed in one pass; 0: 264 (0)", 0, 1024, &opt.batch },
	{ "speculate", 0, OPTION_CHOICE, "off|auto|4|8|16",
	  "where the text was seen before, compute guessed tokens along, in passes of 4, 8 or 16; auto: when and as "
	  "many as measurements say it pays; never changes the text (auto)",
	  0, 0, &opt.speculate },
	{ "launch", 0, OPTION_CHOICE, "op|layer|token", "how much of a pass goes to a card in one launch (token)", 0, 0,
	  &opt.launch },
	{ "workgroups", 0, OPTION_INT, "N",
	  "workgroups of a launch on a card, all of them at once; 0: as many as it has room for (0)", 0, 1024,
	  &opt.workgroups },
	{ "units", 0, OPTION_INT, "N", "compute units of a simulated card; 0: 2 (0)", 0, 256, &opt.units },
	{ "kv-type", 0, OPTION_CHOICE, "f16|f32|q8_0", "type of the KV cache; q8_0: int8, half the memory (f16)", 0, 0,
	  &opt.kv_type },
	{ "activations", 0, OPTION_CHOICE, "auto|f32",
	  "auto: int8 blocks against quantised weights; f32: always f32, slower (auto)", 0, 0, &opt.activations },
	{ "numerics", 0, OPTION_CHOICE, "exact|bounded",
	  "exact: the same bits on every device; bounded: prompts may use float matrix products, within a stated error "
	  "(exact)",
	  0, 0, &opt.numerics },
	{ "tune", 0, OPTION_CHOICE, "off|cached|quick",
	  "quick: while the first tokens are made, find out which schedules of kernels this processor likes, and keep "
	  "that in the cache; cached: only use what is known; never changes the text (quick)",
	  0, 0, &opt.tune },
	{ "cache", 0, OPTION_FILE, "PATH",
	  "directories and pack files (.jkp) of generated code, separated by colons and asked in order; the first "
	  "directory that can be written gets what is new. Their code is executed as it is: "
	  "the checksums find damage, not forgery, so what counts is who may write them. Files of anybody but you and "
	  "root, and files that others may write, are refused ($JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun)",
	  0, 0, &opt.cache },
	{ "cache-limit", 0, OPTION_INT, "MIB",
	  "most such a directory may hold; what was used longest ago goes first (256)", 1, 1 << 20, &opt.cache_limit },
	{ "sealed", 0, OPTION_FLAG, 0,
	  "generate no code: every kernel must be in the cache, which is only read and which jitwarm fills; a missing "
	  "one is an error that names it",
	  0, 0, &opt.sealed },
	{ "no-cache", 0, OPTION_FLAG, 0, "neither read nor write generated code on disk", 0, 0, &opt.no_cache },
	{ "Looking inside", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "dump-ir", 0, OPTION_FILE, "FILE", "write the IR of every kernel generated, - for standard output", 0, 0,
	  &opt.dump_ir },
	{ "dump-asm", 0, OPTION_FILE, "FILE", "write every kernel generated as bytes an assembler accepts", 0, 0,
	  &opt.dump_asm },
	{ "target", 0, OPTION_CHOICE, card_choices, "the card that --dump-objects is for", 0, 0, &opt.target },
	{ "dump-objects", 0, OPTION_FILE, "DIR",
	  "generate nothing; write the code objects of every kernel, and of passes over 1, 4, 8 and 16 tokens, for the "
	  "card of --target; "
	  "needs no card, and of the model only its header",
	  0, 0, &opt.dump_objects },
	{ "perf-map", 0, OPTION_FLAG, 0, "write /tmp/perf-PID.map, so that perf shows kernels by name", 0, 0,
	  &opt.perf_map },
	{ "jitdump", 0, OPTION_FILE, "DIR",
	  "write DIR/jit-PID.dump, from which perf inject --jit makes kernels that perf annotate can show; record with "
	  "-k mono",
	  0, 0, &opt.jitdump },
	{ "gdb", 0, OPTION_FLAG, 0, "tell gdb the names of kernels", 0, 0, &opt.gdb },
	OPTION_ABOUT(opt.about),
};

static volatile sig_atomic_t interrupted;
static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What comes from files, and names of files, may hold what terminals obey. */
static void say(const char *text, const char *end)
{
	char quoted[2 * sizeof((jit_error *)0)->message];

	fprintf(stderr, "jitrun: %s%s", error_quote(quoted, sizeof quoted, text, strlen(text)), end);
}

static int fail(const jit_error *e)
{
	say(e->message, ".\n");
	return 1;
}

static bool output_ok(void)
{
	const char *why;

	if (!output_written(&why))
		fprintf(stderr, "jitrun: standard output could not be written: %s.\n", why);
	return why == NULL;
}

static int usage(const char *text)
{
	say(text, "\nTry 'jitrun --help'.\n");
	return EXIT_USAGE;
}

/* ---- the prompt */

/* 0: the prompt is there; otherwise the exit status. */
static int get_prompt(struct prompt *p)
{
	jit_error err = { 0 };

	if ((opt.prompt != NULL) + (opt.file != NULL) + (opt.prompt_ids != NULL) + (opt.perplexity != NULL) > 1)
		return usage("give one of --prompt, --file, --prompt-ids and --perplexity");
	if (opt.perplexity) {
		opt.context = opt.context ? opt.context : PERPLEXITY_WINDOW;
		if (opt.context < 4)
			return usage("a window of --perplexity takes at least 4 tokens of --context");
		return prompt_read(p, opt.perplexity, prompt_most_of_windows(), &err) ? 0 : fail(&err);
	}
	if (opt.prompt_ids)
		return prompt_parse_ids(p, opt.prompt_ids, &err) ? 0
		       : err.code == JIT_ERROR_ARGUMENT          ? usage(err.message)
		                                                 : fail(&err);
	if (opt.prompt) {
		p->n = strlen(opt.prompt);
		p->text = strdup(opt.prompt);
		return p->text ? 0 : fail(&(jit_error){ .message = "no memory for the prompt" });
	}
	if (!opt.file && isatty(STDIN_FILENO))
		return usage("there is no prompt: give --prompt TEXT, --file FILE, --prompt-ids IDS or text on "
		             "standard input");
	return prompt_read(p, opt.file ? opt.file : "-", prompt_most(opt.context), &err) ? 0 : fail(&err);
}

/* ---- loading */

static int show_progress(void *user, uint64_t done, uint64_t total)
{
	static int last = -1;
	int percent = total ? (int)(done * 100 / total) : 100;
	(void)user;

	if (percent != last) {
		char bar[41];
		for (int i = 0; i < 40; i++)
			bar[i] = i < percent * 40 / 100 ? '#' : '.';
		bar[40] = 0;
		fprintf(stderr, "\rloading [%s] %3d%%", bar, percent);
		if (percent == 100)
			fprintf(stderr, "\r%60s\r", "");
		fflush(stderr);
		last = percent;
	}
	return interrupted;
}

static int tune_option(void)
{
	return strcmp(opt.tune, "off") == 0      ? JIT_TUNE_OFF
	       : strcmp(opt.tune, "cached") == 0 ? JIT_TUNE_CACHED
	                                         : JIT_TUNE_QUICK;
}

static jit_model *open_model(const char *path, jit_error *err)
{
	jit_model_options o = {
		.device = opt.device,
		.isa = opt.isa,
		.threads = (int)opt.threads,
		.cache_dir = opt.no_cache ? "" : opt.cache,
		.cache_limit = (uint64_t)opt.cache_limit << 20,
		.f32_activations = strcmp(opt.activations, "f32") == 0,
		.bounded_numerics = strcmp(opt.numerics, "bounded") == 0,
		.perf_map = opt.perf_map,
		.jitdump = opt.jitdump,
		.gdb = opt.gdb,
		.sealed = opt.sealed,
		.tune = tune_option(),
		.dump_ir = opt.dump_ir,
		.dump_asm = opt.dump_asm
	};
	if (!opt.quiet && isatty(STDERR_FILENO))
		o.progress = show_progress;
	return jit_model_open(path, &o, err);
}

static int speculate_option(void)
{
	return strcmp(opt.speculate, "off") == 0    ? JIT_SPECULATE_OFF
	       : strcmp(opt.speculate, "auto") == 0 ? JIT_SPECULATE_AUTO
	                                            : atoi(opt.speculate);
}

static int kv_option(void)
{
	return strcmp(opt.kv_type, "f32") == 0    ? JIT_KV_F32
	       : strcmp(opt.kv_type, "q8_0") == 0 ? JIT_KV_Q8_0
	                                          : JIT_KV_F16;
}

static int launch_option(void)
{
	return strcmp(opt.launch, "op") == 0      ? JIT_LAUNCH_OP
	       : strcmp(opt.launch, "layer") == 0 ? JIT_LAUNCH_LAYER
	                                          : JIT_LAUNCH_TOKEN;
}

static jit_session *open_session(jit_model *m, jit_error *err)
{
	jit_session_options o = {
		.context = (int)opt.context,
		.threads = (int)opt.threads,
		.kv = kv_option(),
		.batch = (int)opt.batch,
		.speculate = speculate_option(),
		.launch = launch_option(),
		.workgroups = (int)opt.workgroups,
		.units = (int)opt.units,
		.profile = opt.trace    ? JIT_PROFILE_EVENTS
		           : opt.report ? JIT_PROFILE_SUMS
		                        : JIT_PROFILE_OFF,
		.sampling = { .temperature = (float)opt.temp,
		              .top_k = (int)opt.top_k,
		              .top_p = (float)opt.top_p,
		              .min_p = (float)opt.min_p,
		              .repeat_penalty = (float)opt.repeat_penalty,
		              .repeat_window = (int)opt.repeat_window,
		              .seed = (uint64_t)opt.seed }
	};
	return jit_session_open(m, &o, err);
}

/* ---- generating */

struct run {
	jit_model *model;
	jit_session *session;
	size_t n_prompt, n_generated;
	bool ended, full, terminal; /* standard output is a terminal */
	double start, first_token;  /* seconds from the program's start */
	char *text;
	size_t n_text; /* kept for --json */
};

static bool emit_failed(jit_error *err, int code, const char *what, const char *why)
{
	snprintf(err->message, sizeof err->message, "%s: %s", what, why);
	err->code = code;
	return false;
}

/* What a token adds to the text, or with id -1 what is left of it at the end. */
static bool emit(struct run *r, int32_t id, jit_error *err)
{
	size_t n;
	const char *text = jit_session_text(r->session, id, &n);

	if (!text)
		return emit_failed(err, JIT_ERROR_MEMORY, "the text of a token", "no memory");
	if (opt.json) {
		char *more = realloc(r->text, r->n_text + n + 1);
		if (!more)
			return emit_failed(err, JIT_ERROR_MEMORY, "the text for --json", "no memory");
		memcpy(more + r->n_text, text, n);
		r->text = more;
		r->n_text += n;
	} else if (opt.print_ids) {
		if (id >= 0)
			printf(r->n_generated ? " %d" : "%d", id);
	} else {
		output_text(stdout, text, n, r->terminal);
	}
	return (!ferror(stdout) && fflush(stdout) == 0) ||
	       emit_failed(err, JIT_ERROR_IO, "standard output could not be written", strerror(errno));
}

/* The prompt in steps, so that an interrupt is heard between them. */
static int feed(struct run *r, const struct prompt *p, jit_error *err)
{
	for (size_t i = 0; i < p->n_ids && !interrupted; i += FEED_STEP) {
		size_t n = p->n_ids - i < FEED_STEP ? p->n_ids - i : FEED_STEP;
		int status = jit_session_feed(r->session, p->ids + i, n, err);
		if (status != JIT_OK)
			return status;
	}
	return JIT_OK;
}

static int generate(struct run *r, jit_error *err)
{
	int32_t id;

	while (!interrupted && (opt.n < 0 || r->n_generated < (size_t)opt.n)) {
		int status = jit_session_next(r->session, &id, err);
		if (status == JIT_ERROR_CONTEXT && r->n_generated) {
			r->full = true;
			break;
		}
		if (status != JIT_OK)
			return status;
		if (r->n_generated == 0)
			r->first_token = now() - r->start;
		if (!opt.ignore_eos && jit_model_is_end(r->model, id)) {
			r->ended = true;
			break;
		}
		if (!emit(r, id, err))
			return err->code;
		r->n_generated++;
	}
	return emit(r, -1, err) ? JIT_OK : err->code;
}

/* ---- reporting */

static double rate(uint64_t n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

static const char *why_stopped(const struct run *r)
{
	return interrupted ? "interrupted" : r->ended ? "end of text" : r->full ? "context full" : "length";
}

static void print_summary(const struct run *r)
{
	jit_model_info info;
	jit_session_stats s;

	jit_model_get_info(r->model, &info);
	jit_session_get_stats(r->session, &s);
	fprintf(stderr, "\n%s\n", info.description);
	fprintf(stderr, "load    %8.3f s   %.1f MiB of weights, %d thread%s\n", info.load_seconds,
	        (double)info.weight_bytes / 0x1p20, s.threads, s.threads == 1 ? "" : "s");
	fprintf(stderr,
	        "kernels %8llu     %llu generated in %.2f ms, %llu from the cache (%llu of a pack), %.1f KiB of code\n",
	        (unsigned long long)s.kernels, (unsigned long long)s.kernels_generated, 1e3 * s.generate_seconds,
	        (unsigned long long)s.kernels_from_cache, (unsigned long long)s.kernels_from_pack,
	        (double)s.code_bytes / 1024);
	if (s.cache_damaged || s.cache_store_failed)
		fprintf(stderr, "cache   %8llu damaged, %llu not stored\n", (unsigned long long)s.cache_damaged,
		        (unsigned long long)s.cache_store_failed);
	fprintf(stderr, "prompt  %8llu tokens in %.3f s, %.1f tokens/s\n", (unsigned long long)s.prompt_tokens,
	        s.prompt_seconds, rate(s.prompt_tokens, s.prompt_seconds));
	double tps = rate(s.decode_tokens, s.decode_seconds);
	fprintf(stderr, "decode  %8llu tokens in %.3f s, %.2f tokens/s, %.2f GB/s of weights\n",
	        (unsigned long long)s.decode_tokens, s.decode_seconds, tps,
	        rate(s.decode_passes, s.decode_seconds) * (double)info.token_bytes / 1e9);
	if (s.drafted)
		fprintf(stderr, "guessed %8llu tokens, %llu came true (%.1f %%); %.2f tokens a pass\n",
		        (unsigned long long)s.drafted, (unsigned long long)s.accepted,
		        100 * (double)s.accepted / (double)s.drafted,
		        (double)s.decode_tokens / (double)s.decode_passes);
	if (s.card.launches)
		fprintf(stderr,
		        "card    %8llu launches, %llu barriers, %.1f MiB loaded (%.0f %% by 128 bits; %.1f MiB of "
		        "weights, %.1f of the KV cache), %.1f MiB of scalars, %llu instructions\n",
		        (unsigned long long)s.card.launches, (unsigned long long)s.card.barriers,
		        (double)s.card.load_bytes / 0x1p20, 100 * rate(s.card.load128_bytes, (double)s.card.load_bytes),
		        (double)s.card.weight_bytes / 0x1p20, (double)s.card.cache_bytes / 0x1p20,
		        (double)s.card.scalar_bytes / 0x1p20, (unsigned long long)s.card.instructions);
	fprintf(stderr, "first token after %.3f s; stopped: %s\n", r->first_token, why_stopped(r));
}

static int print_json(const struct run *r)
{
	jit_model_info info;
	jit_session_stats s;
	json_t *prompt = json_array(), *ids = json_array();
	const int32_t *all = jit_session_ids(r->session);

	jit_model_get_info(r->model, &info);
	jit_session_get_stats(r->session, &s);
	for (size_t i = 0; i < r->n_prompt + r->n_generated; i++)
		json_array_append_new(i < r->n_prompt ? prompt : ids, json_integer(all[i]));
	json_t *guesses = json_object();
	for (size_t i = 0; i < sizeof s.speculation / sizeof *s.speculation; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", s.speculation[i].tokens);
		json_object_set_new(guesses, name,
		                    json_pack("{s:I, s:I, s:I}", "passes", (json_int_t)s.speculation[i].passes,
		                              "drafted", (json_int_t)s.speculation[i].drafted, "accepted",
		                              (json_int_t)s.speculation[i].accepted));
	}
	json_t *o = json_pack(
		"{s:s, s:o, s:o, s:s%, s:s, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}, s:{s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:o}}",
		"model", info.description, "prompt_ids", prompt, "ids", ids, "text", r->text ? r->text : "", r->n_text,
		"stopped", why_stopped(r), "timings", "load_seconds", info.load_seconds, "first_token_seconds",
		r->first_token, "prompt_seconds", s.prompt_seconds, "decode_seconds", s.decode_seconds,
		"generate_seconds", s.generate_seconds, "prompt_tokens_per_second",
		rate(s.prompt_tokens, s.prompt_seconds), "decode_tokens_per_second",
		rate(s.decode_tokens, s.decode_seconds), "counters", "kernels", (json_int_t)s.kernels,
		"kernels_generated", (json_int_t)s.kernels_generated, "kernels_from_cache",
		(json_int_t)s.kernels_from_cache, "code_bytes", (json_int_t)s.code_bytes, "weight_bytes",
		(json_int_t)info.weight_bytes, "token_bytes", (json_int_t)info.token_bytes, "kv_bytes",
		(json_int_t)s.kv_bytes, "threads", s.threads, "context", s.context, "prompt_tokens",
		(json_int_t)s.prompt_tokens, "decode_tokens", (json_int_t)s.decode_tokens, "decode_passes",
		(json_int_t)s.decode_passes, "drafted", (json_int_t)s.drafted, "accepted", (json_int_t)s.accepted,
		"speculation", guesses);
	json_t *counters = json_object_get(o, "counters");
	json_object_set_new(counters, "kernels_from_pack", json_integer((json_int_t)s.kernels_from_pack));
	json_object_set_new(counters, "kernels_background", json_integer((json_int_t)s.kernels_background));
	json_object_set_new(counters, "kernel_stalls", json_integer((json_int_t)s.kernel_stalls));
	json_object_set_new(counters, "cache_damaged", json_integer((json_int_t)s.cache_damaged));
	json_object_set_new(counters, "cache_store_failed", json_integer((json_int_t)s.cache_store_failed));
	json_object_set_new(counters, "cache_evicted", json_integer((json_int_t)s.cache_evicted));
	if (o && opt.report) {
		char *report = jit_session_report(r->session, 1, NULL);
		json_object_set_new(o, "report", report ? json_loads(report, 0, NULL) : json_null());
		free(report);
	}
	char *text = o ? json_dumps(o, output_json_flags(stdout)) : NULL;
	json_decref(o);
	if (!text) {
		fprintf(stderr, "jitrun: the JSON line could not be made: no memory.\n");
		return 1;
	}
	puts(text);
	free(text);
	return 0;
}

/* What --report and --trace ask for. */
static int say_where_time_went(const struct run *r)
{
	jit_error err = { 0 };

	if (opt.report && !opt.json) {
		char *text = jit_session_report(r->session, 0, &err);
		if (!text)
			return fail(&err);
		bool written = fputs(text, stderr) >= 0 && fflush(stderr) == 0;
		free(text);
		if (!written)
			return 1;
	}
	return opt.trace && jit_session_trace(r->session, opt.trace, &err) != JIT_OK ? fail(&err) : 0;
}

/* As it was given, or what the ids stand for. */
static bool echo_prompt(const struct run *r, const struct prompt *p, jit_error *err)
{
	size_t n = p->n;
	char *spelled = p->text ? NULL : jit_model_detokenize(r->model, p->ids, p->n_ids, &n, err);

	if (!p->text && !spelled)
		return false;
	output_text(stdout, p->text ? p->text : spelled, n, r->terminal);
	free(spelled);
	return (!ferror(stdout) && fflush(stdout) == 0) ||
	       emit_failed(err, JIT_ERROR_IO, "standard output could not be written", strerror(errno));
}

static int context_of(const jit_session *session)
{
	jit_session_stats s;

	jit_session_get_stats(session, &s);
	return s.context;
}

static int run_session(struct run *r, struct prompt *p)
{
	jit_error err = { 0 };
	int status;

	if (!p->ids && jit_model_tokenize(r->model, p->text, p->n, 1, opt.special, &p->ids, &p->n_ids, &err) != JIT_OK)
		return fail(&err);
	if (p->n_ids == 0) {
		fprintf(stderr,
		        "jitrun: the prompt is empty and this model has no beginning-of-text token to start from.\n");
		return 1;
	}
	if (!prompt_fits(p, context_of(r->session), &err))
		return fail(&err);
	r->n_prompt = p->n_ids;
	if (opt.echo && !opt.json && !opt.print_ids && !echo_prompt(r, p, &err))
		return fail(&err);
	status = feed(r, p, &err);
	if (status == JIT_OK && !interrupted)
		status = generate(r, &err);
	if (interrupted && r->n_prompt > jit_session_length(r->session))
		r->n_prompt = jit_session_length(r->session);
	if (!opt.json && (opt.print_ids || isatty(STDOUT_FILENO) || opt.echo))
		putchar('\n');
	if (status != JIT_OK)
		return fail(&err);
	if ((opt.json && print_json(r) != 0) || !output_ok())
		return 1;
	if (!opt.quiet)
		print_summary(r);
	int rc = say_where_time_went(r);
	return rc ? rc : interrupted ? EXIT_INTERRUPTED : 0;
}

static int run_perplexity(struct run *r, const struct prompt *p)
{
	struct perplexity x = { 0 };
	jit_error err = { 0 };

	if (perplexity_measure(r->model, r->session, p->text, p->n, opt.special, (size_t)opt.context, &interrupted, &x,
	                       &err) != JIT_OK)
		return fail(&err);
	if (!opt.json) {
		printf("perplexity %.4f\n", x.perplexity);
	} else {
		json_t *o = json_pack("{s:o, s:I, s:I, s:I, s:I}", "perplexity",
		                      x.scored ? output_real(x.perplexity) : json_null(), "tokens",
		                      (json_int_t)x.tokens, "windows", (json_int_t)x.windows, "scored",
		                      (json_int_t)x.scored, "context", (json_int_t)opt.context);
		char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
		json_decref(o);
		puts(text ? text : "");
		free(text);
	}
	if (!opt.quiet)
		fprintf(stderr, "%zu of %zu tokens scored, in %zu windows of %ld\n", x.scored, x.tokens, x.windows,
		        opt.context);
	return interrupted ? EXIT_INTERRUPTED : 0;
}

static int dump_objects(const char *path)
{
	const jit_objects_options o = { .target = opt.target,
		                        .dir = opt.dump_objects,
		                        .kv = kv_option(),
		                        .f32_activations = strcmp(opt.activations, "f32") == 0,
		                        .bounded_numerics = strcmp(opt.numerics, "bounded") == 0 };
	jit_objects made;
	jit_error err = { 0 };

	if (!opt.target)
		return usage("which card are the code objects of --dump-objects for? Give --target");
	if (jit_write_objects(path, &o, &made, &err) != JIT_OK)
		return fail(&err);
	if (!opt.quiet)
		fprintf(stderr, "%zu kernels and %zu programs for %s in %s, %.1f KiB\n", made.kernels, made.programs,
		        opt.target, opt.dump_objects, (double)made.bytes / 1024);
	return 0;
}

static int list_devices(void)
{
	size_t n = jit_devices(NULL, 0);
	jit_device_info *d = calloc(n, sizeof *d);

	n = d ? jit_devices(d, n) : 0;
	for (size_t i = 0; i < n; i++)
		printf("%-12s %s%s%s\n", d[i].name, d[i].about, *d[i].why_not ? "; cannot be used: " : "",
		       d[i].why_not);
	free(d);
	return n ? 0 : fail(&(jit_error){ .message = "the devices could not be listed: no memory" });
}

static int run(int argc, char **argv)
{
	const char *path = NULL;
	struct option_program program = {
		.name = "jitrun",
		.usage = "MODEL [options]",
		.purpose = "run a large language model with machine code generated for it",
		.description = "jitrun reads a GGUF or safetensors model (a file, or a directory with config.json), "
			       "generates machine code for exactly its shapes, "
			       "and continues the prompt on standard output. Timings go to standard error. A prompt "
			       "may fill the context, and gives one token then. On a terminal, control characters "
			       "in the text other than newline and tab are shown as U+FFFD; into files and pipes every "
			       "byte goes as it is.",
		.examples = "jitrun model.gguf --prompt \"Once upon a time\" -n 100\njitrun model-directory --file "
			    "question.txt --temp 0.8 --top-p 0.9 --seed 7\njitrun model.gguf --prompt-ids 1,15043 "
			    "--print-ids --quiet",
		.row = rows,
		.n_rows = sizeof rows / sizeof rows[0],
		.operand = &path,
		.max_operands = 1
	};
	struct run r = { .start = now(), .terminal = isatty(STDOUT_FILENO) != 0 };
	struct prompt p = { 0 };
	jit_error err = { 0 };
	struct sigaction on_int = { .sa_handler = on_interrupt,
		                    .sa_flags = (int)SA_RESETHAND }; /* a second Ctrl-C ends at once */

	allocator_begin();
	system_file_limit_is_error();
	list_targets();
	if (!options_parse(&program, argc, argv))
		return EXIT_USAGE;
	int rc;
	if (options_about(&program, &opt.about, jit_version(), &rc))
		return rc;
	if (opt.devices)
		return list_devices();
	if (!path)
		return usage("which model? Give a .gguf or .safetensors file or a model directory");
	if (opt.dump_objects)
		return dump_objects(path);
	rc = get_prompt(&p);
	if (rc == 0) {
		sigaction(SIGINT, &on_int, NULL);
		r.model = open_model(path, &err);
		r.session = r.model ? open_session(r.model, &err) : NULL;
		rc = r.session     ? (opt.perplexity ? run_perplexity(&r, &p) : run_session(&r, &p))
		     : interrupted ? EXIT_INTERRUPTED
		                   : fail(&err);
		if (r.session && (rc == 0 || rc == EXIT_INTERRUPTED) && jit_model_written(r.model, &err) != JIT_OK)
			rc = fail(&err);
	}
	jit_session_close(r.session);
	jit_model_close(r.model);
	free(r.text);
	prompt_free(&p);
	return rc;
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("jitrun", run(argc, argv), 1);
}
