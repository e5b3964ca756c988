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
    /// The end-to-end fields with their bytes; `head` holds the same in wire form, and ends where the value of `Age` follows.
    package let fields: Fields
    /// Nil where the response does not vary; then the record suits every request for its key.
    package let secondaryKey: SecondaryKey?
    /// `head` has a `Content-Length` line; false while the length of the body is not known yet.
    package let headHasLength: Bool
    /// What may be done about its content coding, as its head says.
    private let codingByHead: CodingTerms
    /// Set when its body could not be inflated; nil where nothing is ever inflated.
    private let undecodableMark: UndecodableMark?
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
        headHasLength && secondaryKey == nil && !codingByHead.isInflatable
            && head.count <= StoredResponse.plainHeadBytesMax
    }

    /// What may be done about its content coding, as far as is known now.
    var coding: CodingTerms { isUndecodable ? codingByHead.undecodable : codingByHead }
    /// Inflating the body failed: it is served only as it is.
    var isUndecodable: Bool { undecodableMark?.isSet ?? false }

    package convenience init(
        key: StorageKey, keyBytes: [UInt8], cached: CachedResponse, fields: Fields, secondaryKey: SecondaryKey?,
        codingVariant: CodingVariant? = nil, body: Body, contentLength: Int?, storage: StoragePolicy = .session,
        compressedCopy: CompressedCopy? = nil, trailers: TransientTrailers? = nil
    ) {
        self.init(
            key: key, keyBytes: keyBytes, cached: cached, fields: fields, secondaryKey: secondaryKey,
            codingVariant: codingVariant, coding: CodingTerms(cached, fields: fields, uri: keyBytes),
            undecodableMark: nil, body: body, contentLength: contentLength, storage: storage,
            compressedCopy: compressedCopy, trailers: trailers)
    }

    /// - Parameter undecodableMark: of the same body; nil: nobody tried to inflate it yet.
    private init(
        key: StorageKey, keyBytes: [UInt8], cached: CachedResponse, fields: Fields, secondaryKey: SecondaryKey?,
        codingVariant: CodingVariant?, coding: CodingTerms, undecodableMark: UndecodableMark?, body: Body,
        contentLength: Int?, storage: StoragePolicy, compressedCopy: CompressedCopy?, trailers: TransientTrailers?
    ) {
        self.compressedCopy = compressedCopy
        self.storage = storage
        self.trailers = trailers
        self.cached = cached
        codingByHead = coding
        self.undecodableMark = coding.isInflatable ? undecodableMark ?? UndecodableMark() : nil
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
        handling: CacheHandling, trailers: TransientTrailers? = nil
    ) {
        self.init(
            key: request.key, keyBytes: request.keyBytes, cached: cached, fields: fields,
            secondaryKey: cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request.fields),
            codingVariant: CodingVariant(cached.vary, request: request.fields), body: body,
            contentLength: contentLength, storage: handling.storage,
            compressedCopy: handling.compression == .once ? CompressedCopy() : nil, trailers: trailers)
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
        renewed(cached, fields, secondaryKey, codingVariant, codingByHead)
    }

    /// The same, for a request of another variant that it turned out to suit as well.
    func renewed(for request: OwnedRequest) -> StoredResponse {
        renewed(
            cached, fields, SecondaryKey(cached.vary, request: request.fields),
            CodingVariant(cached.vary, request: request.fields), codingByHead)
    }

    private func renewed(
        _ cached: CachedResponse, _ fields: Fields, _ secondaryKey: SecondaryKey?, _ codingVariant: CodingVariant?,
        _ coding: CodingTerms?
    ) -> StoredResponse {
        StoredResponse(
            key: key, keyBytes: keyBytes, cached: cached, fields: fields, secondaryKey: secondaryKey,
            codingVariant: codingVariant, coding: coding ?? CodingTerms(cached, fields: fields, uri: keyBytes),
            undecodableMark: undecodableMark, body: body,
            contentLength: body.state == .complete ? body.length : body.expectedLength, storage: storage,
            compressedCopy: compressedCopy, trailers: nil)
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
        if isUndecodable, !coding.suits(AcceptedCodings(request.fields)) { return false }
        guard let secondaryKey else { return true }
        let bytes = request.bytes
        if secondaryKey.matches(request.head.fields, bytes: bytes.span) { return true }
        return codingVariant?.serves(request.fields, request.cache, coding) ?? false
    }

    /// Inflating the body failed. From now on it is served only to those who take it as it is.
    func markUndecodable() { undecodableMark?.set() }

    private static func wireHead(status: UInt16, fields: Fields, contentLength: Int?) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(fields.bytes.count + 64)
        appendStatusLine(status, reason: nil, to: &head)
        appendFieldLines(fields, to: &head) { $0.name != .contentLength && $0.name != .age }
        // RFC 9110 §8.6: never in a 204.
        if let contentLength, status != 204 { HeadWriter.append(.contentLength, contentLength, to: &head) }
        head.append("Age: ")
        return head
    }
}

/// Set by the worker that fetches, before the body is complete; read by those who serve it, after.
package final class TransientTrailers: Sendable {
    private let fields = Locked<Fields?>(nil)

    var value: Fields? { fields.withLock { $0 } }

    func set(_ trailers: Fields?) { fields.withLock { $0 = trailers } }
}
