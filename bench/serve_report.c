/* bench/serve_report.c - what bench/serve measured: a table in markdown, CSV, and a picture drawn by gnuplot. */
#include "bench/serve_report.h"

#include <string.h>

void serve_print_table(const struct serve_row *row, size_t n, FILE *out)
{
	fprintf(out,
	        "| clients | server | tokens/s | least to most | first token p50, p99 | between tokens p50, p99 |\n"
	        "|---:|---|---:|---|---|---|\n");
	for (size_t i = 0; i < n; i++) {
		const struct serve_row *r = &row[i];
		const struct serve_times *t = &r->times;
		char beside[32] = "";
		if (i && row[i - 1].clients == r->clients && t->rate > 0)
			snprintf(beside, sizeof beside, " (1/%.2f)", row[i - 1].times.rate / t->rate);
		fprintf(out, "| %ld | %s | %.1f%s | %.1f to %.1f | %.0f, %.0f ms | %.1f, %.1f ms |\n", r->clients,
		        r->server, t->rate, beside, r->min, r->max, 1e3 * t->first50, 1e3 * t->first99, 1e3 * t->next50,
		        1e3 * t->next99);
	}
}

void serve_print_csv(const struct serve_row *row, size_t n, FILE *out)
{
	fprintf(out,
	        "clients,server,rounds,tokens_per_s,least,most,first_p50_ms,first_p99_ms,next_p50_ms,next_p99_ms\n");
	for (size_t i = 0; i < n; i++) {
		const struct serve_times *t = &row[i].times;
		fprintf(out, "%ld,%s,%ld,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", row[i].clients, row[i].server,
		        row[i].rounds, t->rate, row[i].min, row[i].max, 1e3 * t->first50, 1e3 * t->first99,
		        1e3 * t->next50, 1e3 * t->next99);
	}
}

/* The points of one server, as gnuplot reads them. */
static void put_points(FILE *f, const struct serve_row *row, size_t n, size_t which, size_t servers)
{
	fprintf(f, "$points%zu << EOD\n", which);
	for (size_t i = which; i < n; i += servers) {
		const struct serve_times *t = &row[i].times;
		fprintf(f, "%ld %.3f %.3f %.3f %.3f %.3f\n", row[i].clients, t->rate, 1e3 * t->first50,
		        1e3 * t->first99, 1e3 * t->next50, 1e3 * t->next99);
	}
	fprintf(f, "EOD\n");
}

static void put_plot(FILE *f, const struct serve_row *row, size_t servers, const char *title, int column, int second)
{
	fprintf(f, "set title '%s'\nplot ", title);
	for (size_t s = 0; s < servers; s++) {
		const char *between = s ? ", " : "";
		fprintf(f, "%s$points%zu using 1:%d with linespoints lc %zu pt 7 title '%s%s'", between, s, column,
		        s + 1, row[s].server, second ? " p50" : "");
		if (second)
			fprintf(f, ", $points%zu using 1:%d with linespoints lc %zu dt 2 pt 6 title '%s p99'", s,
			        second, s + 1, row[s].server);
	}
	fprintf(f, "\n");
}

bool serve_draw(const struct serve_row *row, size_t n, const char *path, struct error *err)
{
	size_t servers = n > 1 && row[1].clients == row[0].clients ? 2 : 1;

	if (strpbrk(path, "'\\\n"))
		return error_set(err, ERROR_ARGUMENT, "%s: a picture's name may have no quotation mark in it", path);
	FILE *f = popen("gnuplot", "w");
	if (!f)
		return error_set(err, ERROR_IO, "gnuplot cannot be started");
	for (size_t s = 0; s < servers; s++)
		put_points(f, row, n, s, servers);
	fprintf(f,
	        "set terminal png size 1500,480\nset output '%s'\nset multiplot layout 1,3\n"
	        "set logscale x 2\nset xlabel 'clients'\nset key bottom right noenhanced\nset grid\n"
	        "set yrange [0:]\n",
	        path);
	put_plot(f, row, servers, "tokens a second", 2, 0);
	fprintf(f, "set key top left\n");
	put_plot(f, row, servers, "ms to the first token", 3, 4);
	put_plot(f, row, servers, "ms between tokens", 5, 6);
	fprintf(f, "unset multiplot\n");
	return pclose(f) == 0 || error_set(err, ERROR_IO, "%s: not drawn: gnuplot is not there, or failed", path);
}
