#pragma once
/* OpenSSL's macros as functions. No logic here. */
#include <stddef.h>
#include <stdint.h>

struct ssl_st;
struct ssl_ctx_st;
struct evp_pkey_st;
struct stack_st_X509;

/* TLS 1.2 or later; buffers released when idle; as many bytes read at once as there are; partial writes from moving buffers; no renegotiation. */
int clarder_ssl_ctx_prepare(struct ssl_ctx_st *context);
/* How many bytes a session reads at once. Zero: one record. */
void clarder_ssl_ctx_set_read_buffer(struct ssl_ctx_st *context, size_t count);
/* TLS1_2_VERSION or TLS1_3_VERSION each. 1 if it succeeded. */
int clarder_ssl_ctx_limit_versions(struct ssl_ctx_st *context, int minimum, int maximum);
/* Sessions of servers are handed to the new-session callback and kept nowhere else. */
void clarder_ssl_ctx_external_client_sessions(struct ssl_ctx_st *context);
/* For sessions that clients open: the server's order of ciphers, sessions by tickets for so many seconds, and records read
   several at once. 1 if all of it succeeded. */
int clarder_ssl_ctx_prepare_server(struct ssl_ctx_st *context, long ticket_seconds);
/* Frees the buffers for records, which come back with the next use. 0, and nothing is freed, if they hold part of a record. */
int clarder_ssl_free_idle_buffers(struct ssl_st *session);
/* A stack and the references in it; NULL is none. */
void clarder_free_certificates(struct stack_st_X509 *certificates);
int clarder_ssl_ctx_set_chain(struct ssl_ctx_st *context, struct stack_st_X509 *chain);
int clarder_ssl_set_server_name(struct ssl_st *session, const char *name);
/* Lets a session read and write through another one (BIO_f_ssl(3)), which must outlive it. 1 if it succeeded. */
int clarder_ssl_set_carrier(struct ssl_st *session, struct ssl_st *carrier);

/* What X509_get_ext_d2i(3) returns for subjectAltName: the kind (GEN_DNS, …) and the text of the name at `index`, or no text for a kind without. 0
   behind the last one. */
int clarder_general_name(const void *names, int index, int *kind, const unsigned char **bytes, int *count);
void clarder_free_general_names(void *names);
void clarder_openssl_free(void *memory);

/* prctl(2) with PR_SET_DUMPABLE 0: no core dump, no ptrace(2), no /proc/PID/mem for other processes. 0 or -1. */
int clarder_hide_memory(void);

/* X509_NAME_print_ex(3): RFC 4514, with UTF-8 as it is. */
unsigned long clarder_name_flags(void);

/* A new P-256 key in the representation of OpenSSL 1.1: X509_set_pubkey(3) takes 7 us with it, and 400 us with a key
   of a provider, which it encodes and decodes. NULL if it could not be made. */
struct evp_pkey_st *clarder_new_p256_key(void);

/* A hash in parts, by the functions of OpenSSL 1.1: those of 3.0 allocate for each. Memory can be copied. `kind` is that of CLARDER_HASH_. */
struct clarder_hash {
    uint64_t words[28];
    int kind;
};
enum { CLARDER_HASH_MD5, CLARDER_HASH_SHA256, CLARDER_HASH_SHA512_256 };
void clarder_hash_begin(struct clarder_hash *hash, int kind);
void clarder_hash_add(struct clarder_hash *hash, const void *bytes, size_t count);
/* Writes 16 bytes for MD5, and 32 for the others. */
void clarder_hash_end(struct clarder_hash *hash, unsigned char *bytes);
