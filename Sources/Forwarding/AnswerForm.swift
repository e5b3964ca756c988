package import Caching
import Framing
package import Message

/// The form in which one client gets a stored response: all of it, ranges (RFC 9110 §14), or a 304 (§13); in which content coding; and
/// with which framing.
package struct AnswerForm: Sendable {
    /// The part of the stored content that is sent.
    package enum Content: Sendable {
        case none
        case whole
        case range(Range<Int>)
        case ranges(MultipartRanges)
    }

    package let status: UInt16
    package let content: Content
    package let coding: CodingChoice
    /// The length in bytes of the whole content in that coding. Nil if it is known only at the end.
    package let totalLength: Int?
    package let framing: ForwardedHead.Framing
    /// Whether content follows the head.
    package let hasBody: Bool
    /// Whether `Vary: Accept-Encoding` is added, because another client would get another coding (RFC 9110 §12.5.5).
    private let addsVary: Bool

    /// - Parameters:
    ///   - length: the length in bytes of the content in `coding`; nil if it is not known yet.
    ///   - coding: the choice of `chooseCoding`, or `asStored` if that choice cannot be carried out.
    ///   - boundary: makes the boundary of a multipart body (RFC 2046 §5.1.1), which must not occur in the content.
    package init(
        of cached: CachedResponse, _ fields: Fields, to request: ReceivedRequest, _ cache: CacheRequest, length: Int?,
        coding: CodingChoice, addsVary: Bool, now: WallTime, boundary: () -> [UInt8]
    ) {
        self.coding = coding
        self.addsVary = addsVary
        totalLength = length
        (status, content) = AnswerForm.choose(
            cached, fields, request, cache, length: length, takesRanges: coding == .asStored, now: now, boundary)
        let sent: Int?
        switch content {
        case .none: sent = status == 416 ? 0 : nil
        case .whole: sent = length
        case .range(let range): sent = range.count
        case .ranges(let parts): sent = parts.length
        }
        if let sent {
            framing = .length(UInt64(sent))
        } else if case .none = content {
            framing = .none
        } else {
            framing = request.head.minorVersion == 0 ? .untilClose : .chunked
        }
        if case .none = content { hasBody = false } else { hasBody = request.method != .head && sent != 0 }
    }

    /// Whether only the end of the connection ends the body (RFC 9112 §6.3).
    package var endsWithConnection: Bool { framing == .untilClose && hasBody }

    private static func choose(
        _ cached: CachedResponse, _ fields: Fields, _ request: ReceivedRequest, _ cache: CacheRequest, length: Int?,
        takesRanges: Bool, now: WallTime, _ boundary: () -> [UInt8]
    ) -> (UInt16, Content) {
        let status = cached.status
        let whole: (UInt16, Content) = (status, status == 204 || status == 304 ? .none : .whole)
        if cache.hasPreconditions {
            switch evaluate(request.fields, method: request.method, against: cached, now: now) {
            case .notModified: return (304, .none)
            // Only the origin may answer 412: the stored response may not be its current state.
            case .none, .passed, .failed: break
            }
        }
        guard takesRanges, cache.hasRange, request.method == .get, let length else { return whole }
        switch selectRange(request.fields, method: request.method, stored: cached, length: UInt64(length), now: now) {
        case .single(let range):
            return (206, .range(Int(range.lowerBound)..<Int(range.upperBound)))
        case .multiple(let ranges):
            let parts = MultipartRanges(
                ranges, length: length, contentType: fields.first(.contentType), boundary: boundary())
            return (206, .ranges(parts))
        case .unsatisfiable:
            return (416, .none)
        case .whole:
            return whole
        }
    }

    // MARK: the head

    /// The head of a stored response.
    package struct StoredHead {
        package let status: UInt16
        /// Status line and fields in wire form, up to the value of the last field, `Age`. Used if nothing has to be changed.
        package let wire: [UInt8]
        /// Whether `wire` has a `Content-Length` line.
        package let hasLength: Bool

        package init(status: UInt16, wire: [UInt8], hasLength: Bool) {
            self.status = status
            self.wire = wire
            self.hasLength = hasLength
        }
    }

    /// What the head says in addition to the stored fields.
    package struct Remarks: ~Copyable {
        package let age: Seconds
        package let cacheStatus: CacheStatus
        /// Parameters that follow those of `Cache-Status`: the name of the zone.
        package let label: [UInt8]
        /// Fields that replace the stored ones: those of a response to this very client, of which not all were stored
        /// (`private="…"`, RFC 9111 §5.2.2.7). Nil for other clients.
        package let ownFields: Fields?

        package init(age: Seconds, cacheStatus: CacheStatus, label: [UInt8], ownFields: Fields? = nil) {
            self.age = age
            self.cacheStatus = cacheStatus
            self.label = label
            self.ownFields = ownFields
        }

        /// Appends the age, whose name is there already, and the lines that follow it.
        fileprivate func append(addsVary: Bool, to out: inout OutputSpan<UInt8>) {
            if age < .zero { out.append(0x2D) }
            appendDecimal(age.count.magnitude, to: &out)
            out.append(addsVary ? "\r\nVary: Accept-Encoding\r\nCache-Status: " : "\r\nCache-Status: ")
            cacheStatus.append(to: &out)
            out.append(label)
            out.append("\r\n")
        }

        /// The room in bytes that `append` needs at most.
        fileprivate var lengthMax: Int { cacheStatus.lengthMax + label.count + decimalLengthMax + 48 }
    }

    /// Appends the head with the empty line that ends it.
    ///
    /// - Parameters:
    ///   - fields: those of the stored response. Evaluated only if something has to be changed.
    ///   - persists: the client's connection stays open, unless the framing of this answer ends it.
    package func appendHead(
        of stored: StoredHead, fields: @autoclosure () -> Fields, _ remarks: borrowing Remarks, minorVersion: UInt8,
        persists: Bool, to out: inout [UInt8]
    ) {
        var hasLength = false
        if status != stored.status || coding.isTransformed {
            appendStatusLine(status, reason: nil, to: &out)
            let coded = codedFields(of: remarks.ownFields ?? fields(), coding)
            appendFieldLines(status == 304 ? notModifiedFields(of: coded) : coded, to: &out) { isSent($0.name) }
            appendContentFields(to: &out)
            out.append("Age: ")
        } else if let ownFields = remarks.ownFields {
            appendStatusLine(status, reason: nil, to: &out)
            appendFieldLines(ownFields, to: &out) { isSent($0.name) }
            out.append("Age: ")
        } else {
            out.append(contentsOf: stored.wire)
            hasLength = stored.hasLength
        }
        // The closure would copy the whole form.
        let (addsVary, framing) = (addsVary, hasLength ? .none : framing)
        let end = HeadWriter.connection(persists: persists && !endsWithConnection, minorVersion: minorVersion)
        out.append(addingCapacity: remarks.lengthMax + ForwardedHead.framingLengthMax + 96) { out in
            remarks.append(addsVary: addsVary, to: &out)
            ForwardedHead.appendFraming(framing, to: &out)
            out.append(end)
        }
    }

    /// Whether a stored field is sent. A 416 does not describe the stored content (RFC 9110 §15.5.17), and in a multipart answer each part
    /// has its own type (§14.6).
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
            out.append("Content-Type: multipart/byteranges; boundary=")
            out.append(contentsOf: parts.boundary)
            out.append("\r\n")
        case .none:
            if status == 416, let totalLength { HeadWriter.appendContentRange(nil, of: totalLength, to: &out) }
        case .whole:
            break
        }
    }
}
