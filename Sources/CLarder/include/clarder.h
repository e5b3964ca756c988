#pragma once
/* What Swift can not import: GNU-only calls, variadics and function-like macros. No logic here.
   Never define _GNU_SOURCE in this header (module mismatch of fd_set); the .c files do. */
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include "clarder_programs.h"
#include "clarder_storage.h"
#include "clarder_tls.h"

/* Sockets and descriptors */
void clarder_close_on_exec(int fd);
/* A duplicate of a stream socket that listens: non-blocking, and closed on exec. -1 for any other descriptor. */
int clarder_duplicate_listening(int fd);
int clarder_accept4(int fd, struct sockaddr *address, socklen_t *length);   /* SOCK_NONBLOCK | SOCK_CLOEXEC */
int clarder_socket(int domain, int type);                                   /* SOCK_NONBLOCK | SOCK_CLOEXEC added */
int clarder_eventfd(void);
int clarder_timerfd(void);                                                  /* CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC */
int clarder_sem_wait(sem_t *semaphore, const struct timespec *until);      /* sem_clockwait, CLOCK_MONOTONIC */
int clarder_timerfd_repeat(int fd, long nanoseconds);                       /* 0 stops it */
int clarder_pipe(int fds[2], int size);                                     /* O_NONBLOCK | O_CLOEXEC, F_SETPIPE_SZ */
ssize_t clarder_splice(int from, int to, size_t length, int more);          /* SPLICE_F_MOVE | SPLICE_F_NONBLOCK */
int clarder_set_nonblocking(int fd);
/* recv(2), send(2) and sendmsg(2) without thread cancellation. In a process with several threads glibc spends 40 instructions of each call on it;
   Larder cancels no thread. */
ssize_t clarder_recv(int fd, void *buffer, size_t length);
ssize_t clarder_send(int fd, const void *bytes, size_t length, int flags);
ssize_t clarder_sendmsg(int fd, const struct msghdr *message, int flags);
/* What the peer of a TCP connection has acknowledged (tcpi_bytes_acked), and the bytes that it has not. -1 for any other socket. */
int clarder_delivered(int fd, uint64_t *acknowledged, uint64_t *unacknowledged);

/* Process */
int clarder_pin_to_cpu(int cpu);
int clarder_cpu_count(void);                                                /* CPUs this process may run on */
int clarder_random(void *bytes, size_t count);                              /* getrandom(2); 0 or -1 */
/* mi_collect: takes what other threads freed of this thread's memory, and gives unused pages to the system. Nothing with another allocator. */
void clarder_malloc_collect(void);
/* How soon mimalloc gives unused memory to the system: pages after 1 ms, pieces of 32 MiB at once. MIMALLOC_… in the environment come first. */
void clarder_malloc_configure(void);
int clarder_name_thread(const char *name);

