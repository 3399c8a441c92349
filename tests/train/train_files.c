/* tests/train/train_files.c - what was trained as files: values and their order, by other programs' files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "include/jitrun_adapters.h"
#include "loaders/files/gguf.h"
#include "loaders/files/safetensors.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/train.h"

static char folder[] = "/tmp/t_train_files.XXXXXX";

const char *train_in_folder(char out[1024], const char *name)
{
	if (strstr(folder, "XXXXXX"))
		assert_non_null(mkdtemp(folder));
	snprintf(out, 1024, "%s/%s", folder, name);
	return out;
}

void train_remove_folder(void)
{
	char line[1100];

	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

void train_save_as(const jit_train *t, const char *path, int format)
{
	jit_error e = { 0 };

	if (jit_train_save(t, path, format, &e) != JIT_OK)
		fail_msg("%s", e.message);
}

jit_train *train_step_of(const char *model, jit_train_options o)
{
	const int32_t ids[] = { 5, 77, 12, 200, 31, 8, 150 };

	o.rate = 1e-2f;
	o.context = 8;
	jit_train *t = train_open(model, o);
	train_feed(t, ids, NULL, 7);
	train_step(t);
	return t;
}

/* Every tensor of an adapter's file is what was trained. */
void test_saved(void **state)
{
	struct safetensors index;
	struct error err = { 0 };
	char model[1024], path[1024], name[600];
	size_t n;
	(void)state;

	if (!shared_path(model, "golden/llama-a"))
		return;
	jit_train *t = train_step_of(model, (jit_train_options){ .rank = 3, .dora = 1, .rslora = 1, .alpha = 7 });
	train_save_as(t, train_in_folder(path, "peft"), JIT_TRAIN_PEFT);
	uint8_t *bytes = file_bytes(train_in_folder(path, "peft/adapter_model.safetensors"), &n);
	assert_true(safetensors_parse(&index, bytes, n, path, false, &err));
	assert_int_equal(index.n_tensors, jit_train_tensors(t));
	for (uint32_t i = 0; i < index.n_tensors; i++) {
		const struct safetensors_tensor *x = &index.tensor[i];
		size_t found = 0;
		for (size_t k = 0; k < jit_train_tensors(t); k++) {
			jit_train_tensor y = JIT_TRAIN_TENSOR();
			assert_int_equal(jit_train_get_tensor(t, k, &y, NULL), JIT_OK);
			snprintf(name, sizeof name, "base_model.model.%s", y.name);
			if (strlen(name) != x->name.n || memcmp(name, x->name.p, x->name.n) != 0)
				continue;
			found++;
			assert_int_equal(x->bytes, y.elements * sizeof(float));
			assert_memory_equal(bytes + x->offset, y.values, x->bytes);
		}
		assert_int_equal(found, 1);
	}
	safetensors_free(&index);
	free(bytes);
	bytes = file_bytes(train_in_folder(path, "peft/adapter_config.json"), &n);
	bytes[n] = 0;
	assert_non_null(strstr((char *)bytes, "\"use_rslora\": true"));
	assert_non_null(strstr((char *)bytes, "\"use_dora\": true"));
	assert_non_null(strstr((char *)bytes, "\"lora_alpha\": 7,"));
	assert_non_null(strstr((char *)bytes, "\"r\": 3,"));
	free(bytes);
	jit_error e = { 0 };
	assert_int_equal(jit_train_save(t, train_in_folder(path, "a.gguf"), JIT_TRAIN_GGUF, &e), JIT_ERROR_UNSUPPORTED);
	assert_int_equal(jit_train_save(t, train_in_folder(path, "a"), JIT_TRAIN_WEIGHTS, &e), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_train_save(t, train_in_folder(path, "a"), 3, &e), JIT_ERROR_ARGUMENT);
	jit_train_close(t);
	train_remove_folder();
}

