/* tests/loaders/t_model_arch.c - the table of architectures: its names, the page that is made of it, and that one
 * model's weights under another architecture's name give the same logits and tokens, bit for bit. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/gguf.h"
#include "loaders/model/model_arch.h"
#include "loaders/files/safetensors.h"
#include "include/jitrun.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/st_writer.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"

static size_t word_length(const char **p)
{
	*p += strspn(*p, " ");
	return strcspn(*p, " ");
}

/* Every name leads to its own row, so none is there twice. */
static void test_names_are_found(void **state)
{
	size_t n, runs = 0, length;
	const struct arch_row *row = arch_rows(&n);
	char word[64];

	for (size_t i = 0; i < n; i++) {
		assert_true(row[i].gguf || row[i].hf);
		for (const char *p = row[i].gguf ? row[i].gguf : ""; (length = word_length(&p)); p += length)
			if (arch_of_gguf(p, length) != &row[i])
				fail_msg("%.*s is in two rows", (int)length, p);
		for (const char *p = row[i].hf ? row[i].hf : ""; (length = word_length(&p)); p += length) {
			snprintf(word, sizeof word, "%.*s", (int)length, p);
			if (arch_of_hf(word) != &row[i])
				fail_msg("%s is in two rows", word);
		}
		if (row[i].lacks)
			continue;
		/* one name each, as it begins keys; classes where there is a config.json */
		assert_true(!(row[i].gguf && strchr(row[i].gguf, ' ')) && !(row[i].hf && strchr(row[i].hf, ' ')) &&
		            row[i].note && (row[i].hf == NULL) == (row[i].classes == NULL));
		runs++;
	}
	assert_true(runs >= 10 && !arch_of_gguf("", 0) && !arch_of_gguf("llama ", 6) && !arch_of_gguf("llam", 4) &&
	            !arch_of_hf("") && !arch_of_hf(" "));
}

/* A list that is too long ends with a whole name. */
static void test_list_of_names(void **state)
{
	char all[2000], some[2000];

	for (int gguf = 0; gguf < 2; gguf++) {
		size_t n = strlen(arch_names(gguf, all, sizeof all));
		assert_null(strstr(all, "others"));
		for (size_t cap = 40; cap <= n + 1; cap++) {
			arch_names(gguf, some, cap);
			char *end = strstr(some, " or others");
			if (cap == n + 1 && !end) {
				assert_string_equal(some, all);
				continue;
			}
			assert_true(end && strlen(some) < cap);
			*end = 0;
			char next = all[strlen(some)];
			assert_true(memcmp(some, all, strlen(some)) == 0 && (next == ',' || next == ' '));
		}
	}
}

/* ---- the page */

static void names(FILE *out, const char *list)
{
	size_t n;

	if (!list || !*list)
		fputs("-", out);
	else
		for (const char *p = list; (n = word_length(&p)); p += n)
			fprintf(out, "%s`%.*s`", p == list ? "" : " ", (int)n, p);
}

static void rows_of(FILE *out, bool runs)
{
	size_t n;
	const struct arch_row *row = arch_rows(&n);

	fputs(runs ? "| GGUF | `model_type` | what |\n|---|---|---|\n"
	           : "| GGUF | `model_type` | what jitrun does not have |\n|---|---|---|\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		if (runs != !row[i].lacks)
			continue;
		fputs("| ", out);
		names(out, row[i].gguf);
		fputs(" | ", out);
		names(out, row[i].hf);
		fprintf(out, " | %s |\n", runs ? row[i].note : row[i].lacks);
	}
}

static void list_of(FILE *out, int which)
{
	struct arch_lists l = arch_lists();
	const char *const list[] = { l.gguf_keys, l.hf_fields, l.gguf_tensors, l.hf_tensors };

	names(out, list[which]);
	fputc('\n', out);
}

