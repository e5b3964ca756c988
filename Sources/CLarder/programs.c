#define _GNU_SOURCE
#include "clarder_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timex.h>
#include <unistd.h>

int clarder_spawn_in_directory(void *actions, const char *directory) {
    return posix_spawn_file_actions_addchdir_np(actions, directory);
}

int clarder_spawn_close_from(void *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int clarder_forbid_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

static char problem[2048];
static size_t problem_length;

static int keep_problem(const char *format, va_list arguments) {
    size_t room = sizeof problem - problem_length;
    int length = vsnprintf(problem + problem_length, room, format, arguments);
    if (length > 0) problem_length += (size_t)length < room ? (size_t)length : room - 1;
    return 0;
}

void *clarder_problem_printer(void) { return (void *)keep_problem; }

size_t clarder_take_problem(char *text, size_t size) {
    size_t count = problem_length < size ? problem_length : size;
    memcpy(text, problem, count);
    problem_length = 0;
    return count;
}

int clarder_pipe_for_program(int ends[2]) { return pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno; }

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    remove(path);
    return 0;
}

void clarder_remove_tree(const char *path) { nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS); }

int clarder_clock_is_synchronised(void) {
    struct timex state = {0};
    int status = adjtimex(&state);
    if (status < 0) return -1;
    return status != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}
