package import Server

/// The proxy as the admin server sees it: what it can ask of it, and what it can tell it to do.
///
/// All calls are made on the control thread. The numbers are read from the workers without stopping them, so two numbers of one
/// answer can differ by the requests that were handled in between.
package protocol AdministeredProxy: Sendable {
    /// A consistent-enough sum over all workers.
    func statistics() -> Statistics
    /// Removes what the request selects from the cache, marks it stale, or only counts it.
    func purge(_ request: PurgeRequest) -> PurgeResult
    /// What is stored, a page at a time: each call gives the next, which may be empty; nil is the end.
    ///
    /// Nothing is locked between two pages: what comes and goes meanwhile may be missed.
    func objects(_ selection: Selection) -> @Sendable () -> [ObjectDescription]?
    /// What would become of a request, and why. Nothing is sent to an origin, nothing in the store changes.
    func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation
    /// The origin fetches under way, in no particular order.
    func transfers() -> [TransferDescription]
    /// No new connections are accepted and the process ends when the last one is done.
    var isDraining: Bool { get }
    /// The disks that are off: the proxy serves without writing to them. Answers at once.
    var disksOff: [DiskOff] { get }
}

/// What a purge removed, or would have removed.
package struct PurgeResult: Sendable, Equatable {
    /// Stored responses; each variant counts.
    package var records: Int
    /// What they were charged with, in bytes.
    package var bytes: Int
    /// False: they are gone now, but the disk could not be told; after a crash some may be back.
    package var isDurable = true

    package init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }
}

/// One origin fetch under way.
package struct TransferDescription: Sendable, Equatable {
    package var url: String
    /// Time since the request went out.
    package var ageMilliseconds: UInt64
    /// Body bytes that came so far.
    package var receivedBytes: UInt64
    /// The length the origin announced; nil while unknown.
    package var expectedBytes: UInt64?
    /// Client requests that read it now.
    package var readers: Int
    /// The body is kept for later requests.
    package var isStored: Bool

    package init(
        url: String, ageMilliseconds: UInt64, receivedBytes: UInt64, expectedBytes: UInt64?, readers: Int,
        isStored: Bool
    ) {
        self.url = url
        self.ageMilliseconds = ageMilliseconds
        self.receivedBytes = receivedBytes
        self.expectedBytes = expectedBytes
        self.readers = readers
        self.isStored = isStored
    }
}
