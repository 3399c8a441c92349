/* loaders/model/model_modules.c - modules.json, by which sentence-transformers lists what is computed behind a model,
 * and the folders of its dense layers.
 *
 * Owns: which modules there may be and in which order, config.json and model.safetensors of a dense layer. A module
 * that would change vectors and is not computed is refused. Rule: a folder is a name in the model's own folder, never
 * a path.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_floats.h"
#include "loaders/model/model_hf_fields.h"

/* ---- modules.json */

enum module_kind { TRANSFORMER, POOLING, DENSE, NORMALIZE, MODULE_KINDS };

/* By the last part of the class's name. */
static enum module_kind kind_of(const char *type)
{
	static const char *const names[MODULE_KINDS] = { "Transformer", "Pooling", "Dense", "Normalize" };
	const char *dot = strrchr(type, '.');
	int kind = 0;

	while (kind < MODULE_KINDS && strcmp(dot ? dot + 1 : type, names[kind]) != 0)
		kind++;
	return (enum module_kind)kind;
}

static bool take_folder(struct module_list *out, const struct file *file, size_t i, const json_t *path,
                        struct error *err)
{
	const char *name = json_is_string(path) ? json_string_value(path) : "";
	const size_t n = json_is_string(path) ? json_string_length(path) : 0;
	char text[100];

	if (n == 0 || n >= sizeof *out->dense || memchr(name, '/', n) || memchr(name, 0, n) || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return error_set(err, ERROR_FORMAT,
		                 "%s: the path of module %zu is \"%s\", expected the name of a folder beside this file",
		                 file->label, i, error_quote(text, sizeof text, name, n));
	if (out->n_dense == MODEL_MAX_DENSE)
		return error_set(err, ERROR_UNSUPPORTED, "%s: has more than %d Dense modules", file->label,
		                 MODEL_MAX_DENSE);
	memcpy(out->dense[out->n_dense++], name, n + 1);
	return true;
}

static bool take_module(struct module_list *out, const struct file *file, size_t i, const json_t *module, bool *pooled,
                        bool *normal, struct error *err)
{
	const json_t *type = json_object_get(module, "type");
	const char *name = json_is_string(type) ? json_string_value(type) : "";
	const enum module_kind kind = kind_of(name);
	char text[80];

	if (kind == MODULE_KINDS)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: the type of module %zu is \"%s\", supported behind a model are Transformer, "
		                 "Pooling, Dense and Normalize",
		                 file->label, i, error_quote(text, sizeof text, name, strlen(name)));
	if (kind == DENSE && (!*pooled || *normal))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: module %zu is a Dense layer, which is supported behind Pooling and before "
		                 "Normalize",
		                 file->label, i);
	*pooled |= kind == POOLING;
	*normal |= kind == NORMALIZE;
	return kind != DENSE || take_folder(out, file, i, json_object_get(module, "path"), err);
}

bool model_read_modules(const struct file *file, struct module_list *out, struct error *err)
{
	json_t *root = json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err), *module;
	struct hf_reader r = { .label = file->label, .root = root, .err = err };
	bool ok = root && (json_is_array(root) || hf_wrong_kind(&r, "its content", root, "an array"));
	bool pooled = false, normal = false;
	size_t i;

	out->n_dense = 0;
	json_array_foreach(root, i, module) ok = ok && take_module(out, file, i, module, &pooled, &normal, err);
	json_decref(root);
	return ok;
}

/* ---- config.json of a dense layer */

static bool take_act(struct hf_reader *r, enum host_act *act)
{
	static const struct {
		const char *name;
		enum host_act act;
	} known[] = { { "torch.nn.modules.linear.Identity", HOST_IDENTITY },
		      { "torch.nn.modules.activation.Tanh", HOST_TANH },
		      { "torch.nn.modules.activation.ReLU", HOST_RELU },
		      { "torch.nn.modules.activation.GELU", HOST_GELU },
		      { "torch.nn.modules.activation.Sigmoid", HOST_SIGMOID } };
	const char *name = NULL;
	char text[100];

	if (!hf_get_string(r, r->root, "activation_function", &name))
		return false;
	if (!name)
		return error_set(r->err, ERROR_FORMAT, "%s: activation_function is missing", r->label);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0) {
			*act = known[i].act;
			return true;
		}
	return hf_unsupported(r, "activation_function", error_quote(text, sizeof text, name, strlen(name)),
	                      "torch.nn.modules.linear.Identity, or Tanh, ReLU, GELU or Sigmoid of "
	                      "torch.nn.modules.activation");
}

