package import Caching
import EventLoop
import Forwarding
import Framing
package import Message
package import Storage

/// A stored response: a record of the store together with what Caching knows about it.
///
/// All workers share it. Every property is constant, apart from the marks and copies that synchronise themselves. A response whose head
/// changes is replaced by a new one over the same body (`renewed`).
package final class StoredResponse: StoredRecord, @unchecked Sendable {
    package let cached: CachedResponse
    /// The part of `cached` that decides about reuse: integers only, for hits.
    let terms: ReuseTerms
    let hasValidator: Bool
    /// The stored end-to-end fields. `head` has the same in wire form, and ends with `Age: ` so that the value can follow.
    package let fields: Fields
    /// The fields that `Vary` names, from the request that was answered. Nil if the response does not vary: it suits every request for
    /// its key.
    package let secondaryKey: SecondaryKey?
    /// Whether `head` has a `Content-Length` line. False if the length was unknown when the response was stored.
    package let headHasLength: Bool
    /// `fields` are in `head`, and have no bytes of their own.
    private let hasFieldsInHead: Bool
    /// How the content coding may be changed, as far as the head tells.
    private let codingByHead: CodingTerms
    /// Set once the body could not be inflated. Nil if the body is never inflated.
    private let undecodableMark: UndecodableMark?
    /// How the response may serve requests with another `Accept-Encoding`. Nil if it does not vary by that field.
    let codingVariant: CodingVariant?
    /// The gzip copy. Nil if the rules do not ask for one. Stored responses with a renewed head share it.
    let compressedCopy: CompressedCopy?
    /// The addresses that it was fetched from or served for, if its key is that of a digest.
    package let addresses: StoredAddresses
    /// How long the response is kept.
    package let storage: StoragePolicy
    /// The trailers of the present transfer, for readers of the growing body. They are not stored (RFC 9110 §6.5.1).
    let trailers: TransientTrailers?
    /// The last invalidation before its request, or the last validation of it, was sent (`InvalidationMarks.last`). Zero for what was read from the
    /// disk. Set before any other thread knows the response.
    var sentAfterInvalidation: UInt64 = 0
    /// No rule decides how long it is fresh and for whom it is.
    private let hasFixedTerms: Bool
    /// Whether the short path may serve it: its length is known, it does not vary, no rule and no change of its coding concerns it, and its
    /// head fits.
    package var isPlain: Bool { hasFixedTerms && isPlainInForm }

    /// Whether the short path may serve it where rules have said under which terms.
    @inline(__always)
    var isPlainInForm: Bool {
        headHasLength && secondaryKey == nil && !codingByHead.isInflatable
            && head.count <= StoredResponse.plainHeadBytesMax
    }

    /// How the content coding may be changed, failures so far included.
    var coding: CodingTerms { isUndecodable ? codingByHead.undecodable : codingByHead }
    /// Whether inflating the body failed, so that it is served only in the stored coding.
    var isUndecodable: Bool { undecodableMark?.isSet ?? false }

    /// - Parameter via: what is added to `Via` behind the fields. Nil if it is among them.
    package convenience init(
        key: StorageKey, keyBytes: [UInt8], cached: CachedResponse, fields: Fields, via: StaticString? = nil,
        secondaryKey: SecondaryKey?, codingVariant: CodingVariant? = nil, body: Body, contentLength: Int?,
        storage: StoragePolicy = .session, compressedCopy: CompressedCopy? = nil,
        trailers: TransientTrailers? = nil, addresses: StoredAddresses = StoredAddresses(), isCopy: Bool = false
    ) {
        self.init(
            key: key, keyBytes: keyBytes, cached: cached,
            wire: WireHead(status: cached.status, fields: fields, via: via, contentLength: contentLength),
            secondaryKey: secondaryKey, codingVariant: codingVariant,
            coding: CodingTerms(cached, fields: fields, uri: keyBytes),
            undecodableMark: nil, body: body, storage: storage, compressedCopy: compressedCopy, trailers: trailers,
            addresses: addresses, isCopy: isCopy)
    }

    /// - Parameter undecodableMark: the mark of another stored response with the same body; nil for a new body.
    private init(
        key: StorageKey, keyBytes: [UInt8], cached: CachedResponse, wire: WireHead, secondaryKey: SecondaryKey?,
        codingVariant: CodingVariant?, coding: CodingTerms, undecodableMark: UndecodableMark?, body: Body,
        storage: StoragePolicy, compressedCopy: CompressedCopy?, trailers: TransientTrailers?,
        addresses: StoredAddresses, isCopy: Bool
    ) {
        self.addresses = addresses
        self.compressedCopy = compressedCopy
        self.storage = storage
        self.trailers = trailers
        self.cached = cached
        codingByHead = coding
        self.undecodableMark = coding.isInflatable ? undecodableMark ?? UndecodableMark() : nil
        self.codingVariant = codingVariant
        terms = cached.terms
        hasValidator = cached.hasValidator
        hasFixedTerms = cached.hasFixedTerms
        fields = wire.fields
        hasFieldsInHead = wire.isShared
        headHasLength = wire.hasLength
        self.secondaryKey = secondaryKey
        super.init(
            key: key, keyBytes: keyBytes, head: wire.bytes, body: body,
            heldBesides: StoredResponse.heldBytes(wire) + StoredResponse.heldBytes(addresses), isCopy: isCopy)
    }

    /// The array of a request may have much more room than its key needs.
    private static func exactCopy(of key: [UInt8]) -> [UInt8] {
        if key.capacity <= key.count + keySlackMax { return key }
        return unsafe key.withUnsafeBufferPointer { unsafe Array($0) }
    }

    /// How much room for more a key may have: an allocator rounds up.
    private static let keySlackMax = 64

    /// The memory of what a response has besides key, head and body: its fields, and what was worked out from them.
    private static func heldBytes(_ wire: WireHead) -> Int {
        (wire.isShared ? 0 : arrayBytes(wire.fields.bytes.capacity))
            + arrayBytes(wire.fields.lines.capacity * MemoryLayout<FieldLine>.stride) + cachedBytes
    }

    private static func heldBytes(_ addresses: StoredAddresses) -> Int {
        addresses.isEmpty
            ? 0
            : addresses.list.reduce(arrayBytes(addresses.list.capacity * MemoryLayout<[UInt8]>.stride)) {
                $0 + arrayBytes($1.capacity)
            }
    }

    /// The object of `cached`, and its arrays in most responses: entity tag, time of the last change, coding.
    private static let cachedBytes = 320

    /// A response to a request, to be stored in the request's zone.
    convenience init(
        request: OwnedRequest, cached: CachedResponse, fields: Fields, via: StaticString? = nil, body: Body,
        contentLength: Int?, handling: CacheHandling, trailers: TransientTrailers? = nil
    ) {
        var secondaryKey: SecondaryKey?
        var codingVariant: CodingVariant?
        let vary = cached.vary
        if vary != .none {
            let selecting = request.selectingFields
            secondaryKey = SecondaryKey(vary, request: selecting)
            codingVariant = CodingVariant(vary, request: selecting)
        }
        self.init(
            key: request.key, keyBytes: StoredResponse.exactCopy(of: request.keyBytes), cached: cached, fields: fields,
            via: via, secondaryKey: secondaryKey, codingVariant: codingVariant, body: body,
            contentLength: contentLength, storage: request.storage(handling),
            compressedCopy: handling.compression == .once ? CompressedCopy() : nil, trailers: trailers,
            addresses: request.sharedDigest == nil ? StoredAddresses() : StoredAddresses([request.uri]),
            isCopy: request.isCopy(handling))
        sentAfterInvalidation = request.sentAfterInvalidation
    }

    /// Heads up to so many bytes fit the worker's output buffer, which the short path uses.
    private static let plainHeadBytesMax = 64 << 10

    /// Whether this response replaces an older one under the same key: both have the same secondary key (RFC 9111 §4.1).
    package override func replaces(_ other: StoredRecord) -> Bool {
        guard let other = other as? StoredResponse else { return true }
        return secondaryKey == other.secondaryKey
    }

    /// The response with other fields, over the same body (RFC 9111 §4.3.4).
    package func renewed(cached: CachedResponse, fields: Fields) -> StoredResponse {
        renewed(cached, fields, secondaryKey, codingVariant, nil)
    }

    /// The response with other times. Neither the content nor the requests that it suits change.
    ///
    /// - Parameter fields: the fields of this response, some of them with other values of the same length.
    func renewed(
        times cached: CachedResponse, fields: Fields, addresses: StoredAddresses? = nil
    ) -> StoredResponse {
        let contentLength = StoredResponse.contentLength(of: body)
        guard hasFieldsInHead, headHasLength == (contentLength != nil) else {
            return renewed(cached, fields, secondaryKey, codingVariant, codingByHead, addresses: addresses)
        }
        precondition(fields.bytes.count == head.count, "no line of the head moves")
        let wire = WireHead(of: fields, hasLength: headHasLength)
        return renewed(cached, wire, secondaryKey, codingVariant, codingByHead, body, nil, addresses)
    }

    /// The response with the address of the request among its addresses. Nil if it is there, there is no room for it, or the key says it.
    func noting(addressOf request: OwnedRequest) -> StoredResponse? {
        guard request.sharedDigest != nil, addresses.canNote(request.uri[...]) else { return nil }
        var addresses = addresses
        _ = addresses.note(request.uri[...])
        return renewed(times: cached, fields: fields, addresses: addresses)
    }

    /// The response for another request, for which a 304 selected it.
    func renewed(for request: OwnedRequest) -> StoredResponse {
        renewed(cached: cached, fields: fields, for: request)
    }

    /// The response with other fields, over the same body, for requests that select it as this one does.
    func renewed(cached: CachedResponse, fields: Fields, for request: OwnedRequest) -> StoredResponse {
        guard cached.vary != .none else { return renewed(cached, fields, nil, nil, nil) }
        let selecting = request.selectingFields
        return renewed(
            cached, fields, SecondaryKey(cached.vary, request: selecting),
            CodingVariant(cached.vary, request: selecting), nil)
    }

    /// The same response with another body, which has the same bytes so far: the one that this body moved to.
    func moved(to body: Body) -> StoredResponse {
        renewed(cached, fields, secondaryKey, codingVariant, codingByHead, body: body, trailers: trailers)
    }

    /// What is left of an index without what is too young. It is not stored.
    func filtered(_ body: Body, tag: [UInt8]) -> StoredResponse {
        let fields = filteredFields(of: fields, tag: tag)
        return StoredResponse(
            key: key, keyBytes: keyBytes, cached: cached.replacing(fields), fields: fields, secondaryKey: secondaryKey,
            body: body, contentLength: body.length)
    }

    private func renewed(
        _ cached: CachedResponse, _ fields: Fields, _ secondaryKey: SecondaryKey?, _ codingVariant: CodingVariant?,
        _ coding: CodingTerms?, body other: Body? = nil, trailers: TransientTrailers? = nil,
        addresses: StoredAddresses? = nil
    ) -> StoredResponse {
        let body = other ?? body
        let wire = WireHead(
            status: cached.status, fields: fields, contentLength: StoredResponse.contentLength(of: body))
        return renewed(
            cached, wire, secondaryKey, codingVariant, coding ?? CodingTerms(cached, fields: fields, uri: keyBytes),
            body, trailers, addresses)
    }

    private func renewed(
        _ cached: CachedResponse, _ wire: WireHead, _ secondaryKey: SecondaryKey?, _ codingVariant: CodingVariant?,
        _ coding: CodingTerms, _ body: Body, _ trailers: TransientTrailers?, _ addresses: StoredAddresses?
    ) -> StoredResponse {
        let renewed = StoredResponse(
            key: key, keyBytes: keyBytes, cached: cached, wire: wire, secondaryKey: secondaryKey,
            codingVariant: codingVariant, coding: coding, undecodableMark: undecodableMark, body: body,
            storage: storage, compressedCopy: compressedCopy, trailers: trailers,
            addresses: addresses ?? self.addresses, isCopy: isCopy)
        renewed.sentAfterInvalidation = sentAfterInvalidation
        return renewed
    }

    private static func contentLength(of body: Body) -> Int? { body.isComplete ? body.length : body.expectedLength }

    /// The response marked so that it must be validated before it is served again (a soft purge).
    package var outdated: StoredResponse { renewed(cached: cached.outdated(), fields: fields) }

    /// The response marked so that only its origin can make it of use again (`CachedResponse.doubted`).
    package var doubted: StoredResponse { renewed(cached: cached.doubted(), fields: fields) }

    /// The response with times of another clock, which is so much ahead of the one that gave them.
    func moved(by seconds: Seconds) -> StoredResponse { renewed(times: cached.moved(by: seconds), fields: fields) }

    /// Whether its validator may be sent if no variant matches, so that a 304 can select it (RFC 9111 §4.3.1).
    ///
    /// Not if it varies by coding: servers that compress while sending confirm the tag of the uncompressed form to every client, which
    /// would then never get it compressed. Not if it varies by `Origin`: its head has the permission of one site
    /// (`Access-Control-Allow-Origin`), which a 304 need not repeat for another.
    var isCandidate: Bool {
        !cached.vary.nominatesAcceptEncoding && !cached.vary.nominatesOrigin && cached.eTag != nil
            && cached.vary != .star && body.state != .failed && !body.isWindowed
    }

    /// Whether it may answer the request: the variant matches, and the body is complete, partial or growing.
    func suits(_ request: OwnedRequest) -> Bool {
        guard body.state != .failed, !body.isWindowed else { return false }
        if isUndecodable, !coding.suits(AcceptedCodings(request.fields)) { return false }
        guard let secondaryKey else { return true }
        let selecting = request.selectingFields
        if secondaryKey.matches(selecting) { return true }
        return codingVariant?.serves(selecting, request.cache, coding) ?? false
    }

    /// Records that inflating the body failed. From now on it is served only to clients that accept the stored coding.
    func markUndecodable() { undecodableMark?.set() }
}

