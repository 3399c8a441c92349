/* sim/ptx_functions.c - reads the entries and functions of PTX text, and calls (PTX ISA manual, chapter 7).
 *
 * Owns: parameters, who calls whom, and from that where the registers of each function lie. What is passed is of 32 or
 * 64 bits, in registers or in variables of parameter space, which are registers here as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/ptx_reader.h"

int64_t ptx_find_function(const struct ptx_text *t, const char *name)
{
	for (size_t i = 0; i < t->n_functions; i++)
		if (strcmp(t->function[i].name, name) == 0)
			return (int64_t)i;
	return -1;
}

/* --- declarations */

/* (.param .u64 a, .reg .b32 %b). With names, where a body follows: registers of the function. */
static bool read_params(struct reader *r, struct ptx_param *param, unsigned *n)
{
	*n = 0;
	if (!ptx_take(r, "("))
		return false;
	while (!ptx_is(r, ")")) {
		struct ptx_param *p = &param[*n];
		if (*n == PTX_PARAMS || (*n && !ptx_take(r, ",")))
			return ptx_wrong(r, "the parameters are wrong");
		/* until the name's register is known, its space */
		p->reg = ptx_is(r, ".param");
		if (!p->reg && !ptx_is(r, ".reg"))
			return ptx_wrong(r, "a parameter of another space");
		ptx_next(r);
		const char letter = ptx_letter_of(r->word);
		if (letter != 'w' && letter != 'q')
			return ptx_wrong(r, "a parameter of another type");
		ptx_next(r);
		p->bytes = letter == 'q' ? 8 : 4;
		if (!ptx_take_name(r, p->name))
			return false;
		*n += 1;
	}
	return ptx_take(r, ")");
}

static bool read_limits(struct reader *r, struct ptx_function *f)
{
	int64_t n = 0, one = 0;

	while (!ptx_is(r, "{")) {
		bool threads = ptx_is(r, ".maxntid");
		if (!threads && !ptx_is(r, ".minnctapersm") && !ptx_is(r, ".maxnreg"))
			return ptx_wrong(r, "a directive that is not known");
		ptx_next(r);
		if (!ptx_take_number(r, &n) ||
		    (threads && (!ptx_take(r, ",") || !ptx_take_number(r, &one) || one != 1 || !ptx_take(r, ",") ||
		                 !ptx_take_number(r, &one) || one != 1)))
			return ptx_wrong(r, "a limit is wrong");
		if (threads)
			f->threads = (unsigned)n;
	}
	return true;
}

static bool same_params(const struct ptx_param *a, unsigned n_a, const struct ptx_param *b, unsigned n_b)
{
	bool same = n_a == n_b;

	for (unsigned i = 0; same && i < n_a; i++)
		same = a[i].bytes == b[i].bytes && a[i].reg == b[i].reg;
	return same;
}

/* Where it was declared before, or a new one; its number in r->function. */
static bool declare(struct reader *r, const struct ptx_function *f)
{
	struct ptx_text *t = r->t;
	int64_t found = ptx_find_function(t, f->name);

	if (found < 0) {
		if (!array_grow((void **)&t->function, &t->functions_capacity, t->n_functions + 1, sizeof *t->function))
			return error_set(r->err, ERROR_MEMORY, "no memory for the functions of a module");
		t->function[t->n_functions] = *f;
		r->function = t->n_functions++;
		return true;
	}
	const struct ptx_function *old = &t->function[found];
	if (old->is_entry || f->is_entry || old->has_body ||
	    !same_params(old->param, old->n_params, f->param, f->n_params) ||
	    !same_params(old->result, old->n_results, f->result, f->n_results))
		return ptx_wrong(r, "a function that is there already, or was declared otherwise");
	r->function = (size_t)found;
	t->function[found] = *f;
	return true;
}

static bool name_params(struct reader *r, struct ptx_param *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!ptx_name_register(r, p[i].name, p[i].bytes == 8 ? 'q' : 'w', p[i].reg != 0, &p[i].reg))
			return false;
	return true;
}

static bool read_definition(struct reader *r)
{
	struct ptx_function *f = &r->t->function[r->function];

	r->n_names = r->n_prefixes = 0;
	f->has_body = true;
	f->first = r->t->n_steps;
	if (!f->is_entry && (!name_params(r, f->result, f->n_results) || !name_params(r, f->param, f->n_params)))
		return false;
	bool ok = ptx_read_body(r);
	r->t->function[r->function].end = r->t->n_steps;
	return ok;
}

