package import JSON
import Message

/// How the text of an index is written.
package enum IndexForm: Sendable {
    case json, html

    /// - Parameter contentType: the value of `Content-Type`. Returns nil if it is neither.
    package init?(contentType: some Sequence<UInt8>) {
        let type = contentType.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }.map(
            asciiLowercased)
        if type.suffix(4).elementsEqual("json".utf8) {
            self = .json
        } else if type.elementsEqual("text/html".utf8) || type.suffix(5).elementsEqual("+html".utf8) {
            self = .html
        } else {
            return nil
        }
    }
}

/// The digest that an index promises of a file.
package struct PromisedDigest: Sendable, Equatable {
    package enum Algorithm: String, Sendable { case sha256, sha512 }

    /// Where the file is, as the index has it: absolute, or relative to the index.
    package let reference: [UInt8]
    package let algorithm: Algorithm
    /// Lower-case hexadecimal digits.
    package let digits: [UInt8]

    /// - Parameter digits: in either case. Returns nil if they are not as many as the algorithm has.
    init?(_ reference: some Sequence<UInt8>, _ algorithm: Algorithm, digits: some Collection<UInt8>) {
        guard digits.count == algorithm.byteCount * 2, digits.allSatisfy({ hexValue($0) != nil }) else { return nil }
        self.reference = Array(reference)
        self.algorithm = algorithm
        self.digits = digits.map(asciiLowercased)
    }
}

extension PromisedDigest.Algorithm {
    fileprivate var byteCount: Int { self == .sha256 ? 32 : 64 }
}

/// The digests that an index promises of its files. What is not as it should be is left out.
///
/// - Parameter kind: that of an index.
package func promisedDigests(
    _ text: [UInt8], _ kind: ReleaseKind, _ form: IndexForm
) throws(JSONError) -> [PromisedDigest] {
    switch (kind, form) {
    case (.npmIndex, .json), (.npmDocument, .json): try npmDigests(text)
    case (.pythonIndex, .json): try pythonDigests(text)
    case (.pythonIndex, .html): htmlDigests(text)
    case (.npmIndex, .html), (.npmDocument, .html), (.file, _), (.pythonFile, _): []
    }
}

// MARK: npm

/// `versions`, of each `dist`: `tarball` and `integrity`.
private func npmDigests(_ text: [UInt8]) throws(JSONError) -> [PromisedDigest] {
    var scanner = JSONScanner(text)
    var found: [PromisedDigest] = []
    try scanner.members { (scanner, name) throws(JSONError) in
        guard name == "versions" else { return _ = try scanner.skipValue() }
        try scanner.members { (scanner, _) throws(JSONError) in
            try scanner.members { (scanner, name) throws(JSONError) in
                guard name == "dist" else { return _ = try scanner.skipValue() }
                let texts = try scanner.texts(["tarball", "integrity"])
                guard let file = texts["tarball"], let integrity = texts["integrity"] else { return }
                found += integrityDigests(integrity).compactMap { algorithm, digits in
                    PromisedDigest(file.utf8, algorithm, digits: digits)
                }
            }
        }
    }
    try scanner.end()
    return found
}

/// Of Subresource Integrity: `sha512-` and base 64, perhaps several with spaces between them.
private func integrityDigests(_ text: String) -> [(PromisedDigest.Algorithm, digits: [UInt8])] {
    text.split(separator: " ").compactMap { hash in
        guard let dash = hash.firstIndex(of: "-"),
            let algorithm = PromisedDigest.Algorithm(rawValue: String(hash[..<dash])),
            let bytes = decodeBase64(hash[hash.index(after: dash)...].prefix { $0 != "?" }.utf8)
        else { return nil }
        return (algorithm, hexadecimal(bytes))
    }
}

// MARK: Python

