/* programs/jitrun/jitrun_main.c - the jitrun program: opens the model and the session, and runs what was asked for.
 * It uses the library's public headers, and of its internal ones those that the list below names.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "include/jitrun_options.h"
#include "programs/common/device_auto.h"
#include "programs/common/allocator.h"
#include "programs/jitrun/jitrun_doctor.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/jitrun/line_editor.h"
#include "programs/common/output.h"
#include "programs/jitrun/perplexity.h"
#include "programs/common/progress.h"
#include "runtime/host/system.h"
#include "include/jitrun_grammar.h"
#include "runtime/sampling/chain.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"

volatile sig_atomic_t interrupted;
static volatile sig_atomic_t busy = 1, unanswered;
static jit_cancel *cancel;

static void on_interrupt(int sig);

/* While text is written, a signal must not end the write that it falls into: the stream would count it as a failure.
 * While a line is read it must. */
static void listen_for_interrupts(void)
{
	struct sigaction on_int = { .sa_handler = on_interrupt, .sa_flags = busy ? SA_RESTART : 0 };

	sigaction(SIGINT, &on_int, NULL);
}

void jitrun_busy(bool now)
{
	busy = now;
	listen_for_interrupts();
	unanswered = 0;
	if (now) {
		interrupted = 0;
		jit_cancel_set(cancel, 0);
	}
}

/* The second one before the first was answered ends the program at once. */
static void on_interrupt(int sig)
{
	if (unanswered) {
		line_editor_restore();
		signal(sig, SIG_DFL);
		raise(sig);
	}
	unanswered = busy;
	interrupted = 1;
	jit_cancel_set(cancel, 1);
}

static bool listen(jit_error *err)
{
	if (!(cancel = jit_cancel_open(err)))
		return false;
	listen_for_interrupts();
	return true;
}

double jitrun_seconds(void)
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

int jitrun_fail(const jit_error *e)
{
	say(e->message, ".\n");
	return 1;
}

int jitrun_fail_with(const struct error *e)
{
	say(e->text, ".\n");
	return 1;
}

static bool output_ok(void)
{
	const char *why;

	if (!output_written(&why))
		fprintf(stderr, "jitrun: standard output could not be written: %s.\n", why);
	return why == NULL;
}

int jitrun_usage(const char *text)
{
	say(text, "\nTry 'jitrun --help'.\n");
	return EXIT_USAGE;
}

static int show_progress(void *user, uint64_t done, uint64_t total)
{
	progress_show(user, done, total);
	return interrupted;
}

/* Weights that cannot be kept are no reason not to run, but the user who asked for it wants to know. */
static void say_unkept(const jit_model *m)
{
	jit_model_info info = JIT_MODEL_INFO();
	char text[700];

	if (opt.quiet || jit_model_get_info(m, &info, NULL) != JIT_OK || !info.weight_cache_trouble)
		return;
	snprintf(text, sizeof text, "packed weights are not kept: %s", info.weight_cache_trouble);
	say(text, ".\n");
}

/* A token reads its weights once, and multiplies and adds for each of them. */
static bool choose_device(const jit_session_options *session, jit_error *err)
{
	static char device[DEVICE_AUTO_MAX];
	jit_needs needs = JIT_NEEDS();

	if (jit_model_needs(opt.model, session, &needs, err) != JIT_OK)
		return false;
	const jit_work work = JIT_WORK(.bytes = needs.token_bytes, .operations = 2 * needs.token_bytes,
	                               .memory = needs.weight_bytes + needs.kv_bytes + needs.pass_bytes);
	opt.device = device;
	return device_auto_choose(&work, "a token", opt.quiet, device, err);
}

static jit_model *open_model(jit_error *err)
{
	struct progress bar;
	jit_sampling sampling = JIT_SAMPLING();
	jit_card_options card;
	const jit_session_options session = jitrun_session_options(&sampling, &card);

	if (device_is_auto(opt.device) && !choose_device(&session, err))
		return NULL;
	jit_model_options o = jitrun_model_options();
	o.session = &session;
	progress_begin(&bar, "loading", NULL, !opt.quiet);
	o.cancel = cancel;
	o.progress = show_progress;
	o.progress_user = &bar;
	jit_model *m = jit_model_open(opt.model, &o, err);
	progress_end(&bar);
	if (m)
		say_unkept(m);
	return m;
}

