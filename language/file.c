/* language/file.c - what a file says of itself before a kernel is bound. */
#include <stdlib.h>
#include <string.h>

#include "language/fold.h"

void jk_file_close(struct jk_file *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	const bool last = --f->holders == 0;
	pthread_mutex_unlock(&f->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&f->lock);
	jk_lex_free(&f->tokens);
	jk_arena_free(&f->arena);
	free(f->constant);
	free(f->name);
	free(f->text);
	free(f);
}

const char *jk_file_name(const struct jk_file *f) { return f->name; }
const char *jk_file_text(const struct jk_file *f, size_t *bytes)
{
	if (bytes)
		*bytes = f->bytes;
	return f->text;
}

size_t jk_kernels(const struct jk_file *f) { return f->n_kernels; }

const char *jk_kernel_name(const struct jk_file *f, size_t i)
{
	const struct symbol *s = f->kernels;

	while (s && i--)
		s = s->next;
	return s ? s->name->text : NULL;
}

size_t jk_constants(const struct jk_file *f) { return f->n_constants; }
const struct jk_constant *jk_constant(const struct jk_file *f, size_t i)
{
	return i < f->n_constants ? &f->constant[i] : NULL;
}

static void list_choices(struct jk_file *f, struct jk_constant *c, const struct symbol *s)
{
	int64_t *choice;
	size_t n = 0;

	for (const struct node *k = s->value; k; k = k->next)
		n++;
	choice = jk_arena_take(&f->arena, n * sizeof *choice);
	c->choices = n;
	c->choice = choice;
	for (const struct node *k = s->value; k; k = k->next)
		*choice++ = (int64_t)k->bits;
}

/* Values as far as they are known without anybody's. */
static void fill(struct jk_file *f, uint64_t *value, bool *known)
{
	const struct environment e = { value, known };
	const struct node *where;

	for (const struct symbol *s = f->constants; s; s = s->next) {
		struct jk_constant *c = &f->constant[s->number];
		*c = (struct jk_constant){ .name = s->name->text, .type = s->type, .tuned = s->kind == SYMBOL_TUNE };
		if (c->tuned) {
			list_choices(f, c, s);
			value[s->number] = (uint64_t)c->choice[0];
			known[s->number] = true;
		} else {
			known[s->number] = s->value && jk_fold_tree(s->value, &e, &value[s->number], &where);
		}
		c->has_value = known[s->number];
		c->integer = type_is_float(s->type) ? 0 : (int64_t)value[s->number];
		if (type_is_float(s->type) && c->has_value)
			c->number = s->type == JK_F32 ? (double)fold_f32(value[s->number]) : fold_f64(value[s->number]);
	}
}

bool jk_file_constants(struct jk_file *f, struct jk_messages *m)
{
	uint64_t *value = calloc(f->n_constants + 1, sizeof *value);
	bool *known = calloc(f->n_constants + 1, sizeof *known);
	volatile bool ok = false;
	jmp_buf out;

	f->constant = calloc(f->n_constants + 1, sizeof *f->constant);
	f->arena.out = &out;
	if (value && known && f->constant && !setjmp(out)) {
		fill(f, value, known);
		ok = true;
	}
	free(value);
	free(known);
	f->arena.out = NULL;
	if (!ok)
		jk_message_add(m, (struct source_location){ 0 }, "no memory for the constants of a file");
	return ok;
}
