/* bench/serve_main.c - how many tokens a second jitserve gives so many clients, and how long each waits for them.
 *
 * build/bench/serve MODEL [--beside llama-server] [--csv FILE] [--png FILE]. Servers are asked the same in turns.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench/serve_process.h"
#include "bench/serve_report.h"
#include "programs/common/model_names.h"
#include "programs/common/options.h"
#include "programs/common/output.h"
#include "include/jitrun.h"

enum { CONCURRENCIES = 16, ROUNDS_MAX = 99, CLIENTS_MAX = 256 };

static struct {
	const char *model[1], *server, *server_arguments, *beside, *beside_arguments, *clients, *csv, *png;
	long words, tokens, requests, rounds, threads, context;
	struct option_about about;
} opt = { .server = "./jitserve",
	  .clients = "1,2,4,8,16",
	  .words = 128,
	  .tokens = 64,
	  .requests = 2,
	  .rounds = 3,
	  .context = 2048 };

static const struct option_row rows[] = {
	{ .name = "server",
	  .kind = OPTION_TEXT,
	  .value = "PROGRAM",
	  .help = "jitserve (./jitserve)",
	  .target = &opt.server },
	{ .name = "server-arguments",
	  .kind = OPTION_TEXT,
	  .value = "TEXT",
	  .help = "more options for it, spaces between",
	  .target = &opt.server_arguments },
	{ .name = "beside",
	  .kind = OPTION_TEXT,
	  .value = "PROGRAM",
	  .help = "llama.cpp's llama-server, which is measured in turns with jitserve on the same file",
	  .target = &opt.beside },
	{ .name = "beside-arguments",
	  .kind = OPTION_TEXT,
	  .value = "TEXT",
	  .help = "more options for it",
	  .target = &opt.beside_arguments },
	{ .name = "clients",
	  .kind = OPTION_TEXT,
	  .value = "LIST",
	  .help = "numbers of clients that ask at the same time, with ',' between (1,2,4,8,16)",
	  .target = &opt.clients },
	{ .name = "words",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "words of a prompt; no two prompts begin alike (128)",
	  .low = 1,
	  .high = 100000,
	  .target = &opt.words },
	{ .name = "tokens",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens of an answer (64)",
	  .low = 1,
	  .high = 10000,
	  .target = &opt.tokens },
	{ .name = "requests",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "requests of each client, one after the other (2)",
	  .low = 1,
	  .high = 10000,
	  .target = &opt.requests },
	{ .name = "rounds",
	  .letter = 'r',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "measurements, of which the one with the median rate is printed (3)",
	  .low = 1,
	  .high = ROUNDS_MAX,
	  .target = &opt.rounds },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads of each server; 0: as it likes (0)",
	  .high = 1024,
	  .target = &opt.threads },
	{ .name = "context",
	  .letter = 'c',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens that each answer's context has room for (2048)",
	  .low = 1,
	  .high = 1 << 24,
	  .target = &opt.context },
	{ .name = "csv", .kind = OPTION_TEXT, .value = "FILE", .help = "also write CSV to FILE", .target = &opt.csv },
	{ .name = "png",
	  .kind = OPTION_TEXT,
	  .value = "FILE",
	  .help = "also draw a picture into FILE, with gnuplot",
	  .target = &opt.png },
	OPTION_ABOUT(opt.about),
};

static struct option_program program = {
	.name = "serve",
	.usage = "MODEL [options]",
	.purpose = "measure jitserve by the number of its clients",
	.row = rows,
	.n_rows = sizeof rows / sizeof *rows,
	.operand = opt.model,
	.operand_name = "MODEL",
	.max_operands = 1
};

struct server {
	const char *name;
	struct serve_process process;
	uint64_t prompts; /* asked so far */
};

static long concurrency[CONCURRENCIES];
static int n_concurrency;
static struct server server[2];
static int n_servers = 1;
static struct serve_row results[2 * CONCURRENCIES];

static bool read_clients(struct error *err)
{
	const char *at = opt.clients;
	char *end = NULL;

	do {
		long n = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || n < 1 || n > CLIENTS_MAX || n_concurrency == CONCURRENCIES)
			return error_set(err, ERROR_ARGUMENT,
			                 "--clients %s: expected at most %d numbers from 1 to %d, with ',' between",
			                 opt.clients, CONCURRENCIES, CLIENTS_MAX);
		concurrency[n_concurrency++] = n;
		at = end + 1;
	} while (*end);
	return true;
}