/* Which of a text's vectors the layer reads and writes. */
static bool check_name(struct hf_reader *r, const char *field)
{
	static const char usual[] = "sentence_embedding";
	const char *name = NULL;
	char text[100];

	return hf_get_string(r, r->root, field, &name) &&
	       (!name || strcmp(name, usual) == 0 ||
	        hf_unsupported(r, field, error_quote(text, sizeof text, name, strlen(name)), usual));
}

static bool is_off(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0);
}

/* A field that nobody knows might be a part of the computation. */
static bool check_others(struct hf_reader *r)
{
	static const char known[] = "in_features out_features bias activation_function module_input_name "
				    "module_output_name";
	const char *key;
	char text[100];
	json_t *v;

	json_object_foreach(r->root, key, v) if (!is_off(v) && !arch_word_in(known, key)) return error_set(
		r->err, ERROR_UNSUPPORTED,
		"%s: has the field %s, which jitrun does not know of a Dense layer, and without it the results might "
		"be wrong",
		r->label, error_quote(text, sizeof text, key, strlen(key)));
	return true;
}

static bool take_config(struct hf_reader *r, struct model_dense *out)
{
	*out = (struct model_dense){ .biased = true }; /* as the class has it where nothing is said */
	return hf_get_u32(r, r->root, "in_features", REQUIRED, MODEL_MAX_WIDTH, &out->in) &&
	       hf_get_u32(r, r->root, "out_features", REQUIRED, MODEL_MAX_WIDTH, &out->out) &&
	       hparam_range(r->label, "in_features", out->in, 1, MODEL_MAX_WIDTH, r->err) &&
	       hparam_range(r->label, "out_features", out->out, 1, MODEL_MAX_WIDTH, r->err) &&
	       hf_get_bool(r, r->root, "bias", &out->biased) && take_act(r, &out->act) &&
	       check_name(r, "module_input_name") && check_name(r, "module_output_name") && check_others(r);
}

bool model_read_dense_config(const struct file *file, struct model_dense *out, struct error *err)
{
	json_t *root = json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err);
	struct hf_reader r = { .label = file->label, .root = root, .err = err };
	bool ok = root &&
	          (json_is_object(root) ? take_config(&r, out) : hf_wrong_kind(&r, "its content", root, "an object"));

	json_decref(root);
	return ok;
}

/* ---- its weights */

struct weights_file {
	struct file file;
	struct safetensors st;
	struct found_tensor t[2]; /* the matrix, the bias */
};
static const char *const tensor_names[2] = { "linear.weight", "linear.bias" };

static bool open_in(struct file *f, const char *dir, const char *folder, const char *name, struct error *err)
{
	char inner[300];

	snprintf(inner, sizeof inner, "%s/%s", folder, name);
	char *path = model_join(dir, inner, err);
	bool ok = path && file_open(f, path, err);
	free(path);
	return ok;
}

static bool check_tensor(const struct model_dense *d, const struct safetensors_tensor *t, int which, const char *label,
                         struct error *err)
{
	const uint64_t rank = which ? 1 : 2, rows = d->out, cols = which ? 1 : d->in;

	if (t->rank != rank || t->dim[0] != rows || t->dim[1] != cols)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has shape (%" PRIu64 " x %" PRIu64 ") in %" PRIu32
		                 " dimensions, expected (%" PRIu64 " x %" PRIu64 ") in %" PRIu64 " as config.json says",
		                 label, tensor_names[which], t->dim[0], t->dim[1], t->rank, rows, cols, rank);
	return model_floats_known(t->type) ||
	       error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported for a Dense layer",
	                 label, tensor_names[which], dtype_table[t->type].name);
}

