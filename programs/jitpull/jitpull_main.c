/* programs/jitpull/jitpull_main.c - the jitpull program: fetches a model from Hugging Face's hub.
 *
 * The one program that uses the network as a client; what it does is in pull/. Standard output gets the model's path,
 * or with --json a line for each step; everything said to a person goes to standard error. Exit status: 0 done, 1
 * something failed, 2 a wrong command line, 130 interrupted.
 */
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "programs/common/options.h"
#include "programs/common/output.h"
#include "programs/common/progress.h"
#include "pull/print.h"
#include "pull/pull.h"
#include "runtime/host/system.h"
#include "include/jitrun.h"

enum { EXIT_FAILED = 1, EXIT_INTERRUPTED = 130 };

static volatile sig_atomic_t interrupted;
static struct {
	const char *name[1], *file, *cache;
	bool dry_run, json, quiet, or_cached, no_mmproj, print;
	long tries, wait_ms, print_kib;
	struct option_about about;
} arg = { .tries = 6, .wait_ms = 1000, .print_kib = 65536 };

static const struct option_row rows[] = {
	{ .name = "file",
	  .letter = 'f',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "that file of the repository, with its other parts",
	  .target = &arg.file },
	{ .name = "no-mmproj",
	  .kind = OPTION_FLAG,
	  .help = "not the file for pictures beside a GGUF model",
	  .target = &arg.no_mmproj },
	{ .name = "dry-run", .kind = OPTION_FLAG, .help = "say what would be fetched", .target = &arg.dry_run },
	{ .name = "or-cached",
	  .kind = OPTION_FLAG,
	  .help = "use what is in the cache where the hub cannot be reached",
	  .target = &arg.or_cached },
	{ .name = "cache",
	  .kind = OPTION_TEXT,
	  .value = "DIR",
	  .help = "the folder of all models (as HF_HUB_CACHE, HF_HOME and XDG_CACHE_HOME say, else "
	          "~/.cache/huggingface/hub)",
	  .target = &arg.cache },
	{ .name = "tries",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "how often a request is tried before a byte comes (6)",
	  .low = 1,
	  .high = 1000,
	  .target = &arg.tries },
	{ .name = "retry-wait",
	  .kind = OPTION_INT,
	  .value = "MS",
	  .help = "time before the second try, which doubles with each, unless the hub names one (1000)",
	  .high = 600000,
	  .target = &arg.wait_ms },
	{ .name = "print",
	  .kind = OPTION_FLAG,
	  .help = "NAME is the http or https address of a file, which goes to standard output; it may lead on within "
	          "its host. This is what jitserve --image-hosts runs",
	  .target = &arg.print },
	{ .name = "print-kib",
	  .kind = OPTION_INT,
	  .value = "KIB",
	  .help = "how large that file may be (65536)",
	  .low = 1,
	  .high = 1 << 30,
	  .target = &arg.print_kib },
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .help = "print JSON lines: status, and of each file its digest, total and completed bytes; error where it "
	          "fails",
	  .target = &arg.json },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "say nothing but what fails, and the path at the end",
	  .target = &arg.quiet },
	OPTION_ABOUT(arg.about),
};

static struct option_program program = {
	.name = "jitpull",
	.usage = "NAME [options]",
	.purpose = "fetch a model from Hugging Face's hub",
	.description =
		"NAME is OWNER/NAME, with hf.co/ or https://huggingface.co/ before it or not. :QUANT behind it says "
		"which GGUF file, such as :Q8_0; without, it is Q4_K_M, else Q8_0, else the first, which is what "
		"llama.cpp takes. All parts of a model that is in several files are fetched, and the file for pictures "
		"(mmproj) beside it. A repository without GGUF files gives its safetensors files, config.json and "
		"tokenizer. @REVISION is a branch, a tag or a commit."
		"\n\n"
		"Files go into the cache that Hugging Face's libraries and llama.cpp use, and each is compared with "
		"the "
		"hub's hash before it gets its name. What was interrupted goes on where it stood when the same command "
		"is given again. jitrun pull and the option -hf of jitrun and jitserve run this program."
		"\n\n"
		"The model's path is printed on standard output.",
	.examples = "jitpull hf.co/OWNER/NAME-GGUF:Q8_0\njitpull OWNER/NAME --dry-run\n"
		    "HF_TOKEN=hf_... jitpull OWNER/GATED@refs/pr/1",
	.exit_status = ".TP\n0\nDone.\n.TP\n1\nSomething failed; one sentence says what.\n.TP\n2\nThe command line is "
		       "wrong.\n.TP\n130\nInterrupted by Ctrl\\-C; the same command goes on from there.",
	.environment =
		".TP\n.B HF_TOKEN\nThe token for private and gated models; else it is read from \\fI$HF_TOKEN_PATH\\fR "
		"or \\fI$HF_HOME/token\\fR (\\fI~/.cache/huggingface/token\\fR). Only the hub is told it, and only "
		"over "
		"HTTPS.\n.TP\n.B HF_ENDPOINT\nThe address of another hub (https://huggingface.co).\n.TP\n.B "
		"HF_HUB_OFFLINE\n1: nothing is asked, and what is in the cache is used.\n.TP\n.B HF_HUB_CACHE, "
		"HF_HOME, "
		"XDG_CACHE_HOME\nWhere the cache is.\n.TP\n.B HTTPS_PROXY, ALL_PROXY, NO_PROXY\nThe proxy, as for "
		"curl.\n.TP\n.B CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE\nThe file of certificates that are "
		"believed, instead of the system's.",
	.files = ".TP\n.I ~/.cache/huggingface/hub\nThe models.",
	.see_also = ".BR jitrun (1),\n.BR jitserve (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.operand = arg.name,
	.operand_name = "NAME",
	.max_operands = 1,
	.quiet = &arg.quiet
};

