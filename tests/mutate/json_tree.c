/* tests/mutate/json_tree.c - see json_tree.h. */
#include "tests/mutate/json_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static const char *blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *string_end(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	if (!*p)
		abort();
	return p + 1;
}

static struct json_node *new_node(char type, const char *text, size_t n)
{
	struct json_node *j = must(calloc(1, sizeof *j));

	j->type = type;
	if (text)
		j->text = must(strndup(text, n));
	return j;
}

static void insert(struct json_node *parent, size_t at, struct json_node *child)
{
	parent->child = must(realloc(parent->child, (parent->n + 1) * sizeof(struct json_node *)));
	memmove(&parent->child[at + 1], &parent->child[at], (parent->n - at) * sizeof(struct json_node *));
	parent->child[at] = child;
	parent->n++;
}

static struct json_node *read_node(const char **at)
{
	const char *p = blanks(*at), *end;

	if (*p == '{' || *p == '[') {
		struct json_node *j = new_node(*p, NULL, 0);
		char close = *p == '{' ? '}' : ']';
		for (p = blanks(p + 1); *p != close; p = blanks(p + (*p == ','))) {
			char *key = NULL;
			if (close == '}') {
				end = string_end(p);
				key = must(strndup(p, (size_t)(end - p)));
				p = blanks(end);
				if (*p++ != ':')
					abort();
			}
			struct json_node *child = read_node(&p);
			child->key = key;
			insert(j, j->n, child);
			p = blanks(p);
			if (*p != ',' && *p != close)
				abort();
		}
		*at = p + 1;
		return j;
	}
	end = *p == '"' ? string_end(p) : p + strcspn(p, ",]} \t\r\n");
	*at = end;
	return new_node(0, p, (size_t)(end - p));
}

struct json_node *json_tree(const char *text) { return read_node(&text); }

void json_tree_free(struct json_node *j)
{
	for (size_t i = 0; i < j->n; i++)
		json_tree_free(j->child[i]);
	free(j->child);
	free(j->key);
	free(j->text);
	free(j);
}

void json_tree_write(const struct json_node *j, struct bytes *out)
{
	if (j->key) {
		bytes_put(out, j->key, strlen(j->key));
		bytes_put(out, ":", 1);
	}
	if (!j->type) {
		bytes_put(out, j->text, strlen(j->text));
		return;
	}
	bytes_put(out, &j->type, 1);
	for (size_t i = 0; i < j->n; i++) {
		if (i)
			bytes_put(out, ",", 1);
		json_tree_write(j->child[i], out);
	}
	bytes_put(out, j->type == '{' ? "}" : "]", 1);
}

struct json_node *json_member(struct json_node *j, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; j && i < j->n; i++)
		if (j->child[i]->key && strlen(j->child[i]->key) == n + 2 && memcmp(j->child[i]->key + 1, name, n) == 0)
			return j->child[i];
	return NULL;
}

void json_set(struct json_node *j, const char *text)
{
	for (size_t i = 0; i < j->n; i++)
		json_tree_free(j->child[i]);
	free(j->child);
	free(j->text);
	j->child = NULL;
	j->n = 0;
	j->type = 0;
	j->text = must(strdup(text));
}

/* --- changes */

static size_t count(const struct json_node *j)
{
	size_t n = 1;

	for (size_t i = 0; i < j->n; i++)
		n += count(j->child[i]);
	return n;
}

/* The number-th node below j in the order of the text; *parent and *index say where it hangs. */
static struct json_node *find(struct json_node *j, size_t *number, struct json_node **parent, size_t *index)
{
	for (size_t i = 0; i < j->n; i++) {
		struct json_node *c = j->child[i], *found;
		if ((*number)-- == 0) {
			*parent = j;
			*index = i;
			return c;
		}
		if ((found = find(c, number, parent, index)))
			return found;
	}
	return NULL;
}

static struct json_node *pick(struct dice *d, struct json_node *root, struct json_node **parent, size_t *index)
{
	size_t below = count(root) - 1, number = (size_t)dice_below(d, below);

	/* every other time near the top, where the fields are that decide most */
	if (root->n && dice_one_in(d, 2)) {
		*parent = root;
		*index = (size_t)dice_below(d, root->n);
		return root->child[*index];
	}
	return below ? find(root, &number, parent, index) : NULL;
}