static jit_session *open_session(jit_model *m, bool chat, jit_error *err)
{
	jit_sampling sampling;
	jit_card_options card;

	if (!sampling_args_fill(&opt.sampling, m, opt.model, err))
		return NULL;
	jit_session_options o = jitrun_session_options(&sampling, &card);

	o.cancel = cancel;
	if (!jitrun_open_adapters(m, err) || !jitrun_open_images(m, chat, err) || !jitrun_open_draft(&o, err))
		return NULL;
	jit_session *s = jit_session_open(m, &o, err);

	if (s && (!jitrun_use_adapters(s, err) ||
	          jit_session_set_stop(s, opt.stop.value, (size_t)opt.stop.n, err) != JIT_OK ||
	          !jitrun_try_grammar(s, err))) {
		jit_session_close(s);
		return NULL;
	}
	return s;
}

static int context_of(const jit_session *session)
{
	jit_session_stats s = JIT_SESSION_STATS();

	jit_session_get_stats(session, &s, NULL);
	return s.context;
}

/* What of the prompt is not there yet. */
static int feed_rest(struct run *r, const struct prompt *p, jit_error *err)
{
	size_t same = 0;
	if (!jitrun_begin_adapters(r->session, p->ids, p->n_ids, &same, err) || !jitrun_cache_begin(r, err) ||
	    !jitrun_cache_use(r, p, &same, err))
		return err->code;
	return jitrun_feed(r, &(struct prompt){ .ids = p->ids + same, .n_ids = p->n_ids - same }, err);
}

static int run_session(struct run *r, struct prompt *p)
{
	jit_error err = { 0 };
	int status;

	jitrun_note_empty(p);
	if (!jitrun_put_images(p, &err) ||
	    (!p->ids &&
	     jit_model_tokenize(r->model, p->text, p->n, 1, opt.special, &p->ids, &p->n_ids, &err) != JIT_OK))
		return jitrun_fail(&err);
	jitrun_begin_once(r->model, p);
	if (p->n_ids == 0) {
		fprintf(stderr,
		        "jitrun: the prompt is empty and this model has no beginning-of-text token to start from.\n");
		return 1;
	}
	if (!prompt_fits(p, context_of(r->session), &err))
		return jitrun_fail(&err);
	r->n_prompt = p->n_ids;
	think_begin(&r->think, p->text, p->text ? p->n : 0);
	if (opt.echo && !opt.json && !opt.print_ids && !jitrun_echo(r, p, &err))
		return jitrun_fail(&err);
	status = opt.image.n ? jitrun_feed_images(r, &err) : feed_rest(r, p, &err);
	if (status == JIT_OK && !jitrun_cache_end(r, false, &err))
		status = err.code;
	if (status == JIT_OK && !interrupted) {
		jitrun_tell_context(r, opt.verbose);
		status = jitrun_generate(r, &err);
	}
	if (status == JIT_OK && !jitrun_cache_end(r, true, &err))
		status = err.code;
	if (interrupted && r->n_prompt > jit_session_length(r->session))
		r->n_prompt = jit_session_length(r->session);
	if (!opt.json && (opt.print_ids || isatty(STDOUT_FILENO) || opt.echo))
		putchar('\n');
	if (status != JIT_OK)
		return jitrun_fail(&err);
	if ((opt.json && jitrun_print_json(r) != 0) || !output_ok())
		return 1;
	if (!opt.quiet)
		jitrun_print_summary(r, opt.verbose);
	int rc = jitrun_report(r);
	return rc ? rc : interrupted ? EXIT_INTERRUPTED : 0;
}

/* Without a prompt, a person at a terminal wants to talk. */
static bool wants_chat(void)
{
	bool prompt = opt.prompt || opt.file || opt.prompt_ids || opt.perplexity;

	return opt.chat || opt.single_turn || opt.system || (!prompt && !opt.no_chat && isatty(STDIN_FILENO));
}

static int check_chat(void)
{
	if (opt.file || opt.prompt_ids || opt.perplexity || opt.json || opt.print_ids || opt.no_chat)
		return jitrun_usage(
			"a conversation goes without --file, --prompt-ids, --perplexity, --json, --print-ids "
			"and --no-chat");
	return 0;
}

