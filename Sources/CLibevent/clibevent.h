#pragma once
/* First: pins <features.h> before libevent's event-config.h defines _GNU_SOURCE, so that every
   clang module sees the same fd_set. */
#include <sys/types.h>
#include <event2/event.h>
#include <event2/event_struct.h>
