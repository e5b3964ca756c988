import Message

/// The result of one URL.
struct WarmResult: Sendable, Equatable {
    /// The URL as it was given.
    var url: String
    /// The URL to which redirects led. Nil if there was no redirect.
    var finalURL: String?
    /// The status of the last answer. Nil if there was none.
    var status: UInt16?
    /// The bytes of all bodies, including those of redirects.
    var bytes: UInt64 = 0
    var attempts = 0
    var milliseconds: Int64 = 0
    var outcome: WarmOutcome

    init(_ target: WarmTarget, _ outcome: WarmOutcome) {
        url = target.text
        self.outcome = outcome
    }
}

enum WarmOutcome: Sendable, Equatable {
    /// The response was stored already. If it was stale, the origin confirmed it.
    case hit
    case stored
    /// The response is stored, but not pinned as its rule wants it: the quota is full.
    case storedUnpinned
    /// The response arrived, and the proxy did not store it.
    case notStored(reason: String)
    case failed(reason: String)

    var name: String {
        switch self {
        case .hit: "hit"
        case .stored, .storedUnpinned: "stored"
        case .notStored: "not stored"
        case .failed: "failed"
        }
    }

    /// The name in JSON.
    var token: String { name == "not stored" ? "not_stored" : name }

    var reason: String? {
        switch self {
        case .hit, .stored: nil
        case .storedUnpinned: unpinned
        case .notStored(let reason), .failed(let reason): reason
        }
    }
}

/// What `Cache-Status` says about an answer (RFC 9211). The last list member is that of the proxy that was asked.
func warmOutcome(_ fields: Fields) -> WarmOutcome {
    guard let value = fields.joined(.cacheStatus), let member = parseStructuredList(value)?.last,
        case .item(let item) = member.value, word(item) == "larder"
    else { return .notStored(reason: "Larder is not in Cache-Status: is this the right proxy?") }
    let parameters = member.parameters
    let detail = parameters["detail"].flatMap(word)
    // Larder says so of a response that belongs on the disk, which could not take it: a restart loses it.
    if detail == memoryOnly { return .notStored(reason: memoryOnly) }
    if parameters["hit"] == .boolean(true) || parameters["fwd-status"] == .integer(304) { return .hit }
    if parameters["stored"] == .boolean(true) { return detail == unpinned ? .storedUnpinned : .stored }
    if parameters["collapsed"] == .boolean(true) { return .stored }
    return .notStored(reason: detail ?? "no reason given")
}

// Details of Larder's `Cache-Status` (docs/caching.md).
private let memoryOnly = "memory-only"
private let unpinned = "unpinned"

extension WarmOutcome {
    /// Whether the disk may take the response later.
    var mayBeStoredLater: Bool {
        switch self {
        case .notStored(let reason): [memoryOnly, "disk-busy", "memory-full"].contains(reason)
        case .hit, .stored, .storedUnpinned, .failed: false
        }
    }

    /// Whether the response is not where its rules want it, because the disk did not take it.
    var breaksPromise: Bool {
        switch self {
        case .notStored(let reason): mayBeStoredLater || reason == "disk-off"
        case .storedUnpinned: true
        case .hit, .stored, .failed: false
        }
    }
}

/// Why an answer is not a success: its status, and what the proxy said in `Proxy-Status` (RFC 9209).
func failureReason(status: UInt16, _ fields: Fields) -> String {
    guard let value = fields.joined(.proxyStatus), let member = parseStructuredList(value)?.last,
        let detail = (member.parameters["details"] ?? member.parameters["error"]).flatMap(word)
    else { return "status \(status)" }
    return "status \(status): \(detail)"
}

private func word(_ item: StructuredItem) -> String? {
    switch item {
    case .string(let bytes), .token(let bytes), .displayString(let bytes): String(decoding: bytes, as: UTF8.self)
    case .integer, .decimal, .byteSequence, .boolean, .date: nil
    }
}
