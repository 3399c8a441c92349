/* tests/train/train_data.c - files of texts and conversations as rows: which tokens count, seen as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "loaders/tokenizer/tokenizer.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/data.h"

static const char template_text[] =
	"{% for m in messages %}<{{ m.role }}>{{ m.content }}"
	"{% if m.role == 'assistant' %}<|end_of_text|>{% endif %}\n{% endfor %}"
	"{% if add_generation_prompt %}<assistant>{% endif %}";
/* It leaves out what stands before a bar in all turns but the last. */
static const char forgetful[] =
	"{% for m in messages %}<{{ m.role }}>"
	"{% if loop.last %}{{ m.content }}{% else %}{{ m.content.split('|')[-1] }}{% endif %}"
	"\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

static void open_model(struct model *m)
{
	struct error err = { 0 };
	char path[1024];

	assert_true(model_open(m, source_path(path, "models/tale-q8_0.gguf"), MODEL_CHAT_TEMPLATES, &err));
}

/* The rows of a file with that text. False: err. */
static bool read_as(struct data *d, const struct model *m, const char *name, const char *text, struct data_options o,
                    struct error *err)
{
	char path[] = "/tmp/t_train_data.XXXXXX", file[64], line[200];

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof file, "%s/%s", path, name);
	FILE *f = fopen(file, "wb");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	*d = (struct data){ 0 };
	const bool ok = data_read(d, m, file, &o, err);
	snprintf(line, sizeof line, "rm -r '%s'", path);
	assert_int_equal(system(line), 0);
	return ok;
}

/* What counts in a row, as text. */
static const char *counted(const struct data *d, const struct model *m, size_t row, char out[1024])
{
	const struct data_row *r = &d->row[row];
	int32_t ids[512];
	size_t n = 0, length;
	struct error err = { 0 };

	for (size_t i = r->first; i < r->first + r->n; i++)
		if (d->counts[i])
			ids[n++] = d->ids[i];
	char *text = tokenizer_decode(m->tokenizer, ids, n, true, &length, &err);
	assert_non_null(text);
	snprintf(out, 1024, "%.*s", (int)length, text);
	free(text);
	return out;
}

void test_texts(void **state)
{
	static const char tale[] =
		"Once upon a time there was a fox who would not be caught, and a hunter who would not "
		"give up; and so they ran, year after year, until both were old.";
	struct data_options o = { .context = 12 };
	struct model m;
	struct data d;
	struct error err = { 0 };
	char text[1024], all[2048] = "";
	(void)state;

	open_model(&m);
	assert_true(read_as(&d, &m, "tale.txt", tale, o, &err));
	assert_int_equal(d.documents, 1);
	assert_true(d.rows > 2);
	for (size_t i = 0; i < d.rows; i++) {
		assert_in_range(d.row[i].n, 2, 12);
		if (i)
			assert_int_equal(d.ids[d.row[i].first], d.ids[d.row[i].first - 1]); /* by one they overlap */
		strcat(all, counted(&d, &m, i, text));
	}
	assert_string_equal(all, tale); /* each token of it is predicted once */
	data_free(&d);

	o.context = 64;
	static const char lines[] =
		"{\"text\": \"A fox ran.\"}\n\n{\"prompt\": \"A king\", \"completion\": \" slept.\"}\n";
	assert_true(read_as(&d, &m, "lines.jsonl", lines, o, &err));
	assert_int_equal(d.rows, 1);
	assert_int_equal(d.documents, 2);
	assert_string_equal(counted(&d, &m, 0, text), "A fox ran.<|end_of_text|> slept.<|end_of_text|>");
	const uint64_t digest = d.digest;
	data_free(&d);
	o.apart = true;
	assert_true(read_as(&d, &m, "lines.jsonl", lines, o, &err));
	assert_int_equal(d.rows, 2);
	assert_string_equal(counted(&d, &m, 1, text), " slept.<|end_of_text|>");
	assert_true(d.digest != digest);
	data_free(&d);

	static const struct {
		const char *name, *text, *says;
	} wrong[] = { { "none.txt", "", "the file is empty" },
		      { "none.jsonl", "\n\n", "nothing in it that counts" },
		      { "a.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n", "a.jsonl:2: expected an object" },
		      { "a.jsonl", "[1]", "a.jsonl:1: expected an object" },
		      { "a.jsonl", "{\"prompt\": \"x\"}", "a.jsonl:1: \"prompt\" and \"completion\"" },
		      { "a.jsonl", "{\"messages\": 1}", "a.jsonl:1: \"messages\" is expected to be an array" },
		      { "a.jsonl", "{\"text\": \"x\"", "a.jsonl:1" } };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (struct error){ 0 };
		assert_false(read_as(&d, &m, wrong[i].name, wrong[i].text, o, &err));
		if (!strstr(err.text, wrong[i].says))
			fail_msg("\"%s\", expected \"%s\"", err.text, wrong[i].says);
		data_free(&d);
	}
	model_close(&m);
}

