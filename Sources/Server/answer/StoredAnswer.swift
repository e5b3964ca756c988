import Accounts
import Caching
import Forwarding
import Framing
import Glibc
import Message
import Storage

extension Service {
    var outcome: RequestOutcome {
        switch self {
        case .hit, .shared: .hit
        case .stale, .staleOnError: .stale
        case .collapsed: .collapsed
        case .revalidated: .revalidated
        case .miss, .peer, .part: .miss
        }
    }
}

extension Service {
    /// The member of `Cache-Status` for a response that may not be stored for as long as its rules want it to be.
    @inline(never)
    fileprivate func cacheStatus(ttl: Seconds, of tenure: Tenure) -> CacheStatus {
        var status = cacheStatus(ttl: ttl)
        switch tenure {
        case .asMeant: break
        case .memoryOnly:
            status.isStored = false
            status.detail = status.detail ?? "memory-only"
        case .unpinned:
            if status.isStored { status.detail = status.detail ?? "unpinned" }
        case .outdated:
            status.isStored = false
            status.detail = status.detail ?? "\(NotStoredReason.outdated.token)"
        }
        return status
    }
}

/// The answer that a client gets from a stored response: its head, and its body or the delivery of it.
///
/// It writes itself in a closure, which would copy a value that can be copied.
struct StoredAnswer: ~Copyable {
    /// Nil if no content follows the head, or if it is `shortBody`.
    let delivery: Delivery?
    /// A short body that is whole in memory: it is written behind the head, and needs no delivery.
    private let shortBody: Body?
    private let form: AnswerForm
    private let record: StoredResponse
    private let remarks: AnswerForm.Remarks

    var status: UInt16 { form.status }
    var endsWithConnection: Bool { form.endsWithConnection }

    /// Chooses the coding, the ranges and the framing for one client.
    ///
    /// - Parameters:
    ///   - ownFields: all end-to-end fields as received, if not all are stored and this client is the one that they were sent to.
    ///   - inOnePiece: a body that is short, and whole in memory, is written behind the head.
    init(
        _ record: StoredResponse, to request: OwnedRequest, service: Service, worker: Worker, ownFields: Fields? = nil,
        inOnePiece: Bool = false
    ) {
        let now = worker.wallTime
        self.record = record
        let ttl = request.terms(of: record).remainingLifetime(now)
        remarks = AnswerForm.Remarks(
            age: record.terms.currentAge(now),
            cacheStatus: record.isAsMeant
                ? service.cacheStatus(ttl: ttl) : service.cacheStatus(ttl: ttl, of: record.tenure),
            label: request.zone.label,
            ownFields: ownFields)
        let body = record.body
        let storedLength = body.isComplete ? body.length : body.expectedLength
        let compression = request.compression(of: record)
        let coding = StoredAnswer.coding(record, request, storedLength, compression, worker)
        form = AnswerForm(
            of: record.cached, record.fields, to: request, request.cache, length: coding.length,
            coding: coding.choice,
            addsVary: coding.choice == .asStored && !record.coding.isFixed(compression)
                && needsVary(record.coding, record.cached.vary, compression: compression),
            now: now, boundary: Shared.boundary)
        if inOnePiece, case .whole = form.content, form.hasBody, coding.work == nil,
            let short = StoredAnswer.short(coding.copy ?? body)
        {
            shortBody = short
            delivery = nil
            return
        }
        shortBody = nil
        guard form.hasBody else {
            delivery = nil
            return
        }
        switch form.content {
        case .none: delivery = nil
        case .whole:
            delivery = Delivery(
                record, body: coding.copy, range: form.totalLength.map { 0..<$0 },
                isChunked: form.framing == .chunked, work: coding.work)
        case .range(let range): delivery = Delivery(record, range: range, isChunked: false)
        case .ranges(let parts): delivery = Delivery(record, parts: parts.parts, closing: parts.closing)
        }
    }

    private struct Coding {
        var choice: CodingChoice
        /// The length of the content that is sent, in bytes. Nil if it is known only at its end.
        var length: Int?
        var work: Transcoder.Work?
        /// The body to send in place of the stored response's own.
        var copy: Body?
    }

    private static func coding(
        _ record: StoredResponse, _ request: OwnedRequest, _ length: Int?, _ compression: CompressionUse,
        _ worker: Worker
    ) -> Coding {
        let asStored = Coding(choice: .asStored, length: length)
        guard !record.coding.isFixed(compression) else { return asStored }
        let choice = chooseCoding(
            of: record.coding, length: length.map { UInt64($0) }, for: AcceptedCodings(request.fields), request.cache,
            compression: compression, lengthMin: request.compressedLengthMin)
        switch choice {
        case .asStored:
            return asStored
        case .inflated:
            return Coding(choice: choice, length: nil, work: Transcoder.Work(choice))
        case .gzipped:
            return Transcoder.mayCompress
                ? Coding(choice: choice, length: nil, work: Transcoder.Work(choice)) : asStored
        case .gzippedCopy:
            let copy = record.compressedCopy?.body(
                of: record.body, in: request.tier.memory, on: worker.shared.pool, inbox: worker.loop.inbox)
            precondition(copy.map { $0.state == .complete } ?? true, "a copy is used when it is complete")
            return copy.map { Coding(choice: choice, length: $0.length, copy: $0) } ?? asStored
        }
    }

    /// The body, if it can be written behind a head.
    private static func short(_ body: Body) -> Body? {
        body.isComplete && body.isResident && body.length <= ClientConnection.copiedBodyMax ? body : nil
    }

    /// How many bytes of content `append` writes.
    var contentBytes: Int { shortBody?.length ?? 0 }

    /// Appends the head, and the body if that is all of it.
    ///
    /// - Parameter vectors: room for those of the body.
    func append(
        minorVersion: UInt8, persists: Bool, using vectors: UnsafeMutableBufferPointer<iovec>, to out: inout [UInt8]
    ) {
        appendHead(minorVersion: minorVersion, persists: persists, to: &out)
        guard let shortBody else { return }
        let used = unsafe shortBody.vectors(from: 0, limit: shortBody.length, into: vectors)
        for index in 0..<used {
            unsafe out.append(
                contentsOf: UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len))
        }
    }

    private func appendHead(minorVersion: UInt8, persists: Bool, to out: inout [UInt8]) {
        form.appendHead(
            of: AnswerForm.StoredHead(
                status: record.cached.status, wire: record.head, hasLength: record.headHasLength),
            fields: record.fields, remarks, minorVersion: minorVersion, persists: persists, to: &out)
    }
}
