/* loaders/onnx/proto.c - the tables that libprotobuf-c decodes by, and what is checked before it does. */
#include "loaders/onnx/proto.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- tables */

#define MESSAGE(message) static const ProtobufCMessageDescriptor message##_table;
#define FIELD(message, number, type, name)
#define ONE(message, number, of, name)
#define MANY(message, number, of, name)
#define END(message)
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

#define LABEL_ONE PROTOBUF_C_LABEL_OPTIONAL
#define LABEL_MANY PROTOBUF_C_LABEL_REPEATED
#define ROW(message, number, label, type, quantifier, name, of) \
	{ #name, number, label, type, quantifier, offsetof(struct onnx_##message, name), of, NULL, 0, 0, NULL, NULL },
#define SCALAR(message, number, type, name) \
	ROW(message, number, LABEL_ONE, type, offsetof(struct onnx_##message, has_##name), name, NULL)
#define REPEATED(message, number, type, name) \
	ROW(message, number, LABEL_MANY, type, offsetof(struct onnx_##message, n_##name), name, NULL)
#define ROW_INT(m, n, name) SCALAR(m, n, PROTOBUF_C_TYPE_INT64, name)
#define ROW_INT32(m, n, name) SCALAR(m, n, PROTOBUF_C_TYPE_INT32, name)
#define ROW_FLOAT(m, n, name) SCALAR(m, n, PROTOBUF_C_TYPE_FLOAT, name)
#define ROW_BYTES(m, n, name) SCALAR(m, n, PROTOBUF_C_TYPE_BYTES, name)
#define ROW_TEXT(m, n, name) ROW(m, n, LABEL_ONE, PROTOBUF_C_TYPE_STRING, 0, name, NULL)
#define ROW_INTS(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_INT64, name)
#define ROW_INT32S(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_INT32, name)
#define ROW_UINTS(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_UINT64, name)
#define ROW_FLOATS(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_FLOAT, name)
#define ROW_DOUBLES(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_DOUBLE, name)
#define ROW_TEXTS(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_STRING, name)
#define ROW_BLOBS(m, n, name) REPEATED(m, n, PROTOBUF_C_TYPE_BYTES, name)

#define MESSAGE(message) static const ProtobufCFieldDescriptor message##_fields[] = {
#define FIELD(message, number, type, name) ROW_##type(message, number, name)
#define ONE(message, number, of, name) ROW(message, number, LABEL_ONE, PROTOBUF_C_TYPE_MESSAGE, 0, name, &of##_table)
#define MANY(message, number, of, name) \
	ROW(message, number, LABEL_MANY, PROTOBUF_C_TYPE_MESSAGE, offsetof(struct onnx_##message, n_##name), name, \
	    &of##_table)
#define END(message) \
	} \
	;
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

/* Which row of the table above a field has. */
#define MESSAGE(message) enum {
#define FIELD(message, number, type, name) ROW_OF_##message##_##name,
#define ONE(message, number, of, name) ROW_OF_##message##_##name,
#define MANY(message, number, of, name) ROW_OF_##message##_##name,
#define END(message) \
	ROWS_OF_##message \
	} \
	;
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

/* Ranges of numbers, here one for each field. The last row says where the one before it ends. */
#define MESSAGE(message) static const ProtobufCIntRange message##_ranges[] = {
#define FIELD(message, number, type, name) { number, ROW_OF_##message##_##name },
#define ONE(message, number, of, name) { number, ROW_OF_##message##_##name },
#define MANY(message, number, of, name) { number, ROW_OF_##message##_##name },
#define END(message) \
	{ \
		0, ROWS_OF_##message \
	} \
	} \
	;
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

#define MESSAGE(message) \
	static const ProtobufCMessageDescriptor message##_table = { \
		PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC, \
		"onnx." #message, \
		#message, \
		"struct onnx_" #message, \
		"onnx", \
		sizeof(struct onnx_##message), \
		ROWS_OF_##message, \
		message##_fields, \
		NULL, \
		ROWS_OF_##message, \
		message##_ranges, \
		NULL, \
		NULL, \
		NULL, \
		NULL \
	};
#define FIELD(message, number, type, name)
#define ONE(message, number, of, name)
#define MANY(message, number, of, name)
#define END(message)
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

/* ---- before anything is decoded: how deep messages lie in messages */

struct wire {
	const uint8_t *p, *end;
};

static bool take_varint(struct wire *w, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
		const uint8_t byte = *w->p++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* Steps over the value of a field; *inner: the bytes of one that has a length. */
static bool take_value(struct wire *w, unsigned kind, struct wire *inner)
{
	uint64_t n = 0;

	*inner = (struct wire){ w->p, w->p };
	if (kind == PROTOBUF_C_WIRE_TYPE_VARINT)
		return take_varint(w, &n);
	if (kind == PROTOBUF_C_WIRE_TYPE_64BIT || kind == PROTOBUF_C_WIRE_TYPE_32BIT)
		n = kind == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
	else if (kind != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED || !take_varint(w, &n))
		return false;
	if (n > (uint64_t)(w->end - w->p))
		return false;
	*inner = (struct wire){ w->p, w->p + n };
	w->p += n;
	return true;
}

static const ProtobufCFieldDescriptor *row_of(const ProtobufCMessageDescriptor *d, uint64_t number)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (d->fields[i].id == number)
			return &d->fields[i];
	return NULL;
}

/* Whether the bytes are fields, and messages lie in messages at most `depth` times. */
static bool is_sound(const ProtobufCMessageDescriptor *d, struct wire w, unsigned depth, const char *what,
                     const uint8_t *base, struct error *err)
{
	if (depth == 0)
		return error_set(err, ERROR_FORMAT, "%s: messages lie in messages more than %d times", what,
		                 PROTO_MAX_DEPTH);
	while (w.p < w.end) {
		const ptrdiff_t at = w.p - base;
		struct wire inner;
		uint64_t key;
		if (!take_varint(&w, &key) || key >> 3 == 0 || key >> 3 >= 1 << 29 ||
		    !take_value(&w, (unsigned)(key & 7), &inner))
			return error_set(err, ERROR_FORMAT, "%s: there is no whole field of %s at byte %td", what,
			                 d->short_name, at);
		const ProtobufCFieldDescriptor *row = row_of(d, key >> 3);
		if (!row || row->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if ((key & 7) != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
			return error_set(err, ERROR_FORMAT, "%s: %s of %s at byte %td is no message", what, row->name,
			                 d->short_name, at);
		if (!is_sound(row->descriptor, inner, depth - 1, what, base, err))
			return false;
	}
	return true;
}

/* ---- memory: what the decoder asks for is bounded by the size of what it decodes */

struct budget {
	size_t left;
};

static void *take(void *user, size_t size)
{
	struct budget *b = user;

	if (size > b->left)
		return NULL;
	b->left -= size;
	return malloc(size ? size : 1);
}

static void give(void *user, void *p)
{
	(void)user;
	free(p);
}

static void *decode(const ProtobufCMessageDescriptor *d, const char *what, const void *bytes, size_t n,
                    struct error *err)
{
	struct budget b = { n > SIZE_MAX / 256 ? SIZE_MAX : n * 128 + (1 << 20) };
	ProtobufCAllocator allocator = { take, give, &b };
	const uint8_t *p = bytes;

	if (!is_sound(d, (struct wire){ p, p + n }, PROTO_MAX_DEPTH, what, p, err))
		return NULL;
	void *m = protobuf_c_message_unpack(d, &allocator, n, p);
	if (!m)
		error_set(err, ERROR_FORMAT, "%s: the fields of %s have other types than ONNX's, or there is no memory",
		          what, d->short_name);
	return m;
}

static void release(void *m)
{
	ProtobufCAllocator allocator = { take, give, NULL };

	if (m)
		protobuf_c_message_free_unpacked(m, &allocator);
}

struct onnx_model *proto_decode_model(const char *what, const void *bytes, size_t n, struct error *err)
{
	return decode(&model_table, what, bytes, n, err);
}

struct onnx_tensor *proto_decode_tensor(const char *what, const void *bytes, size_t n, struct error *err)
{
	return decode(&tensor_table, what, bytes, n, err);
}

void proto_free_model(struct onnx_model *m) { release(m); }
void proto_free_tensor(struct onnx_tensor *t) { release(t); }
