#pragma once
#include <sys/types.h>
#include <ares.h>
