import Caching
import Forwarding
import Framing
import Message
import Storage

/// By what way a stored response came to be served.
enum Service: Equatable {
    case hit, stale, collapsed
    /// Parts of it were stored; what is missing comes from the origin, which has answered with `status`; 0: not yet.
    case part(status: UInt16)
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
        case .miss, .part: .miss
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
        case .part(let status):
            result = CacheStatus(.forwarded(.partial))
            if status > 0 { result.forwardStatus = status }
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

/// What a client gets from a stored response: the whole, parts (RFC 9110 §14), or the news that its own copy is good
/// (§13).
struct StoredAnswer {
    let status: UInt16
    /// The body or parts of it; nil where the answer has none.
    let delivery: Delivery?
    /// The body's length is known only by the end of the connection.
    let endsWithConnection: Bool
    private let record: StoredResponse
    private let zone: Zone
    private let cacheStatus: CacheStatus
    private let age: Seconds
    private let content: Content
    private let totalLength: Int?
    private let framing: ForwardedHead.Framing
    /// What the client for whom it was fetched gets beside what is stored (`private="…"`, RFC 9111 §5.2.2.7).
    private let ownFields: Fields?
    /// In which coding the content goes out.
    private let form: CodingChoice
    /// It is the stored one, but another client would get another.
    private let addsVary: Bool

    /// What of the stored content goes out.
    private enum Content {
        case none
        case whole
        case range(Range<Int>)
        case ranges(MultipartRanges)
    }

    /// - Parameter ownFields: all end-to-end fields as they came, where not all are stored and this client is the one
    ///   they were sent to.
    init(
        _ record: StoredResponse, to request: OwnedRequest, service: Service, worker: Worker, ownFields: Fields? = nil
    ) {
        let now = worker.wallTime
        self.record = record
        self.ownFields = ownFields
        zone = request.zone
        age = record.terms.currentAge(now)
        cacheStatus = service.cacheStatus(ttl: record.terms.remainingLifetime(now))
        let body = record.body
        let storedLength = body.state == .complete ? body.length : body.expectedLength
        let compression = request.compression(of: record)
        let coding = StoredAnswer.coding(record, request, storedLength, compression, worker)
        form = coding.form
        addsVary =
            form == .asStored && !record.coding.isFixed(compression)
            && needsVary(record.coding, record.cached.vary, compression: compression)
        totalLength = coding.length
        (status, content) = StoredAnswer.choose(
            record, request, length: totalLength, takesRanges: form == .asStored, now: now)
        let length: Int?
        switch content {
        case .none: length = status == 416 ? 0 : nil
        case .whole: length = totalLength
        case .range(let range): length = range.count
        case .ranges(let parts): length = parts.length
        }
        if case .none = content {
            framing = length.map { .length(UInt64($0)) } ?? .none
        } else if let length {
            framing = .length(UInt64(length))
        } else {
            framing = request.head.minorVersion == 0 ? .untilClose : .chunked
        }
        let isSent = request.method != .head && length != 0
        endsWithConnection = framing == .untilClose && isSent
        switch content {
        case .none: delivery = nil
        case .whole:
            delivery =
                isSent
                ? Delivery(
                    record, body: coding.copy, range: totalLength.map { 0..<$0 }, isChunked: framing == .chunked,
                    work: coding.work) : nil
        case .range(let range): delivery = isSent ? Delivery(record, range: range, isChunked: false) : nil
        case .ranges(let parts):
            delivery = isSent ? Delivery(record, parts: parts.parts, closing: parts.closing) : nil
        }
    }

    private struct Coding {
        var form: CodingChoice
        /// Of what goes out; nil: known only when it is out.
        var length: Int?
        var work: Transcoder.Work?
        /// What goes out in place of the record's own body.
        var copy: Body?
    }

