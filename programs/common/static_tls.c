/* programs/common/static_tls.c - a static jitserve without HTTPS, where no static GnuTLS can be linked: that of Debian
 * needs p11-kit, which has no static library there.
 *
 * libmicrohttpd and our server name functions of GnuTLS, so they are here, and all fail; these are all that
 * libmicrohttpd 0.9.71 to 1.0 and server/http/tls.c name. Their types are of no interest: they take nothing and return
 * a code of GnuTLS, or NULL. */
#include <stddef.h>

enum { UNIMPLEMENTED = -1250 }; /* GNUTLS_E_UNIMPLEMENTED_FEATURE */

#define FAILS(name) \
	int name(void); \
	int name(void) { return UNIMPLEMENTED; }
#define GIVES_NULL(name) \
	const void *name(void); \
	const void *name(void) { return NULL; }

const char *gnutls_strerror(int code);
const char *gnutls_strerror(int code)
{
	(void)code;
	return "this program is linked statically and speaks no HTTPS";
}

extern void *(*gnutls_malloc)(size_t);
void *(*gnutls_malloc)(size_t);

FAILS(gnutls_alpn_set_protocols)
FAILS(gnutls_bye)
FAILS(gnutls_certificate_allocate_credentials)
FAILS(gnutls_certificate_free_credentials)
FAILS(gnutls_certificate_server_set_request)
FAILS(gnutls_certificate_set_dh_params)
FAILS(gnutls_certificate_set_retrieve_function2)
FAILS(gnutls_certificate_set_retrieve_function3)
FAILS(gnutls_certificate_set_x509_key_mem)
FAILS(gnutls_certificate_set_x509_key_mem2)
FAILS(gnutls_certificate_set_x509_trust_mem)
GIVES_NULL(gnutls_check_version)
FAILS(gnutls_cipher_get)
FAILS(gnutls_credentials_set)
FAILS(gnutls_deinit)
FAILS(gnutls_dh_params_deinit)
FAILS(gnutls_dh_params_import_pkcs3)
FAILS(gnutls_dh_params_init)
FAILS(gnutls_error_is_fatal)
FAILS(gnutls_global_deinit)
FAILS(gnutls_global_init)
FAILS(gnutls_handshake)
FAILS(gnutls_init)
FAILS(gnutls_priority_deinit)
FAILS(gnutls_priority_init)
FAILS(gnutls_priority_init2)
FAILS(gnutls_priority_set)
FAILS(gnutls_priority_set_direct)
FAILS(gnutls_protocol_get_version)
FAILS(gnutls_psk_allocate_server_credentials)
FAILS(gnutls_psk_free_server_credentials)
FAILS(gnutls_psk_set_server_credentials_function)
FAILS(gnutls_record_check_pending)
FAILS(gnutls_record_get_direction)
FAILS(gnutls_record_recv)
FAILS(gnutls_record_send)
GIVES_NULL(gnutls_session_get_ptr)
FAILS(gnutls_session_set_ptr)
FAILS(gnutls_transport_set_int2)
