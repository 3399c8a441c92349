/* programs/common/options_names.c - names of options that are not rows of the table: what other programs call them, and
 * what is likely meant by a wrong one. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "programs/common/options.h"

enum { NAME_LENGTH_MAX = 80, FAR = 99 };

static bool is_there(const struct option_program *p, const struct option_foreign *f)
{
	return !f->row || options_find(p, f->row, strlen(f->row));
}

static const struct option_foreign *find_foreign(const struct option_program *p, const char *name, size_t n)
{
	for (int i = 0; i < p->n_foreign; i++)
		for (const char *at = p->foreign[i].names; *at; at += strcspn(at, " "), at += *at == ' ')
			if (strcspn(at, " ") == n && memcmp(at, name, n) == 0 && is_there(p, &p->foreign[i]))
				return &p->foreign[i];
	return NULL;
}

/* Of a flag that is not used, --no-NAME is not used either; with _ for -, as vLLM takes it, and a member of what it
 * names behind a dot. */
const struct option_foreign *options_foreign(const struct option_program *p, const char *name, size_t n)
{
	char plain[NAME_LENGTH_MAX + 1];
	const struct option_foreign *f = find_foreign(p, name, n);

	if (f || n > NAME_LENGTH_MAX || n < 4)
		return f;
	for (size_t i = 0; i < n; i++)
		plain[i] = name[i] == '_' ? '-' : name[i];
	const char *dot = memchr(plain, '.', n);
	n = dot ? (size_t)(dot - plain) : n;
	f = find_foreign(p, plain, n);
	if (f || strncmp(plain, "no-", 3) != 0)
		return f;
	f = find_foreign(p, plain + 3, n - 3);
	return f && (f->kind == OPTION_UNUSED || f->kind == OPTION_UNUSED_SWITCH) ? f : NULL;
}

static int min(int a, int b, int c) { return a < b ? (a < c ? a : c) : (b < c ? b : c); }

/* How many letters are wrong, too many or missing; two neighbours in the wrong order count once. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
	int d[NAME_LENGTH_MAX + 1][NAME_LENGTH_MAX + 1];

	if (n > NAME_LENGTH_MAX || m > NAME_LENGTH_MAX)
		return FAR;
	for (size_t i = 0; i <= n; i++)
		d[i][0] = (int)i;
	for (size_t k = 0; k <= m; k++)
		d[0][k] = (int)k;
	for (size_t i = 1; i <= n; i++)
		for (size_t k = 1; k <= m; k++) {
			d[i][k] = min(d[i - 1][k] + 1, d[i][k - 1] + 1, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d[i][k] = min(d[i][k], d[i - 2][k - 2] + 1, FAR);
		}
	return d[n][m];
}

/* How far a wrong name may be from the right one: not at all for two letters. */
static int max_for(size_t n) { return n < 3 ? 0 : n < 5 ? 1 : n < 9 ? 2 : 3; }

/* Its distance to what was typed; what it begins with is near. */
static int distance_to(const char *name, size_t n, const char *candidate, size_t m)
{
	return n >= 3 && n < m && memcmp(name, candidate, n) == 0 ? 1 : distance(name, n, candidate, m);
}

/* The nearest name, of a row or of another program's. Returns its distance; FAR: there is none. */
static int nearest(const struct option_program *p, const char *name, size_t n, char out[NAME_LENGTH_MAX + 1])
{
	int best = FAR;

	for (int i = 0; i < p->n_rows; i++) {
		const char *candidate = p->row[i].name;
		int d = p->row[i].kind == OPTION_GROUP ? FAR : distance_to(name, n, candidate, strlen(candidate));
		if (d < best) {
			best = d;
			memcpy(out, candidate, strlen(candidate) + 1);
		}
	}
	for (int i = 0; i < p->n_foreign; i++)
		for (const char *at = p->foreign[i].names; *at; at += strcspn(at, " "), at += *at == ' ') {
			size_t m = strcspn(at, " ");
			int d = m > 2 && m <= NAME_LENGTH_MAX && is_there(p, &p->foreign[i])
			                ? distance_to(name, n, at, m)
			                : FAR;
			if (d < best) {
				best = d;
				memcpy(out, at, m);
				out[m] = 0;
			}
		}
	return best <= max_for(n) ? best : FAR;
}

static void lower(char out[NAME_LENGTH_MAX + 1], const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)s[i]);
}

unsigned options_distance(const char *typed, size_t n, const char *name, size_t m)
{
	char a[NAME_LENGTH_MAX + 1] = "", b[NAME_LENGTH_MAX + 1] = "";

	if (n > NAME_LENGTH_MAX || m > NAME_LENGTH_MAX)
		return 0;
	lower(a, typed, n);
	lower(b, name, m);
	int d = distance_to(a, n, b, m);
	return d <= max_for(n) ? (unsigned)d + 1 : 0;
}

bool options_is_near(const struct option_program *p, const char *name, size_t n)
{
	char found[NAME_LENGTH_MAX + 1];

	return n >= 4 && nearest(p, name, n, found) <= 1;
}

bool options_unknown(const struct option_program *p, const char *typed, const char *name, size_t n)
{
	char found[NAME_LENGTH_MAX + 1];
	int k = (int)strcspn(typed, "=");

	if (nearest(p, name, n, found) == FAR)
		return options_complain(p, "unknown option %.*s", k, typed);
	const struct option_foreign *f = options_foreign(p, found, strlen(found));
	return options_complain(p, "unknown option %.*s; did you mean --%s?", k, typed, f && f->row ? f->row : found);
}

bool options_refuse_word(const struct option_program *p, const char *word, const char *near)
{
	size_t n = strlen(word);
	int min_far = FAR;

	if (strpbrk(word, "./:") || access(word, F_OK) == 0)
		return false;
	for (int i = 0; i < p->n_commands; i++) {
		const char *name = p->command[i].name;
		int d = *name ? distance_to(word, n, name, strlen(name)) : FAR;
		if (d < min_far && d <= max_for(n)) {
			min_far = d;
			near = name;
		}
	}
	options_complain(p, "\"%.200s\" is neither a command, a file nor a model on this machine%s%.200s%s", word,
	                 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return true;
}