static void test_page(void **state)
{
	char path[1024];
	size_t n;

	char *page = (char *)file_bytes(source_path(path, "docs/models.md"), &n);
	page[n] = 0;
	for (int part = 0; part < 6; part++) {
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		if (part < 2)
			rows_of(out, part == 0);
		else
			list_of(out, part - 2);
		fclose(out);
		if (!strstr(page, text)) {
			printf("# docs/models.md does not have this:\n%s# to here\n", text);
			fail_msg("docs/models.md does not have what is printed above");
		}
		free(text);
	}
	free(page);
}

/* ---- one model under several names */

enum { LAYERS = 3 };

static char folder[300];

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/jitrun-arch-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }
static int remove_folder(void **state) { return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static bool ends(const struct gguf_str *s, const char *end)
{
	return s->n >= strlen(end) && memcmp(s->p + s->n - strlen(end), end, strlen(end)) == 0;
}

/* The key under another architecture's name, or as it is. */
static void rename_key(char out[128], const struct gguf_str *key, const char *arch)
{
	bool own = key->n > 6 && (memcmp(key->p, "llama.", 6) == 0 || memcmp(key->p, "qwen3.", 6) == 0);

	snprintf(out, 128, "%s%.*s", own ? arch : "", (int)(key->n - (own ? 5 : 0)), key->p + (own ? 5 : 0));
}

static void copy_key(struct gguf_writer *w, const struct gguf_kv *kv, const char *arch, bool arrays)
{
	char key[128], value[300];
	uint32_t each[LAYERS];

	rename_key(key, &kv->key, arch);
	if (strcmp(key, "general.architecture") == 0)
		gguf_write_string(w, key, arch);
	else if (kv->type == GGUF_STRING) {
		snprintf(value, sizeof value, "%.*s", (int)kv->bytes, (const char *)kv->data);
		gguf_write_string(w, key, value);
	} else if (arrays && (ends(&kv->key, ".head_count") || ends(&kv->key, ".head_count_kv") ||
	                      ends(&kv->key, ".feed_forward_length"))) {
		for (int i = 0; i < LAYERS; i++)
			each[i] = (uint32_t)gguf_item_int(kv, 0);
		gguf_write_array(w, key, GGUF_U32, LAYERS, each, sizeof each);
	} else if (kv->type != GGUF_ARRAY)
		gguf_write_scalar(w, key, kv->type, kv->data);
}

/* Q and K with a rotation's pairs a half apart, made of rows where they are neighbours: row i of a half is row 2i, of
 * the other 2i + 1. */
static uint8_t *by_halves(const uint8_t *from, const struct gguf_tensor *t, uint64_t head_dim)
{
	uint64_t rows = t->ne[1], row_bytes = t->bytes / rows;
	uint8_t *out = malloc(t->bytes);

	assert_non_null(out);
	for (uint64_t r = 0; r < rows; r++) {
		uint64_t head = r / head_dim * head_dim, in = r % head_dim, half = head_dim / 2;
		memcpy(out + r * row_bytes, from + (head + (in < half ? 2 * in : 2 * (in - half) + 1)) * row_bytes,
		       row_bytes);
	}
	return out;
}

/* Keys of models for images that change nothing of a text. */
static bool more_keys;

static void write_more_keys(struct gguf_writer *w, const char *arch)
{
	char key[128];

	snprintf(key, sizeof key, "%s.n_deepstack_layers", arch);
	gguf_write_u32(w, key, 3);
	snprintf(key, sizeof key, "%s.rope.dimension_sections", arch);
	gguf_write_array(w, key, GGUF_I32, 4, (const int32_t[]){ 6, 5, 5, 0 }, 16);
}

/* The model under this name. */
static void write_as(const char *path, const struct gguf *g, const uint8_t *file, const char *arch, bool halves,
                     bool arrays, uint64_t head_dim)
{
	struct gguf_writer w;
	char name[100];
	size_t n;

	gguf_writer_start(&w, 3, 32);
	for (uint64_t i = 0; i < g->n_kv; i++)
		if (memcmp(g->kv[i].key.p, "tokenizer.", 10) != 0)
			copy_key(&w, &g->kv[i], arch, arrays);
	if (more_keys)
		write_more_keys(&w, arch);
	for (uint64_t i = 0; i < g->n_tensors; i++) {
		const struct gguf_tensor *t = &g->tensor[i];
		bool moved = halves && (ends(&t->name, "attn_q.weight") || ends(&t->name, "attn_k.weight"));
		uint8_t *other = moved ? by_halves(file + t->offset, t, head_dim) : NULL;
		snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
		gguf_write_tensor(&w, name, t->type, t->n_dims, t->ne, other ? other : file + t->offset, t->bytes);
		free(other);
	}
	uint8_t *p = gguf_writer_finish(&w, &n);
	tiny_write(folder, path, p, n);
	gguf_writer_free(&w);
	free(p);
}

enum { STEPS = 12 };

struct run {
	float *logits;
	size_t n;
	int32_t ids[STEPS];
};

static struct run run_model(const char *path)
{
	static const int32_t prompt[] = { 1, 300, 17, 312, 40, 41, 300, 17, 99 };
	jit_error err = { 0 };
	struct run r = { 0 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);

	if (!m)
		fail_msg("%s: %s", path, err.message);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64), &err);
	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, prompt, sizeof prompt / sizeof *prompt, &err), JIT_OK);
	jit_model_info info = JIT_MODEL_INFO();
	jit_model_get_info(m, &info, NULL);
	r.n = (size_t)info.vocab;
	r.logits = malloc(r.n * sizeof *r.logits);
	memcpy(r.logits, jit_session_logits(s, &err), r.n * sizeof *r.logits);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(jit_session_next(s, &r.ids[i], &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	return r;
}

static void test_same_weights_under_other_names(void **state)
{
	static const struct {
		const char *arch;
		bool halves, arrays;
	} as[] = {
		{ "llama", false, false },  { "mistral3", false, false },  { "ernie4_5", false, false },
		{ "xverse", false, false }, { "internlm2", false, false }, { "deci", false, true },
		{ "exaone", true, false },  { "qwen2", true, false },
	};
	static const struct tiny_model t = { "llama", LAYERS, 64, 96, 4, 2, 32, 389, DTYPE_BF16, .tied = true };
	char path[1024];
	size_t n;

	uint8_t *file = tiny_gguf(&t, DTYPE_Q8_0, &n, NULL);
	struct gguf g;
	assert_true(file && gguf_parse(&g, file, n, "tiny", false, NULL));
	struct run first = { 0 };
	for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
		write_as("m.gguf", &g, file, as[i].arch, as[i].halves, as[i].arrays, t.head_dim);
		snprintf(path, sizeof path, "%s/m.gguf", folder);
		struct run r = run_model(path);
		if (i == 0)
			first = r;
		if (r.n != first.n || memcmp(r.logits, first.logits, r.n * sizeof *r.logits) != 0 ||
		    memcmp(r.ids, first.ids, sizeof r.ids) != 0)
			fail_msg("%s gives other logits or tokens than llama", as[i].arch);
		if (i)
			free(r.logits);
	}
	/* a layout taken for the other one is seen */
	write_as("m.gguf", &g, file, "exaone", false, false, t.head_dim);
	struct run wrong = run_model(path);
	assert_memory_not_equal(wrong.logits, first.logits, first.n * sizeof *first.logits);
	free(wrong.logits);
	free(first.logits);
	gguf_free(&g);
	free(file);
}

