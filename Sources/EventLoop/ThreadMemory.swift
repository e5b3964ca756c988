import CLarder

/// The memory that the allocator keeps for the present thread.
///
/// With mimalloc (decision 29) a block that another thread frees is noted in the page that it is from, and is of use again once the thread that
/// allocated it looks there. A thread that allocates much finds it on its way. One that stopped allocating does not, and what it allocated would
/// stay in memory for good: a worker whose clients went away after they had filled the store.
package enum ThreadMemory {
    /// Sets how soon unused memory goes to the system, for the whole process. Call it before the first thread is started.
    package static func configure() { clarder_malloc_configure() }

    /// The number of the present thread, under which others find who allocated a stored response (`StoredRecord.allocator`). Zero: nobody asks.
    package static var number: UInt8 {
        get { clarder_get_thread_number() }
        set { clarder_set_thread_number(newValue) }
    }

    /// How many stored responses that the present thread allocated were freed by others so far. Overflows.
    package static var freedByOthers: UInt32 { clarder_count_freed_by_others() }

    /// The pause between two calls of `collect` on a thread that serves no client. Workers have a `CollectPace`.
    package static let period = Duration.seconds(1)

    /// Takes what other threads have freed of this thread's memory, and gives pages that nobody uses to the system. It takes about 0.3 ms for
    /// each GiB that the thread has allocated, 100 ms for each million blocks that were freed, and 80 ms for each GiB that goes to the system.
    package static func collect() { clarder_malloc_collect() }
}