static struct progress bar;
static const struct listing_file *shown; /* whose line is written */
static double shown_at;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_line(json_t *line)
{
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static void print_status(const char *status)
{
	if (arg.json)
		print_line(json_pack("{s:o}", "status", output_string(status)));
}

static void say(void *user, const char *sentence)
{
	char quoted[1000];

	progress_end(&bar);
	print_status(sentence);
	if (!arg.json && !arg.quiet)
		fprintf(stderr, "jitpull: %s.\n", error_quote(quoted, sizeof quoted, sentence, strlen(sentence)));
}

static void on_interrupt(int sig) { interrupted = 1; }

static void begin(void *user, const struct listing *l, const char *model)
{
	const struct pull *p = user;
	char quoted[300];
	int n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct listing_file *f = &l->file[i];
		if (!f->chosen)
			continue;
		n++;
		if (arg.dry_run && arg.json)
			print_line(json_pack("{s:s, s:o, s:I, s:b}", "status", "would fetch", "file",
			                     output_string(f->path), "total", (json_int_t)f->size, "here",
			                     cache_has_blob(&p->store, f)));
		else if (arg.dry_run)
			fprintf(stderr, "%12llu  %s%s\n", (unsigned long long)f->size,
			        error_quote(quoted, sizeof quoted, f->path, strlen(f->path)),
			        cache_has_blob(&p->store, f) ? " (is here)" : "");
	}
	if (!arg.json && !arg.quiet)
		fprintf(stderr, "%s/%s at %.12s: %d file%s, %.1f MB to fetch\n", p->reference.owner, p->reference.name,
		        l->commit, n, n == 1 ? "" : "s", (double)p->all / 1e6);
	progress_begin(&bar, "fetched", NULL, !arg.quiet && !arg.json);
	bar.rate = true;
}

static void print_amount(const struct listing_file *f, uint64_t done)
{
	char status[40], digest[ETAG_MAX + 16];

	snprintf(status, sizeof status, "pulling %.12s", f->etag);
	snprintf(digest, sizeof digest, "%s%s", strlen(f->etag) == HASH_HEX ? "sha256:" : "", f->etag);
	print_line(json_pack("{s:s, s:s, s:o, s:I, s:I}", "status", status, "digest", digest, "file",
	                     output_string(f->path), "total", (json_int_t)f->size, "completed", (json_int_t)done));
}

static void progress(void *user, const struct listing_file *f, uint64_t done, uint64_t all_done, uint64_t all)
{
	double now = arg.json ? seconds() : 0;

	if (!shown && !arg.json)
		bar.from = all_done;
	if (arg.json && (f != shown || done == f->size || now - shown_at > 0.2)) {
		print_amount(f, done);
		shown_at = now;
	}
	shown = f;
	progress_show(&bar, all_done, all);
}

static void checked(void *user, const struct listing_file *f) { print_status("verifying sha256 digest"); }

static int fail(const struct error *e)
{
	char quoted[1200];

	progress_end(&bar);
	if (arg.json) {
		print_line(json_pack("{s:o}", "error", output_string(e->text)));
		return interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
	}
	if (interrupted) {
		fprintf(stderr, "jitpull: interrupted; the same command goes on from here.\n");
		return EXIT_INTERRUPTED;
	}
	fprintf(stderr, "jitpull: %s.\n", error_quote(quoted, sizeof quoted, e->text, strlen(e->text)));
	return EXIT_FAILED;
}

static int print(void)
{
	char agent[100];
	struct error err = { 0 };

	snprintf(agent, sizeof agent, "jitpull/%s", jit_version());
	return pull_print(arg.name[0], (uint64_t)arg.print_kib << 10, stdout, agent, &interrupted, &err)
	               ? 0
	               : fail(&err);
}

static int run(void)
{
	char agent[100], *path = NULL;
	struct error err = { 0 };
	struct pull p = {
		.hub = { .tries = (int)arg.tries, .wait_ms = arg.wait_ms, .interrupted = &interrupted, .say = say },
		.events = { begin, progress, checked, NULL },
		.agent = agent,
		.cache = arg.cache,
		.file = arg.file,
		.dry_run = arg.dry_run,
		.offline = pull_is_offline(),
		.or_cached = arg.or_cached,
		.mmproj = !arg.no_mmproj
	};

	p.events.user = &p;
	snprintf(agent, sizeof agent, "jitpull/%s", jit_version());
	print_status("pulling manifest");
	bool ok = pull_model(&p, arg.name[0], &path, &err);
	progress_end(&bar);
	if (!ok)
		return fail(&err);
	if (arg.json)
		print_line(json_pack("{s:s, s:o}", "status", "success", "path", output_string(path)));
	else
		printf("%s\n", path);
	free(path);
	return 0;
}

int main(int argc, char **argv)
{
	int status = EXIT_USAGE;

	output_begin();
	system_file_limit_is_error();
	if (!options_parse(&program, argc, argv) || options_about(&program, &arg.about, jit_version(), &status))
		return output_end("jitpull", status, EXIT_FAILED);
	if (!arg.name[0]) {
		options_complain(&program, "which model? Give OWNER/NAME of huggingface.co");
		return output_end("jitpull", EXIT_USAGE, EXIT_FAILED);
	}
	const struct sigaction on_signal = { .sa_handler = on_interrupt };
	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
	return output_end("jitpull", arg.print ? print() : run(), EXIT_FAILED);
}