static const char *const formats[] = {
	"models/tale-llama/tale-llama-iq4_xs.gguf",
	"models/tale-llama/tale-llama-q3_k_m.gguf",
	"golden/qwen3-gqa2-bf16",
	"golden/cohere2-a",
	"golden/olmo2-a",
	"golden/granite-a",
	"golden/smollm3-a",
	"golden/gemma2-a",
	"golden/mixtral-a",
	"golden/qwen35-a",
	"golden/gptoss-a",
	"golden/gptoss-a-mxfp4",
	"golden/phi3-a",
	"golden/glm4-a",
	"golden/qwen2moe-a",
	"golden/glm4moe-a",
	"golden/qwen3next-a",
	"golden/olmoe-a",
	"golden/ernie45-a",
	"golden-next/flexolmo-a",
	"golden-next/afmoe-a",
	"golden-next/granitewin-a",
	"golden-next/mamba2-a",
	"golden-next/mamba-a",
	"golden-next/jamba-a",
	"golden-next/bamba-a",
	"golden-next/falconh1-a",
	"golden/granitehybrid-a",
	"golden/nemotronh-a",
	"golden-next/gpt2-a",
	"golden-next/gptneox-a",
	"golden-next/gptbigcode-a",
	"golden-next/starcoder2-a",
	"golden-next/stablelm-a",
	"golden-next/opt-a",
	"golden-next/falcon-a",
	"golden-next/nemotron-a",
	"golden/qwen35-a/model-bf16.gguf",
	"golden/gptoss-a/model-bf16.gguf"
};

/* The loss of a model in any format is what the engine says of the same tokens, with float32 activations. */
void test_formats(void **state)
{
	int32_t ids[24];
	(void)state;

	for (int i = 0; i < 24; i++)
		ids[i] = (i * i * 13 + 5) % 300;
	for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++) {
		jit_train_report r = JIT_TRAIN_REPORT();
		jit_error e = { 0 };
		char path[1024];
		float logprob[24];
		double expected = 0;
		if (test_quick() && i > 8 && i != 12) /* one of experts, one of few tensors */
			continue;
		if (!shared_path(path, formats[i]))
			return;
		jit_train *t =
			train_open(path, (jit_train_options){ .rank = 1, .targets = "v_proj out_proj", .context = 24 });
		train_feed(t, ids, NULL, 24);
		if (jit_train_evaluate(t, &r, &e) != JIT_OK)
			fail_msg("%s: %s", formats[i], e.message);
		jit_train_close(t);
		jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.f32_activations = 1), &e);
		jit_session *s =
			m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32, .kv = JIT_KV_F32), &e) : NULL;
		if (!s || jit_session_score(s, ids, 24, logprob, &e) != JIT_OK)
			fail_msg("%s", e.message);
		for (int k = 1; k < 24; k++)
			expected -= (double)logprob[k] / 23;
		if (!(r.loss > expected * (1 - 1e-5) && r.loss < expected * (1 + 1e-5)))
			fail_msg("%s: the loss is %.9g, the engine says %.9g", formats[i], r.loss, expected);
		jit_session_close(s);
		jit_model_close(m);
	}
}

/* ---- adapters at run time */

/* The loss of 24 tokens by a session behind the adapter of a folder; float32 activations. */
static double served_loss(const char *path, const char *adapter, float scale, const int32_t ids[24])
{
	jit_error e = { 0 };
	float logprob[24];
	double loss = 0;
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.f32_activations = 1), &e);
	jit_adapter *a = m ? jit_adapter_open(m, adapter, &e) : NULL;
	jit_session *s = a ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32, .kv = JIT_KV_F32), &e) : NULL;

	if (!s || jit_session_set_adapters(s, &a, &scale, 1, &e) != JIT_OK ||
	    jit_session_score(s, ids, 24, logprob, &e) != JIT_OK)
		fail_msg("%s", e.message);
	for (int k = 1; k < 24; k++)
		loss -= (double)logprob[k] / 23;
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
	return loss;
}

