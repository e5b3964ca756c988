#include <pacparser.h>

/* Swift cannot pass a function with a va_list. */
static inline void cpacparser_set_error_printer(void *printer) {
    pacparser_set_error_printer((pacparser_error_printer)printer);
}