    private static func coding(
        _ record: StoredResponse, _ request: OwnedRequest, _ length: Int?, _ compression: CompressionUse,
        _ worker: Worker
    ) -> Coding {
        let asStored = Coding(form: .asStored, length: length)
        guard !record.coding.isFixed(compression) else { return asStored }
        let form = chooseCoding(
            of: record.coding, length: length.map { UInt64($0) }, for: AcceptedCodings(request.fields), request.cache,
            compression: compression, lengthMin: request.compressedLengthMin)
        switch form {
        case .asStored:
            return asStored
        case .inflated:
            return Coding(form: form, length: nil, work: Transcoder.Work(form))
        case .gzipped:
            return Transcoder.mayCompress ? Coding(form: form, length: nil, work: Transcoder.Work(form)) : asStored
        case .gzippedCopy:
            let copy = record.compressedCopy?.body(
                of: record.body, in: request.tier.memory, on: worker.shared.pool, inbox: worker.loop.inbox)
            return copy.map { Coding(form: form, length: $0.length, copy: $0) } ?? asStored
        }
    }

    private static func choose(
        _ record: StoredResponse, _ request: OwnedRequest, length: Int?, takesRanges: Bool, now: WallTime
    ) -> (UInt16, Content) {
        let status = record.cached.status
        let whole: (UInt16, Content) = (status, [204, 304].contains(status) ? .none : .whole)
        if request.cache.hasPreconditions {
            switch evaluate(request.fields, method: request.method, against: record.cached, now: now) {
            case .notModified: return (304, .none)
            case .none, .passed, .failed: break
            }
        }
        guard takesRanges, request.cache.hasRange, request.method == .get, let length else { return whole }
        switch selectRange(
            request.fields, method: request.method, stored: record.cached, length: UInt64(length), now: now)
        {
        case .single(let range):
            return (206, .range(Int(range.lowerBound)..<Int(range.upperBound)))
        case .multiple(let ranges):
            return (
                206,
                .ranges(
                    MultipartRanges(
                        ranges, length: length, contentType: record.fields.first(.contentType),
                        boundary: Shared.boundary()))
            )
        case .unsatisfiable:
            return (416, .none)
        case .whole:
            return whole
        }
    }

    func appendHead(minorVersion: UInt8, persists: Bool, to out: inout [UInt8]) {
        var hasLength = false
        if status != record.cached.status || form.isTransformed {
            appendStatusLine(status, reason: nil, to: &out)
            let coded = codedFields(of: ownFields ?? record.fields, form)
            let fields = status == 304 ? notModifiedFields(of: coded) : coded
            appendFieldLines(fields, to: &out) { isSent($0.name) }
            appendContentFields(to: &out)
        } else if let ownFields {
            appendStatusLine(status, reason: nil, to: &out)
            appendFieldLines(ownFields, to: &out) { isSent($0.name) }
        } else {
            out.append(contentsOf: record.head)
            hasLength = record.headHasLength
        }
        if addsVary { HeadWriter.append(.vary, "Accept-Encoding", to: &out) }
        HeadWriter.append("Age: ", to: &out)
        HeadWriter.append(decimal: Int(clamping: age.count), to: &out)
        HeadWriter.append("\r\nCache-Status: ", to: &out)
        cacheStatus.append(to: &out)
        out.append(contentsOf: zone.label)
        HeadWriter.append("\r\n", to: &out)
        if !hasLength { ForwardedHead.appendFraming(framing, to: &out) }
        HeadWriter.appendConnection(
            persists: persists && !endsWithConnection, minorVersion: minorVersion, to: &out)
    }

    /// A 416 is not about the content that is stored; several parts have each their own type.
    private func isSent(_ name: FieldName) -> Bool {
        switch name {
        case .contentLength, .age: return false
        case .contentType: if case .ranges = content { return false }
        default: break
        }
        return status != 416 || name == .date || name == .eTag || name == .via
    }

    private func appendContentFields(to out: inout [UInt8]) {
        switch content {
        case .range(let range):
            if let totalLength { HeadWriter.appendContentRange(range, of: totalLength, to: &out) }
        case .ranges(let parts):
            HeadWriter.append("Content-Type: multipart/byteranges; boundary=", to: &out)
            out.append(contentsOf: parts.boundary)
            HeadWriter.append("\r\n", to: &out)
        case .none:
            if status == 416, let totalLength { HeadWriter.appendContentRange(nil, of: totalLength, to: &out) }
        case .whole:
            break
        }
    }
}
