#pragma once
#include <sys/types.h>
#include <crypt.h>
