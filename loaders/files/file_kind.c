/* loaders/files/file_kind.c - what a file is that was taken for another. See file_kind.h. */
#include "loaders/files/file_kind.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { LOOKED_AT = 512, SHOWN = 60, TAR_MARK = 257 };

static bool begins(const uint8_t *p, uint64_t n, const char *with, size_t length)
{
	return n >= length && memcmp(p, with, length) == 0;
}

static uint64_t blanks(const uint8_t *p, uint64_t n)
{
	uint64_t i = begins(p, n, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
		i++;
	return i;
}

static bool is_web_page(const uint8_t *p, uint64_t n)
{
	static const char *const begin[] = { "<!doctype html", "<html", "<head",  "<body",
		                             "<?xml",          "<!--",  "<error", "<script" };
	const uint64_t at = blanks(p, n);

	for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
		size_t length = strlen(begin[i]);
		if (n - at >= length && strncasecmp((const char *)p + at, begin[i], length) == 0)
			return true;
	}
	return false;
}

bool file_is_stand_in(const uint8_t *p, uint64_t n, const char *label, struct error *err)
{
	static const char lfs[] = "version https://git-lfs.github.com/spec/",
			  old[] = "version https://hawser.github.com/spec/";

	if (begins(p, n, lfs, sizeof lfs - 1) || begins(p, n, old, sizeof old - 1)) {
		error_set(err, ERROR_FORMAT,
		          "%s: is a Git LFS pointer, not the file that it stands for; 'git lfs pull' in its directory "
		          "fetches that",
		          label);
		return true;
	}
	if (is_web_page(p, n)) {
		error_set(
			err, ERROR_FORMAT,
			"%s: is a web page (HTML or XML), not a model's file: a website answered with it when the file "
			"was downloaded; download the file itself",
			label);
		return true;
	}
	return false;
}

/* Whether the beginning is text, as far as it is looked at. */
static bool is_text(const uint8_t *p, uint64_t n)
{
	uint64_t i = 0;

	for (unsigned length; i < n; i += length) {
		uint32_t code;
		length = text_char(p + i, (size_t)(n - i), &code);
		if (!length)
			return n - i < 4 && i > 0; /* a character that is cut off */
		if (text_is_control(code) && code != '\n' && code != '\r' && code != '\t')
			return false;
	}
	return n > 0;
}

/* What files of programs and archives begin with. */
static const char *known_beginning(const uint8_t *p, uint64_t n)
{
	static const struct {
		const char *begin;
		size_t n;
		const char *what;
	} known[] = {
		{ "GGUF", 4, "a GGUF file; give it the ending .gguf" },
		{ "PK\3\4", 4,
		  "a ZIP archive, as PyTorch's .bin and .pt files are; jitrun reads GGUF and safetensors" },
		{ "\x1f\x8b", 2, "compressed with gzip; unpack it with gunzip" },
		{ "\xfd"
		  "7zXZ",
		  6, "compressed with xz; unpack it with unxz" },
		{ "\x28\xb5\x2f\xfd", 4, "compressed with zstd; unpack it with unzstd" },
		{ "BZh", 3, "compressed with bzip2; unpack it with bunzip2" },
		{ "7z\xbc\xaf\x27\x1c", 6, "a 7z archive; unpack it" },
		{ "Rar!", 4, "a RAR archive; unpack it" },
		{ "\x89HDF", 4,
		  "an HDF5 file, as those of Keras and TensorFlow are; jitrun reads GGUF and safetensors" },
		{ "\x93NUMPY", 6, "an array of NumPy; jitrun reads GGUF and safetensors" },
		{ "lmgg", 4, "a GGML file of before August 2023; jitrun reads GGUF, which llama.cpp makes of it" },
		{ "fmgg", 4, "a GGML file of before August 2023; jitrun reads GGUF, which llama.cpp makes of it" },
		{ "tjgg", 4, "a GGML file of before August 2023; jitrun reads GGUF, which llama.cpp makes of it" },
		{ "algg", 4, "an adapter (LoRA) in a form of before August 2023" },
		{ "FUGG", 4, "a GGUF file of a big-endian machine" },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (begins(p, n, known[i].begin, known[i].n))
			return known[i].what;
	if (n > 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5 &&
	    (p[2] == '}' || p[2] == 0x95 || p[2] == 0x8a || p[2] == 'c'))
		return "a pickle of Python, as PyTorch's .bin and .pt files are; jitrun reads GGUF and safetensors";
	if (n > TAR_MARK + 5 && memcmp(p + TAR_MARK, "ustar", 5) == 0)
		return "a tar archive; unpack it";
	if (n > 9 && !p[3] && !p[4] && !p[5] && !p[6] && !p[7] && p[8] == '{' && (p[9] == '"' || p[9] == '}'))
		return "a safetensors file; give it the ending .safetensors";
	return NULL;
}

static bool is_empty(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return n >= 16;
}

/* An error message of a server, as a rule. */
static void add_text(const uint8_t *p, uint64_t n, struct error *err)
{
	char text[2 * SHOWN], wrong[sizeof err->text];
	uint64_t at = blanks(p, n);
	uint64_t shown = n - at < SHOWN ? n - at : SHOWN;
	const bool json = at < n && (p[at] == '{' || p[at] == '[');

	while (shown && at + shown < n && (p[at + shown] & 0xc0) == 0x80)
		shown--;
	memcpy(wrong, err->text, sizeof wrong);
	*err = (struct error){ 0 };
	error_set(err, ERROR_FORMAT, "%s: it is %s, \"%s\", perhaps what a server answered in place of the file", wrong,
	          json ? "JSON" : "a text", error_quote(text, sizeof text, (const char *)p + at, (size_t)shown));
}

void file_say_kind(struct file *f, struct error *err)
{
	const uint64_t n = f->size < LOOKED_AT ? f->size : LOOKED_AT;
	struct error kind = { 0 };
	const char *what, *other;
	size_t mark;

	if (!err || err->code != ERROR_FORMAT || !file_reach(f, n, &kind))
		return;
	if ((what = known_beginning(f->base, n)))
		error_set(&kind, ERROR_FORMAT, "%s: is %s", f->label, what);
	else if (is_empty(f->base, n))
		error_set(&kind, ERROR_FORMAT,
		          "%s: begins with %d bytes 0: it was not downloaded to its end, or is damaged", f->label,
		          (int)n);
	else if ((other = text_coding(f->base, (size_t)n, &mark)))
		error_set(&kind, ERROR_FORMAT, "%s: is a text in %s, not a model's weights", f->label, other);
	else if (!file_is_stand_in(f->base, n, f->label, &kind) && is_text(f->base, n))
		add_text(f->base, n, err);
	if (kind.code)
		*err = kind;
}
