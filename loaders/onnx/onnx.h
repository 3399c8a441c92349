/* loaders/onnx/onnx.h - ONNX files as graphs of tensors.
 *
 * Owns: what a file says (its inputs, outputs and metadata), and the import, which draws the file's graph for exact
 * sizes. A file is opened once, and imported as often as sizes change. docs/onnx.md lists the operators.
 *
 * Files are hostile: what does not decode, or asks for what is not there, is refused in one sentence that names the
 * node, its operator, and the attribute or input.
 */
#ifndef LOADERS_ONNX_ONNX_H
#define LOADERS_ONNX_ONNX_H

#include "graph/text.h"

struct onnx_file;

/* Reads and checks a file. External data of tensors is looked for in its folder and below, nowhere else. */
struct onnx_file *onnx_open(const char *path, struct error *err);
/* The same of bytes, which are copied. name: for messages. folder: of external data; NULL: files with external data are
 * refused. */
struct onnx_file *onnx_open_bytes(const char *name, const void *bytes, size_t n, const char *folder, struct error *err);
void onnx_close(struct onnx_file *f);

/* A dimension has a size, or a name that is bound when the file is imported, or neither (name is NULL, size 0). */
struct onnx_dim {
	const char *name;
	uint64_t size;
	bool is_fixed;
};
/* An input or output of the file's graph. type: JIT_TYPE_F32 and so on; -1: one that graphs do not have. elements: the
 * type's number in the file; floats of 8 and 4 bits are held as f32, integers of 4 and 2 bits as i8 and u8. */
struct onnx_slot {
	const char *name;
	int type, elements;
	bool has_shape;
	unsigned rank;
	struct onnx_dim dim[TENSOR_MAX_RANK];
};
/* What the file says. All pointers are the file's; the counts are those of the arrays. */
struct onnx_about {
	const char *graph, *producer, *producer_version;
	int64_t ir_version, opset; /* opset: of the operators of ONNX itself */
	uint32_t nodes, inputs, outputs, metadata, weights;
	const struct onnx_slot *input, *output; /* inputs that have no initializer */
};
const struct onnx_about *onnx_about(const struct onnx_file *f);
/* Entry i of the metadata. */
void onnx_metadata(const struct onnx_file *f, uint32_t i, const char **key, const char **value);

/* What is known of an input when the file is imported. shape: NULL: what the file says, with sizes. value: NULL, or
 * the input's value: it becomes a constant of the graph, and the graph has one input less. */
struct onnx_bind {
	const char *input;
	const struct shape *shape;
	const struct tensor *value;
};
struct onnx_sizes {
	const struct graph_size *size; /* dimensions by their names */
	size_t sizes;
	const struct onnx_bind *bind;
	size_t binds;
};
/* Why an import was refused: input is the one whose value a shape depends on, so that the import may succeed when that
 * value is given in onnx_bind; NULL: something else is the reason. It points into the file. */
struct onnx_refusal {
	const char *input;
};
/* Draws the graph into g, which is initialised here and to be freed by the caller if this is true. Inputs and outputs
 * have the file's names and order. Weights are constants. why may be NULL. */
bool onnx_import(struct onnx_file *f, const struct onnx_sizes *sizes, struct tensor_graph *g, struct onnx_refusal *why,
                 struct error *err);

/* A TensorProto that lies alone in a file, as ONNX's own tests have it. */
bool onnx_read_tensor(const char *name, const void *bytes, size_t n, struct tensor *out, struct error *err);

#endif