/* All tensors of the file are the layer's, and there is none beside them. */
static bool find_tensors(struct weights_file *w, const struct model_dense *d, struct error *err)
{
	bool there[2] = { false, false };
	char text[100];

	for (uint32_t i = 0; i < w->st.n_tensors; i++) {
		const struct safetensors_tensor *t = &w->st.tensor[i];
		int which = 0;
		while (which < 1 + d->biased && (t->name.n != strlen(tensor_names[which]) ||
		                                 memcmp(t->name.p, tensor_names[which], (size_t)t->name.n) != 0))
			which++;
		if (which == 1 + d->biased)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: the tensor %s is none of a Dense layer%s, expected linear.weight%s",
			                 w->file.label, error_quote(text, sizeof text, t->name.p, t->name.n),
			                 d->biased ? "" : " without a bias", d->biased ? " and linear.bias" : "");
		if (!check_tensor(d, t, which, w->file.label, err))
			return false;
		there[which] = true;
		w->t[which] = (struct found_tensor){
			.type = t->type, .offset = t->offset, .bytes = t->bytes, .label = w->file.label
		};
	}
	for (int which = 0; which < 1 + d->biased; which++)
		if (!there[which])
			return error_set(err, ERROR_FORMAT, "%s: the tensor %s is missing", w->file.label,
			                 tensor_names[which]);
	return true;
}

static bool open_weights(struct weights_file *w, const char *dir, const char *folder, bool header_only,
                         const struct model_dense *d, struct error *err)
{
	char tensors[300], pickled[300];

	snprintf(tensors, sizeof tensors, "%s/model.safetensors", folder);
	snprintf(pickled, sizeof pickled, "%s/pytorch_model.bin", folder);
	if (!model_exists(dir, tensors) && model_exists(dir, pickled))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s%s: is a file of PyTorch, which is not read, expected model.safetensors beside it",
		                 dir, pickled);
	return open_in(&w->file, dir, folder, "model.safetensors", err) &&
	       safetensors_open(&w->st, &w->file, header_only, err) && find_tensors(w, d, err);
}

static bool read_tensor(const void *user, uint32_t layer, bool bias, uint64_t n, float *out, struct error *err)
{
	const struct weights_file *w = (const struct weights_file *)user + layer;

	return model_read_floats(&w->file, &w->t[bias], n, out, err) && file_same(&w->file, err) &&
	       model_check_finite(w->file.label, tensor_names[bias], out, n, err);
}

static bool open_layer(struct model *m, struct weights_file *w, const char *dir, const char *folder, struct error *err)
{
	struct file config = { 0 };
	struct model_dense *d = &m->dense[m->n_dense];
	bool ok = open_in(&config, dir, folder, "config.json", err) && file_text(&config, JSON_MAX_CONFIG, err) &&
	          model_read_dense_config(&config, d, err) &&
	          open_weights(w, dir, folder, m->file->flags & MODEL_HEADER_ONLY, d, err);

	file_close(&config);
	m->n_dense += ok;
	return ok;
}

static bool open_layers(struct model *m, const struct module_list *list, const char *dir, struct error *err)
{
	struct weights_file *w = calloc(MODEL_MAX_DENSE, sizeof *w);
	bool ok = w || error_set(err, ERROR_MEMORY, "no memory for dense layers");

	for (uint32_t i = 0; ok && i < list->n_dense; i++)
		ok = open_layer(m, &w[i], dir, list->dense[i], err);
	ok = ok && model_fill_dense(m, read_tensor, w, err);
	for (uint32_t i = 0; w && i < MODEL_MAX_DENSE; i++) {
		safetensors_free(&w[i].st);
		file_close(&w[i].file);
	}
	free(w);
	return ok;
}

bool model_open_modules(struct model *m, const char *dir, struct error *err)
{
	struct module_list *list;
	struct file file = { 0 };

	if (!model_exists(dir, "modules.json"))
		return true;
	if (!(list = calloc(1, sizeof *list)))
		return error_set(err, ERROR_MEMORY, "no memory for a list of modules");
	char *path = model_join(dir, "modules.json", err);
	bool ok = path && file_open(&file, path, err) && file_text(&file, JSON_MAX_CONFIG, err) &&
	          model_read_modules(&file, list, err) && (!list->n_dense || open_layers(m, list, dir, err));

	file_close(&file);
	free(path);
	free(list);
	return ok;
}
