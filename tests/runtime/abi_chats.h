/* tests/runtime/abi_chats.h - a part of t_abi.c: calls that take the structs of conversations and answers,
 * and of draft models. */
#ifndef TESTS_ABI_CHATS_H
#define TESTS_ABI_CHATS_H

static const char chat_template[] = "{% for m in messages %}{{ m.content }}{% endfor %}", chat_messages[] = "[]";

/* Messages have to be there, where the caller's struct reaches that far. */
static int with_chat(void *p, jit_error *err)
{
	const struct {
		size_t at;
		const char *text;
	} must[] = { { offsetof(jit_chat_options, messages), chat_messages },
		     { offsetof(jit_chat_options, template_text), chat_template } };
	jit_chat out = JIT_CHAT();
	size_t size;

	memcpy(&size, p, sizeof size);
	for (size_t i = 0; i < 2; i++)
		if (size <= 4096 && must[i].at + sizeof must[i].text <= size)
			memcpy((uint8_t *)p + must[i].at, &must[i].text, sizeof must[i].text);
	int status = jit_chat_render(model, p, &out, err);
	jit_chat_free(&out);
	if (status == JIT_ERROR_ARGUMENT && size < must[0].at + sizeof must[0].text && size >= sizeof size &&
	    strstr(err->message, "messages is NULL"))
		*err = (jit_error){ 0 };
	return err->code;
}

/* What is to be given back lies elsewhere each time, and is taken out. */
static int fill_chat(void *p, jit_error *err)
{
	const jit_chat_options o = JIT_CHAT_OPTIONS(.messages = chat_messages, .template_text = chat_template);
	jit_chat own = JIT_CHAT(), zero = { 0 };
	size_t size;
	int status = jit_chat_render(model, &o, p, err);

	if (status != JIT_OK)
		return status;
	memcpy(&size, p, sizeof size);
	memcpy(&own, p, size < sizeof own ? size : sizeof own);
	jit_chat_free(&own);
	for (size_t at = sizeof size; at < sizeof own && at < size; at += sizeof size)
		if (at == offsetof(jit_chat, text) || at == offsetof(jit_chat, ids))
			memcpy((uint8_t *)p + at, &zero.text, sizeof zero.text);
	return JIT_OK;
}

static int with_answer(void *p, jit_error *err)
{
	jit_answer *a = jit_answer_open(model, p, err);

	jit_answer_close(a);
	return a ? JIT_OK : err->code;
}

/* Tools have to be there, where the caller's struct reaches that far. */
static const char forced_tools[] = "[{\"function\":{\"name\":\"f\"}}]";
static int with_forced(void *p, jit_error *err)
{
	const char *const tools = forced_tools;
	const size_t at = offsetof(jit_forced_options, tools);
	jit_forced_call out = JIT_FORCED_CALL();
	size_t size;

	memcpy(&size, p, sizeof size);
	if (size <= 4096 && at + sizeof tools <= size)
		memcpy((uint8_t *)p + at, &tools, sizeof tools);
	jit_call_force(model, p, &out, err);
	jit_forced_call_free(&out);
	if (size < at + sizeof tools && strstr(err->message, "has no function to call"))
		*err = (jit_error){ 0 };
	return err->code;
}

/* Of an answer's text, which lies at the same place each time. */
static int fill_event(void *p, jit_error *err)
{
	static jit_answer *a;
	const char *text, *const none = NULL;
	const size_t at = offsetof(jit_answer_event, text);
	size_t size;
	int status;

	if (!a)
		a = jit_answer_open(model, NULL, err);
	status = jit_answer_feed(a, "text", 4, err);
	if (status == JIT_OK)
		status = jit_answer_next(a, p, err);
	memcpy(&size, p, sizeof size);
	if (status == JIT_OK && size >= at + sizeof text) { /* each feed may put its text elsewhere */
		memcpy(&text, (uint8_t *)p + at, sizeof text);
		assert_memory_equal(text, "text", 4);
		memcpy((uint8_t *)p + at, &none, sizeof none);
	}
	return status;
}

static int fill_forced(void *p, jit_error *err)
{
	const jit_forced_options o = JIT_FORCED_OPTIONS(.tools = forced_tools, .template_text = "<tool_call>");
	static const size_t ours[] = { offsetof(jit_forced_call, grammar), offsetof(jit_forced_call, prompt),
		                       offsetof(jit_forced_call, ids), offsetof(jit_forced_call, opened) };
	jit_forced_call own = JIT_FORCED_CALL();
	const void *const zero = NULL;
	size_t size;
	int status = jit_call_force(model, &o, p, err);

	if (status != JIT_OK)
		return status;
	memcpy(&size, p, sizeof size);
	memcpy(&own, p, size < sizeof own ? size : sizeof own);
	jit_forced_call_free(&own);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (ours[i] + sizeof zero <= size)
			memcpy((uint8_t *)p + ours[i], &zero, sizeof zero);
	return JIT_OK;
}

#include "include/jitrun_adapters.h"
#include "tests/runtime/made_encoder.h"
#include "tests/support/lora_folder.h"

static jit_adapter *adapter;
static jit_image_encoder *encoder; /* of pictures, without a tower */

/* Of `model`, from a folder that is gone afterwards. */
static void open_adapter(void)
{
	char folder[] = "/tmp/t_abi-XXXXXX", line[100];

	assert_non_null(mkdtemp(folder));
	lora_folder(folder, &(struct lora_written){ .module = lora_tale, .n = 1, .rank = 4, .size = 0.1f, .seed = 1 });
	adapter = jit_adapter_open(model, folder, NULL);
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_true(system(line) == 0 && adapter);
	encoder = encoder_make(model);
	assert_non_null(encoder);
}

static int with_image(void *p, jit_error *err)
{
	jit_image *image = jit_image_open(encoder, dot, sizeof dot, p, err);

	jit_image_close(image);
	return image ? JIT_OK : err->code;
}

static int fill_image(void *p, jit_error *err)
{
	jit_image *image = jit_image_open(encoder, dot, sizeof dot, NULL, err);
	const int status = jit_image_get_info(image, p, err);

	jit_image_close(image);
	return status;
}

static int fill_adapter(void *p, jit_error *err) { return jit_adapter_get_info(adapter, p, err); }

static int with_session(void *p, jit_error *err);
/* The struct has a model where it has a place for one. */
static int with_draft(void *p, jit_error *err)
{
	jit_draft_options *o = p;

	if (o->size % sizeof(size_t) == 0 && o->size >= offsetof(jit_draft_options, kv))
		o->model = model;
	const int status = with_session(&JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .draft = p), err);
	if (o->size % sizeof(size_t) == 0 && o->size >= offsetof(jit_draft_options, kv))
		o->model = NULL;
	return status;
}

static int fill_card_stats(void *p, jit_error *err) { return jit_session_get_card_stats(on_card, p, err); }
static int fill_draft_stats(void *p, jit_error *err) { return jit_session_get_draft_stats(session, p, err); }

#endif