static void long_text(struct json_node *j, const char *part, size_t times, const char *open, const char *close)
{
	struct bytes b = { 0 };

	bytes_put(&b, open, strlen(open));
	for (size_t i = 0; i < times; i++)
		bytes_put(&b, part, strlen(part));
	bytes_put(&b, close, strlen(close));
	bytes_put(&b, "", 1);
	json_set(j, (const char *)b.p);
	bytes_forget(&b);
}

static const char *const odd[] = {
	"null",
	"true",
	"false",
	"0",
	"-1",
	"1",
	"-0",
	"0.5",
	"1e999",
	"-1e-400",
	"2147483647",
	"2147483648",
	"4294967295",
	"4294967296",
	"9223372036854775807",
	"9223372036854775808",
	"18446744073709551615",
	"18446744073709551616",
	"99999999999999999999999999",
	"1e18",
	"\"\"",
	"\"x\"",
	"\"1\"",
	"[]",
	"{}",
	"[[]]",
	"[null]",
	"[-1]",
	"{\"\":null}",
	"\"\\u0000\"",
	"\"\\ud800\"",
	"\"\xff\xfe\"",
	"\"\xc0\x80\"",
	"\"../x\"",
	"\"/etc/passwd\"",
	"\"\\n\\u001b[31m\"",
	"NaN",
	"Infinity",
	"-",
	"\"",
	"",
	"01",
	"+1",
	"nul",
	"[1,]"
};

static void set_odd(struct dice *d, struct json_node *j)
{
	char number[40];

	switch (dice_below(d, 12)) {
	case 0: long_text(j, "[", 1 + (size_t)dice_below(d, 3000), "", ""); break;
	case 1:
		long_text(j, "[", 60 + (size_t)dice_below(d, 10), "",
		          "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
		break;
	case 2: long_text(j, "a", (size_t)dice_below(d, 70000), "\"", "\""); break;
	case 3:
	case 4:
	case 5:
		snprintf(number, sizeof number, "%" PRId64,
		         (int64_t)dice_odd(d, j->text ? strtoull(j->text, NULL, 10) : 1));
		json_set(j, number);
		break;
	default: json_set(j, odd[dice_below(d, sizeof odd / sizeof *odd)]); break;
	}
}

static struct json_node *copy_of(const struct json_node *j)
{
	struct json_node *c = new_node(j->type, j->text, j->text ? strlen(j->text) : 0);

	for (size_t i = 0; i < j->n; i++)
		insert(c, c->n, copy_of(j->child[i]));
	if (j->key)
		c->key = must(strdup(j->key));
	return c;
}

static void damage_text(struct dice *d, char **text)
{
	struct bytes b = { 0 };

	bytes_put(&b, *text, strlen(*text));
	mutate_bytes(d, &b);
	bytes_put(&b, "", 1);
	free(*text);
	*text = must(strdup((const char *)b.p));
	bytes_forget(&b);
}

/* The keys change places, or the values do: what is meant for one is found under the other. */
static void swap(struct dice *d, struct json_node *a, struct json_node *b)
{
	if (dice_one_in(d, 2)) {
		char *key = a->key;
		a->key = b->key;
		b->key = key;
	} else if (!a->type && !b->type) {
		char *text = a->text;
		a->text = b->text;
		b->text = text;
	}
}

void json_mutate(struct mutant *m, struct json_node *root)
{
	struct dice *d = &m->dice;
	struct json_node *parent = NULL, *other_parent = NULL, *other;
	size_t index = 0, other_index = 0;
	struct json_node *j = pick(d, root, &parent, &index);

	if (!j)
		return;
	mutant_say(m, "json %.60s in %.40s", j->key ? j->key : "element", parent->key ? parent->key : "the root");
	switch (dice_below(d, 10)) {
	case 0:
		json_tree_free(j);
		memmove(&parent->child[index], &parent->child[index + 1],
		        (--parent->n - index) * sizeof(struct json_node *));
		break;
	case 1: insert(parent, index, copy_of(j)); break;
	case 2:
		if (j->key)
			damage_text(d, &j->key);
		break;
	case 3:
		if (!j->type)
			damage_text(d, &j->text);
		break;
	case 4:
		other = pick(d, root, &other_parent, &other_index);
		if (other != j && (other->key != NULL) == (j->key != NULL))
			swap(d, j, other);
		break;
	case 5:
		other = copy_of(pick(d, root, &other_parent, &other_index));
		free(other->key);
		other->key = j->key ? must(strdup(j->key)) : NULL;
		json_tree_free(j);
		parent->child[index] = other;
		break;
	default: set_odd(d, j); break;
	}
}