static bool start(struct error *err)
{
	long parallel = 1;

	for (int i = 0; i < n_concurrency; i++)
		parallel = concurrency[i] > parallel ? concurrency[i] : parallel;
	n_servers = opt.beside ? 2 : 1;
	for (int i = 0; i < n_servers; i++) {
		const struct serve_command c = {
			.program = i ? opt.beside : opt.server,
			.model = opt.model[0],
			.arguments = i ? opt.beside_arguments : opt.server_arguments,
			.llama = i == 1,
			.context = opt.context,
			.parallel = parallel,
			.threads = opt.threads,
		};
		const char *slash = strrchr(c.program, '/');
		server[i].name = slash ? slash + 1 : c.program;
		if (!serve_process_start(&server[i].process, &c, err))
			return false;
	}
	return true;
}

static bool measure(struct server *s, long clients, long requests, struct serve_times *out, struct error *err)
{
	const struct serve_work w = { .port = s->process.port,
		                      .concurrency = clients,
		                      .requests = requests,
		                      .words = opt.words,
		                      .tokens = opt.tokens,
		                      .first = s->prompts };
	struct error why = { 0 };

	s->prompts += (uint64_t)(clients * requests);
	return serve_measure(&w, out, &why) || error_set(err, why.code, "%s: %s", s->name, why.text);
}

static int by_rate(const void *a, const void *b)
{
	double x = ((const struct serve_times *)a)->rate, y = ((const struct serve_times *)b)->rate;

	return (x > y) - (x < y);
}

/* All servers with so many clients, in turns. */
static bool measure_row(int which, struct error *err)
{
	static struct serve_times times[2][ROUNDS_MAX];
	struct serve_times warm;

	for (int s = 0; s < n_servers; s++)
		if (!measure(&server[s], concurrency[which], 1, &warm, err))
			return false;
	for (long i = 0; i < opt.rounds; i++)
		for (int s = 0; s < n_servers; s++)
			if (!measure(&server[s], concurrency[which], opt.requests, &times[s][i], err))
				return false;
	for (int s = 0; s < n_servers; s++) {
		qsort(times[s], (size_t)opt.rounds, sizeof *times[s], by_rate);
		results[which * n_servers + s] = (struct serve_row){
			.server = server[s].name,
			.clients = concurrency[which],
			.rounds = opt.rounds,
			.times = times[s][opt.rounds / 2],
			.min = times[s][0].rate,
			.max = times[s][opt.rounds - 1].rate
		};
	}
	return true;
}

static bool report(struct error *err)
{
	size_t n = (size_t)(n_concurrency * n_servers);
	FILE *f = opt.csv ? fopen(opt.csv, "we") : NULL;

	serve_print_table(results, n, stdout);
	if (opt.csv && !f)
		return error_set(err, ERROR_IO, "%s: cannot be written: %s", opt.csv, strerror(errno));
	if (f)
		serve_print_csv(results, n, f);
	if (f && fclose(f))
		return error_set(err, ERROR_IO, "%s: cannot be written: %s", opt.csv, strerror(errno));
	return !opt.png || serve_draw(results, n, opt.png, err);
}

static int run(int argc, char **argv)
{
	struct error err = { 0 };
	int status = 2;

	if (!options_parse(&program, argc, argv) || options_about(&program, &opt.about, jit_version(), &status))
		return status;
	signal(SIGPIPE, SIG_IGN);
	bool ok = opt.model[0] ? model_path(&opt.model[0], &err)
	                       : error_set(&err, ERROR_ARGUMENT, "which model? Give a GGUF file");
	ok = ok && read_clients(&err) && start(&err);
	for (int i = 0; ok && i < n_concurrency; i++)
		ok = measure_row(i, &err);
	ok = ok && report(&err);
	for (int i = 0; i < n_servers; i++)
		serve_process_stop(&server[i].process);
	if (!ok)
		fprintf(stderr, "serve: %s.\n", err.text);
	return ok ? 0 : err.code == ERROR_ARGUMENT ? 2 : 1;
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("serve", run(argc, argv), 1);
}
