/// Numbers of a running store that are no settings. Tests make them small.
struct DiskStoreTuning: Sendable {
    /// Bytes of bodies and heads that may wait to be written. More is refused as busy.
    var queueBytesMax = 64 << 20
    /// How long nothing is written, while much waits, before the store is taken for stuck.
    var stuckAfter = Duration.seconds(5)
    /// How long the writer sleeps between two turns while it is busy. Workers need not wake it then.
    var nap = Duration.milliseconds(20)
    /// The number of waiting bytes that ends a nap of the writer.
    var wakeBytes = 8 << 20
    /// Bytes that are written in one call.
    var batchBytes = 1 << 20
    /// The longest body of a packed object. Longer ones are large objects.
    var packedBytesMax = 1 << 20
    /// The number of waiting changes that starts a commit early.
    var commitChangesMax = 16 << 10
    /// The time between two probes of a store that is off.
    var probeInterval = Duration.seconds(5)
    /// How long an object waits for space before it is given up.
    var spaceWaitMax = Duration.seconds(1)
    /// How long callers wait for the index to be filled.
    var loadWaitMax = Duration.seconds(10)
    /// How many descriptors of shared segments are kept open.
    var openFilesMax = 512
    /// How many large objects are kept open though nobody may be using them.
    var idleLargeMax = 64
    /// Threads for reads that block, and how many such reads may wait.
    var readThreads = 4
    var readQueueMax = 1024
    /// Entries of the book that the start reads in one transaction.
    var bookEntriesAtATime = 64 << 10
    /// Called before each of these transactions with the number of entries read: tests return an error here.
    var bookLoadFault: @Sendable (_ count: Int) -> BookError? = { _ in nil }
    /// Called before the ledger is told of the files: tests wait here.
    var beforeMeasuring: @Sendable () -> Void = {}
    /// Nil: derived from the size of the store.
    var segmentBytes: UInt64?

    /// The length at which a shared segment is closed: 1/512 of the store, between 4 and 256 MiB. Two of them are kept free.
    func segmentBytes(size: UInt64) -> UInt64 {
        let bytes = segmentBytes ?? min(max(size / 512, 4 << 20), 256 << 20)
        precondition(bytes <= UInt64(UInt32.max) * 16, "an index entry holds the offset of every record")
        return bytes
    }
}
