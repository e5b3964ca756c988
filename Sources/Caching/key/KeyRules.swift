package import Message

/// How a key is made from the URI of a request, if different URIs mean the same: tracking parameters, parameters in any order, mirrors of
/// one archive.
///
/// It is applied to the normalised URI (`appendNormalisedURI`). Applying it twice has no further effect. The scheme always stays, so that
/// a response that came over `http` is never served for `https`. Without `host`, the host stays as well.
package struct KeyRules: Sendable, Equatable {
    package var query: QuerySelection
    /// Sorts parameters by name. Parameters with the same name keep their order, which may have a meaning.
    package var sortsQuery: Bool
    /// Replaces host and port, in lower case: all hosts that the rule matches share one key for each path.
    package var host: String?
    /// The parameters that are part of a signature at these hosts, beyond those of the known schemes. They and those are left out of the key
    /// where a client has proven its access (`SignedAddress`). Nil: signatures are part of the key. `apply` leaves them alone.
    package var signature: [ParameterPattern]?
    /// All addresses with the same digest in their path share one key (`DigestKey`). `apply` leaves them alone.
    package var sharesDigests: Bool
    /// Takes the place of host and port in the keys of digests. Nil: `host` does, if there is one.
    package var digestHost: String?

    package init(
        query: QuerySelection = .all, sortsQuery: Bool = false, host: String? = nil,
        signature: [ParameterPattern]? = nil, sharesDigests: Bool = false
    ) {
        self.query = query
        self.sortsQuery = sortsQuery
        self.host = host
        self.signature = signature
        self.sharesDigests = sharesDigests
    }

    /// Changes the normalised URI that begins at `start` into the key. Allocates nothing unless it sorts or replaces a host.
    package func apply(to uri: inout [UInt8], from start: Int = 0) {
        if let mark = uri[start...].firstIndex(of: UInt8(ascii: "?")) {
            selectParameters(&uri, after: mark)
            if sortsQuery, mark < uri.count { sortParameters(&uri, after: mark) }
        }
        if let host { replaceHost(&uri, from: start, with: host) }
    }
}

/// Which query parameters are part of the key.
package enum QuerySelection: Sendable, Equatable {
    case all
    case dropping([ParameterPattern])
    case keeping([ParameterPattern])

    fileprivate func takes(_ name: ArraySlice<UInt8>) -> Bool {
        switch self {
        case .all: true
        case .dropping(let patterns): !patterns.contains { $0.matches(name) }
        case .keeping(let patterns): patterns.contains { $0.matches(name) }
        }
    }
}

/// Matches the name of a parameter, `fbclid`, or all names with a prefix, `utm_*`. Names are compared byte by byte, as sent.
package struct ParameterPattern: Sendable, Hashable, CustomStringConvertible {
    private let name: [UInt8]
    private let isPrefix: Bool

    /// Returns nil if the text cannot be a name in a query (`&`, `=`, `#`, spaces, bytes outside of ASCII), or has an asterisk that is not
    /// at its end.
    package init?(_ text: String) {
        isPrefix = text.hasSuffix("*")
        name = Array(text.utf8.dropLast(isPrefix ? 1 : 0))
        guard isPrefix || !name.isEmpty, name.allSatisfy({ isVchar($0) && !"&=#*".utf8.contains($0) }) else {
            return nil
        }
    }

    package func matches(_ other: ArraySlice<UInt8>) -> Bool {
        isPrefix ? other.starts(with: name) : other.elementsEqual(name)
    }

    package var description: String { String(decoding: name, as: UTF8.self) + (isPrefix ? "*" : "") }
}

/// Appends the key of a request: the normalised URI, changed by the rule.
package func appendKey(
    _ target: RequestTarget, of bytes: borrowing Span<UInt8>, rules: KeyRules?, to key: inout [UInt8]
) {
    let start = key.count
    appendNormalisedURI(target, of: bytes, to: &key)
    rules?.apply(to: &key, from: start)
}

// MARK: - The query, in place

extension KeyRules {
    /// Moves the parameters that stay to the front. If none is left, the question mark is removed as well.
    private func selectParameters(_ uri: inout [UInt8], after mark: Int) {
        if query == .all { return }
        var write = mark + 1
        var read = mark + 1
        var isFirst = true
        while read <= uri.count {
            let end = uri[read...].firstIndex(of: ampersand) ?? uri.count
            if query.takes(name(of: uri[read..<end])) {
                if !isFirst {
                    uri[write] = ampersand
                    write += 1
                }
                isFirst = false
                for index in read..<end {
                    uri[write] = uri[index]
                    write += 1
                }
            }
            read = end + 1
        }
        if write == uri.count { return }
        uri.removeLast(uri.count - (write > mark + 1 ? write : mark))
    }

    private func sortParameters(_ uri: inout [UInt8], after mark: Int) {
        let parameters = uri[(mark + 1)...].split(separator: ampersand, omittingEmptySubsequences: false)
        let names = parameters.map(name)
        let order = parameters.indices.sorted { a, b in
            names[a].elementsEqual(names[b]) ? a < b : names[a].lexicographicallyPrecedes(names[b])
        }
        if order.elementsEqual(parameters.indices) { return }
        uri.removeLast(uri.count - mark - 1)
        uri.append(contentsOf: order.map { parameters[$0] }.joined(separator: [ampersand]))
    }

    /// Replaces the host in `scheme://host/path`.
    private func replaceHost(_ uri: inout [UInt8], from start: Int, with host: String) {
        guard let colon = uri[start...].firstIndex(of: UInt8(ascii: ":")), colon + 3 <= uri.count else { return }
        let from = colon + 3
        let end = uri[from...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "*") } ?? uri.count
        uri.replaceSubrange(from..<end, with: host.utf8)
    }
}

private func name(of parameter: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    parameter.prefix { $0 != UInt8(ascii: "=") }
}

private let ampersand = UInt8(ascii: "&")
