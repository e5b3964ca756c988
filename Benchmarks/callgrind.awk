# Reads one callgrind dump: prints "instructions ALL" and "allocations CALLS".
# An allocation is a call of the C allocator from outside it, whoever makes it (Swift's runtime ends there too).
# The search for memory that others have freed (`clarder_malloc_collect`) does not count: it runs by the clock, so that a slow machine has more of it.
function name(text,   id) {
    id = text; sub(/ .*/, "", id)
    if (index(text, " ")) { sub(/^[^ ]* /, "", text); names[id] = text }
    return names[id]
}
/^fn=/ { caller = name(substr($0, 4)) }
/^cfn=/ { called = name(substr($0, 5)) }
/^calls=/ {
    split(substr($0, 7), parts, " ")
    if (called ~ allocator && caller !~ allocator) allocations += parts[1]
    is_collected = called ~ /^clarder_malloc_collect/
    next
}
is_collected { collected += $2; is_collected = 0 }
/^summary:/ { instructions = $2 }
/^totals:/ && !instructions { instructions = $2 }
BEGIN { allocator = "^(malloc|calloc|realloc|posix_memalign|aligned_alloc|memalign)('[0-9]+)?$" }
END { printf "instructions %d\nallocations %d\n", instructions - collected, allocations }