/* ---- a text model inside a model for images */

static const struct tiny_model qwen3 = {
	"qwen3", LAYERS, 64, 96, 4, 2, 32, 389, DTYPE_BF16, .tied = true, .extra = ",\"rope_theta\":5000000"
};

static void expect_same(const char *what, const char *path, const struct run *want)
{
	struct run r = run_model(path);

	if (r.n != want->n || memcmp(r.logits, want->logits, r.n * sizeof *r.logits) != 0 ||
	    memcmp(r.ids, want->ids, sizeof r.ids) != 0)
		fail_msg("%s gives other logits or tokens than the text model alone", what);
	free(r.logits);
}

/* The text model's tensors under the names that they have there, and one of the part for images. */
static void write_inside(const char *prefix, const char *image_tensor)
{
	struct st_writer w;
	struct safetensors s;
	size_t n, n_in;
	char name[100];
	uint8_t *in = tiny_safetensors(&qwen3, &n_in);

	assert_true(safetensors_parse(&s, in, n_in, "tiny", false, NULL));
	st_writer_start(&w);
	for (uint32_t i = 0; i < s.n_tensors; i++) {
		const struct safetensors_tensor *t = &s.tensor[i];
		snprintf(name, sizeof name, "%s%.*s", prefix, (int)t->name.n - 6, t->name.p + 6);
		st_write_tensor(&w, name, t->type, t->rank, t->dim, in + t->offset, t->bytes);
	}
	st_write_tensor(&w, image_tensor, DTYPE_BF16, 1, (const uint64_t[]){ 8 }, NULL, 16);
	uint8_t *out = st_writer_finish(&w, 8, &n);
	tiny_write(folder, "model.safetensors", out, n);
	safetensors_free(&s);
	free(out);
	free(in);
}

