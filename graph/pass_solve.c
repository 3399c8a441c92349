/* graph/pass_solve.c - solve as two loops of operations that have kernels: eliminations, and substitutions from the
 * last row up. Elements that solve.c leaves alone are computed, too, and not taken. */
#include <stdio.h>
#include <string.h>

#include "graph/elimination.h"
#include "graph/loop.h"
#include "graph/passes_state.h"
#include "graph/text.h"

/* m: a and b side by side. An iteration is a step of the elimination. */
static const char eliminate[] = GRAPH_ELIMINATION;

/* x: b, of which the rows from k + 1 on are solved; u: what the elimination made of a. */
static const char substitute[] =
	"size b\nsize n\nsize m\n"
	"input x %1$s[b,n,m]\ninput k i32[]\ninput u %1$s[b,n,n]\n"
	"rows = iota type=i32 shape=[b,n] axis=1\nkk = broadcast k shape=[b,n] axes=[]\n"
	"line = take u k axis=1\ncorner = take line k axis=1\n"
	"right = take x k axis=1\ncorners = broadcast corner shape=[b,m] axes=[0]\n"
	"solved = div right corners\n"
	"column = take u k axis=2\nminus = neg column\n"
	"by = broadcast minus shape=[b,n,m] axes=[0,1]\n"
	"with = broadcast solved shape=[b,n,m] axes=[0,2]\nless = fma by with x\n"
	"above = lt rows kk\nis_k = eq rows kk\n"
	"aboves = broadcast above shape=[b,n,m] axes=[0,1]\n"
	"here = broadcast is_k shape=[b,n,m] axes=[0,1]\n"
	"rest = select here with x\nnext = select aboves less rest\noutput next\n";

struct solving {
	struct copying *c;
	struct graph_size size[4]; /* b, n, m, w */
	int type;
};

/* A node of a text, of one operand or two. */
static tensor_value put(struct solving *s, const char *text, tensor_value x, tensor_value y)
{
	return x ? graph_text_node(s->c->to, text, (tensor_value[]){ x, y }, y ? 2 : 1, s->size, 4, s->c->err) : 0;
}

/* A loop over k, from 0 up or from n - 1 down. last: "m" or "w", the size that its body has beside b and n. */
static tensor_value put_loop(struct solving *s, const char *body, unsigned last, tensor_value carried,
                             tensor_value shared, bool reverse)
{
	struct loop l = { .carried = 1, .stacked = 1, .length = s->size[1].value, .reverse = reverse };
	const struct graph_size size[] = { s->size[0], s->size[1], s->size[last] };
	const tensor_value positions =
		graph_text_node(s->c->to, "iota type=i32 shape=[n] axis=0", NULL, 0, s->size, 4, s->c->err);
	char text[4000];
	tensor_value v = 0;

	snprintf(text, sizeof text, body, tensor_type_name(s->type));
	if (!carried || !positions || !graph_text_read(&l.body, "solve", text, strlen(text), size, 3, s->c->err))
		return 0;
	v = graph_scan(s->c->to, &l, (tensor_value[]){ carried, positions, shared }, shared ? 3 : 2, s->c->err);
	loop_close(&l);
	return v;
}

tensor_value passes_put_solve(struct copying *c, const struct tensor_node *n)
{
	const struct shape s = c->to->value[n->operand[1]].shape;
	const int type = c->to->value[n->operand[0]].type;
	struct solving x = { .c = c, .type = tensor_wide_type(type) };
	const uint64_t sets = shape_part(&s, 0, s.rank - 2), rows = s.dim[s.rank - 2], columns = s.dim[s.rank - 1];
	const struct shape square = { .rank = 3, .dim = { sets, rows, rows } },
			   right = { .rank = 3, .dim = { sets, rows, columns } };

	if (!shape_elements(&s) || rows + columns > INT32_MAX)
		return 0;
	x.size[0] = (struct graph_size){ "b", sets };
	x.size[1] = (struct graph_size){ "n", rows };
	x.size[2] = (struct graph_size){ "m", columns };
	x.size[3] = (struct graph_size){ "w", rows + columns };
	const tensor_value a =
		graph_reshape(c->to, graph_convert(c->to, n->operand[0], x.type, c->err), &square, c->err);
	const tensor_value b =
		graph_reshape(c->to, graph_convert(c->to, n->operand[1], x.type, c->err), &right, c->err);
	const tensor_value both = b ? put(&x, "concatenate axis=2", a, b) : 0;
	const tensor_value done = put_loop(&x, eliminate, 3, both, 0, false);
	const tensor_value upper = put(&x, "slice start=[0,0,0] limit=[b,n,n]", done, 0);
	const tensor_value left = put(&x, "slice start=[0,0,n] limit=[b,n,w]", done, 0);
	const tensor_value solved = upper ? put_loop(&x, substitute, 2, left, upper, true) : 0;
	return graph_convert(c->to, graph_reshape(c->to, solved, &s, c->err), type, c->err);
}