static double evaluated(jit_train *t, const int32_t ids[24])
{
	jit_train_report r = JIT_TRAIN_REPORT();
	jit_error e = { 0 };

	train_feed(t, ids, NULL, 24);
	if (jit_train_evaluate(t, &r, &e) != JIT_OK)
		fail_msg("%s", e.message);
	return r.loss;
}

static void check_loss(const char *model, const char *what, double got, double expected)
{
	if (!(fabs(got - expected) < 1e-5 * expected))
		fail_msg("%s: %s: the session's loss is %.9g, expected %.9g", model, what, got, expected);
}

/* What was trained with magnitudes has in a session the loss that the training's own graph computes: in models of both
 * kinds of files, whose rows lie in other orders, and with several matrices in one tensor. At another scale the norms
 * are those of that scale: as of an adapter that was saved with it. */
void test_served(void **state)
{
	static const struct {
		const char *model;
		bool dora;
	} cases[] = { { "golden/llama-a/model-bf16.gguf", true },
		      { "golden/llama-a", true },
		      { "models/tale-llama/tale-llama-q4_k_m.gguf", true },
		      { "golden/phi3-a", false },
		      { "golden-next/gpt2-a", false },
		      { "golden/qwen35-a", false },
		      { "golden-next/mamba2-a", false },
		      { "golden-next/jamba-a", false },
		      { "golden-next/falconh1-a", false } };
	int32_t ids[24];
	(void)state;

	for (int i = 0; i < 24; i++)
		ids[i] = (i * i * 13 + 5) % 250;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[1024], to[1024];
		if (!shared_path(path, cases[i].model))
			return;
		jit_train_options o = { .rank = 4, .dora = cases[i].dora, .context = 24, .rate = 3e-2f };
		jit_train *t = train_open(path, o);
		const double before = evaluated(t, ids);
		for (int k = 0; k < 3; k++) {
			train_feed(t, ids, NULL, 24);
			train_step(t);
		}
		const double after = evaluated(t, ids);
		assert_true(fabs(after - before) > 1e-3 * before);
		train_save_as(t, train_in_folder(to, "served"), JIT_TRAIN_PEFT);
		check_loss(cases[i].model, "scale 1", served_loss(path, to, 1, ids), after);
		check_loss(cases[i].model, "scale 0", served_loss(path, to, 0, ids), before);
		jit_train_close(t);
		if (cases[i].dora) { /* alpha 8 at rank 4 is the usual scale: three quarters of that */
			o.alpha = 6;
			t = train_open(path, o);
			assert_true(train_load_peft(t, to, &(struct error){ 0 }));
			check_loss(cases[i].model, "scale 0.75", served_loss(path, to, 0.75f, ids), evaluated(t, ids));
			jit_train_close(t);
		}
		train_remove_folder();
	}
}

/* ---- frozen weights */

static const struct model_tensor *tensor_for(const struct model *m, const struct net_tensor *x)
{
	if (x->layer != NET_NO_LAYER)
		return train_tensor_of(m, x->layer, (enum tensor_slot)x->slot);
	return x->slot == NET_EMBED        ? &m->spec.embed
	       : x->slot == NET_POSITIONS  ? &m->spec.pos_embed
	       : x->slot == NET_NORM_BIAS  ? &m->spec.final_norm_bias
	       : x->slot == NET_FINAL_NORM ? &m->spec.final_norm
	                                   : &m->spec.lm_head;
}

/* A folder of safetensors in float32 whose weights are those of a model in another format. */
static void save_unpacked(const char *folder_of_form, const struct model *m, const char *to)
{
	jit_train *t = train_open(folder_of_form, (jit_train_options){ .full = 1, .context = 8 });
	struct error err = { 0 };

	for (uint32_t i = 0; i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		const struct model_tensor *from = tensor_for(m, x);
		assert_non_null(from);
		assert_int_equal(from->rows * from->cols, x->n);
		if (!train_read(m, from, x->value, &err))
			fail_msg("%s", err.text);
	}
	train_save_as(t, to, JIT_TRAIN_WEIGHTS);
	jit_train_close(t);
}

/* Frozen weights stay as the file has them, in memory, too, and an adapter has the bytes that it has on a model of the
 * same numbers in float32. */
