/* programs/jittrain/jittrain_report.c - what a person and a program are told of a training. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_write.h"
#include "programs/common/output.h"
#include "programs/jittrain/jittrain.h"
#include "train/file.h"

extern char **environ;

/* ---- the curve */

bool curve_add(struct curve *c, struct curve_point p)
{
	if (c->n == c->room) {
		struct curve_point *more = realloc(c->point, (c->room * 2 + 64) * sizeof *more);
		if (!more)
			return false;
		c->point = more;
		c->room = c->room * 2 + 64;
	}
	c->point[c->n++] = p;
	return true;
}

bool curve_write(const struct curve *c, const char *folder, struct error *err)
{
	char path[4096];
	struct train_file f;

	if (!train_path(path, folder, "losses.csv", err) || !train_file_open(&f, path, err))
		return false;
	fprintf(f.f, "step,tokens,loss,norm,rate,evaluated\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct curve_point *p = &c->point[i];
		fprintf(f.f, "%" PRIu64 ",%" PRIu64 ",%.9g,%.9g,%.9g,", p->step, p->tokens, p->loss, p->norm, p->rate);
		if (p->evaluated >= 0)
			fprintf(f.f, "%.9g", p->evaluated);
		fprintf(f.f, "\n");
	}
	return train_file_close(&f, true, err);
}

void curve_read(struct curve *c, const char *folder, uint64_t steps)
{
	char path[4096], line[512];
	FILE *f = train_path(path, folder, "losses.csv", NULL) ? fopen(path, "r") : NULL;

	while (f && fgets(line, sizeof line, f)) {
		struct curve_point p = { .evaluated = -1 };
		if (sscanf(line, "%" SCNu64 ",%" SCNu64 ",%lf,%lf,%lf,%lf", &p.step, &p.tokens, &p.loss, &p.norm,
		           &p.rate, &p.evaluated) >= 5 &&
		    p.step <= steps)
			curve_add(c, p);
	}
	if (f)
		fclose(f);
}

void curve_plot(const char *folder)
{
	static char script[] =
		"set terminal pngcairo size 900,560; set datafile separator ','; set output 'losses.png'; "
		"set xlabel 'step'; set ylabel 'loss'; set grid; set key top right; "
		"plot 'losses.csv' using 1:3 with lines title 'loss', "
		"'losses.csv' using 1:6 with linespoints title 'held back'";
	char *const argv[] = { (char[]){ "gnuplot" }, (char[]){ "-e" }, script, NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return;
	if (posix_spawn_file_actions_addchdir_np(&actions, folder) == 0 &&
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
	    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
	    posix_spawnp(&child, "gnuplot", &actions, NULL, argv, environ) == 0)
		waitpid(child, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
}

/* ---- lines */

static void print_json(json_t *o)
{
	char *text = json_write(o);

	if (text)
		puts(text);
	fflush(stdout);
	free(text);
}

static json_t *event(const char *name)
{
	json_t *o = json_object();

	json_put(o, "event", json_string(name));
	return o;
}

void report_begin(const struct run_facts *f)
{
	if (train.json) {
		json_t *o = event("begin");
		json_put(o, "rows", json_integer((json_int_t)f->rows));
		json_put(o, "texts", json_integer((json_int_t)f->documents));
		json_put(o, "skipped", json_integer((json_int_t)f->skipped));
		json_put(o, "tokens", json_integer((json_int_t)f->tokens));
		json_put(o, "counted", json_integer((json_int_t)f->counted));
		json_put(o, "steps", json_integer((json_int_t)f->steps));
		json_put(o, "step", json_integer((json_int_t)f->first));
		json_put(o, "device", json_string(f->device ? f->device : "cpu"));
		json_put(o, "threads", json_integer(f->threads));
		print_json(o);
	}
	if (train.quiet)
		return;
	fprintf(stderr, "%zu texts in %zu rows, %" PRIu64 " tokens of which %" PRIu64 " count; %" PRIu64 " steps\n",
	        f->documents, f->rows, f->tokens, f->counted, f->steps);
	if (f->skipped)
		fprintf(stderr, "%zu texts were left out: they are too long, or nothing in them counts\n", f->skipped);
	if (f->first)
		fprintf(stderr, "going on behind step %" PRIu64 "\n", f->first);
}

static void print_step(const struct run_facts *f, const jit_train_report *r)
{
	static double took, tokens; /* of this run's steps */
	const bool terminal = isatty(STDERR_FILENO), last = r->step == f->steps;
	char left[64] = "";

	took += r->seconds;
	tokens += (double)r->tokens;
	const double each = took / (double)(r->step - f->first), rest = each * (double)(f->steps - r->step);
	if (!terminal && !last && r->step % 10 && r->step != 1)
		return;
	if (!last)
		snprintf(left, sizeof left, rest >= 100 ? ", %.0f min left" : ", %.0f s left",
		         rest >= 100 ? rest / 60 : rest);
	fprintf(stderr, "%sstep %" PRIu64 " of %" PRIu64 ": loss %.4f, norm %.3g, rate %.2e, %.0f tokens/s%s%s",
	        terminal ? "\r\033[K" : "", r->step, f->steps, r->loss, r->norm, r->rate, tokens / took, left,
	        terminal && !last ? "" : "\n");
}

void report_step(const struct run_facts *f, const jit_train_report *r)
{
	if (train.json) {
		json_t *o = event("step");
		json_put(o, "step", json_integer((json_int_t)r->step));
		json_put(o, "loss", output_real(r->loss));
		json_put(o, "norm", output_real(r->norm));
		json_put(o, "rate", output_real(r->rate));
		json_put(o, "rows", json_integer((json_int_t)r->rows));
		json_put(o, "tokens", json_integer((json_int_t)r->tokens));
		json_put(o, "counted", json_integer((json_int_t)r->counted));
		json_put(o, "seconds", output_real(r->seconds));
		json_put(o, "left", output_real(r->seconds * (double)(f->steps - r->step)));
		print_json(o);
	}
	if (!train.quiet)
		print_step(f, r);
}

void report_evaluation(const char *what, const jit_train_report *r)
{
	if (train.json) {
		json_t *o = event("evaluation");
		json_put(o, "when", json_string(what));
		json_put(o, "step", json_integer((json_int_t)r->step));
		json_put(o, "loss", output_real(r->loss));
		json_put(o, "perplexity", output_real(exp(r->loss)));
		json_put(o, "counted", json_integer((json_int_t)r->counted));
		print_json(o);
	}
	if (!train.quiet)
		fprintf(stderr, "%s%s, step %" PRIu64 ": perplexity %.3f (loss %.4f) over %" PRIu64 " tokens\n",
		        isatty(STDERR_FILENO) ? "\r\033[K" : "", what, r->step, exp(r->loss), r->loss, r->counted);
}

void report_saved(const char *path)
{
	if (train.json) {
		json_t *o = event("saved");
		json_put(o, "path", output_string(path));
		print_json(o);
	}
	if (!train.quiet)
		fprintf(stderr, "saved: %s\n", path);
}

void report_new(const char *path, uint64_t weights)
{
	if (train.json) {
		json_t *o = event("new");
		json_put(o, "path", output_string(path));
		json_put(o, "weights", json_integer((json_int_t)weights));
		print_json(o);
	}
	if (!train.quiet)
		fprintf(stderr, "made: %s, %" PRIu64 " weights\n", path, weights);
}
