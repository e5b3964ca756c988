import Caching
import Framing
import Message
import Storage

/// By what way a stored response came to be served.
enum Service: Equatable {
    case hit, stale, collapsed
    /// The origin was asked and said 304.
    case revalidated(CacheStatus.ForwardReason)
    /// It is being stored right now, because of this request.
    case miss(CacheStatus.ForwardReason, status: UInt16)
    /// The origin failed or answered 5xx; `status` 0 where it did not answer.
    case staleOnError(CacheStatus.ForwardReason, status: UInt16)

    var outcome: Account.Outcome {
        switch self {
        case .hit: .hit
        case .stale, .staleOnError: .stale
        case .collapsed: .collapsed
        case .revalidated: .revalidated
        case .miss: .miss
        }
    }

    /// RFC 9211 §2.
    func cacheStatus(ttl: Seconds) -> CacheStatus {
        var result: CacheStatus
        switch self {
        case .hit, .stale:
            result = CacheStatus(.hit)
        case .collapsed:
            result = CacheStatus(.forwarded(.uriMiss))
            result.isCollapsed = true
        case .revalidated(let reason):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = 304
            result.isStored = true
        case .miss(let reason, let status):
            result = CacheStatus(.forwarded(reason))
            result.forwardStatus = status
            result.isStored = true
        case .staleOnError(let reason, let status):
            result = CacheStatus(.forwarded(reason))
            if status > 0 { result.forwardStatus = status }
            result.detail = "stale-on-error"
        }
        result.ttl = ttl
        return result
    }
}

/// What a client gets from a stored response: the whole, a part (RFC 9110 §14), or the news that its own copy is good
/// (§13).
struct StoredAnswer {
    let status: UInt16
    /// The body or a part of it; nil where the answer has none.
    let delivery: Delivery?
    /// The body's length is known only by the end of the connection.
    let endsWithConnection: Bool
    private let record: StoredResponse
    private let cacheStatus: CacheStatus
    private let age: Seconds
    private let range: Range<Int>?
    private let totalLength: Int?
    private let framing: ForwardedHead.Framing

    init(_ record: StoredResponse, to request: OwnedRequest, service: Service, now: WallTime) {
        self.record = record
        age = record.cached.currentAge(now)
        cacheStatus = service.cacheStatus(ttl: record.cached.remainingLifetime(now))
        let body = record.body
        totalLength = body.state == .complete ? body.length : body.expectedLength
        let choice = StoredAnswer.choose(record, request, length: totalLength, now: now)
        status = choice.status
        range = choice.range
        let hasBody = choice.hasBody && request.method != .head
        let length = choice.range.map { $0.count } ?? totalLength
        if !choice.hasBody {
            framing = choice.status == 416 ? .length(0) : .none
        } else if let length {
            framing = .length(UInt64(length))
        } else {
            framing = request.head.minorVersion == 0 ? .untilClose : .chunked
        }
        endsWithConnection = framing == .untilClose && hasBody
        let end = choice.range ?? totalLength.map { 0..<$0 }
        delivery = hasBody && length != 0 ? Delivery(body: body, range: end, isChunked: framing == .chunked) : nil
    }

    private struct Choice {
        var status: UInt16
        var hasBody: Bool
        var range: Range<Int>?
    }

    private static func choose(_ record: StoredResponse, _ request: OwnedRequest, length: Int?, now: WallTime) -> Choice
    {
        let whole = Choice(
            status: record.cached.status, hasBody: ![204, 304].contains(record.cached.status), range: nil)
        if request.cache.hasPreconditions {
            switch evaluate(request.fields, method: request.method, against: record.cached, now: now) {
            case .notModified: return Choice(status: 304, hasBody: false)
            case .none, .passed, .failed: break
            }
        }
        guard request.cache.hasRange, request.method == .get, let length else { return whole }
        switch selectRange(
            request.fields, method: request.method, stored: record.cached, length: UInt64(length), now: now)
        {
        case .single(let range):
            return Choice(status: 206, hasBody: true, range: Int(range.lowerBound)..<Int(range.upperBound))
        case .unsatisfiable:
            return Choice(status: 416, hasBody: false)
        case .whole, .multiple:
            // Several ranges may be answered by the whole (RFC 9110 §14.2: a server MAY ignore Range).
            return whole
        }
    }

    func appendHead(minorVersion: UInt8, persists: Bool, to out: inout [UInt8]) {
        if status == record.cached.status {
            out.append(contentsOf: record.head)
        } else {
            appendStatusLine(status, reason: nil, to: &out)
            let fields = status == 304 ? notModifiedFields(of: record.fields) : record.fields
            appendFieldLines(fields, to: &out) { isSent($0.name) }
        }
        HeadWriter.append(.age, Int(clamping: age.count), to: &out)
        HeadWriter.append("Cache-Status: ", to: &out)
        cacheStatus.append(to: &out)
        HeadWriter.append("\r\n", to: &out)
        appendContentRange(to: &out)
        if status != record.cached.status || !record.headHasLength {
            ForwardedHead.appendFraming(framing, to: &out)
        }
        HeadWriter.appendConnection(
            persists: persists && !endsWithConnection, minorVersion: minorVersion, to: &out)
    }

    /// A 416 is not about the content that is stored.
    private func isSent(_ name: FieldName) -> Bool {
        if name == .contentLength || name == .age { return false }
        return status != 416 || name == .date || name == .eTag || name == .via
    }

    private func appendContentRange(to out: inout [UInt8]) {
        guard status == 206 || status == 416, let totalLength else { return }
        HeadWriter.append("Content-Range: bytes ", to: &out)
        if let range {
            HeadWriter.append(decimal: range.lowerBound, to: &out)
            HeadWriter.append("-", to: &out)
            HeadWriter.append(decimal: range.upperBound - 1, to: &out)
        } else {
            HeadWriter.append("*", to: &out)
        }
        HeadWriter.append("/", to: &out)
        HeadWriter.append(decimal: totalLength, to: &out)
        HeadWriter.append("\r\n", to: &out)
    }
}
