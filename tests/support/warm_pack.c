#include "tests/support/warm_pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "kernels-templates/templates.h"

void warm_pack(const char *model, const char *pack, const struct key_list_options *o, const char *left_out)
{
	struct error err = { 0 };
	struct model m;
	struct key *keys = NULL;
	size_t n = 0, made = 0;

	if (!model_open(&m, model, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !key_list_kernels(&m.spec, o, &keys, &n, &err))
		fail_msg("%s", err.text);
	struct pack_item *item = calloc(n, sizeof *item);
	assert_non_null(item);
	for (size_t i = 0; i < n; i++) {
		char text[KEY_TEXT_MAX];
		if (left_out && strcmp(key_text(&keys[i], text, sizeof text), left_out) == 0)
			continue;
		item[made].key = keys[i];
		if (!compile_key(&item[made].object, &keys[i], template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
		made++;
	}
	assert_int_equal(made, left_out ? n - 1 : n);
	if (!pack_write(pack, item, made, &err))
		fail_msg("%s", err.text);
	assert_int_equal(chmod(pack, 0444), 0);
	for (size_t i = 0; i < made; i++)
		object_free(&item[i].object);
	free(item);
	free(keys);
	model_close(&m);
}