/// `files`, of each `url` and `hashes` (PEP 691), and the digests of the metadata beside it, at the same URL with `.metadata` (PEP 714).
private func pythonDigests(_ text: [UInt8]) throws(JSONError) -> [PromisedDigest] {
    let algorithms: Set = ["sha256", "sha512"]
    var scanner = JSONScanner(text)
    var found: [PromisedDigest] = []
    try scanner.members { (scanner, name) throws(JSONError) in
        guard name == "files", try scanner.kind() == .array else { return _ = try scanner.skipValue() }
        try scanner.array { (scanner) throws(JSONError) in
            var url: String?
            var hashes: [String: String] = [:]
            var metadata: [String: String] = [:]
            try scanner.members { (scanner, name) throws(JSONError) in
                switch name {
                case "url" where try scanner.kind() == .string: url = try scanner.string()
                case "hashes": hashes = try scanner.texts(algorithms)
                // The second name is that of PEP 658. A value may be true, which says no digest.
                case "core-metadata", "dist-info-metadata":
                    metadata.merge(try scanner.texts(algorithms)) { first, _ in first }
                default: try scanner.skipValue()
                }
            }
            guard let url else { return }
            found += promisedDigests(of: url, hashes)
            // What follows the path is not for the metadata.
            if !url.contains(where: { $0 == "?" || $0 == "#" }) {
                found += promisedDigests(of: url + ".metadata", metadata)
            }
        }
    }
    try scanner.end()
    return found
}

private func promisedDigests(of url: String, _ hashes: [String: String]) -> [PromisedDigest] {
    hashes.compactMap { name, digits in
        PromisedDigest.Algorithm(rawValue: name).flatMap {
            PromisedDigest(url.utf8, $0, digits: Array(digits.utf8))
        }
    }
}

/// The values of `href` with a digest in their fragment: `six-1.0.whl#sha256=…` (PEP 503).
private func htmlDigests(_ text: [UInt8]) -> [PromisedDigest] {
    var found: [PromisedDigest] = []
    var rest = text[...]
    while let reference = nextReference(&rest) {
        guard let mark = reference.firstIndex(of: UInt8(ascii: "#")) else { continue }
        let file = withoutEntities(reference[..<mark])
        for part in reference[(mark + 1)...].split(separator: UInt8(ascii: "&")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1)
            guard pair.count == 2,
                let algorithm = PromisedDigest.Algorithm(rawValue: String(decoding: pair[0], as: UTF8.self)),
                let promised = PromisedDigest(file, algorithm, digits: pair[1])
            else { continue }
            found.append(promised)
        }
    }
    return found
}

/// The value of the next attribute `href` in quotes. What follows it remains in `rest`.
private func nextReference(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    while let mark = rest.firstIndex(of: UInt8(ascii: "=")) {
        let isReference = equalsIgnoringCase(rest[..<mark].suffix(4), "href".utf8)
        rest = rest[(mark + 1)...]
        guard isReference, let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
            let end = rest.dropFirst().firstIndex(of: quote)
        else { continue }
        defer { rest = rest[(end + 1)...] }
        return rest[(mark + 2)..<end]
    }
    return nil
}

/// Ampersands as HTML has to write them. Whoever writes other bytes of a URL as entities has no digest here.
private func withoutEntities(_ reference: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = reference
    while let byte = rest.popFirst() {
        result.append(byte)
        if byte == UInt8(ascii: "&"), rest.starts(with: "amp;".utf8) { rest = rest.dropFirst(4) }
    }
    return result
}

extension JSONScanner {
    /// Calls `visit` for each member of an object. Skips any other value.
    fileprivate mutating func members(
        _ visit: (inout JSONScanner, _ name: String) throws(JSONError) -> Void
    ) throws(JSONError) {
        guard try kind() == .object else { return _ = try skipValue() }
        try object { (scanner, name, _) throws(JSONError) in try visit(&scanner, name) }
    }

    /// The members of an object that have these names and are strings.
    fileprivate mutating func texts(_ names: Set<String>) throws(JSONError) -> [String: String] {
        var texts: [String: String] = [:]
        try members { (scanner, name) throws(JSONError) in
            guard names.contains(name), try scanner.kind() == .string else { return _ = try scanner.skipValue() }
            texts[name] = try scanner.string()
        }
        return texts
    }
}
