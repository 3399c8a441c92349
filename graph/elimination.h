/* graph/elimination.h - a step of an elimination with partial pivoting, as the body of a loop.
 *
 * Owns: that text, which solve and the import of determinants have in common. Sizes: b sets of n rows of w elements.
 * Inputs: m, [b,n,w], and the step's number k. Output: m behind the step. `corner` in it is the pivot, [b], and `at`
 * the row that it came from, [b].
 */
#ifndef GRAPH_ELIMINATION_H
#define GRAPH_ELIMINATION_H

/* For printf with the name of the elements' type. */
/* clang-format off */
#define GRAPH_ELIMINATION \
	"size b\nsize n\nsize w\n" \
	"input m %1$s[b,n,w]\ninput k i32[]\n" \
	"rows = iota type=i32 shape=[b,n] axis=1\nkk = broadcast k shape=[b,n] axes=[]\n" \
	"column = take m k axis=2\nsize_of = abs column\n" \
	"none = constant %1$s[] -1\nnones = broadcast none shape=[b,n] axes=[]\n" \
	"open = ge rows kk\nscore = select open size_of nones\n" \
	"best = argmax score axis=1\nat = convert best type=i32\n" \
	"pivot = broadcast at shape=[b,n] axes=[0]\n" \
	"is_k = eq rows kk\nis_pivot = eq rows pivot\n" \
	"down = select is_pivot kk rows\nfrom = select is_k pivot down\n" \
	"from_all = broadcast from shape=[b,n,w] axes=[0,1]\n" \
	"s = take_along m from_all axis=1\n" \
	"row = take s k axis=1\nleft = take s k axis=2\ncorner = take row k axis=1\n" \
	"corners = broadcast corner shape=[b,n] axes=[0]\nl = div left corners\n" \
	"minus = neg l\nby = broadcast minus shape=[b,n,w] axes=[0,1]\n" \
	"with = broadcast row shape=[b,n,w] axes=[0,2]\nless = fma by with s\n" \
	"below = gt rows kk\nbelows = broadcast below shape=[b,n,w] axes=[0,1]\n" \
	"next = select belows less s\noutput next\n"
/* clang-format on */

#endif