bool ptx_read_function(struct reader *r)
{
	struct ptx_function f = { 0 };

	if (ptx_is(r, ".visible"))
		ptx_next(r);
	f.is_entry = ptx_is(r, ".entry");
	if (!f.is_entry && !ptx_is(r, ".func"))
		return ptx_wrong(r, "a directive that is not known");
	ptx_next(r);
	if (!f.is_entry && ptx_is(r, "(") && !read_params(r, f.result, &f.n_results))
		return false;
	if (!ptx_take_name(r, f.name))
		return false;
	if (ptx_is(r, "(") && !read_params(r, f.param, &f.n_params))
		return false;
	if (f.is_entry && !read_limits(r, &f))
		return false;
	if (!declare(r, &f))
		return false;
	return ptx_is(r, ";") && !f.is_entry ? ptx_take(r, ";") : read_definition(r);
}

/* --- calls */

/* (%r0, x, 4): registers, variables of parameter space, or constants, as the parameters have them. */
static bool read_list(struct reader *r, const struct ptx_param *p, unsigned n, uint32_t *out, bool constants)
{
	if (!ptx_take(r, "("))
		return false;
	for (unsigned i = 0; i < n; i++) {
		const char letter = p[i].bytes == 8 ? 'q' : 'w';
		if (i && !ptx_take(r, ","))
			return false;
		if (ptx_find_param(r, r->word, &out[i]) == letter)
			ptx_next(r);
		else if (!ptx_read_value(r, letter, constants, &out[i]))
			return false;
	}
	return ptx_is(r, ")") ? ptx_take(r, ")") : ptx_wrong(r, "a call with too many, or too few");
}

/* The name stands behind the results, whose number it decides: they are read once it is known. */
static bool peek_name(struct reader *r, char name[PTX_NAME])
{
	const struct reader start = *r;

	while (!ptx_is(r, ")") && !ptx_is(r, ";") && *r->word)
		ptx_next(r);
	ptx_next(r);
	bool ok = ptx_take(r, ",") && ptx_take_name(r, name);
	if (ok)
		*r = start;
	return ok;
}

bool ptx_read_call(struct reader *r, struct ptx_step *s)
{
	struct ptx_text *t = r->t;
	struct ptx_call call = { .caller = (unsigned)r->function, .line = s->line };
	char name[PTX_NAME];
	const bool has_results = ptx_is(r, "(");

	if (has_results ? !peek_name(r, name) : !ptx_take_name(r, name))
		return false;
	const int64_t number = ptx_find_function(t, name);
	const struct ptx_function *f = number < 0 ? NULL : &t->function[number];
	if (!f || f->is_entry || has_results != (f->n_results != 0))
		return ptx_wrong(r, f ? "a call of something else" : "a call of what was not declared");
	if (has_results && (!read_list(r, f->result, f->n_results, call.result, false) || !ptx_take(r, ",") ||
	                    !ptx_take_name(r, name)))
		return false;
	if (ptx_is(r, ",") ? !ptx_take(r, ",") || !read_list(r, f->param, f->n_params, call.arg, true)
	                   : f->n_params != 0)
		return ptx_wrong(r, "the arguments are wrong");
	call.function = (unsigned)number;
	call.n_args = f->n_params;
	call.n_results = f->n_results;
	if (!array_grow((void **)&t->call, &t->calls_capacity, t->n_calls + 1, sizeof *t->call))
		return error_set(r->err, ERROR_MEMORY, "no memory for the calls of a kernel");
	s->operation = PTX_DO_CALL;
	s->disp = (int64_t)t->n_calls;
	t->call[t->n_calls++] = call;
	return true;
}

/* --- branches by a number */

bool ptx_read_targets(struct reader *r, const char *name)
{
	struct ptx_text *t = r->t;
	struct ptx_list l = { 0 };

	if (!array_grow((void **)&t->list, &t->lists_capacity, t->n_lists + 1, sizeof *t->list))
		return error_set(r->err, ERROR_MEMORY, "no memory for the branches of a kernel");
	snprintf(l.name, sizeof l.name, "%s", name);
	t->list[t->n_lists++] = l;
	do {
		struct ptx_list *to = &t->list[t->n_lists - 1];
		char label[PTX_NAME];
		ptx_next(r);
		if (!array_grow((void **)&to->to, &to->capacity, to->n + 1, sizeof *to->to))
			return error_set(r->err, ERROR_MEMORY, "no memory for the branches of a kernel");
		if (!ptx_take_name(r, label) || !ptx_read_label(r, label, false, &to->to[to->n]))
			return false;
		to->n++;
	} while (ptx_is(r, ","));
	return ptx_take(r, ";");
}