/* Its configuration, as that of the inner model. */
static void write_outer(const char *type, const char *inner, const char *class, const char *more)
{
	char *config = tiny_config(&qwen3), text[3000];
	const char *rest = strstr(config, "\"qwen3\"");

	assert_non_null(rest);
	int n = snprintf(text, sizeof text,
	                 "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",\"vision_config\":{\"depth\":2},%s"
	                 "\"text_config\":%.*s\"%s\"%s}",
	                 class, type, more, (int)(rest - config), config, inner, rest + strlen("\"qwen3\""));
	assert_true(n > 0 && (size_t)n < sizeof text);
	tiny_write(folder, "config.json", text, (size_t)n);
	free(config);
}

static void test_inside_a_model_for_images(void **state)
{
	char path[1024];
	struct error err = { 0 };
	struct model m;

	tiny_write_hf(folder, &qwen3);
	struct run alone = run_model(folder);
	write_outer("qwen3_vl", "qwen3_vl_text", "Qwen3VLForConditionalGeneration",
	            "\"image_token_id\":5,\"video_token_id\":6,\"vision_start_token_id\":7,\"vision_end_token_id\":8,");
	write_inside("model.language_model.", "model.visual.pos_embed.weight");
	expect_same("qwen3_vl", folder, &alone);
	/* and what is of no known part is refused */
	write_inside("model.language_model.", "model.other.weight");
	assert_false(model_open(&m, folder, MODEL_NO_TOKENIZER, &err));
	assert_non_null(strstr(err.text, "the tensor model.other.weight is none that jitrun computes with"));
	size_t n;
	uint8_t *file = tiny_gguf(&qwen3, DTYPE_BF16, &n, NULL);
	struct gguf g;
	assert_true(file && gguf_parse(&g, file, n, "tiny", false, NULL));
	more_keys = true;
	write_as("m.gguf", &g, file, "qwen3vl", false, false, qwen3.head_dim);
	more_keys = false;
	snprintf(path, sizeof path, "%s/m.gguf", folder);
	expect_same("qwen3vl", path, &alone);
	gguf_free(&g);
	free(file);
	free(alone.logits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_found),
		cmocka_unit_test(test_list_of_names),
		cmocka_unit_test(test_page),
		cmocka_unit_test_setup_teardown(test_same_weights_under_other_names, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_inside_a_model_for_images, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
