/* tests/server/odd_pictures.h - parts of messages that are pictures and wrong, with what is said of each; pictures that
 * tools return. */
#ifndef TESTS_ODD_PICTURES_H
#define TESTS_ODD_PICTURES_H

static const struct {
	const char *part, *why;
} odd_parts[] = {
	{ "{\"type\":\"image_url\"}", "URL that is missing" },
	{ "{\"type\":\"image_url\",\"image_url\":null}", "URL that is missing" },
	{ "{\"type\":\"image_url\",\"image_url\":7}", "URL that is an integer" },
	{ "{\"type\":\"image_url\",\"image_url\":{}}", "URL that is missing" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":[]}}", "URL that is an array" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"\"}}", "URL that is empty" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"http://a/b.png\"}}", "http address" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"HTTPS://a/b.png\"}}", "http address" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"file:///etc/passwd\"}}", "no picture etc/passwd" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"file://../../etc/passwd\"}}", "no picture" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"ftp://a/b.png\"}}", "begins with ftp://a/b.png" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png,abc\"}}", "not in base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:;base64\"}}", "not in base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64;a=b,AAAA\"}}", "not in base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"DATA:image/png;BASE64,AAAA\"}}", "picture 1" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,\"}}", "without data" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,A\"}}", "no base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AB*D\"}}", "no base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AA==AA==\"}}", "no base64" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}}", "picture 1" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\",\"detail\":1}}", "detail" },
	{ "{\"type\":\"input_image\",\"file_id\":\"f1\"}", "file_id" },
	{ "{\"type\":\"image\",\"source\":{}}", "source without a type" },
	{ "{\"type\":\"image\",\"source\":\"a\"}", "source that is a string" },
	{ "{\"type\":\"image\",\"source\":{\"type\":\"file\"}}", "source of type file" },
	{ "{\"type\":\"image\",\"source\":{\"type\":\"base64\"}}", "data are missing" },
	{ "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":1}}", "data are an integer" },
	{ "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":1,\"data\":\"AAAA\"}}", "media_type" },
	{ "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://a\"}}", "http address" },
	{ "{\"type\":\"video_url\"}", "type video_url" },
	/* BMP files of one line of zeros and of headers that claim much: 65 535 x 65 535, 0 x 0 */
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:;base64,Qk06AAAAAAAAADYAAAAoAAAA//8AAP//"
	  "AAABABgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}}",
	  "pixels" },
	{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:;base64,"
	  "Qk06AAAAAAAAADYAAAAoAAAAAAAAAAAAAAABABgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}}",
	  "picture 1" },
};

/* Of each API, in front of the picture and behind it. */
static const struct {
	const char *path, *count, *before, *behind;
} tool_pictures[] = {
	{ "/v1/chat/completions", "usage/prompt_tokens",
	  "{\"max_tokens\":4,\"messages\":[{\"role\":\"user\",\"content\":\"look\"},{\"role\":\"assistant\","
	  "\"content\":\"\","
	  "\"tool_calls\":[{\"id\":\"t1\",\"type\":\"function\",\"function\":{\"name\":\"see\",\"arguments\":\"{}\"}}]}"
	  ","
	  "{\"role\":\"tool\",\"tool_call_id\":\"t1\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
	  "\"data:image/png;base64,",
	  "\"}}]}]}" },
	{ "/v1/messages", "usage/input_tokens",
	  "{\"max_tokens\":4,\"messages\":[{\"role\":\"user\",\"content\":\"look\"},{\"role\":\"assistant\","
	  "\"content\":["
	  "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"see\",\"input\":{}}]},{\"role\":\"user\",\"content\":["
	  "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
	  "\"base64\",\"media_type\":\"image/png\",\"data\":\"",
	  "\"}}]}]}]}" },
	{ "/v1/responses", "usage/input_tokens",
	  "{\"max_output_tokens\":4,\"input\":[{\"role\":\"user\",\"content\":\"look\"},{\"type\":\"function_call\","
	  "\"call_id\":"
	  "\"t1\",\"name\":\"see\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"t1\","
	  "\"output\":["
	  "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,",
	  "\"}]}]}" },
};

#endif