/// The head of a stored response in wire form, up to the value of `Age`, and its fields.
private struct WireHead {
    let bytes: [UInt8]
    let fields: Fields
    /// The fields are in `bytes`, and have no bytes of their own.
    let isShared: Bool
    /// The length of the body is known.
    let hasLength: Bool

    /// - Parameter via: what is added to `Via`. Nil if it is among the fields.
    init(status: UInt16, fields: Fields, via: StaticString? = nil, contentLength: Int?) {
        precondition(contentLength ?? 0 >= 0, "a length is not negative")
        hasLength = contentLength != nil
        let room =
            statusLineLengthMax(reasonLength: 0) + fieldLinesLength(fields) + WireHead.viaLength(via)
            + ForwardedHead.framingLengthMax + WireHead.age.utf8CodeUnitCount
        // RFC 9110 §8.6: never in a 204.
        let length = status == 204 ? nil : contentLength
        var linesStart = 0
        var viaStart = 0
        var linesEnd = 0
        bytes = Array(room: room) { head in
            appendStatusLine(status, reason: nil, to: &head)
            linesStart = head.count
            fields.appendLines(to: &head) { $0.name != .contentLength && $0.name != .age }
            viaStart = head.count
            if let via {
                head.append(FieldName.via.text)
                head.append(": ")
                head.append(via)
                head.append("\r\n")
            }
            linesEnd = head.count
            if let length { ForwardedHead.appendFraming(.length(UInt64(length)), to: &head) }
            head.append(WireHead.age)
        }
        // What the head does not have in full, the fields keep.
        isShared = !fields.contains(.age) && (length != nil || !fields.contains(.contentLength))
        guard isShared else {
            self.fields = via.map { fields.appending(.via, literal: $0) } ?? fields
            return
        }
        let nameEnd = UInt32(linesEnd + FieldName.contentLength.text.utf8CodeUnitCount)
        let line = FieldLine(
            name: .contentLength, nameStart: UInt32(linesEnd), nameEnd: nameEnd, valueStart: nameEnd + 2,
            valueEnd: UInt32(bytes.count - WireHead.age.utf8CodeUnitCount - 2))
        let viaEnd = UInt32(viaStart + FieldName.via.text.utf8CodeUnitCount)
        let viaLine = FieldLine(
            name: .via, nameStart: UInt32(viaStart), nameEnd: viaEnd, valueStart: viaEnd + 2,
            valueEnd: UInt32(linesEnd - 2))
        self.fields = fields.moved(
            to: bytes, from: linesStart, but: .contentLength, at: line, adding: via == nil ? nil : viaLine)
    }

    /// - Parameter fields: those in the head of a stored response, some of them with other values of the same length.
    init(of fields: Fields, hasLength: Bool) {
        bytes = fields.bytes
        self.fields = fields
        isShared = true
        self.hasLength = hasLength
    }

    private static func viaLength(_ via: StaticString?) -> Int {
        guard let via else { return 0 }
        return FieldName.via.text.utf8CodeUnitCount + via.utf8CodeUnitCount + 4
    }

    /// The name of the field whose value follows the head in wire form.
    private static let age: StaticString = "Age: "
}

/// The trailers of one transfer. The fetching worker sets them before it completes the body; workers that serve the body read them
/// afterwards.
package final class TransientTrailers: Sendable {
    private let fields = Locked<Fields?>(nil)

    var value: Fields? { fields.withLock { $0 } }

    func set(_ trailers: Fields?) { fields.withLock { $0 = trailers } }
}
