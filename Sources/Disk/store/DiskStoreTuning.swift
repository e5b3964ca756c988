/// Numbers of a running store that are no settings. Tests make them small.
struct DiskStoreTuning: Sendable {
    /// Bytes of bodies and heads that may wait to be written; what comes beyond is refused as busy.
    var queueBytesMax = 64 << 20
    /// How long the writer sleeps between two turns while it is busy: workers need not wake it then.
    var nap = Duration.milliseconds(20)
    /// Bytes that wait at which the writer is woken out of a nap.
    var wakeBytes = 8 << 20
    /// Bytes that go to the file in one call.
    var batchBytes = 1 << 20
    /// Body bytes of a packed object; above it is to be a large one.
    var packedBytesMax = 1 << 20
    /// Changes that wait for the book at which it is committed before its time.
    var commitChangesMax = 16 << 10
    /// Between two probes of a store that is off.
    var probeInterval = Duration.seconds(5)
    /// How long an object waits for room before it is not stored after all.
    var spaceWaitMax = Duration.seconds(1)
    /// How long is waited for the index to be filled.
    var loadWaitMax = Duration.seconds(10)
    /// Descriptors of shared segments that are kept open.
    var openFilesMax = 512
    /// Large objects of which table and descriptor are kept though nobody reads them.
    var idleLargeMax = 64
    /// Threads for reads that block, and reads that may wait for them.
    var readThreads = 4
    var readQueueMax = 1024
    /// Entries of the book that the start reads in one transaction.
    var bookEntriesAtATime = 64 << 10
    /// Asked before each of these transactions, with how many entries there were: tests let it end there.
    var bookLoadFault: @Sendable (_ count: Int) -> BookError? = { _ in nil }
    /// nil: by the size of the store.
    var segmentBytes: UInt64?

    /// Length at which a shared segment is closed: a 512th of the store, 4 to 256 MiB. Two of them are kept free.
    func segmentBytes(size: UInt64) -> UInt64 { segmentBytes ?? min(max(size / 512, 4 << 20), 256 << 20) }
}
