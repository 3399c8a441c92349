/* server/tls.c - the certificate and the key by which the server encrypts what it says. */
#include "server/tls.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "server/text_file.h"

enum { MOST = 1 << 20 };

static char *read_pem(const char *path, const char *what, struct error *err)
{
	size_t n = 0;
	char *text = text_file_read(path, MOST, &n, err);

	if (text && strlen(text) == n && strstr(text, "-----BEGIN "))
		return text;
	if (text)
		error_set(err, ERROR_FORMAT, "%s: is no %s in PEM form, which begins with -----BEGIN", path, what);
	free(text);
	return NULL;
}

bool tls_read(struct tls *t, const char *certificate, const char *key, struct error *err)
{
	if (!certificate && !key)
		return true;
	if (!certificate || !key)
		return error_set(err, ERROR_ARGUMENT, "--tls-cert and --tls-key belong together, and %s is missing",
		                 certificate ? "--tls-key" : "--tls-cert");
	if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the HTTP library here, libmicrohttpd %s, was built without TLS; leave --tls-cert and "
		                 "--tls-key out, and put a reverse proxy that encrypts before the server",
		                 MHD_get_version());
	t->certificate = read_pem(certificate, "certificate", err);
	t->key = t->certificate ? read_pem(key, "key", err) : NULL;
	return t->key != NULL;
}

void tls_free(struct tls *t)
{
	if (t->key)
		explicit_bzero(t->key, strlen(t->key));
	free(t->key);
	free(t->certificate);
	*t = (struct tls){ 0 };
}