/* The nearest list above: its labels become steps with this function's, so one branch alone may use it. */
bool ptx_read_switch(struct reader *r, struct ptx_step *s)
{
	struct ptx_text *t = r->t;

	if (!ptx_read_value(r, 'w', false, &s->s[0]) || !ptx_take(r, ","))
		return false;
	s->operation = PTX_DO_SWITCH;
	for (size_t i = t->n_lists; i-- > 0;)
		if (ptx_is(r, t->list[i].name)) {
			s->disp = (int64_t)i;
			for (size_t k = 0; k < t->n_steps; k++)
				if (t->step[k].operation == PTX_DO_SWITCH && t->step[k].disp == s->disp)
					return ptx_wrong(r, "a second branch by one list, which is not simulated");
			ptx_next(r);
			return true;
		}
	return ptx_wrong(r, "a list of labels that is not there");
}

/* --- where the registers are */

static void number_register(uint32_t *number, const struct ptx_text *t, uint32_t base)
{
	if (*number == PTX_NO_REGISTER)
		return;
	*number = *number >= CONSTANTS_AT  ? t->first_constant + (*number - CONSTANTS_AT)
	          : *number >= SPECIALS_AT ? *number - SPECIALS_AT
	                                   : base + *number;
}

/* A function begins behind the registers of all that call it, and one more. One more round than there may be calls in
 * one another moves nothing; else something calls itself. */
static bool set_bases(struct reader *r)
{
	struct ptx_text *t = r->t;
	bool moved = true;

	for (size_t i = 0; i < t->n_functions; i++)
		t->function[i].base = PTX_SPECIALS;
	for (unsigned round = 0; moved && round <= PTX_DEPTH; round++) {
		moved = false;
		for (size_t i = 0; i < t->n_calls; i++) {
			const struct ptx_function *from = &t->function[t->call[i].caller];
			struct ptx_function *to = &t->function[t->call[i].function];
			r->line = t->call[i].line;
			if (!to->has_body)
				return ptx_wrong(r, "a call of a function without a body");
			if (t->call[i].caller == t->call[i].function)
				return ptx_wrong(r, "a function that calls itself");
			const uint32_t behind = from->base + from->n_registers + 1;
			moved |= to->base < behind;
			to->base = to->base < behind ? behind : to->base;
		}
	}
	return !moved || ptx_wrong(r, "functions that call themselves, or too many calls in one another");
}

static void number_function(struct ptx_text *t, struct ptx_function *f)
{
	for (size_t i = f->first; i < f->end; i++) {
		struct ptx_step *s = &t->step[i];
		number_register(&s->guard, t, f->base);
		for (unsigned k = 0; k < 4; k++)
			number_register(&s->d[k], t, f->base);
		for (unsigned k = 0; k < PTX_SOURCES; k++)
			number_register(&s->s[k], t, f->base);
	}
	if (f->is_entry)
		return;
	for (unsigned i = 0; i < f->n_params; i++)
		number_register(&f->param[i].reg, t, f->base);
	for (unsigned i = 0; i < f->n_results; i++)
		number_register(&f->result[i].reg, t, f->base);
}

bool ptx_number_registers(struct reader *r)
{
	struct ptx_text *t = r->t;

	if (!set_bases(r))
		return false;
	t->first_constant = PTX_SPECIALS;
	for (size_t i = 0; i < t->n_functions; i++)
		if (t->first_constant < t->function[i].base + t->function[i].n_registers)
			t->first_constant = t->function[i].base + t->function[i].n_registers;
	t->n_registers = t->first_constant + t->n_constants;
	for (size_t i = 0; i < t->n_functions; i++)
		if (t->function[i].has_body)
			number_function(t, &t->function[i]);
	for (size_t i = 0; i < t->n_calls; i++) {
		struct ptx_call *c = &t->call[i];
		for (unsigned k = 0; k < c->n_args; k++)
			number_register(&c->arg[k], t, t->function[c->caller].base);
		for (unsigned k = 0; k < c->n_results; k++)
			number_register(&c->result[k], t, t->function[c->caller].base);
	}
	return true;
}
