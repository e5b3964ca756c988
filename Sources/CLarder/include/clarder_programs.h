/* Calls of the GNU library that Swift does not see. */
#pragma once
#include <stddef.h>

int clarder_spawn_in_directory(void *actions, const char *directory); /* actions: posix_spawn_file_actions_t; 0 or errno */
int clarder_pipe_for_program(int ends[2]); /* blocking, closed when a program starts; 0 or errno */
int clarder_spawn_close_from(void *actions, int first); /* actions: posix_spawn_file_actions_t; 0 or errno */
int clarder_forbid_privileges(void);                                 /* prctl(2) with PR_SET_NO_NEW_PRIVS; 0 or -1 */

/* A printer of errors for pacparser_set_error_printer(3): keeps the texts until they are taken. For one thread. */
void *clarder_problem_printer(void);
size_t clarder_take_problem(char *text, size_t size);                /* how many bytes were copied, without a zero at their end */
void clarder_remove_tree(const char *path);                          /* links are removed, not followed */
int clarder_clock_is_synchronised(void);                             /* 1, 0, or -1 if the kernel does not say */

