package import Message

/// Keys for requests that are signed with AWS Signature Version 4. Object stores of many makers demand it.
package struct AWSCredential: Sendable {
    package let accessKeyID: String
    package let secretAccessKey: Secret
    /// Of temporary keys. Nil for keys without an end.
    package let sessionToken: Secret?
    package let region: String
    package let service: String

    package init(
        accessKeyID: String, secretAccessKey: Secret, sessionToken: Secret? = nil, region: String, service: String
    ) throws(CredentialFault) {
        for part in [accessKeyID, region, service] {
            let isValid = part.utf8.allSatisfy { isVchar($0) && !"/,=".utf8.contains($0) }
            guard isValid, !part.isEmpty else { throw .keyIsMalformed }
        }
        if let token = sessionToken?.bytes {
            guard !token.isEmpty, token.allSatisfy(isVchar) else { throw .sessionTokenIsMalformed }
        }
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.region = region
        self.service = service
    }

    /// Object stores have their own rules for paths, and demand `x-amz-content-sha256`.
    fileprivate var isObjectStore: Bool { service == "s3" }
}

/// The body of a request, as the signature covers it.
package enum AWSPayload: Equatable, Sendable {
    /// Its SHA-256.
    case hashed([UInt8])
    /// Its bytes are not covered: object stores alone, and only where TLS protects them.
    case unsigned
    /// As `unsigned`, in the aws-chunked coding with a trailer.
    ///
    /// A body in aws-chunked whose chunks are signed belongs to the keys of the client. Larder cannot sign it again.
    case unsignedWithTrailer
}

/// What of a request is signed.
package struct AWSRequest: Sendable {
    package let method: [UInt8]
    /// Path and query as they are sent.
    package let target: [UInt8]
    /// `host` and whatever else the signature covers. Fields that the signature brings along are ignored.
    package let fields: [(name: [UInt8], value: [UInt8])]
    package let payload: AWSPayload

    package init(
        method: [UInt8], target: [UInt8], fields: [(name: [UInt8], value: [UInt8])], payload: AWSPayload
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.payload = payload
    }
}

/// A field that goes into a request in the place of all fields of that name.
package struct CredentialField: Equatable, Sendable {
    package let name: String
    package let value: Secret
}

extension AWSCredential {
    /// Whether a signature has to cover the field if a request has it. Other fields may be added, changed and removed on the way.
    package static func mustSign(_ fieldName: [UInt8]) -> Bool {
        let name = fieldName.map(asciiLowercased)
        return ["host", "content-type", "content-md5"].contains { name.elementsEqual($0.utf8) }
            || name.starts(with: "x-amz-".utf8)
    }

    /// The fields besides `Authorization` that a signature brings along, where they are needed. A request has no others of these names.
    package static let ownFieldNames = ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"]

    /// The fields that authorise a request: `x-amz-date`, `Authorization`, and `x-amz-content-sha256` and `x-amz-security-token` where they are
    /// needed. The signature holds for about a quarter of an hour.
    package func sign(
        _ request: AWSRequest, at time: WallTime, using hashing: some Hashing
    ) throws(HashUnavailable) -> [CredentialField] {
        let date = compactTime(time)
        var added = [CredentialField(name: "x-amz-date", value: Secret(date))]
        if isObjectStore || !request.payload.isHashed {
            added.append(CredentialField(name: "x-amz-content-sha256", value: Secret(request.payload.text)))
        }
        if let sessionToken { added.append(CredentialField(name: "x-amz-security-token", value: sessionToken)) }
        let replaced = AWSCredential.ownFieldNames + ["authorization"]
        let fields = request.fields.map { ($0.name.map(asciiLowercased), $0.value) }
        let kept = fields.filter { field in !replaced.contains { field.0.elementsEqual($0.utf8) } }
        let covered = CanonicalFields(kept + added.map { (Array($0.name.utf8), $0.value.bytes) })

        let scope = [Array(date.prefix(8)), Array(region.utf8), Array(service.utf8), Array("aws4_request".utf8)]
        let scopeText = Array(scope.joined(separator: [slash]))
        let canonical = canonicalRequest(request, covered)
        let stringToSign = lines([
            Array("AWS4-HMAC-SHA256".utf8), date, scopeText, hexadecimal(try hashing.hash(.sha256, canonical)),
        ])
        var key = Array("AWS4".utf8) + secretAccessKey.bytes
        for part in scope { key = try hashing.hmac(.sha256, key: key, part) }
        let signature = hexadecimal(try hashing.hmac(.sha256, key: key, stringToSign))

        var text = AuthorizationText(scheme: "AWS4-HMAC-SHA256")
        text.add("Credential", Array(accessKeyID.utf8) + [slash] + scopeText)
        text.add("SignedHeaders", covered.names)
        text.add("Signature", signature)
        return added + [CredentialField(name: "Authorization", value: Secret(text.bytes))]
    }

