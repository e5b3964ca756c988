#pragma once
#include <sodium/core.h>
#include <sodium/crypto_generichash_blake2b.h>