static int run_chat(struct run *r)
{
	if (interrupted)
		return EXIT_INTERRUPTED;
	jitrun_busy(false);
	r->context = context_of(r->session);
	jit_error err = { 0 };
	opt.prompt_cache_all = true;
	if (!jitrun_cache_begin(r, &err))
		return jitrun_fail(&err);
	jitrun_tell_context(r, true);
	int rc = jitrun_converse(r);
	if (rc == 0 && !jitrun_cache_end(r, true, &err))
		return jitrun_fail(&err);
	return rc || !output_ok() ? 1 : jitrun_report(r);
}

/* What was collected of the whole windows that the text has. */
static bool write_imatrix(struct collect *c, const struct perplexity *x, struct error *err)
{
	const char *slash = strrchr(opt.perplexity, '/');

	return collect_write(c, opt.imatrix_out, slash ? slash + 1 : opt.perplexity, (uint32_t)x->windows,
	                     (uint32_t)opt.context, err);
}

static int run_perplexity(struct run *r, const struct prompt *p)
{
	struct perplexity x = { 0 };
	struct error e = { 0 };
	struct collect *c = opt.imatrix_out ? session_collect(r->session, &e) : NULL;
	struct progress bar;
	jit_error err = { 0 };

	if (opt.imatrix_out && !c)
		return jitrun_fail_with(&e);
	progress_begin(&bar, "scored", "tokens", !opt.quiet);
	int status = perplexity_measure(r->model, r->session, p->text, p->n, opt.special, (size_t)opt.context,
	                                &interrupted, &bar, &x, &err);
	bool ok = status == JIT_OK || (interrupted && err.code == JIT_ERROR_CANCELLED);
	if (ok && c && !interrupted)
		write_imatrix(c, &x, &e);
	collect_close(c);
	if (!ok || e.code)
		return ok ? jitrun_fail_with(&e) : jitrun_fail(&err);
	if (opt.json && jitrun_print_perplexity(&x) != 0)
		return 1;
	if (!opt.json)
		printf("perplexity %.4f\n", x.perplexity);
	if (!opt.quiet)
		fprintf(stderr, "%zu of %zu tokens scored, in %zu windows of %ld\n", x.scored, x.tokens, x.windows,
		        opt.context);
	int rc = jitrun_report(r);
	return rc ? rc : interrupted ? EXIT_INTERRUPTED : 0;
}

static int dump_objects(void)
{
	const jit_objects_options o = jitrun_objects_options();
	jit_objects made = JIT_OBJECTS();
	jit_error err = { 0 };
	char programs[48] = "";

	if (!opt.target)
		return jitrun_usage("which card are the code objects of --dump-objects for? Give --target");
	if (jit_write_objects(opt.model, &o, &made, &err) != JIT_OK)
		return jitrun_fail(&err);
	if (made.programs)
		snprintf(programs, sizeof programs, " and %zu programs", made.programs);
	if (!opt.quiet)
		fprintf(stderr, "%zu kernels%s for %s in %s, %.1f KiB\n", made.kernels, programs, opt.target,
		        opt.dump_objects, (double)made.bytes / 1024);
	return 0;
}

static int list_devices(void)
{
	size_t n = jit_device_count();
	char line[sizeof(jit_device_info) + 64];
	jit_error err = { 0 };

	for (size_t i = 0; i < n; i++) {
		jit_device_info d = JIT_DEVICE_INFO();
		if (jit_device_get_info(i, &d, &err) != JIT_OK)
			return jitrun_fail(&err);
		snprintf(line, sizeof line, "%-12s %s%s%s", d.name, d.about, *d.why_not ? "; cannot be used: " : "",
		         d.why_not);
		output_line(stdout, line, 13);
	}
	for (size_t i = 0; i < 2; i++) {
		const char *driver = i ? "cuda" : "amd";
		struct error why_not = { 0 };
		if (doctor_no_cards(driver, &why_not))
			output_lines(stdout, 13, "%-12s no card: %s", driver, why_not.text);
	}
	return 0;
}

/* A folder of a command's name, such as one of sources, is a model only with a configuration in it. */
static bool is_model(const char *name)
{
	struct stat st;
	char config[64];

	snprintf(config, sizeof config, "%.40s/config.json", name);
	return stat(name, &st) == 0 && (!S_ISDIR(st.st_mode) || access(config, F_OK) == 0);
}

