import Caching

/// The bytes of one response: there, under way, or missing.
final class ModelBody {
    enum State { case growing, partial, complete, failed }
    private(set) var state: State
    /// Length of the whole; nil: known when it ends.
    private(set) var expected: Int?
    private(set) var bytes: [UInt8?]
    private(set) var fills: [Fill] = []
    /// Bytes written to it ever.
    private(set) var written = 0

    static func growing(_ expected: Int?) -> ModelBody { ModelBody(.growing, expected, []) }
    static func sparse(_ length: Int) -> ModelBody {
        ModelBody(.partial, length, Array(repeating: nil, count: length))
    }

    private init(_ state: State, _ expected: Int?, _ bytes: [UInt8?]) {
        self.state = state
        self.expected = expected
        self.bytes = bytes
    }

    func append(_ byte: UInt8) {
        precondition(state == .growing, "who grows has not ended")
        bytes.append(byte)
        written += 1
    }

    /// False: it is not as long as was said.
    func finish() -> Bool {
        guard state == .growing, expected == nil || expected == bytes.count else { return false }
        expected = bytes.count
        state = .complete
        return true
    }

    func fail() { state = .failed }

    /// The transfer broke off: what is there stays.
    func makePartial() -> Bool {
        guard state == .growing, let expected else { return false }
        bytes += Array(repeating: nil, count: expected - bytes.count)
        state = .partial
        completeIfWhole()
        return true
    }

    enum Gap { case available(end: Int), awaited, missing(Fill), unavailable }

    func claim(at offset: Int, limit: Int) -> Gap {
        if offset < bytes.count, bytes[offset] != nil {
            let end = bytes[offset...].firstIndex { $0 == nil } ?? bytes.count
            return .available(end: end)
        }
        guard state == .partial, offset < bytes.count else { return state == .growing ? .awaited : .unavailable }
        if fills.contains(where: { $0.position <= offset && offset < $0.end }) { return .awaited }
        var end = offset
        while end < min(limit, bytes.count), bytes[end] == nil,
            !fills.contains(where: { $0.position <= end && end < $0.end })
        { end += 1 }
        let fill = Fill(self, offset, end)
        fills.append(fill)
        return .missing(fill)
    }

    fileprivate func put(_ byte: UInt8, at offset: Int) {
        precondition(bytes[offset] == nil, "a byte is fetched once")
        bytes[offset] = byte
        written += 1
        completeIfWhole()
    }

    private func completeIfWhole() { if !bytes.contains(where: { $0 == nil }) { state = .complete } }

    fileprivate func release(_ fill: Fill) { fills.removeAll { $0 === fill } }
}

/// A hole that somebody fetches.
final class Fill {
    let body: ModelBody
    private(set) var position: Int
    let start: Int
    let end: Int

    init(_ body: ModelBody, _ start: Int, _ end: Int) {
        self.body = body
        self.start = start
        position = start
        self.end = end
    }

    /// False: that is more than was claimed.
    func append(_ byte: UInt8) -> Bool {
        guard position < end else { return false }
        body.put(byte, at: position)
        position += 1
        return true
    }

    func close() { body.release(self) }
}

/// A fetch that others wait for.
final class ModelTransfer {
    enum Outcome {
        case published(Record)
        /// The origin failed, and this is stored: each follower has to see for itself whether it takes that.
        case fallback(Record, failure: UInt8)
        case notShared
        case failed(UInt8)
    }
    let uri: Int
    private(set) var outcome: Outcome?
    var followers: [SimulatedExchange] = []

    init(uri: Int) { self.uri = uri }

    func resolve(_ outcome: Outcome, in store: inout ModelStore) {
        store.transfers.removeAll { $0 === self }
        guard self.outcome == nil else { return }
        self.outcome = outcome
    }
}

/// The records, newest first under each key, and the fetches that others may join.
struct ModelStore {
    private(set) var records: [[Record]]
    var transfers: [ModelTransfer] = []
    /// Until when nobody waits for another's fetch of a resource, in true time.
    private var keptApartUntil: [Int64]
    private let variantsMax = 4

    init(resourceCount: Int) {
        records = Array(repeating: [], count: resourceCount)
        keptApartUntil = Array(repeating: 0, count: resourceCount)
    }

    func keepsApart(_ uri: Int, now: Int64) -> Bool { now < keptApartUntil[uri] }

    mutating func keepApart(_ uri: Int, until end: Int64) { keptApartUntil[uri] = end }

    mutating func insert(_ record: Record) {
        records[record.uri].removeAll { $0.secondaryKey == record.secondaryKey }
        records[record.uri].insert(record, at: 0)
        if records[record.uri].count > variantsMax { records[record.uri].removeLast() }
    }

    /// False: the old one is not there any more.
    mutating func replace(_ old: Record, with new: Record) -> Bool {
        guard let index = records[old.uri].firstIndex(where: { $0 === old }) else { return false }
        records[old.uri].remove(at: index)
        records[old.uri].insert(new, at: 0)
        return true
    }

    /// False: it is not there any more.
    @discardableResult
    mutating func remove(_ record: Record) -> Bool {
        guard let index = records[record.uri].firstIndex(where: { $0 === record }) else { return false }
        records[record.uri].remove(at: index)
        return true
    }

    /// What is stored for it goes, and who asks from now on joins none of the fetches under way.
    mutating func invalidate(_ uri: Int) {
        records[uri] = []
        transfers.removeAll { $0.uri == uri }
    }
}
