#define OPENSSL_SUPPRESS_DEPRECATED
#include "clarder_tls.h"
#include <openssl/ec.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/prctl.h>

int clarder_ssl_ctx_prepare(struct ssl_ctx_st *context) {
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_read_ahead(context, 1);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

void clarder_ssl_ctx_set_read_buffer(struct ssl_ctx_st *context, size_t count) {
    SSL_CTX_set_default_read_buffer_len(context, count);
}

int clarder_ssl_ctx_limit_versions(struct ssl_ctx_st *context, int minimum, int maximum) {
    return SSL_CTX_set_min_proto_version(context, minimum) == 1 && SSL_CTX_set_max_proto_version(context, maximum) == 1;
}

void clarder_ssl_ctx_external_client_sessions(struct ssl_ctx_st *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

int clarder_ssl_set_server_name(struct ssl_st *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}

int clarder_ssl_set_carrier(struct ssl_st *session, struct ssl_st *carrier) {
    BIO *bio = BIO_new(BIO_f_ssl());
    if (bio == NULL) return 0;
    BIO_set_ssl(bio, carrier, BIO_NOCLOSE);
    /* One reference serves both directions. */
    SSL_set_bio(session, bio, bio);
    return 1;
}

int clarder_hide_memory(void) { return prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L); }

unsigned long clarder_name_flags(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }

struct evp_pkey_st *clarder_new_p256_key(void) {
    EC_KEY *own = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EVP_PKEY *key = EVP_PKEY_new();
    if (own && key && EC_KEY_generate_key(own) == 1 && EVP_PKEY_assign_EC_KEY(key, own) == 1) return key;
    EVP_PKEY_free(key);
    EC_KEY_free(own);
    return NULL;
}

int clarder_ssl_ctx_prepare_server(struct ssl_ctx_st *context, long ticket_seconds) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_set_timeout(context, ticket_seconds);
    /* TLSServerSession gives buffers back by itself. */
    SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
    /* A resumed session brings another ticket. */
    SSL_CTX_set_num_tickets(context, 1);
    return SSL_CTX_set_ciphersuites(
        context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
}

int clarder_ssl_free_idle_buffers(struct ssl_st *session) {
    /* Before 3.0.14, OpenSSL frees buffers although a header or unread content refers to them (CVE-2024-4741). */
    if (SSL_has_pending(session) || strcmp(SSL_rstate_string(session), "RH") != 0) return 0;
    return SSL_free_buffers(session);
}

int clarder_ssl_ctx_set_chain(struct ssl_ctx_st *context, struct stack_st_X509 *chain) {
    return (int)SSL_CTX_set1_chain(context, chain);
}

void clarder_free_certificates(struct stack_st_X509 *certificates) { sk_X509_pop_free(certificates, X509_free); }

int clarder_general_name(const void *names, int index, int *kind, const unsigned char **bytes, int *count) {
    const GENERAL_NAMES *all = names;
    if (index >= sk_GENERAL_NAME_num(all)) return 0;
    const ASN1_STRING *text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, index), kind);
    int has_text = *kind == GEN_DNS || *kind == GEN_EMAIL || *kind == GEN_URI;
    *bytes = has_text ? ASN1_STRING_get0_data(text) : NULL;
    *count = has_text ? ASN1_STRING_length(text) : 0;
    return 1;
}

void clarder_free_general_names(void *names) { GENERAL_NAMES_free(names); }

void clarder_openssl_free(void *memory) { OPENSSL_free(memory); }

_Static_assert(sizeof(SHA512_CTX) <= sizeof(uint64_t[28]) && sizeof(SHA256_CTX) <= sizeof(SHA512_CTX) &&
                   sizeof(MD5_CTX) <= sizeof(SHA512_CTX),
               "the states fit");

void clarder_hash_begin(struct clarder_hash *hash, int kind) {
    /* FIPS 180-4, 5.3.6.2. */
    static const SHA_LONG64 start[8] = {0x22312194FC2BF72C, 0x9F555FA3C84C64C2, 0x2393B86B6F53B151, 0x963877195940EABD,
                                        0x96283EE2A88EFFE3, 0xBE5E1E2553863992, 0x2B0199FC2C85B8AA, 0x0EB72DDC81C52CA2};
    memset(hash, 0, sizeof *hash);
    hash->kind = kind;
    switch (kind) {
    case CLARDER_HASH_MD5: MD5_Init((MD5_CTX *)hash->words); return;
    case CLARDER_HASH_SHA256: SHA256_Init((SHA256_CTX *)hash->words); return;
    default: {
        SHA512_CTX *state = (SHA512_CTX *)hash->words;
        SHA512_Init(state);
        memcpy(state->h, start, sizeof start);
        state->md_len = SHA256_DIGEST_LENGTH;
    }
    }
}

void clarder_hash_add(struct clarder_hash *hash, const void *bytes, size_t count) {
    switch (hash->kind) {
    case CLARDER_HASH_MD5: MD5_Update((MD5_CTX *)hash->words, bytes, count); return;
    case CLARDER_HASH_SHA256: SHA256_Update((SHA256_CTX *)hash->words, bytes, count); return;
    default: SHA512_Update((SHA512_CTX *)hash->words, bytes, count);
    }
}

void clarder_hash_end(struct clarder_hash *hash, unsigned char *bytes) {
    switch (hash->kind) {
    case CLARDER_HASH_MD5: MD5_Final(bytes, (MD5_CTX *)hash->words); return;
    case CLARDER_HASH_SHA256: SHA256_Final(bytes, (SHA256_CTX *)hash->words); return;
    default: SHA512_Final(bytes, (SHA512_CTX *)hash->words);
    }
}
