/* programs/jiteml/jiteml_picture.c - an expression as a picture: a script for gnuplot that draws its tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jiteml/jiteml.h"

struct drawing {
	const struct expression *e;
	const char *const *names;
	FILE *lines, *labels;
	unsigned leaves, depth;
};

/* Leaves stand side by side, and each inner node in the middle above its operands. Returns where it is. */
static double draw(struct drawing *d, uint32_t at, unsigned depth)
{
	const struct node *n = &d->e->node[at];
	const unsigned operands = operation_form[n->op].operands;
	double x, a, b;

	d->depth = depth > d->depth ? depth : d->depth;
	if (!operands) {
		x = d->leaves++;
	} else {
		a = draw(d, n->a, depth + 1);
		b = operands == 2 ? draw(d, n->b, depth + 1) : a;
		x = (a + b) / 2;
		fprintf(d->lines, "%g %g\n%g %g\n\n", x, -(double)depth, a, -(double)depth - 1);
		if (operands == 2)
			fprintf(d->lines, "%g %g\n%g %g\n\n", x, -(double)depth, b, -(double)depth - 1);
	}
	fprintf(d->labels, "%g %g \"", x, -(double)depth);
	if (n->op == OP_NUMBER)
		fprintf(d->labels, "%.6g\"\n", n->number);
	else
		fprintf(d->labels, "%s\"\n", n->op == OP_VARIABLE ? d->names[n->a] : operation_form[n->op].text);
	return x;
}

bool jiteml_draw(const struct expression *e, const char *const *names, FILE *out)
{
	struct drawing d = { .e = e, .names = names };
	char *lines = NULL, *labels = NULL;
	size_t n_lines, n_labels;
	bool fine;

	d.lines = open_memstream(&lines, &n_lines);
	d.labels = open_memstream(&labels, &n_labels);
	fine = d.lines && d.labels;
	if (fine)
		draw(&d, expression_root(e), 0);
	fine = !(d.lines && fclose(d.lines)) && !(d.labels && fclose(d.labels)) && fine;
	if (fine)
		fprintf(out,
		        "# gnuplot -e \"set terminal svg; set output 'tree.svg'\" THIS\n"
		        "$lines << END\n%sEND\n$labels << END\n%sEND\n"
		        "unset border; unset tics; unset key\n"
		        "set xrange [-1:%u]; set yrange [%g:1]\n"
		        "plot $lines with lines lc rgb '#808080', $labels using 1:2 with points pt 7 ps 3 lc rgb "
		        "'white', "
		        "$labels using 1:2:3 with labels\n",
		        lines, labels, d.leaves, -(double)d.depth - 1);
	free(lines);
	free(labels);
	return fine;
}