    private func canonicalRequest(_ request: AWSRequest, _ fields: CanonicalFields) -> [UInt8] {
        let path = request.target.prefix { $0 != UInt8(ascii: "?") }
        let query = request.target.dropFirst(path.count + 1)
        return lines([
            request.method, isObjectStore ? canonicalKey(path) : canonicalPath(path), canonicalForm(parseForm(query)),
            fields.lines, fields.names, request.payload.text,
        ])
    }
}

private let slash = UInt8(ascii: "/")

/// The path of an object store: the name of the object, encoded once. Neither dot segments nor repeated slashes are removed, because they are
/// part of the name.
private func canonicalKey(_ path: ArraySlice<UInt8>) -> [UInt8] {
    path.isEmpty ? [slash] : percentEncoded(percentDecode(path)) { isUnreserved($0) || $0 == slash }
}

/// The path of all other services: normalised, and encoded once more than it is sent.
private func canonicalPath(_ path: ArraySlice<UInt8>) -> [UInt8] {
    var normalised = Array(path)
    removeDotSegments(&normalised, from: 0)
    var result: [UInt8] = []
    for byte in normalised where byte != slash || result.last != slash { result.append(byte) }
    return result.isEmpty ? [slash] : percentEncoded(result) { isUnreserved($0) || $0 == slash }
}

/// The fields that a signature covers.
private struct CanonicalFields {
    /// `name:value` and a line feed for each.
    let lines: [UInt8]
    /// The names, with semicolons between them.
    let names: [UInt8]

    /// - Parameter fields: names in lower case, in the order of the request.
    init(_ fields: [(name: [UInt8], value: [UInt8])]) {
        var sorted: [(name: [UInt8], value: [UInt8])] = []
        for name in Set(fields.map(\.name)).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let values = fields.filter { $0.name == name }.map { collapseSpaces($0.value) }
            sorted.append((name, Array(values.joined(separator: [UInt8(ascii: ",")]))))
        }
        lines = sorted.flatMap { $0.name + [UInt8(ascii: ":")] + $0.value + [UInt8(ascii: "\n")] }
        names = Array(sorted.map(\.name).joined(separator: [UInt8(ascii: ";")]))
    }
}

/// The value without white space at its ends, and one space in the place of several.
private func collapseSpaces(_ value: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    for byte in trimOWS(value[...]) where byte != 0x20 || result.last != 0x20 { result.append(byte) }
    return result
}

private func lines(_ parts: [[UInt8]]) -> [UInt8] { Array(parts.joined(separator: [UInt8(ascii: "\n")])) }

/// `20130524T000000Z`
private func compactTime(_ time: WallTime) -> [UInt8] {
    var text: [UInt8] = []
    appendTimestamp(time, to: &text)
    return text.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ":") } + [UInt8(ascii: "Z")]
}

extension AWSPayload {
    /// The value of `x-amz-content-sha256`, and the last line of the canonical request.
    fileprivate var text: [UInt8] {
        switch self {
        case .hashed(let hash): hexadecimal(hash)
        case .unsigned: Array("UNSIGNED-PAYLOAD".utf8)
        case .unsignedWithTrailer: Array("STREAMING-UNSIGNED-PAYLOAD-TRAILER".utf8)
        }
    }

    fileprivate var isHashed: Bool {
        if case .hashed = self { return true }
        return false
    }
}