void test_frozen(void **state)
{
	static const struct {
		const char *form, *model;
		enum dtype type; /* of a matrix of layer 0 */
		bool dora, slow;
	} cases[] = { { "golden/qwen3-gqa2-bf16", "golden/qwen3-gqa2-bf16", DTYPE_BF16, true, false },
		      { "models/tale-llama", "models/tale-llama/tale-llama-q4_k_m.gguf", DTYPE_Q4_K, false, false },
		      { "models/tale-llama", "models/tale-llama/tale-llama-q8_0.gguf", DTYPE_Q8_0, true, true },
		      { "models/tale-llama", "models/tale-llama/tale-llama-q2_k.gguf", DTYPE_Q2_K, false, true } };
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		jit_train_options o = { .rank = 4, .dora = cases[i].dora };
		char model[1024], form[1024], path[1024];
		if (!shared_path(model, cases[i].model) || !shared_path(form, cases[i].form))
			return;
		if (cases[i].slow && test_quick())
			continue;
		jit_train *t = train_step_of(model, o);
		const struct model_tensor *gate = train_tensor_of(&t->m, 0, SLOT_gate);
		assert_int_equal(gate->type, cases[i].type);
		for (uint32_t k = 0; k < t->net->classes[0].graph.inputs; k++) {
			const struct layer_graph *l = &t->net->classes[0].graph;
			const int type = l->g.value[l->g.input[k]].type;
			if (l->input[k].kind == LAYER_WEIGHT && l->input[k].slot == SLOT_gate)
				assert_int_equal(shape_elements(&l->input[k].shape) * tensor_type_bytes(type),
				                 gate->bytes);
		}
		save_unpacked(form, &t->m, train_in_folder(path, "f32"));
		jit_train *wide = train_step_of(path, o);
		if (!train_same(t, wide))
			fail_msg("%s gives another adapter than the same numbers in float32", cases[i].model);
		o.keep_activations = 1;
		jit_train *kept = train_step_of(model, o);
		assert_true(train_same(t, kept));
		jit_train_close(kept);
		jit_train_close(wide);
		jit_train_close(t);
		train_remove_folder();
	}
}

/* The head in chunks of 5 000 numbers has the loss and the gradients that it has in one. */
void test_chunks(void **state)
{
	const int32_t ids[] = { 5, 77, 12, 200, 31, 8, 150 };
	char model[1024];
	(void)state;

	if (!shared_path(model, "golden/gemma3-a"))
		return;
	for (int full = 0; full < 2; full++) {
		const jit_train_options o = { .full = full, .rank = 2, .context = 8 };
		jit_train *t = train_open(model, o), *cut = train_open(model, o);
		struct net_options with = cut->net->o;
		struct error err = { 0 };
		with.chunk = 5000;
		net_close(cut->net);
		cut->net = net_open(&cut->m, cut->compute, NULL, &with, &err);
		assert_non_null(cut->net);
		assert_true(cut->net->cut.chunks > 2 && t->net->cut.chunks == 1);
		train_feed(t, ids, NULL, 7);
		train_feed(cut, ids, NULL, 7);
		const jit_train_report a = train_step(t), b = train_step(cut);
		assert_true(fabs(a.loss - b.loss) < 1e-6 * a.loss && fabs(a.norm - b.norm) < 1e-5 * a.norm);
		for (uint32_t i = 0; i < t->net->tensors; i++) {
			const struct net_tensor *x = &t->net->tensor[i], *y = &cut->net->tensor[i];
			double far = 0, all = 0;
			for (uint64_t k = 0; k < x->n; k++) {
				far = fmax(far, fabs((double)x->gradient[k] - (double)y->gradient[k]));
				all = fmax(all, fabs((double)x->gradient[k]));
			}
			if (!(far <= all * 1e-5))
				fail_msg("%s: gradients differ by %g of %g", x->name, far, all);
		}
		jit_train_close(t);
		jit_train_close(cut);
	}
}
