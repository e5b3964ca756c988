package import Caching
import EventLoop
import Forwarding
import Framing
package import Message
package import Storage

/// A stored response as the proxy sees it: the record of the store, and what Caching knows of it.
package final class StoredResponse: StoredRecord, @unchecked Sendable {
    package let cached: CachedResponse
    /// What of it decides on reuse: integers alone, for the path of a hit.
    let terms: ReuseTerms
    let hasValidator: Bool
    /// The end-to-end fields with their bytes; `head` holds the same in wire form.
    package let fields: Fields
    /// Nil where the response does not vary; then the record suits every request for its key.
    package let secondaryKey: SecondaryKey?
    /// `head` ends with a `Content-Length` line; false while the length of the body is not known yet.
    package let headHasLength: Bool
    /// What may be done about its content coding.
    let coding: CodingTerms
    /// How it serves those whose `Accept-Encoding` is another than that of the request it answered; nil where it does not
    /// vary by that.
    let codingVariant: CodingVariant?
    /// The gzip copy, where the rules want one; records with a renewed head share it.
    let compressedCopy: CompressedCopy?
    /// Under which storage policy it is kept.
    package let storage: StoragePolicy
    /// Trailers of the transfer under way, for those who read it as it comes: they are not stored (RFC 9110 §6.5.1).
    let trailers: TransientTrailers?
    /// Everything a fresh plain GET needs is at hand: status 200-like, length known, no variants.
    package var isPlain: Bool {
        headHasLength && secondaryKey == nil && !coding.isInflatable && head.count <= StoredResponse.plainHeadBytesMax
    }

    package init(
        key: StorageKey, keyBytes: [UInt8], cached: CachedResponse, fields: Fields, secondaryKey: SecondaryKey?,
        codingVariant: CodingVariant? = nil, coding: CodingTerms? = nil, body: Body, contentLength: Int?,
        storage: StoragePolicy = .session,
        compressedCopy: CompressedCopy? = nil,
        trailers: TransientTrailers? = nil
    ) {
        self.compressedCopy = compressedCopy
        self.storage = storage
        self.trailers = trailers
        self.cached = cached
        self.coding = coding ?? CodingTerms(cached, fields: fields, uri: keyBytes)
        self.codingVariant = codingVariant
        terms = cached.terms
        hasValidator = cached.hasValidator
        self.fields = fields
        self.secondaryKey = secondaryKey
        headHasLength = contentLength != nil
        super.init(
            key: key, keyBytes: keyBytes,
            head: StoredResponse.wireHead(status: cached.status, fields: fields, contentLength: contentLength),
            body: body)
    }

    /// The answer to a request, to be stored in the request's zone.
    convenience init(
        request: OwnedRequest, cached: CachedResponse, fields: Fields, body: Body, contentLength: Int?,
        treatment: CacheTreatment, trailers: TransientTrailers? = nil
    ) {
        self.init(
            key: request.key, keyBytes: request.keyBytes, cached: cached, fields: fields,
            secondaryKey: cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request.fields),
            codingVariant: CodingVariant(cached.vary, request: request.fields), body: body,
            contentLength: contentLength, storage: treatment.storage,
            compressedCopy: treatment.compression == .once ? CompressedCopy() : nil, trailers: trailers)
    }

    /// A head beyond this is written by the longer way, which has no buffer of fixed size.
    private static let plainHeadBytesMax = 64 << 10

    /// The newer of two responses with the same secondary key takes the place of the older (RFC 9111 §4.1).
    package override func replaces(_ other: StoredRecord) -> Bool {
        guard let other = other as? StoredResponse else { return true }
        return secondaryKey == other.secondaryKey
    }

    /// The same response with a renewed head, over the same body (RFC 9111 §4.3.4).
    package func renewed(cached: CachedResponse, fields: Fields) -> StoredResponse {
        renewed(cached, fields, secondaryKey, codingVariant, nil)
    }

    /// The same, where only the times are other: what the content is, and for whom, is known.
    func renewed(times cached: CachedResponse, fields: Fields) -> StoredResponse {
        renewed(cached, fields, secondaryKey, codingVariant, coding)
    }

    /// The same, for a request of another variant that it turned out to suit as well.
    func renewed(for request: OwnedRequest) -> StoredResponse {
        renewed(
            cached, fields, SecondaryKey(cached.vary, request: request.fields),
            CodingVariant(cached.vary, request: request.fields), coding)
    }

    private func renewed(
        _ cached: CachedResponse, _ fields: Fields, _ secondaryKey: SecondaryKey?, _ codingVariant: CodingVariant?,
        _ coding: CodingTerms?
    ) -> StoredResponse {
        StoredResponse(
            key: key, keyBytes: keyBytes, cached: cached, fields: fields, secondaryKey: secondaryKey,
            codingVariant: codingVariant, coding: coding, body: body,
            contentLength: body.state == .complete ? body.length : body.expectedLength, storage: storage,
            compressedCopy: compressedCopy)
    }

    /// The same response, to be validated before it is served again (a soft purge).
    package var outdated: StoredResponse { renewed(cached: cached.outdated(), fields: fields) }

    /// Whether its validator may go along when no variant suits: the origin may say that this one does (§4.3.1).
    ///
    /// Not where it varies by coding: servers that compress on the way confirm the tag of the plain form to everybody, and
    /// nobody would get it compressed any more.
    var isCandidate: Bool {
        !cached.vary.nominatesAcceptEncoding && cached.eTag != nil && cached.vary != .star && body.state != .failed
            && !body.isWindowed
    }

    /// Whether it may answer the request: its variant, and a body that is there or on its way.
    func suits(_ request: OwnedRequest) -> Bool {
        guard body.state != .failed, !body.isWindowed else { return false }
        guard let secondaryKey else { return true }
        let bytes = request.bytes
        if secondaryKey.matches(request.head.fields, bytes: bytes.span) { return true }
        return codingVariant?.serves(request.fields, request.cache, coding) ?? false
    }

    private static func wireHead(status: UInt16, fields: Fields, contentLength: Int?) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(fields.bytes.count + 64)
        appendStatusLine(status, reason: nil, to: &head)
        appendFieldLines(fields, to: &head) { $0.name != .contentLength && $0.name != .age }
        // RFC 9110 §8.6: never in a 204.
        if let contentLength, status != 204 { HeadWriter.append(.contentLength, contentLength, to: &head) }
        return head
    }
}

/// Set by the worker that fetches, before the body is complete; read by those who serve it, after.
package final class TransientTrailers: Sendable {
    private let fields = Locked<Fields?>(nil)

    var value: Fields? { fields.withLock { $0 } }

    func set(_ trailers: Fields?) { fields.withLock { $0 = trailers } }
}
