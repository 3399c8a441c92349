/* tests/server/t_text_file.c - the texts that jitserve reads at its start: without the mark of their byte order, and
 * refused by name where they are not UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/http/keys.h"
#include "server/request/text_file.h"

static char path[] = "/tmp/t_text_file-XXXXXX";

static void write_file(const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void must_be(const char *bytes, size_t n, const char *want)
{
	struct error err = { 0 };
	size_t length;

	write_file(bytes, n);
	char *text = text_file_read(path, 100, &length, &err);
	if (!text)
		fail_msg("%s", err.text);
	assert_int_equal(length, strlen(want));
	assert_string_equal(text, want);
	free(text);
}

static void must_refuse(const char *bytes, size_t n, const char *says)
{
	struct error err = { 0 };
	size_t length;

	write_file(bytes, n);
	assert_null(text_file_read(path, 100, &length, &err));
	if (!strstr(err.text, says))
		fail_msg("expected \"%s\", got \"%s\"", says, err.text);
}

static void test_texts(void **unused)
{
	must_be("", 0, "");
	must_be("text", 4, "text");
	must_be("\xef\xbb\xbftext", 7, "text");
	must_be("\xef\xbb\xbf", 3, "");
	must_be("\xef\xbb\xbf\xef\xbb\xbf!", 7, "\xef\xbb\xbf!"); /* the second one is a character */
	must_be("\xef\xbbtext", 6, "\xef\xbbtext");
	must_be("t\xef\xbb\xbf", 4, "t\xef\xbb\xbf");
	must_refuse("\xff\xfet\0e\0", 6, "is a text in UTF-16, expected UTF-8");
	must_refuse("\xfe\xff\0t\0e", 6, "is a text in UTF-16, expected UTF-8");
	must_refuse("t\0e\0x\0t\0", 8, "is a text in UTF-16, expected UTF-8");
	must_refuse("\0t\0e\0x\0t", 8, "is a text in UTF-16, expected UTF-8");
	must_refuse("\xff\xfe\0\0t\0\0\0", 8, "is a text in UTF-32, expected UTF-8");
	must_refuse("\0\0\xfe\xff\0\0\0t", 8, "is a text in UTF-32, expected UTF-8");
	char long_text[101];
	memset(long_text, 'a', sizeof long_text);
	must_refuse(long_text, sizeof long_text, "has more than 100 bytes");
}

static void test_keys(void **unused)
{
	struct error err = { 0 };

	write_file("\xef\xbb\xbfsecret\nother\n", 16);
	struct keys *k = keys_read(path, &err);
	if (!k)
		fail_msg("%s", err.text);
	assert_int_equal(keys_count(k), 2);
	assert_true(keys_has(k, "secret", 6));
	keys_free(k);
	write_file("\xff\xfes\0e\0c\0", 8);
	assert_null(keys_read(path, &err));
	assert_non_null(strstr(err.text, "is a text in UTF-16"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts), cmocka_unit_test(test_keys) };
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