void test_conversations(void **state)
{
	static const char
		two[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Who?\"}, {\"role\": \"assistant\", "
			"\"content\": \"A king.\"}, {\"role\": \"user\", \"content\": \"And?\"}, {\"role\": "
			"\"assistant\", \"content\": \"A queen <|end_of_text|>\"}]}\n",
		thinks[] = "{\"conversations\": [{\"from\": \"human\", \"value\": \"Who?\"}, {\"from\": \"gpt\", "
			   "\"value\": \"Hm|A king.\"}, {\"from\": \"human\", \"value\": \"And?\"}, {\"from\": "
			   "\"gpt\", \"value\": \"So|A fox.\"}]}\n",
		user[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Who?\"}]}";
	struct data_options o = { .context = 128, .template_text = template_text };
	struct model m;
	struct data d;
	struct error err = { 0 };
	char text[1024];
	(void)state;

	open_model(&m);
	assert_true(read_as(&d, &m, "a.jsonl", two, o, &err));
	assert_int_equal(d.rows, 1);
	assert_string_equal(counted(&d, &m, 0, text), "A king.<|end_of_text|>A queen <|end_of_text|><|end_of_text|>");
	/* What a person wrote is text, and ends nothing. */
	size_t ends = 0;
	for (size_t i = 0; i < d.tokens; i++)
		ends += d.counts[i] && d.ids[i] == tokenizer_eos(m.tokenizer);
	assert_int_equal(ends, 2);
	data_free(&d);

	o.template_text = forgetful;
	assert_true(read_as(&d, &m, "a.jsonl", thinks, o, &err));
	assert_int_equal(d.documents, 2); /* a text for each turn, which has its reasoning */
	assert_string_equal(counted(&d, &m, 0, text), "Hm|A king.So|A fox.");
	data_free(&d);

	assert_false(read_as(&d, &m, "a.jsonl", user, o, &err));
	assert_non_null(strstr(err.text, "no turn of the assistant"));
	data_free(&d);
	err = (struct error){ 0 };
	o.context = 8;
	assert_false(read_as(&d, &m, "a.jsonl", two, o, &err));
	assert_non_null(strstr(err.text, "a.jsonl:1: the text has"));
	assert_non_null(strstr(err.text, "a row has 8"));
	data_free(&d);
	err = (struct error){ 0 };
	o.too_long = DATA_SKIP;
	assert_false(read_as(&d, &m, "a.jsonl", two, o, &err)); /* nothing is left */
	assert_int_equal(d.skipped, 1);
	data_free(&d);
	err = (struct error){ 0 };
	o.too_long = DATA_CUT;
	o.template_text = template_text;
	assert_true(read_as(&d, &m, "a.jsonl", two, o, &err));
	assert_true(d.rows > 1);
	data_free(&d);
	o.template_text = NULL;
	assert_false(read_as(&d, &m, "a.jsonl", two, o, &err));
	assert_non_null(strstr(err.text, "no chat template"));
	data_free(&d);
	model_close(&m);
}

/* An epoch has every row once; another epoch, and another seed, have another order. */
void test_order(void **state)
{
	(void)state;

	for (size_t rows = 1; rows < 90; rows = rows * 2 + 1) {
		const struct data d = { .rows = rows };
		unsigned seen[128] = { 0 }, moved = 0, others = 0;
		for (uint64_t i = 0; i < 2 * rows; i++) {
			const size_t row = data_order(&d, 5, true, i);
			assert_true(row < rows);
			seen[row]++;
			moved += i >= rows && row != data_order(&d, 5, true, i - rows);
			others += row != data_order(&d, 6, true, i);
			assert_int_equal(data_order(&d, 5, false, i), i % rows);
		}
		for (size_t i = 0; i < rows; i++)
			assert_int_equal(seen[i], 2);
		assert_true(rows < 7 || (moved > rows / 2 && others > rows / 2));
	}
}
