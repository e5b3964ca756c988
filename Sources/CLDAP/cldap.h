#pragma once
#include <lber.h>
#include <ldap.h>

/* Macros with casts and pointers in them, which Swift does not see. */
static const int cldap_scope_base = LDAP_SCOPE_BASE;
static const int cldap_scope_subtree = LDAP_SCOPE_SUBTREE;

static inline int cldap_set_flag(LDAP *handle, int option, int is_on) {
    return ldap_set_option(handle, option, is_on ? LDAP_OPT_ON : LDAP_OPT_OFF);
}

/* The most bytes of one message. Call it before the connection is opened. */
static inline int cldap_limit_messages(LDAP *handle, ber_len_t bytes) {
    Sockbuf *buffer = 0;
    if (ldap_get_option(handle, LDAP_OPT_SOCKBUF, &buffer) != LDAP_OPT_SUCCESS || !buffer) return -1;
    return ber_sockbuf_ctrl(buffer, LBER_SB_OPT_SET_MAX_INCOMING, &bytes) > 0 ? 0 : -1;
}