/* A word is a command unless there is a model of that name. */
static bool run_command(int argc, char **argv, int *status)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = { { "info", jitrun_info },     { "list", jitrun_list }, { "ps", jitrun_ps },
		         { "doctor", jitrun_doctor }, { "pull", jitrun_pull }, { "rm", jitrun_remove } };

	for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
		if (strcmp(argv[1], commands[i].name) == 0 && !is_model(argv[1])) {
			*status = commands[i].run(argc - 1, argv + 1);
			return true;
		}
	return false;
}

static int fail_to_write(const char *path, const char *why)
{
	jit_error e = { .code = JIT_ERROR_IO };

	snprintf(e.message, sizeof e.message, "%.400s: cannot be written: %s", path, why);
	return jitrun_fail(&e);
}

/* What will be written at the end can be: nobody shall compute for nothing. */
static int check_files(void)
{
	struct error e = { 0 };
	const char *why;

	if (!jitrun_cache_check(&e))
		return jitrun_fail_with(&e);
	return !opt.trace || output_can_write(opt.trace, &why) ? 0 : fail_to_write(opt.trace, why);
}

static int open_failed(const jit_error *err)
{
	if (!interrupted) {
		const int rc = jitrun_fail_to_open(opt.model, err);
		if (rc && err->code != JIT_ERROR_MEMORY && err->code != JIT_ERROR_IO && err->code != JIT_ERROR_FORMAT)
			jitrun_hint();
		return rc;
	}
	fprintf(stderr, "jitrun: interrupted while loading.\n");
	return EXIT_INTERRUPTED;
}

static void run_free(struct run *r)
{
	free(r->text);
	free(r->reasoning);
	free(r->template_text);
	think_end(&r->think);
	session_limits_close(r->limits);
	json_decref(r->logprobs);
}

static int run(int argc, char **argv)
{
	struct run r = { .terminal = isatty(STDOUT_FILENO) != 0 };
	struct prompt p = { 0 };
	jit_error err = { 0 };

	wrap_begin(&r.wrap, stdout, r.terminal);
	allocator_begin();
	system_file_limit_is_error();
	system_lost_pages_are_error("jitrun");
	int rc;
	if (run_command(argc, argv, &rc) || !jitrun_parse_options(argc, argv, &rc))
		return rc;
	if (opt.devices)
		return list_devices();
	if (!opt.model)
		return jitrun_usage("which model? Give a .gguf or .safetensors file or a model directory");
	if (jitrun_check_grammar() || jitrun_check_images(wants_chat()))
		return 2;
	if (opt.imatrix_out && !opt.perplexity)
		return jitrun_usage("--imatrix-out goes with --perplexity");
	if (opt.dump_objects)
		return dump_objects();
	const bool chat = wants_chat();
	if (!opt.system)
		opt.system = jitrun_preset.system;
	rc = chat ? check_chat() : jitrun_get_prompt(&p);
	r.start = jitrun_seconds(); /* now that it is known what is asked for, however long that took to type */
	rc = rc == 0 && chat ? jitrun_check_template(&r.template_text) : rc;
	rc = rc == 0 ? check_files() : rc;
	if (opt.n == N_DEFAULT)
		opt.n = chat ? -1 : 256;
	if (rc == 0 && !listen(&err))
		rc = jitrun_fail(&err);
	if (rc == 0) {
		r.model = open_model(&err);
		if (r.model)
			jitrun_find_marks(&r);
		r.session = r.model ? open_session(r.model, chat, &err) : NULL;
		if (r.session)
			jitrun_warn(&r);
		rc = r.session ? (chat             ? run_chat(&r)
		                  : opt.perplexity ? run_perplexity(&r, &p)
		                                   : run_session(&r, &p))
		               : open_failed(&err);
		if (r.session && (rc == 0 || rc == EXIT_INTERRUPTED) && jit_model_written(r.model, &err) != JIT_OK)
			rc = jitrun_fail(&err);
	}
	jit_session_close(r.session);
	jitrun_close_images();
	jitrun_close_adapters();
	jitrun_close_models(r.model);
	run_free(&r);
	prompt_free(&p);
	return rc;
}

int main(int argc, char **argv)
{
	output_begin();
	line_editor_locale();
	return output_end("jitrun", run(argc, argv), 1);
}
